/* Table sweep: add, find and delete sweeps, and read their documents. Strings that come out are in
 * the arena passed. */
#ifndef ASSAY_SCHEDULER_STORE_SWEEP_STORE_H
#define ASSAY_SCHEDULER_STORE_SWEEP_STORE_H

#include "base/arena.h"
#include "scheduler/store/tx.h"
#include "scheduler/sweep/sweep_doc.h"
#include "scheduler/sweep/trial_state.h"

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

/* AS_E_NOT_FOUND. */
AS_MUST_CHECK as_status store_sweep_document(struct tx *t, struct arena *a, int64_t key,
                                             const char **ret, struct as_err *err);
/* The document, and the state. */
AS_MUST_CHECK as_status store_sweep_standing(struct tx *t, struct arena *a, int64_t key,
                                             sweep_state *ret_state, const char **ret_document,
                                             struct as_err *err);

/* The documents of n sweeps; NULL: there is no such sweep. */
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

/* Delete it with everything that belongs to it. */
AS_MUST_CHECK as_status store_sweep_delete(struct tx *t, int64_t key, struct as_err *err);

#endif
