/* The sweep document: what a person writes, checked and typed.
 *
 * The input is the JSON tree of the API. The CLI reads YAML into the same tree. Everything that can
 * be checked without the database is checked here, and an error names the pointer of its field. The
 * caller checks that the data sets exist (`datasets`). */
#ifndef ASSAY_SCHEDULER_SWEEP_SWEEP_DOC_H
#define ASSAY_SCHEDULER_SWEEP_SWEEP_DOC_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/faults.h"
#include "base/mem.h"
#include "model/document/train_spec.h"
#include "base/status.h"
#include "scheduler/sweep/ensemble_options.h"
#include "search/problem/method.h"
#include "search/space/config.h"
#include "search/space/space.h"
#include "search/stopping/stop_spec.h"

#define SWEEP_MAX_TRIALS 1000000
#define SWEEP_MAX_SEED ((INT64_C(1) << 53) - 1) /* every JSON client reads it exactly */
#define SWEEP_MAX_COMMAND 1000                  /* elements of trial.command */
#define SWEEP_MAX_GROUP 64                      /* resources.group */
#define SWEEP_MAX_RANKS 4096                    /* resources.ranks */
#define SWEEP_MAX_CPUS 4096                     /* resources.cpus */
#define SWEEP_MAX_MEMORY (INT64_C(1) << 52)     /* resources.memory, bytes */
#define SWEEP_MAX_PRIORITY 100

/* The cost that the server records of a trial of trial.train with ranks: the mean seconds of a step
 * of the rank that led at the end, in the attempt that completed. */
#define SWEEP_STEP_SECONDS "step_seconds"

/* When what is left to gain is little enough to end a sweep (search/regret_bound.h). */
struct sweep_stop_when {
    double regret;      /* in the metric's unit; NAN: not given */
    double relative;    /* as a share of median - best of the completed trials; NAN: not given */
    int64_t min_trials; /* that have completed before; default STOP_WHEN_TRIALS */
};
#define STOP_WHEN_TRIALS 20

struct sweep_limits {
    int64_t max_trials;            /* 1..SWEEP_MAX_TRIALS; for a grid at most its cells */
    int64_t max_concurrent_trials; /* 0: no limit */
    int64_t max_failed_trials;     /* the sweep fails if more trials than this fail; -1: no limit */
    int64_t max_restarts;          /* of one trial; default 3 */
    int64_t trial_timeout_ms;      /* 0: none */
    int64_t wall_time_ms;          /* 0: none */
    int64_t max_steps;             /* of all trials together; 0: no limit */
    int64_t grace_ms;              /* between SIGTERM and SIGKILL; default 30 s */
    double target;                 /* a value of the one metric that ends the sweep; NAN: none */
    struct sweep_stop_when stop_when; /* one of regret and relative is given, or none */
    bool
        keeps_timed_out; /* on_timeout: keep: a trial past trial_timeout completes with its values */
};

typedef enum trial_kind {
    TRIAL_TRAIN,
    TRIAL_COMMAND,
    TRIAL_NONE /* no `trial`: for ask and tell only, runners never get its trials */
} trial_kind;

/* On which ranks of a gang a command starts. */
typedef enum trial_launch { LAUNCH_DEFAULT, LAUNCH_ALL, LAUNCH_FIRST } trial_launch;

/* A metric that the search optimises. */
struct sweep_objective {
    char *name; /* base/metric_name.h */
    bool maximize;
    bool is_exact; /* noise: none; of one objective alone */
};

/* An outcome constraint: a trial is feasible if its value of the metric lies within the bounds. The
 * bounds are inclusive. */
struct sweep_outcome {
    char *metric;
    double min, max; /* -INFINITY, INFINITY: no bound; one of the two is finite */
};

/* Where a command runs: in trial.directory with all others; in a folder of its trial, or if none
 * can be made, with all others; in a folder of its trial. */
typedef enum trial_folder { FOLDER_SHARED, FOLDER_AUTO, FOLDER_OWN } trial_folder;

struct sweep_trial {
    trial_kind kind;
    json_t *train;   /* TRIAL_TRAIN: the template document */
    json_t *command; /* TRIAL_COMMAND: a list of strings and lists of strings (numbers are written
                        out), before substitution */
    json_t *env;     /* {NAME: text before substitution}; an empty object when there is none */
    json_t *files;   /* {path: text before substitution}; NULL: none */
    char *directory; /* working directory of the child; NULL: the runner's choice */
    json_t *report;  /* a list of the sources of measurements (sweep_report_parse of
                        sweep_trial_priv.h); NULL: $ASSAY_REPORT alone */
    json_t *environment; /* its fields environment, venv, env_file, modules, container; NULL: none
                           */
    trial_launch launch; /* TRIAL_COMMAND, as the next two */
    trial_folder folder;
    bool has_folder;  /* it was given */
    bool checkpoints; /* TRIAL_COMMAND: the program goes on from its checkpoint */
};

struct sweep_doc {
    char *name;          /* a slug */
    char *description;   /* "" if there is none */
    json_t *tags;        /* a list of strings, possibly empty */
    size_t n_objectives; /* 1..SEARCH_MAX_OBJECTIVES; distinct names */
    struct sweep_objective objectives[SEARCH_MAX_OBJECTIVES];
    size_t n_outcomes; /* distinct metrics; one may be an objective too */
    struct sweep_outcome outcomes[SEARCH_MAX_OUTCOMES];
    const char *metric;  /* view of the first objective's name */
    bool maximize;       /* the goal of the first objective */
    struct space *space; /* with parameter_constraints and forbidden */
    const struct search_method *method;
    uint64_t seed;                    /* at most SWEEP_MAX_SEED */
    uint64_t initial_trials;          /* search.initial_trials; 0: not given */
    struct warm_start *earlier;       /* search.prior; NULL: none */
    struct search_prepared *prepared; /* for the space; NULL: the method needs no preparation */
    bool is_searchable; /* space and method are right, and some configuration exists */
    uint64_t n_listed;  /* the number of configurations in an enumeration; 0 for
                                         other methods */
    struct sweep_limits limits;
    struct stop_spec stopping; /* early_stopping; method STOP_NONE: the document has none */
    struct sweep_trial trial;
    int64_t priority;     /* -SWEEP_MAX_PRIORITY..SWEEP_MAX_PRIORITY; higher goes first */
    int64_t gpus;         /* for each trial, as the three below; of several ranks, for each rank */
    int64_t cpus;         /* 0: not given */
    int64_t memory_bytes; /* 0: not given */
    bool exclusive;       /* nothing else runs on its machine */
    bool is_gang;         /* its trials are gangs: several ranks, or one that has the same bits as
                             several (resources.ranks: 1 with micro-batches) */
    int64_t ranks;        /* processes that run one trial together; the most of any trial */
    int64_t
        least_ranks; /* the fewest that a trial begins with; `ranks`, unless the search has it */
    bool searches_ranks; /* resources.ranks is a parameter: space->params[ranks_param] */
    size_t ranks_param;
    int64_t min_ranks; /* fewer wait for others; 1..least_ranks */
    int64_t group;     /* trials of one shape that share a process; 0: not given */
    struct ensemble_options ensemble;
    char **datasets; /* the distinct data sets that trial.train can name; empty for a
                             command */
    size_t n_datasets;
    json_t *canonical; /* the document with every default written out */
};

/* Is the limit there? */
static inline bool sweep_stop_when_is_set(const struct sweep_stop_when *w)
{
    return w->regret >= 0 || w->relative >= 0;
}

/* Read and check the section `limits`. Absent fields and JSON null: the default, and for max_trials
 * 0. AS_E_INVAL with the pointer of the field (/limits/…). */
AS_MUST_CHECK as_status sweep_limits_parse(const json_t *j, struct sweep_limits *ret,
                                           struct as_err *err);

/* Parse and check a document.
 *   doc           borrowed
 *   default_seed  used if search.seed is not given; only its low 53 bits count
 *   ret           owned by the caller
 * AS_E_INVAL, AS_E_TOO_LARGE: the field that err->pointer names is wrong; the message explains it.
 * AS_E_UNSUPPORTED: what is known but not offered by this version: a method of early_stopping.
 * AS_E_NOMEM. */
AS_MUST_CHECK as_status sweep_doc_parse(const json_t *doc, uint64_t default_seed,
                                        struct sweep_doc **ret, struct as_err *err);
/* The same, but every fault of the document is noted in `faults` (zeroed by the caller, who calls
 * faults_done), at most FAULTS_MAX of them; the first is returned. Fields whose check needs another
 * one that is at fault are not checked. */
AS_MUST_CHECK as_status sweep_doc_parse_noting(const json_t *doc, uint64_t default_seed,
                                               struct faults *faults, struct sweep_doc **ret,
                                               struct as_err *err);
void sweep_doc_free(struct sweep_doc *d);
AS_DEFINE_FREEP(struct sweep_doc, sweep_doc_free)

/* Check that the built-in trainer reports the objectives and constrained metrics for data of that
 * task (DATASET_TASK_AUTO: for any task). AS_E_INVAL with the pointer of the objective or
 * constraint. */
AS_MUST_CHECK as_status sweep_doc_check_metrics(const struct sweep_doc *d,
                                                const struct train_spec *spec, dataset_task task,
                                                struct as_err *err);

/* The input of suggest(). All pointers are views of d. */
void sweep_doc_search_spec(const struct sweep_doc *d, struct search_spec *ret);

/* The canonical document as text, with the keys in the document's order. Store this text in a
 * column of type text or json. A type that sorts keys (jsonb, json_format) would change the order
 * of the parameters, and with it every suggestion. Parsing the text gives an equal sweep_doc. Owned
 * by the caller (free); NULL when memory is out. */
char *sweep_doc_format(const struct sweep_doc *d);

/* `trial` as configuration `c` runs it (base/trial_template.h), but for what only a runner knows:
 * ${file:path} and ${trial_dir} stay. {} for TRIAL_NONE. New reference. AS_E_NOMEM. */
AS_MUST_CHECK as_status sweep_doc_trial(const struct sweep_doc *d, const struct config *c,
                                        json_t **ret, struct as_err *err);

#endif
