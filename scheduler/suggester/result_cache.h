/* A cache of texts that are computed from the results of sweeps and cost much: each is kept until
 * there are later results. It holds a bounded number of them; the least recently used goes first.
 * result_cache_init() and result_cache_done() are for the owner, the others for any thread; the
 * lock is held for copies alone. */
#ifndef ASSAY_SCHEDULER_SUGGESTER_RESULT_CACHE_H
#define ASSAY_SCHEDULER_SUGGESTER_RESULT_CACHE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/status.h"

#define RESULT_CACHE_MAX 32

struct cached_result {
    int64_t key, finish_seq;
    size_t subject;
    char *text;            /* owned; NULL: none yet */
    int64_t computing_seq; /* somebody computes the one for this; 0: nobody */
    int64_t used_ns;
};

struct result_cache {
    pthread_mutex_t mu; /* guards all below; nothing is locked while it is held */
    struct cached_result entries[RESULT_CACHE_MAX];
};

void result_cache_init(struct result_cache *x); /* of any memory */
void result_cache_done(struct result_cache *x);

/* The text about one subject of a sweep (the caller's number for it). *ret is NULL when there is
 * none, else a copy in the arena. *ret_mine: the caller is to compute the one for the results up to
 * finish_seq and to put it (NULL: it could not); meanwhile others get the older one (*ret_stale),
 * or when there is none are to compute it too. AS_E_NOMEM. */
AS_MUST_CHECK as_status result_cache_get(struct result_cache *x, struct arena *a, int64_t key,
                                         size_t subject, int64_t finish_seq, const char **ret,
                                         bool *ret_mine, bool *ret_stale, struct as_err *err);
void result_cache_put(struct result_cache *x, int64_t key, size_t subject, int64_t finish_seq,
                      const char *text);

#endif
