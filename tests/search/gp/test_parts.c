/* Pieces of the method gp: the subset of rows, enumeration, candidates, the trust region. */
#include <math.h>
#include <string.h>

#include "base/json.h"
#include "base/rng.h"
#include "search/gp/candidates.h"
#include "search/regression/subset.h"
#include "search/sampling/sampler.h"
#include "search/gp/trust_region.h"
#include "search/population/enumeration.h"
#include "tests/support/check_main.h"
#include "tests/support/spaces.h"
#include "tests/search/sweep.h"

START_TEST(subset_holds_best_newest_and_spread)
{
    enum { N = 300, D = 2 };
    double x[N * D], y[N];
    struct rng r;
    rng_init(&r, 1, 1);
    for (size_t i = 0; i < N; i++) {
        bool far = i == 77; /* one row alone in its corner */
        x[i * D] = far ? 1 : 0.3 * rng_uniform(&r);
        x[i * D + 1] = far ? 1 : 0.3 * rng_uniform(&r);
        y[i] = i == 123 ? -5 : i == 124 ? NAN : rng_uniform(&r);
    }
    y[124] = INFINITY;
    struct gp_columns c = {.n_real = D, .n_groups = D};
    struct gp_rows rows = {N, x, NULL};
    struct gp_subset_size size = {5, 4, 6};
    size_t chosen[N], n = 0;
    struct as_err err = {0};
    ck_ok(gp_subset(&c, &rows, y, &size, chosen, &n, &err), err);
    ck_assert_uint_eq(n, 15);
    bool in[N] = {false};
    for (size_t i = 0; i < n; i++) {
        ck_assert(i == 0 || chosen[i] > chosen[i - 1]);
        in[chosen[i]] = true;
    }
    ck_assert(in[77] && in[123] && in[296] && in[297] && in[298] && in[299]);
    ck_assert(!in[124]);
    struct gp_subset_size all = {100, 100, 100};
    ck_ok(gp_subset(&c, &rows, y, &all, chosen, &n, &err), err);
    ck_assert_uint_eq(n, N);
}
END_TEST

static void start(struct sweep *w, struct space **s, const char *yaml, size_t trials)
{
    struct as_err err = {0};
    ck_ok(space_from_yaml(yaml, s, &err), err);
    sweep_init(w, *s, 1, false);
    for (size_t t = 0; t < trials; t++) {
        AS_AUTO(config_freep) struct config *c = NULL;
        ck_ok(sampler_draw(*s, SAMPLER_SOBOL, 3, t, &c, NULL, &err), err);
        sweep_add(w, c, (double)((t * 7) % 11));
    }
}

START_TEST(enumerations_count_what_is_left)
{
    AS_AUTO(space_freep) struct space *s = NULL;
    AS_AUTO(sweep_done) struct sweep w = {0};
    AS_AUTO(training_set_freep) struct training_set *set = NULL;
    struct as_err err = {0};
    start(&w, &s, "a: {type: bool}\nb: {type: int, min: 1, max: 5, when: {a: true}}\n", 2);
    struct history h = {w.trials, w.n};
    ck_ok(training_set_create(&w.spec, &h, NULL, &set, &err), err);
    ck_assert_uint_eq(enumeration_bound(set->enc), 10);
    bool same = config_equal(s, w.trials[0].config, w.trials[1].config);
    size_t left = 6 - (same ? 1 : 2);
    double points[20];
    struct enumerated got = {0};
    ck_ok(enumerate_untried(set, 10, points, &got, &err), err);
    ck_assert(got.complete);
    ck_assert_uint_eq(got.n, left);
    ck_ok(enumerate_untried(set, 1, points, &got, &err), err);
    ck_assert(!got.complete);
    ck_assert_uint_eq(got.n, 1);
    ck_assert(!training_set_tried(set, points, 0));
}
END_TEST

/* Trials that differ from the earlier ones are encoded again. */
START_TEST(kept_places_are_those_of_the_same_trials)
{
    AS_AUTO(space_freep) struct space *s = NULL;
    AS_AUTO(sweep_done) struct sweep w = {0};
    AS_AUTO(training_places_done) struct training_places places = {0};
    struct as_err err = {0};
    start(&w, &s,
          "x: {type: float, min: 0.1, max: 7, scale: log}\nb: {type: bool}\n"
          "y: {type: float, min: -3, max: 0.7, when: {b: true}}\n",
          12);
    for (size_t round = 0; round < 3; round++) {
        AS_AUTO(training_set_freep) struct training_set *kept = NULL;
        AS_AUTO(training_set_freep) struct training_set *fresh = NULL;
        struct history h = {w.trials + round, 9};
        ck_ok(training_set_create(&w.spec, &h, round == 1 ? &places : NULL, &fresh, &err), err);
        ck_ok(training_set_create(&w.spec, &h, &places, &kept, &err), err);
        ck_assert_int_eq(memcmp(kept->points, fresh->points, 9 * 3 * sizeof(double)), 0);
        for (size_t i = 0; i < 9; i++) {
            double again[3];
            encoding_from_config(kept->enc, h.trials[i].config, again);
            ck_assert_int_eq(memcmp(training_set_point(kept, i), again, sizeof again), 0);
        }
    }
    ck_assert_uint_gt(training_places_bytes(&places), 0);
}
END_TEST

START_TEST(candidates_are_snapped_new_and_ranked)
{
    AS_AUTO(space_freep) struct space *s = NULL;
    AS_AUTO(sweep_done) struct sweep w = {0};
    AS_AUTO(training_set_freep) struct training_set *set = NULL;
    struct as_err err = {0};
    start(&w, &s,
          "x: {type: float, min: 0, max: 1}\nk: {type: int, min: 0, max: 9}\n"
          "c: {type: categorical, values: [p, q, r]}\n",
          20);
    struct history h = {w.trials, w.n};
    ck_ok(training_set_create(&w.spec, &h, NULL, &set, &err), err);
    size_t top[4];
    ck_assert_uint_eq(gp_candidates_top(set, 4, top), 4);
    for (size_t i = 1; i < 4; i++)
        ck_assert(set->costs[top[i - 1]] <= set->costs[top[i]]);
    ck_assert_uint_eq(top[0], set->best);
    AS_AUTO(as_freep) double *points = as_calloc(CANDIDATES_MAX, 3 * sizeof *points);
    AS_AUTO(as_freep) double *again = as_calloc(CANDIDATES_MAX, 3 * sizeof *again);
    struct gp_region everywhere = {0};
    size_t n = 0, n_global = 0, m = 0;
    ck_ok(gp_candidates(set, &everywhere, 20, points, &n, &n_global, &err), err);
    ck_assert_uint_eq(n, CANDIDATES_MAX);
    ck_assert_uint_eq(n_global, CANDIDATES_GLOBAL);
    for (size_t i = 0; i < n; i++) {
        double snapped[3];
        memcpy(snapped, points + 3 * i, sizeof snapped);
        encoding_snap(set->enc, snapped);
        ck_assert_mem_eq(snapped, points + 3 * i, sizeof snapped);
        ck_assert(!training_set_tried(set, points + 3 * i, 1e-9));
    }
    ck_ok(gp_candidates(set, &everywhere, 20, again, &m, &n_global, &err), err);
    ck_assert_mem_eq(points, again, n * 3 * sizeof *points);
    double lower[3] = {0.4, 0.3, 0}, upper[3] = {0.5, 0.7, 2};
    struct gp_region box = {lower, upper, training_set_point(set, set->best)};
    ck_ok(gp_candidates(set, &box, 20, points, &n, &n_global, &err), err);
    for (size_t i = 0; i < n; i++)
        ck_assert(points[3 * i] >= 0.4 && points[3 * i] <= 0.5);
}
END_TEST

/* Opens when a sweep of many dimensions stagnates, halves after as many failures as it has
 * dimensions, closes in the end, and survives its JSON. */
START_TEST(trust_region_lives)
{
    AS_AUTO(str_done) struct str text = {0};
    for (int i = 0; i < 24; i++)
        str_printf(&text, "p%d: {type: float, min: 0, max: 1}\n", i);
    AS_AUTO(space_freep) struct space *s = NULL;
    AS_AUTO(sweep_done) struct sweep w = {0};
    struct as_err err = {0};
    start(&w, &s, str_cstr(&text), 400);
    w.trials[0].values[0] = -1; /* nothing after the first trial gains */
    struct trust_region t = trust_region_read(NULL);
    ck_assert(!t.is_on);
    bool was_on = false, closed = false;
    double length = 1;
    for (size_t n = 30; n <= 400 && !closed; n += 10) {
        AS_AUTO(training_set_freep) struct training_set *set = NULL;
        struct history h = {w.trials, n};
        ck_ok(training_set_create(&w.spec, &h, NULL, &set, &err), err);
        JSON_AUTO j = trust_region_write(&t);
        t = trust_region_read(j);
        trust_region_update(&t, set);
        closed = was_on && !t.is_on;
        was_on |= t.is_on;
        ck_assert(n > 34 || !t.is_on);
        ck_assert(!t.is_on || t.length <= length);
        length = t.is_on ? t.length : length;
    }
    ck_assert(was_on && closed);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("search/gp/parts");
    TCase *t = tcase_create("parts");
    tcase_add_test(t, subset_holds_best_newest_and_spread);
    tcase_add_test(t, enumerations_count_what_is_left);
    tcase_add_test(t, kept_places_are_those_of_the_same_trials);
    tcase_add_test(t, candidates_are_snapped_new_and_ranked);
    tcase_add_test(t, trust_region_lives);
    suite_add_tcase(s, t);
    return s;
}
