/* Guides: how much of a sweep's values an earlier sweep explains. */
#include "search/gp/guide.h"

#include <math.h>
#include <string.h>

#include "base/json.h"
#include "base/rng.h"
#include "search/gp/surrogate.h"
#include "search/prior/trust.h"
#include "tests/search/sweep.h"
#include "tests/support/check_main.h"
#include "tests/support/spaces.h"

#define SPACE                                                                                      \
    "x: {type: float, min: 0, max: 1}\n"                                                           \
    "y: {type: float, min: 0, max: 1}\n"                                                           \
    "c: {type: categorical, values: [a, b]}\n"                                                     \
    "fresh: {type: float, min: 0, max: 1}\n"

typedef double value_fn(double x, double y, double c);

static double hill(double x, double y, double c)
{
    return 2 * pow(x - 0.4, 2) + 0.4 * sin(11 * x) + 0.5 * cos(9 * y + 1) + 0.4 * c;
}

static double moved(double x, double y, double c)
{
    return 5 * hill(x + 0.06, y - 0.05, c) - 3;
}

static double logged(double x, double y, double c)
{
    return log(hill(x, y, c) + 2);
}

static double other(double x, double y, double c)
{
    return cos(9 * y) + sin(5 * x + 4 * y) * (c > 0 ? 1 : -0.7);
}

/* The configuration of draw i, without `fresh` in the earlier sweep. */
static void draw(uint64_t seed, uint64_t i, double *x, double *y, double *c)
{
    struct rng r;
    rng_init(&r, seed, i);
    *x = rng_uniform(&r);
    *y = rng_uniform(&r);
    *c = rng_uniform(&r) < 0.5;
}

static struct warm_start *earlier_of(const struct space *s, value_fn *fn, size_t n)
{
    JSON_AUTO trials = json_array();
    struct json_fields f;
    struct as_err err = {0};
    struct warm_start *ret = NULL;
    for (uint64_t i = 0; i < n; i++) {
        double x, y, c;
        draw(1, i, &x, &y, &c);
        json_array_append_new(trials, json_pack("{s:{s:f, s:f, s:s}, s:f}", "params", "x", x, "y",
                                                y, "c", c > 0 ? "b" : "a", "cost", fn(x, y, c)));
    }
    JSON_AUTO j = json_pack("{s:[{s:s, s:I, s:O}]}", "prior", "sweep", "before", "completed",
                            (json_int_t)n, "trials", trials);
    ck_ok(json_fields_init(&f, j, "/search", &err), err);
    ck_ok(warm_start_parse(&f, s, &ret, &err), err);
    return ret;
}

/* A sweep of n trials with the values of hill(). */
static void fill(struct sweep *w, const struct space *s, const struct warm_start *before, size_t n)
{
    sweep_init(w, s, 7, false);
    w->spec.earlier = before;
    for (uint64_t i = 0; i < n; i++) {
        AS_AUTO(config_freep) struct config *made = NULL;
        struct as_err err = {0};
        double x, y, c;
        draw(2, i, &x, &y, &c);
        JSON_AUTO params = json_pack("{s:f, s:f, s:s, s:f}", "x", x, "y", y, "c", c > 0 ? "b" : "a",
                                     "fresh", fmod(0.37 * (double)i, 1));
        ck_ok(config_from_json(s, params, "", &made, &err), err);
        sweep_add(w, made, hill(x, y, c));
    }
}

struct model {
    struct space *space;
    struct warm_start *before;
    struct sweep sweep;
    struct history history;
    struct training_set *set;
    struct surrogate_store store;
    struct surrogate surrogate;
};

static void model_done(struct model *m)
{
    surrogate_done(&m->surrogate);
    surrogate_store_done(&m->store);
    training_set_free(m->set);
    sweep_done(&m->sweep);
    warm_start_free(m->before);
    space_free(m->space);
}

static void make(struct model *m, surrogate_target target, value_fn *fn, size_t trials)
{
    struct as_err err = {0};
    struct surrogate_spec spec = {target, 0, 2048, trials};
    m->space = space_of_yaml(SPACE);
    m->before = earlier_of(m->space, fn, 60);
    fill(&m->sweep, m->space, m->before, trials);
    m->history = (struct history){m->sweep.trials, m->sweep.n};
    ck_ok(training_set_create(&m->sweep.spec, &m->history, NULL, &m->set, &err), err);
    ck_ok(surrogate_prepare(&m->store, m->set, &spec, NULL, &m->surrogate, &err), err);
}

static double weight_of(value_fn *fn, size_t trials)
{
    AS_AUTO(model_done) struct model m = {0};
    make(&m, SURROGATE_WARPED, fn, trials);
    ck_assert_uint_eq(m.surrogate.guides.n, 1);
    return m.surrogate.guides.weights[0];
}

/* The same values count fully after few trials, also on another scale; others do not count. */
START_TEST(weights_tell_sweeps_apart)
{
    ck_assert_double_ge(weight_of(hill, 12), 0.8);
    ck_assert_double_ge(weight_of(logged, 12), 0.8);
    ck_assert_double_ge(weight_of(moved, 12), 0.6);
    ck_assert_double_le(weight_of(other, 12), 0.1);
    ck_assert_double_le(weight_of(other, 40), 0.1);
}
END_TEST

/* One number: the earlier sweep had its values 0.06 further down. */
START_TEST(shifts_are_found)
{
    AS_AUTO(model_done) struct model m = {0};
    struct as_err err = {0};
    struct json_fields f;
    struct surrogate_spec spec = {SURROGATE_WARPED, 0, 2048, 16};
    JSON_AUTO trials = json_array();
    m.space = space_of_yaml("x: {type: float, min: 0, max: 1}\n");
    for (int i = 0; i < 40; i++)
        json_array_append_new(trials, json_pack("{s:{s:f}, s:f}", "params", "x", i / 39.0, "cost",
                                                5 * hill(i / 39.0 + 0.06, 0.5, 0) - 3));
    JSON_AUTO j = json_pack("{s:[{s:s, s:i, s:O}]}", "prior", "sweep", "before", "completed", 40,
                            "trials", trials);
    ck_ok(json_fields_init(&f, j, "/search", &err), err);
    ck_ok(warm_start_parse(&f, m.space, &m.before, &err), err);
    sweep_init(&m.sweep, m.space, 7, false);
    m.sweep.spec.earlier = m.before;
    for (int i = 0; i < 16; i++) {
        AS_AUTO(config_freep) struct config *made = NULL;
        double x = fmod(0.1 + 0.381966 * i, 1);
        JSON_AUTO params = json_pack("{s:f}", "x", x);
        ck_ok(config_from_json(m.space, params, "", &made, &err), err);
        sweep_add(&m.sweep, made, hill(x, 0.5, 0));
    }
    m.history = (struct history){m.sweep.trials, m.sweep.n};
    ck_ok(training_set_create(&m.sweep.spec, &m.history, NULL, &m.set, &err), err);
    ck_ok(surrogate_prepare(&m.store, m.set, &spec, NULL, &m.surrogate, &err), err);
    ck_assert_double_eq_tol(m.surrogate.guides.shift[0][0], -0.06, 0.01);
    ck_assert_double_eq_tol(m.surrogate.guides.weights[0], 1, 0.1);
}
END_TEST

/* The bowl's least value is at 0.4, 0.6, 0.3, 0.5. */
static double bowl(const double *x, const double *off)
{
    static const double best[4] = {0.4, 0.6, 0.3, 0.5};
    double sum = 0;
    for (size_t j = 0; j < 4; j++)
        sum += (double)(j + 1) * pow(x[j] + off[j] - best[j], 2);
    return sum;
}

/* Four numbers, from fourteen trials that lie anywhere, and on another scale. */
START_TEST(shifts_of_several_numbers_are_found)
{
    static const char *const names[4] = {"a", "b", "c", "d"};
    static const double none[4] = {0}, off[4] = {0.05, -0.05, -0.05, 0.05};
    AS_AUTO(model_done) struct model m = {0};
    struct as_err err = {0};
    struct json_fields f;
    struct surrogate_spec spec = {SURROGATE_WARPED, 0, 2048, 14};
    JSON_AUTO trials = json_array();
    m.space = space_of_yaml("a: {type: float, min: 0, max: 1}\nb: {type: float, min: 0, max: 1}\n"
                            "c: {type: float, min: 0, max: 1}\nd: {type: float, min: 0, max: 1}\n");
    for (uint64_t i = 0; i < 64; i++) {
        struct rng r;
        double x[4];
        JSON_AUTO params = json_object();
        rng_init(&r, 5, i);
        for (size_t j = 0; j < 4; j++) {
            x[j] = rng_uniform(&r);
            json_object_set_new(params, names[j], json_real(x[j]));
        }
        if (i < 50) {
            json_array_append_new(
                trials, json_pack("{s:O, s:f}", "params", params, "cost", 5 * bowl(x, off) - 3));
            continue;
        }
        if (i == 50) {
            JSON_AUTO list = json_pack("{s:[{s:s, s:i, s:O}]}", "prior", "sweep", "before",
                                       "completed", 50, "trials", trials);
            ck_ok(json_fields_init(&f, list, "/search", &err), err);
            ck_ok(warm_start_parse(&f, m.space, &m.before, &err), err);
            sweep_init(&m.sweep, m.space, 7, false);
            m.sweep.spec.earlier = m.before;
        }
        AS_AUTO(config_freep) struct config *made = NULL;
        ck_ok(config_from_json(m.space, params, "", &made, &err), err);
        sweep_add(&m.sweep, made, bowl(x, none));
    }
    m.history = (struct history){m.sweep.trials, m.sweep.n};
    ck_ok(training_set_create(&m.sweep.spec, &m.history, NULL, &m.set, &err), err);
    ck_ok(surrogate_prepare(&m.store, m.set, &spec, NULL, &m.surrogate, &err), err);
    ck_assert_double_gt(m.surrogate.guides.weights[0], 0.7);
    for (size_t j = 0; j < 4; j++)
        ck_assert_double_eq_tol(m.surrogate.guides.shift[0][j], -off[j], 0.02);
}
END_TEST

/* A sweep that guides do not help has the model that it has without them. */
START_TEST(no_guide_changes_nothing)
{
    AS_AUTO(model_done) struct model with = {0}, without = {0};
    struct as_err err = {0};
    struct surrogate_spec spec = {SURROGATE_WARPED, 0, 2048, 12};
    make(&with, SURROGATE_WARPED, other, 12);
    ck_assert_double_eq(with.surrogate.guides.weights[0], 0);
    without.space = space_of_yaml(SPACE);
    fill(&without.sweep, without.space, NULL, 12);
    without.history = (struct history){without.sweep.trials, without.sweep.n};
    ck_ok(training_set_create(&without.sweep.spec, &without.history, NULL, &without.set, &err),
          err);
    ck_ok(surrogate_prepare(&without.store, without.set, &spec, NULL, &without.surrogate, &err),
          err);
    const double *a = gp_model_theta(with.surrogate.model);
    const double *b = gp_model_theta(without.surrogate.model);
    for (size_t i = 0; i < gp_n_theta(&with.set->columns); i++)
        ck_assert_double_eq(a[i], b[i]);
    ck_assert(json_equal(with.surrogate.state, without.surrogate.state));
}
END_TEST

/* Standardised values: what was measured, with small errors there and larger ones elsewhere. */
START_TEST(errors_of_predictions)
{
    AS_AUTO(model_done) struct model m = {0};
    struct as_err err = {0};
    double value[2], cov[4], x[6] = {0, 0, 0.1, 2, 2, 0.1}, c;
    make(&m, SURROGATE_WARPED, hill, 8);
    struct warm_start_model *e = m.store.guides.plain[0];
    draw(1, 0, &x[0], &x[1], &c);
    int32_t z[2] = {c > 0, c > 0};
    ck_ok(warm_start_model_reserve(e, 2, &err), err);
    warm_start_model_joint(e, &(struct gp_rows){2, x, z}, value, cov);
    ck_assert_double_eq_tol(value[0], hill(x[0], x[1], c), 0.02);
    ck_assert_double_lt(sqrt(cov[0]), 0.02);
    ck_assert_double_gt(sqrt(cov[3]), 0.2);
    ck_assert(cov[1] == cov[2]);
}
END_TEST

/* The mean squared error of predictions, in the model's unit. */
static double error_at_new_points(struct model *m)
{
    AS_AUTO(gp_work_freep) struct gp_work *work = gp_work_create();
    struct as_err err = {0};
    double sum = 0;
    ck_ok(surrogate_reserve(&m->surrogate, work, 1, &err), err);
    for (uint64_t i = 0; i < 50; i++) {
        double x, y, c, mean, var, features[8];
        int32_t z[2];
        draw(3, i, &x, &y, &c);
        double point[4] = {x, y, c, 0.5};
        encoding_features(m->set->enc, point, features, z);
        surrogate_predict(&m->surrogate, work, &(struct gp_rows){1, features, z}, &mean, &var);
        double off = mean - surrogate_forward(&m->surrogate, hill(x, y, c));
        sum += off * off / 50;
    }
    return sum;
}

START_TEST(predictions_follow_the_warm_start)
{
    AS_AUTO(model_done) struct model with = {0}, without = {0};
    make(&with, SURROGATE_PLAIN, hill, 10);
    make(&without, SURROGATE_PLAIN, other, 10);
    double a = error_at_new_points(&with), b = error_at_new_points(&without);
    ck_assert_msg(a < 0.5 * b, "%g, without %g", a, b);
}
END_TEST

/* The gradient by the real columns is that of the mean, guides and their warps included. */
START_TEST(slopes)
{
    static const surrogate_target targets[] = {SURROGATE_WARPED, SURROGATE_PLAIN, SURROGATE_SMOOTH};
    AS_AUTO(model_done) struct model m = {0};
    AS_AUTO(gp_work_freep) struct gp_work *work = gp_work_create();
    struct as_err err = {0};
    make(&m, targets[_i], moved, 25);
    ck_assert_double_gt(m.surrogate.guides.weights[0], 0.3);
    ck_ok(surrogate_reserve(&m.surrogate, work, 3, &err), err);
    for (uint64_t i = 0; i < 20; i++) {
        double x[3], z0, mean[3], var[3], dmean[9], dvar[9], slope[3];
        int32_t z = (int32_t)(i % 2);
        draw(4, i, &x[0], &x[1], &z0);
        x[2] = 0.4;
        surrogate_predict_grad(&m.surrogate, work, &(struct gp_rows){1, x, &z}, mean, var, slope,
                               dvar);
        for (size_t j = 0; j < 3; j++) {
            double at[6], h = 1e-7;
            int32_t both[2] = {z, z};
            memcpy(at, x, sizeof x);
            memcpy(at + 3, x, sizeof x);
            at[j] -= h;
            at[3 + j] += h;
            surrogate_predict_grad(&m.surrogate, work, &(struct gp_rows){2, at, both}, mean, var,
                                   dmean, dvar);
            double numeric = (mean[1] - mean[0]) / (2 * h);
            ck_assert_msg(fabs(numeric - slope[j]) < 1e-4 * (1 + fabs(numeric)), "%g, not %g",
                          slope[j], numeric);
        }
    }
}
END_TEST

/* A parameter that the earlier sweep did not have changes nothing that it says. */
START_TEST(new_parameters_do_not_count)
{
    AS_AUTO(model_done) struct model m = {0};
    struct as_err err = {0};
    double value[2], x[6] = {0.3, 0.2, 0.1, 0.3, 0.2, 0.9};
    int32_t z[2] = {1, 1};
    make(&m, SURROGATE_WARPED, hill, 8);
    struct warm_start_model *e = m.store.guides.models[0];
    ck_ok(warm_start_model_reserve(e, 2, &err), err);
    warm_start_model_predict(e, &(struct gp_rows){2, x, z}, value, NULL);
    ck_assert(value[0] == value[1]);
    ck_assert_double_eq_tol(value[0], hill(0.3, 0.2, 1), 0.05);
}
END_TEST

/* An earlier sweep that never tried the fifth of nine sizes predicts it from its neighbours. */
START_TEST(choices_of_numbers_are_followed_in_their_order)
{
    AS_AUTO(space_freep)
    struct space *s =
        space_of_yaml("size: {type: categorical, values: [9, 2, 5, 4, 1, 6, 3, 8, 7]}\n"
                      "x: {type: float, min: 0, max: 1}\n");
    AS_AUTO(warm_start_freep) struct warm_start *before = NULL;
    AS_AUTO(training_set_freep) struct training_set *set = NULL;
    AS_AUTO(warm_start_model_freep) struct warm_start_model *m = NULL;
    AS_AUTO(sweep_done) struct sweep w;
    JSON_AUTO trials = json_array();
    struct json_fields f;
    struct as_err err = {0};
    for (int i = 0; i < 40; i++) {
        int size = 1 + i % 9;
        if (size != 5)
            json_array_append_new(trials, json_pack("{s:{s:i, s:f}, s:f}", "params", "size", size,
                                                    "x", fmod(0.37 * i, 1), "cost",
                                                    (size - 5.0) * (size - 5.0) / 16));
    }
    JSON_AUTO j = json_pack("{s:[{s:s, s:i, s:O}]}", "prior", "sweep", "before", "completed",
                            (int)json_array_size(trials), "trials", trials);
    ck_ok(json_fields_init(&f, j, "/search", &err), err);
    ck_ok(warm_start_parse(&f, s, &before, &err), err);
    sweep_init(&w, s, 7, false);
    struct history history = {w.trials, w.n};
    ck_ok(training_set_create(&w.spec, &history, NULL, &set, &err), err);
    ck_ok(warm_start_model_create(before, 0, WARM_START_STANDARDISED, set->enc, &set->columns, &m,
                                  &err),
          err);
    double features[2], value;
    int32_t z;
    encoding_features(set->enc, (const double[]){2, 0.5}, features, &z); /* the third is 5 */
    ck_ok(warm_start_model_reserve(m, 1, &err), err);
    warm_start_model_predict(m, &(struct gp_rows){1, features, &z}, &value, NULL);
    ck_assert_msg(fabs(value) < 0.1, "%g", value);
}
END_TEST

/* Snapshots of four equal values, or of too few, are no models; nor are there any later. */
START_TEST(nothing_to_learn)
{
    static const char *const lists[] = {
        "[{\"params\":{\"x\":0.1},\"cost\":1},{\"params\":{\"x\":0.2},\"cost\":2}]",
        "[{\"params\":{\"x\":0.1},\"cost\":1},{\"params\":{\"x\":0.2},\"cost\":1},"
        "{\"params\":{\"x\":0.3},\"cost\":1},{\"params\":{\"x\":0.4},\"cost\":1},"
        "{\"params\":{\"x\":0.5},\"cost\":1}]"};
    AS_AUTO(space_freep) struct space *s = space_of_yaml(SPACE);
    AS_AUTO(warm_start_freep) struct warm_start *w = NULL;
    AS_AUTO(training_set_freep) struct training_set *set = NULL;
    AS_AUTO(warm_start_model_freep) struct warm_start_model *m = NULL;
    struct search_spec spec = {.space = s, .n_objectives = 1};
    struct json_fields f;
    struct as_err err = {0};
    JSON_AUTO trials = json_loads(lists[_i], 0, NULL);
    JSON_AUTO j = json_pack("{s:[{s:s, s:i, s:O}]}", "prior", "sweep", "few", "completed", 5,
                            "trials", trials);
    ck_ok(json_fields_init(&f, j, "/search", &err), err);
    ck_ok(warm_start_parse(&f, s, &w, &err), err);
    ck_ok(training_set_create(&spec, NULL, NULL, &set, &err), err);
    ck_ok(warm_start_model_create(w, 0, WARM_START_WARPED, set->enc, &set->columns, &m, &err), err);
    ck_assert_ptr_null(m);
}
END_TEST

START_TEST(guides_end)
{
    AS_AUTO(model_done) struct model m = {0};
    make(&m, SURROGATE_WARPED, hill, TRUST_MOST);
    ck_assert_uint_eq(m.surrogate.guides.n, 0);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("search/gp/guide");
    TCase *t = tcase_create("guide");
    tcase_add_test(t, weights_tell_sweeps_apart);
    tcase_add_test(t, shifts_are_found);
    tcase_add_test(t, shifts_of_several_numbers_are_found);
    tcase_add_test(t, no_guide_changes_nothing);
    tcase_add_test(t, errors_of_predictions);
    tcase_add_test(t, predictions_follow_the_warm_start);
    tcase_add_loop_test(t, slopes, 0, 3);
    tcase_add_test(t, new_parameters_do_not_count);
    tcase_add_test(t, choices_of_numbers_are_followed_in_their_order);
    tcase_add_loop_test(t, nothing_to_learn, 0, 2);
    tcase_add_test(t, guides_end);
    suite_add_tcase(s, t);
    return s;
}
