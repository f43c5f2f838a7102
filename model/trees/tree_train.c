/* Trees are computed by XGBoost, or, extra trees, by extra-trees/: it has none. */
#include "model/trees/tree_train.h"

#include <math.h>

#include "model/extra-trees/extra_train.h"
#include "model/trees/extra_shape.h"
#include "model/trees/tree_model.h"
#include "model/trees/xgboost_train.h"

struct tree_train {
    struct xgboost_train *xgboost; /* one of the two is NULL */
    struct extra_train *extra;
    struct tree_outputs outputs;
    size_t n[2]; /* rows, by tree_part */
    float *raw;  /* extra: [the larger n, outputs.raw] */
};

void tree_train_free(struct tree_train *t)
{
    if (!t)
        return;
    xgboost_train_free(t->xgboost);
    extra_train_free(t->extra);
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

/* ---- both ---- */

as_status tree_train_create(const struct tree_train_opts *opts, const struct tree_rows *training,
                            const struct tree_rows *held, struct tree_train **ret,
                            struct as_err *err)
{
    AS_AUTO(tree_train_freep) struct tree_train *t = as_calloc(1, sizeof *t);
    if (!t)
        return as_fail_nomem(err);
    t->outputs = tree_outputs_of(opts->spec, opts->info);
    as_status st = opts->spec->model.kind == TRAIN_EXTRA_TREES
                       ? create_extra(opts, training, held, t, err)
                       : xgboost_train_create(opts, training, held, &t->xgboost, err);
    if (st == AS_OK)
        *ret = as_steal(t);
    return st;
}

as_status tree_train_restore(struct tree_train *t, const void *bytes, size_t len,
                             struct as_err *err)
{
    return t->extra ? extra_train_restore(t->extra, bytes, len, err)
                    : xgboost_train_restore(t->xgboost, bytes, len, err);
}

size_t tree_train_rounds(const struct tree_train *t)
{
    return t->extra ? extra_train_trees(t->extra) : xgboost_train_rounds(t->xgboost);
}

bool tree_train_is_boundary(const struct tree_train *t, size_t rounds)
{
    return t->extra || xgboost_train_is_boundary(t->xgboost, rounds);
}

as_status tree_train_round(struct tree_train *t, struct as_err *err)
{
    return t->extra ? extra_train_tree(t->extra, err) : xgboost_train_round(t->xgboost, err);
}

as_status tree_train_predict(struct tree_train *t, tree_part part, float *ret, struct as_err *err)
{
    return t->extra ? predict_extra(t, part, ret, err)
                    : xgboost_train_predict(t->xgboost, part, ret, err);
}

as_status tree_train_save(struct tree_train *t, size_t rounds, char **ret, size_t *ret_len,
                          struct as_err *err)
{
    if (!t->extra)
        return xgboost_train_save(t->xgboost, rounds, ret, ret_len, err);
    if (rounds < extra_train_trees(t->extra))
        return as_fail(err, AS_E_INTERNAL, "only all of the extra trees are stored");
    return extra_train_save(t->extra, ret, ret_len, err);
}
