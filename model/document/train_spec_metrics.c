/* The loss, the held-out rows and the metrics that follow from a document and a task.
 *
 * Metrics have static names, so that a document can keep pointers to them. The pinball loss has one
 * name for each whole per cent: a metric of a sweep is a name, without further settings. */
#include <math.h>
#include <string.h>

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

dataset_task train_spec_task(const struct train_spec *spec, dataset_task task)
{
    return train_model_is_kmeans(&spec->model) ? DATASET_CLUSTERING : task;
}

/* ---- metrics ---- */

/* FOR_ALL: with a target. */
enum { FOR_CLASSES = 1, FOR_NUMBERS = 2, FOR_TOKENS = 4, FOR_ALL = 7, FOR_CLUSTERS = 8 };

struct metric {
    const char *name;
    unsigned always, requested; /* sets of tasks: they always report it; they do on request */
    bool maximize;
};

static const struct metric metrics[] = {
    {"train_loss", FOR_ALL, 0, false},
    {"val_loss", FOR_ALL, 0, false},
    {"val_error", FOR_CLASSES | FOR_TOKENS, 0, false},
    {"val_accuracy", FOR_CLASSES | FOR_TOKENS, 0, true},
    {"val_rmse", FOR_NUMBERS, 0, false},
    {"val_mae", FOR_NUMBERS, 0, false},
    {"val_r2", FOR_NUMBERS, 0, true},
    {"lr", FOR_ALL, 0, false},
    {"val_top5", 0, FOR_CLASSES | FOR_TOKENS, true},
    {"val_auc", 0, FOR_CLASSES, true},
    {"val_average_precision", 0, FOR_CLASSES, true},
    {"val_balanced_accuracy", 0, FOR_CLASSES, true},
    {"val_f1", 0, FOR_CLASSES, true},
    {"val_log_loss", 0, FOR_CLASSES | FOR_TOKENS, false},
    {"val_brier", 0, FOR_CLASSES, false},
    {"val_mape", 0, FOR_NUMBERS, false},
    {"inertia", FOR_CLUSTERS, 0, false},
    {"val_inertia", FOR_CLUSTERS, 0, false},
    {"val_davies_bouldin", FOR_CLUSTERS, 0, false},
};

#define PINBALL "val_pinball_"
#define P1(n) PINBALL #n
#define P10(d)                                                                                     \
    P1(d##0), P1(d##1), P1(d##2), P1(d##3), P1(d##4), P1(d##5), P1(d##6), P1(d##7), P1(d##8),      \
        P1(d##9)

/* By the quantile in per cent; the first has no meaning. */
static const char *const pinball_names[] = {NULL,   P1(1),  P1(2),  P1(3),  P1(4),  P1(5),  P1(6),
                                            P1(7),  P1(8),  P1(9),  P10(1), P10(2), P10(3), P10(4),
                                            P10(5), P10(6), P10(7), P10(8), P10(9)};

static const char *const class_metrics[] = {"train_loss",
                                            "val_loss",
                                            "val_error",
                                            "val_accuracy",
                                            "lr",
                                            "val_top5",
                                            "val_auc",
                                            "val_average_precision",
                                            "val_balanced_accuracy",
                                            "val_f1",
                                            "val_log_loss",
                                            "val_brier",
                                            NULL};
/* 1 to 99: the names in messages stand for all. */
static const char *const number_metrics[] = {"train_loss", "val_loss",     "val_rmse",
                                             "val_mae",    "val_r2",       "lr",
                                             "val_mape",   (PINBALL "50"), NULL};
static const char *const token_metrics[] = {
    "train_loss", "val_loss", "val_error", "val_accuracy", "lr", "val_top5", "val_log_loss", NULL};
static const char *const cluster_metrics[] = {"inertia", "val_inertia", "val_davies_bouldin", NULL};
static const char *const all_metrics[] = {"train_loss",
                                          "val_loss",
                                          "val_error",
                                          "val_accuracy",
                                          "val_rmse",
                                          "val_mae",
                                          "val_r2",
                                          "lr",
                                          "val_top5",
                                          "val_auc",
                                          "val_average_precision",
                                          "val_balanced_accuracy",
                                          "val_f1",
                                          "val_log_loss",
                                          "val_brier",
                                          "val_mape",
                                          (PINBALL "50"),
                                          NULL};

static unsigned task_bit(dataset_task task)
{
    return task == DATASET_CLASSIFICATION      ? FOR_CLASSES
           : task == DATASET_REGRESSION        ? FOR_NUMBERS
           : task == DATASET_LANGUAGE_MODELING ? FOR_TOKENS
           : task == DATASET_CLUSTERING        ? FOR_CLUSTERS
                                               : FOR_ALL;
}

/* False if there is no such metric. ret->name is static. */
static bool find_metric(const char *name, struct metric *ret)
{
    for (size_t i = 0; i < AS_ARRAY_LEN(metrics); i++)
        if (as_streq(metrics[i].name, name)) {
            *ret = metrics[i];
            return true;
        }
    for (size_t q = 1; q < AS_ARRAY_LEN(pinball_names); q++)
        if (as_streq(pinball_names[q], name)) {
            *ret = (struct metric){pinball_names[q], 0, FOR_NUMBERS, false};
            return true;
        }
    return false;
}

const char *const *train_spec_metrics(dataset_task task)
{
    return task == DATASET_CLASSIFICATION      ? class_metrics
           : task == DATASET_REGRESSION        ? number_metrics
           : task == DATASET_LANGUAGE_MODELING ? token_metrics
           : task == DATASET_CLUSTERING        ? cluster_metrics
                                               : all_metrics;
}

bool train_spec_reports(const struct train_spec *spec, dataset_task task, const char *metric)
{
    struct metric m;
    if (as_streq(metric, "epsilon")) /* a price and no goal: what chooses it is the document */
        return spec->privacy.given;
    if (as_streq(metric, "duality_gap"))
        return train_spec_is_cocoa(spec);
    return find_metric(metric, &m) &&
           ((m.always & task_bit(task)) ||
            ((m.requested & task_bit(task)) && train_spec_wants(spec, metric)));
}

bool train_spec_can_report(dataset_task task, const char *metric)
{
    struct metric m;
    return find_metric(metric, &m) && ((m.always | m.requested) & task_bit(task)) != 0;
}

bool train_spec_on_request(dataset_task task, const char *metric)
{
    struct metric m;
    return find_metric(metric, &m) && (m.requested & task_bit(task)) != 0;
}

bool train_spec_is_maximized(const char *metric)
{
    struct metric m;
    return find_metric(metric, &m) && m.maximize;
}

bool train_spec_request(struct train_spec *spec, const char *metric)
{
    struct metric m;
    if (!find_metric(metric, &m))
        return false;
    if (m.always == FOR_ALL || train_spec_wants(spec, metric))
        return true;
    if (spec->n_metrics == TRAIN_MAX_EXTRA_METRICS)
        return false;
    spec->metrics[spec->n_metrics++] = m.name;
    return true;
}
