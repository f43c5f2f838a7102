/* A helper of clusters.py, which compares: k-means of model/kmeans on random rows, one thread.
 *
 *   clusters ROWS DIMS CLUSTERS ITERATIONS FOLDER
 *
 * Writes rows.npy and start.npy to FOLDER, does the iterations from this start, and prints a line
 * of JSON: seconds (of a processor) of the start, of all iterations, of the same products alone
 * (the floor: no row can be assigned without them), and the inertia at the end. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/rng.h"
#include "data/formats/npy.h"
#include "kernels/cpu/gemm.h"
#include "model/kmeans/kmeans.h"

#define BLOCK ((size_t)256)

static struct as_err err;

static void must(as_status st)
{
    if (st == AS_OK)
        return;
    (void)fprintf(stderr, "clusters: %s\n", err.msg);
    exit(1);
}

/* Of this process's processor time: others may be at work on the machine. */
static double now_s(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Twice as many blobs as clusters, which overlap. */
static float *draw_rows(size_t n, size_t dims, size_t blobs)
{
    struct rng r;
    float *x = as_calloc(n * dims, sizeof *x), *at = as_calloc(blobs * dims, sizeof *at);
    if (!x || !at)
        must(as_fail_nomem(&err));
    rng_init(&r, 1, 0);
    for (size_t i = 0; i < blobs * dims; i++)
        at[i] = (float)(0.5 * rng_normal(&r));
    for (size_t i = 0; i < n; i++)
        for (size_t d = 0; d < dims; d++)
            x[i * dims + d] = at[i % blobs * dims + d] + (float)rng_normal(&r);
    free(at);
    return x;
}

static void write_array(const char *folder, const char *name, size_t n, size_t dims, const float *v)
{
    AS_AUTO(as_freep) char *path = file_join(folder, name);
    must(npy_write(path, NPY_F4, (size_t[]){n, dims}, 2, v, &err));
}

static double time_products(const struct kmeans_rows *rows, const float *centroids, size_t k,
                            size_t times)
{
    AS_AUTO(as_freep) float *out = as_calloc(BLOCK * k, sizeof *out);
    double start = now_s();
    for (size_t t = 0; t < times; t++)
        for (size_t at = 0; at < rows->n; at += BLOCK) {
            const struct gemm g = {.tb = true,
                                   .m = rows->n - at < BLOCK ? rows->n - at : BLOCK,
                                   .n = k,
                                   .k = rows->dims,
                                   .a = rows->x + at * rows->dims,
                                   .lda = rows->dims,
                                   .b = centroids,
                                   .ldb = rows->dims,
                                   .c = out,
                                   .ldc = k};
            cpu_gemm(&g);
        }
    return now_s() - start;
}

/* As kmeans_trial.c: the sums at the first centroids, then for each iteration means and sums. */
static double iterate(const struct kmeans_rows *rows, float *centroids, size_t k, size_t times)
{
    size_t n = kmeans_numbers(k, rows->dims);
    uint32_t shards = kmeans_shards(rows->n);
    double shift, *partials[KMEANS_MAX_SHARDS];
    AS_AUTO(as_freep) double *room = as_calloc(shards * n, sizeof *room);
    for (uint32_t s = 0; s < shards; s++)
        partials[s] = room + s * n;
    for (size_t t = 0; t <= times; t++) {
        if (t > 0)
            must(kmeans_move(rows, room, k, 1, centroids, &shift, &err));
        must(kmeans_shard_sums(rows, centroids, k, 0, shards, 1, partials, &err));
        kmeans_tree_sum(partials, shards, n);
    }
    return room[n - 1];
}

int main(int argc, char **argv)
{
    if (argc != 6)
        return 2;
    size_t n = strtoul(argv[1], NULL, 10), dims = strtoul(argv[2], NULL, 10);
    size_t k = strtoul(argv[3], NULL, 10), times = strtoul(argv[4], NULL, 10);
    AS_AUTO(as_freep) float *x = draw_rows(n, dims, 2 * k);
    AS_AUTO(as_freep) float *centroids = as_calloc(k * dims, sizeof *centroids);
    const struct kmeans_rows rows = {x, n, dims};
    must(cpu_gemm_ready(&err));
    double begun = now_s();
    must(kmeans_start(&rows, k, KMEANS_PLUSPLUS, 1, 1, centroids, &err));
    double start_s = now_s() - begun;
    write_array(argv[5], "rows.npy", n, dims, x);
    write_array(argv[5], "start.npy", k, dims, centroids);
    double floor_s = time_products(&rows, centroids, k, times + 1);
    begun = now_s();
    double inertia = iterate(&rows, centroids, k, times);
    (void)printf("{\"start_s\": %.4f, \"iterations_s\": %.4f, \"products_s\": %.4f, \"inertia\": "
                 "%.17g}\n",
                 start_s, now_s() - begun, floor_s, inertia);
    return 0;
}
