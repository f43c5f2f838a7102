/* Early stopping: decides which trials go on, stop or wait at a rung, and which waiting trial is
 * promoted.
 *
 * All decisions are functions of the specification and of the rung results in their stored order
 * (`seq`): equal results give equal decisions on every server. A `struct stopping` is an index of
 * these results, so that a decision does not read all of them. Nothing in it depends on anything
 * but the calls of stopping_add(), stopping_promoted() and stopping_left(), in their order. */
#ifndef ASSAY_SEARCH_STOPPING_STOPPING_H
#define ASSAY_SEARCH_STOPPING_STOPPING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/mem.h"
#include "base/status.h"
#include "search/stopping/stop_spec.h"

#define STOP_REASON_MAX 200
#define STOP_VAIN_TRIES 5 /* trials that fail on the way from the highest rung to the end */

typedef enum stop_verdict { STOP_GO_ON, STOP_PRUNE, STOP_PAUSE } stop_verdict;
extern const char *const stop_verdict_words[]; /* NULL-terminated, in the enum's order */

/* The values of a trial at a rung, and what was decided. One for each (trial, rung). */
struct rung_result {
    uint64_t number; /* of the trial */
    uint32_t rung;   /* 0 is the lowest */
    int64_t step;    /* of the report: steps[rung], or later with `late` */
    /* In the metrics' own units and signs; NaN is worst, and so is -inf of a cost. */
    double values[SEARCH_MAX_OBJECTIVES];
    bool feasible; /* no outcome that was reported at the step is out of its bounds */
    stop_verdict decision;
    uint64_t seq; /* its place in the order of the sweep's ends, rung results and promotions */
};

struct stop_decision {
    stop_verdict verdict;
    size_t rank; /* of the trial at its rung, from 1: one more than the results that are better */
    size_t of;   /* results that it was compared with, itself included */
    bool forks;  /* of pbt: a fork of `parent` takes its place; the verdict is STOP_PRUNE */
    uint64_t parent;              /* a trial that has a result at this rung */
    char reason[STOP_REASON_MAX]; /* a part of a sentence in plain words */
};

/* A waiting trial that goes on. */
struct stop_promotion {
    uint64_t number;
    uint32_t rung;   /* where it waits */
    uint32_t until;  /* the rung where it will be compared next */
    size_t rank, of; /* at its rung, as above */
    char reason[STOP_REASON_MAX];
};

struct stopping;

/* spec is copied. STOP_NONE is allowed: every trial goes on. AS_E_NOMEM. */
AS_MUST_CHECK as_status stopping_create(const struct stop_spec *spec, struct stopping **ret,
                                        struct as_err *err);
void stopping_free(struct stopping *s);
AS_DEFINE_FREEP(struct stopping, stopping_free)

/* Add a result whose decision was made. Call it in ascending order of seq. A result with STOP_PAUSE
 * waits from now on, at this rung alone.
 * AS_E_INVAL    the rung is not one of the specification
 * AS_E_CONFLICT  the trial has a result at this rung already
 * AS_E_NOMEM
 * O(log n); with several metrics O(n). */
AS_MUST_CHECK as_status stopping_add(struct stopping *s, const struct rung_result *r,
                                     struct as_err *err);

/* A waiting trial was promoted, or stopped waiting for another reason (cancelled, pruned, retried).
 * A trial that does not wait: nothing happens. O(log n). */
void stopping_promoted(struct stopping *s, uint64_t number);
void stopping_left(struct stopping *s, uint64_t number);

/* Decide about a result that is not added yet; its `decision` and `seq` are not read. Changes
 * nothing: the caller stores the decision and adds the result. The result at the last rung, and
 * every result with STOP_NONE, is STOP_GO_ON. Errors as stopping_add(). O(log n); with several
 * metrics O(n). */
AS_MUST_CHECK as_status stopping_decide(const struct stopping *s, const struct rung_result *now,
                                        struct stop_decision *ret, struct as_err *err);

/* Will a trial start that is no promotion? If none will, the best of the highest rung goes on even
 * where the share of one in eta is less than one trial, so that some trial runs to the end. It may
 * have failed after its result. So if nothing runs and no trial has completed, the best one that
 * waits goes on, whatever its rank, until STOP_VAIN_TRIES have failed. */
typedef enum stop_closing { STOP_NOT_CLOSING, STOP_CLOSING, STOP_CLOSING_IN_VAIN } stop_closing;

/* Which waiting trial goes on next? Ask before a new trial is suggested; with STOP_CLOSING_IN_VAIN
 * ask once for each time that nothing runs. Changes nothing: the caller stores the promotion and
 * calls stopping_promoted(). False: none. Never true with STOP_MODE_STOP. */
bool stopping_promote(const struct stopping *s, stop_closing closing, struct stop_promotion *ret);

/* Can this waiting trial never be promoted, so that its checkpoint may go? `most` is how many
 * trials the sweep has at most (limits.max_trials). False also for a trial that does not wait. */
bool stopping_is_over(const struct stopping *s, uint64_t number, uint64_t most);

/* The waiting trials for which stopping_is_over() is true: at most `cap` of them, in ascending
 * order from number `from` on and then from 0 on. A call looks at 100 * STOP_OVER_LOOKS waiting
 * trials, with several metrics at STOP_OVER_LOOKS; another `from` finds others. As many calls of
 * stopping_is_over(). */
#define STOP_OVER_LOOKS 1000
size_t stopping_list_over(const struct stopping *s, uint64_t most, uint64_t from, uint64_t *ret,
                          size_t cap);

/* The lowest rung that decides anything now: with min_steps: auto it changes. The last rung: none
 * does. */
uint32_t stopping_lowest_rung(const struct stopping *s);

#endif
