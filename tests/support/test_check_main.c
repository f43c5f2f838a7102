/* The main() of all Check programs: skipped tests give the exit status that Meson counts. The
 * program runs itself, with a suite of the kind that ASSAY_TEST_SUITE names. */
#include "tests/support/check_main.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int run_suite(const char *kind)
{
    int status = -1;
    pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        (void)setenv("ASSAY_TEST_SUITE", kind, 1);
        (void)execl("/proc/self/exe", "test_check_main", (char *)NULL);
        _exit(127);
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert(WIFEXITED(status));
    return WEXITSTATUS(status);
}

START_TEST(holds)
{
    ck_assert(true);
}
END_TEST

START_TEST(fails)
{
    ck_abort_msg("as it should");
}
END_TEST

START_TEST(exit_status_counts_skips)
{
    ck_assert_int_eq(run_suite("skipped"), 77);
    ck_assert_int_eq(run_suite("skipped holds"), 0); /* a test ran */
    ck_assert_int_eq(run_suite("skipped holds fails"), 1);
    ck_assert_int_eq(run_suite("empty"), 0);
}
END_TEST

Suite *test_suite(void)
{
    const char *kind = getenv("ASSAY_TEST_SUITE");
    Suite *s = suite_create("support_check_main");
    TCase *t = tcase_create("skips");
    suite_add_tcase(s, t);
    if (kind == NULL) {
        tcase_add_test(t, exit_status_counts_skips);
        return s;
    }
    if (strstr(kind, "skipped") != NULL)
        add_test_if(t, holds, false, "for this test");
    if (strstr(kind, "holds") != NULL)
        tcase_add_test(t, holds);
    if (strstr(kind, "fails") != NULL)
        tcase_add_test(t, fails);
    return s;
}
