/* Where the method gp leads: its initial design, priors, several objectives, bounds on outcomes,
 * regions of failures, valleys. The optimum of each problem is known. The sweeps run in memory
 * (sweep.h). */
#include <math.h>
#include <string.h>

#include "base/json.h"
#include "tests/search/sweep.h"
#include "tests/support/check_main.h"
#include "tests/support/spaces.h"

/* The centre comes first; trials that users added count towards the initial design. */
START_TEST(initial_design)
{
    AS_AUTO(space_freep)
    struct space *s =
        space_of_yaml("x: {type: float, min: 0, max: 1}\nn: {type: int, min: 1, max: 9}\n");
    AS_AUTO(sweep_done) struct sweep w = {0};
    struct as_err err = {0};
    sweep_init(&w, s, 1, true);
    for (size_t t = 0; t < 6; t++) {
        ck_ok(sweep_ask(&w, &err), err);
        const char *phase = json_string_value(json_object_get(w.reason, "phase"));
        ck_assert_str_eq(phase, t < 5 ? "initial" : "model");
        sweep_tell(&w, t, sweep_bowl(&w, t));
    }
    JSON_AUTO centre = config_to_json(s, w.trials[0].config);
    AS_AUTO(as_freep) char *first = json_format(centre);
    ck_assert_str_eq(first, "{\"n\":5,\"x\":0.5}");
    AS_AUTO(sweep_done) struct sweep v = {0};
    sweep_init(&v, s, 1, true);
    for (size_t t = 0; t < 5; t++)
        sweep_add(&v, w.trials[t].config, sweep_bowl(&w, t));
    ck_ok(sweep_ask(&v, &err), err);
    ck_assert_str_eq(json_string_value(json_object_get(v.reason, "phase")), "model");
    v.spec.initial_trials = 7;
    ck_ok(sweep_ask(&v, &err), err);
    ck_assert_str_eq(json_string_value(json_object_get(v.reason, "phase")), "initial");
}
END_TEST

/* With priors the first point is at their modes and every second one is drawn from them. Results
 * that confirm them end the design of gp early; results that contradict them end the draws. */
START_TEST(design_with_priors)
{
    AS_AUTO(space_freep)
    struct space *s =
        space_of_yaml("x: {type: float, min: 0, max: 1, prior: {mean: 0.8, deviation: 0.01}}\n"
                      "c: {type: categorical, values: [a, b, c], prior: {weights: {b: 4}}}\n");
    for (int wrong = 0; wrong < 2; wrong++) {
        AS_AUTO(sweep_done) struct sweep w = {0};
        struct as_err err = {0};
        sweep_init(&w, s, 1, true);
        size_t initial = 0, near = 0;
        for (size_t t = 0; t < 10; t++) {
            ck_ok(sweep_ask(&w, &err), err);
            bool first = as_streq(json_string_value(json_object_get(w.reason, "phase")), "initial");
            double off = fabs(sweep_number(&w, t, 0) - 0.8);
            initial += first;
            near += first && off < 0.05;
            ck_assert_msg(t > 4 || (t % 2 == 0 && t > 0) || off < 0.05, "trial %zu: %g", t, off);
            ck_assert(t > 0 || (off < 1e-12 && sweep_number(&w, t, 1) == 1));
            sweep_tell(&w, t, wrong ? -off : off);
        }
        ck_assert_msg(wrong ? initial == 10 && near <= 4 : initial == 5, "%zu, %zu", initial, near);
    }
}
END_TEST

static void tell_outcomes(struct sweep *w, size_t t)
{
    double x = sweep_number(w, t, 0), y = sweep_number(w, t, 1);
    struct observation *o = &w->trials[t];
    o->state = OBSERVED_COMPLETED;
    o->values[0] = -(x + y); /* maximised below */
    o->values[1] = x - y;
    o->outcomes[0] = x * y;
}

/* Maximise -(x + y) where x y >= 0.3: the best is 2 sqrt(0.3) at x = y. */
START_TEST(outcome_constraints)
{
    AS_AUTO(space_freep)
    struct space *s =
        space_of_yaml("x: {type: float, min: 0, max: 1}\ny: {type: float, min: 0, max: 1}\n");
    AS_AUTO(sweep_done) struct sweep w = {0};
    struct as_err err = {0};
    sweep_init(&w, s, 5, true);
    w.spec.maximize[0] = true;
    w.spec.n_outcomes = 1;
    w.spec.outcomes[0] = (struct outcome_bound){0.3, INFINITY};
    double best = -INFINITY;
    for (size_t t = 0; t < 30; t++) {
        ck_ok(sweep_ask(&w, &err), err);
        sweep_check(&w, t);
        tell_outcomes(&w, t);
        if (w.trials[t].outcomes[0] >= 0.3)
            best = fmax(best, w.trials[t].values[0]);
    }
    ck_assert_msg(best > -2 * sqrt(0.3) - 0.02, "best is %g", best);
    /* nothing can be feasible: the limits alone are searched */
    w.spec.outcomes[0].min = 2;
    ck_ok(sweep_ask(&w, &err), err);
    ck_assert_str_eq(json_string_value(json_object_get(w.reason, "acquisition")), "feasibility");
}
END_TEST

START_TEST(several_objectives)
{
    AS_AUTO(space_freep)
    struct space *s =
        space_of_yaml("x: {type: float, min: 0, max: 1}\ny: {type: float, min: 0, max: 1}\n");
    AS_AUTO(sweep_done) struct sweep w = {0};
    struct as_err err = {0};
    sweep_init(&w, s, 5, true);
    w.spec.n_objectives = 2;
    w.spec.maximize[1] = true;
    size_t near = 0;
    for (size_t t = 0; t < 30; t++) {
        ck_ok(sweep_ask(&w, &err), err);
        sweep_check(&w, t);
        double x = sweep_number(&w, t, 0), y = sweep_number(&w, t, 1);
        w.trials[t].state = t == 8 ? OBSERVED_FAILED : OBSERVED_COMPLETED;
        w.trials[t].values[0] = x * x + (y - 0.5) * (y - 0.5);
        w.trials[t].values[1] = -(x - 1) * (x - 1) - (y - 0.5) * (y - 0.5);
        near += t >= 10 && fabs(y - 0.5) < 0.1;
    }
    ck_assert_str_eq(json_string_value(json_object_get(w.reason, "acquisition")), "ehvi");
    ck_assert_uint_eq(json_array_size(json_object_get(w.reason, "predicted")), 2);
    /* the front is y = 0.5 */
    ck_assert_msg(near >= 12, "%zu of 20 are near the front", near);
}
END_TEST

/* The front of x and 1 - sqrt(x) + y is y = 0; a bound on an outcome ends it at x = 0.5, and no
 * trial of the first ones is near that end. */
START_TEST(fronts_are_followed_to_their_ends)
{
    AS_AUTO(space_freep)
    struct space *s =
        space_of_yaml("x: {type: float, min: 0, max: 1}\ny: {type: float, min: 0, max: 1}\n");
    AS_AUTO(sweep_done) struct sweep w = {0};
    struct as_err err = {0};
    double end = 0;
    sweep_init(&w, s, 4, true);
    w.spec.n_objectives = 2;
    w.spec.n_outcomes = 1;
    w.spec.outcomes[0] = (struct outcome_bound){-INFINITY, 0.5};
    for (size_t t = 0; t < 30; t++) {
        ck_ok(sweep_ask(&w, &err), err);
        double x = sweep_number(&w, t, 0), y = sweep_number(&w, t, 1);
        sweep_tell(&w, t, x);
        w.trials[t].values[1] = 1 - sqrt(x) + y;
        w.trials[t].outcomes[0] = x;
        if (x <= 0.5 && y < 0.02)
            end = fmax(end, x);
    }
    ck_assert_msg(end > 0.45, "the front was followed to %g", end);
}
END_TEST

/* The search leaves a region of failures: half of the plane, with the best values near its edge.
 */
START_TEST(failures_are_avoided)
{
    AS_AUTO(space_freep)
    struct space *s =
        space_of_yaml("x: {type: float, min: 0, max: 1}\ny: {type: float, min: 0, max: 1}\n"
                      "o: {type: bool}\n");
    AS_AUTO(sweep_done) struct sweep w = {0};
    struct as_err err = {0};
    sweep_init(&w, s, 2, true);
    size_t failed = 0;
    for (size_t t = 0; t < 40; t++) {
        ck_ok(sweep_ask(&w, &err), err);
        sweep_check(&w, t);
        double x = sweep_number(&w, t, 0);
        if (x > 0.5) {
            w.trials[t].state = OBSERVED_FAILED;
            failed += t >= 20;
        } else {
            sweep_tell(&w, t, fabs(x - 0.45) + fabs(sweep_number(&w, t, 1) - 0.3));
        }
    }
    ck_assert_msg(failed <= 10, "%zu of the last 20 failed", failed);
}
END_TEST

/* A state of another space, or none at all, is the same as no state. */
START_TEST(strange_states_are_ignored)
{
    static const char *const strange[] = {
        "[]",
        "{\"models\":3}",
        "{\"models\":{\"w0\":{\"theta\":[1,2],\"rows\":[],\"best\":0}}}",
        "{\"models\":{\"w0\":{\"theta\":[0,0,0,\"x\"],\"rows\":[[0,4]],\"best\":0}}}",
        "{\"models\":{\"w0\":{\"theta\":[0,0,0,1e300],\"rows\":[[0,4]],\"best\":0}}}",
        ("{\"models\":{\"w0\":{\"theta\":[0,0,0,0],\"rows\":[[4,0]],\"best\":0}},"
         "\"trust\":{\"length\":\"far\"}}")};
    AS_AUTO(space_freep)
    struct space *s =
        space_of_yaml("x: {type: float, min: 0, max: 1}\ny: {type: float, min: 0, max: 1}\n");
    AS_AUTO(sweep_done) struct sweep w = {0};
    struct as_err err = {0};
    sweep_init(&w, s, 1, false);
    for (size_t t = 0; t < 8; t++) {
        ck_ok(sweep_ask(&w, &err), err);
        sweep_tell(&w, t, sweep_bowl(&w, t));
    }
    struct history h = {w.trials, w.n};
    AS_AUTO(suggestion_done) struct suggestion none = {0};
    ck_ok(suggest(&w.spec, &h, NULL, 8, 8, NULL, &none, &err), err);
    for (size_t i = 0; i < AS_ARRAY_LEN(strange); i++) {
        JSON_AUTO j = json_loads(strange[i], 0, NULL);
        ck_assert_ptr_nonnull(j);
        AS_AUTO(suggestion_done) struct suggestion got = {0};
        ck_ok(suggest(&w.spec, &h, j, 8, 8, NULL, &got, &err), err);
        ck_assert_msg(config_equal(s, none.config, got.config), "%s", strange[i]);
    }
}
END_TEST

static void check_turn(const struct sweep *w, const char *acquisition, const char *model)
{
    ck_assert_str_eq(json_string_value(json_object_get(w->reason, "acquisition")), acquisition);
    ck_assert_str_eq(json_string_value(json_object_get(w->reason, "model")), model);
}

/* An int of two values counts as a category; UCB has its turn only while nothing is pending. */
START_TEST(acquisitions_take_turns)
{
    AS_AUTO(space_freep)
    struct space *s =
        space_of_yaml("x: {type: float, min: 0, max: 1}\ny: {type: float, min: 0, max: 1}\n"
                      "on: {type: int, min: 0, max: 1}\n");
    for (size_t idle = 0; idle < 2; idle++) { /* the first trial never ends, or does */
        AS_AUTO(sweep_done) struct sweep w;
        struct as_err err = {0};
        sweep_init(&w, s, 3, true);
        for (size_t t = 0; t < 16; t++) {
            ck_ok(sweep_ask(&w, &err), err);
            if (t >= 10)
                check_turn(&w, t % 4 == 2 && idle ? "ucb" : "logei", t % 2 ? "smooth" : "warped");
            if (t || idle)
                sweep_tell(&w, t, sweep_bowl(&w, t));
        }
    }
}
END_TEST

/* Axes of 1, 30 and 1000, none of them along a parameter's: x and y turned by 30 degrees, then y
 * and z by 50. Lengthscales alone leave about 5 after 30 trials; the quadratic's place is exact. */
static double valley(const struct sweep *w, size_t t)
{
    double x = sweep_number(w, t, 0) - 1.3, y = sweep_number(w, t, 1) + 2.1;
    double z = sweep_number(w, t, 2) - 0.7;
    double a = 0.866 * x - 0.5 * y, b = 0.5 * x + 0.866 * y;
    double c = 0.643 * b - 0.766 * z, d = 0.766 * b + 0.643 * z;
    return a * a + 30 * c * c + 1000 * d * d;
}

START_TEST(follows_a_valley_across_the_axes)
{
    AS_AUTO(space_freep)
    struct space *s =
        space_of_yaml("x: {type: float, min: -5, max: 5}\ny: {type: float, min: -5, max: 5}\n"
                      "z: {type: float, min: -5, max: 5}\n");
    AS_AUTO(sweep_done) struct sweep w;
    struct as_err err = {0};
    double best = INFINITY;
    size_t steps = 0;
    sweep_init(&w, s, 1, true);
    for (size_t t = 0; t < 40; t++) {
        ck_ok(sweep_ask(&w, &err), err);
        steps += as_streq(json_string_value(json_object_get(w.reason, "acquisition")), "quadratic");
        sweep_tell(&w, t, valley(&w, t));
        best = fmin(best, valley(&w, t));
    }
    ck_assert_uint_ge(steps, 1);
    ck_assert_double_le(best, 1e-2);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("search/suggest_gp");
    TCase *t = tcase_create("gp");
    tcase_add_test(t, initial_design);
    tcase_add_test(t, design_with_priors);
    tcase_add_test(t, acquisitions_take_turns);
    tcase_add_test(t, follows_a_valley_across_the_axes);
    tcase_add_test(t, outcome_constraints);
    tcase_add_test(t, several_objectives);
    tcase_add_test(t, fronts_are_followed_to_their_ends);
    tcase_add_test(t, failures_are_avoided);
    tcase_add_test(t, strange_states_are_ignored);
    suite_add_tcase(s, t);
    return s;
}
