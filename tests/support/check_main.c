/* The one main() of every Check program: each test file defines `Suite *test_suite(void)`. */
#include "tests/support/check_main.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>

#define EXIT_SKIPPED 77 /* Meson counts this as skipped */

static size_t n_skipped;

void skip_tests(const char *name, size_t n, const char *reason)
{
    fprintf(stderr, "skipped: %zu test%s (%s): %s\n", n, n == 1 ? "" : "s", name, reason);
    n_skipped += n;
}

int main(void)
{
    /* Check's own limit is 4 s for a test, which a busy machine exceeds. This limit only serves to
     * name the test that hangs, shortly before Meson ends the program. */
    (void)setenv("CK_DEFAULT_TIMEOUT", "540", 0);
    SRunner *sr = srunner_create(test_suite());
    srunner_run_all(sr, CK_ENV);
    int failed = srunner_ntests_failed(sr), run = srunner_ntests_run(sr);
    srunner_free(sr);
    if (failed)
        return EXIT_FAILURE;
    return run == 0 && n_skipped > 0 ? EXIT_SKIPPED : EXIT_SUCCESS;
}
