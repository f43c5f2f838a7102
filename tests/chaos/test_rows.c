/* The invariants of the tables (tests/support/service.c), on a database that chaos leaves: chaos.py
 * runs this program with its URL in CHAOS_DATABASE. */
#include <stdlib.h>

#include "tests/support/check_main.h"
#include "tests/support/service.h"

START_TEST(test_invariants)
{
    static struct service s;
    const char *url = getenv("CHAOS_DATABASE");
    ck_assert_msg(url != NULL, "CHAOS_DATABASE is not set; tests/chaos/chaos.py sets it");
    (void)snprintf(s.url, sizeof s.url, "%s", url);
    check_invariants(&s);
}
END_TEST

TEST_SUITE()
{
    Suite *suite = suite_create("rows");
    TCase *tc = tcase_create("rows");
    tcase_add_test(tc, test_invariants);
    suite_add_tcase(suite, tc);
    return suite;
}
