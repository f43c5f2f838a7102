#include "cli/files/process.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/check_main.h"

START_TEST(own_start)
{
    unsigned long long start = process_start_ticks(getpid());
    ck_assert_uint_gt(start, 0);
    ck_assert_uint_eq(process_start_ticks(getpid()), start);
    ck_assert_uint_ge(start, process_start_ticks(getppid()));
}
END_TEST

START_TEST(no_process)
{
    ck_assert_uint_eq(process_start_ticks(0), 0);
    ck_assert_uint_eq(process_start_ticks(-1), 0);
    ck_assert_uint_eq(process_start_ticks(1 << 30), 0);
}
END_TEST

/* A zombie, a child that has ended and was not reaped, does not count as a process. */
START_TEST(zombie)
{
    pid_t pid = fork();
    if (pid == 0)
        for (;;)
            (void)pause();
    ck_assert_int_gt(pid, 0);
    ck_assert_uint_gt(process_start_ticks(pid), 0);
    ck_assert_int_eq(kill(pid, SIGKILL), 0);
    siginfo_t info;
    ck_assert_int_eq(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
    ck_assert_uint_eq(process_start_ticks(pid), 0);
    ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("process");
    TCase *t = tcase_create("process");
    tcase_add_test(t, own_start);
    tcase_add_test(t, no_process);
    tcase_add_test(t, zombie);
    suite_add_tcase(s, t);
    return s;
}
