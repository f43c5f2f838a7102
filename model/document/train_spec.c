/* The parser of train documents: all sections but `model`, `validation`, `distributed` and
 * `privacy`.
 *
 * Each section has its defaults before its fields are read. The order of the sections matters:
 * `epochs` bounds the warm-up of `schedule`, the kind of `optimizer` decides its other defaults,
 * and the learning rate bounds `min_lr`.
 *
 * A field of another kind than the one chosen is read and checked, too: a sweep may search over
 * kinds, and then one document has the fields of all of them.
 *
 * Bounds keep float32 arithmetic finite. A share such as dropout ends at the largest float32 below
 * 1, because a value that rounds to 1 would divide by 0. */
#include "model/document/train_spec.h"

#include <float.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "model/document/train_spec_priv.h"

static const char *const train_loss_words[] = {"auto",  "cross_entropy", "mse",
                                               "huber", "bce",           NULL};
static const char *const optimizer_words[] = {"sgd",  "adam",    "adamw", "rmsprop", "lamb",
                                              "lion", "adagrad", "lbfgs", NULL};
static const char *const schedule_words[] = {"constant", "cosine", "one_cycle", "step", NULL};
static const char *const precision_words[] = {"float32", "bfloat16", NULL};

#define TREE_REPORTS 20 /* by default: a report takes about as long as a third of a round */
#define MAX_PAD 64
#define MAX_CUTOUT 1024

const char *train_loss_name(train_loss loss)
{
    return train_loss_words[loss];
}

void train_spec_done(struct train_spec *spec)
{
    free(spec->class_weights);
    free(spec->holdout_column);
    free(spec->weights);
    free(spec->buckets);
    json_decref(spec->distributed.blocks);
    spec->distributed.blocks = NULL;
    spec->class_weights = NULL;
    spec->holdout_column = spec->weights = spec->buckets = NULL;
    spec->n_class_weights = 0;
}

bool train_spec_wants(const struct train_spec *spec, const char *metric)
{
    for (size_t i = 0; i < spec->n_metrics; i++)
        if (as_streq(spec->metrics[i], metric))
            return true;
    return false;
}

/* ---- shared by the parts ---- */

as_status train_spec_numbers(struct json_fields *f, const struct train_number *list, size_t n,
                             struct as_err *err)
{
    for (size_t i = 0; i < n; i++) {
        as_status st = json_fields_double(f, list[i].name, JSON_OPTIONAL, list[i].min, list[i].max,
                                          list[i].ret, err);
        if (st != AS_OK)
            return st;
    }
    return AS_OK;
}

as_status train_spec_integers(struct json_fields *f, const struct train_integer *list, size_t n,
                              struct as_err *err)
{
    for (size_t i = 0; i < n; i++) {
        as_status st = json_fields_i64(f, list[i].name, JSON_OPTIONAL, list[i].min, list[i].max,
                                       list[i].ret, err);
        if (st != AS_OK)
            return st;
    }
    return AS_OK;
}

as_status train_spec_section(struct json_fields *parent, const char *name, struct json_fields *ret,
                             bool *ret_there, struct as_err *err)
{
    json_t *obj = NULL;
    as_status st = json_fields_object(parent, name, JSON_OPTIONAL, &obj, err);
    *ret_there = st == AS_OK && obj;
    if (!*ret_there)
        return st;
    char pointer[AS_ERR_POINTER_MAX];
    json_pointer_child(parent->pointer, name, pointer);
    return json_fields_under(ret, parent, obj, pointer, err);
}

as_status train_spec_wrong(const char *pointer, const char *name, const json_t *found,
                           const char *expected, struct as_err *err)
{
    char at[AS_ERR_POINTER_MAX];
    AS_AUTO(as_freep)
    char *text = json_is_object(found) || json_is_array(found) ? NULL : json_format(found);
    json_pointer_child(pointer, name, at);
    return as_fail_at(err, AS_E_INVAL, at, "%s: found %.80s, expected %s", at,
                      text ? text : json_type_name(found), expected);
}

const struct train_clash *train_spec_find_clash(const struct train_clash *list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (list[i].found)
            return &list[i];
    return NULL;
}

as_status train_spec_refuse_clash(const struct train_clash *list, size_t n, const char *at,
                                  const char *name, struct as_err *err)
{
    const struct train_clash *c = train_spec_find_clash(list, n);
    return c ? as_fail_at(err, AS_E_INVAL, at, "%s: found %s with %s: %s", at, name, c->what,
                          c->why)
             : AS_OK;
}

/* ---- sections ---- */

static void set_optimizer_defaults(struct train_optimizer_spec *o)
{
    o->lr = o->kind == TRAIN_SGD       ? 0.1
            : o->kind == TRAIN_ADAGRAD ? 0.01
            : o->kind == TRAIN_LBFGS   ? 1
            : o->kind == TRAIN_LION    ? 1e-4
                                       : 1e-3;
    o->beta2 = o->kind == TRAIN_LION || o->kind == TRAIN_RMSPROP ? 0.99 : 0.999;
    o->eps = o->kind == TRAIN_LAMB ? 1e-6 : o->kind == TRAIN_ADAGRAD ? 1e-10 : 1e-8;
}

static as_status parse_optimizer(struct json_fields *doc, struct train_optimizer_spec *o,
                                 struct as_err *err)
{
    struct json_fields f;
    bool there;
    int kind = o->kind;
    as_status st = train_spec_section(doc, "optimizer", &f, &there, err);
    if (st < 0 || !there)
        return st;
    st = json_fields_word(&f, "kind", JSON_OPTIONAL, optimizer_words, &kind, err);
    if (st != AS_OK)
        return st;
    o->kind = (train_optimizer_kind)kind;
    set_optimizer_defaults(o);
    /* rmsprop calls its decay alpha, as PyTorch does; `beta2` is for the other kinds */
    double alpha = o->beta2, beta2 = o->beta2;
    const struct train_number numbers[] = {
        {"lr", FLT_MIN, TRAIN_LARGEST_RATE, &o->lr},
        {"momentum", 0, TRAIN_BELOW_ONE, &o->momentum},
        {"beta1", 0, TRAIN_BELOW_ONE, &o->beta1},
        {"beta2", 0, TRAIN_BELOW_ONE, &beta2},
        {"alpha", 0, TRAIN_BELOW_ONE, &alpha},
        {"eps", FLT_MIN, 1, &o->eps},
        {"weight_decay", 0, TRAIN_LARGEST_RATE, &o->weight_decay},
        {"clip_norm", 0, TRAIN_LARGEST_RATE, &o->clip_norm},
        {"ema", 0, TRAIN_BELOW_ONE, &o->ema},
    };
    st = train_spec_numbers(&f, numbers, AS_ARRAY_LEN(numbers), err);
    if (st != AS_OK)
        return st;
    const struct train_integer history = {"history", 1, 100, &o->history};
    st = train_spec_integers(&f, &history, 1, err);
    if (st != AS_OK)
        return st;
    st = json_fields_bool(&f, "nesterov", JSON_OPTIONAL, &o->nesterov, err);
    o->beta2 = o->kind == TRAIN_RMSPROP ? alpha : beta2;
    if (st != AS_OK)
        return st;
    return json_fields_end(&f, err);
}

/* A cycle has at least one epoch, and a snapshot is taken at the end of one. */
static as_status parse_cycles(struct json_fields *f, int64_t longest, struct train_schedule_spec *s,
                              struct as_err *err)
{
    const int64_t most = longest < TRAIN_MAX_CYCLES ? longest : TRAIN_MAX_CYCLES;
    const struct train_integer cycles = {"cycles", 1, most, &s->cycles};
    as_status st = train_spec_integers(f, &cycles, 1, err);
    if (st != AS_OK)
        return st;
    /* cycles that are not given may be at fault, or a template: then any number may be right */
    const struct train_integer snapshots = {
        "snapshots", 1, f->is_faulty ? TRAIN_MAX_CYCLES : s->cycles, &s->snapshots};
    return train_spec_integers(f, &snapshots, 1, err);
}

static as_status parse_schedule(struct json_fields *doc, struct train_spec *spec,
                                struct as_err *err)
{
    struct train_schedule_spec *s = &spec->schedule;
    struct json_fields f;
    bool there;
    int kind = s->kind;
    as_status st = train_spec_section(doc, "schedule", &f, &there, err);
    if (st < 0 || !there)
        return st;
    const int64_t longest =
        spec->epochs ? spec->epochs : TRAIN_MAX_EPOCHS; /* 0: at fault, or trees */
    const struct train_number numbers[] = {
        {"warmup_epochs", 0, (double)longest, &s->warmup_epochs},
        {"pct_start", 1e-6, 1 - 1e-6, &s->pct_start},
        {"min_lr", 0, TRAIN_LARGEST_RATE, &s->min_lr},
        {"step_epochs", 1e-6, TRAIN_MAX_EPOCHS, &s->step_epochs},
        {"gamma", 1e-6, 1, &s->gamma},
    };
    st = json_fields_word(&f, "kind", JSON_OPTIONAL, schedule_words, &kind, err);
    s->kind = (train_schedule_kind)kind;
    if (st != AS_OK)
        return st;
    st = train_spec_numbers(&f, numbers, AS_ARRAY_LEN(numbers), err);
    if (st != AS_OK)
        return st;
    st = parse_cycles(&f, longest, s, err);
    if (st != AS_OK)
        return st;
    st = json_fields_end(&f, err);
    bool ends = s->kind == TRAIN_COSINE || s->kind == TRAIN_ONE_CYCLE;
    if (st != AS_OK)
        return st;
    if (f.faults && f.faults->n > 0)
        return AS_OK; /* the learning rate may be at fault */
    if (ends && s->min_lr > spec->optimizer.lr) {
        char at[AS_ERR_POINTER_MAX];
        json_pointer_child(f.pointer, "min_lr", at);
        return as_fail_at(err, AS_E_INVAL, at,
                          "%s: found %g, expected at most the learning rate %g", at, s->min_lr,
                          spec->optimizer.lr);
    }
    return AS_OK;
}

static as_status parse_augment(struct json_fields *doc, struct train_augment_spec *a,
                               struct as_err *err)
{
    struct json_fields f;
    bool there;
    as_status st = train_spec_section(doc, "augment", &f, &there, err);
    if (st < 0 || !there)
        return st;
    const struct train_integer sizes[] = {{"pad", 0, MAX_PAD, &a->pad},
                                          {"cutout", 0, MAX_CUTOUT, &a->cutout}};
    const struct train_number flip = {"flip", 0, 1, &a->flip};
    a->given = json_is_number(json_object_get(f.obj, "pad")) ||
               json_is_number(json_object_get(f.obj, "cutout")) ||
               json_is_number(json_object_get(f.obj, "flip"));
    st = train_spec_integers(&f, sizes, AS_ARRAY_LEN(sizes), err);
    if (st != AS_OK)
        return st;
    st = train_spec_numbers(&f, &flip, 1, err);
    if (st != AS_OK)
        return st;
    return json_fields_end(&f, err);
}

static as_status parse_target(struct json_fields *doc, struct train_spec *spec, struct as_err *err)
{
    struct json_fields f;
    bool there;
    int transform = TARGET_AS_IS;
    as_status st = train_spec_section(doc, "target", &f, &there, err);
    if (st < 0 || !there)
        return st;
    st = json_fields_word(&f, "transform", JSON_OPTIONAL, target_transform_names, &transform, err);
    if (st != AS_OK)
        return st;
    spec->target_transform = (target_transform)transform;
    return json_fields_end(&f, err);
}

static as_status parse_numbers(struct json_fields *doc, struct train_spec *spec, struct as_err *err)
{
    static const char *const words[] = {"none", "piecewise_linear", NULL};
    const struct train_integer bins = {"bins", 2, TRAIN_MAX_BINS, &spec->bins};
    struct json_fields f;
    bool there;
    int encode = 0;
    as_status st = train_spec_section(doc, "numbers", &f, &there, err);
    if (st < 0 || !there)
        return st;
    st = json_fields_word(&f, "encode", JSON_OPTIONAL, words, &encode, err);
    if (st == AS_OK)
        st = train_spec_integers(&f, &bins, 1, err);
    spec->piecewise = encode == 1;
    return st == AS_OK ? json_fields_end(&f, err) : st;
}

size_t train_spec_bins(const struct train_spec *spec)
{
    return spec->piecewise && !train_model_sees_cells(&spec->model) ? (size_t)spec->bins : 0;
}

/* ---- lists ---- */

/* `class_weights`: "balanced", or as many numbers as there are classes. */
static as_status parse_class_weights(struct json_fields *f, struct train_spec *spec,
                                     struct as_err *err)
{
    json_t *j = NULL;
    as_status st = json_fields_any(f, "class_weights", JSON_OPTIONAL, &j, err);
    if (st < 0 || !j)
        return st;
    spec->balanced = as_streq(json_string_value(j), "balanced");
    if (spec->balanced)
        return AS_OK;
    size_t n = json_array_size(j);
    if (n < 2 || n > DATASET_MAX_CLASSES)
        return train_spec_wrong(f->pointer, "class_weights", j,
                                "balanced, or a list of one number for each class", err);
    spec->class_weights = as_calloc(n, sizeof *spec->class_weights);
    if (!spec->class_weights)
        return as_fail_nomem(err);
    spec->n_class_weights = n;
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        double w = json_number_value(json_array_get(j, i));
        if (!json_is_number(json_array_get(j, i)) || !(w >= 0 && w <= TRAIN_LARGEST_RATE)) {
            char at[AS_ERR_POINTER_MAX], index[24];
            json_pointer_child(f->pointer, "class_weights", at);
            (void)snprintf(index, sizeof index, "%zu", i);
            return train_spec_wrong(at, index, json_array_get(j, i), "a number from 0 to 1e6", err);
        }
        spec->class_weights[i] = w;
        sum += w;
    }
    if (sum > 0)
        return AS_OK;
    return train_spec_wrong(f->pointer, "class_weights", j, "a weight above 0", err);
}

static as_status parse_metrics(struct json_fields *f, struct train_spec *spec, struct as_err *err)
{
    json_t *list = NULL;
    char at[AS_ERR_POINTER_MAX];
    as_status st = json_fields_array(f, "metrics", JSON_OPTIONAL, &list, err);
    if (st != AS_OK)
        return st;
    json_pointer_child(f->pointer, "metrics", at);
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *name = json_string_value(json_array_get(list, i));
        if (name && train_spec_request(spec, name))
            continue;
        AS_AUTO(str_done) struct str names = {0};
        char index[24];
        if (name && as_starts_with(name, "test_")) {
            st = as_fail_at(
                err, AS_E_INVAL, at,
                "%s: found '%.40s': test rows are measured at the end of each trial, apart "
                "from its reports, and need no wish",
                at, name);
            if ((st = faults_note(f->faults, st, err)) != AS_OK)
                return st;
            continue;
        }
        for (const char *const *m = train_spec_metrics(DATASET_TASK_AUTO); *m; m++)
            str_printf(&names, "%s%s", names.len ? ", " : "one of ", *m);
        (void)snprintf(index, sizeof index, "%zu", i);
        st = train_spec_wrong(at, index, json_array_get(list, i), str_cstr(&names), err);
        if ((st = faults_note(f->faults, st, err)) != AS_OK)
            return st;
    }
    return AS_OK;
}

/* ---- the document ---- */

static as_status parse_dataset(struct json_fields *f, struct train_spec *spec, struct as_err *err)
{
    const char *name = NULL;
    as_status st = json_fields_str(f, "dataset", JSON_REQUIRED, &name, err);
    if (st < 0 || !name)
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

static as_status parse_batches(struct json_fields *f, struct train_spec *spec, struct as_err *err)
{
    const struct train_integer batch = {"batch_size", 1, TRAIN_MAX_BATCH, &spec->batch_size};
    as_status st = train_spec_integers(f, &batch, 1, err);
    spec->micro_batch = spec->batch_size;
    const struct train_integer micro = {"micro_batch", 1, TRAIN_MAX_BATCH, &spec->micro_batch};
    if (st != AS_OK)
        return st;
    st = train_spec_integers(f, &micro, 1, err);
    if (st < 0 || f->is_faulty || spec->batch_size % spec->micro_batch == 0)
        return st;
    char at[AS_ERR_POINTER_MAX];
    json_pointer_child(f->pointer, "micro_batch", at);
    return as_fail_at(err, AS_E_INVAL, at,
                      "%s: found %" PRId64 ", expected a divisor of the batch size %" PRId64, at,
                      spec->micro_batch, spec->batch_size);
}

static as_status parse_plain(struct json_fields *f, struct train_spec *spec, struct as_err *err)
{
    int loss = spec->loss, precision = spec->precision;
    const struct train_number numbers[] = {
        {"label_smoothing", 0, 1, &spec->label_smoothing},
        {"huber_delta", FLT_MIN, TRAIN_LARGEST_RATE, &spec->huber_delta},
    };
    const struct train_integer every[] = {
        {"report_every", 1, TRAIN_MAX_EPOCHS, &spec->report_every},
        {"resample", 0, TRAIN_MAX_RESAMPLE, &spec->resample},
    };
    const struct train_integer epochs = {"epochs", 1, TRAIN_MAX_EPOCHS, &spec->epochs};
    as_status st = json_fields_note(f, parse_dataset(f, spec, err), err);
    if (st != AS_OK)
        return st;
    st = train_spec_integers(f, &epochs, 1, err); /* check_epochs(): is it needed? */
    if (st != AS_OK)
        return st;
    st = json_fields_note(f, parse_batches(f, spec, err), err);
    if (st != AS_OK)
        return st;
    st = train_spec_integers(f, every, AS_ARRAY_LEN(every), err);
    if (st != AS_OK)
        return st;
    st = json_fields_bool(f, "standardize", JSON_OPTIONAL, &spec->standardize, err);
    if (st != AS_OK)
        return st;
    st = json_fields_word(f, "precision", JSON_OPTIONAL, precision_words, &precision, err);
    if (st != AS_OK)
        return st;
    st = json_fields_word(f, "loss", JSON_OPTIONAL, train_loss_words, &loss, err);
    if (st != AS_OK)
        return st;
    st = train_spec_numbers(f, numbers, AS_ARRAY_LEN(numbers), err);
    spec->loss = (train_loss)loss;
    spec->precision = (train_precision)precision;
    return st;
}

/* Networks need epochs; trees have rounds (n_estimators), k-means a number of its own, neighbours
 * and naive Bayes one. */
static as_status check_epochs(struct json_fields *f, const struct train_spec *spec,
                              struct as_err *err)
{
    char at[AS_ERR_POINTER_MAX];
    if (!train_model_is_network(&spec->model) || !json_fields_lack(f, "epochs"))
        return AS_OK;
    json_pointer_child(f->pointer, "epochs", at);
    return as_fail_at(err, AS_E_INVAL, at, "%s is missing", at);
}

/* The rounds of trees are their epochs. This comes last: the field `epochs` bounds fields of
 * networks, which are checked here too. */
static void settle_rounds(const struct json_fields *f, struct train_spec *spec)
{
    if (train_model_is_network(&spec->model) || train_model_is_kmeans(&spec->model))
        return;
    if (!train_model_is_trees(&spec->model)) /* all rows at once */
        spec->model.trees.n_estimators = spec->report_every = 1;
    spec->epochs = spec->model.trees.n_estimators;
    if (json_fields_lack(f, "report_every"))
        spec->report_every = (spec->epochs + TREE_REPORTS - 1) / TREE_REPORTS;
}

static as_status parse_boost(struct json_fields *doc, struct train_spec *spec, struct as_err *err)
{
    struct train_boost_spec *b = &spec->boost;
    struct json_fields f;
    as_status st = train_spec_section(doc, "boost", &f, &b->given, err);
    if (st < 0 || !b->given)
        return st;
    const struct train_integer stage = {"stage", 0, TRAIN_MAX_STAGES - 1, &b->stage};
    const struct train_number rate = {"rate", FLT_MIN, 1, &b->rate};
    st = train_spec_integers(&f, &stage, 1, err);
    if (st == AS_OK)
        st = train_spec_numbers(&f, &rate, 1, err);
    return st == AS_OK ? json_fields_end(&f, err) : st;
}

/* A stage is one model, and the rows that it learns from are those that all stages do. */
static as_status check_boost(struct json_fields *f, const struct train_spec *spec,
                             struct as_err *err)
{
    char at[AS_ERR_POINTER_MAX];
    const char *with = train_spec_snapshots(spec) > 0           ? "schedule.snapshots"
                       : spec->target_transform != TARGET_AS_IS ? "target.transform"
                       : spec->loss == TRAIN_BCE                ? "loss bce"
                       : spec->refit                            ? "validation.refit"
                                                                : NULL;
    if (!spec->boost.given || !with)
        return AS_OK;
    json_pointer_child(f->pointer, "boost", at);
    return as_fail_at(err, AS_E_INVAL, at, "%s: found beside %s, expected a model without", at,
                      with);
}

/* `patience` keeps one of the weights, and ends anywhere in a cycle. */
static as_status check_snapshots(struct json_fields *f, const struct train_spec *spec,
                                 struct as_err *err)
{
    char at[AS_ERR_POINTER_MAX], child[AS_ERR_POINTER_MAX];
    if (train_spec_snapshots(spec) == 0 || spec->patience == 0)
        return AS_OK;
    json_pointer_child(f->pointer, "schedule", at);
    json_pointer_child(at, "snapshots", child);
    return as_fail_at(err, AS_E_INVAL, child,
                      "%s: found %" PRId64
                      " with patience, expected one of the two: patience keeps "
                      "one of the weights",
                      child, spec->schedule.snapshots);
}

int64_t train_spec_snapshots(const struct train_spec *spec)
{
    bool counts = spec->schedule.kind == TRAIN_COSINE && train_model_is_network(&spec->model);
    return counts ? spec->schedule.snapshots : 0;
}

int64_t train_spec_cycle_end(const struct train_spec *spec, int64_t c)
{
    return spec->epochs * (c + 1) / spec->schedule.cycles;
}

/* What goes with what. Not while there are faults: the fields that are read may be at fault. */
static as_status check_together(struct json_fields *f, struct train_spec *spec, struct as_err *err)
{
    as_status (*const checks[])(const struct json_fields *, const struct train_spec *,
                                struct as_err *) = {train_spec_check_lbfgs, train_spec_check_cocoa,
                                                    train_spec_check_partitions,
                                                    train_spec_check_model_parallel};
    bool is_faulty = f->faults && f->faults->n > 0;
    as_status st =
        is_faulty ? AS_OK : json_fields_note(f, train_spec_check_kmeans(f, spec, err), err);
    for (size_t i = 0; i < AS_ARRAY_LEN(checks); i++) {
        is_faulty = f->faults && f->faults->n > 0;
        if (st == AS_OK && !is_faulty)
            st = json_fields_note(f, checks[i](f, spec, err), err);
    }
    return st;
}

static as_status parse_fields(struct json_fields *f, struct train_spec *spec, struct as_err *err)
{
    as_status st;
    if ((st = parse_plain(f, spec, err)) != AS_OK ||
        (st = json_fields_note(f, parse_class_weights(f, spec, err), err)) != AS_OK ||
        (st = json_fields_note(f, train_spec_parse_model(f, &spec->model, err), err)) != AS_OK ||
        (st = json_fields_note(f, check_epochs(f, spec, err), err)) != AS_OK ||
        (st = json_fields_note(f, parse_optimizer(f, &spec->optimizer, err), err)) != AS_OK ||
        (st = json_fields_note(f, parse_schedule(f, spec, err), err)) != AS_OK ||
        (st = json_fields_note(f, parse_augment(f, &spec->augment, err), err)) != AS_OK ||
        (st = json_fields_note(f, train_spec_parse_validation(f, spec, err), err)) != AS_OK ||
        (st = json_fields_note(f, train_spec_parse_weights(f, spec, err), err)) != AS_OK ||
        (st = json_fields_note(f, parse_target(f, spec, err), err)) != AS_OK ||
        (st = json_fields_note(f, parse_numbers(f, spec, err), err)) != AS_OK ||
        (st = json_fields_note(f, check_snapshots(f, spec, err), err)) != AS_OK ||
        (st = json_fields_note(f, parse_boost(f, spec, err), err)) != AS_OK ||
        (st = json_fields_note(f, check_boost(f, spec, err), err)) != AS_OK ||
        (st = json_fields_note(f, train_spec_parse_stack(f, spec, err), err)) != AS_OK ||
        (st = json_fields_note(f, parse_metrics(f, spec, err), err)) != AS_OK ||
        (st = json_fields_note(f, train_spec_parse_distributed(f, spec, err), err)) != AS_OK ||
        (st = json_fields_note(f, train_spec_parse_privacy(f, spec, err), err)) != AS_OK ||
        (st = check_together(f, spec, err)) != AS_OK)
        return st;
    settle_rounds(f, spec);
    return json_fields_end(f, err);
}

as_status train_spec_parse_noting(const json_t *doc, const char *pointer, struct faults *faults,
                                  struct train_spec *ret, struct as_err *err)
{
    struct train_spec spec = {
        .model = {.kind = TRAIN_MLP,
                  .n_layers = 1,
                  .layers = {64},
                  .activation = TRAIN_RELU,
                  .depth = 4,
                  .width = 128,
                  .heads = 4,
                  .context = 64,
                  .neighbours = 5,
                  .smoothing = 1,
                  .var_smoothing = 1e-3},
        .huber_delta = 1,
        .optimizer = {.kind = TRAIN_ADAMW, .beta1 = 0.9, .history = 10},
        .boost = {.rate = 0.3},
        .schedule = {.kind = TRAIN_CONSTANT,
                     .pct_start = 0.3,
                     .cycles = 1,
                     .step_epochs = 10,
                     .gamma = 0.1},
        .batch_size = 32,
        .validation_fraction = 0.25,
        .standardize = true,
        .bins = 16,
        .report_every = 1,
    };
    set_optimizer_defaults(&spec.optimizer);
    struct json_fields f;
    as_status st = json_fields_init(&f, doc, pointer, err);
    if (st != AS_OK)
        return faults_note(faults, st, err) == AS_OK ? err->code : st;
    f.faults = faults;
    st = parse_fields(&f, &spec, err);
    if (faults && faults->n > 0)
        st = faults_first(faults, err);
    if (st != AS_OK) {
        train_spec_done(&spec);
        return st;
    }
    *ret = spec;
    return AS_OK;
}

as_status train_spec_parse(const json_t *doc, const char *pointer, struct train_spec *ret,
                           struct as_err *err)
{
    return train_spec_parse_noting(doc, pointer, NULL, ret, err);
}
