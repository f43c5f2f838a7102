/* What error feedback is for: over time nothing is lost. Each test has its negative control, the
 * same run without feedback, which must miss the bar. */
#include <math.h>
#include <string.h>

#include "tests/support/check_main.h"
#include "tests/trial-runner/distributed/codec_support.h"

static const char *const names[] = {"fp16", "one_bit", "top_k"};

/* ---- the mean of many messages ----
 *
 * A constant x is sent 10000 times. With feedback the messages' sum misses 10000 x by one residual,
 * however coarse the codec is. Some values are 2^40 times larger than others: too far for a
 * half. */

static double mean_error(const char *name, bool feedback)
{
    enum { N = 300, MESSAGES = 10000 };
    AS_AUTO(codec_freep) struct codec *c = codec_of_vector(name, N);
    AS_AUTO(as_freep) float *x = normals(N, 1, 1);
    AS_AUTO(as_freep) float *residual = numbers(N);
    double sum[N] = {0}, worst = 0, unit = strcmp(name, "fp16") == 0 ? 0x1p-40 : 1;
    for (size_t i = 0; i < N; i++)
        x[i] *= (float)ldexp(1, -40 * (int)(i % 4 == 3));
    for (int k = 0; k < MESSAGES; k++) {
        AS_AUTO(as_freep)
        float *got = feedback ? through(c, x, residual, residual) : through(c, x, NULL, NULL);
        for (size_t i = 0; i < N; i++)
            sum[i] += (double)got[i];
    }
    for (size_t i = 0; i < N; i++) {
        double scale = i % 4 == 3 ? unit : 1;
        worst = fmax(worst, fabs(sum[i] / MESSAGES - (double)x[i]) / scale);
    }
    return worst;
}

START_TEST(messages_are_right_on_average)
{
    /* fp16 in units of the small values: without feedback the smallest values never arrive. */
    static const double bars[] = {3e-2, 3e-2, 3e-2};
    double with = mean_error(names[_i], true), without = mean_error(names[_i], false);
    ck_assert_msg(with <= bars[_i], "%s: %g off with feedback", names[_i], with);
    ck_assert_msg(without >= 5 * bars[_i], "%s: only %g off without", names[_i], without);
}
END_TEST

/* ---- a quadratic on several ranks ----
 *
 * f(w) = sum over ranks of |w - target_r|^2 / 2, whose least is at the targets' mean. There each
 * rank's own gradient is far from 0 and only their sum vanishes, as with unequal data: what a codec
 * drops then does not vanish either. */

enum { RANKS = 4, DIM = 2000 };

static double distance_to_least(const char *name, bool feedback)
{
    AS_AUTO(codec_freep) struct codec *c = codec_of_vector(name, DIM);
    float *target[RANKS], *residual[RANKS];
    AS_AUTO(as_freep) float *w = normals(DIM, 77, 3);
    AS_AUTO(as_freep) float *gradient = numbers(DIM);
    for (size_t r = 0; r < RANKS; r++) {
        target[r] = normals(DIM, 100 + r, 1);
        residual[r] = numbers(DIM);
    }
    for (int step = 0; step < 3000; step++) {
        float lr = 0.02F / (1 + (float)step / 100);
        AS_AUTO(as_freep) float *sum = numbers(DIM);
        for (size_t r = 0; r < RANKS; r++) {
            for (size_t i = 0; i < DIM; i++)
                gradient[i] = w[i] - target[r][i];
            float *own = feedback ? residual[r] : NULL;
            AS_AUTO(as_freep) float *got = through(c, gradient, own, own);
            for (size_t i = 0; i < DIM; i++)
                sum[i] += got[i] / RANKS;
        }
        for (size_t i = 0; i < DIM; i++)
            w[i] -= lr * sum[i];
    }
    double square = 0;
    for (size_t i = 0; i < DIM; i++) {
        double least = 0;
        for (size_t r = 0; r < RANKS; r++)
            least += (double)target[r][i] / RANKS;
        square += ((double)w[i] - least) * ((double)w[i] - least) / DIM;
    }
    for (size_t r = 0; r < RANKS; r++) {
        free(target[r]);
        free(residual[r]);
    }
    return sqrt(square);
}

START_TEST(quadratic_needs_feedback)
{
    const char *name = names[_i + 1]; /* one_bit, top_k; half precision is fine enough here */
    double with = distance_to_least(name, true), without = distance_to_least(name, false);
    ck_assert_msg(with <= 0.03, "%s: %g from the least with feedback", name, with);
    ck_assert_msg(without >= 0.15, "%s: only %g from the least without", name, without);
}
END_TEST

/* ---- PowerSGD ----
 *
 * The gradient has a large part of rank 1 that changes its sign at each step (noise), and a small
 * part in other directions that does not. One factor always holds the noise; without feedback the
 * small part is never sent. */

static double distance_by_factors(bool feedback)
{
    enum { ROWS = 30, COLS = 40, N = ROWS * COLS, STEPS = 2000 };
    static const struct codec_tensor t = {ROWS, COLS};
    struct as_err err;
    AS_AUTO(codec_freep) struct codec *c = NULL;
    ck_ok(codec_create(&(struct codec_opts){.name = "powersgd", .rank = 1}, &t, 1, &c, &err), err);
    AS_AUTO(as_freep) float *target = normals(N, 1, 1);
    AS_AUTO(as_freep) float *a = normals(ROWS, 2, 10);
    AS_AUTO(as_freep) float *b = normals(COLS, 3, 10);
    AS_AUTO(as_freep) float *w = numbers(N);
    AS_AUTO(as_freep) float *x = numbers(N);
    AS_AUTO(as_freep) float *residual = numbers(N);
    AS_AUTO(as_freep) float *left = numbers(codec_left_n(c));
    AS_AUTO(as_freep) float *right = numbers(codec_right_n(c));
    double square = 0;
    for (int step = 0; step < STEPS; step++) {
        AS_AUTO(as_freep) float *got = numbers(N);
        float sign = step % 2 ? 1 : -1, *own = feedback ? residual : NULL;
        for (size_t i = 0; i < N; i++)
            x[i] = w[i] - target[i] + sign * a[i / COLS] * b[i % COLS];
        codec_left(c, x, own, own, left);
        codec_left_summed(c, left);
        codec_right(c, feedback ? own : x, right);
        if (feedback)
            codec_factors_lost(c, left, right, own);
        codec_right_summed(c, right, got);
        for (size_t i = 0; i < N; i++)
            w[i] -= 0.02F * got[i] / (1 + (float)step / 100);
    }
    for (size_t i = 0; i < N; i++)
        square += ((double)w[i] - (double)target[i]) * ((double)w[i] - (double)target[i]) / N;
    return sqrt(square);
}

START_TEST(factors_need_feedback)
{
    double with = distance_by_factors(true), without = distance_by_factors(false);
    ck_assert_msg(with <= 0.2, "%g from the least with feedback", with);
    ck_assert_msg(without >= 0.8, "only %g from the least without", without);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("codec_feedback");
    TCase *t = tcase_create("feedback");
    tcase_add_loop_test(t, messages_are_right_on_average, 0, 3);
    tcase_add_loop_test(t, quadratic_needs_feedback, 0, 2);
    tcase_add_test(t, factors_need_feedback);
    suite_add_tcase(s, t);
    return s;
}
