#include "cli/up/supervisor.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/file.h"
#include "tests/support/check_main.h"
#include "tests/support/temp_folder.h"

static char dir[TEMP_FOLDER_SIZE];

static void setup(void)
{
    temp_folder_make(dir);
}

static void teardown(void)
{
    temp_folder_remove(dir);
}

START_TEST(backoff)
{
    ck_assert_int_eq(supervisor_backoff_ms(1), 200);
    ck_assert_int_eq(supervisor_backoff_ms(2), 400);
    ck_assert_int_eq(supervisor_backoff_ms(6), 6400);
    ck_assert_int_eq(supervisor_backoff_ms(7), 10000);
    ck_assert_int_eq(supervisor_backoff_ms(4000000000U), 10000);
}
END_TEST

/* A child that dies is restarted; a child that ignores SIGTERM is killed. */
START_TEST(supervision)
{
    struct as_err err = {0};
    char notes[100], log[100], marks[100];
    (void)snprintf(notes, sizeof notes, "%s/notes", dir);
    (void)snprintf(log, sizeof log, "%s/log", dir);
    (void)snprintf(marks, sizeof marks, "%s/marks", dir);
    AS_AUTO(supervisor_freep) struct supervisor *s = supervisor_create(notes);
    ck_assert_ptr_nonnull(s);
    const char *const dies[] = {"/bin/sh", "-c", "echo x >> \"$MARKS\"; exit 3", NULL};
    const char *const stubborn[] = {"/bin/sh", "-c",
                                    "trap '' TERM; echo up; while :; do sleep 1; done", NULL};
    static const struct stop_step stop[] = {{SIGTERM, 100}, {0, 0}};
    struct spawn_spec spec = {
        .argv = dies, .log_path = log, .death_signal = SIGKILL, .set_env = {{"MARKS", marks}}};
    int a, b;
    ck_ok(supervisor_add(s, "dies", &spec, stop, &a, &err), err);
    spec.argv = stubborn;
    ck_ok(supervisor_add(s, "stubborn", &spec, stop, &b, &err), err);
    ck_ok(supervisor_start(s, a, &err), err);
    ck_ok(supervisor_start(s, b, &err), err);
    while (supervisor_deaths(s, a) < 2)
        ck_assert(supervisor_wait(s, PATIENCE_MS));
    ck_assert_int_eq(WEXITSTATUS(supervisor_last_status(s, a)), 3);
    ck_assert(supervisor_running(s, b));
    for (AS_AUTO(as_freep) char *text = NULL; !text || !strstr(text, "up");) {
        free(text);
        text = supervisor_log_end(log);
        ck_assert(supervisor_wait(s, 10));
    }
    supervisor_stop(s, a, b);
    ck_assert(!supervisor_running(s, a));
    ck_assert(!supervisor_running(s, b));
    ck_assert_int_eq(WTERMSIG(supervisor_last_status(s, b)), SIGKILL);
    ck_assert(!supervisor_wait(s, 0));
}
END_TEST

/* Says why a child must wait, as often as *ctx says. */
static bool wait_a_little(const void *ctx, char *ret_why, size_t size)
{
    int *left = *(int *const *)ctx;
    (void)snprintf(ret_why, size, "the test says so");
    return *left > 0 && --*left >= 0;
}

/* A child that died twice is not started again while it must wait, and is started then. */
START_TEST(waiting)
{
    struct as_err err = {0};
    char notes[100], log[100];
    int left = 2, index, *ctx = &left;
    (void)snprintf(notes, sizeof notes, "%s/notes", dir);
    (void)snprintf(log, sizeof log, "%s/log", dir);
    AS_AUTO(supervisor_freep) struct supervisor *s = supervisor_create(notes);
    const char *const dies[] = {"/bin/sh", "-c", "exit 3", NULL};
    const struct spawn_spec spec = {.argv = dies, .log_path = log, .death_signal = SIGKILL};
    ck_ok(supervisor_add(s, "dies", &spec, stop_server, &index, &err), err);
    supervisor_set_wait(s, index, wait_a_little, &ctx);
    ck_ok(supervisor_start(s, index, &err), err);
    while (supervisor_deaths(s, index) < 2)
        ck_assert(supervisor_wait(s, PATIENCE_MS));
    while (left > 0) {
        ck_assert_uint_eq(supervisor_deaths(s, index), 2);
        ck_assert(supervisor_wait(s, PATIENCE_MS));
    }
    while (supervisor_deaths(s, index) < 3)
        ck_assert(supervisor_wait(s, PATIENCE_MS));
    supervisor_stop(s, index, index);
}
END_TEST

START_TEST(commands)
{
    struct as_err err = {0};
    char notes[100], log[100];
    (void)snprintf(notes, sizeof notes, "%s/notes", dir);
    (void)snprintf(log, sizeof log, "%s/log", dir);
    AS_AUTO(supervisor_freep) struct supervisor *s = supervisor_create(notes);
    const char *const good[] = {"/bin/cat", NULL};
    const char *const bad[] = {"/bin/sh", "-c", "echo went wrong; exit 4", NULL};
    const char *const none[] = {"/nowhere/x", NULL};
    const char *const slow[] = {"/bin/sleep", "100", NULL};
    struct spawn_spec spec = {
        .argv = good, .log_path = log, .input = "hello\n", .death_signal = SIGKILL};
    ck_ok(supervisor_run(s, "cat", &spec, PATIENCE_MS, &err), err);
    AS_AUTO(as_freep) char *text = supervisor_log_end(log);
    ck_assert_str_eq(text, "hello");
    spec.argv = bad;
    ck_fails(supervisor_run(s, "bad", &spec, PATIENCE_MS, &err), AS_E_IO, err, "code 4");
    spec.argv = none;
    ck_fails(supervisor_run(s, "none", &spec, PATIENCE_MS, &err), AS_E_IO, err, "code 127");
    spec.argv = slow;
    ck_fails(supervisor_run(s, "slow", &spec, 50, &err), AS_E_TIMEOUT, err, "slow");
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("supervisor");
    TCase *t = tcase_create("supervisor");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, backoff);
    tcase_add_test(t, supervision);
    tcase_add_test(t, waiting);
    tcase_add_test(t, commands);
    suite_add_tcase(s, t);
    return s;
}
