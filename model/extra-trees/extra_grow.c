/* Nodes are made depth first from a stack. The rows of a node are a range of `rows`, which a split
 * parts in place, so that a subtree has its rows together. What a node needs of its rows (weights,
 * targets, the values of the candidate) is first gathered into arrays of its own: the passes over
 * the candidates then read memory in order.
 *
 * Inputs that are constant in a node are constant below it. They are kept at the front of
 * `inputs`, and each node knows how many they are: subtrees only permute what is behind them. */
#include "model/extra-trees/extra_grow.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* A node that waits to be split. */
struct task {
    size_t begin, end; /* its rows */
    size_t depth;
    size_t constants; /* inputs that are known not to differ */
    uint32_t node;
};

/* A split of a node. */
struct split {
    size_t input;
    double score; /* sum over both sides and all targets of (sum of targets)^2 / weight */
    bool is_category, missing_left;
    float threshold;
};

struct extra_grower {
    const struct extra_rows *data;
    const struct extra_limits *limits;
    struct rng *rng;
    uint32_t *rows;   /* [n]: the rows of the tree, node by node */
    uint32_t *inputs; /* [inputs]: a permutation */
    /* of the node's rows, in their order */
    double *weight; /* [n] */
    double *target; /* [n]: weight * target, where there is one number for each row; else NULL */
    float *value;   /* [n]: of the candidate */
    double *all, *low, *missing; /* [outputs]: sums of targets */
    double all_weight;
    uint32_t *present, *set, *best_set; /* [most words]: sets of a category */
    struct task *stack;
    size_t n_stack, cap_stack;
    struct extra_tree *tree;
    size_t cap_nodes, cap_values, cap_words;
};

void extra_tree_done(struct extra_tree *t)
{
    free(t->nodes);
    free(t->values);
    free(t->words);
    free(t->splits);
    *t = (struct extra_tree){0};
}

void extra_grower_free(struct extra_grower *g)
{
    if (!g)
        return;
    free(g->rows);
    free(g->inputs);
    free(g->weight);
    free(g->target);
    free(g->value);
    free(g->all);
    free(g->present);
    free(g->stack);
    free(g);
}

static size_t most_words(const struct extra_shape *shape)
{
    size_t most = 1;
    for (size_t i = 0; i < shape->inputs; i++)
        if (extra_set_words(shape->codes[i]) > most)
            most = extra_set_words(shape->codes[i]);
    return most;
}

as_status extra_grower_create(const struct extra_rows *rows, struct extra_grower **ret,
                              struct as_err *err)
{
    AS_AUTO(extra_grower_freep) struct extra_grower *g = as_calloc(1, sizeof *g);
    if (!g)
        return as_fail_nomem(err);
    size_t n = rows->n, k = rows->shape.outputs, words = most_words(&rows->shape);
    g->data = rows;
    g->rows = as_calloc(n, sizeof *g->rows);
    g->inputs = as_calloc(rows->shape.inputs, sizeof *g->inputs);
    g->weight = as_calloc(n, sizeof *g->weight);
    g->target = k == 1 ? as_calloc(n, sizeof *g->target) : NULL;
    g->value = as_calloc(n, sizeof *g->value);
    g->all = as_calloc(3 * k, sizeof *g->all);
    g->present = as_calloc(3 * words, sizeof *g->present);
    if (!g->rows || !g->inputs || !g->weight || (k == 1 && !g->target) || !g->value || !g->all ||
        !g->present)
        return as_fail(err, AS_E_NOMEM, "out of memory for a tree of %zu rows", n);
    g->low = g->all + k;
    g->missing = g->low + k;
    g->set = g->present + words;
    g->best_set = g->set + words;
    *ret = as_steal(g);
    return AS_OK;
}

/* ---- sums of targets ---- */

/* Add place i of the node to sums [outputs]. */
static void add_row(const struct extra_grower *g, const struct task *at, size_t i, double *sums)
{
    const struct extra_rows *d = g->data;
    if (g->target) {
        sums[0] += g->target[i];
        return;
    }
    size_t row = g->rows[at->begin + i];
    if (d->labels) {
        sums[d->labels[row]] += g->weight[i];
        return;
    }
    for (size_t o = 0; o < d->shape.outputs; o++)
        sums[o] += g->weight[i] * (double)d->targets[row * d->shape.outputs + o];
}

/* Gather what all candidates need of the node's rows. */
static void gather(struct extra_grower *g, const struct task *at)
{
    const struct extra_rows *d = g->data;
    size_t k = d->shape.outputs;
    memset(g->all, 0, k * sizeof *g->all);
    g->all_weight = 0;
    for (size_t i = 0; i < at->end - at->begin; i++) {
        size_t row = g->rows[at->begin + i];
        double w = d->weights ? (double)d->weights[row] : 1;
        g->weight[i] = w;
        if (g->target)
            g->target[i] = w * (d->labels ? (double)d->labels[row] : (double)d->targets[row]);
        g->all_weight += w;
        add_row(g, at, i, g->all);
    }
}

static double score_of(const double *sums, size_t k, double weight)
{
    double squares = 0;
    for (size_t o = 0; o < k; o++)
        squares += sums[o] * sums[o];
    return squares / weight;
}

/* Do all rows of the node have one target? */
static bool is_pure(const struct extra_grower *g, const struct task *at)
{
    const struct extra_rows *d = g->data;
    size_t k = d->shape.outputs, first = g->rows[at->begin];
    for (size_t i = at->begin + 1; i < at->end; i++) {
        size_t row = g->rows[i];
        if (d->labels
                ? d->labels[row] != d->labels[first]
                : memcmp(d->targets + row * k, d->targets + first * k, k * sizeof(float)) != 0)
            return false;
    }
    return true;
}

/* ---- candidates ---- */

/* What the values of an input are in a node. */
struct range {
    float least, most;
    size_t missing;
    size_t present; /* a category: how many of its codes occur */
};

static void find_range(struct extra_grower *g, const struct task *at, size_t input,
                       struct range *ret)
{
    const float *x = g->data->x + input * g->data->n;
    size_t n = at->end - at->begin;
    *ret = (struct range){.least = INFINITY, .most = -INFINITY};
    for (size_t i = 0; i < n; i++) {
        float v = x[g->rows[at->begin + i]];
        g->value[i] = v;
        ret->missing += isnan(v);
        ret->least = v < ret->least ? v : ret->least;
        ret->most = v > ret->most ? v : ret->most;
    }
}

/* The codes that occur, as a set; the others are drawn with them. */
static void find_codes(struct extra_grower *g, const struct task *at, uint32_t codes,
                       struct range *r)
{
    memset(g->present, 0, extra_set_words(codes) * sizeof *g->present);
    for (size_t i = 0; i < at->end - at->begin; i++)
        if (!isnan(g->value[i])) {
            uint32_t c = (uint32_t)g->value[i];
            g->present[c / 32] |= (uint32_t)1 << c % 32;
        }
    for (size_t w = 0; w < extra_set_words(codes); w++)
        r->present += (size_t)__builtin_popcount(g->present[w]);
}

/* The place-th code of those that occur. */
static uint32_t code_at(const struct extra_grower *g, size_t place)
{
    uint32_t c = 0;
    while (!(g->present[c / 32] >> c % 32 & 1) || place-- > 0)
        c++;
    return c;
}

/* A random set, with some of the codes that occur but not all. If only one occurs, it is in. */
static void draw_set(struct extra_grower *g, uint32_t codes, const struct range *r)
{
    size_t in = 0;
    for (size_t w = 0; w < extra_set_words(codes); w++) {
        g->set[w] = rng_u32(g->rng);
        in += (size_t)__builtin_popcount(g->set[w] & g->present[w]);
    }
    if (r->present > 1 && in > 0 && in < r->present)
        return;
    uint32_t c = code_at(g, (size_t)rng_below(g->rng, r->present));
    if (in == 0)
        g->set[c / 32] |= (uint32_t)1 << c % 32;
    else if (r->present > 1)
        g->set[c / 32] &= ~((uint32_t)1 << c % 32);
}

static float draw_threshold(struct extra_grower *g, const struct range *r)
{
    if (!(r->least < r->most)) /* what is missing goes right */
        return FLT_MAX;
    double least = (double)r->least;
    float t = (float)(least + rng_uniform(g->rng) * ((double)r->most - least));
    return t > r->least ? t : r->most;
}

static bool is_left(const struct extra_grower *g, const struct split *s, float v)
{
    if (!s->is_category)
        return v < s->threshold;
    uint32_t c = (uint32_t)v;
    return (g->set[c / 32] >> c % 32 & 1) != 0;
}

/* The score of both sides, with the missing ones on one of them; -1: a side is too light. */
static double side_score(struct extra_grower *g, double low_weight, double missing_weight,
                         bool missing_left)
{
    size_t k = g->data->shape.outputs;
    double left = low_weight + (missing_left ? missing_weight : 0), right = g->all_weight - left;
    double least = g->limits->min_leaf_weight, score = 0;
    if (!(left > 0 && right > 0 && left >= least && right >= least))
        return -1;
    for (size_t o = 0; o < k; o++) {
        double l = g->low[o] + (missing_left ? g->missing[o] : 0), h = g->all[o] - l;
        score += l * l / left + h * h / right;
    }
    return score;
}

/* Set the score of a split, and where missing values go. */
static void judge(struct extra_grower *g, const struct task *at, const struct range *r,
                  struct split *s)
{
    size_t k = g->data->shape.outputs;
    double low_weight = 0, missing_weight = 0;
    memset(g->low, 0, 2 * k * sizeof *g->low); /* and g->missing */
    for (size_t i = 0; i < at->end - at->begin; i++) {
        bool gap = r->missing > 0 && isnan(g->value[i]);
        if (gap) {
            missing_weight += g->weight[i];
            add_row(g, at, i, g->missing);
        } else if (is_left(g, s, g->value[i])) {
            low_weight += g->weight[i];
            add_row(g, at, i, g->low);
        }
    }
    bool one_value = s->is_category ? r->present < 2 : !(r->least < r->most);
    double right = side_score(g, low_weight, missing_weight, false);
    double left = one_value ? -1 : side_score(g, low_weight, missing_weight, true);
    s->missing_left = r->missing > 0 ? left > right : 2 * low_weight > g->all_weight;
    s->score = s->missing_left && r->missing > 0 ? left : right;
}

/* Draw a split of an input; false: the input is constant in the node. */
static bool draw_split(struct extra_grower *g, const struct task *at, size_t input,
                       struct split *ret)
{
    uint32_t codes = g->data->shape.codes[input];
    struct range r;
    find_range(g, at, input, &r);
    size_t n = at->end - at->begin;
    bool differs = r.least < r.most || (r.missing > 0 && r.missing < n);
    if (!differs)
        return false;
    *ret = (struct split){.input = input, .is_category = codes > 0};
    if (codes > 0) {
        find_codes(g, at, codes, &r);
        draw_set(g, codes, &r);
    } else {
        ret->threshold = draw_threshold(g, &r);
    }
    judge(g, at, &r, ret);
    return true;
}

static void swap(uint32_t *v, size_t a, size_t b)
{
    uint32_t t = v[a];
    v[a] = v[b];
    v[b] = t;
}

/* The best of the candidates. Inputs that are found constant join those at the front; those that
 * were tried go to the end. False: there is no split that leaves both sides heavy enough. */
static bool find_split(struct extra_grower *g, struct task *at, struct split *ret)
{
    size_t last = g->data->shape.inputs, tried = 0;
    bool found = false;
    while (tried < g->limits->candidates && at->constants < last) {
        size_t place = at->constants + (size_t)rng_below(g->rng, last - at->constants);
        struct split s;
        if (!draw_split(g, at, g->inputs[place], &s)) {
            swap(g->inputs, place, at->constants++);
            continue;
        }
        swap(g->inputs, place, --last);
        tried++;
        if (s.score < 0 || (found && !(s.score > ret->score)))
            continue;
        *ret = s;
        found = true;
        if (s.is_category)
            memcpy(g->best_set, g->set,
                   extra_set_words(g->data->shape.codes[s.input]) * sizeof *g->set);
    }
    return found;
}

/* ---- the tree ---- */

/* Append n elements to one of the tree's arrays. */
static as_status append(void *pp, size_t *n, size_t *cap, size_t size, const void *from,
                        size_t count, struct as_err *err)
{
    char **p = pp;
    if (*n + count > *cap) {
        size_t most = *cap * 2 > *n + count ? *cap * 2 : *n + count;
        as_status st = as_grow(pp, most, size, err);
        if (st != AS_OK)
            return st;
        *cap = most;
    }
    if (from)
        memcpy(*p + *n * size, from, count * size);
    else
        memset(*p + *n * size, 0, count * size);
    *n += count;
    return AS_OK;
}

static as_status make_leaf(struct extra_grower *g, const struct task *at, bool pure,
                           struct as_err *err)
{
    struct extra_tree *t = g->tree;
    size_t k = g->data->shape.outputs, classes = extra_classes(g->data);
    t->nodes[at->node].split = EXTRA_LEAF;
    if (pure && classes > 0) {
        t->nodes[at->node].left = (uint32_t)g->data->labels[g->rows[at->begin]];
        return AS_OK;
    }
    t->nodes[at->node].left = (uint32_t)(classes + t->n_values);
    size_t first = t->n_values * k, n = first;
    as_status st = append(&t->values, &n, &g->cap_values, sizeof *t->values, NULL, k, err);
    if (st != AS_OK)
        return st;
    t->n_values++;
    for (size_t o = 0; o < k && g->all_weight > 0; o++)
        t->values[first + o] = (float)(g->all[o] / g->all_weight);
    return AS_OK;
}

/* Part the node's rows: those that go left come first. Returns where the others begin. */
static size_t part_rows(struct extra_grower *g, const struct task *at, const struct split *s)
{
    const float *x = g->data->x + s->input * g->data->n;
    size_t low = at->begin, high = at->end;
    while (low < high) {
        float v = x[g->rows[low]];
        if (isnan(v) ? s->missing_left : is_left(g, s, v))
            low++;
        else
            swap(g->rows, low, --high);
    }
    return low;
}

static as_status push(struct extra_grower *g, const struct task *t, struct as_err *err)
{
    return append(&g->stack, &g->n_stack, &g->cap_stack, sizeof *g->stack, t, 1, err);
}

static void count_split(struct extra_grower *g, const struct split *s)
{
    size_t inputs = g->data->shape.inputs;
    double *of = g->tree->splits + s->input;
    of[0] += 1;
    of[inputs] += s->score - score_of(g->all, g->data->shape.outputs, g->all_weight);
    of[2 * inputs] += g->all_weight;
}

static as_status split_node(struct extra_grower *g, const struct task *at, const struct split *s,
                            struct as_err *err)
{
    struct extra_tree *t = g->tree;
    uint32_t left = (uint32_t)t->n_nodes;
    struct extra_node node = {.split = (uint32_t)s->input | (s->is_category ? EXTRA_CATEGORY : 0) |
                                       (s->missing_left ? EXTRA_MISSING_LEFT : 0),
                              .left = left,
                              .at.threshold = s->threshold};
    as_status st = AS_OK;
    count_split(g, s);
    if (s->is_category) {
        node.at.set = (uint32_t)t->n_words;
        memcpy(g->set, g->best_set,
               extra_set_words(g->data->shape.codes[s->input]) * sizeof *g->set);
        st = append(&t->words, &t->n_words, &g->cap_words, sizeof *t->words, g->set,
                    extra_set_words(g->data->shape.codes[s->input]), err);
    }
    if (st == AS_OK)
        st = append(&t->nodes, &t->n_nodes, &g->cap_nodes, sizeof *t->nodes, NULL, 2, err);
    if (st != AS_OK)
        return st;
    t->nodes[at->node] = node;
    size_t middle = part_rows(g, at, s);
    struct task child = {.begin = middle,
                         .end = at->end,
                         .depth = at->depth + 1,
                         .constants = at->constants,
                         .node = left + 1};
    st = push(g, &child, err);
    child.begin = at->begin;
    child.end = middle;
    child.node = left;
    return st == AS_OK ? push(g, &child, err) : st; /* the left one is next */
}

static as_status grow_node(struct extra_grower *g, struct task *at, struct as_err *err)
{
    struct split s;
    const struct extra_limits *l = g->limits;
    gather(g, at);
    bool pure = at->begin < at->end && is_pure(g, at);
    if (pure || at->end - at->begin < 2 || (l->max_depth > 0 && at->depth >= l->max_depth) ||
        g->all_weight < 2 * l->min_leaf_weight || !find_split(g, at, &s))
        return make_leaf(g, at, pure, err);
    return split_node(g, at, &s, err);
}

/* The rows of the tree. */
static size_t draw_rows(struct extra_grower *g)
{
    size_t n = 0;
    for (size_t i = 0; i < g->data->n; i++) {
        bool counts = !g->data->weights || g->data->weights[i] > 0;
        if (g->limits->row_share < 1 && rng_uniform(g->rng) >= g->limits->row_share)
            continue;
        if (counts)
            g->rows[n++] = (uint32_t)i;
    }
    return n;
}

as_status extra_grow(struct extra_grower *g, const struct extra_limits *limits, struct rng *rng,
                     struct extra_tree *ret, struct as_err *err)
{
    AS_AUTO(extra_tree_done) struct extra_tree tree = {0};
    size_t inputs = g->data->shape.inputs;
    g->limits = limits;
    g->rng = rng;
    g->tree = &tree;
    g->n_stack = g->cap_nodes = g->cap_values = g->cap_words = 0;
    for (size_t i = 0; i < inputs; i++)
        g->inputs[i] = (uint32_t)i;
    tree.splits = as_calloc(3 * inputs, sizeof *tree.splits);
    if (!tree.splits)
        return as_fail_nomem(err);
    const struct task root = {.end = draw_rows(g)};
    as_status st =
        append(&tree.nodes, &tree.n_nodes, &g->cap_nodes, sizeof *tree.nodes, NULL, 1, err);
    if (st == AS_OK)
        st = push(g, &root, err);
    while (st == AS_OK && g->n_stack > 0) {
        struct task at = g->stack[--g->n_stack];
        st = grow_node(g, &at, err);
    }
    if (st != AS_OK)
        return st;
    *ret = tree;
    tree = (struct extra_tree){0};
    return AS_OK;
}
