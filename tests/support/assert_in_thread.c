/* Assertions that fail in another thread than the test's. */
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/check_main.h"

void assert_failed_in_thread(const char *file, int line, const char *expr, const char *msg, ...)
{
    static atomic_flag has_failed = ATOMIC_FLAG_INIT;
    const char *fork_mode = getenv("CK_FORK");
    if (!fork_mode || strcmp(fork_mode, "no") != 0 || gettid() == getpid())
        return;
    while (atomic_flag_test_and_set(&has_failed)) /* another one ends the program */
        (void)pause();
    (void)fprintf(stderr, "%s:%d:F: in a thread of the test: %s", file, line, expr);
    if (msg) {
        va_list ap;
        (void)fputs(": ", stderr);
        va_start(ap, msg);
        (void)vfprintf(stderr, msg, ap);
        va_end(ap);
    }
    (void)fputc('\n', stderr);
    exit(EXIT_FAILURE); /* what tests have left to atexit() is done */
}
