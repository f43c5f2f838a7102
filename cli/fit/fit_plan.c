/* The rules are in the order in which they depend on each other: metric; how many trainings the
 * time allows, and from that folds, rows and rounds; the ranges of each kind, bounded by the
 * rows and by the size that the model may have.
 *
 * The constants of cost and size were measured on UCI Adult (26,049 rows, 14 columns, 200 rounds
 * of 32 leaves: 2 s of one core, 0.69 MB); of extra trees on California and letter (5,000 to 9,000
 * rows); of leaves of a forest on phoneme (5,404 rows, 5 columns: 8 to 10 us; 1.5 to 7 on tables
 * whose columns have fewer bins). They need to be right within a factor of three: the sweep's wall
 * time is the limit, and what they decide is how rows are held out. */
#include "cli/fit/fit_plan.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "cli/fit/fit_metric.h"

#define TREE_SECONDS 30e-9        /* of a round, for each row and column */
#define ROUND_COLUMN_SECONDS 3e-5 /* of a round, for each column: its bins at 16 leaves */
#define ROUND_SECONDS 5e-4        /* of a round, however few rows there are */
#define TYPICAL_ROUNDS 250        /* at which boosting stops itself */
#define NETWORK_FLOPS 2e10        /* of one core, in a second */
#define LEAF_BYTES 110            /* of a leaf and its split, in a model file */
#define FOREST_LEAF_SECONDS 10e-6 /* of a leaf of XGBoost, for each column of 256 bins */
#define EXTRA_SECONDS 60e-9       /* of an extra tree, for each row, candidate and level */
#define EXTRA_LEAF_BYTES 28       /* as LEAF_BYTES: two nodes and a number */
#define EXTRA_FULL_CLASSES 0.4    /* leaves for each row; of numbers a leaf for each row */
#define NOISE_LEAVES 2.7          /* of classes with much noise, times the usual leaves */
#define FOREST_SHARE 0.4          /* of the size, for one forest: an ensemble may have two */
#define LEAST_TREES 40            /* fewer lose more than larger leaves do */
#define MOST_TREES 300
#define RARE_ROWS 500       /* of a class: a fifth of fewer rows says little about it */
#define RARE_TRIALS 4.0     /* trials with folds that are enough for folds then */
#define LEAST_LEAVES 32     /* of a tree of a forest: else boosting is as good and faster */
#define FULL_TRIALS 12.0    /* trials with folds below which fewer folds are better */
#define LEAST_TRIALS 8.0    /* trials below which fewer rows are better */
#define LEAST_ROWS 20000    /* of which none are left out */
#define LARGE_CELLS 1e7     /* one trial at a time: each has a copy of the table */
#define BINS 32             /* 8 and 16 are worse on Adult, California and letter */
#define BIN_ROWS 8          /* inputs in bins for each row, at most: more say nothing */
#define BIN_CELLS 1e8       /* inputs of all rows, above which a trial would be large */
#define PAIR_SECONDS 4e-10  /* of neighbours, for two rows and an input */
#define NEIGHBOUR_SHARE 0.2 /* of the size */
#define NEIGHBOUR_TRIALS 60 /* one may take this part of the time */
#define EMBEDDING 8         /* learned numbers of a category; 4 and 16 are as good (1014) … */
#define EMBEDDED_VALUES 10  /* … where a column has so many values */
#define PATIENCE 12         /* of networks, in epochs */
#define PATIENCE_ROWS 2000  /* below which a fold is too small to choose the last epoch by */
#define BAYES_ROWS 2000     /* below which a table without texts is small */
#define WIDE 200            /* columns above which a tree of boosting sees a part of them … */
#define WIDE_SEEN 0.3       /* … at most this share, and WIDE / 4 at least … */
#define WIDE_BINS 32        /* … and their values in so many bins, which cost more than rows do */
#define MAX_TRIALS 200

static size_t clamp(double v, size_t least, size_t most)
{
    return !(v > (double)least) ? least : v > (double)most ? most : (size_t)v;
}

/* Trees of a round, or for each tree of a forest. */
static size_t trees_of_round(const struct fit_facts *f)
{
    return f->classes > 2 ? f->classes : f->targets > 1 ? f->targets : 1;
}

/* The shares of the columns that a tree of boosting sees, at least and at most. */
static struct fit_range seen_columns(const struct fit_facts *f)
{
    if (f->columns <= WIDE)
        return (struct fit_range){0.3, 1, 0.1, 1};
    double least = ceil(100.0 * WIDE / 4 / (double)f->columns) / 100;
    return (struct fit_range){least, WIDE_SEEN, 0.01, 1};
}

double fit_plan_training_seconds(const struct fit_facts *f, size_t rows, size_t rounds)
{
    double trees = (double)rounds * (double)trees_of_round(f);
    double columns = (double)f->columns * seen_columns(f).max;
    double column = TREE_SECONDS * (double)rows + ROUND_COLUMN_SECONDS;
    return trees * (column * columns + ROUND_SECONDS);
}

/* ---- rows and time ---- */

/* More folds than the rarest class has rows would leave folds without it. */
static size_t most_folds(const struct fit_facts *f)
{
    size_t most = f->rows < 20 ? f->rows / 2 : 10;
    if (f->classes && f->rarest >= 2 && f->rarest < most)
        most = f->rarest;
    return most < 2 ? 2 : most;
}

static as_status take_folds(const struct fit_facts *f, const struct fit_wishes *w,
                            struct fit_plan *p, struct as_err *err)
{
    int64_t most = f->rows < 20 ? (int64_t)f->rows : 20;
    if (w->groups && w->folds > 1)
        return as_fail(err, AS_E_INVAL,
                       "--folds: found %lld beside --groups, which holds out whole groups of rows: "
                       "expected one of both",
                       (long long)w->folds);
    if (w->folds < 1 || w->folds > most)
        return as_fail(err, AS_E_INVAL,
                       "--folds: found %lld, expected 1 (a part of the rows is held out) to %lld",
                       (long long)w->folds, (long long)most);
    p->folds = w->folds > 1 ? (size_t)w->folds : 0;
    return AS_OK;
}

/* A further layer sees predictions of all rows by models that had not seen them. */
static as_status check_layers(const struct fit_wishes *w, struct as_err *err)
{
    if (w->layers < 2 || (!w->groups && w->folds != 1))
        return AS_OK;
    return as_fail(
        err, AS_E_INVAL,
        "--layers: found %lld beside %s: a further layer sees what was predicted of each "
        "row by a model without it, which takes folds",
        (long long)w->layers, w->groups ? "--groups" : "--folds 1");
}

/* Folds as the trainings that the time allows; groups are held out once. */
static as_status choose_folds(const struct fit_facts *f, const struct fit_wishes *w,
                              double trainings, struct fit_plan *p, struct as_err *err)
{
    size_t want = f->rows < 1000 ? 10 : 5, most = most_folds(f);
    if (w->folds)
        return take_folds(f, w, p, err);
    want = want < most ? want : most;
    bool few = f->rows < 1000 && (f->columns <= WIDE || trainings / (double)want >= RARE_TRIALS);
    bool rare = f->classes && f->rarest < RARE_ROWS && trainings / (double)want >= RARE_TRIALS;
    if (w->groups)
        p->folds = 0;
    else if (trainings / (double)want >= FULL_TRIALS || few || rare)
        p->folds = want;
    else if ((trainings / 3 >= FULL_TRIALS || f->rows < 1000 || w->layers > 1) && most >= 3)
        p->folds = 3;
    else if (w->layers > 1)
        p->folds = 2;
    return AS_OK;
}

/* Seconds of a core that the search has: less where other programs run. */
static double core_seconds(const struct fit_wishes *w)
{
    double cores = (double)w->cores;
    return (double)w->time_ms / 1000 * cores * cores / (cores + (w->load > 0 ? w->load : 0));
}

static as_status choose_rows(const struct fit_facts *f, const struct fit_wishes *w,
                             struct fit_plan *p, struct as_err *err)
{
    double seconds = core_seconds(w);
    bool large = (double)f->rows * (double)f->inputs > LARGE_CELLS;
    double one = fit_plan_training_seconds(f, f->rows, TYPICAL_ROUNDS);
    as_status st = choose_folds(f, w, seconds / one, p, err);
    if (st != AS_OK)
        return st;
    p->held_out = f->rows > 200000 ? 0.1 : w->groups ? 0.25 : 0.2;
    p->row_share = 1;
    double trials = seconds / one / (double)(p->folds ? p->folds : 1);
    if (trials < LEAST_TRIALS && f->rows > LEAST_ROWS) {
        double least = (double)LEAST_ROWS / (double)f->rows, share = trials / LEAST_TRIALS;
        p->row_share = share < least ? least : share;
    }
    p->cpus = large ? w->cores : 1;
    p->search_ms = w->time_ms;
    p->trial_ms = w->time_ms / 2;
    p->max_trials = w->trials ? (size_t)w->trials : MAX_TRIALS;
    return AS_OK;
}

/* ---- kinds and their ranges ---- */

static size_t trainings_of_trial(const struct fit_plan *p)
{
    return p->folds ? p->folds : 1;
}

/* Rounds such that FULL_TRIALS of them fit, with a rate that needs about so many. */
static void plan_boosting(const struct fit_facts *f, const struct fit_wishes *w, double rows,
                          struct fit_plan *p)
{
    double seconds = core_seconds(w) / FULL_TRIALS;
    double round = fit_plan_training_seconds(f, (size_t)rows, 1) * (double)trainings_of_trial(p);
    p->rounds = clamp(seconds / round, 60, 1000);
    double rate = ceil(1500.0 / (double)p->rounds) / 100; /* as the document has it */
    rate = rate < 0.02 ? 0.02 : rate > 0.1 ? 0.1 : rate;
    size_t typical = p->rounds < 300 ? p->rounds : 300;
    double trees = (double)(trainings_of_trial(p) * typical * trees_of_round(f));
    double leaves = (double)w->size_bytes * 0.5 / trees / LEAF_BYTES;
    double most = leaves < rows / 4 ? leaves : rows / 4;
    size_t usual = clamp(leaves < rows / 20 ? leaves : rows / 20, 8, 128);
    p->ranges[FIT_RATE] = (struct fit_range){rate, 0.3, rate / 3, 0.5};
    p->ranges[FIT_LEAVES] =
        (struct fit_range){4, (double)usual, 2, (double)clamp(most, usual, 1024)};
    p->ranges[FIT_ROWS] = (struct fit_range){0.5, 1, 0.25, 1};
    p->ranges[FIT_COLUMNS] = seen_columns(f);
    p->tree_bins = f->columns > WIDE ? WIDE_BINS : 0;
}

/* The weight of a leaf with which so many trees keep within the share of the size. */
static double least_weight_of(const struct fit_wishes *w, const struct fit_plan *p, double trees,
                              double full_leaves, double leaf_bytes)
{
    double models = p->refit ? 1 : (double)trainings_of_trial(p);
    double leaves = (double)w->size_bytes * FOREST_SHARE / models / trees / leaf_bytes;
    return full_leaves > leaves ? ceil(full_leaves / (leaves < 1 ? 1 : leaves)) : 1;
}

/* Leaves of a tree of a random forest for each row. */
struct forest_leaves {
    double full, pairs; /* without limits; with two rows in a leaf */
};

/* Measured on eleven tables of 700 to 20,000 rows. Of several classes each tree separates one from
 * the others. */
static struct forest_leaves forest_leaves_of(const struct fit_facts *f)
{
    if (!f->classes)
        return (struct forest_leaves){0.5, 0.25};
    if (f->classes <= 2)
        return (struct forest_leaves){0.15, 0.12};
    return (struct forest_leaves){0.4 / (double)f->classes, 0.35 / (double)f->classes};
}

/* Seconds of one core for one extra tree, which looks at half of the columns at a split. */
static double extra_seconds(const struct fit_facts *f, double rows)
{
    return EXTRA_SECONDS * rows * ((double)f->columns + 1) / 2 * log2(rows + 1);
}

/* Leaves of a tree with which a forest keeps within a third of the time limit of its trial, or
 * within what it gets of a core in all of it where other programs run: a trial that the limit ends
 * is lost. A leaf of XGBoost costs more than its rows do. */
static double forest_leaves_in_time(const struct fit_facts *f, const struct fit_wishes *w,
                                    const struct fit_plan *p, double rows, double trainings)
{
    double share = core_seconds(w) * 1000 / ((double)w->time_ms * (double)w->cores);
    double seconds = (double)p->trial_ms / 1000 * (share < 1.0 / 3 ? share : 1.0 / 3);
    double trees = (double)(p->forest_trees * trees_of_round(f)) * trainings;
    double of_column = seconds / trees / (double)(f->columns ? f->columns : 1);
    return (of_column - 2 * TREE_SECONDS * rows) / FOREST_LEAF_SECONDS;
}

/* Larger leaves, if it has to be: those of extra trees stay full. */
static void plan_forest_time(const struct fit_facts *f, const struct fit_wishes *w, double rows,
                             double trainings, struct fit_plan *p)
{
    double leaves = forest_leaves_in_time(f, w, p, rows, trainings);
    double usual = rows * forest_leaves_of(f).full;
    double weight = leaves < usual ? ceil(usual * (f->classes ? NOISE_LEAVES : 1) / leaves) : 1;
    p->forest = leaves > LEAST_LEAVES;
    if (p->forest && weight > p->least_weight)
        p->least_weight = weight;
}

/* As many trees as fit with leaves of two rows: half as large as full ones where numbers are
 * predicted, and as good. A leaf weighs four times one of an extra tree. */
static void plan_forest_size(const struct fit_facts *f, const struct fit_wishes *w, double rows,
                             double most, struct fit_plan *p)
{
    const struct forest_leaves leaves = forest_leaves_of(f);
    double models = p->refit ? 1 : (double)trainings_of_trial(p);
    double each = rows * leaves.pairs * (double)trees_of_round(f) * LEAF_BYTES;
    double trees = (double)w->size_bytes * FOREST_SHARE / models / each;
    p->forest_trees = clamp(trees < most ? trees : most, LEAST_TREES, MOST_TREES);
    p->least_weight = least_weight_of(w, p, (double)(p->forest_trees * trees_of_round(f)),
                                      rows * leaves.full, LEAF_BYTES);
}

/* Full trees are better than many (on California by 5 % of the RMSE), so the size limits how many
 * there are before it limits how full they are. */
static void plan_forests(const struct fit_facts *f, const struct fit_wishes *w, double rows,
                         struct fit_plan *p)
{
    double full = f->classes ? rows * EXTRA_FULL_CLASSES : rows;
    p->refit = p->folds > 0;
    double trainings = (double)(trainings_of_trial(p) + p->refit);
    double models = p->refit ? 1 : (double)trainings_of_trial(p);
    double by_size = (double)w->size_bytes * FOREST_SHARE / models / (full * EXTRA_LEAF_BYTES);
    double by_time = core_seconds(w) / FULL_TRIALS / trainings / extra_seconds(f, rows);
    p->trees = clamp(by_size < by_time ? by_size : by_time, LEAST_TREES, MOST_TREES);
    double trees = (double)p->trees;
    p->least_extra_weight = least_weight_of(w, p, trees, full, EXTRA_LEAF_BYTES);
    plan_forest_size(f, w, rows, by_time, p);
    double column = floor(100.0 / (double)(f->columns ? f->columns : 1)) / 100;
    column = column < 0.05 ? 0.05 : column > 0.5 ? 0.5 : column;
    p->ranges[FIT_PER_SPLIT] = (struct fit_range){column, 1, 0.01, 1};
    p->extra = extra_seconds(f, rows) * trees * trainings < (double)p->trial_ms / 3000;
    plan_forest_time(f, w, rows, trainings, p);
}

/* Seconds of a core for a trial of a network of two layers with so many inputs. */
static double network_seconds(const struct fit_facts *f, double rows, double width, double inputs,
                              const struct fit_plan *p)
{
    double outputs = f->classes ? (double)f->classes : (double)f->targets;
    double weights = width * (inputs + width + outputs);
    double one = 6 * rows * weights * (double)p->epochs / 2 / NETWORK_FLOPS;
    return one * (double)trainings_of_trial(p);
}

/* Where bins would make far more inputs than there are rows, or a network that takes two thirds of
 * the time of its trial, there are none. */
static size_t bins_of(const struct fit_facts *f, double rows, double width,
                      const struct fit_plan *p)
{
    double inputs = (double)f->inputs + (double)f->columns * (BINS - 1);
    bool fits = (double)f->rows * inputs <= BIN_CELLS && inputs <= BIN_ROWS * rows;
    double most = (double)p->trial_ms * 2 / 3000;
    return fits && network_seconds(f, rows, width, inputs, p) < most ? BINS : 0;
}

static void plan_network(const struct fit_facts *f, double rows, struct fit_plan *p)
{
    double width = rows < 1000 ? 128 : rows < 50000 ? 256 : 512;
    p->ranges[FIT_WIDTH] = (struct fit_range){32, width, 8, 2 * width};
    p->ranges[FIT_DROPOUT] = (struct fit_range){0, 0.5, 0, 0.8};
    p->ranges[FIT_LR] = (struct fit_range){0.0003, 0.03, 0.00001, 0.3};
    p->batch = rows < 2000 ? 32 : rows < 20000 ? 64 : rows < 200000 ? 256 : 1024;
    p->patience = p->folds && rows < PATIENCE_ROWS ? 0 : PATIENCE;
    p->epochs = rows < 2000 ? 100 : rows < 20000 ? 60 : rows < 200000 ? 30 : 10;
    p->bins = bins_of(f, rows, width / 2, p);
    double most = (double)p->trial_ms / 3000, inputs = (double)f->inputs;
    double embedded = inputs - (double)f->category_inputs + EMBEDDING * (double)f->categories;
    bool embeds = f->most_values >= EMBEDDED_VALUES;
    p->embedding =
        embeds && network_seconds(f, rows, width / 2, embedded, p) < most ? EMBEDDING : 0;
    p->one_hot = network_seconds(f, rows, width / 2, inputs, p) < most;
    p->network = p->one_hot || p->embedding;
}

/* All rows are the model, and each row is compared with all others in each fold. */
static void plan_neighbours(const struct fit_facts *f, const struct fit_wishes *w, double rows,
                            struct fit_plan *p)
{
    double bytes = 4 * (double)f->rows * ((double)f->inputs + 2);
    double seconds = PAIR_SECONDS * rows * rows * (double)f->inputs;
    seconds *= (double)(trainings_of_trial(p) + p->refit);
    p->most_neighbours = clamp(rows / 4, 2, 50);
    p->neighbours = bytes <= (double)w->size_bytes * NEIGHBOUR_SHARE &&
                    seconds <= core_seconds(w) / NEIGHBOUR_TRIALS;
}

/* Where there are texts, which it is made for, or so few rows that assumptions help. */
static void plan_bayes(const struct fit_facts *f, struct fit_plan *p)
{
    p->words = f->texts > 0;
    p->bayes = f->classes > 1 && (p->words || f->rows < BAYES_ROWS);
}

/* Leaves of a forest may have to be larger than any of boosting would be. */
static void plan_leaf_weights(struct fit_plan *p)
{
    double most = 30, forest = p->forest ? 4 * p->least_weight : 0;
    double extra = p->extra ? 4 * p->least_extra_weight : 0;
    most = forest > most ? forest : most;
    most = extra > most ? extra : most;
    p->ranges[FIT_LEAF_WEIGHT] = (struct fit_range){1, most, 0.1, 10 * most};
}

/* Where one class is rare and the metric looks at both classes alike. */
static bool wants_class_weights(const struct fit_facts *f, const struct fit_plan *p)
{
    static const char *const even[] = {"val_auc", "val_balanced_accuracy", "val_f1",
                                       "val_average_precision"};
    if (f->classes < 2 || f->rarest * f->classes * 4 > f->rows)
        return false;
    for (size_t i = 0; i < AS_ARRAY_LEN(even); i++)
        if (as_streq(p->metric, even[i]))
            return true;
    return false;
}

as_status fit_plan_make(const struct fit_facts *f, const struct fit_wishes *w, struct fit_plan *ret,
                        struct as_err *err)
{
    struct fit_plan p = {.groups = w->groups};
    as_status st = fit_metric_choose(f, w->metric, p.metric, &p.maximize, err);
    if (st == AS_OK)
        st = check_layers(w, err);
    if (st == AS_OK)
        st = choose_rows(f, w, &p, err);
    if (st != AS_OK)
        return st;
    double rows = (double)f->rows * p.row_share;
    plan_boosting(f, w, rows, &p);
    plan_forests(f, w, rows, &p);
    plan_leaf_weights(&p);
    plan_network(f, rows, &p);
    plan_neighbours(f, w, rows, &p);
    plan_bayes(f, &p);
    p.class_weights = wants_class_weights(f, &p);
    p.transform = f->transform;
    *ret = p;
    return AS_OK;
}
