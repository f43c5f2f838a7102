/* Dual coordinate ascent: the gap is one, it closes, and CoCoA needs a fraction of the rounds of
 * mini-batches. */
#include "trial-runner/distributed/sdca.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "data/random_purpose.h"
#include "tests/support/check_main.h"

enum { ROWS = 600, IN = 20, MOST_OUT = 3, WORKERS = 4, SHARE = ROWS / WORKERS, PASSES = 3 };

#define LAMBDA 1e-2
#define GAP 1e-3

struct set {
    struct sdca_problem problem;
    float x[ROWS * IN], y[ROWS * MOST_OUT], alpha[ROWS * MOST_OUT];
    double w[(IN + 1) * MOST_OUT];
};

static void make_unit(struct set *s)
{
    for (size_t i = 0; i < ROWS; i++) {
        double square = 0;
        for (size_t k = 0; k < IN; k++)
            square += (double)s->x[i * IN + k] * (double)s->x[i * IN + k];
        for (size_t k = 0; k < IN; k++)
            s->x[i * IN + k] = (float)((double)s->x[i * IN + k] / sqrt(square));
    }
}

/* Inputs that have something in common, and answers of a noisy linear model; then rows of length
 * 1, as in the papers. */
static void fill(struct set *s, sdca_loss loss, size_t out, bool unit)
{
    struct rng r;
    double truth[IN * MOST_OUT];
    memset(s, 0, sizeof *s);
    s->problem = (struct sdca_problem){loss, IN, out, LAMBDA * ROWS, 1};
    rng_init(&r, 7, (uint64_t)loss);
    for (size_t i = 0; i < IN * out; i++)
        truth[i] = 2 * rng_uniform(&r) - 1;
    for (size_t i = 0; i < ROWS; i++) {
        double z[MOST_OUT] = {0}, common = 2 * rng_uniform(&r) - 1;
        size_t best = 0;
        for (size_t k = 0; k < IN; k++) {
            double v = common + 2 * rng_uniform(&r) - 1;
            s->x[i * IN + k] = (float)v;
            for (size_t o = 0; o < out; o++)
                z[o] += v * truth[k * out + o];
        }
        for (size_t o = 0; o < out; o++) {
            z[o] += 2 * rng_uniform(&r) - 1;
            best = z[o] > z[best] ? o : best;
        }
        for (size_t o = 0; o < out; o++)
            s->y[i * out + o] = loss == SDCA_SQUARES ? (float)z[o] / 3 : (float)(o == best);
    }
    if (unit)
        make_unit(s);
}

static struct sdca_rows rows_of(const struct set *s, size_t first, size_t n)
{
    return (struct sdca_rows){n, s->x + first * IN, s->y + first * s->problem.out};
}

static void make_weights(struct set *s)
{
    struct sdca_rows all = rows_of(s, 0, ROWS);
    memset(s->w, 0, sizeof s->w);
    sdca_add_weights(&s->problem, &all, s->alpha, s->w);
}

static double square_of(const struct set *s)
{
    double sum = 0;
    for (size_t i = 0; i < (IN + 1) * s->problem.out; i++)
        sum += s->w[i] * s->w[i];
    return sum;
}

static double gap_of(const struct set *s, double *ret_dual)
{
    double z[MOST_OUT];
    struct sdca_rows all = rows_of(s, 0, ROWS);
    struct sdca_values v = sdca_values(&s->problem, &all, s->w, s->alpha, z);
    *ret_dual = -v.conjugate / ROWS - LAMBDA / 2 * square_of(s);
    return v.loss / ROWS + LAMBDA / 2 * square_of(s) - *ret_dual;
}

/* ---- rounds ---- */

static void round_of_cocoa(struct set *s, int passes, int round)
{
    double w[(IN + 1) * MOST_OUT], room[MOST_OUT];
    int32_t order[SHARE];
    s->problem.workers = WORKERS;
    for (size_t k = 0; k < WORKERS; k++) {
        struct sdca_rows rows = rows_of(s, k * SHARE, SHARE);
        struct rng r = draw_stream(1, DRAW_ROUND_ORDER, (uint64_t)round * WORKERS + k);
        for (int32_t i = 0; i < SHARE; i++)
            order[i] = i;
        draw_shuffle(&r, order, SHARE);
        memcpy(w, s->w, sizeof w);
        for (int p = 0; p < passes; p++)
            sdca_pass(&s->problem, &rows, order, w, s->alpha + k * SHARE * s->problem.out, room);
    }
    make_weights(s);
}

/* Mini-batch SDCA: every row's change is of the weights at the start of the round, for `workers`
 * rows that change at once; ROWS is safe for any rows. */
static void round_of_batch(struct set *s, double workers)
{
    double change[MOST_OUT];
    size_t out = s->problem.out;
    s->problem.workers = workers;
    for (size_t i = 0; i < ROWS; i++) {
        sdca_row(&s->problem, s->x + i * IN, s->y + i * out, s->w, s->alpha + i * out, change);
        for (size_t o = 0; o < out; o++)
            s->alpha[i * out + o] = (float)((double)s->alpha[i * out + o] + change[o]);
    }
    make_weights(s);
}

enum { MOST_ROUNDS = 2000 };

/* Rounds until the gap is small; MOST_ROUNDS if it does not become so. */
static int rounds_of_cocoa(struct set *s)
{
    double dual, before = -INFINITY;
    for (int round = 0; round < MOST_ROUNDS; round++) {
        round_of_cocoa(s, PASSES, round);
        double gap = gap_of(s, &dual);
        ck_assert_double_ge(gap, -1e-6);
        ck_assert_double_ge(dual, before - 1e-6); /* no round makes it worse */
        before = dual;
        if (gap <= GAP)
            return round + 1;
    }
    return MOST_ROUNDS;
}

static int rounds_of_batches(struct set *s, double workers, int most)
{
    double dual;
    for (int round = 0; round < most; round++) {
        round_of_batch(s, workers);
        if (fabs(gap_of(s, &dual)) <= GAP)
            return round + 1;
    }
    return most;
}

/* Also with longer steps than are safe: the best of them. */
static int rounds_of_lucky_batches(struct set *s, sdca_loss loss, size_t out, int most)
{
    for (double workers = ROWS / 2.0; workers > 1; workers /= 2) {
        fill(s, loss, out, true);
        most = rounds_of_batches(s, workers, most);
    }
    return most;
}

START_TEST(a_fifth_of_the_rounds_of_mini_batches)
{
    static struct set s;
    static const struct {
        sdca_loss loss;
        size_t out;
    } cases[] = {{SDCA_SOFTMAX, 2}, {SDCA_SOFTMAX, 3}, {SDCA_SQUARES, 1}, {SDCA_SQUARES, 2}};
    for (size_t i = 0; i < AS_ARRAY_LEN(cases); i++) {
        fill(&s, cases[i].loss, cases[i].out, true);
        int cocoa = rounds_of_cocoa(&s);
        fill(&s, cases[i].loss, cases[i].out, true);
        int batches = rounds_of_batches(&s, ROWS, MOST_ROUNDS);
        int lucky = rounds_of_lucky_batches(&s, cases[i].loss, cases[i].out, batches);
        printf("%s, %zu outputs: %d rounds, mini-batches %d, with steps that are not safe %d\n",
               cases[i].loss == SDCA_SOFTMAX ? "softmax" : "squares", cases[i].out, cocoa, batches,
               lucky);
        ck_assert_int_lt(cocoa, MOST_ROUNDS);
        ck_assert_int_le(5 * cocoa, batches);
    }
}
END_TEST

/* At the optimum of squares the gradient of the objective is 0. */
START_TEST(no_gap_is_the_optimum)
{
    static struct set s;
    double dual;
    fill(&s, SDCA_SQUARES, 1, true);
    for (int round = 0; round < 400; round++)
        round_of_cocoa(&s, PASSES, round);
    ck_assert_double_le(fabs(gap_of(&s, &dual)), 1e-4); /* duals are float32 */
    for (size_t k = 0; k <= IN; k++) {
        double g = LAMBDA * s.w[k];
        for (size_t i = 0; i < ROWS; i++) {
            double z = s.w[IN];
            for (size_t j = 0; j < IN; j++)
                z += (double)s.x[i * IN + j] * s.w[j];
            g += 2 * (z - (double)s.y[i]) * (k < IN ? (double)s.x[i * IN + k] : 1) / ROWS;
        }
        ck_assert_double_le(fabs(g), 5e-3); /* at w = 0 it is about 1 */
    }
}
END_TEST

/* Workers that count their own changes once alone go too far together. */
START_TEST(changes_that_do_not_count_for_all_workers_are_too_long)
{
    static struct set s;
    double dual, wrong;
    fill(&s, SDCA_SQUARES, 1, false);
    for (int round = 0; round < 5; round++)
        round_of_cocoa(&s, PASSES, round);
    double right = gap_of(&s, &dual);
    fill(&s, SDCA_SQUARES, 1, false);
    for (int round = 0; round < 5; round++)
        for (size_t k = 0; k < WORKERS; k++) {
            double w[(IN + 1) * MOST_OUT], room[MOST_OUT];
            int32_t order[SHARE];
            struct sdca_rows rows = rows_of(&s, k * SHARE, SHARE);
            s.problem.workers = 1;
            for (int32_t i = 0; i < SHARE; i++)
                order[i] = i;
            memcpy(w, s.w, sizeof w);
            for (int p = 0; p < PASSES; p++)
                sdca_pass(&s.problem, &rows, order, w, s.alpha + k * SHARE, room);
            if (k == WORKERS - 1)
                make_weights(&s);
        }
    wrong = gap_of(&s, &dual);
    printf("gap after 5 rounds: %g, without counting for all %g\n", right, wrong);
    ck_assert_double_gt(wrong, 10 * right);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("sdca");
    TCase *t = tcase_create("sdca");
    tcase_add_test(t, a_fifth_of_the_rounds_of_mini_batches);
    tcase_add_test(t, no_gap_is_the_optimum);
    tcase_add_test(t, changes_that_do_not_count_for_all_workers_are_too_long);
    suite_add_tcase(s, t);
    return s;
}
