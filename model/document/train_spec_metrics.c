/* A train document against the data set that it names, and the metrics that follow. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "model/plan/plan.h"
#include "model/document/train_spec_priv.h"

train_loss train_spec_loss(const struct train_spec *spec, dataset_task task)
{
    if (spec->loss != TRAIN_LOSS_AUTO)
        return spec->loss;
    return task == DATASET_REGRESSION ? TRAIN_MSE : TRAIN_CROSS_ENTROPY;
}

/* What losses go with the task: the names, for messages; NULL when this one does. */
static const char *other_losses(train_loss loss, const struct dataset_info *data)
{
    bool entropy = loss == TRAIN_CROSS_ENTROPY;
    switch (data->task) {
    case DATASET_REGRESSION:
        return entropy ? "mse, huber or bce" : NULL;
    case DATASET_CLASSIFICATION:
        if (entropy || (loss == TRAIN_BCE && data->n_classes == 2))
            return NULL;
        return data->n_classes == 2 ? "cross_entropy or bce" : "cross_entropy";
    default:
        return entropy ? NULL : "cross_entropy";
    }
}

static as_status check_loss(const struct train_spec *spec, const struct dataset_info *data,
                            const char *pointer, struct as_err *err)
{
    char at[AS_ERR_POINTER_MAX];
    train_loss loss = train_spec_loss(spec, data->task);
    const char *expected = other_losses(loss, data);
    if (expected) {
        json_pointer_child(pointer, "loss", at);
        return as_fail_at(
            err, AS_E_INVAL, at, "%s: found %s, expected %s: data set '%s' is for %s%s", at,
            train_loss_words[loss], expected, spec->dataset, dataset_task_name(data->task),
            loss == TRAIN_BCE ? " of more than two classes" : "");
    }
    if (spec->model.logistic && data->task != DATASET_CLASSIFICATION) {
        json_pointer_child(pointer, "model", at);
        json_pointer_child(at, "kind", at);
        return as_fail_at(err, AS_E_INVAL, at,
                          "%s: found logistic, expected linear: data set '%s' is for %s", at,
                          spec->dataset, dataset_task_name(data->task));
    }
    return AS_OK;
}

static as_status check_class_weights(const struct train_spec *spec, const struct dataset_info *data,
                                     const char *pointer, struct as_err *err)
{
    char at[AS_ERR_POINTER_MAX];
    if (!spec->balanced && !spec->n_class_weights)
        return AS_OK;
    json_pointer_child(pointer, "class_weights", at);
    if (data->task != DATASET_CLASSIFICATION)
        return as_fail_at(err, AS_E_INVAL, at, "%s: data set '%s' is for %s, which has no classes",
                          at, spec->dataset, dataset_task_name(data->task));
    if (spec->balanced || spec->n_class_weights == data->n_classes)
        return AS_OK;
    return as_fail_at(err, AS_E_INVAL, at,
                      "%s: found %zu weights, expected %zu, one for each class", at,
                      spec->n_class_weights, data->n_classes);
}

static as_status check_rows(const struct train_spec *spec, const struct dataset_info *data,
                            const char *pointer, struct as_err *err)
{
    char at[AS_ERR_POINTER_MAX];
    bool tokens = data->input == DATASET_TOKEN_TEXT;
    /* a training and a validation sequence, each with the token that follows */
    size_t least = tokens ? 2 * ((size_t)spec->model.context + 1) : 2;
    if (data->n_rows >= least)
        return AS_OK;
    json_pointer_child(pointer, "dataset", at);
    return as_fail_at(err, AS_E_INVAL, at, "%s: '%s' has %zu %s, expected %zu or more", at,
                      spec->dataset, data->n_rows, tokens ? "tokens" : "rows", least);
}

static as_status check_augment(const struct train_spec *spec, const struct dataset_info *data,
                               const char *pointer, struct as_err *err)
{
    const struct train_augment_spec *a = &spec->augment;
    char at[AS_ERR_POINTER_MAX];
    if (data->input == DATASET_IMAGE || (a->pad == 0 && a->cutout == 0 && a->flip <= 0))
        return AS_OK;
    json_pointer_child(pointer, "augment", at);
    return as_fail_at(err, AS_E_INVAL, at, "%s: data set '%s' is %s, expected images", at,
                      spec->dataset, data->input == DATASET_TABLE ? "a table" : "a text of tokens");
}

static as_status check_metrics(const struct train_spec *spec, const struct dataset_info *data,
                               const char *pointer, struct as_err *err)
{
    for (size_t i = 0; i < spec->n_metrics; i++) {
        if (train_spec_can_report(data->task, spec->metrics[i]))
            continue;
        char at[AS_ERR_POINTER_MAX];
        json_pointer_child(pointer, "metrics", at);
        return as_fail_at(err, AS_E_INVAL, at, "%s: found %s, which %s does not have", at,
                          spec->metrics[i], dataset_task_name(data->task));
    }
    return AS_OK;
}

as_status train_spec_check(const struct train_spec *spec, const struct dataset_info *data,
                           const char *pointer, struct as_err *err)
{
    struct net_data seen = net_data_of(data);
    AS_AUTO(net_plan_freep) struct net_plan *plan = NULL;
    as_status st = check_loss(spec, data, pointer, err);
    if (st == AS_OK)
        st = check_class_weights(spec, data, pointer, err);
    if (st == AS_OK)
        st = check_augment(spec, data, pointer, err);
    if (st == AS_OK)
        st = check_metrics(spec, data, pointer, err);
    if (st == AS_OK)
        st = net_plan_create(spec, &seen, pointer, &plan, err);
    return st < 0 ? st : check_rows(spec, data, pointer, err);
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
    unsigned always, requested; /* for which tasks */
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

static bool requested(const struct train_spec *spec, const char *metric)
{
    for (size_t i = 0; i < spec->n_metrics; i++)
        if (as_streq(spec->metrics[i], metric))
            return true;
    return false;
}

bool train_spec_reports(const struct train_spec *spec, dataset_task task, const char *metric)
{
    for (size_t i = 0; i < AS_ARRAY_LEN(metrics); i++)
        if (as_streq(metrics[i].name, metric))
            return (metrics[i].always & task_bit(task)) ||
                   ((metrics[i].requested & task_bit(task)) && requested(spec, metric));
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
        if (metrics[i].always != FOR_ALL && !requested(spec, metric))
            spec->metrics[spec->n_metrics++] = metrics[i].name; /* 9 of them; there is room */
        return true;
    }
    return false;
}
