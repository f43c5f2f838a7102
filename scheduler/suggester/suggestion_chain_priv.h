/* The suggestions that are prepared of one sweep.
 *
 * They are a chain: each supposes that the one before became a trial. A chain is continued while
 * nothing else happened, and begun again otherwise. Whether one of them is good is decided when it
 * is taken, under the sweep's row: its number is the next, the mark in the row is that of the
 * suggestion before it, and it knows all results, or was begun after the request came.
 *
 * Nothing here locks: the suggester does. Only chain_compute() takes long, and it touches no chain.
 */
#ifndef ASSAY_SCHEDULER_SUGGESTER_SUGGESTION_CHAIN_PRIV_H
#define ASSAY_SCHEDULER_SUGGESTER_SUGGESTION_CHAIN_PRIV_H

#include "scheduler/suggester/sweep_history.h"
#include "scheduler/suggester/prepared.h"
#include "search/suggest.h"

/* One suggestion; texts owned. */
struct chain_link {
    int64_t number, index, seen, mark;
    int64_t before;    /* the mark of the suggestion before it */
    int64_t loaded_ns; /* when the look at the history began that it was computed from */
    char *params, *reason, *state;
};

/* Why the next one could not be computed. */
struct chain_failure {
    as_status st; /* AS_OK: it could */
    struct as_err why;
    int64_t number, before, seen, loaded_ns; /* number -1: of any place */
};

struct chain {
    struct chain_link links[SUGGESTER_AHEAD_MAX];
    size_t n;
    struct chain_failure failure;
};

/* Drop the links from `first` on. */
void chain_cut(struct chain *c, size_t first);

/* Keep what goes on where the history stands after a load that began at loaded_ns, and suppose
 * it. */
void chain_trim(struct chain *c, struct sweep_history *h, int64_t loaded_ns);

/* As suggester_ready and suggester_peek say. c may be NULL: nothing is prepared. */
size_t chain_ready(const struct chain *c, const struct search_place *p, size_t max);
/* loaded_ns of the link for that place; 0: there is none. */
int64_t chain_since(const struct chain *c, const struct search_place *p);
AS_MUST_CHECK as_status chain_peek(const struct chain *c, struct arena *a,
                                   const struct search_place *p, bool *ret_ready,
                                   struct prepared *ret, struct as_err *err);

/* Where the next link belongs; views. */
struct chain_step {
    struct sweep_history *history;
    struct search_cache *cache;
    int64_t number, index, before, loaded_ns; /* as the link's */
    const char *state;                        /* that the suggestion before it passed on */
};
struct chain_step chain_next(const struct chain *c, struct sweep_history *h,
                             struct search_cache *cache, int64_t loaded_ns);

/* The link for that step, which the history supposes from then on. Owned by the caller. What
 * suggest() and sweep_history_suppose() fail with. */
AS_MUST_CHECK as_status chain_compute(const struct chain_step *x, struct chain_link *ret,
                                      struct as_err *err);

#endif
