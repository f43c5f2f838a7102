/* Training of trees by XGBoost.
 *
 * Random numbers. XGBoost draws rows and columns from a generator that its documentation calls
 * global, and the sampler of columns has a state of its own for as long as its updater lives.
 * Neither can be stored. So rounds are cut into segments: at each boundary the seed is set to a
 * function of (seed, round), and the updater is made anew (the tree method is changed and changed
 * back; nothing is computed with the other one). A run that is restored at a boundary therefore
 * draws what the run that was not interrupted draws. Without sampling each round is a boundary and
 * nothing is reset; see SEGMENT for the cost otherwise.
 *
 * A forest. Each tree is fitted to the same gradients, those of the mean squared error at 0: -y and
 * 1, times the row's weight. With XGBoost's learning rate 1 / N the sum of N trees is their mean.
 * An XGBoost forest in one round (num_parallel_tree) could neither report nor stop before its end,
 * and its Newton step from p = 0.5 gives probabilities that are far from the classes' shares.
 *
 * The base score is 0: standardised targets have the mean 0, and classes begin with equal
 * probabilities. */
#include "model/trees/xgboost_train.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "data/random_purpose.h"
#include "model/trees/tree_inputs.h"
#include "model/trees/tree_model.h"
#include "model/trees/xgboost.h"

/* A stop loses at most SEGMENT - 1 rounds; making the updater anew costs more, the shorter a
 * segment is (decision 2006). */
#define SEGMENT 8 /* rounds between boundaries when rows or columns are sampled */

#define MAX_PARAMETERS 24
#define VALUE_SIZE 40

struct parameter {
    const char *name; /* static */
    char value[VALUE_SIZE];
};

struct xgboost_train {
    const struct xgboost *x;
    struct parameter parameters[MAX_PARAMETERS];
    size_t n_parameters;
    xgb_matrix rows[2];  /* by tree_part; owned */
    size_t n[2];         /* rows of them */
    xgb_booster booster; /* owned */
    struct tree_outputs outputs;
    uint64_t seed;
    size_t total, done; /* rounds */
    bool samples;       /* rows or columns are drawn */
    float *grad, *hess; /* of a forest [n training rows, outputs.raw]; owned */
};

void xgboost_train_free(struct xgboost_train *t)
{
    if (!t)
        return;
    if (t->booster)
        (void)t->x->booster_free(t->booster);
    for (size_t i = 0; i < AS_ARRAY_LEN(t->rows); i++)
        if (t->rows[i])
            (void)t->x->matrix_free(t->rows[i]);
    free(t->grad);
    free(t->hess);
    free(t);
}

static as_status check(const struct xgboost_train *t, int result, const char *what,
                       struct as_err *err)
{
    return xgboost_check(t->x, result, what, err);
}

/* ---- rows ---- */

/* The kind of each input: "c" a category, "float" a number. */
static as_status set_kinds(struct xgboost_train *t, xgb_matrix m, const struct dataset_info *info,
                           struct as_err *err)
{
    size_t n = tree_inputs_count(info);
    AS_AUTO(as_freep) const char **kinds = as_calloc(n, sizeof *kinds);
    if (!kinds)
        return as_fail_nomem(err);
    if (info->input != DATASET_TABLE || dataset_categorical_columns(info) == 0)
        return AS_OK;
    for (size_t i = 0; i < n; i++)
        kinds[i] = tree_inputs_is_category(info, i) ? "c" : "float";
    return check(t, t->x->matrix_set_texts(m, "feature_type", kinds, n), "kinds of inputs", err);
}

/* Give the matrix what is to be predicted: a number for each output of the booster. XGBoost takes a
 * class as its index; a forest takes it as 0 and 1 for each output. */
static as_status set_targets(struct xgboost_train *t, xgb_matrix m, const struct tree_rows *rows,
                             struct as_err *err)
{
    char array[XGBOOST_ARRAY_MAX];
    size_t raw = rows->labels && !t->outputs.forest ? 1 : t->outputs.raw;
    AS_AUTO(as_freep) float *own = rows->labels ? as_calloc(rows->n * raw, sizeof *own) : NULL;
    if (rows->labels && !own)
        return as_fail(err, AS_E_NOMEM, "out of memory for the targets of %zu rows", rows->n);
    for (size_t i = 0; rows->labels && i < rows->n; i++) {
        int32_t label = rows->labels[i];
        if (raw == 1)
            own[i] = (float)label;
        else
            own[i * raw + (size_t)label] = 1;
    }
    xgboost_array(own ? own : rows->targets, rows->n, raw > 1 ? raw : 0, array);
    as_status st = check(t, t->x->matrix_set_info(m, "label", array), "the targets", err);
    if (st != AS_OK || !rows->weights)
        return st;
    xgboost_array(rows->weights, rows->n, 0, array);
    return check(t, t->x->matrix_set_info(m, "weight", array), "the weights", err);
}

static as_status set_rows(struct xgboost_train *t, tree_part part, const struct tree_rows *rows,
                          const struct tree_train_opts *opts, struct as_err *err)
{
    t->n[part] = rows->n;
    /* The rows of matrix_from_dense(), bit by bit; that one looks up the type of each value. */
    as_status st =
        check(t,
              t->x->matrix_from_floats(rows->inputs, rows->n, tree_inputs_count(opts->info), NAN,
                                       &t->rows[part], (int)opts->threads),
              "the rows", err);
    if (st != AS_OK)
        return st;
    st = set_kinds(t, t->rows[part], opts->info, err);
    return st == AS_OK ? set_targets(t, t->rows[part], rows, err) : st;
}

/* The gradients of every tree of a forest. */
static as_status set_gradients(struct xgboost_train *t, const struct tree_rows *rows,
                               struct as_err *err)
{
    size_t raw = t->outputs.raw;
    t->grad = as_calloc(rows->n * raw, sizeof *t->grad);
    t->hess = as_calloc(rows->n * raw, sizeof *t->hess);
    if (!t->grad || !t->hess)
        return as_fail(err, AS_E_NOMEM, "out of memory for the gradients of %zu rows", rows->n);
    for (size_t i = 0; i < rows->n; i++) {
        float weight = rows->weights ? rows->weights[i] : 1;
        for (size_t c = 0; c < raw; c++) {
            float y = !rows->labels ? rows->targets[i * raw + c]
                      : raw == 1    ? (float)rows->labels[i]
                                    : (float)(rows->labels[i] == (int32_t)c);
            t->grad[i * raw + c] = -y * weight;
            t->hess[i * raw + c] = weight;
        }
    }
    return AS_OK;
}

/* ---- parameters ---- */

static void add_text(struct xgboost_train *t, const char *name, const char *value)
{
    struct parameter *p = &t->parameters[t->n_parameters++]; /* MAX_PARAMETERS is enough */
    p->name = name;
    (void)snprintf(p->value, sizeof p->value, "%s", value);
}

static void add_number(struct xgboost_train *t, const char *name, double value)
{
    char text[VALUE_SIZE];
    add_text(t, name, as_format_double(value, text, sizeof text));
}

/* The share of the columns that a split may choose from. */
static double share_of_node(const struct xgboost_train *t, const struct tree_train_opts *opts)
{
    double share = opts->spec->model.trees.colsample_bynode;
    if (share > 0)
        return share;
    return t->outputs.classes ? 1 / sqrt((double)tree_inputs_count(opts->info)) : 1;
}

static void add_numbers(struct xgboost_train *t, const struct tree_train_opts *opts)
{
    const struct train_spec *spec = opts->spec;
    const struct train_trees_spec *s = &spec->model.trees;
    bool forest = t->outputs.forest, logistic = t->outputs.classes || t->outputs.shares;
    add_number(t, "eta", forest ? 1 / (double)s->n_estimators : s->learning_rate);
    add_number(t, "min_child_weight", s->min_child_weight);
    add_number(t, "gamma", s->gamma);
    add_number(t, "max_delta_step", forest ? 0 : s->max_delta_step);
    add_number(t, "lambda", s->reg_lambda);
    add_number(t, "alpha", s->reg_alpha);
    add_number(t, "subsample", s->subsample);
    add_number(t, "colsample_bytree", s->colsample_bytree);
    add_number(t, "colsample_bylevel", s->colsample_bylevel);
    add_number(t, "colsample_bynode", share_of_node(t, opts));
    add_number(t, "huber_slope", spec->huber_delta);
    add_number(t, "max_depth", (double)s->max_depth);
    add_number(t, "max_leaves", (double)s->max_leaves);
    add_number(t, "max_bin", (double)s->max_bin);
    add_number(t, "max_cat_to_onehot", (double)s->max_cat_to_onehot);
    /* The logistic objectives take a probability, the others a number. */
    add_number(t, "base_score", logistic && !forest ? 0.5 : 0);
}

static void add_parameters(struct xgboost_train *t, const struct tree_train_opts *opts)
{
    const struct train_spec *spec = opts->spec;
    /* A tree without a limit of leaves has the same splits in any order; node by node takes three
     * times as long. */
    bool by_loss = spec->model.trees.by_loss && spec->model.trees.max_leaves > 0;
    add_text(t, "booster", "gbtree");
    add_text(t, "tree_method", "hist");
    add_text(t, "objective",
             tree_outputs_objective(&t->outputs, train_spec_loss(spec, opts->info->task)));
    add_text(t, "disable_default_eval_metric", "1");
    add_text(t, "grow_policy", by_loss ? "lossguide" : "depthwise");
    add_number(t, "nthread", (double)opts->threads);
    if (t->outputs.classes && !t->outputs.forest && t->outputs.raw > 1)
        add_number(t, "num_class", (double)t->outputs.raw);
    add_numbers(t, opts);
}

static as_status set_text(struct xgboost_train *t, const char *name, const char *value,
                          struct as_err *err)
{
    return check(t, t->x->booster_set(t->booster, name, value), name, err);
}

/* Give the booster all parameters. It forgets them when it has configured itself: a new updater
 * would begin with XGBoost's defaults. */
static as_status set_parameters(struct xgboost_train *t, struct as_err *err)
{
    as_status st = AS_OK;
    for (size_t i = 0; st == AS_OK && i < t->n_parameters; i++)
        st = set_text(t, t->parameters[i].name, t->parameters[i].value, err);
    return st;
}

static bool samples(const struct train_trees_spec *s)
{
    return s->subsample < 1 || s->colsample_bytree < 1 || s->colsample_bylevel < 1 ||
           s->colsample_bynode < 1;
}

as_status xgboost_train_create(const struct tree_train_opts *opts, const struct tree_rows *training,
                               const struct tree_rows *held, struct xgboost_train **ret,
                               struct as_err *err)
{
    AS_AUTO(xgboost_train_freep) struct xgboost_train *t = as_calloc(1, sizeof *t);
    if (!t)
        return as_fail_nomem(err);
    as_status st = xgboost_open(&t->x, err);
    if (st != AS_OK)
        return st;
    t->outputs = tree_outputs_of(opts->spec, opts->info);
    t->seed = opts->seed;
    t->total = (size_t)opts->spec->model.trees.n_estimators;
    t->samples = samples(&opts->spec->model.trees);
    st = set_rows(t, TREE_TRAINING_ROWS, training, opts, err);
    if (st == AS_OK)
        st = set_rows(t, TREE_HELD_ROWS, held, opts, err);
    if (st == AS_OK && t->outputs.forest)
        st = set_gradients(t, training, err);
    if (st == AS_OK)
        st = check(t, t->x->booster_create(t->rows, AS_ARRAY_LEN(t->rows), &t->booster),
                   "a booster", err);
    if (st != AS_OK)
        return st;
    add_parameters(t, opts);
    st = set_parameters(t, err);
    if (st != AS_OK)
        return st;
    *ret = as_steal(t);
    return AS_OK;
}

/* ---- rounds ---- */

size_t xgboost_train_rounds(const struct xgboost_train *t)
{
    return t->done;
}

bool xgboost_train_is_boundary(const struct xgboost_train *t, size_t rounds)
{
    return !t->samples || rounds % SEGMENT == 0;
}

/* Configure the booster now: XGBoost does so when it is next used. */
static as_status configure(struct xgboost_train *t, struct as_err *err)
{
    xgb_size len;
    const char *text;
    return check(t, t->x->booster_config(t->booster, &len, &text), "the parameters", err);
}

/* Set the seed of the rounds from here to the next boundary, and forget what was drawn before. */
static as_status begin_segment(struct xgboost_train *t, struct as_err *err)
{
    char seed[24];
    struct rng r = draw_stream(t->seed, DRAW_TREES, t->done);
    (void)snprintf(seed, sizeof seed, "%" PRIu64, rng_below(&r, (uint64_t)1 << 31));
    as_status st = set_text(t, "seed", seed, err);
    if (st == AS_OK)
        st = set_text(t, "tree_method", "approx", err);
    if (st == AS_OK)
        st = configure(t, err);
    return st == AS_OK ? set_parameters(t, err) : st; /* tree_method is hist again */
}

as_status xgboost_train_round(struct xgboost_train *t, struct as_err *err)
{
    as_status st = AS_OK;
    if (t->samples && xgboost_train_is_boundary(t, t->done))
        st = begin_segment(t, err);
    if (st != AS_OK)
        return st;
    xgb_matrix rows = t->rows[TREE_TRAINING_ROWS];
    int done = t->outputs.forest ? t->x->booster_boost(t->booster, rows, t->grad, t->hess,
                                                       t->n[TREE_TRAINING_ROWS] * t->outputs.raw)
                                 : t->x->booster_update(t->booster, (int)t->done, rows);
    st = check(t, done, "a round", err);
    t->done += st == AS_OK;
    return st;
}

as_status xgboost_train_predict(struct xgboost_train *t, tree_part part, float *ret,
                                struct as_err *err)
{
    static const char config[] =
        "{\"type\": 0, \"training\": false, \"iteration_begin\": 0, \"iteration_end\": 0, "
        "\"strict_shape\": true}";
    const xgb_size *shape = NULL;
    xgb_size dims = 0;
    const float *raw = NULL;
    as_status st =
        check(t, t->x->booster_predict(t->booster, t->rows[part], config, &shape, &dims, &raw),
              "predicting", err);
    if (st != AS_OK)
        return st;
    float scale = (float)((double)t->total / (double)(t->done > 0 ? t->done : 1));
    tree_outputs_apply(&t->outputs, raw, t->n[part], t->done < t->total ? scale : 1, ret);
    return AS_OK;
}

/* ---- the model ---- */

static as_status save_booster(struct xgboost_train *t, xgb_booster b, char **ret, size_t *ret_len,
                              struct as_err *err)
{
    xgb_size len = 0;
    const char *bytes = NULL;
    as_status st = check(t, t->x->booster_save(b, "{\"format\": \"ubj\"}", &len, &bytes),
                         "storing the trees", err);
    if (st != AS_OK)
        return st;
    char *copy = as_calloc(len, 1);
    if (!copy)
        return as_fail(err, AS_E_NOMEM, "out of memory for trees of %zu bytes", (size_t)len);
    memcpy(copy, bytes, len);
    *ret = copy;
    *ret_len = (size_t)len;
    return AS_OK;
}

as_status xgboost_train_save(struct xgboost_train *t, size_t rounds, char **ret, size_t *ret_len,
                             struct as_err *err)
{
    xgb_booster part = NULL;
    if (rounds >= t->done)
        return save_booster(t, t->booster, ret, ret_len, err);
    as_status st =
        check(t, t->x->booster_slice(t->booster, 0, (int)rounds, 1, &part), "taking rounds", err);
    if (st == AS_OK)
        st = save_booster(t, part, ret, ret_len, err);
    if (part)
        (void)t->x->booster_free(part);
    return st;
}

as_status xgboost_train_restore(struct xgboost_train *t, const void *bytes, size_t len,
                                struct as_err *err)
{
    int rounds = 0;
    xgb_size inputs = 0;
    as_status st = xgboost_load(t->x, t->booster, bytes, len, err);
    if (st == AS_OK)
        st = set_parameters(t, err);
    if (st == AS_OK)
        st = check(t, t->x->booster_rounds(t->booster, &rounds), "the rounds", err);
    if (st == AS_OK)
        st = check(t, t->x->booster_inputs(t->booster, &inputs), "the inputs", err);
    if (st == AS_E_INTERNAL)
        return as_err_prefix(err, AS_E_INVAL, "no model of trees");
    if (st == AS_OK && (rounds < 1 || (size_t)rounds > t->total))
        return as_fail(err, AS_E_INVAL, "the trees are of %d rounds, expected 1 to %zu", rounds,
                       t->total);
    t->done = (size_t)(rounds > 0 ? rounds : 0);
    return st;
}
