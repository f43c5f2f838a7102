/* The forest that grows: arrays in the order of the stored form, to which each tree is appended
 * with its indices moved. Trees that grew together wait in `next` until they are asked for.
 *
 * Predictions of the rows are kept as sums over the trees that were added since the last report, so
 * that all reports together cost one walk for each row and tree. */
#include "model/extra-trees/extra_train.h"

#include <pthread.h>
#include <string.h>

#include "data/random_purpose.h"

#define PIECE ((size_t)512) /* rows that a thread takes at once */

struct side {
    float *x; /* inputs of row r: x[r * row + i * step] */
    size_t n, row, step;
    double *sums; /* [n, outputs], over the first `trees` trees */
    size_t trees;
};

/* A vector that grows. */
struct vec {
    void *v;
    size_t n, cap;
};

struct extra_train {
    struct extra_opts opts;
    uint32_t *codes; /* [inputs]; owned, as all here */
    struct extra_rows rows;
    int32_t *labels;
    float *targets, *weights;
    struct side sides[2]; /* by extra_side */
    struct vec roots, nodes, values, words;
    double *splits;                /* [3, inputs], as of struct extra_forest */
    struct extra_grower **growers; /* [threads] */
    struct extra_tree *next;       /* [threads]: grown, not yet added */
    size_t n_next, first_next;
};

void extra_train_free(struct extra_train *t)
{
    if (!t)
        return;
    for (size_t i = 0; t->growers && i < t->opts.threads; i++)
        extra_grower_free(t->growers[i]);
    for (size_t i = 0; t->next && i < t->opts.threads; i++)
        extra_tree_done(&t->next[i]);
    for (size_t i = 0; i < AS_ARRAY_LEN(t->sides); i++) {
        free(t->sides[i].x);
        free(t->sides[i].sums);
    }
    free(t->growers);
    free(t->next);
    free(t->roots.v);
    free(t->nodes.v);
    free(t->values.v);
    free(t->words.v);
    free(t->splits);
    free(t->codes);
    free(t->labels);
    free(t->targets);
    free(t->weights);
    free(t);
}

/* ---- beginning ---- */

static void *copy_of(const void *from, size_t n, size_t size)
{
    void *to = as_calloc(n, size);
    if (to)
        memcpy(to, from, n * size);
    return to;
}

/* The training rows go input by input, as growing reads them; the held-out ones row by row. */
static as_status take_side(struct extra_train *t, extra_side which, const struct extra_part *part,
                           struct as_err *err)
{
    struct side *s = &t->sides[which];
    size_t inputs = t->opts.shape.inputs;
    bool turned = which == EXTRA_TRAINING;
    *s = (struct side){.n = part->n, .row = turned ? 1 : inputs, .step = turned ? part->n : 1};
    s->x = as_calloc(part->n * inputs, sizeof *s->x);
    s->sums = as_calloc(part->n * t->opts.shape.outputs, sizeof *s->sums);
    if (!s->x || !s->sums)
        return as_fail(err, AS_E_NOMEM, "out of memory for the inputs of %zu rows", part->n);
    for (size_t r = 0; r < part->n; r++)
        for (size_t i = 0; i < inputs; i++)
            s->x[r * s->row + i * s->step] = part->x[r * inputs + i];
    return AS_OK;
}

static as_status take_rows(struct extra_train *t, const struct extra_part *part, struct as_err *err)
{
    const struct extra_shape *shape = &t->opts.shape;
    t->labels = part->labels ? copy_of(part->labels, part->n, sizeof *t->labels) : NULL;
    t->targets =
        part->labels ? NULL : copy_of(part->targets, part->n * shape->outputs, sizeof *t->targets);
    t->weights = part->weights ? copy_of(part->weights, part->n, sizeof *t->weights) : NULL;
    if ((!t->labels && !t->targets) || (part->weights && !t->weights))
        return as_fail(err, AS_E_NOMEM, "out of memory for the targets of %zu rows", part->n);
    t->rows = (struct extra_rows){.x = t->sides[EXTRA_TRAINING].x,
                                  .n = part->n,
                                  .shape = *shape,
                                  .labels = t->labels,
                                  .targets = t->targets,
                                  .weights = t->weights};
    return AS_OK;
}

static as_status append(struct vec *v, size_t size, const void *from, size_t n, struct as_err *err)
{
    if (v->n + n > v->cap) {
        size_t cap = v->cap * 2 > v->n + n ? v->cap * 2 : v->n + n;
        as_status st = as_grow(&v->v, cap, size, err);
        if (st != AS_OK)
            return st;
        v->cap = cap;
    }
    if (n > 0)
        memcpy((char *)v->v + v->n * size, from, n * size);
    v->n += n;
    return AS_OK;
}

/* The rows of values that leaves of one class share: such a leaf is certain. */
static as_status begin_values(struct extra_train *t, struct as_err *err)
{
    size_t classes = extra_classes(&t->rows), k = t->opts.shape.outputs;
    AS_AUTO(as_freep) float *row = as_calloc(k, sizeof *row);
    if (!row)
        return as_fail_nomem(err);
    for (size_t c = 0; c < classes; c++) {
        row[k == 1 ? 0 : c] = k > 1 || c > 0;
        as_status st = append(&t->values, sizeof *row, row, k, err);
        if (st != AS_OK)
            return st;
        row[k == 1 ? 0 : c] = 0;
    }
    return AS_OK;
}

static as_status make_growers(struct extra_train *t, struct as_err *err)
{
    size_t n = t->opts.threads;
    t->growers = as_calloc(n, sizeof *t->growers);
    t->next = as_calloc(n, sizeof *t->next);
    t->splits = as_calloc(3 * t->opts.shape.inputs, sizeof *t->splits);
    if (!t->growers || !t->next || !t->splits)
        return as_fail_nomem(err);
    for (size_t i = 0; i < n; i++) {
        as_status st = extra_grower_create(&t->rows, &t->growers[i], err);
        if (st != AS_OK)
            return st;
    }
    return AS_OK;
}

as_status extra_train_create(const struct extra_opts *opts, const struct extra_part *training,
                             const struct extra_part *held, struct extra_train **ret,
                             struct as_err *err)
{
    AS_AUTO(extra_train_freep) struct extra_train *t = as_calloc(1, sizeof *t);
    size_t inputs = opts->shape.inputs;
    if (!t)
        return as_fail_nomem(err);
    if (inputs > EXTRA_MAX_INPUTS || training->n >= EXTRA_MAX_NODES / 2)
        return as_fail(err, AS_E_TOO_LARGE,
                       "extra trees of %zu rows and %zu inputs, expected at most %zu and %zu",
                       training->n, inputs, EXTRA_MAX_NODES / 2 - 1, EXTRA_MAX_INPUTS);
    t->opts = *opts;
    t->codes = copy_of(opts->shape.codes, inputs, sizeof *t->codes);
    t->opts.shape.codes = t->codes;
    as_status st = t->codes ? take_side(t, EXTRA_TRAINING, training, err) : as_fail_nomem(err);
    if (st == AS_OK)
        st = take_side(t, EXTRA_HELD, held, err);
    if (st == AS_OK)
        st = take_rows(t, training, err);
    if (st == AS_OK)
        st = begin_values(t, err);
    if (st == AS_OK)
        st = make_growers(t, err);
    if (st != AS_OK)
        return st;
    *ret = as_steal(t);
    return AS_OK;
}

size_t extra_train_trees(const struct extra_train *t)
{
    return t->roots.n;
}

/* ---- threads ---- */

/* A part of the work of all threads. */
struct work {
    pthread_t thread;
    bool has_thread;
    struct extra_train *t;
    void (*run)(struct work *w);
    extra_side side;
    size_t index, count; /* this part of so many */
    as_status st;
    struct as_err err;
};

static void *work_main(void *arg)
{
    struct work *w = arg;
    w->run(w);
    return NULL;
}

/* Do all parts, the first of them here. Where no thread can be made, its part is done here, too. */
static as_status share_work(struct extra_train *t, void (*run)(struct work *w), extra_side side,
                            size_t count, struct as_err *err)
{
    AS_AUTO(as_freep) struct work *all = as_calloc(count, sizeof *all);
    as_status st = AS_OK;
    if (!all)
        return as_fail_nomem(err);
    for (size_t i = 0; i < count; i++) {
        all[i] = (struct work){.t = t, .run = run, .side = side, .index = i, .count = count};
        all[i].has_thread = i > 0 && pthread_create(&all[i].thread, NULL, work_main, &all[i]) == 0;
    }
    for (size_t i = 0; i < count; i++)
        if (!all[i].has_thread)
            run(&all[i]);
    for (size_t i = 0; i < count; i++) {
        if (all[i].has_thread)
            (void)pthread_join(all[i].thread, NULL);
        if (st == AS_OK && all[i].st != AS_OK)
            st = as_fail(err, all[i].st, "%s", all[i].err.msg);
    }
    return st;
}

/* ---- growing ---- */

static void grow_one(struct work *w)
{
    struct extra_train *t = w->t;
    struct rng rng = draw_stream(t->opts.seed, DRAW_TREES, t->roots.n + w->index);
    w->st = extra_grow(t->growers[w->index], &t->opts.limits, &rng, &t->next[w->index], &w->err);
}

static as_status grow_next(struct extra_train *t, struct as_err *err)
{
    size_t left = t->opts.trees - t->roots.n;
    size_t n = left < t->opts.threads ? left : t->opts.threads;
    for (size_t i = 0; i < t->opts.threads; i++)
        extra_tree_done(&t->next[i]);
    t->n_next = t->first_next = 0;
    as_status st = share_work(t, grow_one, EXTRA_TRAINING, n, err);
    t->n_next = st == AS_OK ? n : 0;
    return st;
}

/* Append a tree; what its nodes point to moves behind what is there. */
static as_status add_tree(struct extra_train *t, struct extra_tree *tree, struct as_err *err)
{
    size_t k = t->opts.shape.outputs, classes = extra_classes(&t->rows);
    uint32_t nodes = (uint32_t)t->nodes.n, words = (uint32_t)t->words.n;
    uint32_t values = (uint32_t)(t->values.n / k - classes);
    if (t->nodes.n + tree->n_nodes > EXTRA_MAX_NODES ||
        t->words.n + tree->n_words > EXTRA_MAX_NODES)
        return as_fail(err, AS_E_TOO_LARGE, "the forest has more than %zu nodes", EXTRA_MAX_NODES);
    for (size_t i = 0; i < tree->n_nodes; i++) {
        struct extra_node *n = &tree->nodes[i];
        if (!(n->split & EXTRA_LEAF))
            n->left += nodes;
        else if (n->left >= classes)
            n->left += values;
        if (n->split & EXTRA_CATEGORY)
            n->at.set += words;
    }
    as_status st = append(&t->nodes, sizeof *tree->nodes, tree->nodes, tree->n_nodes, err);
    if (st == AS_OK)
        st = append(&t->values, sizeof *tree->values, tree->values, tree->n_values * k, err);
    if (st == AS_OK)
        st = append(&t->words, sizeof *tree->words, tree->words, tree->n_words, err);
    if (st == AS_OK)
        st = append(&t->roots, sizeof nodes, &nodes, 1, err);
    for (size_t i = 0; st == AS_OK && i < 3 * t->opts.shape.inputs; i++)
        t->splits[i] += tree->splits[i];
    return st;
}

as_status extra_train_tree(struct extra_train *t, struct as_err *err)
{
    as_status st = t->first_next == t->n_next ? grow_next(t, err) : AS_OK;
    return st == AS_OK ? add_tree(t, &t->next[t->first_next++], err) : st;
}

/* ---- predictions ---- */

/* Add the trees that a side's sums lack, for every count-th piece of its rows. */
static void add_sums(struct work *w)
{
    struct extra_train *t = w->t;
    const struct side *s = &t->sides[w->side];
    const uint32_t *roots = t->roots.v;
    const float *values = t->values.v;
    size_t k = t->opts.shape.outputs;
    for (size_t at = w->index * PIECE; at < s->n; at += w->count * PIECE) {
        size_t end = s->n - at < PIECE ? s->n : at + PIECE;
        for (size_t tree = s->trees; tree < t->roots.n; tree++)
            for (size_t r = at; r < end; r++) {
                const struct extra_node *leaf =
                    extra_walk(t->nodes.v, t->words.v, roots[tree], s->x + r * s->row, s->step);
                for (size_t o = 0; o < k; o++)
                    s->sums[r * k + o] += (double)values[(size_t)leaf->left * k + o];
            }
    }
}

as_status extra_train_predict(struct extra_train *t, extra_side side, float *ret,
                              struct as_err *err)
{
    struct side *s = &t->sides[side];
    as_status st = share_work(t, add_sums, side, t->opts.threads, err);
    if (st != AS_OK)
        return st;
    s->trees = t->roots.n;
    for (size_t i = 0; i < s->n * t->opts.shape.outputs; i++)
        ret[i] = (float)(s->sums[i] / (double)s->trees);
    return AS_OK;
}

/* ---- the stored form ---- */

as_status extra_train_save(const struct extra_train *t, char **ret, size_t *ret_len,
                           struct as_err *err)
{
    const struct extra_forest f = {.inputs = t->opts.shape.inputs,
                                   .outputs = t->opts.shape.outputs,
                                   .n_trees = t->roots.n,
                                   .n_nodes = t->nodes.n,
                                   .n_values = t->values.n / t->opts.shape.outputs,
                                   .n_words = t->words.n,
                                   .splits = t->splits,
                                   .roots = t->roots.v,
                                   .nodes = t->nodes.v,
                                   .values = t->values.v,
                                   .words = t->words.v};
    return extra_forest_write(&f, ret, ret_len, err);
}

/* The rows of values that leaves of one class share must be those of this training. */
static bool shares_values(const struct extra_train *t, const struct extra_forest *f)
{
    return f->n_values * f->outputs >= t->values.n &&
           (t->values.n == 0 || memcmp(f->values, t->values.v, t->values.n * sizeof(float)) == 0);
}

as_status extra_train_restore(struct extra_train *t, const void *bytes, size_t len,
                              struct as_err *err)
{
    AS_AUTO(extra_forest_done) struct extra_forest f = {0};
    as_status st = extra_forest_read(bytes, len, &t->opts.shape, &f, err);
    if (st != AS_OK)
        return st;
    if (f.n_trees > t->opts.trees || !shares_values(t, &f))
        return as_fail(err, AS_E_INVAL, "found %zu extra trees, expected at most %zu of this data",
                       f.n_trees, t->opts.trees);
    t->values.n = 0;
    memcpy(t->splits, f.splits, 3 * f.inputs * sizeof *t->splits);
    st = append(&t->roots, sizeof *f.roots, f.roots, f.n_trees, err);
    if (st == AS_OK)
        st = append(&t->nodes, sizeof *f.nodes, f.nodes, f.n_nodes, err);
    if (st == AS_OK)
        st = append(&t->values, sizeof *f.values, f.values, f.n_values * f.outputs, err);
    return st == AS_OK ? append(&t->words, sizeof *f.words, f.words, f.n_words, err) : st;
}
