/* Programs of the engines: what they print, how they fail, and a signal meanwhile. */
#include "cli/fleet/command.h"

#include <signal.h>
#include <string.h>
#include <sys/time.h>

#include "tests/support/check_main.h"

#define TIMEOUT_MS 60000

static struct as_err err;

static as_status sh(const char *script, const char *input, struct str *out)
{
    const char *argv[] = {"sh", "-c", script, NULL};
    return command_run(argv, input, TIMEOUT_MS, out, &err);
}

START_TEST(what_it_prints_and_how_it_fails)
{
    AS_AUTO(str_done) struct str out = {0};
    const char *missing[] = {"no-such-program", NULL};
    ck_ok(sh("cat; echo more >&2", "text", &out), err);
    ck_assert_str_eq(str_cstr(&out), "text");
    ck_assert_int_eq(sh("echo 'exceeded quota' >&2; exit 1", NULL, &out), AS_E_CONFLICT);
    ck_assert_str_eq(err.msg, "sh: exceeded quota");
    ck_assert_int_eq(command_run(missing, NULL, TIMEOUT_MS, &out, &err), AS_E_NOT_FOUND);
}
END_TEST

static void on_alarm(int number)
{
    (void)number;
}

/* Ctrl-C comes while it runs: its end is seen nevertheless. */
START_TEST(a_signal_meanwhile)
{
    AS_AUTO(str_done) struct str out = {0};
    struct sigaction handle = {.sa_handler = on_alarm};
    struct itimerval often = {.it_interval = {.tv_usec = 5000}, .it_value = {.tv_usec = 5000}};
    struct itimerval never = {0};
    ck_assert_int_eq(sigaction(SIGALRM, &handle, NULL), 0);
    ck_assert_int_eq(setitimer(ITIMER_REAL, &often, NULL), 0);
    as_status st = sh("sleep 0.1; echo done", NULL, &out);
    ck_assert_int_eq(setitimer(ITIMER_REAL, &never, NULL), 0);
    ck_ok(st, err);
    ck_assert_str_eq(str_cstr(&out), "done\n");
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("command");
    TCase *t = tcase_create("command");
    tcase_set_timeout(t, 2 * TIMEOUT_MS / 1000);
    tcase_add_test(t, what_it_prints_and_how_it_fails);
    tcase_add_test(t, a_signal_meanwhile);
    suite_add_tcase(s, t);
    return s;
}
