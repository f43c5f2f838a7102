/* Table runner: one row is one lease. */
#ifndef ASSAY_SCHEDULER_STORE_RUNNER_STORE_H
#define ASSAY_SCHEDULER_STORE_RUNNER_STORE_H

#include "base/arena.h"
#include "scheduler/rows/runner_row.h"
#include "scheduler/store/tx.h"

struct runner_new {
    const char *name, *host, *version;
    const char *gpus, *gpu_faults; /* JSON */
    int64_t slots, lease_ms;
    int64_t cpus, memory_bytes; /* 0: not said */
    const char *machine;        /* NULL: not said */
    bool shares;                /* these are its machine's: the other such runners use them too */
    const char *job, *fleet;    /* that it belongs to; NULL: none */
    const char *walls;  /* JSON list of words: what stands around its trials; NULL: not said */
    const char *secret; /* SHA-256, in hexadecimal; NULL: none is asked of it later */
};

/* Who a request says it comes from. */
struct runner_id {
    const char *name;
    int64_t epoch;
    const char *secret; /* SHA-256 of the secret that it showed; NULL: none */
};

/* Would a registration with this secret come from the runner that has the name now, or from the
 * first one with that name? Locks its row. */
AS_MUST_CHECK as_status store_runner_is_same(struct tx *t, const char *name, const char *secret,
                                             bool *ret, struct as_err *err);

/* Begin a new epoch of a new or known runner, live for lease_ms. Locks its row. AS_E_CONFLICT: a
 * runner with another secret has the name, and its lease has not ended. */
AS_MUST_CHECK as_status store_runner_register(struct tx *t, const struct runner_new *n,
                                              int64_t *ret_epoch, struct as_err *err);

/* Extend the lease of a live runner; locks its row. *ret_done is false if it has another epoch
 * or secret, or is not live. */
AS_MUST_CHECK as_status store_runner_extend(struct tx *t, const struct runner_id *id,
                                            int64_t lease_ms, bool *ret_done, struct as_err *err);

/* The same, of a heartbeat. If it is not live, it may hold anything. */
struct runner_beat {
    bool is_live;
    bool has_seats, has_trials; /* it holds ranks of gangs, and attempts */
    bool is_draining;           /* it is to leave */
};
AS_MUST_CHECK as_status store_runner_beat(struct tx *t, const struct runner_id *id,
                                          int64_t lease_ms, struct runner_beat *ret,
                                          struct as_err *err);

/* Replace the list of GPUs that are set aside (JSON). *ret_done is false if it has another epoch or
 * secret. */
AS_MUST_CHECK as_status store_runner_faults(struct tx *t, const struct runner_id *id,
                                            const char *gpu_faults, bool *ret_done,
                                            struct as_err *err);

/* Make a lost runner with that epoch live again. */
AS_MUST_CHECK as_status store_runner_revive(struct tx *t, const struct runner_id *id,
                                            int64_t lease_ms, bool *ret_done, struct as_err *err);

struct runner_head {
    int64_t epoch;
    const char *state;  /* in the arena */
    const char *secret; /* in the arena; NULL: it has none */
    int64_t slots, running;
    int64_t used;                   /* slots that it uses; a group uses one */
    int64_t cpus, memory_bytes;     /* what it has; 0: it did not say */
    int64_t cpus_used, memory_used; /* what it holds needs of them, and what
                                       others hold that share them */
    bool is_shut; /* a trial that needs its machine to itself runs there: nothing else begins */
};

/* AS_E_NOT_FOUND. Does not lock. */
AS_MUST_CHECK as_status store_runner_get(struct tx *t, struct arena *a, const char *name,
                                         struct runner_head *ret, struct as_err *err);

/* The attempts of a runner's list of ending ones that still run on it. */
struct runner_ending {
    const char *sweeps; /* the sweep's key of each of them, as text of a bigint[]; in the arena */
    int64_t here;       /* how many belong to `sweep_key` */
};

/* The same for a claim: what is `ending` uses nothing, and does not
 * shut the machine.
 *   sweep_key   the sweep that is being asked; 0: none
 * AS_E_NOT_FOUND. Does not lock. */
AS_MUST_CHECK as_status store_runner_claims(struct tx *t, struct arena *a, const char *name,
                                            const struct attempt_ref *ending, size_t n,
                                            int64_t sweep_key, struct runner_head *ret,
                                            struct runner_ending *ret_ending, struct as_err *err);

/* Change from live to left, at that epoch. *ret_done is false if that is not its state. */
AS_MUST_CHECK as_status store_runner_leave(struct tx *t, const struct runner_id *id, bool *ret_done,
                                           struct as_err *err);

/* Delete its row. *ret_done is false if there is none. */
AS_MUST_CHECK as_status store_runner_remove(struct tx *t, const char *name, bool *ret_done,
                                            struct as_err *err);
/* Whether its next heartbeats tell it to leave. *ret_done is false if there is none that has not
 * left. */
AS_MUST_CHECK as_status store_runner_drain(struct tx *t, const char *name, bool is_draining,
                                           bool *ret_done, struct as_err *err);

/* Remove at most 1000 runners that left or were lost, hold nothing, and were last heard more than
 * keep_ms ago. */
AS_MUST_CHECK as_status store_runner_prune(struct tx *t, int64_t keep_ms, int64_t *ret_removed,
                                           struct as_err *err);

/* AS_E_DENIED: the epoch is current, and the secret is not the runner's. */
AS_MUST_CHECK as_status runner_id_check(const struct runner_id *id,
                                        const struct runner_head *runner, struct as_err *err);

/* Names of live runners whose lease has run out, and when it ran out. */
AS_MUST_CHECK as_status store_runner_expired(struct tx *t, struct arena *a, int64_t *ret_now_ms,
                                             const char ***ret, size_t *ret_n, struct as_err *err);
/* Change from live to lost, if its lease has run out by now. Locks its row. */
AS_MUST_CHECK as_status store_runner_lose(struct tx *t, const char *name, bool *ret_done,
                                          struct as_err *err);

/* Runners after (rank, name) of the page before; rank 0: live, 1: not. *ret_next_rank is -1 on the
 * last page; the name for the next page is that of the last row. */
AS_MUST_CHECK as_status store_runner_list(struct tx *t, struct arena *a, int64_t after_rank,
                                          const char *after_name, int64_t size,
                                          struct runner_row **ret, size_t *ret_n,
                                          int64_t *ret_next_rank, struct as_err *err);

#endif
