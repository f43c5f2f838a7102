/* Parameters as environment variables: values, names that are no identifiers, and collisions. */
#include <string.h>

#include "base/json.h"
#include "base/str.h"
#include "tests/support/check_main.h"
#include "trial-runner/process/param_env.h"

static struct child_env env;

static void set(const char *params, const char *inactive)
{
    static const char *const base[] = {"PATH=/bin", NULL};
    struct as_err err;
    JSON_AUTO p = NULL;
    JSON_AUTO i = NULL;
    ck_ok(json_parse(params, strlen(params), &p, &err), err);
    ck_ok(json_parse(inactive, strlen(inactive), &i, &err), err);
    child_env_done(&env);
    ck_ok(child_env_init(&env, (char *const *)base, &err), err);
    ck_ok(param_env_set(&env, p, i, &err), err);
}

static const char *get(const char *name)
{
    return child_env_get(&env, name);
}

START_TEST(values)
{
    set("{\"lr\":0.1,\"n\":3,\"kind\":\"a b=c\\n'$x\",\"on\":true,\"e\":\"\",\"Lr\":1e-300}",
        "[\"momentum\"]");
    ck_assert_str_eq(get("ASSAY_PARAM_lr"), "0.1");
    ck_assert_str_eq(get("ASSAY_PARAM_Lr"), "1e-300");
    ck_assert_str_eq(get("ASSAY_PARAM_n"), "3");
    ck_assert_str_eq(get("ASSAY_PARAM_kind"), "a b=c\n'$x");
    ck_assert_str_eq(get("ASSAY_PARAM_on"), "true");
    ck_assert_str_eq(get("ASSAY_PARAM_e"), "");
    ck_assert_ptr_null(get("ASSAY_PARAM_momentum"));
    ck_assert_str_eq(get("PATH"), "/bin");
}
END_TEST

START_TEST(names)
{
    set("{\"opt.kind\":1,\"a-b\":2,\"x.y\":3,\"x-y\":4,\"z.y\":5,\"z_y\":6,\"_u\":7}", "[]");
    ck_assert_str_eq(get("ASSAY_PARAM_opt_kind"), "1");
    ck_assert_str_eq(get("ASSAY_PARAM_a_b"), "2");
    ck_assert_ptr_null(get("ASSAY_PARAM_x_y"));    /* of two parameters: of none */
    ck_assert_str_eq(get("ASSAY_PARAM_z_y"), "6"); /* it is its own name */
    ck_assert_str_eq(get("ASSAY_PARAM__u"), "7");
    set("{\"z_y\":6,\"z.y\":5}", "[]"); /* the order does not matter */
    ck_assert_str_eq(get("ASSAY_PARAM_z_y"), "6");
    set("{\"x.y\":3}", "[\"x-y\"]"); /* nor does it matter that one is not active */
    ck_assert_ptr_null(get("ASSAY_PARAM_x_y"));
    set("{\"z.y\":5}", "[\"z_y\"]");
    ck_assert_ptr_null(get("ASSAY_PARAM_z_y"));
    set("{\"opt/lr\":1,\"learning rate\":2,\"größe\":3}", "[\"gr__e\"]");
    ck_assert_str_eq(get("ASSAY_PARAM_opt_lr"), "1");
    ck_assert_str_eq(get("ASSAY_PARAM_learning_rate"), "2");
    ck_assert_ptr_null(get("ASSAY_PARAM_gr__e")); /* letters beyond ASCII: there is no variable */
}
END_TEST

START_TEST(large_values)
{
    AS_AUTO(str_done) struct str text = {0};
    str_puts(&text, "{\"small\":1,\"large\":\"");
    for (int i = 0; i <= PARAM_ENV_VALUE_MAX; i++)
        str_putc(&text, 'x');
    str_puts(&text, "\"}");
    set(str_cstr(&text), "[]");
    ck_assert_str_eq(get("ASSAY_PARAM_small"), "1");
    ck_assert_ptr_null(get("ASSAY_PARAM_large"));
}
END_TEST

static void forget(void)
{
    child_env_done(&env);
}

TEST_SUITE()
{
    Suite *s = suite_create("param_env");
    TCase *t = tcase_create("param_env");
    tcase_add_checked_fixture(t, NULL, forget);
    tcase_add_test(t, values);
    tcase_add_test(t, names);
    tcase_add_test(t, large_values);
    suite_add_tcase(s, t);
    return s;
}
