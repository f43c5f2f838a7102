#include "cli/up/leftover.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "cli/files/process.h"
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

START_TEST(leftovers)
{
    struct as_err err = {0};
    char notes[100], line[100];
    (void)snprintf(notes, sizeof notes, "%s/notes", dir);
    ck_ok(leftover_stop(notes, &err), err); /* there are no notes */
    /* Blocked until the child has left Check's handler, which would end this test. */
    sigset_t term, none, before;
    (void)sigemptyset(&none);
    (void)sigemptyset(&term);
    (void)sigaddset(&term, SIGTERM);
    (void)sigprocmask(SIG_BLOCK, &term, &before);
    pid_t pid = fork();
    if (pid == 0) {
        (void)signal(SIGTERM, SIG_DFL);
        (void)sigprocmask(SIG_SETMASK, &none, NULL); /* other tests have blocked signals */
        (void)pause();
        _exit(0);
    }
    (void)sigprocmask(SIG_SETMASK, &before, NULL);
    unsigned long long start = process_start_ticks(pid);
    ck_assert_uint_gt(start, 0);
    /* Another start time means another process with the same pid. It must not be stopped. */
    int n = snprintf(line, sizeof line, "x %d %llu\nnonsense\n", (int)pid, start + 1);
    ck_ok(file_replace(notes, line, (size_t)n, 0600, &err), err);
    ck_ok(leftover_stop(notes, &err), err);
    ck_assert_int_eq(waitpid(pid, NULL, WNOHANG), 0);
    n = snprintf(line, sizeof line, "x %d %llu\n", (int)pid, start);
    ck_ok(file_replace(notes, line, (size_t)n, 0600, &err), err);
    ck_ok(leftover_stop(notes, &err), err);
    int status;
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(WTERMSIG(status), SIGTERM);
    ck_assert_uint_eq(process_start_ticks(pid), 0);
    /* postmaster.pid names a process that is not a postgres. */
    (void)snprintf(line, sizeof line, "%s/postmaster.pid", dir);
    char self[32];
    n = snprintf(self, sizeof self, "%d\n", (int)getpid());
    ck_ok(file_replace(line, self, (size_t)n, 0600, &err), err);
    ck_ok(leftover_stop_postmaster(dir, &err), err);
}
END_TEST

/* A process that, after SIGTERM, waits until its neighbour has received SIGTERM, too. */
static pid_t start_waiting_for(const char *mine, const char *other)
{
    char script[400];
    (void)snprintf(script, sizeof script,
                   "cd %s; trap ': >%s.asked; while ! [ -e %s.asked ]; do sleep 0.01; done; exit 0'"
                   " TERM; : >%s.up; while :; do sleep 0.01; done",
                   dir, mine, other, mine);
    pid_t pid = fork();
    if (pid == 0) {
        sigset_t none;
        (void)sigemptyset(&none);
        (void)sigprocmask(SIG_SETMASK, &none, NULL);
        (void)execl("/bin/sh", "sh", "-c", script, NULL);
        _exit(127);
    }
    char up[120];
    (void)snprintf(up, sizeof up, "%s/%s.up", dir, mine);
    while (access(up, F_OK) != 0)
        clock_sleep_ms(5);
    return pid;
}

START_TEST(leftovers_end_together)
{
    struct as_err err = {0};
    char notes[100], lines[200];
    (void)snprintf(notes, sizeof notes, "%s/notes", dir);
    pid_t pids[] = {start_waiting_for("a", "b"), start_waiting_for("b", "a")};
    int n = snprintf(lines, sizeof lines, "runner-1 %d %llu\nrunner-2 %d %llu\n", (int)pids[0],
                     process_start_ticks(pids[0]), (int)pids[1], process_start_ticks(pids[1]));
    ck_ok(file_replace(notes, lines, (size_t)n, 0600, &err), err);
    ck_ok(leftover_stop(notes, &err), err);
    for (size_t i = 0; i < 2; i++) {
        int status;
        ck_assert_int_eq(waitpid(pids[i], &status, 0), pids[i]);
        ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("leftover");
    TCase *t = tcase_create("leftover");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, leftovers);
    tcase_add_test(t, leftovers_end_together);
    suite_add_tcase(s, t);
    return s;
}
