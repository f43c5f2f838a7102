/* Extra trees beside a plain reference, which grows the same tree from the same random numbers by
 * the definition alone: lists of rows, one pass for each question. Then what is stored, and bytes
 * that are hostile. */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "model/extra-trees/extra_train.h"
#include "tests/support/check_main.h"

#define ROWS ((size_t)120)
#define INPUTS ((size_t)4)
#define CODES 40 /* more than a word of a set */

static struct as_err err;

/* ---- rows ---- */

/* Two numbers, one of them with gaps; a constant; a category with gaps. Targets are small whole
 * numbers, so that sums are exact in any order. */
struct table {
    float x[ROWS * INPUTS]; /* row by row */
    float turned[ROWS * INPUTS];
    int32_t labels[ROWS];
    float targets[ROWS * 2], weights[ROWS];
    uint32_t codes[INPUTS];
};

static void fill(struct table *t, size_t classes)
{
    struct rng r;
    rng_init(&r, 5, 9);
    *t = (struct table){.codes = {0, 0, 0, CODES}};
    for (size_t i = 0; i < ROWS; i++) {
        float *x = t->x + i * INPUTS;
        x[0] = (float)rng_below(&r, 9);
        x[1] = rng_below(&r, 5) == 0 ? NAN : (float)rng_normal(&r);
        x[2] = 3;
        x[3] = rng_below(&r, 6) == 0 ? NAN : (float)rng_below(&r, CODES);
        size_t y = (size_t)x[0] + (isnan(x[3]) ? 5 : (size_t)x[3]) + (x[1] > 0);
        t->labels[i] = (int32_t)(y % classes);
        t->targets[2 * i] = (float)(y % 7);
        t->targets[2 * i + 1] = (float)(y % 3);
        t->weights[i] = (float)rng_below(&r, 4); /* some are 0 */
        for (size_t c = 0; c < INPUTS; c++)
            t->turned[c * ROWS + i] = x[c];
    }
}

/* ---- the reference ---- */

struct reference {
    const struct extra_rows *rows;
    const struct extra_limits *limits;
    struct rng *rng;
    uint32_t order[INPUTS]; /* of the inputs; constants first */
    const struct extra_tree *tree;
};

static double weight(const struct reference *f, size_t row)
{
    return f->rows->weights ? (double)f->rows->weights[row] : 1;
}

static double target(const struct reference *f, size_t row, size_t o)
{
    size_t k = f->rows->shape.outputs;
    if (!f->rows->labels)
        return (double)f->rows->targets[row * k + o];
    return k == 1 ? f->rows->labels[row] : f->rows->labels[row] == (int32_t)o;
}

/* The sum over the targets of (sum on a side)^2 / its weight; ret_weight[2]: of the sides. */
static double score_sides(const struct reference *f, const uint32_t *rows, size_t n, const char *in,
                          double ret_weight[2])
{
    double score = 0;
    ret_weight[0] = ret_weight[1] = 0;
    for (size_t i = 0; i < n; i++)
        ret_weight[(size_t)in[i]] += weight(f, rows[i]);
    for (size_t o = 0; o < f->rows->shape.outputs; o++) {
        double sum[2] = {0, 0};
        for (size_t i = 0; i < n; i++)
            sum[(size_t)in[i]] += weight(f, rows[i]) * target(f, rows[i], o);
        score += sum[0] * sum[0] / ret_weight[0] + sum[1] * sum[1] / ret_weight[1];
    }
    return score;
}

struct candidate {
    size_t input;
    double score;
    bool missing_left;
    float threshold;
    uint32_t set[2];
};

static float value(const struct reference *f, uint32_t row, size_t input)
{
    return f->rows->x[input * f->rows->n + row];
}

/* 0 left, 1 right, 2 missing. */
static char side_of(const struct reference *f, const struct candidate *c, uint32_t row)
{
    float v = value(f, row, c->input);
    if (isnan(v))
        return 2;
    if (f->rows->shape.codes[c->input] == 0)
        return v >= c->threshold;
    return !(c->set[(size_t)v / 32] >> (size_t)v % 32 & 1);
}

/* Draw a split as extra_grow.h says, with the same calls of the generator. */
static bool draw(struct reference *f, const uint32_t *rows, size_t n, size_t input,
                 struct candidate *c)
{
    float least = INFINITY, most = -INFINITY;
    size_t gaps = 0, kinds = 0;
    bool there[CODES] = {0};
    *c = (struct candidate){.input = input};
    for (size_t i = 0; i < n; i++) {
        float v = value(f, rows[i], input);
        gaps += isnan(v);
        if (isnan(v))
            continue;
        least = fminf(least, v);
        most = fmaxf(most, v);
        if (input == 3)
            there[(size_t)v] = true;
    }
    if (!(least < most) && (gaps == 0 || gaps == n))
        return false;
    if (f->rows->shape.codes[input] == 0) {
        c->threshold = FLT_MAX;
        if (least < most) {
            c->threshold =
                (float)((double)least + rng_uniform(f->rng) * ((double)most - (double)least));
            c->threshold = c->threshold > least ? c->threshold : most;
        }
        return true;
    }
    size_t in = 0;
    for (size_t w = 0; w < 2; w++)
        c->set[w] = rng_u32(f->rng);
    for (size_t k = 0; k < CODES; k++) {
        kinds += there[k];
        in += there[k] && (c->set[k / 32] >> k % 32 & 1);
    }
    if (kinds > 1 && in > 0 && in < kinds)
        return true;
    size_t place = (size_t)rng_below(f->rng, kinds), k = 0;
    while (!there[k] || place-- > 0)
        k++;
    if (in == 0)
        c->set[k / 32] |= (uint32_t)1 << k % 32;
    else if (kinds > 1)
        c->set[k / 32] &= ~((uint32_t)1 << k % 32);
    return true;
}

/* Both places of the missing rows, by the definition. */
static void judge(const struct reference *f, const uint32_t *rows, size_t n, struct candidate *c)
{
    double best = -1, least = f->limits->min_leaf_weight;
    bool any = false, low = false;
    char in[ROWS];
    for (size_t i = 0; i < n; i++) {
        any = any || side_of(f, c, rows[i]) == 2;
        low = low || side_of(f, c, rows[i]) == 1;
    }
    for (int left = 0; left < 2; left++) {
        double w[2];
        for (size_t i = 0; i < n; i++) {
            in[i] = side_of(f, c, rows[i]);
            in[i] = in[i] == 2 ? (char)!left : in[i];
        }
        double score = score_sides(f, rows, n, in, w);
        if (!(w[0] > 0 && w[1] > 0 && w[0] >= least && w[1] >= least) || (left && !low && any))
            score = -1;
        if (left == 0) {
            best = score;
            c->missing_left = !any && w[0] > w[1];
        } else if (any && score > best) {
            best = score;
            c->missing_left = true;
        }
    }
    c->score = best;
}

static void swap(uint32_t *v, size_t a, size_t b)
{
    uint32_t t = v[a];
    v[a] = v[b];
    v[b] = t;
}

static bool choose(struct reference *f, const uint32_t *rows, size_t n, size_t *constants,
                   struct candidate *ret)
{
    size_t last = INPUTS, tried = 0;
    bool found = false;
    while (tried < f->limits->candidates && *constants < last) {
        size_t place = *constants + (size_t)rng_below(f->rng, last - *constants);
        struct candidate c;
        if (!draw(f, rows, n, f->order[place], &c)) {
            swap(f->order, place, (*constants)++);
            continue;
        }
        swap(f->order, place, --last);
        tried++;
        judge(f, rows, n, &c);
        if (c.score >= 0 && (!found || c.score > ret->score)) {
            *ret = c;
            found = true;
        }
    }
    return found;
}

static bool all_alike(const struct reference *f, const uint32_t *rows, size_t n)
{
    for (size_t i = 1; i < n; i++)
        for (size_t o = 0; o < f->rows->shape.outputs; o++)
            if (target(f, rows[i], o) != target(f, rows[0], o))
                return false;
    return true;
}

static void compare_leaf(const struct reference *f, const uint32_t *rows, size_t n,
                         const struct extra_node *node, bool pure)
{
    size_t classes = extra_classes(f->rows), k = f->rows->shape.outputs;
    ck_assert_uint_eq(node->split, EXTRA_LEAF);
    if (pure && classes > 0) {
        ck_assert_uint_eq(node->left, (uint32_t)f->rows->labels[rows[0]]);
        return;
    }
    ck_assert_uint_lt(node->left - classes, f->tree->n_values);
    for (size_t o = 0; o < k; o++) {
        double sum = 0, w = 0;
        for (size_t i = 0; i < n; i++) {
            sum += weight(f, rows[i]) * target(f, rows[i], o);
            w += weight(f, rows[i]);
        }
        ck_assert_double_eq_tol((double)f->tree->values[(node->left - classes) * k + o], sum / w,
                                1e-6);
    }
}

/* Grow the node from its rows, and compare it and what is below it. */
static void compare(struct reference *f, uint32_t at, const uint32_t *rows, size_t n, size_t depth,
                    size_t constants)
{
    const struct extra_node *node = &f->tree->nodes[at];
    const struct extra_limits *l = f->limits;
    bool pure = all_alike(f, rows, n);
    double w = 0;
    struct candidate c;
    for (size_t i = 0; i < n; i++)
        w += weight(f, rows[i]);
    if (pure || n < 2 || (l->max_depth > 0 && depth >= l->max_depth) ||
        w < 2 * l->min_leaf_weight || !choose(f, rows, n, &constants, &c)) {
        compare_leaf(f, rows, n, node, pure);
        return;
    }
    bool category = f->rows->shape.codes[c.input] > 0;
    ck_assert_uint_eq(node->split, (uint32_t)c.input | (category ? EXTRA_CATEGORY : 0) |
                                       (c.missing_left ? EXTRA_MISSING_LEFT : 0));
    if (category)
        ck_assert_mem_eq(f->tree->words + node->at.set, c.set, sizeof c.set);
    else
        ck_assert(node->at.threshold == c.threshold);
    uint32_t parts[2][ROWS];
    size_t counts[2] = {0, 0};
    for (size_t i = 0; i < n; i++) {
        char side = side_of(f, &c, rows[i]);
        side = side == 2 ? (char)!c.missing_left : side;
        parts[(size_t)side][counts[(size_t)side]++] = rows[i];
    }
    compare(f, node->left, parts[0], counts[0], depth + 1, constants);
    compare(f, node->left + 1, parts[1], counts[1], depth + 1, constants);
}

static void oracle(const struct extra_rows *rows, const struct extra_limits *limits, uint64_t seed)
{
    AS_AUTO(extra_grower_freep) struct extra_grower *g = NULL;
    AS_AUTO(extra_tree_done) struct extra_tree tree = {0};
    struct rng mine, theirs;
    uint32_t all[ROWS];
    size_t n = 0;
    rng_init(&mine, seed, 1);
    rng_init(&theirs, seed, 1);
    ck_ok(extra_grower_create(rows, &g, &err), err);
    ck_ok(extra_grow(g, limits, &theirs, &tree, &err), err);
    struct reference f = {.rows = rows, .limits = limits, .rng = &mine, .tree = &tree};
    for (size_t i = 0; i < INPUTS; i++)
        f.order[i] = (uint32_t)i;
    for (size_t i = 0; i < ROWS; i++) {
        if (limits->row_share < 1 && rng_uniform(&mine) >= limits->row_share)
            continue;
        if (weight(&f, i) > 0)
            all[n++] = (uint32_t)i;
    }
    compare(&f, 0, all, n, 0, 0);
}

static struct extra_rows rows_of(const struct table *t, size_t classes, size_t outputs,
                                 bool weights)
{
    return (struct extra_rows){.x = t->turned,
                               .n = ROWS,
                               .shape = {INPUTS, outputs, t->codes},
                               .labels = classes ? t->labels : NULL,
                               .targets = classes ? NULL : t->targets,
                               .weights = weights ? t->weights : NULL};
}

START_TEST(grows_as_the_reference)
{
    static const struct extra_limits limits[] = {
        {.min_leaf_weight = 1, .candidates = 2, .row_share = 1},
        {.min_leaf_weight = 5, .candidates = INPUTS, .row_share = 1},
        {.max_depth = 3, .min_leaf_weight = 0, .candidates = 1, .row_share = 0.6}};
    struct table t;
    fill(&t, 3);
    for (size_t i = 0; i < AS_ARRAY_LEN(limits); i++)
        for (uint64_t seed = 0; seed < 20; seed++) {
            const struct extra_rows three = rows_of(&t, 3, 3, seed % 2);
            const struct extra_rows numbers = rows_of(&t, 0, 2, seed % 2);
            oracle(&three, &limits[i], seed);
            oracle(&numbers, &limits[i], seed);
        }
    fill(&t, 2);
    for (uint64_t seed = 0; seed < 20; seed++) {
        const struct extra_rows two = rows_of(&t, 2, 1, seed % 2);
        oracle(&two, &limits[seed % 3], seed);
    }
}
END_TEST

/* ---- the forest ---- */

static struct extra_train *train(const struct table *t, size_t trees, size_t threads)
{
    const struct extra_opts opts = {
        .limits = {.min_leaf_weight = 1, .candidates = 2, .row_share = 1},
        .shape = {INPUTS, 3, t->codes},
        .trees = trees,
        .seed = 4,
        .threads = threads};
    const struct extra_part part = {.x = t->x, .n = ROWS, .labels = t->labels};
    struct extra_train *ret = NULL;
    ck_ok(extra_train_create(&opts, &part, &part, &ret, &err), err);
    return ret;
}

/* Saved and restored after any tree, by any threads, the bytes are those of one run; the stored
 * forest predicts the bits of the training. */
START_TEST(saves_and_restores)
{
    struct table t;
    char *whole = NULL;
    size_t len = 0;
    fill(&t, 3);
    AS_AUTO(extra_train_freep) struct extra_train *one = train(&t, 7, 1);
    for (size_t i = 0; i < 7; i++)
        ck_ok(extra_train_tree(one, &err), err);
    ck_ok(extra_train_save(one, &whole, &len, &err), err);
    for (size_t stop = 1; stop < 7; stop++) {
        AS_AUTO(extra_train_freep) struct extra_train *first = train(&t, 7, 3);
        AS_AUTO(extra_train_freep) struct extra_train *second = train(&t, 7, 2);
        AS_AUTO(as_freep) char *part = NULL, *again = NULL;
        size_t n = 0;
        for (size_t i = 0; i < stop; i++)
            ck_ok(extra_train_tree(first, &err), err);
        ck_ok(extra_train_save(first, &part, &n, &err), err);
        ck_ok(extra_train_restore(second, part, n, &err), err);
        ck_assert_uint_eq(extra_train_trees(second), stop);
        for (size_t i = stop; i < 7; i++)
            ck_ok(extra_train_tree(second, &err), err);
        ck_ok(extra_train_save(second, &again, &n, &err), err);
        ck_assert_uint_eq(n, len);
        ck_assert_mem_eq(again, whole, len);
    }
    const struct extra_shape shape = {INPUTS, 3, t.codes};
    AS_AUTO(extra_forest_done) struct extra_forest f = {0};
    float kept[ROWS * 3], stored[ROWS * 3], alone[3];
    ck_ok(extra_forest_read(whole, len, &shape, &f, &err), err);
    ck_ok(extra_train_predict(one, EXTRA_HELD, kept, &err), err);
    ck_ok(extra_forest_predict(&f, t.x, ROWS, stored, &err), err);
    ck_assert_mem_eq(kept, stored, sizeof kept);
    ck_ok(extra_train_predict(one, EXTRA_TRAINING, kept, &err), err);
    ck_assert_mem_eq(kept, stored, sizeof kept);
    for (size_t i = 0; i < ROWS; i++) {
        ck_ok(extra_forest_predict(&f, t.x + i * INPUTS, 1, alone, &err), err);
        ck_assert_mem_eq(alone, stored + 3 * i, sizeof alone);
    }
    free(whole);
}
END_TEST

/* Each word that is changed is refused, or what is read still predicts; every length is refused. */
START_TEST(hostile_bytes)
{
    struct table t;
    char *whole = NULL;
    size_t len = 0, refused = 0;
    float ret[3];
    fill(&t, 3);
    const struct extra_shape shape = {INPUTS, 3, t.codes}, wide = {INPUTS + 1, 3, t.codes};
    AS_AUTO(extra_train_freep) struct extra_train *one = train(&t, 2, 1);
    for (size_t i = 0; i < 2; i++)
        ck_ok(extra_train_tree(one, &err), err);
    ck_ok(extra_train_save(one, &whole, &len, &err), err);
    AS_AUTO(as_freep) char *bytes = as_calloc(len + 4, 1);
    struct extra_forest f = {0};
    static const uint32_t words[] = {0,         1, 7, UINT32_MAX, EXTRA_LEAF, EXTRA_CATEGORY | 3,
                                     0x7fc00000};
    ck_fails(extra_forest_read(whole, len, &wide, &f, &err), AS_E_INVAL, err, "expected 5 and 3");
    for (size_t n = 0; n < len; n++)
        ck_assert_int_eq(extra_forest_read(whole, n, &shape, &f, &err), AS_E_INVAL);
    for (size_t at = 0; at + 4 <= len; at += 4)
        for (size_t w = 0; w < AS_ARRAY_LEN(words); w++) {
            memcpy(bytes + 1, whole, len); /* not aligned: read from a copy */
            memcpy(bytes + 1 + at, &words[w], 4);
            as_status st = extra_forest_read(bytes + 1, len, &shape, &f, &err);
            refused += st == AS_E_INVAL;
            if (st == AS_OK)
                ck_ok(extra_forest_predict(&f, t.x, 1, ret, &err), err);
            else
                ck_assert_int_eq(st, AS_E_INVAL);
            extra_forest_done(&f);
        }
    ck_assert_uint_gt(refused, 100);
    free(whole);
}
END_TEST

/* Weights of 0 leave a forest of one leaf each, not a crash. */
START_TEST(no_rows)
{
    struct table t;
    struct rng rng;
    fill(&t, 3);
    memset(t.weights, 0, sizeof t.weights);
    const struct extra_rows rows = rows_of(&t, 0, 2, true);
    const struct extra_limits limits = {.min_leaf_weight = 1, .candidates = 2, .row_share = 1};
    AS_AUTO(extra_grower_freep) struct extra_grower *g = NULL;
    AS_AUTO(extra_tree_done) struct extra_tree tree = {0};
    rng_init(&rng, 1, 1);
    ck_ok(extra_grower_create(&rows, &g, &err), err);
    ck_ok(extra_grow(g, &limits, &rng, &tree, &err), err);
    ck_assert_uint_eq(tree.n_nodes, 1);
    ck_assert(tree.values[0] == 0);
}
END_TEST

/* Every allocation may fail: nothing leaks, and the reason is memory. */
START_TEST(out_of_memory)
{
    struct table t;
    fill(&t, 3);
    const struct extra_rows rows = rows_of(&t, 3, 3, true);
    const struct extra_limits limits = {.min_leaf_weight = 1, .candidates = 2, .row_share = 1};
    for (size_t nth = 1;; nth++) {
        AS_AUTO(extra_grower_freep) struct extra_grower *g = NULL;
        AS_AUTO(extra_tree_done) struct extra_tree tree = {0};
        struct rng rng;
        rng_init(&rng, 1, 1);
        (void)as_mem_fail_nth(nth);
        as_status st = extra_grower_create(&rows, &g, &err);
        if (st == AS_OK)
            st = extra_grow(g, &limits, &rng, &tree, &err);
        if (as_mem_fail_nth(0) > 0) {
            ck_ok(st, err);
            ck_assert_uint_gt(nth, 8);
            return;
        }
        ck_assert_int_eq(st, AS_E_NOMEM);
    }
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("extra_trees");
    TCase *t = tcase_create("extra_trees");
    tcase_add_test(t, grows_as_the_reference);
    tcase_add_test(t, saves_and_restores);
    tcase_add_test(t, hostile_bytes);
    tcase_add_test(t, no_rows);
    tcase_add_test(t, out_of_memory);
    suite_add_tcase(s, t);
    return s;
}
