/* `trial.train`: what the built-in trainer shall do, as data.
 *
 * The server parses it at sweep creation, with sample values in place of `${…}`, so that a bad
 * sweep is refused before a trial runs; the trainer parses it again from its job. Unknown fields
 * are refused. Fields that belong to another kind (momentum with adamw, pct_start with cosine) are
 * checked and then unused, because kinds may be searched over. Numbers are used in float32: [0, 1)
 * ends below the first number that would round to 1 there. */
#ifndef ASSAY_BASE_SPEC_TRAIN_SPEC_H
#define ASSAY_BASE_SPEC_TRAIN_SPEC_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/formats/dataset.h"
#include "base/status.h"

#define TRAIN_MAX_LAYERS 32
#define TRAIN_MAX_WIDTH 65536
#define TRAIN_MAX_PARAMETERS ((size_t)1 << 28) /* of one member: 1 GiB of float32 */
#define TRAIN_MAX_EPOCHS 1000000
#define TRAIN_MAX_BATCH 1048576

typedef enum train_model_kind { TRAIN_MLP, TRAIN_LINEAR } train_model_kind;
typedef enum train_activation { TRAIN_RELU, TRAIN_TANH, TRAIN_GELU } train_activation;
typedef enum train_loss { TRAIN_LOSS_AUTO, TRAIN_CROSS_ENTROPY, TRAIN_MSE } train_loss;
typedef enum train_optimizer_kind { TRAIN_SGD, TRAIN_ADAMW } train_optimizer_kind;
typedef enum train_schedule_kind {
    TRAIN_CONSTANT,
    TRAIN_COSINE,
    TRAIN_ONE_CYCLE
} train_schedule_kind;

struct train_model_spec {
    train_model_kind kind;            /* default mlp */
    size_t n_layers;                  /* hidden layers; 0 for linear */
    int64_t layers[TRAIN_MAX_LAYERS]; /* widths, 1..TRAIN_MAX_WIDTH; default one layer of 64 */
    train_activation activation;      /* default relu */
    double dropout;                   /* after each hidden layer, [0, 1); default 0 */
};

struct train_optimizer_spec {
    train_optimizer_kind kind; /* default adamw */
    double lr;                 /* > 0; default 1e-3 (adamw), 0.1 (sgd) */
    double momentum;           /* sgd, [0, 1); default 0 */
    bool nesterov;             /* sgd; needs momentum > 0 to matter */
    double beta1, beta2;       /* adamw, [0, 1); default 0.9, 0.999 */
    double eps;                /* adamw, > 0; default 1e-8 */
    double weight_decay;       /* >= 0, on every parameter; decoupled in adamw, L2 in sgd */
};

struct train_schedule_spec {
    train_schedule_kind kind; /* default constant */
    double warmup_epochs;     /* constant, cosine: linear from 0; default 0, at most `epochs` */
    double pct_start;         /* one_cycle: share of the steps that rise, (0, 1); default 0.3 */
    double min_lr;            /* cosine, one_cycle: where it ends; [0, lr]; default 0 */
};

struct train_spec {
    char dataset[64];
    struct train_model_spec model;
    train_loss loss; /* auto: cross_entropy for classification, mse for regression */
    struct train_optimizer_spec optimizer;
    struct train_schedule_spec schedule;
    int64_t epochs;             /* required, 1..TRAIN_MAX_EPOCHS */
    int64_t batch_size;         /* default 32; more than the training rows: all of them */
    double validation_fraction; /* (0, 1), default 0.25 */
    int64_t validation_seed;    /* >= 0, default 0: all trials of a sweep hold out the same rows */
    bool standardize;           /* the features; default true. Targets of regression always are */
    int64_t report_every;       /* epochs between reports, default 1; the last is always reported */
};

/* Parse `doc`, whose JSON pointer is `pointer` ("/trial/train"). ret is untouched on failure.
 * AS_E_INVAL with the pointer of the field, what was found and what was expected. */
AS_MUST_CHECK as_status train_spec_parse(const json_t *doc, const char *pointer,
                                         struct train_spec *ret, struct as_err *err);

/* Does the spec fit the data: loss and task agree, the split leaves rows on both sides, the model
 * is within TRAIN_MAX_PARAMETERS? AS_E_INVAL with the pointer below `pointer`; AS_E_TOO_LARGE. */
AS_MUST_CHECK as_status train_spec_check(const struct train_spec *spec,
                                         const struct dataset_info *data, const char *pointer,
                                         struct as_err *err);

/* The loss that `auto` means for the task (not AUTO). */
train_loss train_spec_loss(const struct train_spec *spec, dataset_task task);

/* Will every report hold this metric? With DATASET_TASK_AUTO: for some task. */
bool train_spec_reports(const struct train_spec *spec, dataset_task task, const char *metric);

/* NULL-terminated names, for messages: train_loss, val_loss, val_error, … Never NULL. */
const char *const *train_spec_metrics(dataset_task task);

/* Rows held out of n: round(fraction * n), at least 1 and at most n - 1; n >= 2. */
size_t train_spec_validation_rows(const struct train_spec *spec, size_t n_rows);

#endif
