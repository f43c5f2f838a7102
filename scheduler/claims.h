/* Claims: hand trials to runners.
 *
 * Trials are made when they are asked for: first what is queued again, then the next suggestion of
 * the sweep, straight into its first attempt. One short transaction per sweep holds the sweep's
 * row, so that there are never more than max_trials trials nor more than max_concurrent_trials
 * running, whatever the number of runners and servers. Sweeps share fairly: the one with the
 * fewest running trials goes first, the older one among equals. */
#ifndef ASSAY_SCHEDULER_CLAIMS_H
#define ASSAY_SCHEDULER_CLAIMS_H

#include "base/arena.h"
#include "base/status.h"
#include "scheduler/rows.h"
#include "scheduler/store/store.h"

struct claim_request {
    const char *runner;
    int64_t epoch;
    const char *claim_id; /* 1..64 characters, new for each claim, the same when it is repeated */
    int64_t max_trials;   /* 1..64 */
    int64_t gpus;         /* free ones: the sum of resources.gpus handed out stays within */
};

/* Take what there is now; never waits for work (the caller polls: claims_pending()). n may be 0.
 * Repeating a claim_id answers the trials that it got and that are still current, and no others
 * when there are any. The runner's slots bound what it holds in all.
 * AS_E_NOT_FOUND: the runner never registered. AS_E_STALE: the epoch is not current, or the runner
 * left or was lost: register again. AS_E_INVAL. AS_E_UNAVAILABLE. */
AS_MUST_CHECK as_status claim_trials(struct store *db, struct arena *a,
                                     const struct claim_request *req, struct claim_list *ret,
                                     struct as_err *err);

/* How many trials could be handed out now, over all sweeps (a count without locks: a hint). One
 * cheap query; a server asks once for all runners that wait. AS_E_UNAVAILABLE. */
AS_MUST_CHECK as_status claims_pending(struct store *db, int64_t *ret, struct as_err *err);

#endif
