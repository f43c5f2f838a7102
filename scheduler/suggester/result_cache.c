#include "scheduler/suggester/result_cache.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"

void result_cache_init(struct result_cache *x)
{
    *x = (struct result_cache){0};
    (void)pthread_mutex_init(&x->mu, NULL); /* cannot fail on Linux */
}

void result_cache_done(struct result_cache *x)
{
    for (size_t i = 0; i < RESULT_CACHE_MAX; i++)
        free(x->entries[i].text);
    (void)pthread_mutex_destroy(&x->mu);
}

static struct cached_result *entry_locked(struct result_cache *x, int64_t key, size_t subject)
{
    struct cached_result *oldest = &x->entries[0];
    for (size_t i = 0; i < RESULT_CACHE_MAX; i++) {
        if (x->entries[i].key == key && x->entries[i].subject == subject)
            return &x->entries[i];
        if (x->entries[i].used_ns < oldest->used_ns)
            oldest = &x->entries[i];
    }
    free(oldest->text);
    *oldest = (struct cached_result){.key = key, .subject = subject};
    return oldest;
}

as_status result_cache_get(struct result_cache *x, struct arena *a, int64_t key, size_t subject,
                           int64_t finish_seq, const char **ret, bool *ret_mine, bool *ret_stale,
                           struct as_err *err)
{
    pthread_mutex_lock(&x->mu);
    struct cached_result *n = entry_locked(x, key, subject);
    n->used_ns = clock_mono_ns();
    bool current = n->text && n->finish_seq >= finish_seq;
    *ret_mine = !current && (!n->text || n->computing_seq == 0);
    *ret_stale = !current && !*ret_mine;
    if (*ret_mine)
        n->computing_seq = finish_seq;
    *ret = *ret_mine ? NULL : arena_strdup(a, n->text);
    bool failed = !*ret_mine && !*ret;
    pthread_mutex_unlock(&x->mu);
    return failed ? as_fail_nomem(err) : AS_OK;
}

void result_cache_put(struct result_cache *x, int64_t key, size_t subject, int64_t finish_seq,
                      const char *text)
{
    char *copy = as_strdup(text);
    pthread_mutex_lock(&x->mu);
    struct cached_result *n = entry_locked(x, key, subject);
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
