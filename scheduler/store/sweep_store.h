/* Table sweep and its small companions. Strings that come out are in the arena passed. */
#ifndef ASSAY_SCHEDULER_STORE_SWEEP_STORE_H
#define ASSAY_SCHEDULER_STORE_SWEEP_STORE_H

#include "base/arena.h"
#include "scheduler/rows/sweep_row.h"
#include "scheduler/store/tx.h"
#include "scheduler/sweep/trial_state.h"

/* Limits: 0 is none, but for max_failed, where it is -1. */
struct sweep_new {
    const char *id, *name, *document, *metric, *method;
    bool maximize;
    int64_t seed, planned, max_concurrent, max_failed, max_restarts, trial_timeout_ms, wall_time_ms,
        grace_ms, gpus, ensemble_size;
    const char *objectives, *outcomes; /* JSON; NULL: one metric, no constraints */
    bool learns;                       /* its suggestions depend on results */
    bool for_runners;
    int64_t max_group; /* of its trials that may share a process; 0: they have no shape */
    bool group_given;  /* max_group is the document's: so many, whatever a runner measured */
    bool is_paused;    /* it starts so */
};

/* What decisions need to know of a sweep. */
struct sweep_head {
    int64_t key;
    const char *id;
    sweep_state state;
    const char *metric;
    bool maximize;
    int64_t seed, planned, max_concurrent, max_failed, max_restarts, gpus, ensemble_size;
    struct trial_counts counts;
    bool wall_time_over;
    const char *objectives, *outcomes; /* as in sweep_new */
    bool learns;
    int64_t suggested, known, known_failed; /* trials, of counts.total */
    int64_t finish_seq;                     /* of the trial that ended last; 0 */
    int64_t search_mark;                    /* of the last suggestion; 0 */
    int64_t max_group;                      /* as in sweep_new, and */
    bool group_given;
};

/* *ret_key is 0 when the id is taken. With its entry for the ensemble. */
AS_MUST_CHECK as_status store_sweep_add(struct tx *t, const struct sweep_new *s, int64_t *ret_key,
                                        struct as_err *err);
AS_MUST_CHECK as_status store_sweep_add_dataset(struct tx *t, int64_t key, const char *dataset,
                                                struct as_err *err);

/* AS_E_NOT_FOUND names the id. */
AS_MUST_CHECK as_status store_sweep_key(struct tx *t, const char *id, int64_t *ret,
                                        struct as_err *err);

/* Lock the sweep's row until the transaction ends: whoever changes the state of a trial holds it.
 * AS_E_NOT_FOUND. */
AS_MUST_CHECK as_status store_sweep_lock(struct tx *t, struct arena *a, int64_t key,
                                         struct sweep_head *ret, struct as_err *err);

/* AS_E_NOT_FOUND. */
AS_MUST_CHECK as_status store_sweep_get(struct tx *t, struct arena *a, int64_t key,
                                        struct sweep_row *ret, struct as_err *err);
AS_MUST_CHECK as_status store_sweep_document(struct tx *t, struct arena *a, int64_t key,
                                             const char **ret, struct as_err *err);

/* What the trials of a sweep are made from. */
struct sweep_making {
    bool learns;
    int64_t max_group;    /* as in sweep_new */
    const char *document; /* NULL when it learns, because the suggester knows it then, and its
                             trials have no shape */
};
/* AS_E_NOT_FOUND. */
AS_MUST_CHECK as_status store_sweep_search(struct tx *t, struct arena *a, int64_t key,
                                           struct sweep_making *ret, struct as_err *err);

/* Newest first, those with a key below `before` (0: all); *ret_next is 0 on the last page. */
AS_MUST_CHECK as_status store_sweep_list(struct tx *t, struct arena *a, const char *state,
                                         int64_t before, int64_t size, struct sweep_row **ret,
                                         size_t *ret_n, int64_t *ret_next, struct as_err *err);

/* AS_E_CONFLICT when it is not `from`. Sets finished_at with a final state. A sweep that completes
 * keeps the reason why it began to finish. */
AS_MUST_CHECK as_status store_sweep_move(struct tx *t, int64_t key, sweep_state from,
                                         sweep_state to, const char *reason, struct as_err *err);
AS_MUST_CHECK as_status store_sweep_limit(struct tx *t, int64_t key, const struct sweep_new *s,
                                          struct as_err *err);
/* There will be no more trials than there are. */
AS_MUST_CHECK as_status store_sweep_exhausted(struct tx *t, int64_t key, struct as_err *err);
AS_MUST_CHECK as_status store_sweep_started(struct tx *t, int64_t key, struct as_err *err);
/* Make room for a known result. */
AS_MUST_CHECK as_status store_sweep_known(struct tx *t, int64_t key, struct as_err *err);
/* A suggestion of a method that learns became a trial: what it passes on (JSON, NULL for nothing)
 * and its mark. */
AS_MUST_CHECK as_status store_sweep_searched(struct tx *t, int64_t key, const char *state,
                                             int64_t mark, struct as_err *err);
/* With everything below it. */
AS_MUST_CHECK as_status store_sweep_delete(struct tx *t, int64_t key, struct as_err *err);

/* Sweeps that have something to hand out to a runner with that many free GPUs: the one with the
 * fewest running trials first, then the oldest. At most 64.
 *   ending   runner_ending.sweeps: running trials that do not count, because they are over */
AS_MUST_CHECK as_status store_sweep_claimable(struct tx *t, struct arena *a, int64_t gpus,
                                              const char *ending, int64_t **ret, size_t *ret_n,
                                              struct as_err *err);

/* Would another sweep with work for a runner with that many free GPUs come before this one, if only
 * `running` of its trials ran? */
AS_MUST_CHECK as_status store_sweep_ahead(struct tx *t, int64_t key, int64_t running, int64_t gpus,
                                          bool *ret, struct as_err *err);

/* How much a sweep may hand out now. */
struct sweep_room {
    int64_t key;    /* 0: all sweeps together that do not learn */
    int64_t queued; /* trials that wait; of sweeps that learn only */
    int64_t room;   /* trials, those among them */
    bool learns;
    bool has_ended; /* or was deleted */
};

/* For runners: one row for the sweeps that do not learn, and one for each that does and has room.
 */
AS_MUST_CHECK as_status store_sweep_pending(struct tx *t, struct arena *a, struct sweep_room **ret,
                                            size_t *ret_n, struct as_err *err);
/* For clients: one row for each of these keys, in their order. */
AS_MUST_CHECK as_status store_sweep_askable(struct tx *t, struct arena *a, const int64_t *keys,
                                            size_t n, struct sweep_room **ret, struct as_err *err);

/* Sweeps that time or their trials have ended, and that still run or are paused. At most 100. */
AS_MUST_CHECK as_status store_sweep_due(struct tx *t, struct arena *a, int64_t **ret, size_t *ret_n,
                                        struct as_err *err);

#endif
