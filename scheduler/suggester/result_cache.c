#include "scheduler/suggester/result_cache.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"

void notes_init(struct notes *x)
{
    (void)pthread_mutex_init(&x->mu, NULL); /* cannot fail on Linux */
}

void notes_done(struct notes *x)
{
    for (size_t i = 0; i < NOTES_MAX; i++)
        free(x->notes[i].text);
    (void)pthread_mutex_destroy(&x->mu);
}

static struct note *note_locked(struct notes *x, int64_t key, size_t subject)
{
    struct note *oldest = &x->notes[0];
    for (size_t i = 0; i < NOTES_MAX; i++) {
        if (x->notes[i].key == key && x->notes[i].subject == subject)
            return &x->notes[i];
        if (x->notes[i].used_ns < oldest->used_ns)
            oldest = &x->notes[i];
    }
    free(oldest->text);
    *oldest = (struct note){.key = key, .subject = subject};
    return oldest;
}

as_status notes_get(struct notes *x, struct arena *a, int64_t key, size_t subject,
                    int64_t finish_seq, const char **ret, bool *ret_mine, bool *ret_stale,
                    struct as_err *err)
{
    pthread_mutex_lock(&x->mu);
    struct note *n = note_locked(x, key, subject);
    n->used_ns = clock_mono_ns();
    bool current = n->text && n->finish_seq >= finish_seq;
    *ret_mine = !current && (!n->text || n->computing_seq == 0);
    *ret_stale = !current && !*ret_mine;
    if (*ret_mine)
        n->computing_seq = finish_seq;
    *ret = *ret_mine ? NULL : arena_strdup(a, n->text);
    bool failed = !*ret_mine && !*ret;
    pthread_mutex_unlock(&x->mu);
    return failed ? as_fail(err, AS_E_NOMEM, "out of memory") : AS_OK;
}

void notes_put(struct notes *x, int64_t key, size_t subject, int64_t finish_seq, const char *text)
{
    char *copy = as_strdup(text);
    pthread_mutex_lock(&x->mu);
    struct note *n = note_locked(x, key, subject);
    n->computing_seq = 0;
    n->used_ns = clock_mono_ns();
    if (copy && (!n->text || n->finish_seq <= finish_seq)) {
        free(n->text);
        n->text = as_steal(copy);
        n->finish_seq = finish_seq;
    }
    pthread_mutex_unlock(&x->mu);
    free(copy);
}
