/* A cache of texts that are computed from the results of sweeps and are expensive. A text is kept
 * until there are later results. The cache has a bounded number of entries and drops the least
 * recently used one. Only the owner calls result_cache_init() and result_cache_done(); any thread
 * may call the others. The lock is held only while a text is copied. */
#ifndef ASSAY_SCHEDULER_SUGGESTER_RESULT_CACHE_H
#define ASSAY_SCHEDULER_SUGGESTER_RESULT_CACHE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/status.h"

#define RESULT_CACHE_MAX 64
#define RESULT_CACHE_REST 50 /* times as long as computing a text took */

struct cached_result {
    int64_t key, finish_seq;
    size_t subject;
    char *text;              /* owned; NULL: none yet */
    int64_t computing_seq;   /* a request computes the text for this finish_seq; 0: no request */
    int64_t began_ns;        /* that request */
    int64_t put_ns, cost_ns; /* when the text was put, and how long computing it took */
    int64_t used_ns;
};

struct result_cache {
    pthread_mutex_t mu; /* guards all below; no other lock is taken while it is held */
    struct cached_result entries[RESULT_CACHE_MAX];
};

void result_cache_init(struct result_cache *x); /* of any memory */
void result_cache_done(struct result_cache *x);

/* The text about one subject of a sweep. */
struct result_wanted {
    int64_t key;        /* of the sweep */
    size_t subject;     /* a number that the caller chooses */
    int64_t finish_seq; /* of the latest result that there is */
    /* An older text will do if it was put less than this before, and less than RESULT_CACHE_REST
     * times the duration of its computation: however many ask, and however often, they cost a
     * fiftieth of a processor. 0: no older text will do. */
    int64_t max_age_ns;
};

/* *ret is NULL if there is no text, else a copy in the arena. *ret_mine: the caller must compute
 * the text for the results up to finish_seq and put it (NULL: it failed). Meanwhile other requests
 * get the older text; if there is none, they compute it too. *ret_stale: *ret is an older text.
 * `now_ns`: of clock_mono_ns(). AS_E_NOMEM. */
AS_MUST_CHECK as_status result_cache_get(struct result_cache *x, struct arena *a,
                                         const struct result_wanted *w, int64_t now_ns,
                                         const char **ret, bool *ret_mine, bool *ret_stale,
                                         struct as_err *err);
/* `finish_seq`: of the latest result that the text knows, w->finish_seq or later. */
void result_cache_put(struct result_cache *x, const struct result_wanted *w, int64_t finish_seq,
                      int64_t now_ns, const char *text);

#endif
