/* Coordinate descent: what theory says of it, and what it does where theory ends. */
#include "search/coordinate/coordinate.h"

#include <math.h>

#include "search/population/population.h"
#include "tests/search/sweep.h"
#include "tests/support/check_main.h"
#include "tests/support/spaces.h"

static void begin(struct sweep *w, const struct space *s, uint64_t seed)
{
    sweep_init(w, s, seed, true);
    w->spec.method = &search_coordinate;
    w->spec.initial_trials = 1;
}

static int64_t reason_of(const struct sweep *w, const char *field)
{
    const json_t *j = json_object_get(w->reason, field);
    return j ? json_integer_value(j) : -1;
}

static double best_of(const struct sweep *w)
{
    double best = INFINITY;
    for (size_t i = 0; i < w->n; i++)
        if (w->trials[i].state == OBSERVED_COMPLETED)
            best = fmin(best, w->trials[i].values[0]);
    return best;
}

/* ---- a separable quadratic ---- */

#define BOWL                                                                                       \
    "a: {type: float, min: -3, max: 5}\n"                                                          \
    "b: {type: float, min: 1e-5, max: 1, scale: log}\n"                                            \
    "c: {type: int, min: 0, max: 200}\n"                                                           \
    "d: {type: float, min: 0, max: 1}\n"                                                           \
    "e: {type: categorical, values: [p, q, r, s]}\n"                                               \
    "f: {type: float, min: 0, max: 10}\n"

/* 0 at a = 1.7, b = 0.003, c = 141, d = 1 (a bound), e = r, f = 3.3. */
static double bowl(const struct sweep *w, size_t t)
{
    double a = sweep_number(w, t, 0) - 1.7, b = log(sweep_number(w, t, 1) / 0.003);
    double c = (sweep_number(w, t, 2) - 141) / 30, d = sweep_number(w, t, 3) - 1;
    double e = sweep_number(w, t, 4) == 2 ? 0 : 1 + sweep_number(w, t, 4);
    double f = sweep_number(w, t, 5) - 3.3;
    return 40 * a * a + 0.3 * b * b + c * c + 5 * d * d + e + 0.01 * f * f;
}

/* Each line is a parabola, so its minimum is found whatever the other parameters are: after one
 * cycle all are. Parameter d is at its bound. */
START_TEST(a_separable_quadratic_in_one_cycle)
{
    AS_AUTO(space_freep) struct space *s = space_of_yaml(BOWL);
    AS_AUTO(sweep_done) struct sweep w = {0};
    struct as_err err = {0};
    begin(&w, s, (uint64_t)_i);
    for (size_t t = 0; t < 100; t++) {
        ck_ok(sweep_ask(&w, &err), err);
        sweep_check(&w, t);
        if (reason_of(&w, "cycle") == 1)
            break;
        sweep_tell(&w, t, bowl(&w, t));
    }
    ck_assert_int_eq(reason_of(&w, "cycle"), 1);
    ck_assert_int_eq(reason_of(&w, "restarts"), 0);
    ck_assert_uint_le(w.n, 1 + 5 * 2 * (COORDINATE_POINTS + 1) + 3);
    ck_assert_msg(best_of(&w) <= 1e-12, "%g is left", best_of(&w));
}
END_TEST

/* A line of a parabola costs five trials. */
START_TEST(the_cost_of_a_cycle)
{
    AS_AUTO(space_freep)
    struct space *s = space_of_yaml("a: {type: float, min: -3, max: 5}\n"
                                    "b: {type: float, min: 0, max: 9}\n"
                                    "c: {type: float, min: 1, max: 100}\n");
    AS_AUTO(sweep_done) struct sweep w = {0};
    struct as_err err = {0};
    begin(&w, s, 5);
    for (size_t t = 0; t < 60; t++) {
        ck_ok(sweep_ask(&w, &err), err);
        if (reason_of(&w, "cycle") == 1)
            break;
        double a = sweep_number(&w, t, 0) - 0.4, b = sweep_number(&w, t, 1) - 7.1;
        double c = sweep_number(&w, t, 2) - 55.5;
        sweep_tell(&w, t, 9 + a * a + 3 * b * b + 0.01 * c * c);
    }
    ck_assert_int_eq(reason_of(&w, "cycle"), 1);
    ck_assert_double_lt(best_of(&w) - 9, 1e-12);
    ck_assert_uint_eq(w.n,
                      1 + 3 * (COORDINATE_POINTS + 1) + 1); /* and the first of the next cycle */
}
END_TEST

/* ---- categories, conditions, several trials at once ---- */

#define TREE                                                                                       \
    "kind: {type: categorical, values: [a, b, c]}\n"                                               \
    "lr: {type: float, min: 1e-5, max: 1, scale: log}\n"                                           \
    "depth: {type: int, min: 1, max: 40, when: {kind: b}}\n"                                       \
    "mode: {type: categorical, values: [p, q, r, s]}\n"

static double tree_value(const struct sweep *w, size_t t)
{
    double lr = log10(sweep_number(w, t, 1)) + 2, depth = sweep_number(w, t, 2);
    double sum = lr * lr + (sweep_number(w, t, 3) == 2 ? 0 : 0.5);
    return sweep_number(w, t, 0) == 1 ? sum + (depth - 7) * (depth - 7) / 300 : sum + 1;
}

START_TEST(each_value_of_a_category_is_tried)
{
    AS_AUTO(space_freep) struct space *s = space_of_yaml(TREE);
    AS_AUTO(sweep_done) struct sweep w = {0};
    struct as_err err = {0};
    bool seen[3] = {false};
    begin(&w, s, 2);
    for (size_t t = 0; t < 40; t++) {
        ck_ok(sweep_ask(&w, &err), err);
        sweep_check(&w, t);
        sweep_tell(&w, t, tree_value(&w, t));
        if (t < 3)
            seen[(size_t)sweep_number(&w, t, 0)] = true;
    }
    ck_assert(seen[0] && seen[1] && seen[2]);
    ck_assert_double_lt(best_of(&w), 1e-3);
}
END_TEST

/* Four trials at the same time are four places of one line, then of the next; none is repeated when
 * results come from the last to the first. */
START_TEST(several_at_once)
{
    AS_AUTO(space_freep) struct space *s = space_of_yaml(BOWL);
    AS_AUTO(sweep_done) struct sweep w = {0};
    struct as_err err = {0};
    begin(&w, s, 3);
    for (size_t round = 0; round < 40; round++) {
        size_t first = w.n;
        for (size_t k = 0; k < 4; k++) {
            ck_ok(sweep_ask(&w, &err), err);
            sweep_check(&w, first + k);
        }
        for (size_t k = 4; k-- > 0;)
            sweep_tell(&w, first + k, bowl(&w, first + k));
    }
    ck_assert_double_lt(best_of(&w), 1e-3);
}
END_TEST

/* Where nothing gets better any more, a run begins elsewhere, and says so. */
START_TEST(runs_begin_again)
{
    AS_AUTO(space_freep) struct space *s = space_of_yaml("a: {type: float, min: 0, max: 1}\n");
    AS_AUTO(sweep_done) struct sweep w = {0};
    struct as_err err = {0};
    size_t began = 0;
    begin(&w, s, 4);
    for (size_t t = 0; t < 200; t++) {
        ck_ok(sweep_ask(&w, &err), err);
        const json_t *changed = json_object_get(w.reason, "changed");
        began += reason_of(&w, "restarts") > 0 && changed && json_array_size(changed) == 0;
        double a = sweep_number(&w, t, 0);
        sweep_tell(&w, t, fabs(a - 0.2) < fabs(a - 0.9) ? 1 + fabs(a - 0.2) : fabs(a - 0.9));
    }
    ck_assert_uint_ge(began, 1);
    ck_assert_double_lt(best_of(&w), 0.02);
}
END_TEST

/* A finite space: each configuration once, then there are no more. Failures are results. */
START_TEST(a_space_ends)
{
    AS_AUTO(space_freep)
    struct space *s = space_of_yaml("a: {type: int, min: 1, max: 7}\n"
                                    "b: {type: categorical, values: [x, y, z]}\n");
    AS_AUTO(sweep_done) struct sweep w = {0};
    struct as_err err = {0};
    as_status st;
    begin(&w, s, 6);
    while ((st = sweep_ask(&w, &err)) == AS_OK) {
        size_t t = w.n - 1;
        sweep_check(&w, t);
        if (t % 5 == 3)
            w.trials[t].state = OBSERVED_FAILED;
        else
            sweep_tell(&w, t, sweep_number(&w, t, 0) * sweep_number(&w, t, 1));
    }
    ck_assert_int_eq(st, AS_E_EXHAUSTED);
    ck_assert_uint_eq(w.n, 21);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("search/coordinate");
    TCase *t = tcase_create("coordinate");
    tcase_add_loop_test(t, a_separable_quadratic_in_one_cycle, 0, 4);
    tcase_add_test(t, the_cost_of_a_cycle);
    tcase_add_test(t, each_value_of_a_category_is_tried);
    tcase_add_test(t, several_at_once);
    tcase_add_test(t, runs_begin_again);
    tcase_add_test(t, a_space_ends);
    suite_add_tcase(s, t);
    return s;
}
