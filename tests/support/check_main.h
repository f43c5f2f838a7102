/* What every Check test file includes: Check itself, and the list of suites of its program. A file
 * joins the list by defining
 *
 *     TEST_SUITE()
 *     {
 *         Suite *s = suite_create("what is tested");
 *         …
 *         return s;
 *     }
 *
 * and main() runs the one suite that the program's argument names (check_main.c). */
#ifndef ASSAY_TESTS_SUPPORT_CHECK_MAIN_H
#define ASSAY_TESTS_SUPPORT_CHECK_MAIN_H

#include <check.h>

#include "base/status.h"

/* By default Check records each passing assertion, in case the test crashes: one write() for each,
 * and at the end a pass over all of them in quadratic time. Some tests have millions. Without the
 * record a crash is reported with the line where its test begins, and a sanitizer reports the
 * rest. */
#undef _mark_point
#define _mark_point(file, line) ((void)0)

/* A failed assertion ends its test by longjmp where tests are no processes of their own
 * (CK_FORK=no), which only the test's own thread may do. In another thread it ends the program,
 * with its message. */
void assert_failed_in_thread(const char *file, int line, const char *expr, const char *msg, ...)
    __attribute__((format(printf, 4, 5)));
#define _ck_assert_failed(file, line, expr, ...)                                                   \
    (assert_failed_in_thread(file, line, expr, __VA_ARGS__),                                       \
     _ck_assert_failed(file, line, expr, __VA_ARGS__))

/* How long a test waits for an event that must come. It bounds no speed; it only ends a hang. */
#define PATIENCE_MS 240000

/* Is this a build with a sanitizer? Whole trainings take up to ten times as long there; a test may
 * then repeat less of the same code, and never checks less of what it does run. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define IS_SANITIZED true
#else
#define IS_SANITIZED false
#endif

/* A file's suite on the list of its program. */
struct test_file {
    const char *path;
    Suite *(*suite)(void);
    struct test_file *next;
};
void test_file_join(struct test_file *file);

/* The head of the function that makes the file's suite: a constructor puts it on the list. */
#define TEST_SUITE()                                                                               \
    static Suite *test_suite(void);                                                                \
    __attribute__((constructor)) static void join_test_files(void)                                 \
    {                                                                                              \
        static struct test_file this_test_file = {__FILE__, test_suite, NULL};                     \
        test_file_join(&this_test_file);                                                           \
    }                                                                                              \
    static Suite *test_suite(void)

/* Count `n` tests as skipped. Called in TEST_SUITE(), instead of adding them to a case, when this
 * machine lacks what they need. The program prints each call's count with its reason, and exits 77
 * if no other test is left to run. `name` and `reason` are kept. A test never returns early to
 * skip. */
void skip_tests(const char *name, size_t n, const char *reason);

/* Add the test if `holds`; otherwise it counts as skipped for this reason. */
#define add_test_if(tcase, test, holds, reason)                                                    \
    do {                                                                                           \
        if (holds)                                                                                 \
            tcase_add_test((tcase), test);                                                         \
        else                                                                                       \
            skip_tests(#test, 1, (reason));                                                        \
    } while (0)

/* st must be AS_OK; prints err.msg otherwise. */
#define ck_ok(st, err) ck_assert_msg((st) == AS_OK, "%s: %s", as_status_name(st), (err).msg)

/* st must be `want`, and the message must contain `part`. */
#define ck_fails(st, want, err, part)                                                              \
    do {                                                                                           \
        as_status ck_st_ = (st);                                                                   \
        ck_assert_msg(ck_st_ == (want), "got %s, wanted %s: %s", as_status_name(ck_st_),           \
                      as_status_name(want), (err).msg);                                            \
        ck_assert_msg(strstr((err).msg, (part)) != NULL, "'%s' is not in: %s", (part), (err).msg); \
    } while (0)

#endif
