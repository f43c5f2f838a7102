/* Pairs are rows of two arrays, in a ring: row (next - pairs + i) mod most is the i-th oldest. With
 * the gradient they are the basis b of 2 x pairs + 1 vectors whose inner products say all that the
 * two loops need; coefficients of the basis are what they compute. */
#include "trial-runner/distributed/lbfgs_history.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TAG_PRODUCTS = 64, TAG_MOVE, TAG_CLAIMS, TAG_PIECE, TAG_GATHER };

/* Curvature below this part of |y|^2 is noise (Li and Fukushima 2001: cautious updates). */
#define LEAST_CURVATURE 1e-10

/* ---- life ---- */

as_status lbfgs_history_init(struct lbfgs_history *ret, size_t n, uint32_t most, struct as_err *err)
{
    struct lbfgs_history h = {
        .n = n, .stride = (n + LBFGS_PIECES - 1) / LBFGS_PIECES, .most = most};
    size_t all;
    if (__builtin_mul_overflow(n, (size_t)most, &all))
        return as_fail(err, AS_E_TOO_LARGE, "%u pairs of %zu numbers", (unsigned)most, n);
    h.s = as_calloc(all, sizeof *h.s);
    h.y = as_calloc(all, sizeof *h.y);
    if (!h.s || !h.y) {
        lbfgs_history_done(&h);
        return as_fail_nomem(err);
    }
    lbfgs_hold_all(&h, 0);
    *ret = h;
    return AS_OK;
}

void lbfgs_history_done(struct lbfgs_history *h)
{
    free(h->s);
    free(h->y);
    *h = (struct lbfgs_history){0};
}

static size_t pairs_of(const struct lbfgs_history *h)
{
    return (size_t)h->head[0];
}

/* The row of the i-th oldest pair. */
static size_t row_of(const struct lbfgs_history *h, size_t i)
{
    return ((size_t)h->head[1] + h->most - pairs_of(h) + i) % h->most;
}

void lbfgs_piece(const struct lbfgs_history *h, size_t p, size_t *ret_first, size_t *ret_end)
{
    *ret_first = p * h->stride < h->n ? p * h->stride : h->n;
    *ret_end = *ret_first + h->stride < h->n ? *ret_first + h->stride : h->n;
}

/* The pieces of a rank. */
static void own_pieces(int32_t n_ranks, int32_t rank, size_t *ret_first, size_t *ret_end)
{
    coll_slice(LBFGS_PIECES, n_ranks, rank, ret_first, ret_end);
}

/* ---- inner products ---- */

/* The vectors: of s and of y, oldest first, then g. */
struct basis {
    size_t pairs, n; /* n: 2 pairs + 1 */
    const float *v[2 * 255 + 1];
};

static struct basis basis_of(const struct lbfgs_history *h, const float *g)
{
    struct basis b = {.pairs = pairs_of(h)};
    for (size_t i = 0; i < b.pairs; i++) {
        b.v[i] = h->s + row_of(h, i) * h->n;
        b.v[b.pairs + i] = h->y + row_of(h, i) * h->n;
    }
    b.n = 2 * b.pairs + 1;
    b.v[b.n - 1] = g;
    return b;
}

static double product(const float *a, const float *b, size_t first, size_t end)
{
    double sum = 0;
    for (size_t i = first; i < end; i++)
        sum += (double)a[i] * (double)b[i];
    return sum;
}

/* ret [n, n] = the inner products of the basis. */
static as_status products_of(const struct lbfgs_history *h, struct coll *c, int64_t step,
                             const struct basis *b, double *ret, struct as_err *err)
{
    struct coll_id id = {.step = (uint64_t)step, .tag = TAG_PRODUCTS, .what = "inner products"};
    size_t each = b->n * (b->n + 1) / 2, first, end;
    AS_AUTO(as_freep) double *parts = as_calloc(LBFGS_PIECES * each, sizeof *parts);
    if (!parts)
        return as_fail_nomem(err);
    own_pieces(coll_size(c), coll_rank(c), &first, &end);
    for (size_t p = first; p < end; p++) {
        size_t from, to, k = 0;
        lbfgs_piece(h, p, &from, &to);
        for (size_t i = 0; i < b->n; i++)
            for (size_t j = 0; j <= i; j++)
                parts[p * each + k++] = product(b->v[i], b->v[j], from, to);
    }
    as_status st = coll_allgather(c, id, parts, LBFGS_PIECES, each * sizeof *parts, err);
    for (size_t i = 0, k = 0; st == AS_OK && i < b->n; i++)
        for (size_t j = 0; j <= i; j++, k++) {
            double sum = 0;
            for (size_t p = 0; p < LBFGS_PIECES; p++)
                sum += parts[p * each + k];
            ret[i * b->n + j] = ret[j * b->n + i] = sum;
        }
    return st;
}

/* ---- the direction ---- */

/* Coefficients x column i of the products: the inner product of what they stand for with b_i. */
static double with(const double *products, const double *coefficients, size_t n, size_t i)
{
    double sum = 0;
    for (size_t j = 0; j < n; j++)
        sum += coefficients[j] * products[j * n + i];
    return sum;
}

/* The two loops (Nocedal and Wright, algorithm 7.4) on coefficients [b->n] of the basis. */
static void two_loops(const struct basis *b, const double *products, double *d)
{
    size_t m = b->pairs, n = b->n;
    double back[255];
    memset(d, 0, n * sizeof *d);
    d[n - 1] = -1;
    for (size_t i = m; i-- > 0;) {
        back[i] = with(products, d, n, i) / products[i * n + m + i];
        d[m + i] -= back[i];
    }
    if (m > 0) {
        size_t y = 2 * m - 1;
        double scale = products[(m - 1) * n + y] / products[y * n + y];
        for (size_t j = 0; j < n; j++)
            d[j] *= scale;
    }
    for (size_t i = 0; i < m; i++)
        d[i] += back[i] - with(products, d, n, m + i) / products[i * n + m + i];
}

/* Has the newest pair positive curvature? All others had it when they were the newest. */
static bool is_curved(const struct basis *b, const double *products)
{
    size_t m = b->pairs, s = m - 1, y = 2 * m - 1;
    return m == 0 || products[s * b->n + y] > LEAST_CURVATURE * products[y * b->n + y];
}

as_status lbfgs_direct(struct lbfgs_history *h, struct coll *c, int64_t step, const float *g,
                       struct lbfgs_direction *ret, struct as_err *err)
{
    struct basis b = basis_of(h, g);
    AS_AUTO(as_freep) double *products = as_calloc(b.n * b.n, sizeof *products);
    AS_AUTO(as_freep) double *d = as_calloc(b.n, sizeof *d);
    if (!products || !d)
        return as_fail_nomem(err);
    as_status st = products_of(h, c, step, &b, products, err);
    if (st < 0)
        return st;
    if (!is_curved(&b, products)) {
        h->head[0] -= 1;
        h->head[1] = (float)(((size_t)h->head[1] + h->most - 1) % h->most);
        return lbfgs_direct(h, c, step, g, ret, err);
    }
    two_loops(&b, products, d);
    for (size_t i = 0; i < b.pairs; i++) {
        ret->of_s[i] = d[i];
        ret->of_y[i] = d[b.pairs + i];
    }
    ret->pairs = b.pairs;
    ret->of_g = d[b.n - 1];
    ret->slope = with(products, d, b.n, b.n - 1);
    ret->g_norm = sqrt(products[b.n * b.n - 1]);
    return AS_OK;
}

as_status lbfgs_move(const struct lbfgs_history *h, struct coll *c, int64_t step,
                     const struct lbfgs_direction *d, double length, const float *x, const float *g,
                     float *to, struct as_err *err)
{
    struct coll_id id = {.step = (uint64_t)step, .tag = TAG_MOVE, .what = "weights"};
    struct basis b = basis_of(h, g);
    size_t first, end, from, till;
    own_pieces(coll_size(c), coll_rank(c), &first, &end);
    for (size_t p = first; p < end; p++) {
        lbfgs_piece(h, p, &from, &till);
        for (size_t i = from; i < till; i++) {
            double v = d->of_g * (double)g[i];
            for (size_t k = 0; k < d->pairs; k++)
                v += d->of_s[k] * (double)b.v[k][i] + d->of_y[k] * (double)b.v[d->pairs + k][i];
            to[i] = (float)((double)x[i] + length * v);
        }
    }
    return coll_allgather(c, id, to, LBFGS_PIECES, h->stride * sizeof *to, err);
}

/* ---- pairs ---- */

void lbfgs_remember(struct lbfgs_history *h, const struct coll *c, int64_t next, const float *x,
                    const float *moved, const float *g, const float *g_moved)
{
    size_t row = (size_t)h->head[1], first, end, from, till;
    float *s = h->s + row * h->n, *y = h->y + row * h->n;
    own_pieces(coll_size(c), coll_rank(c), &first, &end);
    lbfgs_piece(h, first < end ? first : 0, &from, &till);
    if (first < end)
        lbfgs_piece(h, end - 1, &(size_t){0}, &till);
    for (size_t i = from; first < end && i < till; i++) {
        s[i] = moved[i] - x[i];
        y[i] = g_moved[i] - g[i];
    }
    for (size_t p = 0; p < LBFGS_PIECES; p++)
        h->held[p] = p >= first && p < end;
    h->head[0] = h->head[0] < (float)h->most ? h->head[0] + 1 : h->head[0];
    h->head[1] = (float)((row + 1) % h->most);
    h->step = next;
}

void lbfgs_complete(struct lbfgs_history *h, int64_t next, const float *x, const float *moved,
                    const float *g, const float *g_moved)
{
    size_t row = ((size_t)h->head[1] + h->most - 1) % h->most, from, till;
    float *s = h->s + row * h->n, *y = h->y + row * h->n;
    h->step = next;
    for (size_t p = 0; p < LBFGS_PIECES && h->head[0] > 0; p++) {
        lbfgs_piece(h, p, &from, &till);
        for (size_t i = from; h->held[p] && i < till; i++) {
            s[i] = moved[i] - x[i];
            y[i] = g_moved[i] - g[i];
        }
    }
}

void lbfgs_forget(struct lbfgs_history *h, int64_t next)
{
    h->head[0] = h->head[1] = 0;
    lbfgs_hold_all(h, next);
}

void lbfgs_hold_all(struct lbfgs_history *h, int64_t step)
{
    for (size_t p = 0; p < LBFGS_PIECES; p++)
        h->held[p] = true;
    h->step = step;
}

/* ---- meeting ---- */

/* What a rank has; one that is at another position has nothing. */
struct claim {
    uint64_t pairs;
    uint8_t held[LBFGS_PIECES];
};

/* Who gives piece p: the new owner itself, else the first that has it. -1: nobody. */
static int32_t giver_of(const struct claim *all, int32_t n, int32_t owner, size_t p)
{
    if (all[owner].held[p])
        return owner;
    for (int32_t r = 0; r < n; r++)
        if (all[r].held[p])
            return r;
    return -1;
}

static int32_t owner_of(int32_t n_ranks, size_t p)
{
    int32_t r = 0;
    for (; r < n_ranks; r++) {
        size_t first, end;
        own_pieces(n_ranks, r, &first, &end);
        if (p >= first && p < end)
            break;
    }
    return r;
}

/* One piece of every pair, from one rank to another. */
static as_status move_piece(struct lbfgs_history *h, struct coll *c, unsigned tag, size_t p,
                            int32_t from, int32_t to, struct as_err *err)
{
    struct coll_id id = {.step = p, .tag = tag, .what = "pairs"};
    size_t first, end, pairs = pairs_of(h);
    int32_t own = coll_rank(c);
    lbfgs_piece(h, p, &first, &end);
    size_t width = end - first, n = 2 * pairs * width;
    if (from == to || (own != from && own != to) || n == 0)
        return AS_OK;
    AS_AUTO(as_freep) float *values = as_calloc(n, sizeof *values);
    if (!values)
        return as_fail_nomem(err);
    for (size_t i = 0; own == from && i < pairs; i++) {
        size_t at = row_of(h, i) * h->n + first;
        memcpy(values + 2 * i * width, h->s + at, width * sizeof *values);
        memcpy(values + (2 * i + 1) * width, h->y + at, width * sizeof *values);
    }
    if (own == from)
        return coll_send(c, id, to, values, n * sizeof *values, err);
    as_status st = coll_receive(c, id, from, values, n * sizeof *values, err);
    for (size_t i = 0; st == AS_OK && i < pairs; i++) {
        size_t at = row_of(h, i) * h->n + first;
        memcpy(h->s + at, values + 2 * i * width, width * sizeof *values);
        memcpy(h->y + at, values + (2 * i + 1) * width, width * sizeof *values);
    }
    return st;
}

static as_status exchange_claims(const struct lbfgs_history *h, struct coll *c, int64_t step,
                                 struct claim **ret, struct as_err *err)
{
    size_t n = (size_t)coll_size(c);
    AS_AUTO(as_freep) struct claim *all = as_calloc(n, sizeof *all);
    if (!all)
        return as_fail_nomem(err);
    struct claim *own = &all[coll_rank(c)];
    own->pairs = pairs_of(h);
    for (size_t p = 0; p < LBFGS_PIECES; p++)
        own->held[p] = h->held[p] && h->step == step;
    as_status st = coll_allgather(c, (struct coll_id){.tag = TAG_CLAIMS, .what = "pairs"}, all, n,
                                  sizeof *all, err);
    if (st == AS_OK)
        *ret = as_steal(all);
    return st;
}

/* Is every piece there, and does nobody begin anew? */
static bool are_whole(const struct claim *all, int32_t n)
{
    for (size_t p = 0; p < LBFGS_PIECES; p++)
        if (giver_of(all, n, 0, p) < 0)
            return false;
    for (int32_t r = 1; r < n; r++)
        if (all[r].pairs != all[0].pairs)
            return false;
    return true;
}

/* A rank that has got another's state has its head, and no piece. */
as_status lbfgs_meet(struct lbfgs_history *h, struct coll *c, int64_t step, struct as_err *err)
{
    AS_AUTO(as_freep) struct claim *all = NULL;
    int32_t n = coll_size(c), own = coll_rank(c);
    as_status st = exchange_claims(h, c, step, &all, err);
    if (st < 0)
        return st;
    if (!are_whole(all, n)) {
        if (own == 0 && pairs_of(h) > 0)
            (void)fprintf(stderr, "assay-train: pairs of L-BFGS are lost with their rank, and "
                                  "begin anew\n");
        lbfgs_forget(h, step);
        return AS_OK;
    }
    if (h->step != step)
        memset(h->held, 0, sizeof h->held);
    h->step = step;
    for (size_t p = 0; st == AS_OK && p < LBFGS_PIECES; p++) {
        int32_t to = owner_of(n, p), from = giver_of(all, n, to, p);
        st = move_piece(h, c, TAG_PIECE, p, from, to, err);
        h->held[p] = h->held[p] || (st == AS_OK && own == to);
    }
    return st;
}

/* ---- checkpoints ---- */

size_t lbfgs_parts(struct lbfgs_history *h, struct strategy_part *ret)
{
    size_t all = h->n * h->most;
    ret[0] = (struct strategy_part){.name = "lbfgs_pairs", .values = h->head, .n = 2};
    ret[1] = (struct strategy_part){.name = "lbfgs_s", .values = h->s, .n = all, .spread = true};
    ret[2] = (struct strategy_part){.name = "lbfgs_y", .values = h->y, .n = all, .spread = true};
    return LBFGS_PARTS;
}

as_status lbfgs_gather(struct lbfgs_history *h, struct coll *c, struct as_err *err)
{
    as_status st = AS_OK;
    for (size_t p = 0; st == AS_OK && p < LBFGS_PIECES; p++)
        st = move_piece(h, c, TAG_GATHER, p, owner_of(coll_size(c), p), 0, err);
    return st;
}
