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

START_TEST(test_asha_promotes)
{
    const struct stop_spec spec = spec_of(STOP_ASHA, STOP_MODE_PAUSE);
    struct stop_promotion p;
    AS_AUTO(stopping_freep) struct stopping *s = stopping_of(&spec);
    for (uint64_t i = 0; i < 9; i++) {
        ck_assert_int_eq(report(s, i, 0, i == 4 || i == 7 ? 1 : 10 + (double)i).verdict,
                         STOP_PAUSE);
        ck_assert_int_eq(stopping_promote(s, false, &p), i >= 2);
    }
    static const uint64_t want[] = {4, 7, 0};
    for (size_t i = 0; i < AS_ARRAY_LEN(want); i++) {
        ck_assert(stopping_promote(s, false, &p));
        ck_assert_uint_eq(p.number, want[i]);
        ck_assert_uint_eq(p.until, 1);
        stopping_promoted(s, p.number);
        report(s, p.number, 1, (double)i);
    }
    ck_assert(stopping_promote(s, false, &p)); /* the highest rung first */
    ck_assert_uint_eq(p.number, 4);
    ck_assert_uint_eq(p.rung, 1);
    stopping_promoted(s, 4);
    ck_assert(!stopping_promote(s, false, &p));
    report(s, 4, 2, 1);
    ck_assert(!stopping_promote(s, false, &p)); /* one in three of one is none … */
    ck_assert(stopping_promote(s, true, &p));   /* … unless nothing else will come */
    ck_assert_uint_eq(p.number, 4);
    ck_assert(stopping_is_over(s, 8, 9)); /* the last of nine, of which three go on */
    ck_assert(!stopping_is_over(s, 8, 27));
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
