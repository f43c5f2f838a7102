#include "base/spec/train_spec.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/str.h"

static const char *const model_words[] = {"mlp", "linear", NULL};
static const char *const activation_words[] = {"relu", "tanh", "gelu", NULL};
static const char *const loss_words[] = {"auto", "cross_entropy", "mse", NULL};
static const char *const optimizer_words[] = {"sgd", "adamw", NULL};
static const char *const schedule_words[] = {"constant", "cosine", "one_cycle", NULL};
static const char *const precision_words[] = {"float32", NULL};

#define LARGEST_BELOW_ONE 0x1.fffffep-1 /* of float32: what is above would be 1 there */
#define LARGEST_RATE 1e6 /* past it nothing trains; keeps float32 arithmetic finite */

/* An optional object: AS_OK with *ret_there false when it is absent. */
static as_status open_section(struct json_fields *parent, const char *name, struct json_fields *ret,
                              bool *ret_there, struct as_err *err)
{
    json_t *obj = NULL;
    as_status st = json_fields_object(parent, name, JSON_OPTIONAL, &obj, err);
    *ret_there = st == AS_OK && obj;
    if (!*ret_there)
        return st;
    char pointer[AS_ERR_POINTER_MAX];
    json_pointer_child(parent->pointer, name, pointer);
    return json_fields_init(ret, obj, pointer, err);
}

static as_status parse_layers(const struct json_fields *f, const json_t *list,
                              struct train_model_spec *m, struct as_err *err)
{
    char at[AS_ERR_POINTER_MAX], item[AS_ERR_POINTER_MAX];
    json_pointer_child(f->pointer, "layers", at);
    size_t n = json_array_size(list);
    if (n > TRAIN_MAX_LAYERS)
        return as_fail_at(err, AS_E_INVAL, at, "%s: found %zu layers, expected at most %d", at, n,
                          TRAIN_MAX_LAYERS);
    for (size_t i = 0; i < n; i++) {
        const json_t *j = json_array_get(list, i);
        json_int_t width = json_integer_value(j);
        if (!json_is_integer(j) || width < 1 || width > TRAIN_MAX_WIDTH) {
            AS_AUTO(as_freep) char *found = json_format(j);
            json_pointer_index(at, i, item);
            return as_fail_at(err, AS_E_INVAL, item,
                              "%s: found %.80s, expected a whole number from 1 to %d", item,
                              found ? found : json_type_name(j), TRAIN_MAX_WIDTH);
        }
        m->layers[i] = width;
    }
    m->n_layers = n;
    return AS_OK;
}

static as_status parse_model(struct json_fields *doc, struct train_model_spec *m,
                             struct as_err *err)
{
    struct json_fields f;
    bool there;
    int kind = m->kind, activation = m->activation;
    json_t *layers = NULL;
    as_status st = open_section(doc, "model", &f, &there, err);
    if (st < 0 || !there)
        return st;
    st = json_fields_word(&f, "kind", JSON_OPTIONAL, model_words, &kind, err);
    if (st == AS_OK)
        st = json_fields_array(&f, "layers", JSON_OPTIONAL, &layers, err);
    if (st == AS_OK && layers)
        st = parse_layers(&f, layers, m, err);
    if (st == AS_OK)
        st = json_fields_word(&f, "activation", JSON_OPTIONAL, activation_words, &activation, err);
    if (st == AS_OK)
        st = json_fields_double(&f, "dropout", JSON_OPTIONAL, 0, LARGEST_BELOW_ONE, &m->dropout,
                                err);
    if (st == AS_OK)
        st = json_fields_end(&f, err);
    m->kind = (train_model_kind)kind;
    m->activation = (train_activation)activation;
    if (m->kind == TRAIN_LINEAR)
        m->n_layers = 0;
    return st;
}

static as_status parse_optimizer(struct json_fields *doc, struct train_optimizer_spec *o,
                                 struct as_err *err)
{
    struct json_fields f;
    bool there;
    int kind = o->kind;
    as_status st = open_section(doc, "optimizer", &f, &there, err);
    if (st < 0 || !there)
        return st;
    st = json_fields_word(&f, "kind", JSON_OPTIONAL, optimizer_words, &kind, err);
    o->kind = (train_optimizer_kind)kind;
    o->lr = o->kind == TRAIN_SGD ? 0.1 : 1e-3;
    if (st == AS_OK)
        st = json_fields_double(&f, "lr", JSON_OPTIONAL, FLT_MIN, LARGEST_RATE, &o->lr, err);
    if (st == AS_OK)
        st = json_fields_double(&f, "momentum", JSON_OPTIONAL, 0, LARGEST_BELOW_ONE, &o->momentum,
                                err);
    if (st == AS_OK)
        st = json_fields_bool(&f, "nesterov", JSON_OPTIONAL, &o->nesterov, err);
    if (st == AS_OK)
        st = json_fields_double(&f, "beta1", JSON_OPTIONAL, 0, LARGEST_BELOW_ONE, &o->beta1, err);
    if (st == AS_OK)
        st = json_fields_double(&f, "beta2", JSON_OPTIONAL, 0, LARGEST_BELOW_ONE, &o->beta2, err);
    if (st == AS_OK)
        st = json_fields_double(&f, "eps", JSON_OPTIONAL, FLT_MIN, 1, &o->eps, err);
    if (st == AS_OK)
        st = json_fields_double(&f, "weight_decay", JSON_OPTIONAL, 0, LARGEST_RATE,
                                &o->weight_decay, err);
    return st < 0 ? st : json_fields_end(&f, err);
}

static as_status parse_schedule(struct json_fields *doc, struct train_spec *spec,
                                struct as_err *err)
{
    struct train_schedule_spec *s = &spec->schedule;
    struct json_fields f;
    bool there;
    int kind = s->kind;
    as_status st = open_section(doc, "schedule", &f, &there, err);
    if (st < 0 || !there)
        return st;
    st = json_fields_word(&f, "kind", JSON_OPTIONAL, schedule_words, &kind, err);
    s->kind = (train_schedule_kind)kind;
    if (st == AS_OK)
        st = json_fields_double(&f, "warmup_epochs", JSON_OPTIONAL, 0, (double)spec->epochs,
                                &s->warmup_epochs, err);
    if (st == AS_OK)
        st = json_fields_double(&f, "pct_start", JSON_OPTIONAL, 1e-6, 1 - 1e-6, &s->pct_start, err);
    if (st == AS_OK)
        st = json_fields_double(&f, "min_lr", JSON_OPTIONAL, 0, LARGEST_RATE, &s->min_lr, err);
    if (st == AS_OK)
        st = json_fields_end(&f, err);
    if (st == AS_OK && s->kind != TRAIN_CONSTANT && s->min_lr > spec->optimizer.lr) {
        char at[AS_ERR_POINTER_MAX];
        json_pointer_child(f.pointer, "min_lr", at);
        st = as_fail_at(err, AS_E_INVAL, at, "%s: found %g, expected at most the learning rate %g",
                        at, s->min_lr, spec->optimizer.lr);
    }
    return st;
}

static as_status parse_validation(struct json_fields *doc, struct train_spec *spec,
                                  struct as_err *err)
{
    struct json_fields f;
    bool there;
    as_status st = open_section(doc, "validation", &f, &there, err);
    if (st < 0 || !there)
        return st;
    st = json_fields_double(&f, "fraction", JSON_OPTIONAL, 1e-6, 1 - 1e-6,
                            &spec->validation_fraction, err);
    if (st == AS_OK)
        st = json_fields_i64(&f, "seed", JSON_OPTIONAL, 0, INT64_MAX, &spec->validation_seed, err);
    return st < 0 ? st : json_fields_end(&f, err);
}

static as_status parse_dataset(struct json_fields *f, struct train_spec *spec, struct as_err *err)
{
    const char *name = NULL;
    as_status st = json_fields_str(f, "dataset", JSON_REQUIRED, &name, err);
    if (st < 0)
        return st;
    if (!as_slug_valid(name)) {
        char at[AS_ERR_POINTER_MAX];
        json_pointer_child(f->pointer, "dataset", at);
        return as_fail_at(err, AS_E_INVAL, at,
                          "%s: found '%.80s', expected the name of a data set (a-z, 0-9, '.', '_', "
                          "'-', at most 63)",
                          at, name);
    }
    (void)snprintf(spec->dataset, sizeof spec->dataset, "%s", name);
    return AS_OK;
}

static as_status parse_fields(struct json_fields *f, struct train_spec *spec, struct as_err *err)
{
    int loss = TRAIN_LOSS_AUTO, precision = 0;
    as_status st = parse_dataset(f, spec, err);
    if (st == AS_OK)
        st = json_fields_i64(f, "epochs", JSON_REQUIRED, 1, TRAIN_MAX_EPOCHS, &spec->epochs, err);
    if (st == AS_OK)
        st = json_fields_i64(f, "batch_size", JSON_OPTIONAL, 1, TRAIN_MAX_BATCH, &spec->batch_size,
                             err);
    if (st == AS_OK)
        st = json_fields_i64(f, "report_every", JSON_OPTIONAL, 1, TRAIN_MAX_EPOCHS,
                             &spec->report_every, err);
    if (st == AS_OK)
        st = json_fields_bool(f, "standardize", JSON_OPTIONAL, &spec->standardize, err);
    if (st == AS_OK)
        st = json_fields_word(f, "precision", JSON_OPTIONAL, precision_words, &precision, err);
    if (st == AS_OK)
        st = json_fields_word(f, "loss", JSON_OPTIONAL, loss_words, &loss, err);
    if (st == AS_OK)
        st = parse_model(f, &spec->model, err);
    if (st == AS_OK)
        st = parse_optimizer(f, &spec->optimizer, err);
    if (st == AS_OK)
        st = parse_schedule(f, spec, err);
    if (st == AS_OK)
        st = parse_validation(f, spec, err);
    spec->loss = (train_loss)loss;
    return st < 0 ? st : json_fields_end(f, err);
}

as_status train_spec_parse(const json_t *doc, const char *pointer, struct train_spec *ret,
                           struct as_err *err)
{
    struct train_spec spec = {
        .model = {.kind = TRAIN_MLP, .n_layers = 1, .layers = {64}, .activation = TRAIN_RELU},
        .optimizer = {.kind = TRAIN_ADAMW, .lr = 1e-3, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8},
        .schedule = {.kind = TRAIN_CONSTANT, .pct_start = 0.3},
        .batch_size = 32,
        .validation_fraction = 0.25,
        .standardize = true,
        .report_every = 1,
    };
    struct json_fields f;
    as_status st = json_fields_init(&f, doc, pointer, err);
    if (st == AS_OK)
        st = parse_fields(&f, &spec, err);
    if (st == AS_OK)
        *ret = spec;
    return st;
}

/* ---- against a data set ---- */

train_loss train_spec_loss(const struct train_spec *spec, dataset_task task)
{
    if (spec->loss != TRAIN_LOSS_AUTO)
        return spec->loss;
    return task == DATASET_CLASSIFICATION ? TRAIN_CROSS_ENTROPY : TRAIN_MSE;
}

static as_status check_parameters(const struct train_spec *spec, const struct dataset_info *data,
                                  const char *pointer, struct as_err *err)
{
    uint64_t total = 0, in = data->n_features; /* at most 33 * 2^32: no overflow */
    for (size_t i = 0; i <= spec->model.n_layers; i++) {
        uint64_t out = i < spec->model.n_layers ? (uint64_t)spec->model.layers[i] : data->n_outputs;
        total += in * out + out;
        in = out;
    }
    if (total <= TRAIN_MAX_PARAMETERS)
        return AS_OK;
    char model[AS_ERR_POINTER_MAX], at[AS_ERR_POINTER_MAX];
    json_pointer_child(pointer, "model", model);
    json_pointer_child(model, "layers", at);
    return as_fail_at(err, AS_E_TOO_LARGE, at,
                      "%s: the model has %" PRIu64 " parameters, expected at most %zu", at, total,
                      TRAIN_MAX_PARAMETERS);
}

as_status train_spec_check(const struct train_spec *spec, const struct dataset_info *data,
                           const char *pointer, struct as_err *err)
{
    char at[AS_ERR_POINTER_MAX];
    train_loss fits = data->task == DATASET_CLASSIFICATION ? TRAIN_CROSS_ENTROPY : TRAIN_MSE;
    if (train_spec_loss(spec, data->task) != fits) {
        json_pointer_child(pointer, "loss", at);
        return as_fail_at(err, AS_E_INVAL, at, "%s: found %s, expected %s: data set '%s' is for %s",
                          at, loss_words[spec->loss], loss_words[fits], spec->dataset,
                          dataset_task_name(data->task));
    }
    if (data->n_rows < 2) {
        json_pointer_child(pointer, "dataset", at);
        return as_fail_at(err, AS_E_INVAL, at, "%s: '%s' has %zu rows, expected 2 or more", at,
                          spec->dataset, data->n_rows);
    }
    return check_parameters(spec, data, pointer, err);
}

size_t train_spec_validation_rows(const struct train_spec *spec, size_t n_rows)
{
    size_t n = (size_t)llround(spec->validation_fraction * (double)n_rows);
    return n < 1 ? 1 : n > n_rows - 1 ? n_rows - 1 : n;
}

static const char *const class_metrics[] = {"train_loss",   "val_loss", "val_error",
                                            "val_accuracy", "lr",       NULL};
static const char *const number_metrics[] = {"train_loss", "val_loss", "val_rmse", "val_mae",
                                             "val_r2",     "lr",       NULL};
static const char *const all_metrics[] = {"train_loss",   "val_loss", "val_error",
                                          "val_accuracy", "val_rmse", "val_mae",
                                          "val_r2",       "lr",       NULL};

const char *const *train_spec_metrics(dataset_task task)
{
    return task == DATASET_CLASSIFICATION ? class_metrics
           : task == DATASET_REGRESSION   ? number_metrics
                                          : all_metrics;
}

bool train_spec_reports(const struct train_spec *spec, dataset_task task, const char *metric)
{
    (void)spec; /* every document reports the same; the question is still about it */
    for (const char *const *m = train_spec_metrics(task); *m; m++)
        if (as_streq(*m, metric))
            return true;
    return false;
}
