/* The rules of early stopping against traces by hand. */
#include "search/stopping/stopping.h"

#include <math.h>

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
    struct stop_decision d = {0};
    struct rung_result r = {.number = number,
                            .rung = rung,
                            .values = {value},
                            .feasible = true,
                            .seq = stopping_seq(s) + 1};
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

static void expect_promotion(struct stopping *s, bool is_closing, uint64_t number, uint32_t rung)
{
    struct stop_promotion p = {0};
    ck_assert(stopping_promote(s, is_closing, &p));
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

Suite *test_suite(void)
{
    Suite *s = suite_create("search_stopping");
    TCase *t = tcase_create("stopping");
    tcase_add_test(t, test_asha_stops);
    tcase_add_test(t, test_asha_promotes);
    suite_add_tcase(s, t);
    return s;
}
