/* Predictions against what came: which models lose their turns, and for how long. */
#include "search/gp/reliability.h"

#include <math.h>

#include "base/json.h"
#include "search/gp/acquisition_schedule.h"
#include "tests/search/sweep.h"
#include "tests/support/check_main.h"
#include "tests/support/spaces.h"

#define WAVES                                                                                      \
    "kind: {type: categorical, values: [a, b]}\n"                                                  \
    "x: {type: float, min: 0, max: 1}\ny: {type: float, min: 0, max: 1}\n"

#define RASTRIGIN                                                                                  \
    "kind: {type: categorical, values: [a, b]}\n"                                                  \
    "m: {type: int, min: 0, max: 9}\nn: {type: int, min: 0, max: 9}\n"                             \
    "x: {type: float, min: -5, max: 5}\ny: {type: float, min: -5, max: 5}\n"

/* A sweep of `n` trials of the design with results, and a model of it. */
struct planted {
    struct space *space;
    struct sweep w;
    struct surrogate_store store;
    struct surrogate model;
    struct reliability c;
};

static void plant(struct planted *p, surrogate_target target)
{
    struct as_err err = {0};
    *p = (struct planted){0};
    ck_ok(space_from_yaml(WAVES, &p->space, &err), err);
    sweep_init(&p->w, p->space, 1, false);
    for (size_t t = 0; t < 10; t++) {
        ck_ok(sweep_ask(&p->w, &err), err);
        sweep_tell(&p->w, t, sweep_bowl(&p->w, t));
    }
    AS_AUTO(training_set_freep) struct training_set *set = sweep_training_set(&p->w);
    struct surrogate_spec spec = {target, 0, 1000, 10};
    ck_ok(surrogate_prepare(&p->store, set, &spec, NULL, &p->model, &err), err);
}

static void plant_done(struct planted *p)
{
    surrogate_done(&p->model);
    surrogate_store_done(&p->store);
    sweep_done(&p->w);
    space_free(p->space);
}

/* The model predicts `off` of its deviations beside what comes of the next trial. */
static void predict_next(struct planted *p, double off, double deviation)
{
    struct as_err err = {0};
    ck_ok(sweep_ask(&p->w, &err), err);
    size_t t = p->w.n - 1;
    double cost = sweep_bowl(&p->w, t), value = surrogate_forward(&p->model, cost);
    double spread = sqrt(deviation * deviation + gp_model_noise(p->model.model));
    reliability_watch(&p->c, t, &p->model, value + off * spread, deviation);
    ck_assert_uint_eq(p->c.n_open, 1);
    sweep_tell(&p->w, t, cost);
    AS_AUTO(training_set_freep) struct training_set *set = sweep_training_set(&p->w);
    reliability_check(&p->c, set);
    ck_assert_uint_eq(p->c.n_open, 0);
}

START_TEST(an_overconfident_model_loses_its_turns_and_gets_them_back)
{
    AS_AUTO(plant_done) struct planted p;
    const unsigned facts = FACT_CATEGORIES | FACT_TRENDS | FACT_NONE_PENDING;
    plant(&p, SURROGATE_SMOOTH);
    for (size_t k = 0; k < RELIABILITY_LEAST; k++) {
        ck_assert_uint_eq(reliability_lost(&p.c), 0);
        predict_next(&p, k % 2 ? 3.5 : 0.5, 1e-4);
    }
    ck_assert_uint_eq(reliability_lost(&p.c), 1 << SURROGATE_SMOOTH);
    const struct reliability_record *r = &p.c.of[SURROGATE_SMOOTH];
    ck_assert_uint_eq(r->lost_missed, RELIABILITY_LEAST / 2);
    ck_assert_uint_eq(r->lost_n, RELIABILITY_LEAST);
    ck_assert_uint_eq(r->lost_until, p.w.n + 12);
    for (uint64_t t = 0; t < 8; t++)
        ck_assert_int_ne(schedule_at(facts, reliability_lost(&p.c), t)->target, SURROGATE_SMOOTH);
    ck_assert_int_eq(schedule_at(facts, 0, 1)->target, SURROGATE_SMOOTH);
    while (p.w.n < r->lost_until) {
        ck_assert(reliability_has_lost(&p.c, SURROGATE_SMOOTH));
        predict_next(&p, 5, 1e-4); /* one that was under way: it no longer counts */
    }
    ck_assert_uint_eq(reliability_lost(&p.c), 0);
    ck_assert_uint_eq(r->n, 0);
}
END_TEST

START_TEST(a_model_that_misses_a_third_keeps_its_turns)
{
    AS_AUTO(plant_done) struct planted p;
    plant(&p, SURROGATE_WARPED);
    for (size_t k = 0; k < 24; k++) {
        predict_next(&p, k % 3 == 2 ? -3.5 : 2.5, 0.01);
        ck_assert_uint_eq(reliability_lost(&p.c), 0);
    }
    ck_assert_uint_eq(p.c.of[SURROGATE_WARPED].n, RELIABILITY_NEWEST);
    ck_assert_uint_eq(reliability_misses(&p.c.of[SURROGATE_WARPED]), RELIABILITY_NEWEST / 3);
}
END_TEST

START_TEST(the_warped_model_loses_only_to_one_that_is_better)
{
    for (size_t n_plain = RELIABILITY_LEAST - 1; n_plain <= RELIABILITY_LEAST; n_plain++) {
        AS_AUTO(plant_done) struct planted p;
        plant(&p, SURROGATE_WARPED);
        p.c.of[SURROGATE_PLAIN].n = n_plain; /* all held */
        for (size_t k = 0; k < RELIABILITY_NEWEST; k++)
            predict_next(&p, 5, 1e-4);
        ck_assert_int_eq(reliability_has_lost(&p.c, SURROGATE_WARPED),
                         n_plain == RELIABILITY_LEAST);
    }
}
END_TEST

START_TEST(trials_that_fail_or_are_cancelled_say_nothing)
{
    AS_AUTO(plant_done) struct planted p;
    struct as_err err = {0};
    plant(&p, SURROGATE_PLAIN);
    for (size_t k = 0; k < 2; k++)
        ck_ok(sweep_ask(&p.w, &err), err);
    reliability_watch(&p.c, 10, &p.model, 0, 1);
    reliability_watch(&p.c, 11, &p.model, 0, 1);
    reliability_watch(&p.c, 12, &p.model, 0, 1); /* there is no such trial any more */
    p.w.trials[10].state = OBSERVED_FAILED;
    AS_AUTO(training_set_freep) struct training_set *set = sweep_training_set(&p.w);
    reliability_check(&p.c, set);
    ck_assert_uint_eq(p.c.n_open, 1);
    ck_assert_uint_eq(p.c.open[0].number, 11);
    ck_assert_uint_eq(p.c.of[SURROGATE_PLAIN].n, 0);
}
END_TEST

static void check_round_trip(const struct reliability *c)
{
    struct reliability read;
    JSON_AUTO j = reliability_write(c);
    AS_AUTO(as_freep) char *text = json_dumps(j, JSON_ENCODE_ANY);
    JSON_AUTO parsed = json_loads(text, JSON_DECODE_ANY, NULL);
    reliability_read(parsed, &read);
    JSON_AUTO again = reliability_write(&read);
    ck_assert(json_equal(j, again));
}

START_TEST(the_state_is_read_back)
{
    struct reliability c = {0};
    JSON_AUTO nothing = reliability_write(&c);
    ck_assert(json_is_null(nothing));
    c.open[0] = (struct reliability_interval){7, SURROGATE_PLAIN, -INFINITY, 0.1};
    c.open[1] = (struct reliability_interval){8, SURROGATE_SMOOTH, -1e-300, INFINITY};
    c.n_open = 2;
    c.of[SURROGATE_SMOOTH] = (struct reliability_record){.n = 2, .missed = {false, true}};
    c.of[SURROGATE_WARPED] =
        (struct reliability_record){.lost_missed = 5, .lost_n = 8, .lost_until = 44};
    check_round_trip(&c);
    JSON_AUTO j = reliability_write(&c);
    reliability_read(j, &c);
    ck_assert(isinf(c.open[0].lowest) && isinf(c.open[1].highest));
    ck_assert_double_eq(c.open[1].lowest, -1e-300);
    reliability_read(NULL, &c);
    ck_assert_uint_eq(c.n_open, 0);
}
END_TEST

/* Rastrigin's function: many minima, in two whole numbers and two reals. */
static double rastrigin(const struct sweep *w, size_t t)
{
    double sum = sweep_number(w, t, 0);
    for (size_t i = 1; i < w->spec.space->n; i++) {
        double z = sweep_number(w, t, i) - (i < 3 ? 3 : 0.7);
        sum += z * z + 4 * (1 - cos(2 * M_PI * z));
    }
    return sum;
}

/* The next suggestion, with the state as a store would return it, and without a cache. */
static void check_repeats(struct sweep *w)
{
    struct as_err err = {0};
    struct suggestion again = {0};
    struct history h = {w->trials, w->n};
    AS_AUTO(as_freep) char *text = json_dumps(w->state, 0);
    JSON_AUTO state = json_loads(text, 0, NULL);
    ck_ok(suggest(&w->spec, &h, state, w->n, w->index, NULL, &again, &err), err);
    ck_ok(sweep_ask(w, &err), err);
    ck_assert(config_equal(w->spec.space, again.config, w->trials[w->n - 1].config));
    ck_assert(json_equal(again.reason, w->reason));
    ck_assert(json_equal(again.state, w->state));
    suggestion_done(&again);
}

/* How many suggestions of a sweep with this seed were made without the smooth model. */
static size_t sweep_that_loses(const struct space *s, uint64_t seed)
{
    AS_AUTO(sweep_done) struct sweep w;
    struct as_err err = {0};
    size_t n_lost = 0;
    sweep_init(&w, s, seed, true);
    for (size_t t = 0; t < 60; t++) {
        if (t == 40)
            check_repeats(&w);
        else
            ck_ok(sweep_ask(&w, &err), err);
        const json_t *calibration = json_object_get(w.reason, "calibration");
        bool lost = json_object_get(json_object_get(calibration, "smooth"), "until") != NULL;
        ck_assert(!lost ||
                  !as_streq(json_string_value(json_object_get(w.reason, "model")), "smooth"));
        n_lost += lost;
        sweep_tell(&w, t, rastrigin(&w, t));
    }
    return n_lost;
}

/* Every second seed does it. Which ones depends on the last digits, so on the processor. */
START_TEST(a_sweep_leaves_out_the_model_that_is_wrong)
{
    AS_AUTO(space_freep) struct space *s = NULL;
    struct as_err err = {0};
    size_t n_lost = 0;
    ck_ok(space_from_yaml(RASTRIGIN, &s, &err), err);
    for (uint64_t seed = 4; n_lost == 0 && seed < 24; seed++)
        n_lost = sweep_that_loses(s, seed);
    ck_assert_uint_gt(n_lost, 0);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("search/reliability");
    TCase *t = tcase_create("reliability");
    tcase_add_test(t, an_overconfident_model_loses_its_turns_and_gets_them_back);
    tcase_add_test(t, a_model_that_misses_a_third_keeps_its_turns);
    tcase_add_test(t, the_warped_model_loses_only_to_one_that_is_better);
    tcase_add_test(t, trials_that_fail_or_are_cancelled_say_nothing);
    tcase_add_test(t, the_state_is_read_back);
    tcase_add_test(t, a_sweep_leaves_out_the_model_that_is_wrong);
    suite_add_tcase(s, t);
    return s;
}
