/* Results for and against a prior. */
#include "search/prior/trust.h"

#include <math.h>

#include "base/json.h"
#include "search/prior/prior_dist.h"
#include "tests/search/sweep.h"
#include "tests/support/check_main.h"
#include "tests/support/spaces.h"

static const char one[] = "x: {type: float, min: 0, max: 1, prior: {mean: 0.2, deviation: 0.1}}\n";

/* The weight after n trials that are spread over the line and have the value value(x). */
static double trust_after(const char *yaml, size_t n, double (*value)(double))
{
    AS_AUTO(space_freep) struct space *s = space_of_yaml(yaml);
    AS_AUTO(sweep_done) struct sweep w;
    AS_AUTO(training_set_freep) struct training_set *set = NULL;
    struct as_err err = {0};
    sweep_init(&w, s, 1, false);
    for (size_t i = 0; i < n; i++) {
        AS_AUTO(config_freep) struct config *c = config_create(s);
        c->entries[0].value.real = fmod(0.618 * (double)i, 1);
        config_settle(s, c);
        sweep_add(&w, c, value(c->entries[0].value.real));
        if (isnan(w.trials[i].values[0]))
            w.trials[i].state = OBSERVED_FAILED;
    }
    const struct history h = {w.trials, w.n};
    ck_ok(training_set_create(&w.spec, &h, NULL, &set, &err), err);
    ck_assert_double_eq_tol(trust_weights(set).params, trust_of(set, n) * prior_dist_weight(n),
                            1e-15);
    ck_assert(trust_of(set, 3) == 1 || !s->params[0].prior);
    return trust_of(set, n);
}

static double near(double x)
{
    return fabs(x - 0.25);
}

static double far_away(double x)
{
    return fabs(x - 0.9);
}

static double fails_near(double x)
{
    return x < 0.4 ? NAN : x > 0.7 ? 1 : 2;
}

static double flat(double x)
{
    (void)x;
    return 3;
}

START_TEST(results_decide)
{
    ck_assert_double_eq(trust_after(one, 4, far_away), 1); /* too few */
    ck_assert_double_eq(trust_after(one, 10, near), 1);
    ck_assert_double_eq(trust_after(one, 10, far_away), 0);
    ck_assert_double_eq(trust_after(one, 12, fails_near), 0);
    ck_assert_double_eq(trust_after(one, 12, flat), 0.5);
    ck_assert_double_eq(trust_after("x: {type: float, min: 0, max: 1}\n", 10, near), 0);
}
END_TEST

START_TEST(it_ends)
{
    AS_AUTO(space_freep) struct space *s = space_of_yaml(one);
    AS_AUTO(sweep_done) struct sweep w;
    AS_AUTO(training_set_freep) struct training_set *set = NULL;
    struct as_err err = {0};
    sweep_init(&w, s, 1, false);
    for (size_t i = 0; i < TRUST_MOST; i++) {
        AS_AUTO(config_freep) struct config *c = config_create(s);
        c->entries[0].value.real = fmod(0.618 * (double)i, 1);
        config_settle(s, c);
        sweep_add(&w, c, near(c->entries[0].value.real));
    }
    const struct history h = {w.trials, w.n};
    ck_ok(training_set_create(&w.spec, &h, NULL, &set, &err), err);
    ck_assert(trust_weights(set).params == 0 && !trust_weights(set).any);
}
END_TEST

/* The sign of a goal, dominance, bounds, and trials under way. */
START_TEST(what_is_better)
{
    AS_AUTO(space_freep) struct space *s = space_of_yaml(one);
    AS_AUTO(sweep_done) struct sweep w;
    struct as_err err = {0};
    sweep_init(&w, s, 1, false);
    for (size_t i = 0; i < 8; i++) {
        AS_AUTO(config_freep) struct config *c = config_create(s);
        c->entries[0].value.real = 0.2 + 0.1 * (double)i;
        config_settle(s, c);
        sweep_add(&w, c, (double)i);
        w.trials[i].values[1] = 8 - (double)i;
        w.trials[i].outcomes[0] = (double)i;
    }
    const struct {
        bool maximize, pending;
        size_t objectives, outcomes;
        double want;
    } cases[] = {{false, false, 1, 0, 1},
                 {true, false, 1, 0, 0},
                 {false, false, 2, 0, 0.5}, /* none dominates another */
                 {true, false, 1, 1, 1},    /* the farther ones break a bound */
                 {true, true, 1, 0, 1}};    /* one result too few */
    for (size_t i = 0; i < AS_ARRAY_LEN(cases); i++) {
        AS_AUTO(training_set_freep) struct training_set *set = NULL;
        const struct history h = {w.trials, w.n};
        w.spec.maximize[0] = cases[i].maximize;
        w.spec.n_objectives = cases[i].objectives;
        w.spec.n_outcomes = cases[i].outcomes;
        w.spec.outcomes[0] = (struct outcome_bound){-INFINITY, 0.5};
        for (size_t k = 0; k < 8; k++)
            w.trials[k].state = cases[i].pending && k > 3 ? OBSERVED_PENDING : OBSERVED_COMPLETED;
        ck_ok(training_set_create(&w.spec, &h, NULL, &set, &err), err);
        double trust = trust_of(set, 8);
        ck_assert_msg(i == 3 ? trust > 0.5 : trust == cases[i].want, "case %zu: %g", i, trust);
    }
}
END_TEST

/* The earlier sweep had its best trials around 0.3, this sweep has its around 0.7. A shift by the
 * difference brings the density there, with the trust that it deserves. */
START_TEST(a_warm_start_moves)
{
    AS_AUTO(space_freep) struct space *s = space_of_yaml("x: {type: float, min: 0, max: 1}\n");
    AS_AUTO(sweep_done) struct sweep w;
    AS_AUTO(warm_start_freep) struct warm_start *before = NULL;
    AS_AUTO(training_set_freep) struct training_set *set = NULL;
    struct json_fields f;
    struct as_err err = {0};
    JSON_AUTO j = json_loads("{\"prior\":[{\"sweep\":\"a\",\"completed\":20,\"trials\":["
                             "{\"params\":{\"x\":0.3},\"cost\":1},"
                             "{\"params\":{\"x\":0.32},\"cost\":2}]}]}",
                             0, NULL);
    ck_ok(json_fields_init(&f, j, "/search", &err), err);
    ck_ok(warm_start_parse(&f, s, &before, &err), err);
    sweep_init(&w, s, 1, false);
    w.spec.earlier = before;
    for (size_t i = 0; i < 10; i++) {
        AS_AUTO(config_freep) struct config *c = config_create(s);
        c->entries[0].value.real = fmod(0.618 * (double)i, 1);
        config_settle(s, c);
        sweep_add(&w, c, fabs(c->entries[0].value.real - 0.7));
    }
    const struct history h = {w.trials, w.n};
    ck_ok(training_set_create(&w.spec, &h, NULL, &set, &err), err);
    struct prior_weights p = trust_weights(set);
    const double shift = -0.4, here = 0.3, there = 0.7, beside = 0.66, step = 1e-6;
    ck_assert_double_eq(p.earlier[0], 0);
    trust_shift(&p, set, 0, &shift);
    ck_assert(p.any);
    ck_assert_double_eq(p.earlier[0], prior_dist_weight(10));
    ck_assert_double_gt(trust_log(&p, set, &there, NULL), trust_log(&p, set, &here, NULL) + 1);
    double slope, next = beside + step;
    double value = trust_log(&p, set, &beside, &slope);
    ck_assert_double_eq_tol(slope, (trust_log(&p, set, &next, NULL) - value) / step, 1e-3);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("search/prior/trust");
    TCase *t = tcase_create("trust");
    tcase_add_test(t, results_decide);
    tcase_add_test(t, it_ends);
    tcase_add_test(t, what_is_better);
    tcase_add_test(t, a_warm_start_moves);
    suite_add_tcase(s, t);
    return s;
}
