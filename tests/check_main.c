/* The one main() of every Check program: each test file defines `Suite *test_suite(void)`. */
#include <check.h>
#include <stdlib.h>

#include "tests/check_main.h"

int main(void)
{
    SRunner *sr = srunner_create(test_suite());
    srunner_run_all(sr, CK_ENV);
    int failed = srunner_ntests_failed(sr);
    srunner_free(sr);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
