/* The rules of early stopping against traces by hand. */
#include "search/stopping/stopping.h"

#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "search/stopping/agreement.h"
#include "search/stopping/stop_warning.h"
#include "tests/support/check_main.h"

/* Rungs 1, 3, 9 and 27 of one minimised metric. */
static struct stop_spec spec_of(stop_method method, stop_mode mode)
{
    return (struct stop_spec){.method = method,
                              .mode = mode,
                              .n_objectives = 1,
                              .has_metric = true,
                              .min_steps = 1,
                              .max_steps = 27,
                              .eta = 3,
                              .n_rungs = 4,
                              .steps = {1, 3, 9, 27}};
}

static struct stopping *stopping_of(const struct stop_spec *spec)
{
    struct stopping *s = NULL;
    ck_assert_int_eq(stopping_create(spec, &s, NULL), AS_OK);
    return s;
}

/* Decide about a value, store it, and return the decision. */
static struct stop_decision report(struct stopping *s, uint64_t number, uint32_t rung, double value)
{
    static uint64_t seq;
    struct stop_decision d = {0};
    struct rung_result r = {
        .number = number, .rung = rung, .values = {value}, .feasible = true, .seq = ++seq};
    ck_assert_int_eq(stopping_decide(s, &r, &d, NULL), AS_OK);
    r.decision = d.verdict;
    ck_assert_int_eq(stopping_add(s, &r, NULL), AS_OK);
    return d;
}

START_TEST(test_asha_stops)
{
    const struct stop_spec spec = spec_of(STOP_ASHA, STOP_MODE_STOP);
    static const double values[] = {5, 6, 4, 4, NAN, 7, 3};
    static const stop_verdict want[] = {STOP_GO_ON, STOP_PRUNE, STOP_GO_ON, STOP_GO_ON,
                                        STOP_PRUNE, STOP_PRUNE, STOP_GO_ON};
    static const size_t ranks[] = {1, 2, 1, 1, 5, 5, 1};
    AS_AUTO(stopping_freep) struct stopping *s = stopping_of(&spec);
    for (size_t i = 0; i < AS_ARRAY_LEN(values); i++) {
        struct stop_decision d = report(s, i, 0, values[i]);
        ck_assert_msg(d.verdict == want[i] && d.rank == ranks[i] && d.of == i + 1,
                      "%zu: %d, rank %zu of %zu", i, (int)d.verdict, d.rank, d.of);
    }
    ck_assert_int_eq(report(s, 0, 3, 99).verdict, STOP_GO_ON); /* the last rung */
}
END_TEST

/* Report a value and expect the verdict. */
static void expect(struct stopping *s, uint64_t number, uint32_t rung, double value,
                   stop_verdict want)
{
    struct stop_decision d = report(s, number, rung, value);
    ck_assert_msg(d.verdict == want, "%d at %d: %d (%s)", (int)number, (int)rung, (int)d.verdict,
                  d.reason);
}

static void expect_promotion(struct stopping *s, stop_closing closing, uint64_t number,
                             uint32_t rung)
{
    struct stop_promotion p = {0};
    ck_assert(stopping_promote(s, closing, &p));
    ck_assert_msg(p.number == number && p.rung == rung && p.until == rung + 1, "%d at %d",
                  (int)p.number, (int)p.rung);
    stopping_promoted(s, number);
}

START_TEST(test_asha_promotes)
{
    const struct stop_spec spec = spec_of(STOP_ASHA, STOP_MODE_PAUSE);
    struct stop_promotion p;
    AS_AUTO(stopping_freep) struct stopping *s = stopping_of(&spec);
    expect(s, 0, 0, 10, STOP_PAUSE);
    expect(s, 1, 0, 11, STOP_PAUSE);
    ck_assert(!stopping_promote(s, false, &p));
    expect(s, 2, 0, 12, STOP_PAUSE);
    expect(s, 3, 0, 1, STOP_GO_ON); /* it would be promoted at once: it is before trial 0 */
    expect(s, 4, 0, 13, STOP_PAUSE);
    ck_assert(!stopping_promote(s, false, &p)); /* one of five goes on: trial 3 did */
    expect(s, 5, 0, 14, STOP_PAUSE);
    expect_promotion(s, false, 0, 0); /* the second of six */
    expect(s, 3, 1, 1, STOP_PAUSE);
    expect(s, 0, 1, 2, STOP_PAUSE);
    expect(s, 6, 0, 15, STOP_PAUSE);
    expect(s, 7, 0, 16, STOP_PAUSE);
    expect(s, 8, 0, 5, STOP_GO_ON);
    expect(s, 8, 1, 3, STOP_PAUSE);
    expect_promotion(s, false, 3, 1); /* the highest rung first */
    ck_assert(!stopping_promote(s, false, &p));
    expect(s, 3, 2, 1, STOP_PAUSE);
    ck_assert(!stopping_promote(s, false, &p)); /* one in three of one is none … */
    expect_promotion(s, true, 3, 2);            /* … unless nothing else will come */
    ck_assert(!stopping_promote(s, true, &p));
    expect(s, 3, 3, 1, STOP_GO_ON);
    ck_assert(stopping_is_over(s, 7, 9)); /* the last of nine, of which three go on */
    ck_assert(!stopping_is_over(s, 7, 27));
    ck_assert(!stopping_is_over(s, 3, 9)); /* it does not wait */
}
END_TEST

/* The best of a rung has failed or was cancelled, and no trial has completed: the next one goes on
 * to the end, one at a time. */
START_TEST(test_one_runs_in_full_if_the_best_fails)
{
    const struct stop_spec spec = spec_of(STOP_ASHA, STOP_MODE_PAUSE);
    struct stop_promotion p;
    AS_AUTO(stopping_freep) struct stopping *s = stopping_of(&spec);
    for (uint64_t i = 0; i < 3; i++)
        expect(s, i, 0, 10 + (double)i, STOP_PAUSE);
    expect_promotion(s, STOP_NOT_CLOSING, 0, 0);
    expect(s, 0, 1, 1, STOP_PAUSE);
    expect_promotion(s, STOP_CLOSING, 0, 1); /* and fails */
    ck_assert(!stopping_promote(s, STOP_CLOSING, &p));
    expect_promotion(s, STOP_CLOSING_IN_VAIN, 1, 0);
    expect(s, 1, 1, 2, STOP_PAUSE);
    ck_assert(!stopping_promote(s, STOP_CLOSING, &p)); /* trial 0 is better there */
    ck_assert(stopping_promote(s, STOP_CLOSING_IN_VAIN, &p));
    ck_assert_str_eq(p.reason, "rank 2 of 2 at step 3, the best that waits, and no trial has "
                               "completed");
    expect_promotion(s, STOP_CLOSING_IN_VAIN, 1, 1);
    expect_promotion(s, STOP_CLOSING_IN_VAIN, 2, 0);
    ck_assert(!stopping_promote(s, STOP_CLOSING_IN_VAIN, &p));
}
END_TEST

/* All that are over are found, also behind more than a thousand that are not. */
START_TEST(test_list_of_what_is_over)
{
    struct stop_spec spec = spec_of(STOP_ASHA, STOP_MODE_PAUSE);
    enum { GOOD = 1500, ALL = 2600 };
    static uint64_t over[ALL];
    spec.n_objectives = 1 + (size_t)_i;
    spec.has_metric = _i == 0;
    AS_AUTO(stopping_freep) struct stopping *s = stopping_of(&spec);
    for (uint64_t i = 0; i < ALL; i++) {
        struct rung_result r = {.number = i,
                                .values = {(double)i, (double)i},
                                .feasible = true,
                                .decision = STOP_PAUSE,
                                .seq = i + 1};
        ck_assert_int_eq(stopping_add(s, &r, NULL), AS_OK);
    }
    size_t n = stopping_list_over(s, 3 * GOOD, 0, over, ALL);
    ck_assert_uint_eq(n, _i == 0 ? ALL - GOOD : 0); /* of several metrics it looks at some */
    ck_assert(_i > 0 || (over[0] == GOOD && over[n - 1] == ALL - 1));
    ck_assert_uint_eq(stopping_list_over(s, 3 * GOOD, GOOD + 100, over, 7), 7);
    ck_assert(over[0] == GOOD + 100 && over[6] == GOOD + 106);
    n = stopping_list_over(s, 3 * GOOD, ALL - 2, over, ALL);
    ck_assert(over[0] == ALL - 2 && over[1] == ALL - 1);
    ck_assert_uint_eq(n, _i == 0 ? ALL - GOOD : 2);
    for (uint64_t i = 0; i < ALL; i++)
        stopping_left(s, i);
    ck_assert_uint_eq(stopping_list_over(s, 3 * GOOD, 5, over, ALL), 0);
}
END_TEST

/* Five fail on the way from the highest rung: so would the others. Trials that are cancelled while
 * they wait are no failures. */
START_TEST(test_what_fails_always_ends)
{
    const struct stop_spec spec = spec_of(STOP_ASHA, STOP_MODE_PAUSE);
    struct stop_promotion p;
    AS_AUTO(stopping_freep) struct stopping *s = stopping_of(&spec);
    for (uint64_t i = 0; i < 12; i++) {
        struct rung_result r = {.number = i,
                                .rung = 2,
                                .values = {(double)i},
                                .feasible = true,
                                .decision = STOP_PAUSE,
                                .seq = i + 1};
        ck_assert_int_eq(stopping_add(s, &r, NULL), AS_OK);
    }
    for (uint64_t i = 0; i < 6; i++)
        stopping_left(s, i);
    for (uint64_t i = 6; i < 6 + STOP_VAIN_TRIES; i++)
        expect_promotion(s, STOP_CLOSING_IN_VAIN, i, 2);
    ck_assert(!stopping_promote(s, STOP_CLOSING_IN_VAIN, &p));
}
END_TEST

/* An infinity on the good side is no good value: its trial fails at the end. */
START_TEST(test_infinities_are_worst)
{
    struct stop_spec spec = spec_of(STOP_ASHA, STOP_MODE_STOP);
    spec.maximize[0] = _i == 1;
    double sign = _i == 1 ? -1 : 1;
    AS_AUTO(stopping_freep) struct stopping *s = stopping_of(&spec);
    expect(s, 0, 0, sign * 5, STOP_GO_ON);
    expect(s, 1, 0, sign * -INFINITY, STOP_PRUNE);
    expect(s, 2, 0, sign * INFINITY, STOP_PRUNE);
    ck_assert_uint_eq(report(s, 3, 0, NAN).rank, 3); /* as bad as trial 1 */
    expect(s, 4, 0, sign * 4, STOP_GO_ON);
    /* curve learns nothing of them: neither a best value that nobody beats nor a line */
    struct stop_spec curve = spec_of(STOP_CURVE, STOP_MODE_STOP);
    curve.maximize[0] = _i == 1;
    curve.chance = 0.05;
    AS_AUTO(stopping_freep) struct stopping *c = stopping_of(&curve);
    for (uint64_t i = 0; i < 12; i++) {
        double value = 1 + (double)i + 0.1 * (double)(i % 3);
        struct rung_result r = {.number = i, .feasible = true, .values = {sign * value}};
        ck_assert_int_eq(stopping_add(c, &r, NULL), AS_OK);
        r.rung = 3;
        r.values[0] = sign * (i == 3 ? -INFINITY : value);
        ck_assert_int_eq(stopping_add(c, &r, NULL), AS_OK);
    }
    expect(c, 20, 0, sign * 11.5, STOP_PRUNE); /* the best had 1 */
    expect(c, 21, 0, sign * 0.5, STOP_GO_ON);
}
END_TEST

START_TEST(test_ranks_of_several_metrics)
{
    struct stop_spec spec = spec_of(STOP_ASHA, STOP_MODE_STOP);
    struct stop_decision d;
    spec.n_objectives = 2;
    spec.has_metric = false;
    spec.maximize[1] = true;
    AS_AUTO(stopping_freep) struct stopping *s = stopping_of(&spec);
    static const struct {
        double values[2];
        bool feasible;
        size_t rank;
    } cases[] = {
        {{5, 5}, true, 1},    {{4, 4}, true, 1}, /* neither dominates the other */
        {{4, 6}, true, 1},                       /* dominates both */
        {{9, 9}, true, 1},    {{9, 1}, true, 5}, /* dominated by all */
        {{1, 99}, false, 6},                     /* out of its bounds */
        {{NAN, 99}, true, 7},
    };
    for (size_t i = 0; i < AS_ARRAY_LEN(cases); i++) {
        struct rung_result r = {.number = i,
                                .values = {cases[i].values[0], cases[i].values[1]},
                                .feasible = cases[i].feasible,
                                .seq = i};
        ck_assert_int_eq(stopping_decide(s, &r, &d, NULL), AS_OK);
        ck_assert_msg(d.rank == cases[i].rank, "%zu: %zu of %zu", i, d.rank, d.of);
        ck_assert_int_eq(stopping_add(s, &r, NULL), AS_OK);
    }
}
END_TEST

START_TEST(test_results_that_are_refused)
{
    const struct stop_spec spec = spec_of(STOP_ASHA, STOP_MODE_STOP);
    struct stop_decision d;
    AS_AUTO(stopping_freep) struct stopping *s = stopping_of(&spec);
    struct rung_result r = {.number = 3, .rung = 4, .feasible = true};
    ck_assert_int_eq(stopping_add(s, &r, NULL), AS_E_INVAL);
    r.rung = 1;
    ck_assert_int_eq(stopping_add(s, &r, NULL), AS_OK);
    ck_assert_int_eq(stopping_add(s, &r, NULL), AS_E_CONFLICT);
    ck_assert_int_eq(stopping_decide(s, &r, &d, NULL), AS_E_CONFLICT);
    r.rung = 0; /* a lower one later: steps out of order */
    ck_assert_int_eq(stopping_add(s, &r, NULL), AS_OK);
}
END_TEST

START_TEST(test_median)
{
    const struct stop_spec spec = spec_of(STOP_MEDIAN, STOP_MODE_STOP);
    AS_AUTO(stopping_freep) struct stopping *s = stopping_of(&spec);
    for (uint64_t i = 0; i < 5; i++)
        expect(s, i, 0, (double)i, STOP_GO_ON);
    expect(s, 5, 0, 2.5, STOP_PRUNE); /* the fourth of six */
    expect(s, 6, 0, 2.2, STOP_GO_ON); /* the fourth of seven */
    expect(s, 7, 0, 1.5, STOP_GO_ON);
}
END_TEST

/* Two equal sweeps, of which one loses what is over at times of its own. */
#define PLANNED 60
struct twins {
    struct stop_spec spec;
    struct stopping *pruned, *whole;
    struct rng rng;
    struct {
        uint64_t number;
        uint32_t rung;
    } due[PLANNED]; /* trials under way, and the rung that they reach next */
    size_t n_due, n_pruned;
};

static void go_on(struct twins *t, uint64_t number, uint32_t rung)
{
    if (rung == t->spec.n_rungs)
        return;
    t->due[t->n_due].number = number;
    t->due[t->n_due++].rung = rung;
}

/* Promote in both, as long as there is somebody; equal, to the reason. */
static bool promote_twins(struct twins *t, bool is_closing)
{
    struct stop_promotion p, q;
    bool any = false;
    while (stopping_promote(t->whole, is_closing, &q)) {
        ck_assert(stopping_promote(t->pruned, is_closing, &p));
        ck_assert(p.number == q.number && p.rung == q.rung);
        ck_assert_str_eq(p.reason, q.reason);
        stopping_promoted(t->pruned, p.number);
        stopping_promoted(t->whole, q.number);
        go_on(t, p.number, p.rung + 1);
        any = true;
    }
    ck_assert(!stopping_promote(t->pruned, is_closing, &p));
    return any;
}

static void report_twins(struct twins *t, uint64_t number, uint32_t rung)
{
    struct stop_decision d = {0}, e = {0};
    struct rung_result r = {.number = number, .rung = rung, .feasible = rng_uniform(&t->rng) < 0.9};
    for (size_t i = 0; i < 2; i++)
        r.values[i] = rng_uniform(&t->rng) < 0.05 ? NAN : floor(20 * rng_uniform(&t->rng));
    ck_assert_int_eq(stopping_decide(t->pruned, &r, &d, NULL), AS_OK);
    ck_assert_int_eq(stopping_decide(t->whole, &r, &e, NULL), AS_OK);
    ck_assert_int_eq(d.verdict, e.verdict);
    ck_assert_str_eq(d.reason, e.reason);
    r.decision = d.verdict;
    ck_assert_int_eq(stopping_add(t->pruned, &r, NULL), AS_OK);
    ck_assert_int_eq(stopping_add(t->whole, &r, NULL), AS_OK);
    if (d.verdict == STOP_GO_ON)
        go_on(t, number, rung + 1);
}

static void prune_one_twin(struct twins *t)
{
    for (uint64_t i = 0; i < PLANNED; i++) {
        if (!stopping_is_over(t->pruned, i, PLANNED))
            continue;
        stopping_left(t->pruned, i);
        t->n_pruned++;
    }
}

/* The reaper prunes trials that are over when it comes to it. Nothing that is decided later depends
 * on when, or whether, it did. */
START_TEST(test_what_is_over_decides_nothing)
{
    static const stop_method methods[] = {STOP_ASHA, STOP_HYPERBAND, STOP_PASHA, STOP_MEDIAN,
                                          STOP_ASHA};
    size_t n_pruned = 0;
    for (uint64_t seed = 0; seed < 40; seed++) {
        struct twins t = {.spec = spec_of(methods[_i], STOP_MODE_PAUSE)};
        uint64_t begun = 0;
        t.spec.seed = seed;
        t.spec.has_metric = _i < 4; /* else by dominance of two */
        t.spec.n_objectives = 2;
        t.pruned = stopping_of(&t.spec);
        t.whole = stopping_of(&t.spec);
        rng_init(&t.rng, seed, (uint64_t)_i);
        while (begun < PLANNED || t.n_due > 0 || promote_twins(&t, true)) {
            if (t.n_due == 0 || (begun < PLANNED && rng_uniform(&t.rng) < 0.6)) {
                if (begun == PLANNED)
                    continue;
                report_twins(&t, begun++, 0);
            } else {
                size_t i = (size_t)(rng_uniform(&t.rng) * (double)t.n_due);
                uint64_t number = t.due[i].number;
                uint32_t rung = t.due[i].rung;
                t.due[i] = t.due[--t.n_due];
                report_twins(&t, number, rung);
            }
            promote_twins(&t, false);
            if (rng_uniform(&t.rng) < 0.2)
                prune_one_twin(&t);
        }
        n_pruned += t.n_pruned;
        stopping_free(t.pruned);
        stopping_free(t.whole);
    }
    ck_assert_msg(n_pruned > 40, "%zu", n_pruned); /* the test is about something */
}
END_TEST

/* How many of 1,000 trials are compared from each rung first. */
START_TEST(test_hyperband_draws_brackets)
{
    struct stop_spec spec = spec_of(STOP_HYPERBAND, STOP_MODE_STOP);
    size_t passed[4] = {0};
    spec.seed = 5;
    AS_AUTO(stopping_freep) struct stopping *s = stopping_of(&spec);
    for (uint32_t rung = 0; rung < 3; rung++)
        expect(s, 5000, rung, 0, STOP_GO_ON); /* so that no other is the best */
    for (uint64_t i = 0; i < 1000; i++) {
        uint32_t rung = 0;
        struct stop_decision d = report(s, i, rung, 1 + (double)i);
        while (d.verdict == STOP_GO_ON && strstr(d.reason, "it is compared from") && rung < 2)
            d = report(s, i, ++rung, 1 + (double)i);
        passed[strstr(d.reason, "it is compared from") ? 3 : rung]++;
    }
    static const double weights[] = {27, 12, 6, 4}; /* of 4 rungs, eta 3 */
    for (size_t k = 0; k < 4; k++) {
        double want = 1000 * weights[k] / 49;
        ck_assert_msg(fabs((double)passed[k] - want) < 60, "rung %zu: %zu, about %.0f expected", k,
                      passed[k], want);
    }
}
END_TEST

START_TEST(test_pasha_waits_below_its_cap)
{
    const struct stop_spec spec = spec_of(STOP_PASHA, STOP_MODE_PAUSE);
    struct stop_promotion p;
    AS_AUTO(stopping_freep) struct stopping *s = stopping_of(&spec);
    for (uint64_t i = 0; i < 27; i++) {
        stop_verdict v = report(s, i, 0, 30 - (double)i).verdict;
        while (v == STOP_PAUSE && stopping_promote(s, false, &p)) {
            stopping_promoted(s, p.number);
            ck_assert_uint_eq(p.rung, 0);
            report(s, p.number, 1, 30 - (double)p.number); /* the same ranking */
        }
        if (v == STOP_GO_ON)
            expect(s, i, 1, 30 - (double)i, STOP_PAUSE);
    }
    ck_assert(!stopping_promote(s, false, &p)); /* nothing goes past the second rung */
    expect(s, 27, 0, -1, STOP_GO_ON);
    expect(s, 27, 1, 100, STOP_PAUSE); /* the best of the first rung is the worst of the second */
    ck_assert(stopping_promote(s, false, &p));
    ck_assert_uint_eq(p.rung, 1);
    ck_assert_uint_eq(p.number, 26);
}
END_TEST

/* Trials whose value at the end is `end`, and at the lower rungs `early`. */
static void run_in_full(struct stopping *s, uint64_t number, double early, double end)
{
    for (uint32_t rung = 0; rung < 3; rung++)
        expect(s, number, rung, rung == 2 ? end : early, STOP_GO_ON);
    expect(s, number, 3, end, STOP_GO_ON);
}

START_TEST(test_auto_finds_the_first_rung)
{
    bool misleads = _i == 1;
    struct stop_spec spec = spec_of(STOP_ASHA, STOP_MODE_PAUSE);
    struct stop_promotion p;
    spec.is_min_auto = true;
    AS_AUTO(stopping_freep) struct stopping *s = stopping_of(&spec);
    expect(s, 9, 0, 50, STOP_PAUSE); /* nothing is known: it waits at max_steps / 27 */
    for (uint64_t i = 0; i < 5; i++)
        run_in_full(s, i * AGREEMENT_EVERY, misleads ? -(double)i : (double)i, (double)i);
    ck_assert_uint_eq(stopping_lowest_rung(s), misleads ? 2 : 0);
    ck_assert(!stopping_promote(s, false, &p));
    expect(s, 10, 0, -10, STOP_GO_ON);
    expect(s, 11, 0, 60, misleads ? STOP_GO_ON : STOP_PAUSE);
    expect(s, 5 * AGREEMENT_EVERY, 0, 90, STOP_GO_ON); /* runs in full, to go on measuring */
    if (!misleads)
        return;
    expect(s, 10, 1, -10, STOP_GO_ON);
    expect(s, 10, 2, 9, STOP_PAUSE);
}
END_TEST

/* A trial that is compared, and goes on from every rung. */
static void run_compared(struct stopping *s, uint64_t number, double early, double end)
{
    static uint64_t seq = 1000000;
    for (uint32_t rung = 0; rung < 4; rung++) {
        struct rung_result r = {.number = number,
                                .rung = rung,
                                .values = {rung == 3 ? end : early},
                                .feasible = true,
                                .decision = STOP_GO_ON,
                                .seq = ++seq};
        ck_assert_int_eq(stopping_add(s, &r, NULL), AS_OK);
    }
}

/* A trial that went on for its rank counts beside one that was not compared, and not beside another
 * that was. */
START_TEST(test_auto_learns_from_those_that_went_on)
{
    bool misleads = _i == 1;
    struct stop_spec spec = spec_of(STOP_ASHA, STOP_MODE_PAUSE);
    spec.is_min_auto = true;
    AS_AUTO(stopping_freep) struct stopping *s = stopping_of(&spec);
    AS_AUTO(stopping_freep) struct stopping *t = stopping_of(&spec);
    run_in_full(s, 0, 10, 10);
    run_compared(s, 1, 5, misleads ? 20 : 5);
    ck_assert_uint_eq(stopping_lowest_rung(s), misleads ? 3 : 0);
    for (uint64_t i = 1; i < 6; i++) /* the later ones are better early, and worse at the end */
        run_compared(t, i, 50 - (double)i, (double)i);
    run_in_full(t, 0, 60, misleads ? 0 : 60);
    ck_assert_uint_eq(stopping_lowest_rung(t), misleads ? 2 : 0); /* at the third they agree */
}
END_TEST

/* The outcome at a rung counts in the ranks that are compared with those at the end. */
START_TEST(test_auto_knows_what_was_infeasible)
{
    struct stop_spec spec = spec_of(STOP_ASHA, STOP_MODE_STOP);
    uint64_t seq = 0;
    spec.is_min_auto = true;
    AS_AUTO(stopping_freep) struct stopping *s = stopping_of(&spec);
    for (uint64_t i = 0; i < 4; i++)
        for (uint32_t rung = 0; rung < 4; rung++) {
            bool feasible = rung == 3 || i % 2 == 0; /* half of them are only at the end */
            struct rung_result r = {.number = i * AGREEMENT_EVERY,
                                    .rung = rung,
                                    .values = {i % 2 == 0 ? 10 + (double)i : (double)i},
                                    .feasible = feasible,
                                    .seq = ++seq};
            ck_assert_int_eq(stopping_add(s, &r, NULL), AS_OK);
        }
    ck_assert_uint_eq(stopping_lowest_rung(s), 3);
}
END_TEST

START_TEST(test_which_trials_run_in_full)
{
    struct stop_spec spec = spec_of(STOP_ASHA, STOP_MODE_PAUSE);
    spec.is_min_auto = true;
    AS_AUTO(stopping_freep) struct stopping *s = stopping_of(&spec);
    for (uint64_t i = 0; i < 100; i++) { /* each is the worst so far */
        bool is_full = i == 0 || i == 12 || i == 24 || i == 48 || i == 72 || i == 96;
        expect(s, i, 0, (double)i, is_full ? STOP_GO_ON : STOP_PAUSE);
    }
}
END_TEST

/* A result that finds no memory changes nothing: it can be added again. */
START_TEST(test_memory_runs_out)
{
    static const stop_method methods[] = {STOP_ASHA, STOP_CURVE, STOP_PASHA};
    struct stop_spec spec = spec_of(methods[_i], STOP_MODE_PAUSE);
    struct stop_promotion p;
    spec.is_min_auto = true;
    AS_AUTO(stopping_freep) struct stopping *s = NULL;
    as_status st = AS_E_NOMEM;
    for (size_t nth = 1; st == AS_E_NOMEM; nth++) {
        as_mem_fail_nth(nth);
        st = stopping_create(&spec, &s, NULL);
    }
    as_mem_fail_nth(0);
    for (uint64_t i = 0; i < 40; i++) {
        struct rung_result r = {.number = i,
                                .values = {(double)(i % 7)},
                                .feasible = true,
                                .decision = STOP_PAUSE,
                                .seq = i + 1};
        st = AS_E_NOMEM;
        for (size_t nth = 1; st == AS_E_NOMEM; nth++) {
            as_mem_fail_nth(nth);
            st = stopping_add(s, &r, NULL);
        }
        as_mem_fail_nth(0);
        ck_assert_int_eq(st, AS_OK);
    }
    struct stop_decision d;
    ck_assert_int_eq(
        stopping_decide(s, &(struct rung_result){.number = 40, .feasible = true}, &d, NULL), AS_OK);
    ck_assert_uint_eq(d.of, 41);
    ck_assert(stopping_promote(s, true, &p));
    for (uint64_t n = 0; n < 40; n++) /* each waits once */
        stopping_left(s, n);
    ck_assert(!stopping_promote(s, true, &p));
}
END_TEST

static const struct stop_reported loss_unreported = {.metric = "loss"};

static void check_warning(const struct stopping *s, const struct stop_progress *p, const char *part)
{
    char text[STOP_WARNING_MAX] = "";
    bool warned = stop_warning(s, p, text);
    ck_assert_msg(warned == (part != NULL) && (!part || strstr(text, part)), "%s", text);
}

START_TEST(test_warnings)
{
    struct stop_spec spec = spec_of(STOP_ASHA, STOP_MODE_PAUSE);
    static const int64_t reported[] = {2, 4, 6};
    struct stop_reported loss = {.metric = "loss"};
    struct stop_progress p = {.reported = &loss, .n_metrics = 1};
    AS_AUTO(stopping_freep) struct stopping *s = stopping_of(&spec);
    check_warning(s, &p, NULL);
    p.n_ended = 1;
    check_warning(s, &p, "a trial that ended had not reported it at any step");
    loss.steps = reported;
    loss.n = 3;
    check_warning(s, &p,
                  "no trial has a value of loss at a rung (steps 1, 3, 9, 27); a trial that ended "
                  "had reported it at 2, 4, 6; with late: true");
    struct stop_spec pbt = spec_of(STOP_PBT, STOP_MODE_STOP);
    AS_AUTO(stopping_freep) struct stopping *forks = stopping_of(&pbt);
    char text[STOP_WARNING_MAX] = "";
    ck_assert(stop_warning(forks, &p, text));
    ck_assert_msg(!strstr(text, "late"), "%s", text); /* pbt refuses it */
    p.n_with_result = 1;
    check_warning(s, &p, NULL);
    p.n_ended = STOP_WARNING_AFTER;
    check_warning(s, &p, "nothing about 20 trials: only 0 trials have reached the first rung");
    report(s, 0, 0, 1);
    check_warning(s, &p, NULL);
}
END_TEST

/* A metric that is reported at the last rung alone, or a second one that comes after half: nobody
 * is ever compared, though each trial has a result. */
START_TEST(test_warning_of_results_at_the_last_rung_only)
{
    struct stop_spec spec = spec_of(STOP_ASHA, STOP_MODE_STOP);
    static const int64_t last[] = {27}, all[] = {1, 2, 3, 9, 27}, late[] = {14, 27};
    struct stop_reported r[] = {{"loss", last, 1}, {"lag", late, 2}};
    struct stop_progress p = {
        .reported = r, .n_metrics = 1, .n_ended = 1, .n_with_result = 1, .n_completed = 1};
    AS_AUTO(stopping_freep) struct stopping *s = stopping_of(&spec);
    report(s, 0, 3, 1);
    char text[STOP_WARNING_MAX] = "";
    ck_assert(stop_warning(s, &p, text));
    ck_assert_str_eq(text, "early stopping has compared nothing: no trial has a value of loss at a "
                           "rung below the last (steps 1, 3, 9); a trial that ended had reported "
                           "it at 27"); /* late: true would not help */
    r[0] = (struct stop_reported){"loss", all, 5};
    p.n_metrics = 2;
    ck_assert(stop_warning(s, &p, text));
    ck_assert_str_eq(text, "early stopping has compared nothing: no trial has values of loss and "
                           "lag at one rung below the last (steps 1, 3, 9); a trial that ended had "
                           "reported loss at 1, 2, 3, 9, 27, reported lag at 14, 27; with late: "
                           "true the first report past a rung counts");
    report(s, 1, 0, 1);
    check_warning(s, &p, NULL);
}
END_TEST

/* Trials complete below the last rung, or past it. */
START_TEST(test_warning_of_the_last_rung)
{
    static const stop_method methods[] = {STOP_ASHA, STOP_MEDIAN, STOP_CURVE, STOP_PBT};
    struct stop_spec spec = spec_of(methods[_i], STOP_MODE_STOP);
    struct stop_progress p = {.reported = &loss_unreported,
                              .n_metrics = 1,
                              .n_ended = 2,
                              .n_with_result = 2,
                              .n_completed = 1,
                              .furthest = 20};
    AS_AUTO(stopping_freep) struct stopping *s = stopping_of(&spec);
    report(s, 0, 0, 1);
    check_warning(s, &p,
                  "no trial has a value of loss at the last rung, step 27: of 1 that completed the "
                  "furthest reported up to step 20; max_steps is to be a step that trials reach");
    p.furthest = -1;
    check_warning(s, &p, "1 completed without a report; max_steps");
    p.furthest = 30;
    check_warning(s, &p, "reported up to step 30");
    char text[STOP_WARNING_MAX] = "";
    ck_assert(stop_warning(s, &p, text) && !strstr(text, "max_steps"));
    ck_assert(!strstr(text, "late: true") == (methods[_i] == STOP_PBT)); /* which refuses it */
    p.n_completed = 0; /* those that ended were pruned */
    check_warning(s, &p, NULL);
    p.n_completed = 1;
    report(s, 0, 3, 1);
    check_warning(s, &p, NULL);
}
END_TEST

/* Why nothing was decided about the first trials: the rule is not sure yet. */
START_TEST(test_warning_of_rules_that_begin_late)
{
    struct stop_progress p = {.reported = &loss_unreported,
                              .n_metrics = 1,
                              .n_ended = 20,
                              .n_with_result = 20,
                              .n_completed = 20,
                              .furthest = 27};
    struct stop_spec median = spec_of(STOP_MEDIAN, STOP_MODE_STOP);
    struct stop_spec curve = spec_of(STOP_CURVE, STOP_MODE_STOP);
    AS_AUTO(stopping_freep) struct stopping *a = stopping_of(&median);
    AS_AUTO(stopping_freep) struct stopping *b = stopping_of(&curve);
    for (uint64_t i = 0; i < 5; i++)
        report(a, i, 0, 1);
    report(a, 0, 3, 1);
    check_warning(a, &p, "only 5 trials have reached the first rung, step 1");
    for (uint64_t i = 0; i < 9; i++)
        report(b, i, 0, 1);
    report(b, 0, 3, 1);
    check_warning(b, &p,
                  "curve predicts from 5 trials that have run to the last rung, and there are 1");
}
END_TEST

START_TEST(test_warning_of_auto)
{
    struct stop_spec spec = spec_of(STOP_ASHA, STOP_MODE_STOP);
    const struct stop_progress p = {
        .reported = &loss_unreported, .n_metrics = 1, .n_ended = 20, .n_with_result = 20};
    spec.is_min_auto = true;
    AS_AUTO(stopping_freep) struct stopping *s = stopping_of(&spec);
    check_warning(s, &p, "fewer than 2 trials have run in full");
    for (uint64_t i = 0; i < 5; i++)
        for (uint32_t rung = 0; rung < 4; rung++)
            expect(s, i * AGREEMENT_EVERY, rung, rung == 3 ? (double)i : -(double)i, STOP_GO_ON);
    check_warning(s, &p, "Kendall's tau: -0.61 at step 1, -0.61 at step 3, -0.61 at step 9");
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("search_stopping");
    TCase *t = tcase_create("stopping");
    tcase_add_test(t, test_asha_stops);
    tcase_add_test(t, test_asha_promotes);
    tcase_add_test(t, test_one_runs_in_full_if_the_best_fails);
    tcase_add_loop_test(t, test_list_of_what_is_over, 0, 2);
    tcase_add_test(t, test_what_fails_always_ends);
    tcase_add_loop_test(t, test_infinities_are_worst, 0, 2);
    tcase_add_test(t, test_warning_of_results_at_the_last_rung_only);
    tcase_add_test(t, test_ranks_of_several_metrics);
    tcase_add_test(t, test_results_that_are_refused);
    tcase_add_test(t, test_median);
    tcase_add_loop_test(t, test_what_is_over_decides_nothing, 0, 5);
    tcase_add_test(t, test_hyperband_draws_brackets);
    tcase_add_test(t, test_pasha_waits_below_its_cap);
    tcase_add_loop_test(t, test_auto_finds_the_first_rung, 0, 2);
    tcase_add_loop_test(t, test_auto_learns_from_those_that_went_on, 0, 2);
    tcase_add_test(t, test_auto_knows_what_was_infeasible);
    tcase_add_test(t, test_which_trials_run_in_full);
    tcase_add_loop_test(t, test_memory_runs_out, 0, 3);
    tcase_add_test(t, test_warnings);
    tcase_add_loop_test(t, test_warning_of_the_last_rung, 0, 4);
    tcase_add_test(t, test_warning_of_rules_that_begin_late);
    tcase_add_test(t, test_warning_of_auto);
    suite_add_tcase(s, t);
    return s;
}
