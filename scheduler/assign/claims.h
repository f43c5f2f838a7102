/* Claims: hand trials to runners.
 *
 * Trials are made when they are asked for: first what is queued again, then the next suggestion of
 * the sweep, straight into its first attempt. One short transaction per sweep holds the sweep's
 * row, so that there are never more than max_trials trials nor more than max_concurrent_trials
 * running, whatever the number of runners and servers. Sweeps share fairly: the one with the
 * fewest running trials goes first, the older one among equals. */
#ifndef ASSAY_SCHEDULER_ASSIGN_CLAIMS_H
#define ASSAY_SCHEDULER_ASSIGN_CLAIMS_H

#include "base/arena.h"
#include "base/status.h"
#include "scheduler/assign/grouping.h"
#include "scheduler/rows/claimed_row.h"
#include "scheduler/rows/runner_row.h"
#include "scheduler/store/store.h"
#include "scheduler/suggester/suggester.h"

#define CLAIM_MEASURED_MAX 64

struct claim_request {
    const char *runner;
    int64_t epoch;
    const char *claim_id; /* 1..64 characters, new for each claim, the same when it is repeated */
    int64_t max_trials;   /* 1..64: free slots; a group takes one, whatever its members */
    int64_t gpus;         /* free ones: the sum of resources.gpus handed out stays within, where a
                             group counts as one trial */
    struct group_limits groups; /* at most CLAIM_MEASURED_MAX measured shapes */
    /* What this runner holds and no longer runs: their ends are on their way here. Their slots are
     * free, though they still run for the server; but a sweep that learns gives nothing before it
     * knows the results of its own. At most RUNNER_HELD_MAX. */
    const struct attempt_ref *ending;
    size_t n_ending;
    bool is_last; /* not tried again: take what suggestions there are, though a group lacks some */
    int64_t arrived_ns; /* monotonic: when the request came, the same each time it is tried again;
                           0: now. A suggestion that knows every result until then is good enough */
};

struct claim_list {
    struct claimed_row *rows;
    size_t n;
    bool is_preparing; /* n is 0 because a suggestion is being computed: try again when ready */
    bool awaits_ends;  /* a sweep that learns gave nothing, until what is ending has ended */
    int64_t sweep_key; /* of a fit that may get more later: what asks_pending() wants to know; 0 */
};

/* Take what there is now; never waits for work (the caller polls: claims_pending()). n may be 0.
 * Repeating a claim_id answers the trials that it got and that are still current, in their groups,
 * and no others when there are any. The runner's slots bound what it holds in all, a group counting
 * as one, and what is ending not.
 *
 * Groups (grouping.h). With groups.fit the answer has only trials for that group; none when the
 * group is full, is not this runner's, would pass queued trials of other shapes too far, or when
 * the runner has no free slot and another sweep would get that of this group, if it ended: then it
 * is to end.
 * AS_E_NOT_FOUND: the runner never registered. AS_E_STALE: the epoch is not current, or the runner
 * left or was lost: register again. AS_E_INVAL. AS_E_UNAVAILABLE.
 *
 * Sweeps whose method learns give what their suggester (`sg`) has prepared; with none ready it is
 * asked for more and, when nothing else was to be had, n is 0 and is_preparing is set: try again
 * when the suggester says that something is ready. What went wrong with computing a suggestion is
 * the answer when no other sweep had anything. `sg` NULL: suggestions are computed here, from a
 * cold start. */
AS_MUST_CHECK as_status claim_trials(struct store *db, struct suggester *sg, struct arena *a,
                                     const struct claim_request *req, struct claim_list *ret,
                                     struct as_err *err);

/* How many trials could be handed to runners now, over all sweeps (a count without locks: a hint).
 * A sweep whose suggestions are being computed in `sg` counts for those that are ready, and for
 * what is queued. One cheap query; a server asks once for all runners that wait. `sg` may be NULL.
 * AS_E_UNAVAILABLE. */
AS_MUST_CHECK as_status claims_pending(struct store *db, struct suggester *sg, int64_t *ret,
                                       struct as_err *err);

#endif
