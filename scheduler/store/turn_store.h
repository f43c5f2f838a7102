/* Whose turn it is: the order in which sweeps give trials to a runner, and the table runner_wait.
 *
 * A trial that needs more than is free on a runner, and not more than the runner has, would never
 * run while smaller trials take each slot that becomes free. So its sweep is noted when its turn
 * came in vain, and after TURN_WAIT_S the sweeps that come after it in the order of turns get
 * nothing on that runner until it has had its turn. A trial that needs its machine to itself closes
 * all runners of the machine in the same way. */
#ifndef ASSAY_SCHEDULER_STORE_TURN_STORE_H
#define ASSAY_SCHEDULER_STORE_TURN_STORE_H

#include "base/arena.h"
#include "scheduler/rows/runner_row.h"
#include "scheduler/store/runner_store.h"
#include "scheduler/store/sweep_head_store.h"
#include "scheduler/store/tx.h"

#define TURN_WAIT_S "10" /* text, as it stands in statements */
#define TURN_LIST_MAX 64

/* A sweep that has something to hand out. */
struct claimable_sweep {
    int64_t key;
    int64_t priority;
    int64_t running; /* trials; those of `ending` do not count */
    bool is_gang;    /* its trials have ranks */
    bool is_exclusive;
    bool has_needs; /* of cores, of memory, or of the machine to itself */
    bool fits;      /* a trial fits in what is free on the runner now; an exclusive one: if nothing
                         else runs there */
    bool waits;     /* its turn came on this runner and it did not fit (below) */
    bool closes;    /* … so long ago that no sweep after it gets anything before it */
    int64_t ahead_room; /* trials that it may give before there is a slot for them */
};

/* Sweeps that have something to hand out to a runner that is as large as their trials need, in the
 * order of turns: higher priority first, then the one with the fewest running trials, then the one
 * that had fewer turns (a new sweep begins with as many as the others), then the one whose latest
 * turn was longest ago. At most TURN_LIST_MAX.
 *   gpus         free GPUs of the runner
 *   cpus, memory_bytes   what is free of them
 *   ending       runner_ending.sweeps: running trials that do not count, because they are over
 *   takes_seats  also sweeps whose trials have ranks, if the live runners could hold them */
struct claimable_query {
    const char *runner;
    int64_t gpus, cpus, memory_bytes;
    const char *ending;
    bool takes_seats;
};
AS_MUST_CHECK as_status store_turn_list(struct tx *t, struct arena *a,
                                        const struct claimable_query *q,
                                        struct claimable_sweep **ret, size_t *ret_n,
                                        struct as_err *err);

/* Would another sweep with work for this runner, which has that many free GPUs, come before this
 * one, if only `running` of this one's trials ran? True also if a trial of another one waits for
 * room on the runner or its machine. */
AS_MUST_CHECK as_status store_turn_ahead(struct tx *t, const struct sweep_head *s, int64_t running,
                                         int64_t gpus, const char *runner, bool *ret,
                                         struct as_err *err);

/* The turn of this sweep came on the runner, and its trial did not fit. A sweep that waits already
 * and still has work keeps its place. */
AS_MUST_CHECK as_status store_turn_wait(struct tx *t, const char *runner, int64_t sweep_key,
                                        struct as_err *err);
/* The sweep had its turn on the runner: it waits no more for the runners of that machine. */
AS_MUST_CHECK as_status store_turn_taken(struct tx *t, const char *runner, int64_t sweep_key,
                                         struct as_err *err);
/* The same, for all runners. */
AS_MUST_CHECK as_status store_turn_over(struct tx *t, int64_t sweep_key, struct as_err *err);

/* Lock the rows of all runners of this one's machine until the transaction ends, before any other
 * row. Who hands out a trial holds the row of its runner, so nothing is handed out on the machine
 * meanwhile. */
AS_MUST_CHECK as_status store_turn_lock_machine(struct tx *t, const char *runner,
                                                struct as_err *err);
/* Does any runner of its machine hold anything but the attempts and ranks that this one calls
 * ending? */
AS_MUST_CHECK as_status store_turn_is_idle(struct tx *t, const char *runner,
                                           const struct attempt_ref *ending, size_t n, bool *ret,
                                           struct as_err *err);

#endif
