/* Whether the parameters matter, by what trials have at rungs: noise, a function, the state. */
#include "search/gp/influence.h"

#include <math.h>
#include <string.h>

#include "base/json.h"
#include "base/rng.h"
#include "tests/search/sweep.h"
#include "tests/support/check_main.h"
#include "tests/support/spaces.h"

#define PLANE                                                                                      \
    "x: {type: float, min: 0, max: 1}\n"                                                           \
    "y: {type: float, min: 0, max: 1}\n"
#define LAST 27.0
#define TRIALS 40

/* What the trials have at two rungs and at the end. */
static struct trial_rung reached[3 * TRIALS];

/* The value of a trial at a rung: `slope` times x, and noise of deviation 0.3. */
static double value_of(const struct sweep *w, size_t i, double slope, struct rng *r)
{
    return slope * sweep_number(w, i, 0) + 0.3 * rng_normal(r);
}

/* One trial more, where the search asks for it. It stops at the second rung, or completes if its
 * number is divisible by eight. */
static void run_one(struct sweep *w, double slope, struct rng *r)
{
    static const double steps[] = {3, 9, LAST};
    struct as_err err = {0};
    size_t i = w->n;
    ck_assert_uint_lt(i, TRIALS);
    ck_ok(sweep_ask(w, &err), err);
    bool ends = i % 8 == 0;
    for (size_t k = 0; k < 3; k++)
        reached[3 * i + k] =
            (struct trial_rung){.step = steps[k], .values = {value_of(w, i, slope, r)}};
    w->trials[i].rungs = reached + 3 * i;
    w->trials[i].n_rungs = ends ? 3 : 2;
    w->trials[i].state = OBSERVED_PARTIAL;
    if (ends)
        sweep_tell(w, i, reached[3 * i + 2].values[0]);
}

static void begin(struct sweep *w, const struct space *s, bool cached)
{
    sweep_init(w, s, 3, cached);
    w->spec.max_step = LAST;
    w->spec.initial_trials = 24;
}

/* The result of the last test, as the state has it. */
static struct influence known(const struct sweep *w)
{
    return influence_read(json_object_get(w->state, "influence"));
}

static bool is_spread(const struct sweep *w)
{
    const char *why = json_string_value(json_object_get(w->reason, "fallback"));
    return why && strstr(why, "more than noise");
}

/* On noise suggestions do not stand at the edges: they fill the space, and the reason says why. */
START_TEST(noise_shows_no_influence)
{
    AS_AUTO(space_freep) struct space *s = space_of_yaml(PLANE);
    AS_AUTO(sweep_done) struct sweep w = {0};
    struct rng r;
    rng_init(&r, 1, 1);
    begin(&w, s, true);
    size_t at_edge = 0;
    for (size_t i = 0; i < TRIALS; i++) {
        run_one(&w, 0, &r);
        ck_assert_uint_eq(known(&w).n_tested, i < 30 ? 0 : i < 38 ? 30 : 38);
        ck_assert_int_eq(is_spread(&w), i >= 30);
        for (size_t k = 0; k < 2 && i >= 30; k++) {
            double u = sweep_number(&w, i, k);
            at_edge += u < 0.01 || u > 0.99;
        }
    }
    ck_assert_uint_le(at_edge, 2);
}
END_TEST

START_TEST(a_function_shows_influence)
{
    AS_AUTO(space_freep) struct space *s = space_of_yaml(PLANE);
    AS_AUTO(sweep_done) struct sweep w = {0};
    struct rng r;
    rng_init(&r, 1, 1);
    begin(&w, s, true);
    while (w.n < TRIALS) {
        run_one(&w, 2, &r);
        ck_assert(!is_spread(&w) && !known(&w).is_unseen);
    }
    ck_assert_uint_eq(known(&w).n_tested, 38);
}
END_TEST

/* Noise that turns out to be a function is found at the next test. Whatever a cache holds, a
 * suggestion follows from the history and the state. */
START_TEST(what_is_seen_later_counts)
{
    AS_AUTO(space_freep) struct space *s = space_of_yaml(PLANE);
    AS_AUTO(sweep_done) struct sweep w = {0};
    struct rng r;
    struct as_err err = {0};
    rng_init(&r, 1, 1);
    begin(&w, s, true);
    while (w.n < 37)
        run_one(&w, 0, &r);
    ck_assert(known(&w).is_unseen);
    for (size_t i = 0; i < w.n; i++)
        for (size_t k = 0; k < 2; k++)
            reached[3 * i + k].values[0] += 5 * sweep_number(&w, i, 1);
    run_one(&w, 0, &r);
    ck_assert(is_spread(&w)); /* 37 results: not a quarter more than 30 */
    search_cache_free(w.cache);
    w.cache = NULL;
    ck_ok(sweep_ask(&w, &err), err);
    ck_assert(!is_spread(&w) && !known(&w).is_unseen);
    ck_assert_uint_eq(known(&w).n_tested, 38);
}
END_TEST

START_TEST(a_state_that_is_none)
{
    static const char *const states[] = {"null", "[]", "{}", "{\"tested\": -1, \"unseen\": true}",
                                         "{\"tested\": \"30\", \"unseen\": true}"};
    for (size_t i = 0; i < AS_ARRAY_LEN(states); i++) {
        JSON_AUTO j = json_loads(states[i], JSON_DECODE_ANY, NULL);
        struct influence f = influence_read(j);
        ck_assert(f.n_tested == 0 && !f.is_unseen);
    }
    struct influence f = {38, true};
    JSON_AUTO written = influence_write(&f);
    struct influence back = influence_read(written);
    ck_assert(back.n_tested == 38 && back.is_unseen);
    f = (struct influence){0};
    JSON_AUTO nothing = influence_write(&f);
    ck_assert(json_is_null(nothing));
}
END_TEST

/* Without rungs nothing is tested. */
START_TEST(only_with_rungs)
{
    AS_AUTO(space_freep) struct space *s = space_of_yaml(PLANE);
    AS_AUTO(sweep_done) struct sweep w = {0};
    struct rng r;
    struct as_err err = {0};
    rng_init(&r, 1, 1);
    sweep_init(&w, s, 3, true);
    for (size_t i = 0; i < 35; i++) {
        ck_ok(sweep_ask(&w, &err), err);
        sweep_tell(&w, i, rng_normal(&r));
    }
    ck_assert_uint_eq(known(&w).n_tested, 0);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("search/influence");
    TCase *t = tcase_create("influence");
    tcase_set_timeout(t, 120);
    tcase_add_test(t, noise_shows_no_influence);
    tcase_add_test(t, a_function_shows_influence);
    tcase_add_test(t, what_is_seen_later_counts);
    tcase_add_test(t, a_state_that_is_none);
    tcase_add_test(t, only_with_rungs);
    suite_add_tcase(s, t);
    return s;
}
