/* When leases may end: after a lease without a break in which the reaper did not look. */
#include "base/clock.h"
#include "scheduler/lifecycle/lease_clock.h"
#include "tests/support/check_main.h"

#define LEASE_MS 20000

START_TEST(nobody_is_lost_before_a_whole_lease_of_looks)
{
    struct lease_clock c = {0};
    int64_t at = 1000000;
    ck_assert(!lease_clock_hears(&c, LEASE_MS, at));
    ck_assert(!lease_clock_hears(&c, LEASE_MS, at + 9000));
    ck_assert(!lease_clock_hears(&c, LEASE_MS, at + 19000));
    ck_assert(!lease_clock_hears(&c, LEASE_MS, at + 19999));
    ck_assert(lease_clock_hears(&c, LEASE_MS, at + 20000));
    ck_assert(lease_clock_hears(&c, LEASE_MS, at + 30000));
}
END_TEST

START_TEST(a_break_begins_the_lease_again)
{
    struct lease_clock c = {0};
    int64_t at = 1000000;
    for (int i = 0; i < 3; i++)
        (void)lease_clock_hears(&c, LEASE_MS, at + i * 10000);
    at += 20000;
    ck_assert(lease_clock_hears(&c, LEASE_MS, at + 10000));  /* half a lease is no break */
    ck_assert(!lease_clock_hears(&c, LEASE_MS, at + 20001)); /* more is one */
    ck_assert(!lease_clock_hears(&c, LEASE_MS, at + 30001));
    ck_assert(lease_clock_hears(&c, LEASE_MS, at + 40001));
}
END_TEST

START_TEST(a_clock_that_is_set_back_is_a_break)
{
    struct lease_clock c = {0};
    int64_t at = 1000000;
    for (int i = 0; i < 3; i++)
        (void)lease_clock_hears(&c, LEASE_MS, at + i * 10000);
    ck_assert(!lease_clock_hears(&c, LEASE_MS, at + 19999));
    ck_assert(!lease_clock_hears(&c, LEASE_MS, at + 29999));
    ck_assert(lease_clock_hears(&c, LEASE_MS, at + 39999));
}
END_TEST

/* Leases shorter than a round of the reaper also end: a break lasts at least one second. */
START_TEST(a_break_is_a_second_at_least)
{
    struct lease_clock c = {0};
    int64_t at = 1000000;
    ck_assert(!lease_clock_hears(&c, 100, at));
    ck_assert(lease_clock_hears(&c, 100, at + 1000));
    ck_assert(!lease_clock_hears(&c, 100, at + 2001));
}
END_TEST

START_TEST(old_rows_are_looked_for_once_in_a_while)
{
    struct lease_clock c = {0};
    ck_assert(lease_clock_prunes(&c, 60, 5 * NS_PER_S));
    ck_assert(!lease_clock_prunes(&c, 60, 5 * NS_PER_S + 60 * NS_PER_MS - 1));
    ck_assert(lease_clock_prunes(&c, 60, 5 * NS_PER_S + 60 * NS_PER_MS));
    ck_assert(!lease_clock_prunes(&c, 60, 5 * NS_PER_S + 61 * NS_PER_MS));
}
END_TEST

TEST_SUITE()
{
    Suite *suite = suite_create("lease_clock");
    TCase *t = tcase_create("clock");
    tcase_add_test(t, nobody_is_lost_before_a_whole_lease_of_looks);
    tcase_add_test(t, a_break_begins_the_lease_again);
    tcase_add_test(t, a_clock_that_is_set_back_is_a_break);
    tcase_add_test(t, a_break_is_a_second_at_least);
    tcase_add_test(t, old_rows_are_looked_for_once_in_a_while);
    suite_add_tcase(suite, t);
    return suite;
}
