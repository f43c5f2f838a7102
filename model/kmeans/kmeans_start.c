/* Where k-means starts. Distances to candidates are computed block by block, and added up block by
 * block, so the number of threads does not show. */
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "data/random_purpose.h"
#include "kernels/cpu/gemm.h"
#include "model/kmeans/kmeans.h"
#include "model/kmeans/kmeans_nearest.h"
#include "base/parallel.h"

/* The start while it is made. */
struct start {
    const struct kmeans_rows *rows;
    size_t tries;      /* candidates of a draw */
    float *candidates; /* [tries, dims] */
    float *bias;       /* [tries] */
    float *norms;      /* [n]: |x|^2 */
    float *nearest;    /* [n]: squared distance to the nearest centroid so far */
    float *found;      /* [n, tries]: the same with a candidate, for each */
    double *sums;      /* [blocks, tries] of `found` */
    double *before;    /* [blocks]: sums of `nearest` */
};

static size_t blocks_of(const struct start *s)
{
    return (s->rows->n + KMEANS_BLOCK - 1) / KMEANS_BLOCK;
}

static size_t block_end(const struct start *s, size_t block)
{
    size_t end = (block + 1) * KMEANS_BLOCK;
    return end < s->rows->n ? end : s->rows->n;
}

static void start_done(struct start *s)
{
    free(s->candidates);
    free(s->bias);
    free(s->norms);
    free(s->nearest);
    free(s->found);
    free(s->sums);
    free(s->before);
}

static as_status start_init(struct start *s, size_t clusters, struct as_err *err)
{
    size_t n = s->rows->n;
    s->tries = 2 + (size_t)log((double)clusters);
    s->candidates = as_calloc(s->tries, s->rows->dims * sizeof *s->candidates);
    s->bias = as_calloc(s->tries, sizeof *s->bias);
    s->norms = as_calloc(n, sizeof *s->norms);
    s->nearest = as_calloc(n, sizeof *s->nearest);
    s->found = as_calloc(n, s->tries * sizeof *s->found);
    s->sums = as_calloc(blocks_of(s), s->tries * sizeof *s->sums);
    s->before = as_calloc(blocks_of(s), sizeof *s->before);
    return s->candidates && s->bias && s->norms && s->nearest && s->found && s->sums && s->before
               ? AS_OK
               : as_fail_nomem(err);
}

static void find_norms(void *arg, size_t begin, size_t end)
{
    const struct start *s = arg;
    size_t dims = s->rows->dims;
    for (size_t i = begin; i < end; i++) {
        double sum = 0;
        for (size_t d = 0; d < dims; d++)
            sum += (double)s->rows->x[i * dims + d] * (double)s->rows->x[i * dims + d];
        s->norms[i] = (float)sum;
        s->nearest[i] = INFINITY;
    }
}

/* What each candidate of a block would leave: `found` and `sums`. */
static void try_blocks(void *arg, size_t begin, size_t end)
{
    const struct start *s = arg;
    size_t dims = s->rows->dims, tries = s->tries;
    for (size_t b = begin; b < end; b++) {
        size_t from = b * KMEANS_BLOCK, n = block_end(s, b) - from;
        float *found = s->found + from * tries;
        double *sums = s->sums + b * tries;
        kmeans_products(s->rows->x + from * dims, n, dims, s->candidates, tries, s->bias, found);
        memset(sums, 0, tries * sizeof *sums);
        for (size_t i = 0; i < n; i++)
            for (size_t t = 0; t < tries; t++) {
                float square = s->norms[from + i] - 2 * found[i * tries + t];
                square = square > 0 ? square : 0;
                square = square < s->nearest[from + i] ? square : s->nearest[from + i];
                found[i * tries + t] = square;
                sums[t] += (double)square;
            }
    }
}

/* Takes candidate `chosen`: `nearest` and `before`. */
static void take(const struct start *s, size_t chosen)
{
    for (size_t b = 0; b < blocks_of(s); b++) {
        s->before[b] = s->sums[b * s->tries + chosen];
        for (size_t i = b * KMEANS_BLOCK; i < block_end(s, b); i++)
            s->nearest[i] = s->found[i * s->tries + chosen];
    }
}

static void try_candidates(struct start *s, size_t threads)
{
    kmeans_bias(s->candidates, s->tries, s->rows->dims, s->bias);
    parallel_each(blocks_of(s), threads, try_blocks, s);
}

static size_t best_candidate(const struct start *s)
{
    size_t best = 0;
    double least = INFINITY;
    for (size_t t = 0; t < s->tries; t++) {
        double sum = 0;
        for (size_t b = 0; b < blocks_of(s); b++)
            sum += s->sums[b * s->tries + t];
        if (sum < least) {
            least = sum;
            best = t;
        }
    }
    return best;
}

/* A row in proportion to its squared distance; any row, where all are 0. */
static size_t draw_row(const struct start *s, struct rng *rng)
{
    size_t n = s->rows->n, b = 0;
    double total = 0;
    for (size_t i = 0; i < blocks_of(s); i++)
        total += s->before[i];
    if (!(total > 0))
        return (size_t)rng_below(rng, n);
    double at = rng_uniform(rng) * total;
    while (b + 1 < blocks_of(s) && at >= s->before[b])
        at -= s->before[b++];
    size_t row = b * KMEANS_BLOCK;
    for (size_t i = row; i < block_end(s, b); i++) {
        if (s->nearest[i] > 0)
            row = i; /* the last such row stands for what rounding has left */
        if (s->nearest[i] > 0 && at < (double)s->nearest[i])
            break;
        at -= (double)s->nearest[i];
    }
    return row;
}

static void put_candidate(const struct start *s, size_t t, size_t row)
{
    size_t dims = s->rows->dims;
    memcpy(s->candidates + t * dims, s->rows->x + row * dims, dims * sizeof(float));
}

static as_status plusplus(struct start *s, size_t clusters, struct rng *rng, size_t threads,
                          float *ret, struct as_err *err)
{
    size_t dims = s->rows->dims;
    as_status st = cpu_gemm_ready(err);
    if (st < 0 || (st = start_init(s, clusters, err)) < 0)
        return st;
    parallel_each(s->rows->n, threads, find_norms, s);
    for (size_t k = 0; k < clusters; k++) {
        size_t first = k == 0 ? (size_t)rng_below(rng, s->rows->n) : 0;
        for (size_t t = 0; t < s->tries; t++)
            put_candidate(s, t, k == 0 ? first : draw_row(s, rng));
        try_candidates(s, threads);
        size_t chosen = best_candidate(s);
        memcpy(ret + k * dims, s->candidates + chosen * dims, dims * sizeof *ret);
        take(s, chosen);
    }
    return AS_OK;
}

static as_status draw_rows(const struct kmeans_rows *rows, size_t clusters, struct rng *rng,
                           float *ret, struct as_err *err)
{
    AS_AUTO(as_freep) int32_t *order = as_calloc(rows->n, sizeof *order);
    if (!order)
        return as_fail_nomem(err);
    for (size_t i = 0; i < rows->n; i++)
        order[i] = (int32_t)i;
    draw_shuffle(rng, order, rows->n);
    for (size_t k = 0; k < clusters; k++)
        memcpy(ret + k * rows->dims, rows->x + (size_t)order[k] * rows->dims,
               rows->dims * sizeof *ret);
    return AS_OK;
}

as_status kmeans_start(const struct kmeans_rows *rows, size_t clusters, kmeans_init init,
                       uint64_t seed, size_t threads, float *ret, struct as_err *err)
{
    struct rng rng = draw_stream(seed, DRAW_CENTROIDS, 0);
    AS_AUTO(start_done) struct start s = {.rows = rows};
    return init == KMEANS_RANDOM ? draw_rows(rows, clusters, &rng, ret, err)
                                 : plusplus(&s, clusters, &rng, threads, ret, err);
}
