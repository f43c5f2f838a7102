/* Stored models of trees, neighbours and naive Bayes. Extra trees are read and predict by
 * extra-trees/, neighbours by neighbours/, naive Bayes by naive-bayes/, all others by XGBoost.
 *
 * Predictions go through XGBoost's prediction "in place": it reads the caller's array, keeps
 * nothing, and its results lie in memory of the calling thread, so one model serves any number of
 * threads. A booster that is loaded is configured on its first use; tree_model_load() predicts one
 * row, so that later calls change nothing in it. This row also shows whether the booster has the
 * outputs that the document asks for. */
#include "model/trees/tree_model.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/str.h"
#include "model/neighbours/neighbours.h"
#include "model/trees/bayes_shape.h"
#include "model/trees/extra_shape.h"
#include "model/trees/tree_inputs.h"
#include "model/trees/xgboost.h"

_Static_assert(TRAIN_MAX_NEIGHBOUR_BYTES == NEIGHBOURS_MAX_BYTES &&
                   TRAIN_MAX_BAYES_BYTES == BAYES_MAX_BYTES,
               "what a document may ask for is what may be stored");

struct tree_model {
    train_model_kind kind;
    const struct xgboost *x; /* NULL: of a kind that XGBoost does not compute */
    xgb_booster booster;     /* owned */
    struct extra_forest extra;
    struct neighbours near;
    struct neighbours_opts nearest;
    struct bayes bayes;
    struct tree_outputs outputs;
    size_t inputs, rounds;
};

/* ---- outputs ---- */

struct tree_outputs tree_outputs_of(const struct train_spec *spec, const struct dataset_info *info)
{
    struct tree_outputs o = {.forest = spec->model.kind != TRAIN_BOOSTED_TREES,
                             .classes = info->task == DATASET_CLASSIFICATION,
                             .shares = train_spec_loss(spec, info->task) == TRAIN_BCE,
                             .values = info->n_outputs,
                             .raw = info->n_outputs};
    if (o.classes && info->n_outputs == 2)
        o.raw = 1;
    return o;
}

const char *tree_outputs_objective(const struct tree_outputs *o, train_loss loss)
{
    if (o->forest)
        return "reg:squarederror";
    if (o->classes)
        return o->raw == 1 ? "binary:logistic" : "multi:softprob";
    return o->shares             ? "reg:logistic"
           : loss == TRAIN_HUBER ? "reg:pseudohubererror"
                                 : "reg:squarederror";
}

static float limit_share(float v)
{
    return v < 0 ? 0 : v > 1 ? 1 : v; /* NaN stays */
}

static void share_out(float *p, size_t n)
{
    float sum = 0;
    for (size_t c = 0; c < n; c++)
        sum += p[c];
    for (size_t c = 0; c < n; c++)
        p[c] = sum > 0 || isnan(sum) ? p[c] / sum : 1 / (float)n;
}

/* Boosting gives the values themselves; of two classes, the probability of class 1. */
static void boosted_outputs(const struct tree_outputs *o, const float *raw, size_t rows, float *ret)
{
    if (o->raw == o->values) {
        memcpy(ret, raw, rows * o->raw * sizeof *ret);
        return;
    }
    for (size_t r = 0; r < rows; r++) {
        ret[2 * r] = 1 - raw[r];
        ret[2 * r + 1] = raw[r];
    }
}

void tree_outputs_apply(const struct tree_outputs *o, const float *raw, size_t rows, float scale,
                        float *ret)
{
    bool limited = o->forest && (o->classes || o->shares);
    if (!o->forest) {
        boosted_outputs(o, raw, rows, ret);
        return;
    }
    for (size_t r = 0; r < rows; r++, raw += o->raw, ret += o->values) {
        bool both = o->raw < o->values; /* two classes: raw is class 1 */
        for (size_t c = 0; c < o->raw; c++) {
            float v = raw[c] * scale;
            ret[both ? 1 : c] = limited ? limit_share(v) : v;
        }
        if (both)
            ret[0] = 1 - ret[1];
        else if (limited && o->classes)
            share_out(ret, o->values);
    }
}

/* ---- loading ---- */

const char *tree_model_tensor(const struct train_model_spec *m)
{
    return m->kind == TRAIN_KNN           ? "neighbours"
           : m->kind == TRAIN_NAIVE_BAYES ? "naive_bayes"
                                          : "trees";
}

void tree_model_free(struct tree_model *m)
{
    if (!m)
        return;
    if (m->booster)
        (void)m->x->booster_free(m->booster);
    extra_forest_done(&m->extra);
    neighbours_done(&m->near);
    bayes_done(&m->bayes);
    free(m);
}

static as_status load_booster(struct tree_model *m, const void *bytes, size_t len, size_t threads,
                              struct as_err *err)
{
    char text[24];
    const struct xgboost *x = m->x;
    (void)snprintf(text, sizeof text, "%zu", threads);
    as_status st = xgboost_check(x, x->booster_create(NULL, 0, &m->booster), "a booster", err);
    if (st == AS_OK)
        st = xgboost_check(x, x->booster_set(m->booster, "nthread", text), "nthread", err);
    return st == AS_OK ? xgboost_load(x, m->booster, bytes, len, err) : st;
}

/* What the booster was trained for says what its outputs are. */
static as_status check_objective(const struct tree_model *m, train_loss loss, struct as_err *err)
{
    const char *text = NULL, *expected = tree_outputs_objective(&m->outputs, loss);
    xgb_size len = 0;
    JSON_AUTO config = NULL;
    as_status st = xgboost_check(m->x, m->x->booster_config(m->booster, &len, &text),
                                 "what it was "
                                 "trained for",
                                 err);
    if (st == AS_OK)
        st = json_parse(text, (size_t)len, &config, err);
    if (st != AS_OK)
        return st;
    const json_t *learner = json_object_get(config, "learner");
    const char *found =
        json_string_value(json_object_get(json_object_get(learner, "objective"), "name"));
    if (as_streq(found, expected))
        return AS_OK;
    return as_fail(err, AS_E_INVAL,
                   "the stored trees have the objective %.60s, expected %s for this kind of model",
                   found ? found : "(none)", expected);
}

/* The booster must have the inputs and the outputs that data set and document call for. */
static as_status check_booster(struct tree_model *m, struct as_err *err)
{
    xgb_size inputs = 0;
    int rounds = 0;
    const struct xgboost *x = m->x;
    as_status st = xgboost_check(x, x->booster_inputs(m->booster, &inputs), "the inputs", err);
    if (st == AS_OK)
        st = xgboost_check(x, x->booster_rounds(m->booster, &rounds), "the rounds", err);
    if (st != AS_OK)
        return st;
    if (inputs != m->inputs)
        return as_fail(err, AS_E_INVAL, "the trees have %zu inputs, expected %zu", (size_t)inputs,
                       m->inputs);
    m->rounds = rounds > 0 ? (size_t)rounds : 0;
    AS_AUTO(as_freep) float *row = as_calloc(m->inputs, sizeof *row);
    AS_AUTO(as_freep) float *ret = as_calloc(m->outputs.values, sizeof *ret);
    if (!row || !ret)
        return as_fail_nomem(err);
    return tree_model_predict(m, row, 1, ret, err);
}

static as_status load_xgboost(struct tree_model *m, const void *bytes, size_t len, train_loss loss,
                              size_t threads, struct as_err *err)
{
    as_status st = xgboost_open(&m->x, err);
    if (st == AS_OK)
        st = load_booster(m, bytes, len, threads, err);
    if (st == AS_OK)
        st = check_objective(m, loss, err);
    return st == AS_OK ? check_booster(m, err) : st;
}

static as_status load_extra(struct tree_model *m, const void *bytes, size_t len,
                            const struct dataset_info *info, struct as_err *err)
{
    struct extra_shape shape;
    AS_AUTO(as_freep) uint32_t *codes = NULL;
    as_status st = extra_shape_of(info, m->outputs.raw, &shape, &codes, err);
    if (st == AS_OK)
        st = extra_forest_read(bytes, len, &shape, &m->extra, err);
    m->rounds = m->extra.n_trees;
    return st;
}

static as_status load_neighbours(struct tree_model *m, const void *bytes, size_t len,
                                 const struct train_spec *spec, size_t threads, struct as_err *err)
{
    const struct neighbours_shape shape = {m->inputs, m->outputs.values, m->outputs.classes};
    m->nearest = (struct neighbours_opts){.k = (size_t)spec->model.neighbours,
                                          .by_distance = spec->model.by_distance,
                                          .threads = threads};
    m->rounds = 1;
    return neighbours_read(bytes, len, &shape, &m->near, err);
}

static as_status load_bayes(struct tree_model *m, const void *bytes, size_t len,
                            const struct dataset_info *info, struct as_err *err)
{
    struct bayes_shape shape;
    AS_AUTO(as_freep) uint32_t *kinds = NULL;
    as_status st = bayes_shape_of(info, &shape, &kinds, err);
    m->rounds = 1;
    return st == AS_OK ? bayes_read(bytes, len, &shape, &m->bayes, err) : st;
}

as_status tree_model_load(const void *bytes, size_t len, const struct train_spec *spec,
                          const struct dataset_info *info, size_t threads, struct tree_model **ret,
                          struct as_err *err)
{
    AS_AUTO(tree_model_freep) struct tree_model *m = as_calloc(1, sizeof *m);
    if (!m)
        return as_fail_nomem(err);
    m->outputs = tree_outputs_of(spec, info);
    m->inputs = model_inputs_count(spec, info);
    m->kind = spec->model.kind;
    as_status st =
        m->kind == TRAIN_KNN           ? load_neighbours(m, bytes, len, spec, threads, err)
        : m->kind == TRAIN_NAIVE_BAYES ? load_bayes(m, bytes, len, info, err)
        : m->kind == TRAIN_EXTRA_TREES
            ? load_extra(m, bytes, len, info, err)
            : load_xgboost(m, bytes, len, train_spec_loss(spec, info->task), threads, err);
    if (st != AS_OK)
        return st;
    *ret = as_steal(m);
    return AS_OK;
}

size_t tree_model_inputs(const struct tree_model *m)
{
    return m->inputs;
}

size_t tree_model_outputs(const struct tree_model *m)
{
    return m->outputs.values;
}

size_t tree_model_rounds(const struct tree_model *m)
{
    return m->rounds;
}

/* ---- predicting ---- */

static as_status predict_extra(const struct tree_model *m, const float *inputs, size_t rows,
                               float *ret, struct as_err *err)
{
    AS_AUTO(as_freep) float *raw = as_calloc(rows * m->outputs.raw, sizeof *raw);
    as_status st =
        raw ? extra_forest_predict(&m->extra, inputs, rows, raw, err) : as_fail_nomem(err);
    if (st == AS_OK)
        tree_outputs_apply(&m->outputs, raw, rows, 1, ret);
    return st;
}

as_status tree_model_predict(const struct tree_model *m, const float *inputs, size_t rows,
                             float *ret, struct as_err *err)
{
    static const char config[] =
        "{\"type\": 0, \"training\": false, \"iteration_begin\": 0, \"iteration_end\": 0, "
        "\"strict_shape\": true, \"missing\": NaN, \"cache_id\": 0}";
    char array[XGBOOST_ARRAY_MAX];
    const xgb_size *shape = NULL;
    xgb_size dims = 0;
    const float *raw = NULL;
    if (rows == 0)
        return AS_OK;
    if (m->kind == TRAIN_KNN)
        return neighbours_predict(&m->near, &m->nearest, inputs, rows, ret, err);
    if (m->kind == TRAIN_NAIVE_BAYES)
        return bayes_predict(&m->bayes, inputs, rows, ret, err);
    if (!m->x)
        return predict_extra(m, inputs, rows, ret, err);
    xgboost_array(inputs, rows, m->inputs, array);
    as_status st = xgboost_check(
        m->x, m->x->booster_predict_dense(m->booster, array, config, NULL, &shape, &dims, &raw),
        "predicting", err);
    if (st != AS_OK)
        return st;
    size_t n = 1;
    for (xgb_size d = 0; d < dims; d++)
        n *= (size_t)shape[d];
    if (n != rows * m->outputs.raw)
        return as_fail(err, AS_E_INVAL, "the trees give %zu numbers for %zu rows, expected %zu", n,
                       rows, rows * m->outputs.raw);
    tree_outputs_apply(&m->outputs, raw, rows, 1, ret);
    return AS_OK;
}

/* ---- importance ---- */

struct score {
    size_t input;
    double gain, cover, weight; /* gain and cover are means over its splits */
};

/* One of the kinds of importance, into the member of scores at `at`. */
static as_status read_scores(const struct tree_model *m, const char *kind, size_t at,
                             struct score *scores, struct as_err *err)
{
    char config[64];
    xgb_size n = 0, dims = 0;
    const char **names = NULL;
    const xgb_size *shape = NULL;
    const float *values = NULL;
    (void)snprintf(config, sizeof config, "{\"importance_type\": \"%s\"}", kind);
    as_status st = xgboost_check(
        m->x, m->x->booster_score(m->booster, config, &n, &names, &dims, &shape, &values),
        "importance", err);
    for (xgb_size i = 0; st == AS_OK && i < n; i++) {
        char *end = NULL; /* "f12" */
        size_t input = names[i][0] == 'f' ? strtoul(names[i] + 1, &end, 10) : m->inputs;
        double v = (double)values[i];
        if (input < m->inputs && end && *end == 0)
            memcpy((char *)&scores[input] + at, &v, sizeof v);
    }
    return st;
}

static json_t *score_to_json(const struct dataset_info *info, const struct score *s, double all)
{
    char index[24];
    size_t column = tree_inputs_column(info, s->input);
    (void)snprintf(index, sizeof index, "%zu", column);
    const char *name = info->columns ? info->columns[column].name : index;
    return json_pack("{s:s, s:f, s:f, s:f, s:f}", "column", name, "gain", s->gain, "cover",
                     s->cover, "weight", s->weight, "share",
                     all > 0 ? s->gain * s->weight / all : 0.0);
}

/* The largest whole gain first. */
static int by_gain(const void *a, const void *b)
{
    const struct score *l = a, *r = b;
    double left = l->gain * l->weight, right = r->gain * r->weight;
    if (left > right || left < right)
        return left > right ? -1 : 1;
    return l->input < r->input ? -1 : l->input > r->input;
}

static as_status read_all_scores(const struct tree_model *m, struct score *scores,
                                 struct as_err *err)
{
    as_status st = read_scores(m, "gain", offsetof(struct score, gain), scores, err);
    if (st == AS_OK)
        st = read_scores(m, "cover", offsetof(struct score, cover), scores, err);
    if (st == AS_OK)
        st = read_scores(m, "weight", offsetof(struct score, weight), scores, err);
    return st;
}

static void extra_scores(const struct extra_forest *f, struct score *scores)
{
    for (size_t i = 0; i < f->inputs; i++) {
        double n = f->splits[i];
        scores[i].weight = n;
        scores[i].gain = n > 0 ? f->gain[i] / n : 0;
        scores[i].cover = n > 0 ? f->cover[i] / n : 0;
    }
}

as_status tree_model_importance(const struct tree_model *m, const struct dataset_info *info,
                                json_t **ret, struct as_err *err)
{
    AS_AUTO(as_freep) struct score *scores = as_calloc(m->inputs, sizeof *scores);
    JSON_AUTO list = json_array();
    if (!scores || !list)
        return as_fail_nomem(err);
    as_status st = AS_OK;
    if (m->x)
        st = read_all_scores(m, scores, err);
    else if (m->kind == TRAIN_EXTRA_TREES)
        extra_scores(&m->extra, scores);
    if (st != AS_OK)
        return st;
    double all = 0;
    for (size_t i = 0; i < m->inputs; i++) {
        scores[i].input = i;
        all += scores[i].gain * scores[i].weight;
    }
    qsort(scores, m->inputs, sizeof *scores, by_gain);
    for (size_t i = 0; i < m->inputs; i++)
        if (scores[i].weight > 0 &&
            json_array_append_new(list, score_to_json(info, &scores[i], all)) != 0)
            return as_fail_nomem(err);
    *ret = json_pack("{s:O}", "columns", list);
    return *ret ? AS_OK : as_fail_nomem(err);
}
