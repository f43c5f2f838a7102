/* When bounds of live sweeps may begin, on times that the tests choose. */
#include "scheduler/services/bound_share.h"

#include <string.h>

#include "tests/support/check_main.h"

#define MS NS_PER_MS
#define S NS_PER_S

/* Each bound waits for the rest that its expected cost asks for, also the first one. */
START_TEST(rest_comes_before_a_bound)
{
    struct bound_share s = {.rest = 99, .free_ns = 5 * S};
    ck_assert(!bound_share_covers(&s, 10 * MS, 5 * S));
    ck_assert(!bound_share_covers(&s, 10 * MS, 5 * S + 990 * MS - 1));
    ck_assert(bound_share_covers(&s, 10 * MS, 5 * S + 990 * MS));
    bound_share_spend(&s, 10 * MS, 6 * S);
    ck_assert_int_eq(s.free_ns, 6 * S);
    ck_assert(!bound_share_covers(&s, 20 * MS, 6 * S + 1980 * MS - 1));
    ck_assert(bound_share_covers(&s, 20 * MS, 6 * S + 1980 * MS));
}
END_TEST

/* What a bound took beyond what was expected is rested for afterwards. */
START_TEST(an_expensive_bound_is_paid_afterwards)
{
    struct bound_share s = {.rest = 19, .free_ns = 0};
    ck_assert(bound_share_covers(&s, 10 * MS, 190 * MS));
    bound_share_spend(&s, 100 * MS, 290 * MS);
    ck_assert_int_eq(s.free_ns, 2 * S);
    ck_assert(!bound_share_covers(&s, 0, 2 * S - 1));
    ck_assert(bound_share_covers(&s, 10 * MS, 2 * S + 190 * MS));
}
END_TEST

/* Rest of a long time without bounds is kept for some small ones, and no more than that. */
START_TEST(some_rest_is_saved)
{
    struct bound_share s = {.rest = 29, .saved_ns = 2 * S, .free_ns = 0};
    int64_t now = 100 * S, n = 0;
    for (; bound_share_covers(&s, 4 * MS, now); n++)
        bound_share_spend(&s, 4 * MS, now += 4 * MS);
    ck_assert_int_eq(n, 18); /* one, then 2 s / (29 * 4 ms), as each takes 4 ms of time, too */
    ck_assert(bound_share_covers(&s, 4 * MS, now + 29 * 4 * MS));
}
END_TEST

/* However much more than expected they cost: in ten seconds they take the share, what was saved,
 * and the bound that they begin with. */
START_TEST(no_ten_seconds_take_more_than_the_share)
{
    struct bound_share s = {.rest = 29, .saved_ns = 2 * S, .free_ns = -60 * S};
    int64_t spent[6000] = {0}; /* by 10 ms */
    for (int64_t now = 0; now < 60 * S; now += 10 * MS) {
        int64_t cost = (1 + now / S) * MS; /* of a sweep that grows */
        if (!bound_share_covers(&s, cost / 2, now))
            continue;
        bound_share_spend(&s, cost, now + cost);
        spent[now / (10 * MS)] = cost;
    }
    for (size_t from = 0; from + 1000 <= 6000; from++) {
        int64_t sum = 0, most = 0;
        for (size_t i = from; i < from + 1000; i++) {
            sum += spent[i];
            most = spent[i] > most ? spent[i] : most;
        }
        ck_assert_msg(sum <= 400 * MS + most, "%lld ms from %zu", (long long)(sum / MS), from);
        ck_assert(from != 0 || sum > 300 * MS); /* and it is used */
    }
}
END_TEST

START_TEST(cost_grows_faster_than_trials)
{
    const struct bound_cost last = {.completed = 100, .took_ns = 4 * MS};
    ck_assert_int_eq(bound_cost_expected(&last, 100), 4 * MS);
    ck_assert_int_eq(bound_cost_expected(&last, 400), 32 * MS);
    ck_assert_int_eq(bound_cost_expected(&last, 64), bound_cost_expected(&last, 4));
    ck_assert_int_eq(bound_cost_expected(&last, 100000000), BOUND_EXPECTED_MAX_NS);
    struct bound_share s = {.rest = 99, .free_ns = 0}; /* it is not put off for ever */
    ck_assert(!bound_share_covers(&s, INT64_MAX, 99 * BOUND_EXPECTED_MAX_NS - 1));
    ck_assert(bound_share_covers(&s, INT64_MAX, 99 * BOUND_EXPECTED_MAX_NS));
}
END_TEST

TEST_SUITE()
{
    Suite *suite = suite_create("scheduler/services/bound_share");
    TCase *t = tcase_create("share");
    tcase_add_test(t, rest_comes_before_a_bound);
    tcase_add_test(t, an_expensive_bound_is_paid_afterwards);
    tcase_add_test(t, some_rest_is_saved);
    tcase_add_test(t, no_ten_seconds_take_more_than_the_share);
    tcase_add_test(t, cost_grows_faster_than_trials);
    suite_add_tcase(suite, t);
    return suite;
}
