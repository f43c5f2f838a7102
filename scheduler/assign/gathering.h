/* The ranks that a claim gets, and the gang that gathers.
 *
 * At most one gang gathers at a time in the whole installation, so two gangs never wait for each
 * other's slots. A claim that offers seats gets, in this order: ranks that begun gangs already have
 * on its runner; seats of running gangs that lost ranks; and its free slots are kept for the gang
 * that gathers, as many as that needs. When all its seats are taken, one transaction begins one
 * attempt for all ranks. Slots that the gang does not need go to other trials. */
#ifndef ASSAY_SCHEDULER_ASSIGN_GATHERING_H
#define ASSAY_SCHEDULER_ASSIGN_GATHERING_H

#include "base/arena.h"
#include "base/status.h"
#include "scheduler/rows/gang_row.h"
#include "scheduler/store/gathering_store.h"
#include "scheduler/store/runner_store.h"
#include "scheduler/store/store.h"
#include "scheduler/suggester/suggester.h"

/* A gang sweep that did not get its turn for so long gathers before other sweeps get slots. */
#define GATHERING_TURN_MS 30000

/* The part of a claim that is about ranks; see claims.h. */
struct seat_request {
    struct runner_id runner;
    const char *claim_id;
    int64_t max_trials, seats, gpus, wait_ms;
    const struct attempt_ref *ending;
    size_t n_ending;
    const struct seat_ref *ending_seats;
    size_t n_ending_seats;
    int64_t arrived_ns;
};

struct seats_taken {
    int64_t got;       /* ranks that are this claim's now */
    int64_t kept;      /* slots that are kept free since this claim; negative: no longer */
    int64_t kept_gpus; /* GPUs of all slots that are kept free on its runner */
    bool has_begun;    /* a gang began: other claims have ranks to get */
    bool has_kept; /* more slots are kept than before, and not all yet: others may have the rest */
    bool is_preparing; /* the gang's seats are taken, and its suggestion is being computed */
    struct as_err why; /* why its suggestion cannot be computed; AS_OK: it can */
};

/* Take what the gangs have for this claim, before any trial; `news` is what the claim saw. Adds to
 * *ret. AS_E_STALE: the runner's epoch is not current. AS_E_UNAVAILABLE. */
AS_MUST_CHECK as_status seats_take(struct store *db, struct suggester *sg, struct arena *a,
                                   const struct seat_request *req,
                                   const struct gathering_news *news, struct seats_taken *ret,
                                   struct as_err *err);

/* It is this sweep's turn: let it gather, unless another one does, and keep free slots for it. Adds
 * to *ret. Errors as above. */
AS_MUST_CHECK as_status seats_gather(struct store *db, struct suggester *sg, struct arena *a,
                                     const struct seat_request *req, int64_t sweep_key,
                                     struct seats_taken *ret, struct as_err *err);

#endif
