/* PowerSGD: exact where it must be, as good as the best factors after some steps, repeatable. */
#include <math.h>
#include <string.h>

#include "tests/support/check_main.h"
#include "tests/trial-runner/distributed/codec_support.h"

static struct codec *codec_of_rank(uint32_t rank, const struct codec_tensor *t, size_t n)
{
    struct as_err err;
    struct codec *c = NULL;
    struct codec_opts opts = {.name = "powersgd", .rank = rank};
    ck_ok(codec_create(&opts, t, n, &c, &err), err);
    ck_assert(codec_sums(c));
    return c;
}

static void add_up(float *sum, const float *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        sum[i] += x[i];
}

/* One exchange between `ranks` contributions: the sum of what they decode to. residual: an array of
 * codec_values() for each, or NULL for no feedback. */
static float *exchange(struct codec *c, size_t ranks, float *const *x, float *const *residual)
{
    size_t left_n = codec_left_n(c), right_n = codec_right_n(c);
    AS_AUTO(as_freep) float *own = numbers(ranks * left_n + right_n);
    AS_AUTO(as_freep) float *left = numbers(left_n);
    AS_AUTO(as_freep) float *right = numbers(right_n);
    float *got = numbers(codec_values(c)), *own_right = own + ranks * left_n;
    for (size_t i = 0; i < ranks; i++) {
        float *r = residual ? residual[i] : NULL;
        codec_left(c, x[i], r, r, own + i * left_n);
        add_up(left, own + i * left_n, left_n);
    }
    codec_left_summed(c, left);
    for (size_t i = 0; i < ranks; i++) {
        float *r = residual ? residual[i] : NULL;
        codec_right(c, r ? r : x[i], own_right);
        if (r)
            codec_factors_lost(c, own + i * left_n, own_right, r);
        add_up(right, own_right, right_n);
    }
    codec_right_summed(c, right, got);
    return got;
}

/* The sum of r outer products of random vectors, of which each weighs `ratio` of the one before. */
static float *low_rank_matrix(size_t rows, size_t cols, size_t r, double ratio, uint64_t seed)
{
    float *m = numbers(rows * cols);
    for (size_t k = 0; k < r; k++) {
        AS_AUTO(as_freep) float *a = normals(rows, seed + 2 * k, pow(ratio, (double)k));
        AS_AUTO(as_freep) float *b = normals(cols, seed + 2 * k + 1, 1);
        for (size_t i = 0; i < rows; i++)
            for (size_t j = 0; j < cols; j++)
                m[i * cols + j] += a[i] * b[j];
    }
    return m;
}

static double norm(const float *x, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += (double)x[i] * (double)x[i];
    return sqrt(sum);
}

static double distance(const float *a, const float *b, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += ((double)a[i] - (double)b[i]) * ((double)a[i] - (double)b[i]);
    return sqrt(sum);
}

static const struct shape {
    size_t rows, cols;
    uint32_t rank;
    double scale;
} shapes[] = {{40, 30, 1, 1},      {784, 128, 4, 1e-6}, {33, 2500, 3, 1e6},
              {5000, 7, 2, 1e-30}, {129, 131, 16, 1},   {1025, 1023, 2, 1e10}};

START_TEST(matrix_of_the_rank_is_exact)
{
    const struct shape *s = &shapes[_i];
    struct codec_tensor t = {s->rows, s->cols};
    size_t n = s->rows * s->cols;
    AS_AUTO(codec_freep) struct codec *c = codec_of_rank(s->rank, &t, 1);
    AS_AUTO(as_freep) float *m = low_rank_matrix(s->rows, s->cols, s->rank, 0.8, 1);
    for (size_t i = 0; i < n; i++)
        m[i] *= (float)s->scale;
    ck_assert_uint_lt(codec_left_n(c) + codec_right_n(c), n);
    for (int step = 0; step < 3; step++) {
        AS_AUTO(as_freep) float *got = exchange(c, 1, &m, NULL);
        double off = distance(got, m, n) / norm(m, n);
        ck_assert_msg(off <= 1e-5, "step %d: %g off", step, off);
    }
}
END_TEST

/* x + before = own part decoded + after, to the rounding of the product. */
START_TEST(residual_is_what_the_factors_lost)
{
    static const struct codec_tensor t[] = {{50, 70}, {1, 33}, {2100, 9}, {20, 1500}, {3, 3}};
    AS_AUTO(codec_freep) struct codec *c = codec_of_rank(3, t, AS_ARRAY_LEN(t));
    size_t n = codec_values(c), vector = 50 * 70, vector_end = 50 * 70 + 33;
    AS_AUTO(as_freep) float *x = normals(n, 1, 1);
    AS_AUTO(as_freep) float *residual = numbers(n);
    AS_AUTO(as_freep) float *v = numbers(n);
    for (int step = 0; step < 4; step++) {
        for (size_t i = 0; i < n; i++)
            v[i] = x[i] + residual[i];
        AS_AUTO(as_freep) float *got = exchange(c, 1, &x, &residual);
        for (size_t i = 0; i < n; i++) {
            bool whole = (i >= vector && i < vector_end) || i >= n - 9;
            ck_assert(!whole || (residual[i] == 0 && got[i] == v[i]));
            ck_assert_msg(fabsf(got[i] + residual[i] - v[i]) <= 1e-5F * (1 + fabsf(v[i])),
                          "value %zu: %g and %g left of %g", i, (double)got[i], (double)residual[i],
                          (double)v[i]);
        }
        ck_assert_double_le(norm(residual, n), norm(v, n));
    }
}
END_TEST

/* Sums of the phases of four ranks: the same as one rank that has the sum, and each residual is its
 * rank's matrix outside the common basis. */
START_TEST(sums_of_ranks_are_the_factors_of_the_sum)
{
    enum { RANKS = 4 };
    static const struct codec_tensor t[] = {{60, 90}, {1, 11}};
    AS_AUTO(codec_freep) struct codec *together = codec_of_rank(2, t, 2);
    AS_AUTO(codec_freep) struct codec *alone = codec_of_rank(2, t, 2);
    size_t n = codec_values(alone);
    float *x[RANKS], *residual[RANKS];
    AS_AUTO(as_freep) float *sum = numbers(n);
    AS_AUTO(as_freep) float *sum_residual = numbers(n);
    for (size_t r = 0; r < RANKS; r++) {
        x[r] = normals(n, 100 + r, 1);
        residual[r] = numbers(n);
        add_up(sum, x[r], n);
    }
    for (int step = 0; step < 3; step++) {
        AS_AUTO(as_freep) float *a = exchange(together, RANKS, x, residual);
        AS_AUTO(as_freep) float *b = exchange(alone, 1, &sum, &sum_residual);
        ck_assert_double_le(distance(a, b, n), 1e-4 * norm(b, n));
        AS_AUTO(as_freep) float *total = numbers(n);
        for (size_t r = 0; r < RANKS; r++)
            add_up(total, residual[r], n);
        ck_assert_double_le(distance(total, sum_residual, n), 1e-4 * norm(b, n));
    }
    for (size_t r = 0; r < RANKS; r++) {
        free(x[r]);
        free(residual[r]);
    }
}
END_TEST

/* M = sum of s_k e_k e_k' with s = 1, 0.7, 0.49, …: the best of rank 2 misses the rest. Power
 * iteration gets there because each step begins with the last one's Q. */
START_TEST(steps_approach_the_best_factors)
{
    enum { N = 40 };
    struct codec_tensor t = {N, N};
    AS_AUTO(codec_freep) struct codec *c = codec_of_rank(2, &t, 1);
    AS_AUTO(as_freep) float *m = numbers((size_t)N * N);
    double rest = 0, first = 0, last = 0;
    for (size_t k = 0; k < N; k++) {
        m[k * N + k] = (float)pow(0.7, (double)k);
        rest += k < 2 ? 0 : pow(0.49, (double)k);
    }
    for (int step = 0; step < 30; step++) {
        AS_AUTO(as_freep) float *got = exchange(c, 1, &m, NULL);
        last = distance(got, m, (size_t)N * N);
        first = step ? first : last;
    }
    ck_assert_double_gt(first, 1.02 * sqrt(rest));
    ck_assert_double_le(last, 1.0001 * sqrt(rest));
}
END_TEST

START_TEST(rank_that_was_lost_comes_back)
{
    struct codec_tensor t = {50, 60};
    size_t n = 3000;
    AS_AUTO(codec_freep) struct codec *c = codec_of_rank(3, &t, 1);
    AS_AUTO(as_freep) float *zero = numbers(n);
    AS_AUTO(as_freep) float *thin = low_rank_matrix(50, 60, 1, 1, 5);
    AS_AUTO(as_freep) float *full = low_rank_matrix(50, 60, 3, 0.9, 9);
    AS_AUTO(as_freep) float *a = exchange(c, 1, &zero, NULL);
    ck_assert(norm(a, n) == 0);
    AS_AUTO(as_freep) float *b = exchange(c, 1, &thin, NULL);
    ck_assert_double_le(distance(b, thin, n), 1e-5 * norm(thin, n));
    AS_AUTO(as_freep) float *again = exchange(c, 1, &thin, NULL);
    ck_assert_double_le(distance(again, thin, n), 1e-5 * norm(thin, n));
    AS_AUTO(as_freep) float *d = exchange(c, 1, &full, NULL);
    ck_assert_double_le(distance(d, full, n), 1e-5 * norm(full, n));
}
END_TEST

/* A gradient that is not finite is seen by all in this step, and does not spoil the next ones. With
 * 1e38 everywhere P is finite, and the columns of Q, which are longer, are not. */
START_TEST(step_after_one_that_is_not_finite_is_sound)
{
    struct codec_tensor t = {100, 4};
    size_t n = 400;
    AS_AUTO(codec_freep) struct codec *c = codec_of_rank(1, &t, 1);
    AS_AUTO(as_freep) float *m = low_rank_matrix(100, 4, 1, 1, 9);
    AS_AUTO(as_freep) float *bad = low_rank_matrix(100, 4, 1, 1, 9);
    for (size_t i = 0; _i == 2 && i < n; i++)
        bad[i] = 1e38F;
    if (_i < 2)
        bad[77] = _i ? INFINITY : NAN;
    AS_AUTO(as_freep) float *a = exchange(c, 1, &bad, NULL);
    ck_assert(!isfinite(norm(a, n)));
    AS_AUTO(as_freep) float *b = exchange(c, 1, &m, NULL);
    ck_assert_double_le(distance(b, m, n), 1e-5 * norm(m, n));
}
END_TEST

/* ---- repeats and checkpoints ---- */

static const struct codec_tensor net[] = {{64, 48}, {1, 48}, {48, 10}, {1, 10}};

START_TEST(step_can_be_repeated_after_a_loss)
{
    AS_AUTO(codec_freep) struct codec *c = codec_of_rank(2, net, AS_ARRAY_LEN(net));
    AS_AUTO(codec_freep) struct codec *lost = codec_of_rank(2, net, AS_ARRAY_LEN(net));
    size_t n = codec_values(c);
    AS_AUTO(as_freep) float *before = normals(n, 3, 1);
    AS_AUTO(as_freep) float *after = numbers(n);
    AS_AUTO(as_freep) float *left = numbers(codec_left_n(c));
    AS_AUTO(as_freep) float *right = numbers(codec_right_n(c));
    for (uint64_t step = 0; step < 3; step++) {
        AS_AUTO(as_freep) float *x = normals(n, 10 + step, 1);
        AS_AUTO(as_freep) float *other = normals(n, 50 + step, 1);
        AS_AUTO(as_freep) float *r1 = normals(n, 3, 1);
        AS_AUTO(as_freep) float *r2 = normals(n, 3, 1);
        codec_left(lost, other, before, after, left); /* a world lost in the second phase */
        codec_left_summed(lost, left);
        codec_right(lost, after, right);
        AS_AUTO(as_freep) float *a = exchange(c, 1, &x, &r1);
        AS_AUTO(as_freep) float *b = exchange(lost, 1, &x, &r2);
        ck_assert_int_eq(memcmp(a, b, n * sizeof *a), 0);
        ck_assert_int_eq(memcmp(r1, r2, n * sizeof *r1), 0);
    }
}
END_TEST

START_TEST(state_continues_with_the_same_bits)
{
    struct as_err err;
    AS_AUTO(codec_freep) struct codec *c = codec_of_rank(2, net, AS_ARRAY_LEN(net));
    AS_AUTO(codec_freep) struct codec *d = codec_of_rank(2, net, AS_ARRAY_LEN(net));
    size_t n = codec_values(c), state_n = codec_state_n(c);
    AS_AUTO(as_freep) float *x = normals(n, 10, 1);
    AS_AUTO(as_freep) float *state = numbers(state_n);
    ck_assert_uint_eq(state_n, 2 * (48 + 10));
    for (int step = 0; step < 3; step++)
        free(exchange(c, 1, &x, NULL));
    codec_state_get(c, state);
    ck_ok(codec_state_put(d, state, state_n, &err), err);
    AS_AUTO(codec_freep) struct codec *fresh = codec_of_rank(2, net, AS_ARRAY_LEN(net));
    AS_AUTO(as_freep) float *a = exchange(c, 1, &x, NULL);
    AS_AUTO(as_freep) float *b = exchange(d, 1, &x, NULL);
    AS_AUTO(as_freep) float *without = exchange(fresh, 1, &x, NULL);
    ck_assert_int_eq(memcmp(a, b, n * sizeof *a), 0);
    ck_assert_int_ne(memcmp(a, without, n * sizeof *a), 0);

    ck_fails(codec_state_put(d, state, state_n - 1, &err), AS_E_INVAL, err, "expected 116");
    state[5] = NAN;
    ck_fails(codec_state_put(d, state, state_n, &err), AS_E_INVAL, err, "number 5");
}
END_TEST

START_TEST(what_would_not_shrink_travels_whole)
{
    static const struct codec_tensor t[] = {{3, 4}, {1, 1000}, {1000, 1}, {4, 4}, {0, 5}};
    AS_AUTO(codec_freep) struct codec *c = codec_of_rank(8, t, AS_ARRAY_LEN(t));
    ck_assert_uint_eq(codec_left_n(c), codec_values(c));
    ck_assert_uint_eq(codec_right_n(c), 0);
    AS_AUTO(codec_freep) struct codec *empty = codec_of_rank(1, NULL, 0);
    ck_assert_uint_eq(codec_values(empty), 0);
    AS_AUTO(codec_freep) struct codec *big = codec_of_rank(4, net, AS_ARRAY_LEN(net));
    ck_assert_uint_eq(codec_left_n(big), 4 * 64 + 48 + 4 * 48 + 10);
    ck_assert_uint_eq(codec_right_n(big), 4 * 48 + 4 * 10);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("codec_powersgd");
    TCase *t = tcase_create("powersgd");
    tcase_add_loop_test(t, matrix_of_the_rank_is_exact, 0, (int)AS_ARRAY_LEN(shapes));
    tcase_add_test(t, residual_is_what_the_factors_lost);
    tcase_add_test(t, sums_of_ranks_are_the_factors_of_the_sum);
    tcase_add_test(t, steps_approach_the_best_factors);
    tcase_add_test(t, rank_that_was_lost_comes_back);
    tcase_add_loop_test(t, step_after_one_that_is_not_finite_is_sound, 0, 3);
    tcase_add_test(t, step_can_be_repeated_after_a_loss);
    tcase_add_test(t, state_continues_with_the_same_bits);
    tcase_add_test(t, what_would_not_shrink_travels_whole);
    suite_add_tcase(s, t);
    return s;
}
