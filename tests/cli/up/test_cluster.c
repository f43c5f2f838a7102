#include "cli/up/cluster.h"

#include "tests/support/check_main.h"

START_TEST(numbers)
{
    ck_assert_int_eq(cluster_buffers_mb(256), 32);
    ck_assert_int_eq(cluster_buffers_mb(4096), 256);
    ck_assert_int_eq(cluster_buffers_mb(1 << 20), 512);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("cluster");
    TCase *t = tcase_create("cluster");
    tcase_add_test(t, numbers);
    suite_add_tcase(s, t);
    return s;
}
