#include "model/plan/check.h"

#include "base/json.h"
#include "model/plan/plan.h"

/* NULL if the loss is valid for the task; else the names of the valid losses, for the message. */
static const char *expected_losses(train_loss loss, const struct dataset_info *data)
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
    const char *expected = expected_losses(loss, data);
    if (expected) {
        json_pointer_child(pointer, "loss", at);
        return as_fail_at(
            err, AS_E_INVAL, at, "%s: found %s, expected %s: data set '%s' is for %s%s", at,
            train_loss_name(loss), expected, spec->dataset, dataset_task_name(data->task),
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

static as_status check_target(const struct train_spec *spec, const struct dataset_info *data,
                              const char *pointer, struct as_err *err)
{
    char at[AS_ERR_POINTER_MAX];
    const char *name = target_transform_names[spec->target_transform];
    if (spec->target_transform == TARGET_AS_IS)
        return AS_OK;
    json_pointer_child(pointer, "target", at);
    json_pointer_child(at, "transform", at);
    if (data->task != DATASET_REGRESSION)
        return as_fail_at(err, AS_E_INVAL, at,
                          "%s: found %s, expected none: data set '%s' is for %s", at, name,
                          spec->dataset, dataset_task_name(data->task));
    if (train_spec_loss(spec, data->task) == TRAIN_BCE)
        return as_fail_at(err, AS_E_INVAL, at,
                          "%s: found %s, expected none: targets stay in [0, 1] with the loss bce",
                          at, name);
    return AS_OK;
}

static as_status check_rows(const struct train_spec *spec, const struct dataset_info *data,
                            const char *pointer, struct as_err *err)
{
    char at[AS_ERR_POINTER_MAX];
    bool tokens = data->input == DATASET_TOKEN_TEXT;
    /* one window for training and one for validation, each with the token that follows it */
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
    if (st != AS_OK)
        return st;
    st = check_class_weights(spec, data, pointer, err);
    if (st != AS_OK)
        return st;
    st = check_target(spec, data, pointer, err);
    if (st != AS_OK)
        return st;
    st = check_augment(spec, data, pointer, err);
    if (st != AS_OK)
        return st;
    st = check_metrics(spec, data, pointer, err);
    if (st != AS_OK)
        return st;
    st = net_plan_create(spec, &seen, pointer, &plan, err);
    if (st != AS_OK)
        return st;
    return check_rows(spec, data, pointer, err);
}
