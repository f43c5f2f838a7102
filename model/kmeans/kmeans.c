/* An iteration of Lloyd: who is nearest, sums, means. */
#include "model/kmeans/kmeans.h"

#include <math.h>
#include <string.h>

#include "base/cpu_clones.h"
#include "base/mem.h"
#include "kernels/cpu/gemm.h"
#include "model/kmeans/kmeans_nearest.h"
#include "base/parallel.h"

#define SHARD_ROWS ((size_t)64)

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* ---- the nearest ---- */

/* What threads share. */
struct assigning {
    const struct kmeans_rows *rows;
    const float *centroids;
    size_t clusters;
    const float *bias; /* [clusters] */
    float *products;   /* [threads x KMEANS_BLOCK, clusters], a place for each piece */
    int32_t *labels;
    double *square;
};

static void assign_rows(const struct assigning *a, size_t begin, size_t end, float *products)
{
    size_t dims = a->rows->dims, k = a->clusters;
    for (size_t at = begin; at < end; at += KMEANS_BLOCK) {
        size_t n = smaller(end - at, KMEANS_BLOCK);
        const float *x = a->rows->x + at * dims;
        kmeans_products(x, n, dims, a->centroids, k, a->bias, products);
        for (size_t i = 0; i < n; i++) {
            size_t best = kmeans_largest(products + i * k, k);
            a->labels[at + i] = (int32_t)best;
            a->square[at + i] = kmeans_square(x + i * dims, a->centroids + best * dims, dims);
        }
    }
}

/* Piece i of `count`: the rows and the place for products are its own. */
struct split {
    const struct assigning *a;
    size_t count, n;
};

static void assign_pieces(void *arg, size_t begin, size_t end)
{
    const struct split *s = arg;
    for (size_t i = begin; i < end; i++)
        assign_rows(s->a, s->n * i / s->count, s->n * (i + 1) / s->count,
                    s->a->products + i * KMEANS_BLOCK * s->a->clusters);
}

as_status kmeans_assign(const struct kmeans_rows *rows, const float *centroids, size_t clusters,
                        size_t threads, int32_t *ret, double *ret_square, struct as_err *err)
{
    size_t pieces = smaller(threads < 1 ? 1 : threads, rows->n / KMEANS_BLOCK + 1);
    AS_AUTO(as_freep) float *bias = as_calloc(clusters, sizeof *bias);
    AS_AUTO(as_freep)
    float *products = as_calloc(pieces * KMEANS_BLOCK, clusters * sizeof *products);
    if (!bias || !products)
        return as_fail_nomem(err);
    as_status st = cpu_gemm_ready(err);
    if (st < 0)
        return st;
    kmeans_bias(centroids, clusters, rows->dims, bias);
    struct assigning a = {rows, centroids, clusters, bias, products, ret, ret_square};
    struct split s = {&a, pieces, rows->n};
    parallel_each(pieces, pieces, assign_pieces, &s);
    return AS_OK;
}

/* ---- sums ---- */

uint32_t kmeans_shards(size_t rows)
{
    size_t n = rows / SHARD_ROWS;
    return n < 1 ? 1 : (uint32_t)smaller(n, KMEANS_MAX_SHARDS);
}

size_t kmeans_shard_begin(size_t rows, uint32_t shard)
{
    return rows * shard / kmeans_shards(rows);
}

size_t kmeans_numbers(size_t clusters, size_t dims)
{
    return clusters * dims + clusters + 1;
}

/* Adds up rows whose clusters are known. */
CPU_CLONES static void add_rows(const struct kmeans_rows *rows, const int32_t *labels,
                                const double *square, size_t clusters, double *ret)
{
    size_t dims = rows->dims;
    double *counts = ret + clusters * dims;
    memset(ret, 0, kmeans_numbers(clusters, dims) * sizeof *ret);
    for (size_t i = 0; i < rows->n; i++) {
        double *sum = ret + (size_t)labels[i] * dims;
        for (size_t d = 0; d < dims; d++)
            sum[d] += (double)rows->x[i * dims + d];
        counts[labels[i]] += 1;
        counts[clusters] += square[i];
    }
}

struct summing {
    const struct kmeans_rows *rows;
    size_t first; /* the first shard, and the row where it begins */
    size_t first_row;
    size_t clusters;
    const int32_t *labels; /* from first_row on */
    const double *square;
    double *const *ret;
};

static void sum_shards(void *arg, size_t begin, size_t end)
{
    const struct summing *s = arg;
    for (size_t i = begin; i < end; i++) {
        uint32_t shard = (uint32_t)(s->first + i);
        size_t from = kmeans_shard_begin(s->rows->n, shard);
        size_t to = kmeans_shard_begin(s->rows->n, shard + 1);
        const struct kmeans_rows own = {s->rows->x + from * s->rows->dims, to - from,
                                        s->rows->dims};
        add_rows(&own, s->labels + (from - s->first_row), s->square + (from - s->first_row),
                 s->clusters, s->ret[i]);
    }
}

as_status kmeans_shard_sums(const struct kmeans_rows *rows, const float *centroids, size_t clusters,
                            uint32_t first, uint32_t count, size_t threads, double *const *ret,
                            struct as_err *err)
{
    size_t from = kmeans_shard_begin(rows->n, first);
    size_t n = kmeans_shard_begin(rows->n, first + count) - from;
    const struct kmeans_rows run = {rows->x + from * rows->dims, n, rows->dims};
    AS_AUTO(as_freep) int32_t *labels = as_calloc(n + 1, sizeof *labels);
    AS_AUTO(as_freep) double *square = as_calloc(n + 1, sizeof *square);
    if (!labels || !square)
        return as_fail_nomem(err);
    as_status st = kmeans_assign(&run, centroids, clusters, threads, labels, square, err);
    if (st < 0)
        return st;
    struct summing s = {rows, first, from, clusters, labels, square, ret};
    parallel_each(count, threads, sum_shards, &s);
    return AS_OK;
}

void kmeans_tree_sum(double *const *partials, uint32_t total, size_t n)
{
    for (size_t step = 1; step < total; step *= 2)
        for (size_t at = 0; at + step < total; at += 2 * step)
            for (size_t i = 0; i < n; i++)
                partials[at][i] += partials[at + step][i];
}

/* ---- means ---- */

/* The row that is farthest from its centroid, of those whose cluster keeps a row; n: none is away
 * from it. */
static size_t find_farthest(const int32_t *labels, const double *square, size_t n,
                            const double *counts)
{
    size_t best = n;
    double most = 0;
    for (size_t i = 0; i < n; i++)
        if (square[i] > most && counts[labels[i]] > 1) {
            most = square[i];
            best = i;
        }
    return best;
}

/* Gives each cluster without rows one, which leaves its own. */
static as_status fill_empty(const struct kmeans_rows *rows, double *numbers, size_t clusters,
                            size_t threads, const float *centroids, struct as_err *err)
{
    size_t dims = rows->dims;
    double *counts = numbers + clusters * dims;
    AS_AUTO(as_freep) int32_t *labels = as_calloc(rows->n, sizeof *labels);
    AS_AUTO(as_freep) double *square = as_calloc(rows->n, sizeof *square);
    if (!labels || !square)
        return as_fail_nomem(err);
    as_status st = kmeans_assign(rows, centroids, clusters, threads, labels, square, err);
    for (size_t k = 0; st == AS_OK && k < clusters; k++) {
        size_t row = counts[k] > 0 ? rows->n : find_farthest(labels, square, rows->n, counts);
        if (row == rows->n)
            continue;
        size_t old = (size_t)labels[row];
        for (size_t d = 0; d < dims; d++) {
            double x = (double)rows->x[row * dims + d];
            numbers[k * dims + d] = x;
            numbers[old * dims + d] -= x;
        }
        counts[k] = 1;
        counts[old] -= 1;
        labels[row] = (int32_t)k;
        square[row] = 0;
    }
    return st;
}

/* Moves a centroid to the mean; returns the square of how far. */
static double move_one(const double *sum, double count, size_t dims, float *centroid)
{
    double shift = 0;
    for (size_t d = 0; d < dims; d++) {
        float mean = (float)(sum[d] / count);
        double moved = (double)mean - (double)centroid[d];
        shift += moved * moved;
        centroid[d] = mean;
    }
    return shift;
}

as_status kmeans_move(const struct kmeans_rows *rows, double *numbers, size_t clusters,
                      size_t threads, float *centroids, double *ret_shift, struct as_err *err)
{
    size_t dims = rows->dims;
    const double *counts = numbers + clusters * dims;
    bool empty = false;
    for (size_t k = 0; k < clusters; k++)
        empty = empty || counts[k] <= 0;
    as_status st = empty ? fill_empty(rows, numbers, clusters, threads, centroids, err) : AS_OK;
    if (st < 0)
        return st;
    *ret_shift = 0;
    for (size_t k = 0; k < clusters; k++)
        if (counts[k] > 0)
            *ret_shift += move_one(numbers + k * dims, counts[k], dims, centroids + k * dims);
    return AS_OK;
}
