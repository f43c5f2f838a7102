/* Table sweep and its companions. Strings that come out are in the arena passed. */
#ifndef ASSAY_SCHEDULER_STORE_SWEEP_STORE_H
#define ASSAY_SCHEDULER_STORE_SWEEP_STORE_H

#include "base/arena.h"
#include "scheduler/rows/sweep_row.h"
#include "scheduler/store/tx.h"
#include "scheduler/sweep/sweep_doc.h"
#include "scheduler/sweep/trial_state.h"

struct rung_board;

/* Limits: 0 means none, except for max_failed, where -1 means none. */
struct sweep_new {
    const char *id, *name, *document, *metric, *method;
    bool maximize;
    int64_t seed, planned, max_concurrent, max_failed, max_restarts, trial_timeout_ms, wall_time_ms,
        grace_ms, gpus, ensemble_size;
    const char *ensemble_method; /* NULL: greedy */
    bool ensemble_non_negative, ensemble_calibrate;
    const char *objectives, *outcomes; /* JSON; NULL: one metric, no constraints */
    bool learns;                       /* its suggestions depend on results */
    bool for_runners;
    int64_t max_group; /* the most trials that may share a process; 0: its trials have no shape */
    bool group_given;  /* max_group is the document's: exactly so many, whatever a runner
                          measured */
    double target;     /* NAN: none */
    bool keeps_timed_out;
    bool is_paused;           /* it starts paused */
    bool gang;                /* each trial is a gang's; see sweep_doc.h */
    int64_t ranks, min_ranks; /* of each trial; where ranks_by is set, the most of any */
    const char *ranks_by; /* the parameter with the ranks of each trial; NULL: all have `ranks` */
    int64_t least_ranks;  /* the fewest of any trial */
    bool shrinks;         /* a program's world begins again with min_ranks or more */
    int64_t priority;
    int64_t cpus, memory_bytes; /* of each trial or rank; 0: not given */
    bool exclusive;             /* nothing else runs on the machine of a trial */
    bool elastic;               /* the ranks of a trial may change while it runs */
    const char *launch;         /* all, first */
    const int64_t *rungs;       /* the steps of its rungs */
    size_t n_rungs;             /* 0: no early stopping */
    bool rungs_late;            /* the first report past a rung counts for it */
    bool rungs_strict;          /* it fails if a trial ends and none has a value below the last
                                   rung */
    int64_t population;         /* trials that the search makes, then there are forks only; 0: no
                                   trial is forked, and the next is not set */
    int64_t most;               /* max_trials, forks included; planned begins with the others */
    int64_t max_steps;
    struct sweep_stop_when stop_when;
    int64_t regret_due; /* after so many completed trials a first bound of what is left to gain is
                           computed; 0: none is */
};

/* The columns of a sweep that decisions need. */
struct sweep_head {
    int64_t key;
    const char *id;
    sweep_state state;
    const char *metric;
    bool maximize;
    int64_t seed, planned, max_concurrent, max_failed, max_restarts, gpus, ensemble_size;
    const char *ensemble_method;
    bool ensemble_non_negative, ensemble_calibrate;
    int64_t trial_timeout_ms; /* 0: none */
    struct trial_counts counts;
    bool wall_time_over;
    bool target_reached;               /* by a completed, feasible trial */
    bool little_left;                  /* what may be left to gain is within limits.stop_when */
    bool keeps_timed_out;              /* on_timeout: keep */
    bool has_started;                  /* a trial of it has begun */
    const char *objectives, *outcomes; /* as in sweep_new */
    bool learns;
    int64_t suggested, known, known_failed; /* counts of trials, included in counts.total */
    int64_t finish_seq;                     /* of the trial that ended last; 0: none */
    int64_t search_mark;                    /* of the last suggestion; 0: none */
    int64_t max_group;                      /* as in sweep_new */
    bool group_given;
    int64_t ranks; /* of each trial */
    bool shrinks;  /* as in sweep_new */
    int64_t priority;
    int64_t cpus, memory_bytes; /* as in sweep_new */
    bool exclusive;
    bool stops;         /* it has early stopping */
    bool limits_steps;  /* it has limits.max_steps */
    bool is_spent;      /* nothing runs, and max_steps leaves no step to the next rung of a trial */
    bool is_strict;     /* rungs_strict, and no trial has a value at a rung below the last yet */
    int64_t forks_left; /* so many more may be made; each adds one to planned */
};

/* Insert a sweep, with its row for the ensemble. *ret_key is 0 if the id is taken. */
AS_MUST_CHECK as_status store_sweep_add(struct tx *t, const struct sweep_new *s, int64_t *ret_key,
                                        struct as_err *err);
AS_MUST_CHECK as_status store_sweep_add_dataset(struct tx *t, int64_t key, const char *dataset,
                                                struct as_err *err);

/* The names of the data sets that its trials may name; they may have been deleted. */
AS_MUST_CHECK as_status store_sweep_datasets(struct tx *t, struct arena *a, int64_t key,
                                             const char ***ret, size_t *ret_n, struct as_err *err);

/* AS_E_NOT_FOUND: the message has the id. */
AS_MUST_CHECK as_status store_sweep_key(struct tx *t, const char *id, int64_t *ret,
                                        struct as_err *err);

/* The trial that reached the target first. */
struct sweep_target {
    int64_t number;
    double value, target;
};
/* AS_E_NOT_FOUND: none has. */
AS_MUST_CHECK as_status store_sweep_target(struct tx *t, int64_t key, struct sweep_target *ret,
                                           struct as_err *err);

/* Lock the sweep's row until the transaction ends. A transaction that changes the state of a trial
 * must hold it. AS_E_NOT_FOUND. */
AS_MUST_CHECK as_status store_sweep_lock(struct tx *t, struct arena *a, int64_t key,
                                         struct sweep_head *ret, struct as_err *err);

/* A locked sweep, and what an end in it may reach. */
struct sweep_locked {
    struct sweep_head head;
    bool has_target;
    double target;
    struct rung_board *board; /* of early stopping; the transaction's. NULL: nobody needs it */
};

/* Lock the rows of many sweeps, in the order of `keys` (ascending, each once). ret: n views of `a`;
 * NULL: the sweep was deleted, or, unless is_patient, another transaction holds its row. */
AS_MUST_CHECK as_status store_sweep_lock_many(struct tx *t, struct arena *a, const int64_t *keys,
                                              size_t n, bool is_patient, struct sweep_locked **ret,
                                              struct as_err *err);

/* AS_E_NOT_FOUND. */
AS_MUST_CHECK as_status store_sweep_get(struct tx *t, struct arena *a, int64_t key,
                                        struct sweep_row *ret, struct as_err *err);
AS_MUST_CHECK as_status store_sweep_document(struct tx *t, struct arena *a, int64_t key,
                                             const char **ret, struct as_err *err);
/* The document, and the state. */
AS_MUST_CHECK as_status store_sweep_standing(struct tx *t, struct arena *a, int64_t key,
                                             sweep_state *ret_state, const char **ret_document,
                                             struct as_err *err);

/* The same for n sweeps; NULL: there is no such sweep. */
AS_MUST_CHECK as_status store_sweep_documents(struct tx *t, struct arena *a, const int64_t *keys,
                                              size_t n, const char **ret, struct as_err *err);

/* The inputs from which the trials of a sweep are made. */
struct sweep_making {
    bool learns;
    int64_t max_group;    /* as in sweep_new */
    const char *document; /* NULL if it learns and its trials have no shape: then only the
                             suggester needs it */
};
/* AS_E_NOT_FOUND. */
AS_MUST_CHECK as_status store_sweep_search(struct tx *t, struct arena *a, int64_t key,
                                           struct sweep_making *ret, struct as_err *err);

struct sweep_list_query {
    const char *state;   /* NULL: any */
    const char *tag;     /* NULL: any */
    const char *dataset; /* NULL: any */
    int64_t before;      /* only keys below this; 0: all */
    int64_t size;        /* at most so many; fewer when they pass PAGE_BYTES_MAX */
    bool with_documents;
};

/* Newest first; *ret_next is 0 on the last page. */
AS_MUST_CHECK as_status store_sweep_list(struct tx *t, struct arena *a,
                                         const struct sweep_list_query *q, struct sweep_row **ret,
                                         size_t *ret_n, int64_t *ret_next, struct as_err *err);

/* AS_E_CONFLICT: its state is not `from`. A final state sets finished_at. A sweep that completes
 * keeps the reason for which it began to finish. */
AS_MUST_CHECK as_status store_sweep_move(struct tx *t, int64_t key, sweep_state from,
                                         sweep_state to, const char *reason, struct as_err *err);
/* Store other limits with the document that holds them. set_max_trials: the planned trials become
 * l->max_trials and the known results, but no fewer than exist; else they stay. The caller holds
 * the row. */
AS_MUST_CHECK as_status store_sweep_limit(struct tx *t, int64_t key, const char *document,
                                          const struct sweep_limits *l, bool set_max_trials,
                                          struct as_err *err);
/* Store another priority with the document that holds it. The caller holds the row. */
AS_MUST_CHECK as_status store_sweep_prioritize(struct tx *t, int64_t key, const char *document,
                                               int64_t priority, struct as_err *err);
/* Store the tags of this document, with the document. The caller holds the row. */
AS_MUST_CHECK as_status store_sweep_tag(struct tx *t, int64_t key, const char *document,
                                        struct as_err *err);
/* Store other remarks, and read them; NULL: none. The caller holds the row. AS_E_NOT_FOUND: the
 * sweep was deleted. */
AS_MUST_CHECK as_status store_sweep_remark(struct tx *t, int64_t key, const char *remarks,
                                           struct as_err *err);
AS_MUST_CHECK as_status store_sweep_remarks(struct tx *t, struct arena *a, int64_t key,
                                            const char **ret, struct as_err *err);
/* Record what a user changed (JSON). `by`: the id of the token; NULL: none. The caller holds the
 * sweep's row. */
AS_MUST_CHECK as_status store_sweep_change_add(struct tx *t, int64_t key, const char *by,
                                               const char *changes, struct as_err *err);
/* The latest `limit` changes, newest first. */
AS_MUST_CHECK as_status store_sweep_changes(struct tx *t, struct arena *a, int64_t key,
                                            int64_t limit, struct sweep_change_row **ret,
                                            size_t *ret_n, struct as_err *err);
/* The sweep gets no more trials. */
AS_MUST_CHECK as_status store_sweep_exhausted(struct tx *t, int64_t key, struct as_err *err);
AS_MUST_CHECK as_status store_sweep_started(struct tx *t, int64_t key, struct as_err *err);
/* Make room for n known results. */
AS_MUST_CHECK as_status store_sweep_known(struct tx *t, int64_t key, int64_t n, struct as_err *err);
/* A suggestion of a method that learns became a trial: store the search state that it left (JSON,
 * NULL: none) and its mark. */
AS_MUST_CHECK as_status store_sweep_searched(struct tx *t, int64_t key, const char *state,
                                             int64_t mark, struct as_err *err);
/* Delete it with everything that belongs to it. */
AS_MUST_CHECK as_status store_sweep_delete(struct tx *t, int64_t key, struct as_err *err);

/* How many trials limits.max_steps lets these sweeps begin now: exact while the transaction holds
 * their rows. INT64_MAX: the sweep has no such limit. */
AS_MUST_CHECK as_status store_sweep_steps_room(struct tx *t, const int64_t *keys, size_t n,
                                               int64_t *ret, struct as_err *err);

/* Sweeps in which trials wait for a promotion. At most 100. */
AS_MUST_CHECK as_status store_sweep_waiting(struct tx *t, struct arena *a, int64_t **ret,
                                            size_t *ret_n, struct as_err *err);

/* Sweeps whose time or trials are over, and that still run or are paused. At most 100. */
AS_MUST_CHECK as_status store_sweep_due(struct tx *t, struct arena *a, int64_t **ret, size_t *ret_n,
                                        struct as_err *err);

#endif
