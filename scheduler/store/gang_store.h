/* Tables gang and gang_seat: the ranks of attempts. Strings that come out are in the arena passed.
 *
 * A transaction that may end the attempt holds the sweep's row and the trial's before the
 * gang's. */
#ifndef ASSAY_SCHEDULER_STORE_GANG_STORE_H
#define ASSAY_SCHEDULER_STORE_GANG_STORE_H

#include "base/arena.h"
#include "scheduler/rows/gang_row.h"
#include "scheduler/store/tx.h"

/* The key of a gang: its attempt. */
struct gang_key {
    int64_t sweep_key, number, attempt;
};

/* AS_E_NOT_FOUND: the attempt has no gang. */
AS_MUST_CHECK as_status store_gang_get(struct tx *t, struct arena *a, const struct gang_key *key,
                                       struct gang_row *ret, struct as_err *err);
/* The same, and hold its row until the transaction ends. */
AS_MUST_CHECK as_status store_gang_lock(struct tx *t, struct arena *a, const struct gang_key *key,
                                        struct gang_row *ret, struct as_err *err);
/* All seats by number, at most the last 10000. */
AS_MUST_CHECK as_status store_gang_seats(struct tx *t, struct arena *a, const struct gang_key *key,
                                         struct gang_seat_row **ret, size_t *ret_n,
                                         struct as_err *err);
/* Those that live or are members of the epoch, by number. */
AS_MUST_CHECK as_status store_gang_seats_now(struct tx *t, struct arena *a,
                                             const struct gang_key *key, struct gang_seat_row **ret,
                                             size_t *ret_n, struct as_err *err);
/* AS_E_NOT_FOUND. */
AS_MUST_CHECK as_status store_gang_seat(struct tx *t, struct arena *a, const struct gang_key *key,
                                        int64_t seat, struct gang_seat_row *ret,
                                        struct as_err *err);

/* The fence of a write: hold the epoch until the transaction ends. *ret_leader is the seat that
 * leads; -1: none does. AS_E_NOT_FOUND: the attempt has no gang. */
AS_MUST_CHECK as_status store_gang_fence(struct tx *t, const struct gang_key *key,
                                         int64_t *ret_epoch, int64_t *ret_leader,
                                         struct as_err *err);

struct gang_fence {
    struct gang_key key;
    bool
        is_held; /* false: there is no such gang, or, unless is_patient, its row is being changed */
    int64_t epoch, leader;
};
/* The same for many gangs, in the order of their keys (ascending, each once). */
AS_MUST_CHECK as_status store_gang_fence_many(struct tx *t, struct gang_fence *fences, size_t n,
                                              bool is_patient, struct as_err *err);

/* ---- changes ---- */

AS_MUST_CHECK as_status store_gang_listen(struct tx *t, const struct gang_key *key, int64_t seat,
                                          const struct seat_address *at, struct as_err *err);
AS_MUST_CHECK as_status store_gang_join(struct tx *t, const struct gang_key *key, int64_t seat,
                                        int64_t epoch, int64_t step, struct as_err *err);
/* What the seat's runner said at its end. */
AS_MUST_CHECK as_status store_gang_said(struct tx *t, const struct gang_key *key,
                                        const struct gang_seat_row *seat, struct as_err *err);
/* How far a seat came, and with it the gang and all members, which do each step together; and what
 * the seat has sent to others. Smaller numbers than before change nothing. */
AS_MUST_CHECK as_status store_gang_reached(struct tx *t, const struct gang_key *key, int64_t seat,
                                           int64_t step, int64_t sent_bytes, struct as_err *err);
/* Store state and membership of each of these seats. `reason`: of those that go; NULL: none. */
AS_MUST_CHECK as_status store_gang_set(struct tx *t, const struct gang_key *key,
                                       const struct gang_seat_row *seats, size_t n,
                                       const char *reason, struct as_err *err);
/* The guarded statement that raises the epoch. AS_E_STALE: `epoch` is not current, or the gang is
 * over. */
AS_MUST_CHECK as_status store_gang_epoch(struct tx *t, const struct gang_key *key, int64_t epoch,
                                         gang_state state, struct as_err *err);
/* Ranks have reached this step. */
AS_MUST_CHECK as_status store_gang_step(struct tx *t, const struct gang_key *key, int64_t step,
                                        struct as_err *err);
AS_MUST_CHECK as_status store_gang_deaths(struct tx *t, const struct gang_key *key, int64_t n,
                                          struct as_err *err);
AS_MUST_CHECK as_status store_gang_ending(struct tx *t, const struct gang_key *key, bool is_ending,
                                          struct as_err *err);
/* The attempts of n gangs have ended. Two statements. */
struct gang_over {
    struct gang_key key;
    const char *reason;
};
AS_MUST_CHECK as_status store_gang_over_many(struct tx *t, const struct gang_over *gangs, size_t n,
                                             struct as_err *err);

/* ---- begin, the reaper, and waiting requests ---- */

/* Make the gang of the trial that began in this transaction, from the seats that gathered for the
 * sweep. *ret: its key. AS_E_INTERNAL: no such trial. */
AS_MUST_CHECK as_status store_gang_add(struct tx *t, int64_t sweep_key, const char *secret,
                                       struct gang_key *ret, struct as_err *err);

/* Gangs that cannot go on: elastic ones in which ranks listen, but which never got all of their
 * ranks for patience_ms (they begin with fewer), ordered by attempt. */
AS_MUST_CHECK as_status store_gang_late(struct tx *t, struct arena *a, int64_t patience_ms,
                                        struct gang_key **ret, size_t *ret_n, struct as_err *err);
/* All but the oldest of several gangs that wait for ranks for patience_ms: each holds seats that
 * another one needs. */
AS_MUST_CHECK as_status store_gang_stuck(struct tx *t, struct arena *a, int64_t patience_ms,
                                         struct gang_key **ret, size_t *ret_n, struct as_err *err);

struct gang_mark {
    int64_t id, epoch;
    bool is_over;
};
/* The gangs with these ids that exist. */
AS_MUST_CHECK as_status store_gang_marks(struct tx *t, struct arena *a, const int64_t *ids,
                                         size_t n, struct gang_mark **ret, size_t *ret_n,
                                         struct as_err *err);

#endif
