/* k-means beside a plain reference, which knows distances in double and nothing else; then that
 * neither threads nor who has which shards show, clusters without rows, starts, and the index of
 * Davies and Bouldin as scikit-learn 1.2.1 has it. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "model/kmeans/kmeans_model.h"
#include "tests/support/check_main.h"

static struct as_err err;

/* Rows around `blobs` points, or without any. Owned by the caller. */
static float *make_rows(size_t n, size_t dims, size_t blobs, uint64_t seed)
{
    float *x = as_calloc(n * dims, sizeof *x);
    struct rng r;
    rng_init(&r, seed, 0);
    ck_assert_ptr_nonnull(x);
    for (size_t i = 0; i < n; i++)
        for (size_t d = 0; d < dims; d++)
            x[i * dims + d] =
                (float)rng_normal(&r) + (blobs ? 20 * (float)((i % blobs) >> d & 1) : 0);
    return x;
}

/* ---- the reference ---- */

static size_t plain_nearest(const float *x, const float *centroids, size_t k, size_t dims,
                            double *ret_square)
{
    size_t best = 0;
    *ret_square = INFINITY;
    for (size_t c = 0; c < k; c++) {
        double square = 0;
        for (size_t d = 0; d < dims; d++)
            square += pow((double)x[d] - (double)centroids[c * dims + d], 2);
        if (square < *ret_square) {
            *ret_square = square;
            best = c;
        }
    }
    return best;
}

/* One iteration; returns the sum of squares at the centroids before it. */
static double plain_iteration(const struct kmeans_rows *rows, size_t k, float *centroids)
{
    size_t dims = rows->dims;
    AS_AUTO(as_freep) double *sums = as_calloc(k * dims, sizeof *sums);
    AS_AUTO(as_freep) double *counts = as_calloc(k, sizeof *counts);
    double all = 0, square;
    for (size_t i = 0; i < rows->n; i++) {
        size_t c = plain_nearest(rows->x + i * dims, centroids, k, dims, &square);
        counts[c]++;
        all += square;
        for (size_t d = 0; d < dims; d++)
            sums[c * dims + d] += (double)rows->x[i * dims + d];
    }
    for (size_t i = 0; i < k * dims; i++)
        if (counts[i / dims] > 0)
            centroids[i] = (float)(sums[i] / counts[i / dims]);
    return all;
}

/* ---- what is tested ---- */

/* The sums of all rows, as `ranks` processes of `threads` threads add them up. ret: owned by the
 * caller. */
static double *sums_of(const struct kmeans_rows *rows, const float *centroids, size_t k,
                       uint32_t ranks, size_t threads)
{
    uint32_t shards = kmeans_shards(rows->n);
    size_t n = kmeans_numbers(k, rows->dims);
    double *room = as_calloc(shards * n, sizeof *room), *partials[KMEANS_MAX_SHARDS];
    for (uint32_t s = 0; s < shards; s++)
        partials[s] = room + s * n;
    for (uint32_t r = 0; r < ranks; r++) {
        uint32_t first = shards * r / ranks, end = shards * (r + 1) / ranks;
        if (end > first)
            ck_ok(kmeans_shard_sums(rows, centroids, k, first, end - first, threads,
                                    partials + first, &err),
                  err);
    }
    kmeans_tree_sum(partials, shards, n);
    return room;
}

static double iteration(const struct kmeans_rows *rows, size_t k, uint32_t ranks, size_t threads,
                        float *centroids, double *ret_shift)
{
    AS_AUTO(as_freep) double *numbers = sums_of(rows, centroids, k, ranks, threads);
    double all = numbers[kmeans_numbers(k, rows->dims) - 1];
    ck_ok(kmeans_move(rows, numbers, k, threads, centroids, ret_shift, &err), err);
    return all;
}

static void compare(size_t n, size_t dims, size_t k)
{
    AS_AUTO(as_freep) float *x = make_rows(n, dims, 0, n + dims);
    AS_AUTO(as_freep) float *ours = as_calloc(k * dims, sizeof *ours);
    AS_AUTO(as_freep) float *theirs = as_calloc(k * dims, sizeof *theirs);
    const struct kmeans_rows rows = {x, n, dims};
    ck_ok(kmeans_start(&rows, k, KMEANS_PLUSPLUS, 1, 2, ours, &err), err);
    memcpy(theirs, ours, k * dims * sizeof *ours);
    for (int i = 0; i < 4; i++) {
        double shift, a = iteration(&rows, k, 3, 2, ours, &shift);
        double b = plain_iteration(&rows, k, theirs);
        ck_assert_double_le(fabs(a - b), 1e-6 * b);
        for (size_t c = 0; c < k * dims; c++)
            ck_assert_msg(fabsf(ours[c] - theirs[c]) < 1e-5F, "%zu x %zu, %zu: %g, %g", n, dims, k,
                          (double)ours[c], (double)theirs[c]);
    }
}

START_TEST(iterations_are_those_of_the_reference)
{
    compare(1000, 3, 7);
    compare(300, 17, 20);
    compare(70, 1, 2);
    compare(520, 33, 65);
}
END_TEST

START_TEST(who_computes_what_does_not_show)
{
    const size_t n = 3001, dims = 9, k = 12;
    AS_AUTO(as_freep) float *x = make_rows(n, dims, 0, 4);
    AS_AUTO(as_freep) float *start = as_calloc(k * dims, sizeof *start);
    AS_AUTO(as_freep) float *other = as_calloc(k * dims, sizeof *other);
    const struct kmeans_rows rows = {x, n, dims};
    ck_ok(kmeans_start(&rows, k, KMEANS_PLUSPLUS, 9, 1, start, &err), err);
    ck_ok(kmeans_start(&rows, k, KMEANS_PLUSPLUS, 9, 3, other, &err), err);
    ck_assert_mem_eq(start, other, k * dims * sizeof *start);
    AS_AUTO(as_freep) double *alone = sums_of(&rows, start, k, 1, 1);
    for (uint32_t ranks = 2; ranks <= 8; ranks++) {
        AS_AUTO(as_freep) double *many = sums_of(&rows, start, k, ranks, 1 + ranks % 3);
        ck_assert_mem_eq(alone, many, kmeans_numbers(k, dims) * sizeof *alone);
    }
}
END_TEST

/* A row's cluster and distance are its own: with other rows before it, alone, in one thread. */
START_TEST(rows_do_not_change_one_another)
{
    enum { N = 700, DIMS = 5, K = 11 };
    AS_AUTO(as_freep) float *x = make_rows(N, DIMS, 0, 8);
    float whole[2 * N], one[2];
    const struct kmeans_rows rows = {x, N, DIMS};
    ck_ok(kmeans_predict(&rows, x, K, 3, whole, &err), err);
    for (size_t i = 0; i < N; i++) {
        const struct kmeans_rows own = {x + i * DIMS, 1, DIMS};
        double square;
        ck_ok(kmeans_predict(&own, x, K, 1, one, &err), err);
        ck_assert_mem_eq(one, whole + 2 * i, sizeof one);
        ck_assert_uint_eq((size_t)one[0], plain_nearest(own.x, x, K, DIMS, &square));
        ck_assert_double_le(fabs((double)one[1] - sqrt(square)), 1e-5);
    }
}
END_TEST

START_TEST(of_equals_the_first)
{
    const float x[] = {0, 0, 2, 0}, centroids[] = {1, 5, 1, 0, -1, 0, 1, 0};
    float ret[4];
    const struct kmeans_rows rows = {x, 2, 2};
    ck_ok(kmeans_predict(&rows, centroids, 4, 1, ret, &err), err);
    ck_assert(ret[0] == 1 && ret[1] == 1 && ret[2] == 1 && ret[3] == 1);
}
END_TEST

/* The second centroid has no rows: it moves to the farthest row, 9, which leaves the first. */
START_TEST(a_cluster_without_rows_gets_the_farthest)
{
    const float x[] = {0, 1, 2, 9};
    float centroids[] = {3, 100};
    double shift;
    const struct kmeans_rows rows = {x, 4, 1};
    (void)iteration(&rows, 2, 1, 1, centroids, &shift);
    ck_assert(centroids[0] == 1 && centroids[1] == 9);
    ck_assert_double_eq_tol(shift, 4 + 91.0 * 91, 1e-9);
    (void)iteration(&rows, 2, 1, 1, centroids, &shift);
    ck_assert(shift <= 0);
}
END_TEST

/* Three kinds of rows and four clusters: one stays where it is, and nothing is NaN. */
START_TEST(fewer_kinds_of_rows_than_clusters)
{
    const float x[] = {1, 1, 5, 5, 9, 9, 9};
    float centroids[4];
    double shift = 1;
    const struct kmeans_rows rows = {x, 7, 1};
    ck_ok(kmeans_start(&rows, 4, KMEANS_PLUSPLUS, 3, 1, centroids, &err), err);
    for (int i = 0; i < 3; i++)
        ck_assert(iteration(&rows, 4, 1, 1, centroids, &shift) <= 0);
    ck_assert(shift <= 0);
    for (size_t c = 0; c < 4; c++)
        ck_assert(centroids[c] == 1 || centroids[c] == 5 || centroids[c] == 9);
}
END_TEST

/* Eight far blobs: k-means++ begins with a row of each; draws without weights do not always. */
START_TEST(plusplus_begins_in_each_blob)
{
    enum { K = 8, DIMS = 3 };
    AS_AUTO(as_freep) float *x = make_rows(800, DIMS, K, 2);
    const struct kmeans_rows rows = {x, 800, DIMS};
    size_t missed = 0;
    for (uint64_t seed = 0; seed < 20; seed++) {
        float start[K * DIMS];
        for (int random = 0; random < 2; random++) {
            unsigned seen = 0;
            ck_ok(kmeans_start(&rows, K, random ? KMEANS_RANDOM : KMEANS_PLUSPLUS, seed, 2, start,
                               &err),
                  err);
            for (size_t c = 0; c < K; c++)
                seen |= 1U << ((start[c * DIMS] > 10) + 2 * (start[c * DIMS + 1] > 10) +
                               4 * (start[c * DIMS + 2] > 10));
            ck_assert_msg(random || seen == 0xff, "seed %d: blobs %x", (int)seed, seen);
            missed += random && seen != 0xff;
        }
    }
    ck_assert_uint_gt(missed, 0);
}
END_TEST

START_TEST(davies_bouldin_is_that_of_scikit_learn)
{
    const int32_t labels[] = {0, 1, 2, 3, 0, 1, 2, 3, 0, 0, 1, 5}, one[12] = {0};
    float x[36];
    double v;
    for (size_t i = 0; i < 12; i++)
        for (size_t d = 0; d < 3; d++)
            x[3 * i + d] = (float)((7 * i + 3 * d * i * i) % 11) / 4;
    const struct kmeans_rows rows = {x, 12, 3};
    ck_ok(kmeans_davies_bouldin(&rows, labels, 6, &v, &err), err);
    ck_assert_double_eq_tol(v, 3.2791094936689147, 1e-12);
    ck_ok(kmeans_davies_bouldin(&rows, one, 6, &v, &err), err);
    ck_assert(isnan(v));
}
END_TEST

START_TEST(centroids_are_finite)
{
    const float bad[] = {1, NAN}, good[] = {1, 2};
    ck_assert_int_eq(kmeans_model_check(good, 1, 2, &err), AS_OK);
    ck_assert_int_eq(kmeans_model_check(bad, 1, 2, &err), AS_E_INVAL);
    ck_assert_int_eq(kmeans_model_check(good, 0, 2, &err), AS_E_INVAL);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("k-means");
    TCase *t = tcase_create("kmeans");
    tcase_add_test(t, iterations_are_those_of_the_reference);
    tcase_add_test(t, who_computes_what_does_not_show);
    tcase_add_test(t, rows_do_not_change_one_another);
    tcase_add_test(t, of_equals_the_first);
    tcase_add_test(t, a_cluster_without_rows_gets_the_farthest);
    tcase_add_test(t, fewer_kinds_of_rows_than_clusters);
    tcase_add_test(t, plusplus_begins_in_each_blob);
    tcase_add_test(t, davies_bouldin_is_that_of_scikit_learn);
    tcase_add_test(t, centroids_are_finite);
    suite_add_tcase(s, t);
    return s;
}
