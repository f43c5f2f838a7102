/* A search method in a benchmark, with an ask and tell interface.
 *
 * random, sobol and gp go through search/suggest.h as the service does: number, index, state,
 * pending trials, a cache. optuna-gp, optuna-tpe and optuna-cmaes are a child process
 * (peer_optuna.py); hebo and botorch are recipes restated in another (peer_recipes.py). */
#ifndef ASSAY_BENCH_SEARCH_SEARCHER_H
#define ASSAY_BENCH_SEARCH_SEARCHER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/mem.h"
#include "base/status.h"
#include "bench/search/problems.h"
#include "search/suggest.h"

struct searcher;

/* Measure suggestions in processor time instead of wall-clock time: for a machine with other load.
 * Call it before the first ask; it holds for the whole program. */
void searcher_time_cpu(bool on);

/* Nanoseconds of the clock chosen. */
int64_t searcher_clock_ns(void);

/* Begin a sweep of `p` (borrowed) by the named method.
 * AS_E_NOT_FOUND: no such method. AS_E_UNAVAILABLE: no interpreter here can import what the peer
 * needs, or this Optuna has no such sampler. Owned by the caller. Optuna's samplers share one child
 * process, and the recipes another, so at most one searcher of each may be in use. */
AS_MUST_CHECK as_status searcher_open(const char *method, const struct problem *p, uint64_t seed,
                                      struct searcher **ret, struct as_err *err);
void searcher_free(struct searcher *s);
AS_DEFINE_FREEP(struct searcher, searcher_free)

/* The configuration of trial `number`, from the history: every trial before it, ascending, pending
 * ones too. *ret is owned by the caller; *ret_ms is the time of the suggestion, without the pipe to
 * a peer. AS_E_EXHAUSTED: the space is exhausted. */
AS_MUST_CHECK as_status searcher_ask(struct searcher *s, const struct history *h, uint64_t number,
                                     struct config **ret, double *ret_ms, struct as_err *err);

/* A trial ended; NaN: it failed. The history of later asks holds it too. */
AS_MUST_CHECK as_status searcher_tell(struct searcher *s, uint64_t number, double value,
                                      struct as_err *err);

/* Add a trial that the search did not suggest. Only peers need this call; for our methods the
 * history holds the trial. */
AS_MUST_CHECK as_status searcher_add(struct searcher *s, const struct config *c, double value,
                                     struct as_err *err);

/* What it searches; a view. */
const struct search_spec *searcher_spec(const struct searcher *s);

/* The reason of the last suggestion, a view until the next ask; NULL for a peer. */
const json_t *searcher_reason(const struct searcher *s);
/* The version of Optuna, valid until the program ends; NULL for our methods, and for the recipes,
 * which are of this tree. */
const char *searcher_peer(const char *method);
size_t searcher_cache_bytes(const struct searcher *s); /* 0 for a peer */

#endif
