#include "scheduler/suggester/result_cache.h"

#include <stdlib.h>

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

static bool will_do(const struct cached_result *n, const struct result_wanted *w, int64_t now_ns)
{
    int64_t age_ns = now_ns - n->put_ns;
    return age_ns < w->max_age_ns && age_ns / RESULT_CACHE_REST < n->cost_ns;
}

as_status result_cache_get(struct result_cache *x, struct arena *a, const struct result_wanted *w,
                           int64_t now_ns, const char **ret, bool *ret_mine, bool *ret_stale,
                           struct as_err *err)
{
    pthread_mutex_lock(&x->mu);
    struct cached_result *n = entry_locked(x, w->key, w->subject);
    n->used_ns = now_ns;
    bool current = n->text && n->finish_seq >= w->finish_seq;
    *ret_mine = !current && (!n->text || (n->computing_seq == 0 && !will_do(n, w, now_ns)));
    *ret_stale = !current && !*ret_mine;
    if (*ret_mine) {
        n->computing_seq = w->finish_seq;
        n->began_ns = now_ns;
    }
    *ret = *ret_mine ? NULL : arena_strdup(a, n->text);
    bool failed = !*ret_mine && !*ret;
    pthread_mutex_unlock(&x->mu);
    return failed ? as_fail_nomem(err) : AS_OK;
}

void result_cache_put(struct result_cache *x, const struct result_wanted *w, int64_t finish_seq,
                      int64_t now_ns, const char *text)
{
    char *copy = as_strdup(text);
    pthread_mutex_lock(&x->mu);
    struct cached_result *n = entry_locked(x, w->key, w->subject);
    n->computing_seq = 0;
    n->used_ns = now_ns;
    if (copy && (!n->text || n->finish_seq <= finish_seq)) {
        free(n->text);
        n->text = as_steal(copy);
        n->finish_seq = finish_seq;
        n->put_ns = now_ns;
        n->cost_ns = now_ns - n->began_ns;
    }
    pthread_mutex_unlock(&x->mu);
    free(copy);
}
