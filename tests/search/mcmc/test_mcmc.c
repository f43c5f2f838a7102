/* Annealed Metropolis over trials: chains, their decisions, and what their reasons say. */
#include "search/mcmc/mcmc.h"

#include <math.h>

#include "base/json.h"
#include "search/population/population.h"
#include "tests/search/sweep.h"
#include "tests/support/check_main.h"
#include "tests/support/spaces.h"

#define SPACE                                                                                      \
    "a: {type: float, min: 0, max: 1}\n"                                                           \
    "b: {type: int, min: 0, max: 30}\n"                                                            \
    "c: {type: categorical, values: [p, q, r]}\n"

static void begin(struct sweep *w, const struct space *s, uint64_t seed)
{
    sweep_init(w, s, seed, true);
    w->spec.method = &search_mcmc;
}

static double value(const struct sweep *w, size_t t)
{
    double a = sweep_number(w, t, 0) - 0.3, b = (sweep_number(w, t, 1) - 11) / 10;
    return a * a + b * b + (sweep_number(w, t, 2) != 1);
}

static double reason_number(const struct sweep *w, const char *field)
{
    double v = NAN;
    (void)json_number_get(json_object_get(w->reason, field), &v);
    return v;
}

/* A chain is always at a trial that it may be at: it goes to what is better, at once. */
START_TEST(goes_to_what_is_better)
{
    AS_AUTO(space_freep) struct space *s = space_of_yaml(SPACE);
    AS_AUTO(sweep_done) struct sweep w = {0};
    struct as_err err = {0};
    double first = INFINITY, at = INFINITY;
    size_t n = 0, rises = 0;
    begin(&w, s, 1);
    for (size_t t = 0; t < 150; t++) {
        ck_ok(sweep_ask(&w, &err), err);
        sweep_check(&w, t);
        sweep_tell(&w, t, value(&w, t));
        const json_t *parent = json_object_get(w.reason, "parent");
        if (!parent)
            continue;
        size_t p = (size_t)json_integer_value(parent);
        double now = w.trials[p].values[0];
        ck_assert_uint_lt(p, t);
        ck_assert_int_eq(json_integer_value(json_object_get(w.reason, "chain")), 0);
        ck_assert_msg(n == 0 || now <= fmax(at, w.trials[t - 1].values[0]) + 1e-12,
                      "it is at %g and was at %g", now, at);
        if (n > 0 && w.trials[t - 1].values[0] <= at)
            ck_assert_double_le(now, at);
        rises += n > 0 && now > at;
        first = n++ == 0 ? reason_number(&w, "temperature") : first;
        at = now;
    }
    ck_assert_uint_gt(n, 100);
    ck_assert_uint_gt(rises, 0); /* or it would be a descent */
    ck_assert_double_lt(reason_number(&w, "temperature"), first / 5);
    double acceptance = reason_number(&w, "acceptance");
    ck_assert(acceptance > 0.02 && acceptance < 0.9);
}
END_TEST

/* Trials that run at the same time belong to different chains, and results in any order are each
 * decided once. */
START_TEST(a_chain_for_each_pending_trial)
{
    AS_AUTO(space_freep) struct space *s = space_of_yaml(SPACE);
    AS_AUTO(sweep_done) struct sweep w = {0};
    struct as_err err = {0};
    begin(&w, s, 2);
    w.spec.initial_trials = 6;
    for (size_t t = 0; t < 6; t++) {
        ck_ok(sweep_ask(&w, &err), err);
        sweep_tell(&w, t, value(&w, t));
    }
    for (size_t round = 0; round < 20; round++) {
        size_t first = w.n;
        for (size_t k = 0; k < 4; k++) {
            ck_ok(sweep_ask(&w, &err), err);
            sweep_check(&w, first + k);
            ck_assert_int_eq(json_integer_value(json_object_get(w.reason, "chain")), (int)k);
        }
        ck_assert_uint_eq(json_array_size(json_object_get(w.state, "chains")), 4);
        for (size_t k = 4; k-- > 0;)
            sweep_tell(&w, first + k, value(&w, first + k));
    }
}
END_TEST

START_TEST(better_than_chance)
{
    AS_AUTO(space_freep) struct space *s = space_of_yaml(SPACE);
    double left[2] = {0};
    for (uint64_t seed = 0; seed < 16; seed++) {
        AS_AUTO(sweep_done) struct sweep w = {0};
        struct as_err err = {0};
        double best[2] = {INFINITY, INFINITY};
        begin(&w, s, seed % 8);
        w.spec.method = seed < 8 ? &search_mcmc : w.spec.method;
        w.spec.initial_trials = seed < 8 ? 0 : 80; /* the design alone is chance */
        for (size_t t = 0; t < 80; t++) {
            ck_ok(sweep_ask(&w, &err), err);
            sweep_tell(&w, t, value(&w, t));
            best[seed >= 8] = fmin(best[seed >= 8], w.trials[t].values[0]);
        }
        left[seed >= 8] += best[seed >= 8];
    }
    ck_assert_msg(left[0] < left[1] / 2, "it leaves %g, points that fill the space %g", left[0],
                  left[1]);
}
END_TEST

/* Failures are never gone to, and a finite space ends when each configuration was tried once. */
START_TEST(a_space_ends)
{
    AS_AUTO(space_freep)
    struct space *s = space_of_yaml("a: {type: int, min: 1, max: 7}\n"
                                    "b: {type: categorical, values: [x, y, z]}\n");
    AS_AUTO(sweep_done) struct sweep w = {0};
    struct as_err err = {0};
    as_status st;
    begin(&w, s, 6);
    w.spec.initial_trials = 2;
    while ((st = sweep_ask(&w, &err)) == AS_OK) {
        size_t t = w.n - 1;
        const json_t *parent = json_object_get(w.reason, "parent");
        sweep_check(&w, t);
        if (parent)
            ck_assert_int_eq(w.trials[json_integer_value(parent)].state, OBSERVED_COMPLETED);
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
    Suite *s = suite_create("search/mcmc");
    TCase *t = tcase_create("mcmc");
    tcase_add_test(t, goes_to_what_is_better);
    tcase_add_test(t, a_chain_for_each_pending_trial);
    tcase_add_test(t, better_than_chance);
    tcase_add_test(t, a_space_ends);
    suite_add_tcase(s, t);
    return s;
}
