/* Gangs: what the ranks of an attempt tell the server, and the worlds that follow.
 *
 * A world is the members of one epoch. It changes when a rank listens, leaves or is lost, and every
 * change is one guarded statement that compares the epoch: of two halves of a divided gang at most
 * one goes on. Every operation may be repeated. Every function:
 *   AS_E_NOT_FOUND    no such sweep, trial, attempt, gang or seat
 *   AS_E_DENIED       the seat is another runner's
 *   AS_E_STALE        the attempt is over, or the seat does not live any more; with the pointer
 *                     STALE_WORLD only the epoch is past: read the world again
 *   AS_E_UNAVAILABLE  the database is away; repeat, it is safe */
#ifndef ASSAY_SCHEDULER_LIFECYCLE_GANGS_H
#define ASSAY_SCHEDULER_LIFECYCLE_GANGS_H

#include "base/arena.h"
#include "base/status.h"
#include "scheduler/lifecycle/attempts.h"
#include "scheduler/rows/gang_row.h"
#include "scheduler/store/store.h"

/* Who speaks. The SHA-256 of the secret that it showed; NULL: none. */
struct gang_caller {
    const char *secret;
    bool is_admin;  /* may see the gang's secret without a seat */
    bool is_runner; /* may hold a seat */
};

/* The rank listens. `ret` is the world then, with the arena's strings. */
AS_MUST_CHECK as_status gang_listen(struct store *db, struct arena *a, const struct seat_ref *ref,
                                    const struct gang_caller *by, const struct seat_address *at,
                                    struct gang_detail *ret, struct as_err *err);

struct seat_joined {
    int64_t epoch, step;
};

/* The rank is connected to all members of that epoch. */
AS_MUST_CHECK as_status gang_join(struct store *db, struct arena *a, const struct seat_ref *ref,
                                  const struct gang_caller *by, const struct seat_joined *joined,
                                  struct gang_detail *ret, struct as_err *err);

struct seat_end {
    attempt_outcome outcome;
    bool has_exit_code;
    int64_t exit_code; /* negative: the signal */
    bool has_ran;
    int64_t ran_ms;
    bool has_step;
    int64_t step;
    int64_t sent_bytes; /* to other ranks; 0: it says nothing */
    int64_t epoch;      /* the last one that it has joined; 0: what the server knows */
    const char *reason; /* NULL allowed; longer ones than REASON_CHARACTERS are cut */
};

/* The process of the rank has ended. AS_E_UNSUPPORTED with pointer /outcome: outcome timeout before
 * trial_timeout can be over (the API answers 422). */
AS_MUST_CHECK as_status gang_end(struct store *db, struct arena *a, const struct seat_ref *ref,
                                 const struct gang_caller *by, const struct seat_end *end,
                                 struct gang_detail *ret, struct as_err *err);

struct world_change {
    int64_t epoch; /* the current one, as the caller knows it */
    int64_t seat;  /* who asks */
    const int64_t *lost, *left;
    size_t n_lost, n_left;
    bool has_step;
    int64_t step;
};

/* Begin the next epoch without some ranks; with the same ones if none is named: a connection broke,
 * and they meet again. AS_E_DENIED: the asker is no member. AS_E_INVAL: a seat
 * does not exist, or the asker calls itself lost. */
AS_MUST_CHECK as_status gang_change(struct store *db, struct arena *a,
                                    const struct attempt_ref *ref, const struct gang_caller *by,
                                    const struct world_change *change, struct gang_detail *ret,
                                    struct as_err *err);

/* The gang and the seats that live or are members. ret->shows_secret: the caller holds a seat of
 * it, or is an administrator. */
AS_MUST_CHECK as_status gang_world_get(struct store *db, struct arena *a,
                                       const struct attempt_ref *ref, const struct gang_caller *by,
                                       struct gang_detail *ret, struct as_err *err);
/* The same with all seats, also those that have gone. */
AS_MUST_CHECK as_status gang_get(struct store *db, struct arena *a, const struct attempt_ref *ref,
                                 const struct gang_caller *by, struct gang_detail *ret,
                                 struct as_err *err);

/* ---- waiting for a change ---- */

/* What a request that knows epoch `after` of a gang waits for: a number below -1, for
 * gang_changed(). */
int64_t gang_wait_key(int64_t gang_id, int64_t after);
/* Is the number one of gang_wait_key()? */
bool gang_is_wait_key(int64_t key);
/* Which of these have happened: the gang has a later epoch, is over, or is gone. One cheap
 * query. */
AS_MUST_CHECK as_status gang_changed(struct store *db, const int64_t *keys, size_t n, bool *ret,
                                     struct as_err *err);

#endif
