#include "scheduler/sweep/trial_seed.h"

#include "tests/support/check_main.h"

/* Stored trials have these seeds, so they may never change. */
START_TEST(seeds_stay_what_they_are)
{
    ck_assert_int_eq(trial_seed_of(0, 0), 1447931562);
    ck_assert_int_eq(trial_seed_of(7, 0), 1943390);
    ck_assert_int_eq(trial_seed_of(7, 1), 332253450);
    ck_assert_int_eq(trial_seed_of((INT64_C(1) << 53) - 1, 99999), 1757388908);
}
END_TEST

START_TEST(seeds_have_31_bits)
{
    int64_t all = 0;
    for (int64_t number = 0; number < 1000; number++) {
        int64_t seed = trial_seed_of(7, number);
        ck_assert(seed >= 0 && seed <= INT32_MAX);
        all |= seed;
    }
    ck_assert_int_eq(all, INT32_MAX);
}
END_TEST

TEST_SUITE()
{
    Suite *su = suite_create("scheduler/trial_seed");
    TCase *c = tcase_create("trial_seed");
    tcase_add_test(c, seeds_stay_what_they_are);
    tcase_add_test(c, seeds_have_31_bits);
    suite_add_tcase(su, c);
    return su;
}
