/* powersgd: a matrix M as the product of two thin ones, found by half a step of power iteration.
 *
 * Vogels, Karimireddy, Jaggi, NeurIPS 2019, algorithm 1: P = M Q summed over all; the columns of P
 * made orthonormal; Q = M' P summed over all; M is about P Q'. The next step begins with this Q, so
 * the factors follow the gradient's largest directions from step to step.
 *
 * What differs from the paper:
 *   - A rank's residual is M - P Q' with its own Q, not with the sum's. Both add up to the same
 *     over all ranks, but this one is the part of M outside the basis: it never grows beyond M, and
 *     what is lost with a rank is small (docs/decisions/0168).
 *   - Columns of Q are kept with length 1. Gram-Schmidt does not depend on their lengths, and
 *     products of small gradients then cannot underflow.
 *   - A column of Q that has become 0 (the matrix had a lower rank, or was 0) begins anew from
 *     random numbers. It would stay 0 for ever.
 *
 * Factors are stored with each column contiguous: P as r x rows, Q as r x cols. Every sum has one
 * order, whatever the vectors' width: products add in LANES partial sums, and rows in fours. */
#include "trial-runner/distributed/codec_priv.h"

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
    float *q;    /* [right_n]: what the next step begins with */
    float *left; /* [left_n]: the first sum, matrices as a basis */
    float *row;  /* [the most columns] */
};

void low_rank_free(struct low_rank *l)
{
    if (!l)
        return;
    free(l->m);
    free(l->q);
    free(l->left);
    free(l->row);
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

as_status low_rank_create(uint32_t rank, const struct codec_tensor *tensors, size_t n_tensors,
                          struct low_rank **ret, struct as_err *err)
{
    AS_AUTO(low_rank_freep) struct low_rank *l = as_calloc(1, sizeof *l);
    size_t widest = 0;
    if (!l || !(l->m = as_calloc(n_tensors, sizeof *l->m)))
        return as_fail_nomem(err);
    for (size_t i = 0; i < n_tensors; i++) {
        as_status st = plan_tensor(l, &tensors[i], rank, err);
        if (st < 0)
            return st;
        widest = tensors[i].cols > widest ? tensors[i].cols : widest;
    }
    l->q = as_calloc(l->right_n, sizeof *l->q);
    l->left = as_calloc(l->left_n, sizeof *l->left);
    l->row = as_calloc(widest > GROUP * TILE ? widest : GROUP * TILE, sizeof *l->row);
    if (!l->q || !l->left || !l->row)
        return as_fail_nomem(err);
    for (size_t i = 0; i < l->n_matrices; i++)
        for (size_t j = 0; j < l->m[i].r; j++)
            begin_column(&l->m[i], j, l->q + l->m[i].right + j * l->m[i].cols);
    *ret = as_steal(l);
    return AS_OK;
}

/* ---- the first phase: P = M Q ---- */

CPU_INLINE void sum_pair(const float *x, const float *before, size_t n, float *v)
{
    if (before)
        for (size_t i = 0; i < n; i++)
            v[i] = x[i] + before[i];
    else
        memcpy(v, x, n * sizeof *v);
}

CPU_INLINE float row_product(const float *a, const float *b, size_t n)
{
    float lane[LANES] = {0};
    size_t whole = n / LANES * LANES;
    for (size_t i = 0; i < whole; i += LANES)
        for (size_t k = 0; k < LANES; k++)
            lane[k] += a[i + k] * b[i + k];
    for (size_t i = whole; i < n; i++)
        lane[i - whole] += a[i] * b[i];
    for (size_t width = LANES / 2; width; width /= 2)
        for (size_t i = 0; i < width; i++)
            lane[i] += lane[i + width];
    return lane[0];
}

CPU_CLONES static void left_of(const struct matrix *m, const float *x, const float *before,
                               const float *q, float *row, float *p)
{
    for (size_t i = 0; i < m->rows; i++) {
        sum_pair(x + i * m->cols, before ? before + i * m->cols : NULL, m->cols, row);
        for (size_t j = 0; j < m->r; j++)
            p[j * m->rows + i] = row_product(row, q + j * m->cols, m->cols);
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

void codec_left(struct codec *c, const float *x, const float *before, float *out)
{
    struct low_rank *l = c->low_rank;
    for (size_t i = 0; i < l->n_matrices; i++) {
        const struct matrix *m = &l->m[i];
        const float *b = before ? before + m->first : NULL;
        if (m->r)
            left_of(m, x + m->first, b, l->q + m->right, l->row, out + m->left);
        else
            sum_pair(x + m->first, b, m->rows * m->cols, out + m->left);
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

/* q += the sum over up to GROUP rows of p times the row; v: the rows, TILE apart. */
CPU_INLINE void add_rows(const float *p, size_t n_rows, const float *v, size_t n, float *q)
{
    if (n_rows == GROUP)
        for (size_t i = 0; i < n; i++)
            q[i] += (p[0] * v[i] + p[1] * v[TILE + i]) +
                    (p[2] * v[2 * TILE + i] + p[3] * v[3 * TILE + i]);
    else
        for (size_t k = 0; k < n_rows; k++)
            for (size_t i = 0; i < n; i++)
                q[i] += p[k] * v[k * TILE + i];
}

/* to = from + sign * row `i` of P Q', for n columns. to may be from. */
CPU_INLINE void add_row_of_product(const struct matrix *m, const float *p, const float *q, size_t i,
                                   float sign, size_t n, const float *from, float *to)
{
    float sum[TILE];
    memset(sum, 0, n * sizeof *sum);
    for (size_t j = 0; j < m->r; j++) {
        float factor = p[j * m->rows + i];
        const float *column = q + j * m->cols;
        for (size_t k = 0; k < n; k++)
            sum[k] += factor * column[k];
    }
    for (size_t k = 0; k < n; k++)
        to[k] = from[k] + sign * sum[k];
}

/* One tile of n columns; x, before, after and q begin at it. */
CPU_CLONES static void right_of_tile(const struct matrix *m, const float *p, const float *x,
                                     const float *before, size_t n, float *v, float *after,
                                     float *q)
{
    for (size_t j = 0; j < m->r; j++)
        memset(q + j * m->cols, 0, n * sizeof *q);
    for (size_t i = 0; i < m->rows; i += GROUP) {
        size_t rows = m->rows - i < GROUP ? m->rows - i : GROUP;
        for (size_t k = 0; k < rows; k++) {
            size_t at = (i + k) * m->cols;
            sum_pair(x + at, before ? before + at : NULL, n, v + k * TILE);
        }
        for (size_t j = 0; j < m->r; j++)
            add_rows(p + j * m->rows + i, rows, v, n, q + j * m->cols);
    }
    for (size_t i = 0; after && i < m->rows; i++) {
        size_t at = i * m->cols;
        sum_pair(x + at, before ? before + at : NULL, n, v);
        add_row_of_product(m, p, q, i, -1, n, v, after + at);
    }
}

void codec_right(struct codec *c, const float *x, const float *before, float *after, float *out)
{
    struct low_rank *l = c->low_rank;
    for (size_t i = 0; i < l->n_matrices; i++) {
        const struct matrix *m = &l->m[i];
        if (!m->r && after)
            memset(after + m->first, 0, m->rows * m->cols * sizeof *after);
        for (size_t at = 0; m->r && at < m->cols; at += TILE) {
            size_t n = m->cols - at < TILE ? m->cols - at : TILE, first = m->first + at;
            right_of_tile(m, l->left + m->left, x + first, before ? before + first : NULL, n,
                          l->row, after ? after + first : NULL, out + m->right + at);
        }
    }
}

/* ---- both sums are complete ---- */

CPU_CLONES static void add_tile(const struct matrix *m, const float *p, const float *q, size_t n,
                                float *add)
{
    for (size_t i = 0; i < m->rows; i++)
        add_row_of_product(m, p, q, i, 1, n, add + i * m->cols, add + i * m->cols);
}

CPU_CLONES static void add_whole(const float *sum, size_t n, float *add)
{
    for (size_t i = 0; i < n; i++)
        add[i] += sum[i];
}

void codec_right_summed(struct codec *c, const float *sum, float *add)
{
    struct low_rank *l = c->low_rank;
    for (size_t i = 0; i < l->n_matrices; i++) {
        const struct matrix *m = &l->m[i];
        if (!m->r)
            add_whole(l->left + m->left, m->rows * m->cols, add + m->first);
        for (size_t at = 0; m->r && at < m->cols; at += TILE) {
            size_t n = m->cols - at < TILE ? m->cols - at : TILE;
            add_tile(m, l->left + m->left, sum + m->right + at, n, add + m->first + at);
        }
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
