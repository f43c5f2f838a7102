/* Trials that are claimed while the one before them runs, on a runner with one slot. A trial is
 * short here if it takes less than ten minutes, where no test is about that. */
#include "tests/trial-runner/agent/runner_fixture.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/str.h"
#include "trial-runner/agent/pace.h"

#define SHORT "true"
#define BLOCKED PACE_SHORT_TRIALS       /* the number of the trial that waits for the gate */
#define WAITING (PACE_SHORT_TRIALS + 1) /* and of the one that is claimed meanwhile */

static char gate[TEMP_FOLDER_SIZE + 20], mark[TEMP_FOLDER_SIZE + 20];

static struct trial *offer_ahead(int number, const char *script)
{
    struct trial *t = offer_sh(number, script);
    LOCKED(json_object_set_new(t->claim, "gives_ahead", json_true()));
    return t;
}

static void begin(const char *short_is)
{
    (void)setenv("ASSAY_RUNNER_AHEAD", short_is, 1);
    (void)snprintf(gate, sizeof gate, "%s/gate", fx.dir);
    (void)snprintf(mark, sizeof mark, "%s/mark", fx.dir);
}

static void open_gate(void)
{
    FILE *f = fopen(gate, "w");
    ck_assert_ptr_nonnull(f);
    (void)fclose(f);
}

/* Short trials, one that ends when the gate opens, and one that says whether it is open. */
static void offer_all(void)
{
    AS_AUTO(str_done) struct str blocked = {0}, waiting = {0};
    for (int i = 0; i < PACE_SHORT_TRIALS; i++)
        (void)offer_ahead(i, SHORT);
    str_printf(&blocked, "while ! [ -e %s ]; do sleep 0.01; done", gate);
    str_printf(&waiting, "[ -e %s ] && echo after > %s || echo before > %s", gate, mark, mark);
    (void)offer_ahead(BLOCKED, str_cstr(&blocked));
    (void)offer_ahead(WAITING, str_cstr(&waiting));
}

/* The trial was claimed ahead, and is prepared: its folder is there. */
static void await_waiting(void)
{
    char path[200];
    (void)snprintf(path, sizeof path, "%s/trials/s/%d/1/params.json", fx.work, WAITING);
    AWAIT(access(path, F_OK) == 0);
    LOCKED(ck_assert_ptr_null(fx.trials[BLOCKED].completion));
    LOCKED(ck_assert_int_ge(fx.ahead_claims, 1));
}

static int64_t number_of(const struct trial *t, const char *field)
{
    fx_lock();
    const json_t *n = json_object_get(t->completion, field);
    int64_t value = n ? json_integer_value(n) : -1;
    fx_unlock();
    return value;
}

START_TEST(a_waiting_trial_starts_when_the_slot_is_free)
{
    char text[20] = "";
    begin("10m");
    offer_all();
    start_runner("--slots", "1");
    await_waiting();
    fx_lock();
    ck_assert_uint_ge(json_array_size(fx.ahead_ending), 1);
    fx_unlock();
    clock_sleep_ms(100); /* so long it waits at least; a process that began would have looked */
    open_gate();
    AWAIT(fx.trials[WAITING].completion);
    ck_assert_str_eq(outcome_of(&fx.trials[BLOCKED]), "completed");
    ck_assert_str_eq(outcome_of(&fx.trials[WAITING]), "completed");
    ck_assert_int_gt(number_of(&fx.trials[WAITING], "waited_ms"), 0);
    ck_assert_int_eq(number_of(&fx.trials[0], "waited_ms"), -1);
    FILE *f = fopen(mark, "r");
    ck_assert(f && fgets(text, sizeof text, f));
    (void)fclose(f);
    ck_assert_str_eq(text, "after\n");
    ck_assert_int_eq(end_runner(SIGTERM), 0);
}
END_TEST

START_TEST(it_goes_back_if_the_slot_stays_busy)
{
    begin("2s");
    offer_all();
    start_runner("--slots", "1");
    AWAIT(fx.trials[WAITING].completion);
    ck_assert_str_eq(outcome_of(&fx.trials[WAITING]), "released");
    ck_assert_str_eq(reason_of(&fx.trials[WAITING]), "no slot came free for it in time");
    ck_assert_int_eq(number_of(&fx.trials[WAITING], "ran_ms"), 0);
    LOCKED(ck_assert_ptr_null(fx.trials[BLOCKED].completion));
    open_gate();
    AWAIT(fx.trials[BLOCKED].completion);
    ck_assert_int_ne(access(mark, F_OK), 0);
    ck_assert_int_eq(end_runner(SIGTERM), 0);
}
END_TEST

START_TEST(it_goes_back_when_the_runner_leaves)
{
    begin("10m");
    offer_all();
    start_runner("--slots", "1");
    await_waiting();
    ck_assert_int_eq(end_runner(SIGTERM), 0);
    ck_assert_str_eq(outcome_of(&fx.trials[WAITING]), "released");
    ck_assert_str_eq(outcome_of(&fx.trials[BLOCKED]), "released");
    ck_assert_int_ne(access(mark, F_OK), 0);
}
END_TEST

START_TEST(a_directive_reaches_it)
{
    begin("10m");
    offer_all();
    start_runner("--slots", "1");
    await_waiting();
    fx_lock();
    fx.trials[WAITING].stop = true;
    int beats = fx.heartbeats;
    fx_unlock();
    AWAIT(fx.heartbeats >= beats + 2);
    open_gate();
    AWAIT(fx.trials[BLOCKED].completion);
    (void)offer_sh(WAITING + 1, SHORT); /* the slot is free for others */
    AWAIT(fx.trials[WAITING + 1].completion);
    LOCKED(ck_assert_ptr_null(fx.trials[WAITING].completion));
    ck_assert_int_ne(access(mark, F_OK), 0);
    ck_assert_int_eq(end_runner(SIGTERM), 0);
}
END_TEST

static void offer_short(int n, bool gives)
{
    for (int i = 0; i < n; i++)
        (void)(gives ? offer_ahead(i, SHORT) : offer_sh(i, SHORT));
}

static void await_short(int n)
{
    for (int i = 0; i < n; i++)
        AWAIT(fx.trials[i].completion);
}

/* Who gets nothing asks again after some trials only. */
START_TEST(it_is_asked_for_again_after_a_while)
{
    begin("10m");
    fx.no_ahead = true;
    offer_short(MAX_TRIALS, true);
    start_runner("--slots", "1");
    await_short(MAX_TRIALS);
    LOCKED(ck_assert_int_ge(fx.ahead_claims, 1));
    LOCKED(ck_assert_int_le(fx.ahead_claims, MAX_TRIALS / PACE_SHORT_TRIALS));
    ck_assert_int_eq(end_runner(SIGTERM), 0);
}
END_TEST

START_TEST(an_older_server_refuses_it)
{
    begin("10m");
    fx.refuses_ahead = 1;
    offer_short(MAX_TRIALS, true);
    start_runner("--slots", "1");
    await_short(MAX_TRIALS);
    LOCKED(ck_assert_int_eq(fx.refuses_ahead, 0));
    ck_assert_int_eq(end_runner(SIGTERM), 0);
}
END_TEST

/* Another server takes the end, which does not know that trials wait. */
START_TEST(an_older_server_takes_its_end)
{
    begin("10m");
    fx.refuses_waited = 1;
    offer_all();
    start_runner("--slots", "1");
    await_waiting();
    clock_sleep_ms(5);
    open_gate();
    AWAIT(fx.trials[WAITING].completion);
    ck_assert_str_eq(outcome_of(&fx.trials[WAITING]), "completed");
    LOCKED(ck_assert_int_eq(fx.refuses_waited, 0));
    ck_assert_int_eq(number_of(&fx.trials[WAITING], "waited_ms"), -1);
    ck_assert_int_eq(end_runner(SIGTERM), 0);
}
END_TEST

/* The server does not say that the sweep gives ahead; or the runner shall not ask. */
START_TEST(some_never_ask)
{
    begin(_i ? "0s" : "10m");
    offer_short(MAX_TRIALS, _i);
    start_runner("--slots", "1");
    await_short(MAX_TRIALS);
    LOCKED(ck_assert_int_eq(fx.ahead_claims, 0));
    ck_assert_int_eq(end_runner(SIGTERM), 0);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("agent_ahead");
    TCase *tc = tcase_create("ahead");
    tcase_set_timeout(tc, 2 * PATIENCE_MS / 1000);
    tcase_add_checked_fixture(tc, fx_setup, fx_teardown);
    tcase_add_test(tc, a_waiting_trial_starts_when_the_slot_is_free);
    tcase_add_test(tc, it_goes_back_if_the_slot_stays_busy);
    tcase_add_test(tc, it_goes_back_when_the_runner_leaves);
    tcase_add_test(tc, a_directive_reaches_it);
    tcase_add_test(tc, it_is_asked_for_again_after_a_while);
    tcase_add_test(tc, an_older_server_refuses_it);
    tcase_add_test(tc, an_older_server_takes_its_end);
    tcase_add_loop_test(tc, some_never_ask, 0, 2);
    suite_add_tcase(s, tc);
    return s;
}
