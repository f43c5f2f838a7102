/* What sweeps can still gain at most, computed while their trials complete, and kept.
 *
 * A bound is due after certain counts of completed trials (regret_bound_next()). It is a function
 * of the sweep's document and of what had happened when the last of them completed, so every server
 * computes the same one, whenever it comes to it, and one of them keeps it. The transaction that
 * keeps it ends the sweep if the bound is within limits.stop_when. No request and no sweep's row
 * waits for the computation.
 *
 * Between two counts, a bound of all completed trials is kept when the sweep has ended or its
 * results have paused: the best trial that is shown is of all results then. It is replaced by the
 * next bound, and limits.stop_when does not read it.
 *
 * A sweep that has no such limit is never ended by a bound. When more than REGRET_BOUND_EACH trials
 * have completed it gets the latest one that is due, and those that came too fast before it are
 * left out. */
#ifndef ASSAY_SCHEDULER_SERVICES_REGRET_CHECKS_H
#define ASSAY_SCHEDULER_SERVICES_REGRET_CHECKS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/mem.h"
#include "base/status.h"
#include "scheduler/rows/regret_row.h"
#include "scheduler/store/store.h"

/* Keeps the histories of some sweeps, so that the next bound reads what is new. One thread at a
 * time. */
struct regret_checks;

/* `db` is borrowed for its life. rests: bounds of live sweeps without the limit share a hundredth
 * of a processor while results come and a thirtieth when they have paused (bound_share.h), looks
 * at sweeps that live take a hundredth of the time, and results have paused when none came for
 * 400 ms, not from one round to the next. NULL when memory is out. */
struct regret_checks *regret_checks_create(struct store *db, bool rests);
void regret_checks_free(struct regret_checks *c);
AS_DEFINE_FREEP(struct regret_checks, regret_checks_free)

struct regret_report {
    int64_t kept;         /* bounds */
    int64_t sweeps_ended; /* by stop_when */
};

/* Compute and keep one bound of each sweep of which one is due, so that sweeps share the thread:
 * first of those that live and have the limit, then of those that have ended, then of the others,
 * first those that are most behind by their trials. A live sweep whose results have paused gets all
 * that it lacks. Each takes from milliseconds to seconds. If any was kept, more may be due.
 *   stopping  it takes no further sweep when this becomes true; may be NULL
 *   ret       also of a round that failed
 * AS_E_UNAVAILABLE: the database is away; a later round computes them. Another error, of which the
 * first is returned, keeps no other sweep from its bound. */
AS_MUST_CHECK as_status regret_checks_round(struct regret_checks *c, const atomic_bool *stopping,
                                            struct regret_report *ret, struct as_err *err);

/* All bounds that were kept. AS_E_NOT_FOUND: there is no such sweep. */
AS_MUST_CHECK as_status regret_checks_list(struct store *db, struct arena *a, const char *id,
                                           struct regret_check_list *ret, struct as_err *err);

#endif
