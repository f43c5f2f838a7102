/* The schedule of acquisitions: its turns in each situation, and the facts that it reads. */
#include "search/gp/acquisition_schedule.h"

#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "tests/search/sweep.h"
#include "tests/support/check_main.h"
#include "tests/support/spaces.h"

/* Eight turns as letters: U UCB, Q UCB after the quadratic, L logEI, P logEI on plain models, S
 * logEI on smooth ones, B UCB on plain models in another basin, W a part that was written off, G
 * logEI on smooth ones after the quadratic, E PE, H EHVI, F feasibility. */
static void check_turns_without(unsigned lost, unsigned facts, const char *want)
{
    char got[9] = "";
    for (uint64_t round = 0; round < 2; round++) {
        for (size_t t = 0; t < 8; t++) {
            const struct schedule_row *r = schedule_at(facts, lost, 8 * round + t);
            char c = "ULEHF"[r->kind];
            if (r->kind == ACQUISITION_LOGEI && r->target == SURROGATE_PLAIN)
                c = 'P';
            if (r->kind == ACQUISITION_LOGEI && r->target == SURROGATE_SMOOTH)
                c = r->point == POINT_QUADRATIC ? 'G' : 'S';
            if (r->kind == ACQUISITION_UCB && r->point == POINT_QUADRATIC)
                c = 'Q';
            if (r->point == POINT_BASIN)
                c = 'B';
            if (r->point == POINT_PART)
                c = 'W';
            ck_assert_int_eq(r->point == POINT_QUADRATIC, c == 'Q' || c == 'G');
            ck_assert_int_eq(r->target == SURROGATE_PLAIN, c == 'P' || c == 'H' || c == 'B');
            got[t] = c;
        }
        ck_assert_str_eq(got, want);
    }
}

static void check_turns(unsigned facts, const char *want)
{
    check_turns_without(0, facts, want);
}

START_TEST(numbers_alone)
{
    check_turns(FACT_NONE_PENDING, "QUULQUUL");
    check_turns(FACT_PENDING, "QUULQEUL");
    check_turns(FACT_STAGNANT | FACT_NONE_PENDING, "QPULQPUL");
    check_turns(FACT_STAGNANT | FACT_PENDING, "QPULQPUL");
    check_turns(FACT_CROWDED | FACT_NONE_PENDING, "QPUPQPUP");
    check_turns(FACT_CROWDED | FACT_STAGNANT | FACT_PENDING, "QPUPQPUP");
    check_turns(FACT_CROWDED | FACT_BASIN | FACT_NONE_PENDING, "QBUBQBUB");
    check_turns(FACT_PART | FACT_NONE_PENDING, "QWWLQWWL");
    check_turns(FACT_PART | FACT_CROWDED | FACT_BASIN | FACT_PENDING, "QWWBQWWB");
}
END_TEST

START_TEST(numbers_with_levels)
{
    check_turns(FACT_LEVELS | FACT_NONE_PENDING, "QUULQUUL");
    check_turns(FACT_LEVELS | FACT_TRENDS | FACT_NONE_PENDING, "GUULGUUL");
    check_turns(FACT_LEVELS | FACT_TRENDS | FACT_PENDING, "GUULGEUL");
    check_turns(FACT_LEVELS | FACT_TRENDS | FACT_CROWDED | FACT_NONE_PENDING, "GPUPGPUP");
}
END_TEST

START_TEST(categories)
{
    const unsigned seen = FACT_CATEGORIES | FACT_TRENDS;
    check_turns(FACT_CATEGORIES | FACT_NONE_PENDING, "LPUPLPUP");
    check_turns(FACT_CATEGORIES | FACT_PENDING, "LPLPLPLP");
    check_turns(seen | FACT_NONE_PENDING, "LSUSLSUS");
    check_turns(seen | FACT_PENDING, "LSLSLSLS");
    check_turns(seen | FACT_PENDING | FACT_STAGNANT, "LSLSLSLS");
}
END_TEST

/* Others take the turns of a model that has lost them, but for the warped one's where no other is
 * left. */
START_TEST(models_lose_their_turns)
{
    const unsigned warped = 1 << SURROGATE_WARPED, plain = 1 << SURROGATE_PLAIN,
                   smooth = 1 << SURROGATE_SMOOTH;
    const unsigned seen = FACT_CATEGORIES | FACT_TRENDS | FACT_NONE_PENDING;
    check_turns_without(smooth, seen, "LPUPLPUP");
    check_turns_without(smooth | plain, seen, "LLULLLUL");
    check_turns_without(warped, seen, "PSPSPSPS");
    check_turns_without(warped | smooth, seen, "PPPPPPPP");
    check_turns_without(warped | plain | smooth, seen, "LLULLLUL");
    check_turns_without(warped, FACT_NONE_PENDING, "PPPPPPPP");
    check_turns_without(plain, FACT_CROWDED | FACT_NONE_PENDING, "QUULQUUL");
    check_turns_without(smooth, FACT_LEVELS | FACT_TRENDS | FACT_NONE_PENDING, "QUULQUUL");
    ck_assert_int_eq(schedule_at(FACT_BRANCH, warped, 2)->point, POINT_BRANCH);
    ck_assert_int_eq(schedule_at(FACT_DOUBT, warped, 2)->point, POINT_REPEAT);
}
END_TEST

/* The warped model keeps one turn of four where values are noisy and it holds much for noise. */
START_TEST(noise_leaves_the_warped_model_one_turn_of_four)
{
    const unsigned warped = 1 << SURROGATE_WARPED, smooth = 1 << SURROGATE_SMOOTH;
    char got[9] = "";
    for (uint64_t t = 0; t < 8; t++) {
        unsigned lost = schedule_lost(smooth, NOISE_SEEN, 0.5, t);
        ck_assert_uint_eq(lost & ~warped, smooth);
        got[t] = lost & warped ? 'P' : 'W';
        ck_assert_int_eq(schedule_at(FACT_NONE_PENDING, lost, t)->target,
                         got[t] == 'P' ? SURROGATE_PLAIN : SURROGATE_WARPED);
        ck_assert_uint_eq(schedule_lost(smooth, NOISE_SEEN, 0.3, t), smooth);
        ck_assert_uint_eq(schedule_lost(smooth, NOISE_UNKNOWN, 0.9, t), smooth);
        ck_assert_uint_eq(schedule_lost(0, NOISE_NONE, 0.9, t), 0);
    }
    ck_assert_str_eq(got, "PPWPPPWP");
}
END_TEST

/* Counts the suggestions from the trial `from` on that the warped model made, while values are a
 * bowl and noise of this size. */
static size_t warped_suggestions(double noise, bool is_exact, size_t from, size_t n)
{
    AS_AUTO(space_freep) struct space *s = NULL;
    AS_AUTO(sweep_done) struct sweep w;
    struct as_err err = {0};
    struct rng r;
    size_t warped = 0;
    ck_ok(space_from_yaml("x: {type: float, min: 0, max: 1}\ny: {type: float, min: 0, max: 1}", &s,
                          &err),
          err);
    sweep_init(&w, s, 3, true);
    w.spec.is_exact = is_exact;
    rng_init(&r, 3, 0);
    for (size_t t = 0; t < n; t++) {
        ck_ok(sweep_ask(&w, &err), err);
        const char *model = json_string_value(json_object_get(w.reason, "model"));
        warped += t >= from && model && strcmp(model, "warped") == 0;
        sweep_tell(&w, t, 0.1 * sweep_bowl(&w, t) + noise * rng_normal(&r));
    }
    return warped;
}

/* Of a sweep whose values are noise the plain model makes most suggestions; not of one whose values
 * are said to be exact, however they scatter. */
START_TEST(a_noisy_sweep_is_searched_by_the_plain_model)
{
    ck_assert_uint_le(warped_suggestions(1, false, 20, 40), 10);
    ck_assert_uint_ge(warped_suggestions(1, true, 20, 40), 12);
}
END_TEST

/* A branch has every third turn, and a value of the leading choice two of three in a stall. */
START_TEST(branches_have_their_turns)
{
    for (uint64_t t = 0; t < 6; t++) {
        const unsigned of_branch = FACT_CATEGORIES | FACT_BRANCH;
        ck_assert_int_eq(schedule_at(of_branch, 0, t)->point == POINT_BRANCH, t % 3 == 2);
        ck_assert_int_eq(schedule_at(of_branch | FACT_VALUE, 0, t)->point == POINT_BRANCH,
                         t % 3 != 0);
    }
}
END_TEST

/* Whether the best value is luck comes before branches and turns, but not before feasibility. */
START_TEST(a_doubt_is_resolved_first)
{
    unsigned all = FACT_CATEGORIES | FACT_BRANCH | FACT_STAGNANT | FACT_NONE_PENDING;
    for (uint64_t t = 0; t < 8; t++) {
        ck_assert_int_eq(schedule_at(all | FACT_DOUBT, 0, t)->point, POINT_REPEAT);
        ck_assert_int_ne(schedule_at(all, 0, t)->point, POINT_REPEAT);
        ck_assert_int_ne(schedule_at(FACT_DOUBT | FACT_NONE_FEASIBLE, 0, t)->point, POINT_REPEAT);
    }
}
END_TEST

START_TEST(several_objectives_and_no_feasible_trial)
{
    unsigned all = FACT_CATEGORIES | FACT_STAGNANT | FACT_PENDING;
    check_turns(FACT_SEVERAL_OBJECTIVES | all, "HHHHHHHH");
    check_turns(FACT_NONE_FEASIBLE | FACT_SEVERAL_OBJECTIVES | all, "FFFFFFFF");
    check_turns(FACT_NONE_FEASIBLE | FACT_NONE_PENDING, "FFFFFFFF");
}
END_TEST

static unsigned facts_of(const struct sweep *w)
{
    AS_AUTO(training_set_freep) struct training_set *set = NULL;
    struct as_err err = {0};
    struct history h = {w->trials, w->n};
    ck_ok(training_set_create(&w->spec, &h, NULL, &set, &err), err);
    return schedule_facts(set);
}

static unsigned facts_of_space(const char *yaml)
{
    AS_AUTO(space_freep) struct space *s = NULL;
    AS_AUTO(sweep_done) struct sweep w;
    struct as_err err = {0};
    ck_ok(space_from_yaml(yaml, &s, &err), err);
    sweep_init(&w, s, 1, false);
    return facts_of(&w);
}

START_TEST(facts_of_spaces)
{
    ck_assert_uint_eq(facts_of_space("x: {type: float, min: 0, max: 1}"), FACT_NONE_PENDING);
    ck_assert_uint_eq(facts_of_space("n: {type: int, min: 1, max: 3}"),
                      FACT_LEVELS | FACT_NONE_PENDING);
    ck_assert_uint_eq(facts_of_space("n: {type: int, min: 1, max: 2}"),
                      FACT_CATEGORIES | FACT_NONE_PENDING);
    ck_assert_uint_eq(facts_of_space("b: {type: bool}"), FACT_CATEGORIES | FACT_NONE_PENDING);
    ck_assert_uint_eq(facts_of_space("o: {type: ordinal, values: [1, 2, 5]}"),
                      FACT_LEVELS | FACT_NONE_PENDING);
}
END_TEST

START_TEST(facts_of_histories)
{
    AS_AUTO(space_freep) struct space *s = NULL;
    AS_AUTO(sweep_done) struct sweep w;
    struct as_err err = {0};
    ck_ok(space_from_yaml("x: {type: float, min: 0, max: 1}", &s, &err), err);
    sweep_init(&w, s, 1, false);
    ck_ok(sweep_ask(&w, &err), err);
    ck_assert_uint_eq(facts_of(&w), FACT_PENDING);
    sweep_tell(&w, 0, 1);
    ck_assert_uint_eq(facts_of(&w), FACT_NONE_PENDING);
    w.spec.n_objectives = 2;
    ck_assert_uint_eq(facts_of(&w), FACT_NONE_PENDING | FACT_SEVERAL_OBJECTIVES);
    w.spec.n_objectives = 1;
    w.spec.n_outcomes = 1;
    w.spec.outcomes[0] = (struct outcome_bound){.min = 1, .max = INFINITY};
    ck_assert_uint_eq(facts_of(&w), FACT_NONE_PENDING | FACT_NONE_FEASIBLE);
    w.trials[0].outcomes[0] = 2;
    ck_assert_uint_eq(facts_of(&w), FACT_NONE_PENDING);
    w.spec.n_outcomes = 0;
    for (size_t t = 1; t < 14; t++) { /* 13 trials after the best one */
        ck_ok(sweep_ask(&w, &err), err);
        sweep_tell(&w, t, 1 + (double)t);
    }
    ck_assert_uint_eq(facts_of(&w), FACT_NONE_PENDING | FACT_TRENDS | FACT_STAGNANT);
    sweep_tell(&w, 13, -5);
    ck_assert_uint_eq(facts_of(&w), FACT_NONE_PENDING | FACT_TRENDS);
}
END_TEST

/* Sixteen trials that scatter, then others that come closer to the best by `step` each. */
static unsigned facts_after(double step, size_t n)
{
    AS_AUTO(space_freep) struct space *s = NULL;
    AS_AUTO(sweep_done) struct sweep w;
    struct as_err err = {0};
    ck_ok(space_from_yaml("x: {type: float, min: 0, max: 1}", &s, &err), err);
    sweep_init(&w, s, 1, false);
    for (size_t t = 0; t < n; t++) {
        ck_ok(sweep_ask(&w, &err), err);
        sweep_tell(&w, t, t < 16 ? 40 - (double)t : 1 - step * (double)t);
    }
    return facts_of(&w);
}

START_TEST(a_crowd_around_the_best_is_seen)
{
    const unsigned always = FACT_NONE_PENDING | FACT_TRENDS;
    ck_assert_uint_eq(facts_after(1e-4, 16), always);
    ck_assert_uint_eq(facts_after(1e-4, 21), always); /* no crowd yet */
    ck_assert_uint_eq(facts_after(1e-4, 40), always | FACT_CROWDED);
    ck_assert_uint_eq(facts_after(0.05, 40), always); /* still on its way */
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("search/schedule");
    TCase *t = tcase_create("schedule");
    tcase_add_test(t, numbers_alone);
    tcase_add_test(t, models_lose_their_turns);
    tcase_add_test(t, noise_leaves_the_warped_model_one_turn_of_four);
    tcase_add_test(t, a_noisy_sweep_is_searched_by_the_plain_model);
    tcase_add_test(t, branches_have_their_turns);
    tcase_add_test(t, a_doubt_is_resolved_first);
    tcase_add_test(t, numbers_with_levels);
    tcase_add_test(t, categories);
    tcase_add_test(t, several_objectives_and_no_feasible_trial);
    tcase_add_test(t, facts_of_spaces);
    tcase_add_test(t, facts_of_histories);
    tcase_add_test(t, a_crowd_around_the_best_is_seen);
    suite_add_tcase(s, t);
    return s;
}
