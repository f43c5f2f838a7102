/* powersgd: a matrix M as the product of two thin ones, found by half a step of power iteration.
 *
 * Vogels, Karimireddy, Jaggi, NeurIPS 2019, algorithm 1: P = M Q summed over all; the columns of P
 * made orthonormal; Q = M' P summed over all; M is about P Q'. The next step begins with this Q, so
 * the factors follow the gradient's largest directions from step to step.
 *
 * What differs from the paper:
 *   - A rank's residual is M - P Q' with its own Q, not with the sum's. Both add up to the same
 *     over all ranks, but this one is the part of M outside the basis: it never grows beyond M, and
 *     what is lost with a rank is small (docs/decisions/8009).
 *   - Columns of Q are kept with length 1. Gram-Schmidt does not depend on their lengths, and
 *     products of small gradients then cannot underflow.
 *   - A column of Q that has become 0 (the matrix had a lower rank, or was 0) begins anew from
 *     random numbers. It would stay 0 for ever.
 *
 * Factors are stored with each column contiguous: P as r x rows, Q as r x cols. Every sum has one
 * order, whatever the vectors' width: products add in LANES partial sums, and rows in fours. */
#include "trial-runner/distributed/gradient_codec_priv.h"

#include <math.h>
#include <string.h>

#include "base/cpu_clones.h"
#include "base/rng.h"

#define LANES 16
#define TILE 1024 /* columns whose part of Q stays in the nearest cache */
#define GROUP 4   /* rows */
/* A column that Gram-Schmidt makes this much shorter was a combination of those before it. */
#define DEPENDENT 1e-6

struct matrix {
    size_t rows, cols, r; /* r == 0: travels whole */
    size_t first;         /* values */
    size_t left, right;   /* where its numbers are in the two sums */
};

struct low_rank {
    struct matrix *m;
    size_t n_matrices, values, left_n, right_n;
    float *q;                /* [right_n]: what the next step begins with */
    float *left;             /* [left_n]: the first sum, matrices as a basis */
    float *row;              /* [the most columns] */
    struct codec *halves[2]; /* of the two factors; NULL: they travel as float32 */
};

void low_rank_free(struct low_rank *l)
{
    if (!l)
        return;
    free(l->m);
    free(l->q);
    free(l->left);
    free(l->row);
    codec_free(l->halves[0]);
    codec_free(l->halves[1]);
    free(l);
}
AS_DEFINE_FREEP(struct low_rank, low_rank_free)

/* ---- plan and state ---- */

static as_status plan_tensor(struct low_rank *l, const struct codec_tensor *t, uint32_t rank,
                             struct as_err *err)
{
    struct matrix *m = &l->m[l->n_matrices];
    size_t n, total, r = rank;
    if (__builtin_mul_overflow(t->rows, t->cols, &n) ||
        __builtin_add_overflow(l->values, n, &total) || total > SIZE_MAX / 512)
        return as_fail(err, AS_E_TOO_LARGE, "a tensor of %zu x %zu values is too large", t->rows,
                       t->cols);
    if (n == 0)
        return AS_OK;
    r = r < t->rows ? r : t->rows;
    r = r < t->cols ? r : t->cols;
    bool smaller = r * (t->rows + t->cols) < n;
    *m = (struct matrix){.rows = t->rows,
                         .cols = t->cols,
                         .r = smaller ? r : 0,
                         .first = l->values,
                         .left = l->left_n,
                         .right = l->right_n};
    l->n_matrices++;
    l->values = total;
    l->left_n += smaller ? m->r * m->rows : n;
    l->right_n += m->r * m->cols;
    return AS_OK;
}

/* Uniform in [-1, 1), by a column's place alone: equal on all ranks and processors. */
static void begin_column(const struct matrix *m, size_t column, float *q)
{
    struct rng r;
    rng_init(&r, m->right, column);
    for (size_t i = 0; i < m->cols; i++)
        q[i] = (float)(int32_t)rng_u32(&r) * 0x1p-31F;
}

CPU_CLONES static double product(const float *a, const float *b, size_t n)
{
    double lane[LANES] = {0};
    size_t whole = n / LANES * LANES;
    for (size_t i = 0; i < whole; i += LANES)
        for (size_t k = 0; k < LANES; k++)
            lane[k] += (double)a[i + k] * (double)b[i + k];
    for (size_t i = whole; i < n; i++)
        lane[i - whole] += (double)a[i] * (double)b[i];
    for (size_t width = LANES / 2; width; width /= 2)
        for (size_t i = 0; i < width; i++)
            lane[i] += lane[i + width];
    return lane[0];
}

/* to[i] = from[i] * by. */
CPU_CLONES static void scale(const float *from, size_t n, double by, float *to)
{
    for (size_t i = 0; i < n; i++)
        to[i] = (float)((double)from[i] * by);
}

/* The columns of q that the next step begins with, from the sum. */
static void keep_right(struct low_rank *l, const float *sum)
{
    for (size_t i = 0; i < l->n_matrices; i++) {
        const struct matrix *m = &l->m[i];
        for (size_t j = 0; j < m->r; j++) {
            const float *from = sum + m->right + j * m->cols;
            float *q = l->q + m->right + j * m->cols;
            double length = sqrt(product(from, from, m->cols));
            if (length > 0 && isfinite(length)) {
                scale(from, m->cols, 1 / length, q);
                continue;
            }
            begin_column(m, j, q);
        }
    }
}

/* How the factors travel as halves: each column has a scale of its own, or shares it with some of
 * its neighbours. */
static as_status create_halves(struct low_rank *l, struct as_err *err)
{
    const struct codec_opts opts = {.name = "fp16"};
    AS_AUTO(as_freep) struct codec_tensor *t = as_calloc(2 * l->n_matrices, sizeof *t);
    if (!t)
        return as_fail_nomem(err);
    struct codec_tensor *right = t + l->n_matrices;
    for (size_t i = 0; i < l->n_matrices; i++) {
        const struct matrix *m = &l->m[i];
        t[i] = m->r ? (struct codec_tensor){m->r, m->rows}
                    : (struct codec_tensor){1, m->rows * m->cols};
        right[i] = (struct codec_tensor){m->r, m->cols};
    }
    as_status st = codec_create(&opts, t, l->n_matrices, &l->halves[0], err);
    return st < 0 ? st : codec_create(&opts, right, l->n_matrices, &l->halves[1], err);
}

as_status low_rank_create(const struct codec_opts *opts, const struct codec_tensor *tensors,
                          size_t n_tensors, struct low_rank **ret, struct as_err *err)
{
    AS_AUTO(low_rank_freep) struct low_rank *l = as_calloc(1, sizeof *l);
    size_t widest = 0;
    as_status st = AS_OK;
    if (!l || !(l->m = as_calloc(n_tensors, sizeof *l->m)))
        return as_fail_nomem(err);
    for (size_t i = 0; i < n_tensors; i++) {
        if ((st = plan_tensor(l, &tensors[i], opts->rank, err)) < 0)
            return st;
        widest = tensors[i].cols > widest ? tensors[i].cols : widest;
    }
    l->q = as_calloc(l->right_n, sizeof *l->q);
    l->left = as_calloc(l->left_n, sizeof *l->left);
    l->row = as_calloc(widest, sizeof *l->row);
    if (!l->q || !l->left || !l->row)
        return as_fail_nomem(err);
    if (opts->half && (st = create_halves(l, err)) < 0)
        return st;
    for (size_t i = 0; i < l->n_matrices; i++)
        for (size_t j = 0; j < l->m[i].r; j++)
            begin_column(&l->m[i], j, l->q + l->m[i].right + j * l->m[i].cols);
    *ret = as_steal(l);
    return AS_OK;
}

struct codec *codec_left_halves(struct codec *c)
{
    return c->low_rank->halves[0];
}

struct codec *codec_right_halves(struct codec *c)
{
    return c->low_rank->halves[1];
}

/* ---- the first phase: P = M Q ---- */

CPU_CLONES static void sum_pair(const float *x, const float *before, size_t n, float *v)
{
    for (size_t i = 0; i < n; i++)
        v[i] = x[i] + before[i];
}

/* LANES numbers at a time, whatever the processor's vectors. */
typedef float lanes_f32 __attribute__((vector_size(LANES * 4), aligned(4), may_alias));

/* ret[j] = row . column j of q, for `r` columns (a constant where this is inlined). */
CPU_INLINE void row_products(const float *row, const float *q, size_t n, size_t r, float *ret)
{
    lanes_f32 sum[GROUP] = {{0}};
    size_t whole = n / LANES * LANES;
    for (size_t i = 0; i < whole; i += LANES) {
        lanes_f32 x = *(const lanes_f32 *)(row + i);
        for (size_t j = 0; j < r; j++)
            sum[j] += x * *(const lanes_f32 *)(q + j * n + i);
    }
    for (size_t j = 0; j < r; j++) {
        float lane[LANES];
        memcpy(lane, &sum[j], sizeof lane);
        for (size_t i = whole; i < n; i++)
            lane[i - whole] += row[i] * q[j * n + i];
        for (size_t width = LANES / 2; width; width /= 2)
            for (size_t i = 0; i < width; i++)
                lane[i] += lane[i + width];
        ret[j] = lane[0];
    }
}

/* p [r, rows]: column i of it = the row's products with all columns of q. */
CPU_CLONES static void left_of_row(const struct matrix *m, const float *row, const float *q,
                                   size_t i, float *p)
{
    size_t n = m->cols, j = 0;
    float got[GROUP];
    for (; j + GROUP <= m->r; j += GROUP) {
        row_products(row, q + j * n, n, GROUP, got);
        for (size_t k = 0; k < GROUP; k++)
            p[(j + k) * m->rows + i] = got[k];
    }
    if (j + 2 <= m->r) {
        row_products(row, q + j * n, n, 2, got);
        p[j * m->rows + i] = got[0];
        p[(j + 1) * m->rows + i] = got[1];
        j += 2;
    }
    if (j < m->r) {
        row_products(row, q + j * n, n, 1, got);
        p[j * m->rows + i] = got[0];
    }
}

static void left_of(const struct matrix *m, const float *x, const float *before, float *v,
                    const float *q, float *row, float *p)
{
    for (size_t i = 0; i < m->rows; i++) {
        size_t at = i * m->cols;
        const float *whole = x + at;
        if (before) {
            float *to = v ? v + at : row;
            sum_pair(x + at, before + at, m->cols, to);
            whole = to;
        } else if (v) {
            memcpy(v + at, x + at, m->cols * sizeof *v);
        }
        left_of_row(m, whole, q, i, p);
    }
}

size_t low_rank_values(const struct low_rank *l)
{
    return l->values;
}

size_t codec_left_n(const struct codec *c)
{
    return c->low_rank->left_n;
}

size_t codec_right_n(const struct codec *c)
{
    return c->low_rank->right_n;
}

void codec_left(struct codec *c, const float *x, const float *before, float *v, float *out)
{
    struct low_rank *l = c->low_rank;
    for (size_t i = 0; i < l->n_matrices; i++) {
        const struct matrix *m = &l->m[i];
        const float *b = before ? before + m->first : NULL;
        float *to = v ? v + m->first : NULL, *own = out + m->left;
        size_t n = m->rows * m->cols;
        if (m->r) {
            left_of(m, x + m->first, b, to, l->q + m->right, l->row, own);
            continue;
        }
        if (b)
            sum_pair(x + m->first, b, n, own);
        else
            memcpy(own, x + m->first, n * sizeof *own);
        if (to)
            memcpy(to, own, n * sizeof *own);
    }
}

/* ---- an orthonormal basis of P's columns ---- */

/* p -= (p . basis) basis */
CPU_CLONES static void remove_part(const float *basis, size_t n, float *p)
{
    double along = product(p, basis, n);
    for (size_t i = 0; i < n; i++)
        p[i] = (float)((double)p[i] - along * (double)basis[i]);
}

/* Modified Gram-Schmidt, each column twice: twice is enough (Giraud, Langou, Rozloznik 2005). */
static void make_orthonormal(const struct matrix *m, float *p)
{
    for (size_t j = 0; j < m->r; j++) {
        float *column = p + j * m->rows;
        double before = sqrt(product(column, column, m->rows));
        for (size_t k = 0; k < 2 * j; k++)
            remove_part(p + k % j * m->rows, m->rows, column);
        double length = sqrt(product(column, column, m->rows));
        if (length <= DEPENDENT * before) /* not if it is NaN: that is to be seen in the result */
            memset(column, 0, m->rows * sizeof *column);
        else
            scale(column, m->rows, 1 / length, column);
    }
}

void codec_left_summed(struct codec *c, const float *sum)
{
    struct low_rank *l = c->low_rank;
    if (l->left_n)
        memcpy(l->left, sum, l->left_n * sizeof *sum);
    for (size_t i = 0; i < l->n_matrices; i++)
        make_orthonormal(&l->m[i], l->left + l->m[i].left);
}

/* ---- the second phase: Q = M' P ---- */

/* q += the sum over up to GROUP rows of p times the row; v: the rows, `cols` apart. */
CPU_INLINE void add_rows(const float *p, size_t n_rows, const float *restrict v, size_t cols,
                         size_t n, float *restrict q)
{
    if (n_rows == GROUP)
        for (size_t i = 0; i < n; i++)
            q[i] += (p[0] * v[i] + p[1] * v[cols + i]) +
                    (p[2] * v[2 * cols + i] + p[3] * v[3 * cols + i]);
    else
        for (size_t k = 0; k < n_rows; k++)
            for (size_t i = 0; i < n; i++)
                q[i] += p[k] * v[k * cols + i];
}

/* One tile of n columns; v and q begin at it. */
CPU_CLONES static void right_of_tile(const struct matrix *m, const float *p, const float *v,
                                     size_t n, float *q)
{
    for (size_t j = 0; j < m->r; j++)
        memset(q + j * m->cols, 0, n * sizeof *q);
    for (size_t i = 0; i < m->rows; i += GROUP) {
        size_t rows = m->rows - i < GROUP ? m->rows - i : GROUP;
        for (size_t j = 0; j < m->r; j++)
            add_rows(p + j * m->rows + i, rows, v + i * m->cols, m->cols, n, q + j * m->cols);
    }
}

void codec_right(struct codec *c, const float *v, float *out)
{
    struct low_rank *l = c->low_rank;
    for (size_t i = 0; i < l->n_matrices; i++) {
        const struct matrix *m = &l->m[i];
        for (size_t at = 0; m->r && at < m->cols; at += TILE) {
            size_t n = m->cols - at < TILE ? m->cols - at : TILE;
            right_of_tile(m, l->left + m->left, v + m->first + at, n, out + m->right + at);
        }
    }
}

/* ---- products of factors ---- */

/* to = row `i` of P Q' for n columns, or with `less`: to - that. q begins at the first of them. `r`
 * is a constant where this is inlined. */
CPU_INLINE void row_of_product(const struct matrix *m, const float *p, const float *restrict q,
                               size_t r, size_t i, bool less, size_t n, float *restrict to)
{
    for (size_t k = 0; k < n; k++) {
        float sum = 0;
        for (size_t j = 0; j < r; j++)
            sum += p[j * m->rows + i] * q[j * m->cols + k];
        to[k] = less ? to[k] - sum : sum;
    }
}

CPU_INLINE void row_of_any_product(const struct matrix *m, const float *p, const float *restrict q,
                                   size_t i, bool less, size_t n, float *restrict to)
{
    float sum[TILE];
    memset(sum, 0, n * sizeof *sum);
    for (size_t j = 0; j < m->r; j++)
        for (size_t k = 0; k < n; k++)
            sum[k] += p[j * m->rows + i] * q[j * m->cols + k];
    for (size_t k = 0; k < n; k++)
        to[k] = less ? to[k] - sum[k] : sum[k];
}

/* The same for all rows: one tile of n columns. */
CPU_CLONES static void product_of_tile(const struct matrix *m, const float *p, const float *q,
                                       bool less, size_t n, float *to)
{
    for (size_t i = 0; i < m->rows; i++, to += m->cols)
        if (m->r == 1)
            row_of_product(m, p, q, 1, i, less, n, to);
        else if (m->r == 2)
            row_of_product(m, p, q, 2, i, less, n, to);
        else if (m->r == 4)
            row_of_product(m, p, q, 4, i, less, n, to);
        else
            row_of_any_product(m, p, q, i, less, n, to);
}

static void product_of(const struct matrix *m, const float *p, const float *q, bool less, float *to)
{
    for (size_t at = 0; at < m->cols; at += TILE) {
        size_t n = m->cols - at < TILE ? m->cols - at : TILE;
        product_of_tile(m, p, q + at, less, n, to + at);
    }
}

CPU_CLONES static void subtract(const float *what, size_t n, float *from)
{
    for (size_t i = 0; i < n; i++)
        from[i] -= what[i];
}

void codec_factors_lost(struct codec *c, const float *left, const float *right, float *v)
{
    struct low_rank *l = c->low_rank;
    for (size_t i = 0; i < l->n_matrices; i++) {
        const struct matrix *m = &l->m[i];
        if (m->r)
            product_of(m, l->left + m->left, right + m->right, true, v + m->first);
        else
            subtract(left + m->left, m->rows * m->cols, v + m->first);
    }
}

void codec_right_summed(struct codec *c, const float *sum, float *ret)
{
    struct low_rank *l = c->low_rank;
    for (size_t i = 0; i < l->n_matrices; i++) {
        const struct matrix *m = &l->m[i];
        if (m->r)
            product_of(m, l->left + m->left, sum + m->right, false, ret + m->first);
        else
            memcpy(ret + m->first, l->left + m->left, m->rows * m->cols * sizeof *ret);
    }
    keep_right(l, sum);
}

/* ---- the state ---- */

size_t codec_state_n(const struct codec *c)
{
    return c->low_rank ? c->low_rank->right_n : 0;
}

void codec_state_get(const struct codec *c, float *ret)
{
    if (codec_state_n(c))
        memcpy(ret, c->low_rank->q, codec_state_n(c) * sizeof *ret);
}

as_status codec_state_put(struct codec *c, const float *state, size_t n, struct as_err *err)
{
    if (n != codec_state_n(c))
        return as_fail(err, AS_E_INVAL, "the state of codec %s has %zu numbers; expected %zu",
                       codec_name(c), n, codec_state_n(c));
    for (size_t i = 0; i < n; i++)
        if (!isfinite(state[i]))
            return as_fail(err, AS_E_INVAL, "number %zu of the state of codec %s is not finite", i,
                           codec_name(c));
    if (n)
        memcpy(c->low_rank->q, state, n * sizeof *state);
    return AS_OK;
}
