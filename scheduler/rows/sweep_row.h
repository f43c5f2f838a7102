/* Sweeps as statements return them. Conventions: "Rows" in scheduler/README.md. */
#ifndef ASSAY_SCHEDULER_ROWS_SWEEP_ROW_H
#define ASSAY_SCHEDULER_ROWS_SWEEP_ROW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "scheduler/rows/page.h"
#include "scheduler/rows/regret_row.h"
#include "scheduler/sweep/trial_state.h"

/* Trials of a sweep by state; total is their sum. */
struct trial_counts {
    int64_t by_state[TRIAL_STATES];
    int64_t total;
};

struct sweep_row {
    const char *id;
    const char *name;
    sweep_state state;
    const char *reason;
    const char *document;   /* JSON, the canonical form of sweep_doc, in its order; NULL in a list
                               without documents */
    const char *objectives; /* JSON [{name, goal}, …]; NULL: one metric */
    const char *outcomes;   /* JSON [{metric, min, max}, …]; NULL: no constraints */
    const char *metric;
    bool maximize;
    const char *method;
    int64_t seed;
    int64_t planned; /* planned_trials: max_trials plus the known results; with forks the population
                            and the forks so far instead of max_trials */
    int64_t known;   /* trials that people added with their results */
    bool for_runners;    /* false: its document has no `trial`; only clients get its trials */
    const char *tags;    /* JSON: a list of strings */
    const char *remarks; /* Markdown; NULL: none, or a list without documents */
    int64_t priority;    /* higher goes first */
    const char *note;    /* why none of its trials can run now; NULL: one can */
    struct trial_counts counts;
    bool
        has_best; /* those below are set: the best completed, feasible trial by the first metric; of
                      noisy values by the latest kept model of them */
    int64_t best_number;
    double best_value;
    const char *best_params; /* JSON */
    bool best_is_by_model;   /* regret has what the model expects of it */
    int64_t told_number;     /* the trial of the best value as told */
    double told_value;
    bool has_regret; /* the one below is set: the latest bound of what is left to gain */
    struct regret_check regret;
    int64_t created_ms, started_ms, finished_ms;
};

/* What a user changed. */
struct sweep_change_row {
    int64_t changed_ms;
    const char *by;      /* the id of a token; NULL: none */
    const char *changes; /* JSON: {"max_trials": {"from": 40, "to": 200}, …} */
};

struct sweep_change_list {
    struct sweep_change_row *rows;
    size_t n;
};

struct sweep_query {
    const sweep_state *state; /* NULL: any */
    const char *tag;          /* NULL: any; else sweeps whose document has exactly this tag */
    const char *dataset;      /* NULL: any; else sweeps whose trials may learn from it */
    bool with_documents;
    struct page_req page;
};

struct sweep_page {
    struct sweep_row *rows;
    size_t n;
    const char *next_cursor; /* NULL on the last page */
};

#endif
