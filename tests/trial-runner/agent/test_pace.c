/* Which sweeps have short trials. */
#include "trial-runner/agent/pace.h"

#include <stdio.h>

#include "tests/support/check_main.h"

static void note_short(struct pace *p, const char *sweep, int n)
{
    for (int i = 0; i < n; i++)
        pace_note(p, sweep, true);
}

START_TEST(short_after_some_in_a_row)
{
    struct pace p = {0};
    note_short(&p, "a", PACE_SHORT_TRIALS - 1);
    ck_assert(!pace_is_short(&p, "a"));
    note_short(&p, "b", PACE_SHORT_TRIALS);
    ck_assert(!pace_is_short(&p, "a"));
    ck_assert(pace_is_short(&p, "b"));
    note_short(&p, "a", 1);
    ck_assert(pace_is_short(&p, "a"));
    ck_assert(!pace_is_short(&p, "c"));
    ck_assert(!pace_is_short(&p, ""));
}
END_TEST

START_TEST(one_long_trial_ends_it)
{
    struct pace p = {0};
    note_short(&p, "a", 9);
    pace_note(&p, "a", false);
    ck_assert(!pace_is_short(&p, "a"));
    note_short(&p, "a", PACE_SHORT_TRIALS - 1);
    ck_assert(!pace_is_short(&p, "a"));
    note_short(&p, "a", 1);
    ck_assert(pace_is_short(&p, "a"));
}
END_TEST

START_TEST(the_first_of_too_many_sweeps_is_forgotten)
{
    struct pace p = {0};
    char name[8];
    for (int i = 0; i <= PACE_SWEEPS; i++) {
        (void)snprintf(name, sizeof name, "s%d", i);
        note_short(&p, name, PACE_SHORT_TRIALS);
    }
    ck_assert(!pace_is_short(&p, "s0"));
    for (int i = 1; i <= PACE_SWEEPS; i++) {
        (void)snprintf(name, sizeof name, "s%d", i);
        ck_assert(pace_is_short(&p, name));
    }
    note_short(&p, "s0", 1); /* it begins anew */
    ck_assert(!pace_is_short(&p, "s0"));
    pace_forget(&p);
    ck_assert(!pace_is_short(&p, "s2"));
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("agent_pace");
    TCase *tc = tcase_create("pace");
    tcase_add_test(tc, short_after_some_in_a_row);
    tcase_add_test(tc, one_long_trial_ends_it);
    tcase_add_test(tc, the_first_of_too_many_sweeps_is_forgotten);
    suite_add_tcase(s, tc);
    return s;
}
