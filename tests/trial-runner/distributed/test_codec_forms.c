/* Each form of messages against a plain reference in double precision. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "tests/support/check_main.h"
#include "tests/trial-runner/distributed/codec_support.h"

/* ---- fp16 ---- */

/* The nearest half, ties to even; |v| < 65520. */
static double half_near(double v)
{
    int exponent;
    (void)frexp(v, &exponent); /* v in [2^(exponent-1), 2^exponent) */
    double unit = ldexp(1, (exponent < -13 ? -13 : exponent) - 11);
    return nearbyint(v / unit) * unit;
}

/* Halves of v / 2^e, where 2^e brings the largest into [2^14, 2^15), unless e would be below
 * -112. */
static void check_halves(const float *v, size_t n)
{
    AS_AUTO(codec_freep) struct codec *c = codec_of_vector("fp16", n);
    AS_AUTO(as_freep) float *got = through(c, v, NULL, NULL);
    double largest = 0;
    int exponent;
    for (size_t i = 0; i < n; i++)
        largest = fmax(largest, fabs((double)v[i]));
    (void)frexp(largest, &exponent);
    exponent = largest == 0 || exponent < -97 ? -112 : exponent - 15;
    for (size_t i = 0; i < n; i++) {
        double want = ldexp(half_near(ldexp((double)v[i], -exponent)), exponent);
        ck_assert_msg((double)got[i] == want, "value %zu: %a becomes %a; expected %a", i,
                      (double)v[i], (double)got[i], want);
    }
}

START_TEST(halves_are_the_nearest)
{
    float v[600];
    struct rng r;
    rng_init(&r, 7, 7);
    for (int round = 0; round < 200; round++) {
        for (size_t i = 0; i < AS_ARRAY_LEN(v); i++)
            v[i] = (float)ldexp(rng_normal(&r), (int)rng_below(&r, 50) - 40 + round - 100);
        check_halves(v, AS_ARRAY_LEN(v));
    }
}
END_TEST

/* All halves below 2^14 and the middles between them, which go to the even neighbour. */
START_TEST(ties_go_to_the_even_half)
{
    static float v[2 * 0x7400 + 1];
    size_t n = 0;
    for (int h = 0; h < 0x7400; h++) {
        int e = h >> 10;
        double half = e ? ldexp(1024 + (h & 1023), e - 25) : ldexp(h, -24);
        double next = ldexp(1, (e ? e : 1) - 25);
        v[n++] = (float)half;
        v[n++] = (float)-(half + next / 2);
        if (n % 500 == 0) { /* one block */
            v[n] = 0x1p14F;
            check_halves(v, n + 1);
            n = 0;
        }
    }
}
END_TEST

START_TEST(no_magnitude_overflows_or_is_lost)
{
    static const float v[] = {FLT_MAX, -FLT_MAX, 65504, 65520, 1, FLT_MIN, 1e-45F, 0, -0.0F};
    for (size_t i = 0; i < AS_ARRAY_LEN(v); i++) {
        AS_AUTO(codec_freep) struct codec *c = codec_of_vector("fp16", 2);
        float x[2] = {v[i], v[i] / 3}, after[2];
        AS_AUTO(as_freep) float *got = through(c, x, NULL, after);
        for (size_t k = 0; k < 2; k++) {
            ck_assert(isfinite(got[k]));
            ck_assert((double)got[k] + (double)after[k] == (double)x[k]);
            if (fabsf(x[k]) > 1e-30F)
                ck_assert(fabsf(after[k]) <= fabsf(x[k]) * 0x1p-11F);
        }
    }
}
END_TEST

START_TEST(values_that_are_not_finite_arrive_as_such)
{
    static const char *const names[] = {"fp16", "one_bit", "top_k"};
    for (size_t k = 0; k < AS_ARRAY_LEN(names); k++) {
        AS_AUTO(codec_freep) struct codec *c = codec_of_vector(names[k], 700);
        AS_AUTO(as_freep) float *x = normals(700, 3, 1);
        x[300] = NAN;
        x[301] = INFINITY;
        x[302] = -INFINITY;
        AS_AUTO(as_freep) float *got = through(c, x, NULL, NULL);
        for (size_t i = 300; i < 303; i++)
            ck_assert_msg(!isfinite(got[i]), "%s: value %zu is %g", names[k], i, (double)got[i]);
    }
}
END_TEST

/* ---- one_bit ---- */

/* Values from..end are one block: two values are decoded, the means by sign. */
static void check_bits(const float *v, const float *got, size_t from, size_t end)
{
    double sum[2] = {0}, count[2] = {0};
    for (size_t i = from; i < end; i++) {
        sum[v[i] < 0] += (double)v[i];
        count[v[i] < 0]++;
    }
    for (size_t i = from; i < end; i++) {
        int negative = v[i] < 0;
        double mean = sum[negative] / count[negative];
        ck_assert_msg(fabs((double)got[i] - mean) <= fabs(mean) * 0x1.02p-8,
                      "value %zu becomes %g; the mean is %g", i, (double)got[i], mean);
    }
}

START_TEST(bits_stand_for_the_means_by_sign)
{
    for (size_t n = 1; n < 1024; n += 31) { /* a block holds up to 1023 values of a vector */
        AS_AUTO(codec_freep) struct codec *c = codec_of_vector("one_bit", n);
        AS_AUTO(as_freep) float *v = normals(n, n, 1e-5);
        AS_AUTO(as_freep) float *got = through(c, v, NULL, NULL);
        check_bits(v, got, 0, n);
    }
}
END_TEST

/* Each row has means of its own; rows of small matrices share them. */
START_TEST(rows_have_means_of_their_own)
{
    struct codec_tensor t = {4, 1000};
    AS_AUTO(codec_freep) struct codec *c = codec_of("one_bit", &t, 1);
    AS_AUTO(as_freep) float *v = normals(4000, 1, 1);
    for (size_t i = 0; i < 4000; i++)
        v[i] *= (float)pow(100, (double)(i / 1000));
    AS_AUTO(as_freep) float *got = through(c, v, NULL, NULL);
    for (size_t row = 0; row < 4; row++)
        check_bits(v, got, row * 1000, row * 1000 + 1000);
}
END_TEST

START_TEST(bits_of_one_sign_and_of_zeros)
{
    float v[] = {1, 2, 3, 0}, zeros[4] = {0, -0.0F, 0, 0}, minus[] = {-4, -4, -4, -4};
    AS_AUTO(codec_freep) struct codec *c = codec_of_vector("one_bit", 4);
    AS_AUTO(as_freep) float *a = through(c, v, NULL, NULL);
    AS_AUTO(as_freep) float *b = through(c, zeros, NULL, NULL);
    AS_AUTO(as_freep) float *d = through(c, minus, NULL, NULL);
    for (size_t i = 0; i < 4; i++)
        ck_assert(a[i] == 1.5F && b[i] == 0 && d[i] == -4);
}
END_TEST

/* Means are bfloat16, to nearest, ties to even. */
START_TEST(means_are_rounded_to_even)
{
    static const float pairs[][2] = {{0x1.01p0F, 0x1p0F},
                                     {0x1.03p0F, 0x1.04p0F},
                                     {0x1.0101p0F, 0x1.02p0F},
                                     {-0x1.01p-9F, -0x1p-9F},
                                     {0x1.ffp9F, 0x1p10F}};
    for (size_t i = 0; i < AS_ARRAY_LEN(pairs); i++) {
        AS_AUTO(codec_freep) struct codec *c = codec_of_vector("one_bit", 1);
        AS_AUTO(as_freep) float *got = through(c, pairs[i], NULL, NULL);
        ck_assert_msg(got[0] == pairs[i][1], "%a becomes %a", (double)pairs[i][0], (double)got[0]);
    }
}
END_TEST

/* ---- top_k ---- */

static const float *sorted_values;

static int by_magnitude(const void *a, const void *b)
{
    size_t i = *(const size_t *)a, k = *(const size_t *)b;
    float x = fabsf(sorted_values[i]), y = fabsf(sorted_values[k]);
    return x != y ? (x < y) - (x > y) : (i > k) - (i < k);
}

static void check_largest(const float *v, size_t n, double fraction)
{
    struct as_err err;
    struct codec_tensor t = {1, n};
    AS_AUTO(codec_freep) struct codec *c = NULL;
    struct codec_opts opts = {.name = "top_k", .fraction = fraction};
    ck_ok(codec_create(&opts, &t, 1, &c, &err), err);
    AS_AUTO(as_freep) float *got = through(c, v, NULL, NULL);
    AS_AUTO(as_freep) float *want = numbers(n);
    AS_AUTO(as_freep) size_t *order = as_calloc(n, sizeof *order);
    for (size_t i = 0; i < n; i++)
        order[i] = i;
    sorted_values = v;
    qsort(order, n, sizeof *order, by_magnitude);
    size_t k = (size_t)ceil(fraction * (double)n - 1e-6);
    for (size_t i = 0; i < k; i++)
        want[order[i]] = v[order[i]];
    for (size_t i = 0; i < n; i++)
        ck_assert_msg(got[i] == want[i], "%zu of %zu values: value %zu is %g; expected %g", k, n, i,
                      (double)got[i], (double)want[i]);
}

START_TEST(largest_values_are_sent)
{
    static const double fractions[] = {0.001, 0.01, 0.07, 0.5, 1};
    static const size_t sizes[] = {1, 2, 100, 1000, 65535};
    for (size_t f = 0; f < AS_ARRAY_LEN(fractions); f++)
        for (size_t s = 0; s < AS_ARRAY_LEN(sizes); s++) {
            AS_AUTO(as_freep) float *v = normals(sizes[s], s, 1e-4);
            check_largest(v, sizes[s], fractions[f]);
        }
}
END_TEST

START_TEST(of_equal_values_the_first_are_sent)
{
    AS_AUTO(as_freep) float *v = numbers(3000);
    check_largest(v, 3000, 0.01); /* all are 0 */
    for (size_t i = 0; i < 3000; i++)
        v[i] = i % 2 ? -0.25F : 0.25F;
    check_largest(v, 3000, 0.01);
    for (size_t i = 0; i < 3000; i++)
        v[i] = nextafterf(1, 2) - (float)(i % 3) * FLT_EPSILON; /* the last bits decide */
    check_largest(v, 3000, 0.4);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("codec_forms");
    TCase *t = tcase_create("forms");
    tcase_add_test(t, halves_are_the_nearest);
    tcase_add_test(t, ties_go_to_the_even_half);
    tcase_add_test(t, no_magnitude_overflows_or_is_lost);
    tcase_add_test(t, values_that_are_not_finite_arrive_as_such);
    tcase_add_test(t, bits_stand_for_the_means_by_sign);
    tcase_add_test(t, rows_have_means_of_their_own);
    tcase_add_test(t, bits_of_one_sign_and_of_zeros);
    tcase_add_test(t, means_are_rounded_to_even);
    tcase_add_test(t, largest_values_are_sent);
    tcase_add_test(t, of_equal_values_the_first_are_sent);
    suite_add_tcase(s, t);
    return s;
}
