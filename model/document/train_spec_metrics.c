/* The loss, the held-out rows and the metrics that follow from a document and a task. */
#include <math.h>

#include "base/str.h"
#include "model/document/train_spec.h"

train_loss train_spec_loss(const struct train_spec *spec, dataset_task task)
{
    if (spec->loss != TRAIN_LOSS_AUTO)
        return spec->loss;
    return task == DATASET_REGRESSION ? TRAIN_MSE : TRAIN_CROSS_ENTROPY;
}

size_t train_spec_validation_rows(const struct train_spec *spec, size_t n_rows)
{
    size_t n = (size_t)llround(spec->validation_fraction * (double)n_rows);
    return n < 1 ? 1 : n > n_rows - 1 ? n_rows - 1 : n;
}

/* ---- metrics ---- */

enum { FOR_CLASSES = 1, FOR_NUMBERS = 2, FOR_TOKENS = 4, FOR_ALL = 7 };

static const struct {
    const char *name;
    unsigned always, requested; /* sets of tasks: they always report it; they do on request */
} metrics[] = {
    {"train_loss", FOR_ALL, 0},
    {"val_loss", FOR_ALL, 0},
    {"val_error", FOR_CLASSES | FOR_TOKENS, 0},
    {"val_accuracy", FOR_CLASSES | FOR_TOKENS, 0},
    {"val_rmse", FOR_NUMBERS, 0},
    {"val_mae", FOR_NUMBERS, 0},
    {"val_r2", FOR_NUMBERS, 0},
    {"lr", FOR_ALL, 0},
    {"val_top5", 0, FOR_CLASSES | FOR_TOKENS},
    {"val_auc", 0, FOR_CLASSES},
    {"val_f1", 0, FOR_CLASSES},
    {"val_log_loss", 0, FOR_CLASSES | FOR_TOKENS},
};

static const char *const class_metrics[] = {"train_loss",   "val_loss", "val_error", "val_accuracy",
                                            "lr",           "val_top5", "val_auc",   "val_f1",
                                            "val_log_loss", NULL};
static const char *const number_metrics[] = {"train_loss", "val_loss", "val_rmse", "val_mae",
                                             "val_r2",     "lr",       NULL};
static const char *const token_metrics[] = {
    "train_loss", "val_loss", "val_error", "val_accuracy", "lr", "val_top5", "val_log_loss", NULL};
static const char *const all_metrics[] = {
    "train_loss", "val_loss", "val_error", "val_accuracy", "val_rmse",     "val_mae", "val_r2",
    "lr",         "val_top5", "val_auc",   "val_f1",       "val_log_loss", NULL};

static unsigned task_bit(dataset_task task)
{
    return task == DATASET_CLASSIFICATION      ? FOR_CLASSES
           : task == DATASET_REGRESSION        ? FOR_NUMBERS
           : task == DATASET_LANGUAGE_MODELING ? FOR_TOKENS
                                               : FOR_ALL;
}

const char *const *train_spec_metrics(dataset_task task)
{
    return task == DATASET_CLASSIFICATION      ? class_metrics
           : task == DATASET_REGRESSION        ? number_metrics
           : task == DATASET_LANGUAGE_MODELING ? token_metrics
                                               : all_metrics;
}

bool train_spec_reports(const struct train_spec *spec, dataset_task task, const char *metric)
{
    for (size_t i = 0; i < AS_ARRAY_LEN(metrics); i++)
        if (as_streq(metrics[i].name, metric))
            return (metrics[i].always & task_bit(task)) ||
                   ((metrics[i].requested & task_bit(task)) && train_spec_wants(spec, metric));
    return false;
}

bool train_spec_can_report(dataset_task task, const char *metric)
{
    for (size_t i = 0; i < AS_ARRAY_LEN(metrics); i++)
        if (as_streq(metrics[i].name, metric))
            return ((metrics[i].always | metrics[i].requested) & task_bit(task)) != 0;
    return false;
}

bool train_spec_request(struct train_spec *spec, const char *metric)
{
    for (size_t i = 0; i < AS_ARRAY_LEN(metrics); i++) {
        if (!as_streq(metrics[i].name, metric))
            continue;
        if (metrics[i].always != FOR_ALL && !train_spec_wants(spec, metric))
            spec->metrics[spec->n_metrics++] = metrics[i].name; /* there is room for all 9 */
        return true;
    }
    return false;
}
