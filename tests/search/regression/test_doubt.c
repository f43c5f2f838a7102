/* Results that stand apart from all others: what a repeat decides, and where they come. */
#include "search/regression/doubt.h"

#include <math.h>

#include "base/json.h"
#include "search/incumbent.h"
#include "search/sampling/sampler.h"
#include "tests/search/sweep.h"
#include "tests/support/check_main.h"
#include "tests/support/spaces.h"

#define N 30
#define WRONG (-1e5)

static const char two[] = "x: {type: float, min: 0, max: 1}\ny: {type: float, min: 0, max: 1}\n";

/* N trials spread over the square, the value of trial `at` being `value` (SIZE_MAX: none). */
static void fill(struct sweep *w, const struct space *s, size_t at, double value)
{
    struct as_err err = {0};
    sweep_init(w, s, 1, false);
    for (size_t t = 0; t < N; t++) {
        AS_AUTO(config_freep) struct config *c = NULL;
        ck_ok(sampler_draw(s, SAMPLER_SOBOL, 3, t, &c, NULL, &err), err);
        sweep_add(w, c, 0);
        sweep_tell(w, t, t == at ? value : sweep_bowl(w, t));
    }
}

static void repeat(struct sweep *w, size_t of, double value)
{
    sweep_add(w, w->trials[of].config, value);
    w->trials[w->n - 1].is_suggested = true;
}

START_TEST(a_value_apart_is_in_doubt_until_it_was_measured_again)
{
    AS_AUTO(space_freep) struct space *s = space_of_yaml(two);
    AS_AUTO(sweep_done) struct sweep w = {0};
    fill(&w, s, SIZE_MAX, 0);
    AS_AUTO(training_set_freep) struct training_set *set = sweep_training_set(&w);
    ck_assert(!set->in_doubt && set->n_failed == 0);
    size_t honest = set->best;
    size_t wrong = honest == 7 ? 8 : 7;
    sweep_tell(&w, wrong, WRONG);
    training_set_free(set);
    set = sweep_training_set(&w);
    ck_assert(set->in_doubt && set->best == wrong && set->n_failed == 0);
    /* under way */
    repeat(&w, wrong, 0);
    w.trials[N].state = OBSERVED_PENDING;
    training_set_free(set);
    set = sweep_training_set(&w);
    ck_assert(!set->in_doubt && set->best == wrong);
    /* refuted: the first value counts as none, and says nothing of its place */
    sweep_tell(&w, N, sweep_bowl(&w, N));
    training_set_free(set);
    set = sweep_training_set(&w);
    ck_assert(!set->in_doubt && set->best == honest && set->n_failed == 1 && set->n_avoided == 0);
    ck_assert(set->state[wrong] == OBSERVED_FAILED && isnan(set->costs[wrong]));
    /* confirmed: it is the best value, and nobody asks again */
    sweep_tell(&w, N, WRONG * 1.1);
    training_set_free(set);
    set = sweep_training_set(&w);
    ck_assert(!set->in_doubt && set->best == N && set->n_failed == 0);
}
END_TEST

/* Of several wrong values one repeat decides; a needle that was confirmed stays. */
START_TEST(one_repeat_decides_of_all_that_stand_as_far_apart)
{
    AS_AUTO(space_freep) struct space *s = space_of_yaml(two);
    AS_AUTO(sweep_done) struct sweep w = {0};
    fill(&w, s, 3, WRONG);
    for (size_t t = 9; t < N; t += 6)
        sweep_tell(&w, t, WRONG * (1 + 0.01 * (double)t));
    sweep_tell(&w, 5, -300);
    repeat(&w, 27, 1);
    AS_AUTO(training_set_freep) struct training_set *set = sweep_training_set(&w);
    ck_assert_uint_eq(set->n_failed, 5);
    ck_assert(set->in_doubt && set->best == 5); /* its own question */
    repeat(&w, 5, -290);
    training_set_free(set);
    set = sweep_training_set(&w);
    ck_assert(!set->in_doubt && set->best == 5 && set->n_failed == 5);
}
END_TEST

START_TEST(who_is_not_asked)
{
    AS_AUTO(space_freep) struct space *s = space_of_yaml(two);
    AS_AUTO(sweep_done) struct sweep w = {0};
    fill(&w, s, 7, WRONG);
    w.spec.is_exact = true; /* the document says that it is true */
    AS_AUTO(training_set_freep) struct training_set *set = sweep_training_set(&w);
    ck_assert(!set->in_doubt && set->best == 7);
    w.spec.is_exact = false;
    for (int k = 0; k < 3; k++) { /* a configuration that fails again and again */
        training_set_free(set);
        set = sweep_training_set(&w);
        ck_assert(set->in_doubt);
        repeat(&w, 7, 0);
        w.trials[w.n - 1].state = OBSERVED_FAILED;
    }
    training_set_free(set);
    set = sweep_training_set(&w);
    ck_assert(!set->in_doubt && set->best == 7);
    /* an infeasible trial is nobody's best */
    w.n = N;
    w.spec.n_outcomes = 1;
    w.spec.outcomes[0] = (struct outcome_bound){-INFINITY, 0};
    w.trials[7].outcomes[0] = 1;
    training_set_free(set);
    set = sweep_training_set(&w);
    ck_assert(!set->in_doubt && set->best != 7 && set->n_failed == 0);
    w.n = N + 3; /* sweep_done() frees them */
}
END_TEST

/* In one region bad values say where not to go; anywhere they count as none. */
START_TEST(bad_values_count_where_they_lie_together)
{
    AS_AUTO(space_freep) struct space *s = space_of_yaml(two);
    AS_AUTO(sweep_done) struct sweep w = {0};
    fill(&w, s, SIZE_MAX, 0);
    size_t n = 0;
    for (size_t t = 0; t < N; t++)
        if (sweep_number(&w, t, 0) > 0.7) {
            sweep_tell(&w, t, 1e4);
            n++;
        }
    ck_assert_uint_ge(n, 5);
    AS_AUTO(training_set_freep) struct training_set *set = sweep_training_set(&w);
    ck_assert_uint_eq(set->n_failed, 0);
    for (size_t t = 0; t < N; t++)
        sweep_tell(&w, t, t % 5 == 2 ? 1e4 : sweep_bowl(&w, t));
    training_set_free(set);
    set = sweep_training_set(&w);
    ck_assert(set->n_failed == N / 5 && set->n_avoided == 0);
    for (size_t t = 0; t < N; t++) /* two are too few to say */
        sweep_tell(&w, t, t == 2 || t == 12 ? 1e4 : sweep_bowl(&w, t));
    training_set_free(set);
    set = sweep_training_set(&w);
    ck_assert_uint_eq(set->n_failed, 0);
}
END_TEST

/* A sweep that has stayed in one corner has hardly any range. What it saw elsewhere is true,
 * although three trials are too few to be each other's neighbours. */
START_TEST(bad_values_of_places_that_were_left_count)
{
    static const double elsewhere[][2] = {{0.9, 0.1}, {0.6, 0.95}, {0.95, 0.9}};
    AS_AUTO(space_freep) struct space *s = space_of_yaml(two);
    AS_AUTO(sweep_done) struct sweep w = {0};
    sweep_init(&w, s, 1, false);
    for (size_t t = 0; t < N; t++) {
        AS_AUTO(config_freep) struct config *c = config_create(s);
        bool is_elsewhere = t < AS_ARRAY_LEN(elsewhere);
        double u = (double)t;
        c->entries[0] = c->entries[1] = (struct config_entry){.active = true};
        c->entries[0].value.real = is_elsewhere ? elsewhere[t][0] : 0.3 * fmod(0.37 * u, 1);
        c->entries[1].value.real = is_elsewhere ? elsewhere[t][1] : 0.3 * fmod(0.61 * u, 1);
        sweep_add(&w, c, is_elsewhere ? 5 : 0.1 + 1e-4 * u);
    }
    AS_AUTO(training_set_freep) struct training_set *set = sweep_training_set(&w);
    ck_assert_uint_eq(set->n_failed, 0);
}
END_TEST

/* The search asks for the repeat by itself, and shows the best of what is left. */
START_TEST(a_sweep_repeats_it_on_purpose)
{
    AS_AUTO(space_freep) struct space *s = space_of_yaml(two);
    AS_AUTO(sweep_done) struct sweep w = {0};
    struct as_err err = {0};
    size_t repeats = 0;
    sweep_init(&w, s, 4, true);
    for (size_t t = 0; t < 30; t++) {
        ck_ok(sweep_ask(&w, &err), err);
        const json_t *of = json_object_get(w.reason, "repeat");
        if (of && json_integer_value(of) == 2)
            repeats++;
        sweep_tell(&w, t, t == 2 ? WRONG : sweep_bowl(&w, t));
    }
    ck_assert_uint_eq(repeats, 1);
    const struct history h = {w.trials, w.n};
    struct incumbent b;
    ck_ok(incumbent_find(&w.spec, &h, &b, &err), err);
    ck_assert(b.is_known && b.number != 2 && b.value < 0.05);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("doubt");
    TCase *t = tcase_create("doubt");
    tcase_add_test(t, a_value_apart_is_in_doubt_until_it_was_measured_again);
    tcase_add_test(t, one_repeat_decides_of_all_that_stand_as_far_apart);
    tcase_add_test(t, who_is_not_asked);
    tcase_add_test(t, bad_values_count_where_they_lie_together);
    tcase_add_test(t, bad_values_of_places_that_were_left_count);
    tcase_add_test(t, a_sweep_repeats_it_on_purpose);
    suite_add_tcase(s, t);
    return s;
}
