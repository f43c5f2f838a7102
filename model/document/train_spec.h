/* `trial.train`: the document that describes what the built-in trainer does.
 *
 * The server parses it when a sweep is created, with sample values in place of `${…}`, so that a
 * bad sweep is refused before a trial runs. The trainer parses it again from its job. Unknown
 * fields are refused. Fields that belong to another kind (momentum with adamw, pct_start with
 * cosine) are checked and then unused, because a sweep may search over kinds. Numbers are used in
 * float32, so [0, 1) ends at the largest float32 below 1. */
#ifndef ASSAY_MODEL_DOCUMENT_TRAIN_SPEC_H
#define ASSAY_MODEL_DOCUMENT_TRAIN_SPEC_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/faults.h"
#include "data/dataset.h"
#include "base/status.h"
#include "model/document/distributed_spec.h"

#define TRAIN_MAX_LAYERS 32
#define TRAIN_MAX_WIDTH 65536
#define TRAIN_MAX_PARAMETERS ((size_t)1 << 28) /* of one member: 1 GiB of float32 */
#define TRAIN_MAX_EPOCHS 1000000
#define TRAIN_MAX_RESAMPLE 1000000
#define TRAIN_MAX_BATCH 1048576
#define TRAIN_MAX_BLOCKS                                                                           \
    256 /* items of a cnn's layers, residual blocks counted with what is in them */
#define TRAIN_MAX_CONTEXT 8192
#define TRAIN_MAX_EXTRA_METRICS 32 /* in `metrics`, with the sweep's own */
#define TRAIN_MAX_FOLDS 20
#define TRAIN_MAX_CYCLES 64
#define TRAIN_MAX_STAGES 256
#define TRAIN_MAX_COLUMN_NAME 1024 /* bytes */
#define TRAIN_MAX_BINS 256
#define TRAIN_MAX_NEIGHBOURS 1000
#define TRAIN_MAX_NEIGHBOUR_BYTES ((size_t)1 << 28) /* NEIGHBOURS_MAX_BYTES */
#define TRAIN_MAX_BAYES_BYTES ((size_t)1 << 28)     /* BAYES_MAX_BYTES */

typedef enum train_model_kind {
    TRAIN_MLP,
    TRAIN_LINEAR, /* "linear"; "logistic" is the same, for classes only */
    TRAIN_CNN,
    TRAIN_TRANSFORMER,
    TRAIN_BOOSTED_TREES, /* these three are no networks: model/trees */
    TRAIN_RANDOM_FOREST,
    TRAIN_EXTRA_TREES,
    TRAIN_KNN,         /* k nearest neighbours: no network either, model/neighbours */
    TRAIN_NAIVE_BAYES, /* nor is this one: model/naive-bayes */
    TRAIN_KMEANS       /* nor this, which has no target: model/kmeans */
} train_model_kind;
typedef enum train_activation { TRAIN_RELU, TRAIN_TANH, TRAIN_GELU } train_activation;
typedef enum train_loss {
    TRAIN_LOSS_AUTO,
    TRAIN_CROSS_ENTROPY,
    TRAIN_MSE,
    TRAIN_HUBER,
    TRAIN_BCE
} train_loss;
typedef enum train_optimizer_kind {
    TRAIN_SGD,
    TRAIN_ADAM,
    TRAIN_ADAMW,
    TRAIN_RMSPROP,
    TRAIN_LAMB,
    TRAIN_LION,
    TRAIN_ADAGRAD,
    TRAIN_LBFGS         /* of ranks that work on all rows: trial-runner/distributed/lbfgs_step.c */
} train_optimizer_kind; /* the order of optim_kind (kernels/ops_optim.h), which has not the last */
typedef enum train_schedule_kind {
    TRAIN_CONSTANT,
    TRAIN_COSINE,
    TRAIN_ONE_CYCLE,
    TRAIN_STEP
} train_schedule_kind;
typedef enum train_split {
    TRAIN_SPLIT_RANDOM,
    TRAIN_SPLIT_STRATIFIED /* each class has its share of the held-out rows; others: random */
} train_split;
/* What decides which rows are held out. */
typedef enum train_holdout {
    TRAIN_HOLD_SHARE,  /* chance: a share of the rows, or of each class */
    TRAIN_HOLD_COLUMN, /* the cells of a column */
    TRAIN_HOLD_ORDER,  /* the last rows by a column */
    TRAIN_HOLD_GROUPS, /* chance, but rows with equal cells of a column stay together */
    TRAIN_HOLD_FOLDS   /* chance; each row once, in one of `folds` trainings */
} train_holdout;
typedef enum train_precision { TRAIN_FLOAT32, TRAIN_BFLOAT16 } train_precision;

/* One item of a cnn: `{conv: 32, kernel: 3, stride: 1, padding: same, depthwise: false, norm:
 * batch, activation: relu}`, `{pool: max, size: 2, stride: 2, padding: 0}`, `{pool: global}`
 * (average over the image), `{residual: [items]}` (with a 1x1 projection where shapes differ; the
 * activation after the sum), `{dense: 128}`, `{dropout: true}` (model.dropout here). */
typedef enum train_block_kind {
    BLOCK_CONV,
    BLOCK_POOL_MAX,
    BLOCK_POOL_AVG,
    BLOCK_POOL_GLOBAL,
    BLOCK_RESIDUAL, /* the `inner` blocks that follow are its branch */
    BLOCK_DENSE,
    BLOCK_DROPOUT
} train_block_kind;

struct train_block {
    train_block_kind kind;
    int64_t out;            /* conv: channels; dense: units */
    int64_t kernel, stride; /* conv, pool */
    int64_t padding;        /* conv, pool; -1: same (conv: (kernel - 1) / 2, kernel odd) */
    bool depthwise;         /* conv: out is a multiple of the input's channels; 0: as many */
    bool batch_norm;        /* conv, dense; then no bias */
    bool linear;            /* conv, dense: no activation after it (`activation: none`) */
    size_t inner;           /* residual: how many blocks its branch has */
};

/* Trees. The names are those of XGBoost's interface for scikit-learn, and so are the defaults,
 * except that a forest's trees are deeper and see fewer columns at a split. Extra trees are full,
 * see all rows, and use n_estimators, max_depth, min_child_weight, subsample, colsample_bynode. */
struct train_trees_spec {
    int64_t n_estimators;      /* rounds; of a forest, trees (of each output); default 100 */
    int64_t max_depth;         /* 0: no limit; default 6, of a forest 12, of extra trees 0 */
    int64_t max_leaves;        /* 0: no limit, the default */
    bool by_loss;              /* grow_policy lossguide: the split that gains most is next */
    int64_t max_bin;           /* of a histogram; default 256 */
    int64_t max_cat_to_onehot; /* columns of fewer categories are split one against the rest; 4 */
    double learning_rate;      /* boosted: > 0; default 0.3 */
    double min_child_weight;   /* >= 0; default 1 */
    double gamma;              /* least gain of a split, >= 0; default 0 */
    double max_delta_step;     /* boosted: >= 0; default 0: no limit */
    double reg_lambda, reg_alpha; /* >= 0; default 1 (of a forest 1e-5), 0 */
    double subsample;             /* rows of a tree, (0, 1]; default 1, of a forest 0.8 */
    double colsample_bytree, colsample_bylevel; /* columns, (0, 1]; default 1 */
    double
        colsample_bynode; /* (0, 1]; default 1. Of a forest 0, the default: the square root of the
                              * columns for classes, all of them for numbers */
    int64_t
        early_stopping_rounds; /* boosted: end after so many rounds without a better val_loss, and
                                    * keep the best ones; 0 (default): never */
};

/* k-means (model/kmeans/kmeans.h). Its epochs are iterations, by default at most 300. */
struct train_kmeans_spec {
    int64_t clusters; /* 2..4096; default 8 */
    bool random;      /* `init: random`; default k-means++ */
    double tolerance; /* it ends when the squares of how far centroids moved sum up to at most
                       * this part of the inputs' mean variance, >= 0; default 1e-4. 0: when none
                       * moves */
};

struct train_model_spec {
    train_model_kind kind;            /* default mlp */
    bool logistic;                    /* the document said "logistic" */
    bool cocoa;                       /* linear: `solver: cocoa`; default sgd, the optimizer */
    size_t n_layers;                  /* mlp: hidden layers; 0 for linear */
    int64_t layers[TRAIN_MAX_LAYERS]; /* widths, 1..TRAIN_MAX_WIDTH; default one layer of 64 */
    train_activation activation;      /* default relu (transformer: gelu, always) */
    bool batch_norm;                  /* mlp: after each hidden layer's product; default false */
    double dropout;  /* after each hidden layer, at {dropout: true}, in a transformer
                      * after embedding and each branch; [0, 1); default 0 */
    bool dropping;   /* `dropout` was given, perhaps as 0: all trials of a sweep over it have one
                      * shape */
    size_t n_blocks; /* cnn: `layers`, or what `preset` stands for: lenet, vgg8,
                      * resnet8, resnet18 (with `width`, channels of the first stage) */
    struct train_block blocks[TRAIN_MAX_BLOCKS];
    const char *preset;                   /* static name; NULL: the blocks are those of `layers` */
    int64_t depth, width, heads, context; /* transformer: blocks, default 4; default 128; default 4,
                                           * divides width; tokens, default 64 */
    int64_t embedding; /* mlp, linear on tables with categories: 0 one-hot (default), else each
                        * category column is an embedding of so many numbers */
    struct train_trees_spec trees; /* boosted_trees, random_forest, extra_trees */
    struct train_kmeans_spec kmeans;
    int64_t neighbours;   /* knn: 1 to TRAIN_MAX_NEIGHBOURS, default 5 */
    bool by_distance;     /* knn: `weights: distance`; default uniform */
    double smoothing;     /* naive_bayes: added to counts, 1e-10 to 1e6; default 1 */
    double var_smoothing; /* naive_bayes: part of a column's variance, 1e-12 to 1e6; default 1e-3 */
    bool multinomial;     /* naive_bayes: `words: multinomial`; default complement */
};

struct train_optimizer_spec {
    train_optimizer_kind kind; /* default adamw */
    double lr;                 /* > 0; default 1e-3; sgd 0.1; adagrad 0.01; lion 1e-4; lbfgs 1 */
    double momentum;           /* sgd, rmsprop, [0, 1); default 0 */
    bool nesterov;             /* sgd; needs momentum > 0 to matter */
    double beta1, beta2;       /* adam, adamw, lamb, lion: [0, 1); default 0.9, 0.999 (lion 0.99);
                                * rmsprop: beta2 is its alpha (`alpha`), default 0.99 */
    double eps;                /* > 0; default 1e-8 (lamb 1e-6, adagrad 1e-10) */
    double weight_decay; /* >= 0, on every parameter; decoupled in adamw, lamb, lion; else L2 */
    double clip_norm;    /* > 0: gradients are scaled to at most this norm; 0 (default): never */
    int64_t history;     /* lbfgs: pairs that are kept, 1 to 100; default 10 */
    double ema;          /* [0, 1): decay of the average of weights that is evaluated and kept;
                          * 0 (default): none */
};

struct train_schedule_spec {
    train_schedule_kind kind; /* default constant */
    double warmup_epochs; /* constant, cosine, step: linear from 0; default 0, at most `epochs` */
    double pct_start;     /* one_cycle: share of the steps that rise, (0, 1); default 0.3 */
    double min_lr;        /* cosine, one_cycle: where it ends; [0, lr]; default 0 */
    int64_t cycles;       /* cosine: falls so many times, in equal parts of the epochs; default 1 */
    int64_t
        snapshots; /* cosine: the model is the mean of the weights' outputs at the ends of the last so
                           * many cycles (Huang et al. 2017); 0 (default): the last weights alone */
    double step_epochs; /* step: every so many epochs, > 0; default 10 … */
    double gamma;       /* … the rate is multiplied by this, (0, 1]; default 0.1 */
};

/* Gradient boosting: this trial is one stage of a model that is a sum (J. Friedman, "Greedy
 * function approximation: a gradient boosting machine", Annals of Statistics 29, 2001). Stage 0 is
 * a training like any other. A later stage fits what the sum of those before misses: of numbers the
 * residuals, of classes the negative gradient of the log loss on the scores. */
struct train_boost_spec {
    bool given;
    int64_t stage; /* 0..TRAIN_MAX_STAGES - 1; default 0 */
    double rate;   /* (0, 1], of each stage after 0; default 0.3 */
};

/* Images only (refused for other data when not 0). */
struct train_augment_spec {
    int64_t pad;    /* pad-crop: shifts by up to so many pixels; 0..64, default 0 */
    double flip;    /* probability of a flip left to right, [0, 1]; default 0 */
    int64_t cutout; /* side of the square, 0..1024; default 0 */
    bool given;     /* one was given, perhaps as 0: all trials of a sweep over it have one shape */
};

/* Differentially private training (DP-SGD). Each row is in a batch by chance, with the same
 * probability; the norm of its gradient is at most `clip`; the sum of a batch gets Gaussian noise
 * of deviation noise x clip, and is divided by the rows that a batch has in the mean. */
struct train_privacy_spec {
    bool given;
    double clip;  /* > 0; required */
    double noise; /* 0.01 to 1000; required */
    double delta; /* (0, 0.1]; default 1e-5: of the epsilon that is reported */
};

struct train_spec {
    char dataset[64];
    struct train_model_spec model;
    train_loss loss; /* auto: cross_entropy for classes and tokens, mse for regression. bce: two
                      * classes (one output), or targets all in [0, 1] */
    double label_smoothing; /* cross_entropy, bce: [0, 1]; default 0 */
    double huber_delta;     /* huber: > 0; default 1 (of the standardised target) */
    size_t n_class_weights; /* 0: none; else the number of classes */
    double *class_weights;  /* owned; `class_weights: [..]`; or balanced */
    bool balanced;          /* `class_weights: balanced`: rows / (classes * rows of the class) */
    struct train_optimizer_spec optimizer;
    struct train_schedule_spec schedule;
    struct train_augment_spec augment;
    train_precision precision; /* default float32; bfloat16 needs cuda */
    int64_t epochs;            /* required, 1..TRAIN_MAX_EPOCHS; of trees unused: n_estimators */
    int64_t batch_size;        /* default 32; more than the training rows: all of them */
    int64_t micro_batch; /* rows of one pass; divides batch_size; default batch_size. Gradients of
                          * a batch are summed over its micro-batches, so trials of different
                          * batch_size and equal micro_batch have the same shape */
    double validation_fraction; /* (0, 1), default 0.25; `last` of an order */
    int64_t validation_seed;    /* >= 0, default 0: all trials of a sweep hold out the same rows */
    train_holdout holdout;      /* default: by chance */
    char *holdout_column;       /* owned; of `column`, `order`, `groups`; NULL: by chance */
    train_split validation_split; /* default random: the rule of documents from before 2026-11-22.
                                   * The server writes `stratified` into the documents of new sweeps
                                   * that do not choose (scheduler/sweep/split_rule.h) */
    bool standardize;             /* the features; default true. Targets of regression always are */
    bool piecewise; /* `numbers: {encode: piecewise_linear}`: of a table; default no */
    int64_t bins;   /* `numbers: {bins: 16}`: 2 to TRAIN_MAX_BINS, default 16 */
    target_transform
        target_transform; /* `target: {transform: log}`: of a regression; default none */
    int64_t resample;     /* 0 (default): all training rows. K: the K-th bootstrap sample of them
                       * (train_data_order), 0..TRAIN_MAX_RESAMPLE */
    int64_t report_every; /* epochs (of trees: rounds) between reports, default 1, of trees a
                           * twentieth of the rounds, rounded up; the last is always reported */
    int64_t folds;        /* TRAIN_HOLD_FOLDS: 2 to TRAIN_MAX_FOLDS; else 0 */
    bool refit;           /* with folds: the model is one more training, on all rows; default false:
                           * it is the mean of the folds' models */
    char *weights;        /* owned: the column with the weights of the rows; NULL: all 1 */
    char *buckets;        /* owned: the column whose values of held-out rows the trial leaves, for
                           * ensembles by bucketing; NULL: none */
    int64_t patience;     /* so many reports without a better one end the training, and the best
                           * weights are kept; 0 (default): never */
    size_t n_metrics; /* `metrics: [val_auc, val_f1]`: reported in addition to those that are always
                       * reported. Metrics that only some tasks always report are stored too, so
                       * that the check for another task refuses them */
    const char *metrics[TRAIN_MAX_EXTRA_METRICS]; /* static names */
    struct train_boost_spec boost;
    struct train_privacy_spec privacy;
    struct distributed_spec distributed; /* of trials with several ranks */
};

void train_spec_done(struct train_spec *spec); /* a zeroed one is fine */

/* The values that each number of a table becomes for this model, as preprocess_opts.bins; 0: it
 * stays one. Trees see numbers as they are. */
size_t train_spec_bins(const struct train_spec *spec);

/* The snapshots that a training keeps; 0: none. They count for networks with the schedule
 * cosine. */
int64_t train_spec_snapshots(const struct train_spec *spec);

/* The epochs after which cycle c of 0 .. schedule.cycles - 1 has ended. */
int64_t train_spec_cycle_end(const struct train_spec *spec, int64_t c);

/* Parse `doc`, whose JSON pointer is `pointer` ("/trial/train"). ret is untouched on failure.
 * AS_E_INVAL with the pointer of the field, what was found and what was expected. */
AS_MUST_CHECK as_status train_spec_parse(const json_t *doc, const char *pointer,
                                         struct train_spec *ret, struct as_err *err);

/* The same, but every fault is noted in `faults` (zeroed by the caller, who calls faults_done;
 * NULL: none is noted); the first one is returned. err is not NULL. */
AS_MUST_CHECK as_status train_spec_parse_noting(const json_t *doc, const char *pointer,
                                                struct faults *faults, struct train_spec *ret,
                                                struct as_err *err);

/* Is it a model of trees? */
bool train_model_is_trees(const struct train_model_spec *m);

/* Does it see the cells of a row as they are, a missing number as NaN and a category as the index
 * of its value (model/trees/tree_inputs.h)? Trees and naive Bayes. */
bool train_model_sees_cells(const struct train_model_spec *m);

/* Is it k-means? */
bool train_model_is_kmeans(const struct train_model_spec *m);

/* Is it a network, with a plan (model/plan) and steps, and none of the other kinds? */
bool train_model_is_network(const struct train_model_spec *m);

/* Can ranks train it together? Networks and k-means; others train in one process. */
bool train_model_takes_ranks(const struct train_model_spec *m);

/* Is it a network that L-BFGS trains? That needs ranks, if only one, and batches of all rows. */
bool train_spec_is_lbfgs(const struct train_spec *spec);

/* Is it a linear model that CoCoA trains? It needs the same. */
bool train_spec_is_cocoa(const struct train_spec *spec);

/* "mlp", …, "naive_bayes"; "logistic" where the document said so. */
const char *train_model_name(const struct train_model_spec *m);

/* What the model does with a data set of this task: k-means clusters rows whatever their target. */
dataset_task train_spec_task(const struct train_spec *spec, dataset_task task);

/* "auto", "cross_entropy", … */
const char *train_loss_name(train_loss loss);

/* The loss for the task: that of the spec, or what `auto` means. Never AUTO. */
train_loss train_spec_loss(const struct train_spec *spec, dataset_task task);

/* Check that loss and kind suit the task and the rows of a data set. Whether the layers of a
 * network do, only its plan says (model/plan/plan.h). AS_E_INVAL with the pointer below
 * `pointer`. */
AS_MUST_CHECK as_status train_spec_check_task(const struct train_spec *spec,
                                              const struct dataset_info *data, const char *pointer,
                                              struct as_err *err);

/* ---- metrics ----
 *             always                      on request (`metrics`, train_spec_request)
 * clustering  inertia, val_inertia, val_davies_bouldin
 * the others  train_loss, val_loss, lr; epsilon with `privacy`; duality_gap with `solver: cocoa`
 * classes     val_error, val_accuracy     val_top5, val_auc, val_average_precision,
 *                                         val_balanced_accuracy, val_f1, val_log_loss, val_brier
 * tokens      val_error, val_accuracy     val_top5, val_log_loss
 * regression  val_rmse, val_mae, val_r2   val_mape, val_pinball_1 … val_pinball_99 (per cent)
 *
 * model/network/metrics.h has the definitions. The task is that of train_spec_task(). Inertia is
 * the mean squared distance of rows to their centroids: scikit-learn's inertia_ divided by the
 * rows; model/kmeans/kmeans.h has the third. */

/* Is this metric in every report of the task? With DATASET_TASK_AUTO: in those of any task. */
bool train_spec_reports(const struct train_spec *spec, dataset_task task, const char *metric);

/* Can it be in the reports, if it is requested? The metric of a sweep counts as requested. */
bool train_spec_can_report(dataset_task task, const char *metric);

/* Does the task report it only on request? */
bool train_spec_on_request(dataset_task task, const char *metric);

/* Is more of it better? False for names that are no metrics. */
bool train_spec_is_maximized(const char *metric);

/* Add a metric to spec->metrics, unless it is there or every task reports it. False if there is no
 * such metric, or no room for another one. */
bool train_spec_request(struct train_spec *spec, const char *metric);

/* Is this metric among spec->metrics? Metrics that every task reports never are. */
bool train_spec_wants(const struct train_spec *spec, const char *metric);

/* The NULL-terminated names of all metrics that the task can report, for messages; one of the
 * pinball losses stands for all of them. Never NULL. */
const char *const *train_spec_metrics(dataset_task task);

/* The number of rows to hold out: round(fraction * n), at least 1 and at most n - 1; n >= 2. Of
 * groups it is what is aimed at, because groups are held out as a whole; with TRAIN_HOLD_COLUMN the
 * column decides, and this number has no meaning. */
size_t train_spec_validation_rows(const struct train_spec *spec, size_t n_rows);

#endif
