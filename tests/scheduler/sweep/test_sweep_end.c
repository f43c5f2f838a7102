/* The rule of a sweep's end: every combination of its three reasons, and the borders. */
#include "scheduler/sweep/sweep_end.h"

#include <string.h>

#include "tests/support/check_main.h"

static const struct sweep_standing busy = {.planned = 10, .total = 4, .live = 2, .max_failed = -1};

START_TEST(what_has_work_goes_on)
{
    struct sweep_standing s = busy;
    ck_assert_int_eq(sweep_end_of(&s), SWEEP_GOES_ON);
    s.live = 0; /* trials are still to be made */
    ck_assert_int_eq(sweep_end_of(&s), SWEEP_GOES_ON);
    s.total = 10;
    ck_assert_int_eq(sweep_end_of(&s), SWEEP_ALL_ENDED);
    s.live = 1; /* the last one runs */
    ck_assert_int_eq(sweep_end_of(&s), SWEEP_GOES_ON);
    s.total = 12; /* max_trials was lowered below what exists */
    ck_assert_int_eq(sweep_end_of(&s), SWEEP_GOES_ON);
    s.live = 0;
    ck_assert_int_eq(sweep_end_of(&s), SWEEP_ALL_ENDED);
}
END_TEST

START_TEST(failures_end_it_above_their_limit)
{
    struct sweep_standing s = busy;
    s.failed = 100;
    ck_assert_int_eq(sweep_end_of(&s), SWEEP_GOES_ON);
    s.max_failed = 3;
    s.failed = 3;
    ck_assert_int_eq(sweep_end_of(&s), SWEEP_GOES_ON);
    s.failed = 4;
    ck_assert_int_eq(sweep_end_of(&s), SWEEP_TOO_MANY_FAILED);
    s.max_failed = 0;
    s.failed = 0;
    ck_assert_int_eq(sweep_end_of(&s), SWEEP_GOES_ON);
    s.failed = 1;
    ck_assert_int_eq(sweep_end_of(&s), SWEEP_TOO_MANY_FAILED);
}
END_TEST

START_TEST(the_order_is_target_failures_little_left_time_trials)
{
    struct sweep_standing s = {
        .planned = 1, .total = 1, .failed = 1, .wall_time_over = true, .target_reached = true};
    AS_AUTO(arena_done) struct arena a = {0};
    ck_assert_int_eq(sweep_end_of(&s), SWEEP_TARGET_REACHED);
    ck_assert_ptr_nonnull(strstr(sweep_end_advice(&a, &s, SWEEP_TARGET_REACHED), "target"));
    s.target_reached = false;
    ck_assert_int_eq(sweep_end_of(&s), SWEEP_TOO_MANY_FAILED);
    ck_assert_ptr_nonnull(strstr(sweep_end_advice(&a, &s, SWEEP_TOO_MANY_FAILED), "1 trials"));
    s.max_failed = 1;
    s.little_left = true;
    ck_assert_int_eq(sweep_end_of(&s), SWEEP_LITTLE_LEFT);
    ck_assert_ptr_nonnull(strstr(sweep_end_advice(&a, &s, SWEEP_LITTLE_LEFT), "stop_when"));
    s.little_left = false;
    ck_assert_int_eq(sweep_end_of(&s), SWEEP_OUT_OF_TIME);
    ck_assert_ptr_nonnull(strstr(sweep_end_advice(&a, &s, SWEEP_OUT_OF_TIME), "wall_time"));
    s.wall_time_over = false;
    ck_assert_int_eq(sweep_end_of(&s), SWEEP_ALL_ENDED);
    ck_assert_ptr_nonnull(strstr(sweep_end_advice(&a, &s, SWEEP_ALL_ENDED), "max_trials"));
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("scheduler/sweep/sweep_end");
    TCase *t = tcase_create("ends");
    tcase_add_test(t, what_has_work_goes_on);
    tcase_add_test(t, failures_end_it_above_their_limit);
    tcase_add_test(t, the_order_is_target_failures_little_left_time_trials);
    suite_add_tcase(s, t);
    return s;
}
