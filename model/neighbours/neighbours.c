/* All distances are computed, so the result is exact. Rows lie in blocks of LANES, input by input,
 * so that the sums of a block are one vector loop; several rows to predict go through a block
 * together, so that memory is read once for them. */
#include "model/neighbours/neighbours.h"

#include <float.h>
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/parallel.h"

#define MAGIC "assaynn1"
#define HEADER ((size_t)24) /* bytes: the magic and four numbers */
#define LANES ((size_t)16)
#define LARGEST ((double)FLT_MAX)
#define TOGETHER ((size_t)8) /* rows that are predicted at once */

size_t neighbours_bytes(const struct neighbours_shape *shape, size_t rows)
{
    size_t row = shape->inputs + (shape->classes ? 1 : shape->outputs) + 1, all;
    if (__builtin_mul_overflow(row * sizeof(float), rows, &all) ||
        __builtin_add_overflow(all, HEADER, &all))
        return SIZE_MAX;
    return all;
}

/* ---- writing ---- */

static size_t count_rows(const struct neighbours_rows *rows)
{
    size_t n = 0;
    for (size_t i = 0; i < rows->n; i++)
        n += !rows->weights || rows->weights[i] > 0;
    return n;
}

static void put_rows(const struct neighbours_shape *shape, const struct neighbours_rows *rows,
                     size_t n, char *at)
{
    size_t k = 0, outputs = shape->classes ? 1 : shape->outputs;
    char *targets = at + n * shape->inputs * sizeof(float);
    char *weights = targets + n * outputs * sizeof(float);
    for (size_t i = 0; i < rows->n; i++) {
        float weight = rows->weights ? rows->weights[i] : 1;
        if (!(weight > 0))
            continue;
        memcpy(at + k * shape->inputs * sizeof(float), rows->x + i * shape->inputs,
               shape->inputs * sizeof(float));
        memcpy(targets + k * outputs * sizeof(float),
               shape->classes ? (const void *)(rows->labels + i) : rows->targets + i * outputs,
               outputs * sizeof(float));
        memcpy(weights + k * sizeof(float), &weight, sizeof weight);
        k++;
    }
}

as_status neighbours_write(const struct neighbours_shape *shape, const struct neighbours_rows *rows,
                           char **ret, size_t *ret_len, struct as_err *err)
{
    size_t n = count_rows(rows), len = neighbours_bytes(shape, n);
    const uint32_t counts[4] = {(uint32_t)shape->inputs, (uint32_t)shape->outputs, (uint32_t)n,
                                shape->classes};
    if (n == 0)
        return as_fail(err, AS_E_INVAL, "no training row has a weight above 0");
    if (len > NEIGHBOURS_MAX_BYTES)
        return as_fail(err, AS_E_TOO_LARGE,
                       "%zu rows of %zu inputs are a model of %zu bytes, expected at most %zu", n,
                       shape->inputs, len, NEIGHBOURS_MAX_BYTES);
    char *bytes = as_calloc(len, 1);
    if (!bytes)
        return as_fail(err, AS_E_NOMEM, "out of memory for %zu bytes of neighbours", len);
    memcpy(bytes, MAGIC, 8);
    memcpy(bytes + 8, counts, sizeof counts);
    put_rows(shape, rows, n, bytes + HEADER);
    *ret = bytes;
    *ret_len = len;
    return AS_OK;
}

/* ---- reading ---- */

void neighbours_done(struct neighbours *m)
{
    free(m->copy);
    free(m->blocks);
    free(m->squares);
    *m = (struct neighbours){0};
}

static as_status read_counts(const char *bytes, size_t len, const struct neighbours_shape *shape,
                             struct neighbours *m, struct as_err *err)
{
    uint32_t n[4];
    if (len < HEADER || memcmp(bytes, MAGIC, 8) != 0)
        return as_fail(err, AS_E_INVAL, "no nearest neighbours: they begin with '" MAGIC "'");
    memcpy(n, bytes + 8, sizeof n);
    m->shape = *shape;
    m->n = n[2];
    if (n[0] != shape->inputs || n[1] != shape->outputs || n[3] != (uint32_t)shape->classes)
        return as_fail(err, AS_E_INVAL,
                       "the neighbours have %u inputs and %u %s, expected %zu and %zu %s", n[0],
                       n[1], n[3] ? "classes" : "numbers", shape->inputs, shape->outputs,
                       shape->classes ? "classes" : "numbers");
    size_t expected = neighbours_bytes(shape, m->n);
    if (m->n == 0 || expected != len || len > NEIGHBOURS_MAX_BYTES)
        return as_fail(err, AS_E_INVAL, "%zu neighbours are %zu bytes, expected %zu", m->n, len,
                       expected);
    return AS_OK;
}

static void set_arrays(struct neighbours *m, const char *bytes)
{
    const float *at = (const void *)(bytes + HEADER);
    m->x = at;
    at += m->n * m->shape.inputs;
    m->labels = m->shape.classes ? (const void *)at : NULL;
    m->targets = m->shape.classes ? NULL : at;
    at += m->n * (m->shape.classes ? 1 : m->shape.outputs);
    m->weights = at;
}

static as_status check_values(const struct neighbours *m, struct as_err *err)
{
    size_t outputs = m->shape.outputs;
    for (size_t i = 0; i < m->n; i++) {
        bool good = isfinite(m->weights[i]) && m->weights[i] > 0;
        for (size_t k = 0; k < m->shape.inputs; k++)
            good = good && isfinite(m->x[i * m->shape.inputs + k]);
        for (size_t k = 0; m->targets && k < outputs; k++)
            good = good && isfinite(m->targets[i * outputs + k]);
        if (!good || (m->labels && m->labels[i] >= outputs))
            return as_fail(err, AS_E_INVAL,
                           "neighbour %zu has a class that there is not, or a number that is none",
                           i);
    }
    return AS_OK;
}

static double square_of(const float *x, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += (double)x[i] * (double)x[i];
    return sum;
}

static as_status pack(struct neighbours *m, struct as_err *err)
{
    size_t inputs = m->shape.inputs, n_blocks = (m->n + LANES - 1) / LANES;
    m->blocks = as_calloc(n_blocks * LANES * inputs, sizeof *m->blocks);
    m->squares = as_calloc(m->n, sizeof *m->squares);
    if (!m->blocks || !m->squares)
        return as_fail(err, AS_E_NOMEM, "out of memory for %zu neighbours", m->n);
    for (size_t i = 0; i < m->n; i++) {
        float *block = m->blocks + i / LANES * LANES * inputs + i % LANES;
        for (size_t k = 0; k < inputs; k++)
            block[k * LANES] = m->x[i * inputs + k];
        m->squares[i] = square_of(m->x + i * inputs, inputs);
    }
    return AS_OK;
}

as_status neighbours_read(const void *bytes, size_t len, const struct neighbours_shape *shape,
                          struct neighbours *ret, struct as_err *err)
{
    struct neighbours m = {0};
    as_status st = read_counts(bytes, len, shape, &m, err);
    if (st != AS_OK)
        return st;
    if ((uintptr_t)bytes % sizeof(float) != 0) {
        m.copy = as_calloc(len, 1);
        if (!m.copy)
            return as_fail(err, AS_E_NOMEM, "out of memory for %zu bytes of neighbours", len);
        memcpy(m.copy, bytes, len);
    }
    set_arrays(&m, m.copy ? m.copy : bytes);
    st = check_values(&m, err);
    if (st == AS_OK)
        st = pack(&m, err);
    if (st != AS_OK)
        neighbours_done(&m);
    else
        *ret = m;
    return st;
}

/* ---- predicting ---- */

struct near {
    float distance; /* squared */
    uint32_t row;
};

/* The nearest rows so far of one row to predict, nearest first. */
struct nearest {
    struct near *list; /* [k] */
    size_t n, k;
};

/* Rows come in their order, so a row that is as near as another one goes behind it. */
static void offer(struct nearest *to, float distance, size_t row)
{
    if (!(to->n < to->k ? distance >= 0 : distance < to->list[to->n - 1].distance))
        return;
    size_t at = to->n < to->k ? to->n++ : to->n - 1;
    for (; at > 0 && to->list[at - 1].distance > distance; at--)
        to->list[at] = to->list[at - 1];
    to->list[at] = (struct near){.distance = distance, .row = (uint32_t)row};
}

/* Squared distances of x to the rows of a block. */
static void distances_of(const float *block, const float *x, size_t inputs, double ret[LANES])
{
    double sums[LANES] = {0};
    for (size_t k = 0; k < inputs; k++)
        for (size_t i = 0; i < LANES; i++) {
            double d = (double)x[k] - (double)block[k * LANES + i];
            sums[i] += d * d;
        }
    memcpy(ret, sums, sizeof sums);
}

static void look_through_block(const struct neighbours *m, size_t block, const float *x,
                               double square, struct nearest *to)
{
    double d[LANES];
    size_t first = block * LANES, n = m->n - first < LANES ? m->n - first : LANES;
    distances_of(m->blocks + first * m->shape.inputs, x, m->shape.inputs, d);
    for (size_t i = 0; i < n; i++) {
        bool zero = d[i] < NEIGHBOURS_ZERO * (square + m->squares[first + i]);
        offer(to, zero ? 0 : (float)(d[i] > LARGEST ? LARGEST : d[i]), first + i);
    }
}

/* How much a neighbour counts for the row that has found it. */
static double share_of(const struct neighbours *m, const struct nearest *of, size_t i,
                       bool by_distance)
{
    double weight = (double)m->weights[of->list[i].row], d = (double)of->list[i].distance;
    if (!by_distance)
        return weight;
    if (of->list[0].distance <= 0)
        return d > 0 ? 0 : weight;
    return weight / sqrt(d);
}

static void mean_of(const struct neighbours *m, const struct nearest *of, bool by_distance,
                    double *sums, float *ret)
{
    double all = 0;
    memset(sums, 0, m->shape.outputs * sizeof *sums);
    for (size_t i = 0; i < of->n; i++) {
        double share = share_of(m, of, i, by_distance);
        size_t row = of->list[i].row;
        all += share;
        if (m->labels)
            sums[m->labels[row]] += share;
        for (size_t k = 0; m->targets && k < m->shape.outputs; k++)
            sums[k] += share * (double)m->targets[row * m->shape.outputs + k];
    }
    for (size_t k = 0; k < m->shape.outputs; k++)
        ret[k] = of->n > 0 ? (float)(sums[k] / all) : NAN;
}

struct prediction {
    const struct neighbours *m;
    const struct neighbours_opts *opts;
    size_t k, rows;
    const float *x;
    float *ret;
    atomic_bool no_memory;
};

/* Rows from `at` on, at most TOGETHER.
 *   lists  [TOGETHER, k] */
static void predict_together(const struct prediction *p, size_t at, struct near *lists,
                             double *sums)
{
    const struct neighbours *m = p->m;
    size_t n = p->rows - at < TOGETHER ? p->rows - at : TOGETHER;
    size_t inputs = m->shape.inputs, n_blocks = (m->n + LANES - 1) / LANES;
    struct nearest nearest[TOGETHER];
    double squares[TOGETHER];
    for (size_t i = 0; i < n; i++) {
        nearest[i] = (struct nearest){.list = lists + i * p->k, .k = p->k};
        squares[i] = square_of(p->x + (at + i) * inputs, inputs);
    }
    for (size_t b = 0; b < n_blocks; b++)
        for (size_t i = 0; i < n; i++)
            look_through_block(m, b, p->x + (at + i) * inputs, squares[i], &nearest[i]);
    for (size_t i = 0; i < n; i++)
        mean_of(m, &nearest[i], p->opts->by_distance, sums, p->ret + (at + i) * m->shape.outputs);
}

/* Items are TOGETHER rows each. */
static void predict_items(void *arg, size_t begin, size_t end)
{
    struct prediction *p = arg;
    AS_AUTO(as_freep) struct near *lists = as_calloc(TOGETHER * p->k, sizeof *lists);
    AS_AUTO(as_freep) double *sums = as_calloc(p->m->shape.outputs, sizeof *sums);
    if (!lists || !sums) {
        atomic_store(&p->no_memory, true);
        return;
    }
    for (size_t i = begin; i < end; i++)
        predict_together(p, i * TOGETHER, lists, sums);
}

as_status neighbours_predict(const struct neighbours *m, const struct neighbours_opts *opts,
                             const float *x, size_t rows, float *ret, struct as_err *err)
{
    struct prediction p = {.m = m,
                           .opts = opts,
                           .k = opts->k < m->n ? opts->k : m->n,
                           .rows = rows,
                           .x = x,
                           .ret = ret};
    parallel_each((rows + TOGETHER - 1) / TOGETHER, opts->threads, predict_items, &p);
    return atomic_load(&p.no_memory) ? as_fail_nomem(err) : AS_OK;
}
