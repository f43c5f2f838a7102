/* The seats of gangs that a runner holds. Strings that come out are in the arena passed. */
#ifndef ASSAY_SCHEDULER_STORE_SEAT_STORE_H
#define ASSAY_SCHEDULER_STORE_SEAT_STORE_H

#include "base/arena.h"
#include "scheduler/store/gang_store.h"
#include "scheduler/store/runner_store.h"
#include "scheduler/store/tx.h"

/* ---- what runners hold ---- */

struct held_seat {
    struct gang_key key;
    int64_t seat;
    bool has_left; /* its runner left or was removed */
    bool is_due;   /* store_seat_missing: it is lost */
    const char *runner;
};
struct held_seat_list {
    struct held_seat *rows;
    size_t n;
};

/* Record what a runner says about its seats. */
AS_MUST_CHECK as_status store_seat_beat(struct tx *t, const char *runner,
                                        const struct seat_said *said, size_t n, struct as_err *err);
/* As store_trial_missing(): count the heartbeats that missed a seat of this runner. Due are those
 * that two in a row missed, more than lease_ms after they were taken. */
AS_MUST_CHECK as_status store_seat_missing(struct tx *t, struct arena *a, const char *runner,
                                           const struct seat_said *listed, size_t n,
                                           int64_t lease_ms, struct held_seat_list *ret,
                                           struct as_err *err);
/* The listed seats that are not this runner's, or do not live, and those whose trial is told to end
 * early: of an elastic gang the one that leads, else all. Appended to `ret`, which borrows
 * `listed`. */
AS_MUST_CHECK as_status store_seat_not_current(struct tx *t, struct arena *a, const char *runner,
                                               const struct seat_said *listed, size_t n,
                                               struct directive_list *ret, struct as_err *err);
/* Move the listed seats of this runner to its new epoch. */
AS_MUST_CHECK as_status store_seat_resume(struct tx *t, const char *runner, int64_t epoch,
                                          const struct seat_said *listed, size_t n,
                                          struct as_err *err);
/* Seats whose runner is lost, has left, or registered again without them. runner NULL: of all.
 * Ordered by attempt; at most 1000. */
AS_MUST_CHECK as_status store_seat_orphans(struct tx *t, struct arena *a, const char *runner,
                                           struct held_seat_list *ret, struct as_err *err);
/* How many of these seats the runner holds. */
AS_MUST_CHECK as_status store_seat_holds(struct tx *t, const char *runner,
                                         const struct seat_ref *refs, size_t n, int64_t *ret,
                                         struct as_err *err);

/* ---- claims ---- */

/* Tell the runner of seats that it holds and does not know of: they become those of this claim. */
AS_MUST_CHECK as_status store_seat_deliver(struct tx *t, const struct runner_id *id,
                                           const char *claim_id, int64_t most, int64_t *ret_n,
                                           struct as_err *err);
/* A running gang with free seats that a runner may take. */
struct gang_offer {
    struct gang_key key;
    int64_t vacant;
    int64_t gpus; /* of each rank */
};
/* Those that wait first, then the older ones; at most 16. */
AS_MUST_CHECK as_status store_seat_offers(struct tx *t, struct arena *a, const char *runner,
                                          int64_t gpus, struct gang_offer **ret, size_t *ret_n,
                                          struct as_err *err);
/* Give n further seats of a gang to a runner. The caller holds the gang's row. */
AS_MUST_CHECK as_status store_seat_add(struct tx *t, const struct gang_key *key,
                                       const struct runner_id *id, const char *claim_id, int64_t n,
                                       struct as_err *err);

#endif
