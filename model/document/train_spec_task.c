/* Do the loss and the kind of model suit the task of a data set? A document cannot say so alone.
 * The check runs when a sweep is created and before training (model/plan/plan_check.c), and when a
 * stored model is read (model/file/manifest.c): what predicts with the model does not check
 * again. */
#include "base/json.h"
#include "model/document/train_spec.h"

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
    if (spec->model.kind == TRAIN_NAIVE_BAYES && data->task != DATASET_CLASSIFICATION) {
        json_pointer_child(pointer, "model", at);
        json_pointer_child(at, "kind", at);
        return as_fail_at(err, AS_E_INVAL, at,
                          "%s: found naive_bayes, which predicts classes, expected another kind: "
                          "the task of data set '%s' is %s",
                          at, spec->dataset, dataset_task_name(data->task));
    }
    return AS_OK;
}

/* Kinds that are no networks take rows of a table, or the pixels of an image as such a row. */
static as_status check_rows(const struct train_spec *spec, const struct dataset_info *data,
                            const char *pointer, struct as_err *err)
{
    char at[AS_ERR_POINTER_MAX];
    if (data->input != DATASET_TOKEN_TEXT)
        return AS_OK;
    json_pointer_child(pointer, "model", at);
    json_pointer_child(at, "kind", at);
    return as_fail_at(err, AS_E_INVAL, at,
                      "%s: found %s, expected transformer: the data set is a text of tokens", at,
                      train_model_name(&spec->model));
}

static as_status refuse_supervised(const struct train_spec *spec, const char *pointer,
                                   struct as_err *err)
{
    char at[AS_ERR_POINTER_MAX];
    json_pointer_child(pointer, "model", at);
    json_pointer_child(at, "kind", at);
    return as_fail_at(err, AS_E_INVAL, at,
                      "%s: found %s, expected kmeans: data set '%s' is for clustering, without a "
                      "target",
                      at, train_model_name(&spec->model), spec->dataset);
}

/* Pixels are numbers of one kind, and tokens are none. */
static as_status check_numbers(const struct train_spec *spec, const struct dataset_info *data,
                               const char *pointer, struct as_err *err)
{
    char at[AS_ERR_POINTER_MAX];
    if (!spec->piecewise || data->input == DATASET_TABLE)
        return AS_OK;
    json_pointer_child(pointer, "numbers", at);
    json_pointer_child(at, "encode", at);
    return as_fail_at(err, AS_E_INVAL, at,
                      "%s: found piecewise_linear, expected none: data set '%s' is %s", at,
                      spec->dataset, data->input == DATASET_IMAGE ? "images" : "a text of tokens");
}

as_status train_spec_check_task(const struct train_spec *spec, const struct dataset_info *data,
                                const char *pointer, struct as_err *err)
{
    bool kmeans = train_model_is_kmeans(&spec->model);
    if (data->task == DATASET_CLUSTERING && !kmeans)
        return refuse_supervised(spec, pointer, err);
    as_status st = kmeans ? AS_OK : check_loss(spec, data, pointer, err);
    if (st == AS_OK)
        st = check_numbers(spec, data, pointer, err);
    if (st != AS_OK || train_model_is_network(&spec->model))
        return st;
    return check_rows(spec, data, pointer, err);
}
