/* Trees are computed by XGBoost, or, extra trees, by extra-trees/: it has none. Neighbours are the
 * rows themselves, and naive Bayes is counts of them: both are done when the training is made. */
#include "model/trees/tree_train.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/extra-trees/extra_train.h"
#include "base/mem.h"
#include "model/neighbours/neighbours.h"
#include "model/trees/bayes_shape.h"
#include "model/trees/extra_shape.h"
#include "model/trees/tree_inputs.h"
#include "model/trees/tree_model.h"
#include "model/trees/xgboost_train.h"

struct tree_train {
    struct xgboost_train *xgboost; /* of the three one is there */
    struct extra_train *extra;
    struct one_round *once;
    struct tree_outputs outputs;
    size_t n[2]; /* rows that are predicted, by tree_part */
    float *raw;  /* extra: [the larger n, outputs.raw] */
};

/* ---- models of one round: neighbours and naive Bayes ---- */

struct one_round {
    char *bytes; /* owned: the model, which is known from the beginning */
    size_t len, rounds;
    struct tree_model *model;
    float *inputs[2]; /* owned: [n, inputs] the rows of each part that are predicted */
};

static void one_round_free(struct one_round *t)
{
    if (!t)
        return;
    tree_model_free(t->model);
    free(t->bytes);
    free(t->inputs[TREE_TRAINING_ROWS]);
    free(t->inputs[TREE_HELD_ROWS]);
    free(t);
}

size_t tree_train_shown(const struct train_spec *spec, size_t n)
{
    return spec->model.kind == TRAIN_KNN && n > TREE_SHOWN_ROWS ? TREE_SHOWN_ROWS : n;
}

size_t tree_train_shown_row(size_t n, size_t shown, size_t i)
{
    return i * n / shown;
}

static as_status keep_inputs(const struct tree_rows *rows, size_t n, size_t inputs, float **ret,
                             struct as_err *err)
{
    *ret = as_calloc(n * inputs, sizeof **ret);
    if (!*ret)
        return as_fail(err, AS_E_NOMEM, "out of memory for %zu rows", n);
    for (size_t i = 0; i < n; i++)
        memcpy(*ret + i * inputs, rows->inputs + tree_train_shown_row(rows->n, n, i) * inputs,
               inputs * sizeof **ret);
    return AS_OK;
}

static as_status learn_neighbours(const struct tree_train_opts *opts, const struct tree_rows *from,
                                  const struct tree_outputs *o, struct one_round *ret,
                                  struct as_err *err)
{
    const struct neighbours_shape shape = {model_inputs_count(opts->spec, opts->info), o->values,
                                           o->classes};
    const struct neighbours_rows rows = {.x = from->inputs,
                                         .n = from->n,
                                         .labels = from->labels,
                                         .targets = from->targets,
                                         .weights = from->weights};
    return neighbours_write(&shape, &rows, &ret->bytes, &ret->len, err);
}

static as_status learn_bayes(const struct tree_train_opts *opts, const struct tree_rows *from,
                             struct one_round *ret, struct as_err *err)
{
    const struct train_model_spec *m = &opts->spec->model;
    const struct bayes_opts how = {m->smoothing, m->var_smoothing, !m->multinomial};
    const struct bayes_rows rows = {from->inputs, from->n, from->labels, from->weights};
    struct bayes_shape shape;
    AS_AUTO(as_freep) uint32_t *kinds = NULL;
    as_status st = bayes_shape_of(opts->info, &shape, &kinds, err);
    return st == AS_OK ? bayes_train(&shape, &how, &rows, &ret->bytes, &ret->len, err) : st;
}

static as_status create_one_round(const struct tree_train_opts *opts,
                                  const struct tree_rows *training, const struct tree_rows *held,
                                  struct tree_train *t, struct as_err *err)
{
    struct one_round *m = t->once = as_calloc(1, sizeof *m);
    if (!m)
        return as_fail_nomem(err);
    t->n[TREE_TRAINING_ROWS] = tree_train_shown(opts->spec, training->n);
    t->n[TREE_HELD_ROWS] = held->n;
    as_status st = opts->spec->model.kind == TRAIN_KNN
                       ? learn_neighbours(opts, training, &t->outputs, m, err)
                       : learn_bayes(opts, training, m, err);
    if (st == AS_OK)
        st = tree_model_load(m->bytes, m->len, opts->spec, opts->info, opts->threads, &m->model,
                             err);
    if (st != AS_OK)
        return st;
    size_t inputs = tree_model_inputs(m->model);
    st = keep_inputs(training, t->n[0], inputs, &m->inputs[TREE_TRAINING_ROWS], err);
    return st == AS_OK ? keep_inputs(held, held->n, inputs, &m->inputs[TREE_HELD_ROWS], err) : st;
}

static as_status save_one_round(const struct one_round *m, char **ret, size_t *ret_len,
                                struct as_err *err)
{
    char *copy = as_calloc(m->len, 1);
    if (!copy)
        return as_fail(err, AS_E_NOMEM, "out of memory for %zu bytes of a model", m->len);
    memcpy(copy, m->bytes, m->len);
    *ret = copy;
    *ret_len = m->len;
    return AS_OK;
}

/* ---- any ---- */

void tree_train_free(struct tree_train *t)
{
    if (!t)
        return;
    xgboost_train_free(t->xgboost);
    extra_train_free(t->extra);
    one_round_free(t->once);
    free(t->raw);
    free(t);
}

/* ---- extra trees ---- */

/* How many inputs a split is chosen from. */
static size_t candidates(const struct train_trees_spec *s, const struct tree_outputs *o, size_t n)
{
    double share = s->colsample_bynode > 0 ? s->colsample_bynode
                   : o->classes            ? 1 / sqrt((double)n)
                                           : 1;
    double k = round(share * (double)n);
    return k < 1 ? 1 : (size_t)k;
}

static struct extra_part part_of(const struct tree_rows *rows)
{
    return (struct extra_part){.x = rows->inputs,
                               .n = rows->n,
                               .labels = rows->labels,
                               .targets = rows->targets,
                               .weights = rows->weights};
}

static as_status create_extra(const struct tree_train_opts *opts, const struct tree_rows *training,
                              const struct tree_rows *held, struct tree_train *t,
                              struct as_err *err)
{
    const struct train_trees_spec *s = &opts->spec->model.trees;
    const struct extra_part of[2] = {part_of(training), part_of(held)};
    AS_AUTO(as_freep) uint32_t *codes = NULL;
    size_t most = training->n > held->n ? training->n : held->n;
    struct extra_opts extra = {.limits = {.max_depth = (size_t)s->max_depth,
                                          .min_leaf_weight = s->min_child_weight,
                                          .row_share = s->subsample},
                               .trees = (size_t)s->n_estimators,
                               .seed = opts->seed,
                               .threads = opts->threads};
    as_status st = extra_shape_of(opts->info, t->outputs.raw, &extra.shape, &codes, err);
    if (st != AS_OK)
        return st;
    extra.limits.candidates = candidates(s, &t->outputs, extra.shape.inputs);
    t->n[TREE_TRAINING_ROWS] = training->n;
    t->n[TREE_HELD_ROWS] = held->n;
    t->raw = as_calloc(most * t->outputs.raw, sizeof *t->raw);
    if (!t->raw)
        return as_fail(err, AS_E_NOMEM, "out of memory for %zu predictions", most);
    return extra_train_create(&extra, &of[0], &of[1], &t->extra, err);
}

static as_status predict_extra(struct tree_train *t, tree_part part, float *ret, struct as_err *err)
{
    extra_side side = part == TREE_TRAINING_ROWS ? EXTRA_TRAINING : EXTRA_HELD;
    as_status st = extra_train_predict(t->extra, side, t->raw, err);
    if (st == AS_OK)
        tree_outputs_apply(&t->outputs, t->raw, t->n[part], 1, ret);
    return st;
}

/* ---- all ---- */

as_status tree_train_create(const struct tree_train_opts *opts, const struct tree_rows *training,
                            const struct tree_rows *held, struct tree_train **ret,
                            struct as_err *err)
{
    AS_AUTO(tree_train_freep) struct tree_train *t = as_calloc(1, sizeof *t);
    if (!t)
        return as_fail_nomem(err);
    t->outputs = tree_outputs_of(opts->spec, opts->info);
    as_status st = !train_model_is_trees(&opts->spec->model)
                       ? create_one_round(opts, training, held, t, err)
                   : opts->spec->model.kind == TRAIN_EXTRA_TREES
                       ? create_extra(opts, training, held, t, err)
                       : xgboost_train_create(opts, training, held, &t->xgboost, err);
    if (st == AS_OK)
        *ret = as_steal(t);
    return st;
}

as_status tree_train_restore(struct tree_train *t, const void *bytes, size_t len,
                             struct as_err *err)
{
    if (t->once) { /* the rows are those of the job, whose fingerprint the caller has checked */
        t->once->rounds = 1;
        return AS_OK;
    }
    return t->extra ? extra_train_restore(t->extra, bytes, len, err)
                    : xgboost_train_restore(t->xgboost, bytes, len, err);
}

size_t tree_train_rounds(const struct tree_train *t)
{
    if (t->once)
        return t->once->rounds;
    return t->extra ? extra_train_trees(t->extra) : xgboost_train_rounds(t->xgboost);
}

bool tree_train_is_boundary(const struct tree_train *t, size_t rounds)
{
    return t->once || t->extra || xgboost_train_is_boundary(t->xgboost, rounds);
}

as_status tree_train_round(struct tree_train *t, struct as_err *err)
{
    if (t->once) {
        t->once->rounds = 1;
        return AS_OK;
    }
    return t->extra ? extra_train_tree(t->extra, err) : xgboost_train_round(t->xgboost, err);
}

as_status tree_train_predict(struct tree_train *t, tree_part part, float *ret, struct as_err *err)
{
    if (t->once)
        return tree_model_predict(t->once->model, t->once->inputs[part], t->n[part], ret, err);
    return t->extra ? predict_extra(t, part, ret, err)
                    : xgboost_train_predict(t->xgboost, part, ret, err);
}

as_status tree_train_save(struct tree_train *t, size_t rounds, char **ret, size_t *ret_len,
                          struct as_err *err)
{
    if (t->once)
        return save_one_round(t->once, ret, ret_len, err);
    if (!t->extra)
        return xgboost_train_save(t->xgboost, rounds, ret, ret_len, err);
    if (rounds < extra_train_trees(t->extra))
        return as_fail(err, AS_E_INTERNAL, "only all of the extra trees are stored");
    return extra_train_save(t->extra, ret, ret_len, err);
}
