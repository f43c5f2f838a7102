/* Claims: hand trials to runners.
 *
 * A trial is made when it is claimed: first trials that are queued again, then the next suggestion
 * of the sweep, which goes straight into its first attempt. One short transaction for each sweep
 * holds the sweep's row, so that there are never more than max_trials trials and never more than
 * max_concurrent_trials running, with any number of runners and servers. Sweeps share fairly:
 * turn_store.h has the order of turns. */
#ifndef ASSAY_SCHEDULER_ASSIGN_CLAIMS_H
#define ASSAY_SCHEDULER_ASSIGN_CLAIMS_H

#include "base/arena.h"
#include "base/status.h"
#include "scheduler/assign/grouping.h"
#include "scheduler/rows/claimed_row.h"
#include "scheduler/rows/gang_row.h"
#include "scheduler/rows/runner_row.h"
#include "scheduler/store/store.h"
#include "scheduler/suggester/suggester.h"

#define CLAIM_MEASURED_MAX 64

struct claim_request {
    const char *runner;
    int64_t epoch;
    const char *secret;   /* SHA-256 of the secret that it showed; NULL: none */
    const char *claim_id; /* 1..64 characters, new for each claim, the same in a repeat */
    int64_t max_trials;   /* 1..64: free slots; a group takes one, with any number of members */
    int64_t seats;        /* 0..max_trials: how many of the slots may hold ranks of gangs */
    int64_t wait_ms;      /* for how long its runner waits for the answer: its seats last longer */
    int64_t gpus;         /* free GPUs: the limit for the sum of resources.gpus of the answer, in
                             which a group counts as one trial */
    struct group_limits groups; /* at most CLAIM_MEASURED_MAX measured shapes */
    /* Attempts that this runner holds but no longer runs: the server has not yet received their
     * results. Their slots are free, although they still run for the server. A sweep that learns
     * gives this runner nothing before it knows the results of its own attempts here. At most
     * RUNNER_HELD_MAX. */
    const struct attempt_ref *ending;
    size_t n_ending;
    const struct seat_ref *ending_seats; /* the same for ranks of gangs */
    size_t n_ending_seats;
    /* The slots are not free yet: processes in `ending` still run, and are about to end. So only a
     * sweep whose turn it is and that gives ahead gives anything, and no gang is asked. */
    bool is_ahead;
    bool is_last; /* it will not be tried again: take the ready suggestions, although a group is
                     not full */
    int64_t arrived_ns; /* monotonic: when the request arrived, the same each time it is tried
                           again; 0: now. A suggestion that knows every result up to then is good
                           enough */
};

struct claim_list {
    struct claimed_row *rows;
    size_t n;
    bool is_preparing; /* n is 0 because a suggestion is being computed: try again when it is
                          ready */
    bool awaits_ends;  /* a sweep that learns gave nothing, because results of `ending` are
                          missing */
    bool has_begun;    /* a gang began in this claim: wake the others, which have ranks of it */
    bool has_kept;     /* slots were kept for a gang: wake the others, which may have the rest */
    int64_t sweep_key; /* of a fit that may get more later: the argument of asks_pending(); 0:
                          none */
};

/* Is the request as its structure allows? Pure. AS_E_INVAL, AS_E_TOO_LARGE, with pointer. */
AS_MUST_CHECK as_status claim_check(const struct claim_request *req, struct as_err *err);

/* Take what is available now. Never waits for work (the caller polls with claims_pending()). n may
 * be 0. A repeat of a claim_id returns the trials that it got and that are still current, in their
 * groups; only if there are none, it takes new ones. The runner's slots limit what it holds in all:
 * a group counts as one, and attempts in `ending` do not count.
 *
 * Ranks (gathering.h). With `seats` above 0 the answer may have ranks of gangs, and slots of this
 * runner may be kept free for the gang that gathers; the answer may be empty then. If `seats` is
 * max_trials, these are all free slots of the runner, also those that came free after the claim was
 * made.
 *
 * Groups (grouping.h). With groups.fit the answer has only trials for that group. It has none if
 * the group is full, is not this runner's, or would overtake queued trials of other shapes too far.
 * It also has none if the runner has no free slot and another sweep would get this group's slot;
 * then the group must end. AS_E_NOT_FOUND: the runner never registered. AS_E_STALE: the epoch is
 * not current, or the runner left or was lost: register again. AS_E_DENIED: the secret is not the
 * runner's. AS_E_INVAL. AS_E_UNAVAILABLE.
 *
 * Sweeps whose method learns give what their suggester (`sg`) has prepared. If none is ready, more
 * are requested from it. If nothing else was available, n is 0 and is_preparing is set: try again
 * when the suggester calls on_ready. A failure to compute a suggestion is the answer only if no
 * other sweep had anything. `sg` NULL: suggestions are computed here, from a cold start. */
AS_MUST_CHECK as_status claim_trials(struct store *db, struct suggester *sg, struct arena *a,
                                     const struct claim_request *req, struct claim_list *ret,
                                     struct as_err *err);

/* How many trials could be handed to runners now, over all sweeps (a count without locks: a hint).
 * INT64_MAX: all waiting claims should look, because ranks of a gang wait for some of them.
 * A sweep whose suggestions are being computed in `sg` counts only ready suggestions and queued
 * trials. One cheap query; a server asks once for all waiting runners. `sg` may be NULL.
 * AS_E_UNAVAILABLE. */
AS_MUST_CHECK as_status claims_pending(struct store *db, struct suggester *sg, int64_t *ret,
                                       struct as_err *err);

#endif
