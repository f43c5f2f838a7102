/* The main() of all Check programs: skipped tests give the exit status that Meson counts, a thread
 * that fails a test ends it well, and a test that ends the whole process is named. The program runs
 * itself, with a suite of the kind that ASSAY_TEST_SUITE names. */
#include "tests/support/check_main.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"

/* The exit status of the suite called `name`; NULL: of the program without an argument. */
static int run_named(const char *name, const char *kind)
{
    int status = -1;
    pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        (void)setenv("ASSAY_TEST_SUITE", kind, 1);
        (void)execl("/proc/self/exe", "test_support", name, (char *)NULL);
        _exit(127);
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static int run_suite(const char *kind)
{
    return run_named("check_main", kind);
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

/* A name that fits no file, or no name where there are several files, runs nothing. */
START_TEST(the_argument_names_one_suite)
{
    static const char *const one[] = {"check_main", "support/check_main",
                                      "tests/support/check_main"};
    for (size_t i = 0; i < AS_ARRAY_LEN(one); i++)
        ck_assert_int_eq(run_named(one[i], "fails"), 1);
    static const char *const none[] = {
        "", "main", "test_check_main", "check_main.c", "port/check_main", "/check_main", NULL};
    for (size_t i = 0; i < AS_ARRAY_LEN(none); i++)
        ck_assert_int_eq(run_named(none[i], "fails"), 64);
}
END_TEST

static void *fail_here(void *arg)
{
    ck_assert_msg(arg != NULL, "as it should, in a thread");
    return NULL;
}

/* The test's own thread goes on meanwhile, deeper in its stack than where Check would jump to. */
START_TEST(fails_in_threads)
{
    pthread_t threads[16];
    for (int i = 0; i < 16; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, fail_here, NULL), 0);
    for (int i = 0; i < 16; i++)
        ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
    ck_abort_msg("the threads have not failed");
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

/* Also where a test is no process of its own: not by a crash. */
START_TEST(a_thread_may_fail_a_test)
{
    static const char *const modes[] = {"no", "yes"};
    (void)setenv("CK_FORK", modes[_i], 1);
    ck_assert_int_eq(run_suite("thread"), 1);
}
END_TEST

START_TEST(dies)
{
    abort();
}
END_TEST

START_TEST(leaves)
{
    exit(0);
}
END_TEST

/* The tests of a program share a process. One that ends it makes the program fail, and a crash is
 * named. Check itself counts an exit(0) as passed. */
START_TEST(a_test_that_ends_the_process_is_named)
{
    static const char *const kinds[] = {"holds dies", "holds leaves"};
    static const char *const says[] = {":dies:", "Checks: 2, Failures: 0"};
    char out[] = "/tmp/assay-check-main-XXXXXX", text[4096];
    int fd = mkstemp(out), saved = dup(STDOUT_FILENO);
    ck_assert(fd >= 0 && saved >= 0);
    (void)unlink(out);
    (void)unsetenv("CK_FORK");
    (void)fflush(stdout);
    ck_assert_int_ge(dup2(fd, STDOUT_FILENO), 0);
    int code = run_suite(kinds[_i]);
    ck_assert_int_ge(dup2(saved, STDOUT_FILENO), 0);
    ssize_t n = pread(fd, text, sizeof text - 1, 0);
    ck_assert_int_gt(n, 0);
    text[n] = 0;
    ck_assert_int_eq(code, 1);
    ck_assert(strstr(text, says[_i]) != NULL);
    (void)close(fd);
    (void)close(saved);
}
END_TEST

TEST_SUITE()
{
    const char *kind = getenv("ASSAY_TEST_SUITE");
    Suite *s = suite_create("support_check_main");
    TCase *t = tcase_create("skips");
    suite_add_tcase(s, t);
    if (kind == NULL) {
        tcase_add_test(t, the_argument_names_one_suite);
        tcase_add_test(t, exit_status_counts_skips);
        tcase_add_loop_test(t, a_thread_may_fail_a_test, 0, 2);
        tcase_add_loop_test(t, a_test_that_ends_the_process_is_named, 0, 2);
        return s;
    }
    if (strstr(kind, "skipped") != NULL)
        add_test_if(t, holds, false, "for this test");
    if (strstr(kind, "holds") != NULL)
        tcase_add_test(t, holds);
    if (strstr(kind, "fails") != NULL)
        tcase_add_test(t, fails);
    if (strstr(kind, "dies") != NULL)
        tcase_add_test(t, dies);
    if (strstr(kind, "leaves") != NULL)
        tcase_add_test(t, leaves);
    if (strstr(kind, "thread") != NULL)
        tcase_add_test(t, fails_in_threads);
    return s;
}
