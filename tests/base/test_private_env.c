/* Which variables are the service's own. That they are hidden from /proc is tested with programs:
 * tests/trial-runner/agent/test_runner.c, tests/cli/test_up.py. */
#include "base/private_env.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/mem.h"
#include "tests/support/check_main.h"

START_TEST(the_services_own_variables)
{
    static const char *const own[] = {"ASSAY_TOKEN=x",         "ASSAY_DATABASE", "AWS_REGION=r",
                                      "AWS_SECRET_ACCESS_KEY", "S3_ENDPOINT=u",  "PGPASSWORD=p",
                                      "ASSAY_THREADS_X=1",     "ASSAY_="};
    static const char *const others[] = {
        "ASSAY_THREADS=4", "ASSAY_BACKEND",        "PATH=/bin",       "HOME=/root",
        "LANG=C",          "LD_LIBRARY_PATH=/lib", "CUDA_HOME=/cuda", "VIRTUAL_ENV=/v",
        "CONDA_PREFIX=/c", "WANDB_API_KEY=k",      "HF_TOKEN=t",      "XAWS_REGION=r",
        "http_proxy=p"};
    for (size_t i = 0; i < AS_ARRAY_LEN(own); i++)
        ck_assert_msg(private_env_is(own[i]), "%s", own[i]);
    for (size_t i = 0; i < AS_ARRAY_LEN(others); i++)
        ck_assert_msg(!private_env_is(others[i]), "%s", others[i]);
}
END_TEST

static bool keeps_the_region(const char *pair)
{
    static const char *const names[] = {"AWS_REGION"};
    return private_env_has_name(pair, names, 1);
}

START_TEST(drop_and_hide)
{
    struct as_err err;
    ck_assert_int_eq(setenv("AWS_REGION", "r", 1), 0);
    ck_assert_int_eq(setenv("AWS_SECRET_ACCESS_KEY", "s", 1), 0);
    ck_assert_int_eq(setenv("HF_TOKEN", "t", 1), 0);
    ck_ok(private_env_hide(&err), err);
    ck_assert_str_eq(getenv("AWS_SECRET_ACCESS_KEY"), "s"); /* for this program and its children */
    private_env_drop(keeps_the_region);
    ck_assert_ptr_null(getenv("AWS_SECRET_ACCESS_KEY"));
    ck_assert_str_eq(getenv("AWS_REGION"), "r");
    ck_assert_str_eq(getenv("HF_TOKEN"), "t");
    for (char **e = environ; *e; e++)
        ck_assert(!private_env_is(*e) || keeps_the_region(*e));
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("environment");
    TCase *t = tcase_create("environment");
    tcase_add_test(t, the_services_own_variables);
    tcase_add_test(t, drop_and_hide);
    suite_add_tcase(s, t);
    return s;
}
