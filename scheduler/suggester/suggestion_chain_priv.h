/* The prepared suggestions of one sweep.
 *
 * They form a chain: each suggestion supposes that the one before it became a trial. The chain is
 * extended as long as nothing else happened, and started again otherwise. Whether a suggestion is
 * valid is decided when it is taken, under the sweep's row: its number is the next one, the mark in
 * the row is that of the suggestion before it, and it knows all results or was begun after the
 * request arrived.
 *
 * Nothing here locks; the suggester does. Only chain_compute() takes long, and it does not touch
 * the chain. */
#ifndef ASSAY_SCHEDULER_SUGGESTER_SUGGESTION_CHAIN_PRIV_H
#define ASSAY_SCHEDULER_SUGGESTER_SUGGESTION_CHAIN_PRIV_H

#include "scheduler/suggester/sweep_history.h"
#include "scheduler/suggester/prepared.h"
#include "search/suggest.h"

/* One suggestion; texts owned. */
struct chain_link {
    int64_t number, index, seen, mark;
    int64_t before;    /* the mark of the suggestion before it */
    int64_t loaded_ns; /* when the history was read that it was computed from */
    char *params, *reason, *state;
};

/* Why the next suggestion could not be computed. */
struct chain_failure {
    as_status st; /* AS_OK: there was no failure */
    struct as_err why;
    int64_t number, before, seen, loaded_ns; /* number -1: it holds for any place */
};

struct chain {
    struct chain_link links[SUGGESTER_AHEAD_MAX];
    size_t n;
    struct chain_failure failure;
};

/* Drop the links from index `first` on. */
void chain_cut(struct chain *c, size_t first);

/* Keep the links that continue the history after a load that began at loaded_ns, and suppose them
 * in the history. Drop the others. */
void chain_trim(struct chain *c, struct sweep_history *h, int64_t loaded_ns);

/* See suggester_ready() and suggester_peek(). c may be NULL: nothing is prepared. */
size_t chain_ready(const struct chain *c, const struct search_place *p, size_t max);
/* loaded_ns of the link for that place; 0: there is none. */
int64_t chain_since(const struct chain *c, const struct search_place *p);
AS_MUST_CHECK as_status chain_peek(const struct chain *c, struct arena *a,
                                   const struct search_place *p, bool *ret_ready,
                                   struct prepared *ret, struct as_err *err);

/* The place of the next link. Its pointers are views. */
struct chain_step {
    struct sweep_history *history;
    struct search_cache *cache;
    int64_t number, index, before, loaded_ns; /* as in struct chain_link */
    const char *state;                        /* the search state that the suggestion before it
                                                 left */
};
struct chain_step chain_next(const struct chain *c, struct sweep_history *h,
                             struct search_cache *cache, int64_t loaded_ns);

/* Compute the link for that step; the history supposes it from then on. Owned by the caller.
 * Errors: those of suggest() and sweep_history_suppose(). */
AS_MUST_CHECK as_status chain_compute(const struct chain_step *x, struct chain_link *ret,
                                      struct as_err *err);

#endif
