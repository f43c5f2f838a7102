/* The branch-free exp, log, log1p, tanh and erf against libm's in double, over the whole range
 * of floats. */
#include <math.h>

#include "kernels/cpu/vec_math.h"
#include "tests/support/check_main.h"

/* Distance in units in the last place of the true value; below the normal floats, of the
 * smallest. */
static double ulps(float got, double want)
{
    if (isinf(got) && fabs(want) > 3.4028234e38)
        return 0;
    int exponent;
    frexp(want, &exponent);
    double ulp = ldexp(1, exponent < -125 ? -149 : exponent - 24);
    return fabs((double)got - want) / ulp;
}

/* Every 997th float of both signs: 4 million in all, infinities and NaN aside. */
static double worst(float (*f)(float), double (*truth)(double))
{
    double most = 0;
    for (uint32_t bits = 0; bits < 0x7f800000u; bits += 997) {
        for (uint32_t sign = 0; sign < 2; sign++) {
            float x = float_of_bits(bits | sign << 31);
            double off = ulps(f(x), truth((double)x));
            if (!(off <= most))
                most = off;
        }
    }
    return most;
}

static float exp_of(float x)
{
    return vec_exp(x);
}

static float tanh_of(float x)
{
    return vec_tanh(x);
}

static float erf_of(float x)
{
    return vec_erf(x);
}

START_TEST(accuracy)
{
    ck_assert_double_le(worst(exp_of, exp), 3);
    ck_assert_double_le(worst(tanh_of, tanh), 3);
    ck_assert_double_le(worst(erf_of, erf), 3);
}
END_TEST

/* Every 997th float from 0 to 1. */
START_TEST(accuracy_of_log1p)
{
    double most = 0;
    for (uint32_t bits = 0; bits <= bits_of_float(1); bits += 997) {
        double off = ulps(vec_log1p(float_of_bits(bits)), log1p((double)float_of_bits(bits)));
        most = off > most || isnan(off) ? off : most;
    }
    ck_assert_double_le(most, 3);
    ck_assert_float_eq(vec_log1p(0), 0);
    ck_assert_float_eq(vec_log1p(1), logf(2));
    ck_assert_float_nan(vec_log1p(NAN));
}
END_TEST

/* The double log, over the whole range and closely around 1. */
START_TEST(accuracy_of_log)
{
    double most = 0;
    for (int i = -1000000; i <= 1000000; i++) {
        double all = exp((double)i * 7e-4), near = 1 + (double)i * 1e-7;
        double a = fabs(vec_log(all) / log(all) - 1), b = fabs(vec_log(near) / log(near) - 1);
        if (i != 0 && !(a <= most && b <= most))
            most = fmax(a, b);
    }
    ck_assert_double_le(most, 1e-12);
    ck_assert_double_eq(vec_log(1), 0);
    ck_assert_double_infinite(vec_log((double)INFINITY));
    ck_assert_double_nan(vec_log((double)NAN));
}
END_TEST

START_TEST(edges)
{
    ck_assert_float_nan(vec_exp(NAN));
    ck_assert_float_nan(vec_tanh(NAN));
    ck_assert_float_nan(vec_erf(NAN));
    ck_assert_float_eq(vec_exp(-INFINITY), 0);
    ck_assert_float_infinite(vec_exp(INFINITY));
    ck_assert_float_eq(vec_exp(0), 1);
    ck_assert_float_eq(vec_tanh(INFINITY), 1);
    ck_assert_float_eq(vec_tanh(-INFINITY), -1);
    ck_assert_float_eq(vec_erf(INFINITY), 1);
    ck_assert_float_eq(vec_erf(-INFINITY), -1);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("kernels_vec_math");
    TCase *c = tcase_create("vec_math");
    tcase_add_test(c, accuracy);
    tcase_add_test(c, accuracy_of_log1p);
    tcase_add_test(c, accuracy_of_log);
    tcase_add_test(c, edges);
    suite_add_tcase(s, c);
    return s;
}
