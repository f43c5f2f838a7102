/* The world of one gang while it is changed: its rows are locked, events are applied to its seats,
 * and one step at the end writes what follows: a new epoch, or the end of the attempt. */
#ifndef ASSAY_SCHEDULER_LIFECYCLE_GANG_WORLD_H
#define ASSAY_SCHEDULER_LIFECYCLE_GANG_WORLD_H

#include "base/arena.h"
#include "scheduler/lifecycle/transition.h"
#include "scheduler/store/gang_store.h"

struct gang_world {
    struct tx *t;
    struct arena *a;
    struct sweep_head sweep;
    struct trial_head trial;
    struct gang_key key;
    struct gang_row gang;
    struct gang_seat_row *seats; /* those that live or are members, by number */
    size_t n_seats;

    /* what was applied */
    int64_t died, went; /* seats that were lost; that were lost or left */
    bool is_released;   /* those that left were handed back: if none is left, no restart is used */
    const char *why;    /* the reason of the last one that went */
    bool must_change;   /* the next epoch begins also if no seat has changed */
};

/* Lock the sweep, the trial and the gang. AS_E_NOT_FOUND: there is no such gang. */
AS_MUST_CHECK as_status gang_world_open(struct tx *t, struct arena *a, const struct gang_key *key,
                                        struct gang_world *ret, struct as_err *err);

/* NULL: the seat neither lives nor is a member. */
struct gang_seat_row *gang_world_seat(const struct gang_world *w, int64_t seat);

/* The member that leads; NULL: there is none. */
struct gang_seat_row *gang_world_leader(const struct gang_world *w);

/* A seat that lives gets an event. `reason` (in the arena): why it goes; else NULL. Nothing is
 * written before gang_world_settle(). AS_E_CONFLICT: seat_step(). */
AS_MUST_CHECK as_status gang_world_apply(struct gang_world *w, struct gang_seat_row *seat,
                                         seat_event ev, const char *reason, struct as_err *err);

/* Ranks have reached a step. */
AS_MUST_CHECK as_status gang_world_step(struct gang_world *w, int64_t step, struct as_err *err);

/* Write the seats and what follows from them. */
AS_MUST_CHECK as_status gang_world_settle(struct gang_world *w, struct as_err *err);

/* A rank of a gang that is not elastic says the success of the attempt, as judged in `c`: the trial
 * completes when all ranks have. */
AS_MUST_CHECK as_status gang_world_complete(struct gang_world *w, int64_t seat,
                                            const struct trial_change *c, struct as_err *err);

/* Where the world of a program may begin again with who is left: what ends the attempt because a
 * rank was lost uses no restart of the trial, at most gang_deaths_max() times. */
void gang_world_spare(const struct gang_world *w, struct trial_change *c);

/* A rank of a gang that is not elastic has failed. May that be the echo of a death that has not
 * been heard of yet? When a rank dies, the others lose their connections and fail too. On one
 * runner deaths are told first; where ranks are on several, the first failure of a trial may be an
 * echo, and a second one in a row is not. */
AS_MUST_CHECK as_status gang_world_may_echo(const struct gang_world *w, bool *ret,
                                            struct as_err *err);

/* A rank says that trial_timeout is over. That must be true by the database's clock: no rank began
 * before its gang. AS_E_UNSUPPORTED with pointer /outcome. */
AS_MUST_CHECK as_status gang_world_check_timeout(const struct gang_world *w, struct as_err *err);

/* End the attempt for all. */
AS_MUST_CHECK as_status gang_world_end(struct gang_world *w, const struct trial_change *c,
                                       struct as_err *err);

/* "rank 2 on runner b: REASON", in the arena. */
const char *gang_world_blame(const struct gang_world *w, const struct gang_seat_row *seat,
                             const char *reason);

#endif
