#include "tests/support/check_main.h"

#include <signal.h>
#include <string.h>

#include "base/clock.h"
#include "trial-runner/process/verdict.h"

#define EXITED(code) ((code) << 8)
#define SIGNALED(sig) (sig)

static const struct {
    stop_why why;
    int wait_status;
    bool killed; /* by us */
    outcome want;
    int code;
    const char *reason;
} ends[] = {
    {STOP_NONE, EXITED(0), false, OUTCOME_COMPLETED, 0, ""},
    {STOP_NONE, EXITED(75), false, OUTCOME_RETRY, 75, "exit 75: last words"},
    {STOP_NONE, EXITED(1), false, OUTCOME_FAILED, 1, "exit 1: last words"},
    {STOP_NONE, EXITED(255), false, OUTCOME_FAILED, 255, "exit 255: last words"},
    {STOP_NONE, SIGNALED(SIGKILL), false, OUTCOME_RETRY, -9, "killed by signal 9: the system"},
    {STOP_NONE, SIGNALED(SIGSEGV), false, OUTCOME_FAILED, -11,
     "killed by signal 11 (Segmentation fault): last words"},
    {STOP_NONE, SIGNALED(SIGTERM), false, OUTCOME_FAILED, -15, "killed by signal 15"},
    {STOP_TIMEOUT, SIGNALED(SIGTERM), false, OUTCOME_TIMEOUT, -15, "trial_timeout (2.0 s)"},
    {STOP_TIMEOUT, EXITED(0), false, OUTCOME_TIMEOUT, 0, "trial_timeout"},
    {STOP_TIMEOUT, SIGNALED(SIGKILL), true, OUTCOME_TIMEOUT, -9, "trial_timeout"},
    {STOP_CROWDED, EXITED(75), false, OUTCOME_RELEASED, 75, "no room"},
    {STOP_DRAIN, EXITED(0), false, OUTCOME_RELEASED, 0, "leaving"},
    {STOP_DRAIN, EXITED(75), false, OUTCOME_RELEASED, 75, "leaving"},
    {STOP_DRAIN, EXITED(1), false, OUTCOME_RELEASED, 1, "leaving"},
    {STOP_DRAIN, SIGNALED(SIGKILL), true, OUTCOME_RELEASED, -9, "leaving"},
    {STOP_PAUSE, EXITED(0), false, OUTCOME_PAUSED, 0, "early stopping"},
    {STOP_PAUSE, EXITED(75), false, OUTCOME_PAUSED, 75, "early stopping"},
    {STOP_PAUSE, SIGNALED(SIGKILL), true, OUTCOME_PAUSED, -9, "early stopping"},
    {STOP_PRUNE, EXITED(0), false, OUTCOME_PRUNED, 0, "early stopping"},
    {STOP_PRUNE, EXITED(1), false, OUTCOME_PRUNED, 1, "early stopping"},
    {STOP_PRUNE, SIGNALED(SIGTERM), false, OUTCOME_PRUNED, -15, "early stopping"},
    {STOP_DROPPED, EXITED(0), false, OUTCOME_NONE, 0, ""},
    {STOP_DROPPED, SIGNALED(SIGKILL), true, OUTCOME_NONE, -9, ""},
};

START_TEST(every_end_has_a_meaning)
{
    AS_AUTO(verdict_done) struct verdict v = {0};
    struct stopping s = {
        .why = ends[_i].why, .killed = ends[_i].killed, .timeout_ns = 2 * NS_PER_S};
    verdict_of(&s, ends[_i].wait_status, "last words", &v);
    ck_assert_int_eq(v.outcome, ends[_i].want);
    ck_assert_int_eq(v.exit_code, ends[_i].code);
    ck_assert_msg(strstr(str_cstr(&v.reason), ends[_i].reason) != NULL, "%s", str_cstr(&v.reason));
}
END_TEST

START_TEST(a_stop_before_the_process_has_a_meaning)
{
    static const struct {
        stop_why why;
        outcome want;
        const char *reason;
    } cases[] = {
        {STOP_LATE, OUTCOME_RELEASED, "no slot"}, {STOP_CROWDED, OUTCOME_RELEASED, "no room"},
        {STOP_DRAIN, OUTCOME_RELEASED, "leav"},   {STOP_PAUSE, OUTCOME_PAUSED, "paused"},
        {STOP_PRUNE, OUTCOME_PRUNED, "ended"},    {STOP_DROPPED, OUTCOME_NONE, ""}};
    for (size_t i = 0; i < AS_ARRAY_LEN(cases); i++) {
        ck_assert_int_eq(verdict_unstarted(cases[i].why), cases[i].want);
        ck_assert(strstr(verdict_stop_reason(cases[i].why), cases[i].reason));
        ck_assert(stop_is_early(cases[i].why) == (i == 3 || i == 4));
    }
    ck_assert(!stop_is_early(STOP_NONE) && !stop_is_early(STOP_TIMEOUT));
}
END_TEST

START_TEST(names_round_trip)
{
    for (outcome o = OUTCOME_COMPLETED; o < OUTCOME_NONE; o++) {
        outcome back = OUTCOME_NONE;
        ck_assert(outcome_parse(outcome_name(o), &back));
        ck_assert_int_eq(back, o);
    }
    outcome o;
    ck_assert(!outcome_parse("lost", &o));
    ck_assert_ptr_null(outcome_name(OUTCOME_NONE));
}
END_TEST

START_TEST(nothing_is_sent_without_a_reason)
{
    struct stopping s = {.started_ns = 5, .grace_ns = 10};
    ck_assert_int_eq(stopping_step(&s, INT64_MAX / 2), STOP_SEND_NONE);
    ck_assert(stopping_next_ns(&s) == INT64_MAX);
}
END_TEST

START_TEST(timeout_then_grace_then_kill)
{
    struct stopping s = {.started_ns = 100, .timeout_ns = 50, .grace_ns = 20};
    ck_assert(stopping_next_ns(&s) == 150);
    ck_assert_int_eq(stopping_step(&s, 149), STOP_SEND_NONE);
    ck_assert_int_eq(stopping_step(&s, 150), STOP_SEND_TERM);
    ck_assert_int_eq(s.why, STOP_TIMEOUT);
    ck_assert(stopping_next_ns(&s) == 170);
    ck_assert_int_eq(stopping_step(&s, 169), STOP_SEND_NONE);
    stopping_ask(&s, STOP_DRAIN); /* does not start the grace period again */
    ck_assert_int_eq(stopping_step(&s, 169), STOP_SEND_NONE);
    ck_assert_int_eq(stopping_step(&s, 170), STOP_SEND_KILL);
    ck_assert_int_eq(stopping_step(&s, 999), STOP_SEND_NONE);
    ck_assert(stopping_next_ns(&s) == INT64_MAX);
}
END_TEST

START_TEST(the_heavier_reason_counts)
{
    struct stopping s = {0};
    stopping_ask(&s, STOP_DRAIN);
    stopping_ask(&s, STOP_TIMEOUT);
    ck_assert_int_eq(s.why, STOP_DRAIN);
    stopping_ask(&s, STOP_PAUSE);
    stopping_ask(&s, STOP_DRAIN);
    ck_assert_int_eq(s.why, STOP_PAUSE);
    stopping_ask(&s, STOP_PRUNE);
    ck_assert(s.why == STOP_PRUNE && stop_is_early(s.why));
    stopping_ask(&s, STOP_DROPPED);
    stopping_ask(&s, STOP_NONE);
    ck_assert_int_eq(s.why, STOP_DROPPED);
    ck_assert_int_eq(stopping_step(&s, 1), STOP_SEND_TERM);
    ck_assert_int_eq(stopping_step(&s, 1), STOP_SEND_KILL); /* no grace at all */
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("verdict");
    TCase *t = tcase_create("verdict");
    tcase_add_loop_test(t, every_end_has_a_meaning, 0, (int)AS_ARRAY_LEN(ends));
    tcase_add_test(t, a_stop_before_the_process_has_a_meaning);
    tcase_add_test(t, names_round_trip);
    tcase_add_test(t, nothing_is_sent_without_a_reason);
    tcase_add_test(t, timeout_then_grace_then_kill);
    tcase_add_test(t, the_heavier_reason_counts);
    suite_add_tcase(s, t);
    return s;
}
