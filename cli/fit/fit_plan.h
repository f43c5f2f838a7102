/* Which sweep `assay fit` runs on a table: metric, how rows are held out, kinds of model with
 * their ranges, and how long. Pure: it depends on the figures of the table, the wishes and the
 * cores alone, and gives the same plan for the same of them. Decision 9011 has the rules and
 * where they are from. */
#ifndef ASSAY_CLI_FIT_FIT_PLAN_H
#define ASSAY_CLI_FIT_FIT_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "cli/fit/fit_facts.h"
#include "cli/fit/fit_metric.h"
#include "cli/fit/fit_ranges.h"

#define FIT_PRIORS 4 /* WARM_START_SWEEPS */
#define FIT_MIN_TIME_MS 10000
#define FIT_LAYERS 2

struct fit_wishes {
    int64_t time_ms;    /* for the search: without what comes before and after it */
    int64_t size_bytes; /* of the model, at most */
    size_t cores;       /* of the machine, at least 1 */
    double load;        /* other programs that use them, on average */
    const char *metric; /* such as "auc" or "val_auc"; NULL: chosen. Borrowed */
    const char *groups; /* a column; NULL: none. Borrowed */
    int64_t folds;      /* 0: chosen; 1: a part of the rows is held out */
    int64_t trials;     /* at most; 0: chosen */
    int64_t layers;     /* of stacking, 2 at most; 0: one */
};

struct fit_plan {
    char metric[FIT_METRIC_MAX]; /* val_… */
    bool maximize;
    size_t folds;                   /* 0: a part is held out … */
    double held_out;                /* … which is this share of the rows */
    double row_share;               /* of the rows that are learned from; 1: all */
    const char *groups;             /* a view of the wishes */
    const char *priors[FIT_PRIORS]; /* earlier sweeps that the search learns from; borrowed */
    size_t n_priors;
    int64_t search_ms, trial_ms;
    size_t cpus, max_trials;
    /* kinds of model beside boosted trees and a linear one */
    bool forest, extra, network, neighbours, bayes;
    bool class_weights;         /* they are searched over */
    target_transform transform; /* of the target, searched over beside none; AS_IS: not */
    bool refit;                 /* forests, extra trees and neighbours are refitted on all rows */
    struct fit_range ranges[FIT_PARAMETERS];
    size_t rounds;       /* of boosted trees, at most */
    size_t tree_bins;    /* of their columns; 0: as always */
    size_t trees;        /* of extra trees … */
    size_t forest_trees; /* … and of a random forest */
    double least_weight,
        least_extra_weight; /* of their leaves, so that they keep within the size and the time */
    size_t epochs, batch;   /* of networks */
    size_t patience;        /* of networks, in epochs; 0: a training goes to its end */
    bool one_hot;           /* networks may see categories one-hot … */
    size_t embedding;       /* … or as so many learned numbers for each column; 0: not */
    size_t most_neighbours;
    bool words;  /* naive Bayes has words of texts */
    size_t bins; /* of numbers, for networks and linear models; 0: the table is too large */
};

/* AS_E_INVAL: a metric that the task has not, folds that the rows do not allow, or layers where no
 * folds are; the message
 * names the option, what was found and what was expected. */
AS_MUST_CHECK as_status fit_plan_make(const struct fit_facts *f, const struct fit_wishes *w,
                                      struct fit_plan *ret, struct as_err *err);

/* Seconds of one core that one training of boosted trees on so many rows takes, about. */
double fit_plan_training_seconds(const struct fit_facts *f, size_t rows, size_t rounds);

#endif
