/* What a document cannot say alone: that metrics, weights of classes and augmentation suit the data
 * set, that columns exist and have no missing cells, and that the model can be planned. Loss and
 * kind, which a stored model needs as well, are checked by model/document/train_spec_task.c.
 * The server calls it when a sweep is created, the trainer before it trains; both refuse with the
 * same pointer and text (decision 2001). */
#include "model/plan/plan_check.h"

#include "base/json.h"
#include "base/str.h"
#include "data/dataset_view.h"
#include "model/plan/plan.h"
#include "model/plan/plan_blocks.h"

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
    least = (size_t)spec->folds > least ? (size_t)spec->folds : least;
    if (data->n_rows >= least)
        return AS_OK;
    json_pointer_child(pointer, "dataset", at);
    return as_fail_at(err, AS_E_INVAL, at, "%s: '%s' has %zu %s, expected %zu or more", at,
                      spec->dataset, data->n_rows, tokens ? "tokens" : "rows", least);
}

/* Clusters begin as training rows. How many a column holds out is not known here. */
static as_status check_clusters(const struct train_spec *spec, const struct dataset_info *data,
                                const char *pointer, struct as_err *err)
{
    char at[AS_ERR_POINTER_MAX];
    size_t held = spec->holdout_column ? 1 : train_spec_validation_rows(spec, data->n_rows);
    int64_t most = (int64_t)(data->n_rows - held);
    if (!train_model_is_kmeans(&spec->model) || spec->model.kmeans.clusters <= most)
        return AS_OK;
    json_pointer_child(pointer, "model", at);
    json_pointer_child(at, "clusters", at);
    return as_fail_at(err, AS_E_INVAL, at,
                      "%s: found %lld, expected at most the %lld training rows of '%s'", at,
                      (long long)spec->model.kmeans.clusters, (long long)most, spec->dataset);
}

/* An iteration of L-BFGS and a round of CoCoA are of all rows. Which are held out is not known
 * here. */
static as_status check_whole_batch(const struct train_spec *spec, const struct dataset_info *data,
                                   const char *pointer, struct as_err *err)
{
    char at[AS_ERR_POINTER_MAX];
    bool text = data->input == DATASET_TOKEN_TEXT;
    size_t rows = text ? data->n_rows / (size_t)spec->model.context : data->n_rows;
    bool lbfgs = train_spec_is_lbfgs(spec);
    if (!(lbfgs || train_spec_is_cocoa(spec)) || (size_t)spec->batch_size >= rows)
        return AS_OK;
    json_pointer_child(pointer, "batch_size", at);
    return as_fail_at(err, AS_E_INVAL, at,
                      "%s: found %lld with the %s, expected at least the %zu %s of the data set: "
                      "each step is of all of them",
                      at, (long long)spec->batch_size, lbfgs ? "optimizer lbfgs" : "solver cocoa",
                      rows, text ? "windows" : "rows");
}

/* Each shard of a batch has a partition of the training rows. */
static as_status check_partitions(const struct train_spec *spec, const struct dataset_info *data,
                                  const char *pointer, struct as_err *err)
{
    char at[AS_ERR_POINTER_MAX];
    size_t shards = (size_t)(spec->batch_size / spec->micro_batch);
    if (!spec->distributed.lineage)
        return AS_OK;
    json_pointer_child(pointer, "distributed", at);
    json_pointer_child(at, "partitions", at);
    if (data->input == DATASET_TOKEN_TEXT)
        return as_fail_at(err, AS_E_INVAL, at,
                          "%s: found lineage, but data set '%s' is a text of tokens, expected rows",
                          at, spec->dataset);
    size_t held = train_spec_validation_rows(spec, data->n_rows);
    if (data->n_rows - held >= shards)
        return AS_OK;
    return as_fail_at(
        err, AS_E_INVAL, at,
        "%s: found lineage with %zu shards of a batch, each of which has a partition, "
        "expected at most as many as rows to train on, %zu",
        at, shards, data->n_rows - held);
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

/* Combinations that add predictions of rows. */
static as_status check_row_predictions(const struct train_spec *spec,
                                       const struct dataset_info *data, const char *pointer,
                                       struct as_err *err)
{
    char at[AS_ERR_POINTER_MAX], child[AS_ERR_POINTER_MAX];
    bool snapshots = train_spec_snapshots(spec) > 0;
    if (!(snapshots || spec->boost.given) || data->input != DATASET_TOKEN_TEXT)
        return AS_OK;
    json_pointer_child(pointer, snapshots ? "schedule" : "boost", at);
    json_pointer_child(at, snapshots ? "snapshots" : "stage", child);
    return as_fail_at(err, AS_E_INVAL, child,
                      "%s: data set '%s' is a text of tokens, expected rows to predict", child,
                      spec->dataset);
}

static as_status check_metrics(const struct train_spec *spec, const struct dataset_info *data,
                               const char *pointer, struct as_err *err)
{
    for (size_t i = 0; i < spec->n_metrics; i++) {
        if (train_spec_can_report(train_spec_task(spec, data->task), spec->metrics[i]))
            continue;
        char at[AS_ERR_POINTER_MAX];
        json_pointer_child(pointer, "metrics", at);
        return as_fail_at(err, AS_E_INVAL, at, "%s: found %s, which %s does not have", at,
                          spec->metrics[i], dataset_task_name(train_spec_task(spec, data->task)));
    }
    return AS_OK;
}

/* Rows are held in memory as the model sees them (data/preprocess). */
static as_status check_bins(const struct train_spec *spec, const struct net_data *seen,
                            const char *pointer, struct as_err *err)
{
    char at[AS_ERR_POINTER_MAX];
    size_t inputs = seen->numeric + seen->category_slots, values;
    if (train_spec_bins(spec) == 0 ||
        (!__builtin_mul_overflow(inputs, seen->rows, &values) && values <= DATASET_MAX_VALUES))
        return AS_OK;
    json_pointer_child(pointer, "numbers", at);
    json_pointer_child(at, "bins", at);
    return as_fail_at(err, AS_E_INVAL, at,
                      "%s: found %zu, which make %zu inputs of %zu rows, expected at most %zu "
                      "values",
                      at, train_spec_bins(spec), inputs, seen->rows, DATASET_MAX_VALUES);
}

/* The model is the rows, as the network would see them (model/neighbours). */
static as_status check_neighbours(const struct net_data *seen, const char *pointer,
                                  struct as_err *err)
{
    char at[AS_ERR_POINTER_MAX];
    size_t inputs = seen->kind == NET_IMAGES ? seen->height * seen->width * seen->channels
                                             : seen->numeric + seen->category_slots;
    size_t row = (inputs + seen->outputs + 1) * sizeof(float), bytes;
    if (!__builtin_mul_overflow(row, seen->rows, &bytes) && bytes <= TRAIN_MAX_NEIGHBOUR_BYTES)
        return AS_OK;
    json_pointer_child(pointer, "model", at);
    json_pointer_child(at, "kind", at);
    return as_fail_at(
        err, AS_E_INVAL, at,
        "%s: found knn, whose model has the rows: %zu of %zu inputs are more than %zu "
        "bytes; expected a smaller table, fewer numbers.bins or another kind",
        at, seen->rows, inputs, TRAIN_MAX_NEIGHBOUR_BYTES);
}

/* Naive Bayes has so many numbers of each class; as model/naive-bayes stores them. */
static as_status check_bayes(const struct net_data *seen, const char *pointer, struct as_err *err)
{
    char at[AS_ERR_POINTER_MAX];
    size_t inputs =
        seen->kind == NET_IMAGES ? seen->height * seen->width * seen->channels : seen->numeric;
    size_t values = 2 * inputs + seen->category_slots + 1;
    size_t bytes = (values * seen->outputs + 4 * inputs) * sizeof(double);
    if (bytes <= TRAIN_MAX_BAYES_BYTES)
        return AS_OK;
    json_pointer_child(pointer, "model", at);
    json_pointer_child(at, "kind", at);
    return as_fail_at(err, AS_E_INVAL, at,
                      "%s: found naive_bayes, of which %zu inputs and %zu classes are more than "
                      "%zu bytes; expected fewer of them, or another kind",
                      at, inputs + seen->category_slots, seen->outputs, TRAIN_MAX_BAYES_BYTES);
}

/* The plan of a network is made and forgotten: it says whether the model fits the data, and its
 * blocks the model. */
static as_status check_model(const struct train_spec *spec, const struct dataset_info *data,
                             const char *pointer, struct as_err *err)
{
    AS_AUTO(net_plan_freep) struct net_plan *plan = NULL;
    AS_AUTO(net_parts_done) struct net_parts blocks = {0};
    const struct net_data seen = net_data_for(data, spec);
    if (spec->model.kind == TRAIN_KNN)
        return check_neighbours(&seen, pointer, err);
    if (spec->model.kind == TRAIN_NAIVE_BAYES)
        return check_bayes(&seen, pointer, err);
    if (!train_model_is_network(&spec->model))
        return AS_OK;
    as_status st = check_bins(spec, &seen, pointer, err);
    if (st == AS_OK)
        st = net_plan_create(spec, &seen, pointer, &plan, err);
    return st == AS_OK ? net_plan_blocks(spec, plan, pointer, &blocks, err) : st;
}

/* ---- columns with a use of their own ---- */

/* Names of the columns, as many as fit into a message. */
static void list_columns(const struct dataset_info *data, struct str *out)
{
    for (size_t i = 0; i < data->n_features && out->len < 120; i = dataset_next_column(data, i))
        str_printf(out, "%s'%.40s'", i ? ", " : "", data->columns[i].name);
    if (out->len >= 120)
        str_puts(out, ", …");
}

/* A column that a field of the document names. Each row must have a cell. */
static as_status check_column(const struct dataset_info *data, const char *name, const char *at,
                              struct as_err *err)
{
    AS_AUTO(str_done) struct str names = {0};
    size_t column = dataset_find_column(data, name);
    if (!data->columns || data->format != DATASET_CSV)
        return as_fail_at(err, AS_E_INVAL, at,
                          "%s: found '%.60s', but the data set has no columns with names (%s), "
                          "expected a csv table",
                          at, name, dataset_format_name(data->format));
    list_columns(data, &names);
    if (column == SIZE_MAX)
        return as_fail_at(err, AS_E_INVAL, at, "%s: found '%.60s', expected one of %s", at, name,
                          str_cstr(&names));
    size_t missing = data->columns[column].n_missing + data->columns[column].n_empty;
    if (missing > 0)
        return as_fail_at(err, AS_E_INVAL, at,
                          "%s: column '%.60s' has %zu missing cells, expected none", at, name,
                          missing);
    return AS_OK;
}

static bool is_number(const struct dataset_column *c)
{
    return !c->categorical && c->part == DATASET_CELL;
}

static as_status check_columns(const struct train_spec *spec, const struct dataset_info *data,
                               const char *pointer, struct as_err *err)
{
    static const char *const ways[] = {[TRAIN_HOLD_COLUMN] = "column",
                                       [TRAIN_HOLD_ORDER] = "order",
                                       [TRAIN_HOLD_GROUPS] = "groups"};
    char validation[AS_ERR_POINTER_MAX], at[AS_ERR_POINTER_MAX];
    size_t columns[SPEC_MAX_COLUMNS];
    as_status st = AS_OK;
    json_pointer_child(pointer, "validation", validation);
    if (spec->holdout_column) {
        json_pointer_child(validation, ways[spec->holdout], at);
        st = check_column(data, spec->holdout_column, at, err);
    }
    if (st != AS_OK)
        return st;
    json_pointer_child(pointer, "weights", at);
    if (spec->weights)
        st = check_column(data, spec->weights, at, err);
    if (st != AS_OK)
        return st;
    if (spec->weights && !is_number(&data->columns[dataset_find_column(data, spec->weights)]))
        return as_fail_at(err, AS_E_INVAL, at,
                          "%s: column '%.60s' has text or dates, expected numbers", at,
                          spec->weights);
    json_pointer_child(pointer, "buckets", at);
    if (spec->buckets)
        st = check_column(data, spec->buckets, at, err);
    if (st != AS_OK)
        return st;
    if (spec->folds > 0 && data->input == DATASET_TOKEN_TEXT) {
        json_pointer_child(validation, "folds", at);
        return as_fail_at(err, AS_E_INVAL, at,
                          "%s: data set '%s' is a text of tokens, expected rows", at,
                          spec->dataset);
    }
    size_t n = spec_columns(data, spec, columns);
    if (n == 0 || n < dataset_file_columns(data))
        return AS_OK;
    return as_fail_at(err, AS_E_INVAL, validation,
                      "%s: no column is left for the inputs of the model", validation);
}

as_status train_spec_check(const struct train_spec *spec, const struct dataset_info *data,
                           const char *pointer, struct as_err *err)
{
    as_status st = train_spec_check_task(spec, data, pointer, err);
    if (st != AS_OK)
        return st;
    st = check_columns(spec, data, pointer, err);
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
    st = check_row_predictions(spec, data, pointer, err);
    if (st != AS_OK)
        return st;
    st = check_metrics(spec, data, pointer, err);
    if (st != AS_OK)
        return st;
    st = check_whole_batch(spec, data, pointer, err);
    if (st != AS_OK)
        return st;
    st = check_model(spec, data, pointer, err);
    if (st != AS_OK)
        return st;
    if ((st = check_partitions(spec, data, pointer, err)) != AS_OK ||
        (st = check_rows(spec, data, pointer, err)) != AS_OK)
        return st;
    return check_clusters(spec, data, pointer, err);
}
