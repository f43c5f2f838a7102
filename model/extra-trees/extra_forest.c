/* The stored form, and predicting with it. Rows go through a tree in blocks, so that its nodes stay
 * in the cache. What extra_forest_read() has checked is trusted afterwards: a walk looks at nothing
 * but the row, and ends because a child comes after its parent. */
#include "model/extra-trees/extra_forest.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define MAGIC "assayet1"
#define HEADER ((size_t)32) /* bytes: the magic and six numbers */
#define BLOCK ((size_t)64)  /* rows that go through a tree before the next one: it stays in cache */

_Static_assert(sizeof(struct extra_node) == 12, "a stored node has 12 bytes");

/* ---- reading ---- */

void extra_forest_done(struct extra_forest *f)
{
    free(f->splits);
    free(f->copy);
    *f = (struct extra_forest){0};
}

/* The bytes of such a forest. The counts are below 2^32, so nothing overflows. */
static uint64_t bytes_of(const struct extra_forest *f)
{
    uint64_t n = HEADER + 3 * sizeof(double) * (uint64_t)f->inputs + 4 * (uint64_t)f->n_trees +
                 sizeof(struct extra_node) * (uint64_t)f->n_nodes + 4 * (uint64_t)f->n_words;
    if (f->outputs > 0 && f->n_values > (UINT64_MAX >> 3) / f->outputs)
        return UINT64_MAX;
    n += 4 * (uint64_t)f->n_values * f->outputs;
    return (n + 7) / 8 * 8;
}

static as_status read_counts(const char *bytes, size_t len, const struct extra_shape *shape,
                             struct extra_forest *f, struct as_err *err)
{
    uint32_t n[6];
    if (len < HEADER || memcmp(bytes, MAGIC, 8) != 0)
        return as_fail(err, AS_E_INVAL, "no extra trees: they begin with '" MAGIC "'");
    memcpy(n, bytes + 8, sizeof n);
    *f = (struct extra_forest){.inputs = n[0],
                               .outputs = n[1],
                               .n_trees = n[2],
                               .n_nodes = n[3],
                               .n_values = n[4],
                               .n_words = n[5]};
    if (f->inputs != shape->inputs || f->outputs != shape->outputs)
        return as_fail(err, AS_E_INVAL,
                       "the extra trees have %zu inputs and %zu outputs, expected %zu and %zu",
                       f->inputs, f->outputs, shape->inputs, shape->outputs);
    if (bytes_of(f) != len)
        return as_fail(err, AS_E_INVAL, "the extra trees are %zu bytes, expected %llu", len,
                       (unsigned long long)bytes_of(f));
    if (f->n_trees == 0 || f->n_trees > f->n_nodes || f->n_values == 0)
        return as_fail(err, AS_E_INVAL, "found %zu extra trees of %zu nodes and %zu values",
                       f->n_trees, f->n_nodes, f->n_values);
    return AS_OK;
}

/* Doubles are copied: they may lie on a multiple of 4. */
static as_status set_arrays(struct extra_forest *f, const char *bytes, struct as_err *err)
{
    size_t sums = 3 * f->inputs * sizeof *f->splits;
    f->splits = as_calloc(3 * f->inputs, sizeof *f->splits);
    if (!f->splits)
        return as_fail_nomem(err);
    memcpy(f->splits, bytes + HEADER, sums);
    f->gain = f->splits + f->inputs;
    f->cover = f->gain + f->inputs;
    f->roots = (const void *)(bytes + HEADER + sums);
    f->nodes = (const void *)(f->roots + f->n_trees);
    f->values = (const void *)(f->nodes + f->n_nodes);
    f->words = (const void *)(f->values + f->n_values * f->outputs);
    return AS_OK;
}

static bool node_fits(const struct extra_forest *f, const struct extra_shape *shape, size_t i,
                      size_t end)
{
    const struct extra_node *n = &f->nodes[i];
    if (n->split & EXTRA_LEAF)
        return n->split == EXTRA_LEAF && n->left < f->n_values;
    size_t input = n->split & EXTRA_INPUT;
    if (input >= f->inputs || n->left <= i || n->left + (size_t)1 >= end)
        return false;
    uint32_t codes = shape->codes[input];
    if (!(n->split & EXTRA_CATEGORY))
        return codes == 0 && isfinite(n->at.threshold);
    size_t words = extra_set_words(codes);
    return codes > 0 && words <= f->n_words && n->at.set <= f->n_words - words;
}

static as_status check_nodes(const struct extra_forest *f, const struct extra_shape *shape,
                             struct as_err *err)
{
    for (size_t t = 0; t < f->n_trees; t++) {
        size_t begin = f->roots[t], end = t + 1 < f->n_trees ? f->roots[t + 1] : f->n_nodes;
        if (begin >= end || end > f->n_nodes || (t == 0 && begin != 0))
            return as_fail(err, AS_E_INVAL, "extra tree %zu begins at node %zu and ends at %zu", t,
                           begin, end);
        for (size_t i = begin; i < end; i++)
            if (!node_fits(f, shape, i, end))
                return as_fail(err, AS_E_INVAL, "extra tree %zu: node %zu points out of range", t,
                               i);
    }
    for (size_t i = 0; i < f->n_values * f->outputs; i++)
        if (!isfinite(f->values[i]))
            return as_fail(err, AS_E_INVAL, "the extra trees have a value that is not finite");
    for (size_t i = 0; i < 3 * f->inputs; i++)
        if (!(f->splits[i] >= 0 && isfinite(f->splits[i])))
            return as_fail(err, AS_E_INVAL,
                           "the extra trees have a gain or a number of splits "
                           "that is none");
    return AS_OK;
}

as_status extra_forest_read(const void *bytes, size_t len, const struct extra_shape *shape,
                            struct extra_forest *ret, struct as_err *err)
{
    struct extra_forest f;
    char *copy = NULL;
    as_status st = read_counts(bytes, len, shape, &f, err);
    if (st != AS_OK)
        return st;
    if ((uintptr_t)bytes % sizeof(uint32_t) != 0) {
        copy = as_calloc(len, 1);
        if (!copy)
            return as_fail(err, AS_E_NOMEM, "out of memory for %zu bytes of extra trees", len);
        memcpy(copy, bytes, len);
    }
    f.copy = copy;
    st = set_arrays(&f, copy ? copy : bytes, err);
    if (st == AS_OK)
        st = check_nodes(&f, shape, err);
    if (st != AS_OK)
        extra_forest_done(&f);
    else
        *ret = f;
    return st;
}

/* ---- writing ---- */

static char *put(char *at, const void *from, size_t bytes)
{
    if (bytes > 0)
        memcpy(at, from, bytes);
    return at + bytes;
}

as_status extra_forest_write(const struct extra_forest *f, char **ret, size_t *ret_len,
                             struct as_err *err)
{
    const uint32_t counts[6] = {(uint32_t)f->inputs,  (uint32_t)f->outputs,  (uint32_t)f->n_trees,
                                (uint32_t)f->n_nodes, (uint32_t)f->n_values, (uint32_t)f->n_words};
    size_t len = (size_t)bytes_of(f);
    char *bytes = as_calloc(len, 1), *at = bytes;
    if (!bytes)
        return as_fail(err, AS_E_NOMEM, "out of memory for extra trees of %zu bytes", len);
    at = put(at, MAGIC, 8);
    at = put(at, counts, sizeof counts);
    at = put(at, f->splits, 3 * f->inputs * sizeof *f->splits);
    at = put(at, f->roots, f->n_trees * sizeof *f->roots);
    at = put(at, f->nodes, f->n_nodes * sizeof *f->nodes);
    at = put(at, f->values, f->n_values * f->outputs * sizeof *f->values);
    (void)put(at, f->words, f->n_words * sizeof *f->words);
    *ret = bytes;
    *ret_len = len;
    return AS_OK;
}

/* ---- predicting ---- */

static bool goes_left(const struct extra_node *n, const uint32_t *words, float v)
{
    if (isnan(v))
        return (n->split & EXTRA_MISSING_LEFT) != 0;
    if (!(n->split & EXTRA_CATEGORY))
        return v < n->at.threshold;
    uint32_t code = (uint32_t)v;
    return (words[n->at.set + code / 32] >> code % 32 & 1) != 0;
}

const struct extra_node *extra_walk(const struct extra_node *nodes, const uint32_t *words,
                                    uint32_t at, const float *x, size_t stride)
{
    const struct extra_node *n = &nodes[at];
    while (!(n->split & EXTRA_LEAF)) {
        bool left = goes_left(n, words, x[(n->split & EXTRA_INPUT) * stride]);
        n = &nodes[n->left + !left];
    }
    return n;
}

static void add_block(const struct extra_forest *f, const float *x, size_t rows, double *sums)
{
    for (size_t t = 0; t < f->n_trees; t++)
        for (size_t r = 0; r < rows; r++) {
            const struct extra_node *leaf =
                extra_walk(f->nodes, f->words, f->roots[t], x + r * f->inputs, 1);
            const float *v = f->values + (size_t)leaf->left * f->outputs;
            for (size_t o = 0; o < f->outputs; o++)
                sums[r * f->outputs + o] += (double)v[o];
        }
}

as_status extra_forest_predict(const struct extra_forest *f, const float *x, size_t rows,
                               float *ret, struct as_err *err)
{
    size_t most = rows < BLOCK ? rows : BLOCK;
    AS_AUTO(as_freep) double *sums = as_calloc(most * f->outputs, sizeof *sums);
    if (!sums)
        return as_fail_nomem(err);
    for (size_t at = 0; at < rows; at += BLOCK) {
        size_t n = rows - at < BLOCK ? rows - at : BLOCK;
        memset(sums, 0, n * f->outputs * sizeof *sums);
        add_block(f, x + at * f->inputs, n, sums);
        for (size_t i = 0; i < n * f->outputs; i++)
            ret[at * f->outputs + i] = (float)(sums[i] / (double)f->n_trees);
    }
    return AS_OK;
}
