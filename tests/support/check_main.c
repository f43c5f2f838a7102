/* The one main() of every Check program: each test file defines `Suite *test_suite(void)`. */
#include <check.h>
#include <stdlib.h>

#include "tests/support/check_main.h"

int main(void)
{
    /* Check's own limit is 4 s for a test, which a busy machine reaches. This one only names the
     * test that hangs, shortly before Meson ends the program. */
    (void)setenv("CK_DEFAULT_TIMEOUT", "540", 0);
    SRunner *sr = srunner_create(test_suite());
    srunner_run_all(sr, CK_ENV);
    int failed = srunner_ntests_failed(sr);
    srunner_free(sr);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
