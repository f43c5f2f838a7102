/* What was learned, as people get it: one entry for each parameter, and the `when` to paste. */
#include "search/learned.h"

#include "base/json.h"
#include "tests/support/check_main.h"

static const char parameters[] =
    "{\"kernel\":{\"type\":\"categorical\",\"values\":[\"linear\",\"rbf\",\"poly\"]},"
    "\"fast\":{\"type\":\"bool\"},\"gamma\":{\"type\":\"float\",\"min\":0,\"max\":1}}";

static void check(const char *no_effect, const char *expected)
{
    char text[1000];
    (void)snprintf(text, sizeof text, "{\"no_effect\":%s}", no_effect);
    JSON_AUTO reason = json_loads(text, 0, NULL);
    JSON_AUTO space = json_loads(parameters, 0, NULL);
    JSON_AUTO want = json_loads(expected, 0, NULL);
    JSON_AUTO got = learned_of_reason(reason, space);
    ck_assert_ptr_nonnull(want);
    ck_assert_msg(json_equal(got, want), "%s: %s", no_effect, expected);
}

START_TEST(a_when_names_the_values_that_are_left)
{
    check("[{\"parameter\":\"gamma\",\"where\":{\"kernel\":\"linear\"},\"trials\":36}]",
          "[{\"parameter\":\"gamma\",\"no_effect\":[{\"where\":{\"kernel\":\"linear\"},"
          "\"trials\":36}],\"when\":{\"kernel\":[\"rbf\",\"poly\"]}}]");
    check("[{\"parameter\":\"gamma\",\"where\":{\"kernel\":\"linear\"},\"trials\":36},"
          "{\"parameter\":\"gamma\",\"where\":{\"kernel\":\"poly\"},\"trials\":12},"
          "{\"parameter\":\"gamma\",\"where\":{\"fast\":true},\"trials\":20}]",
          "[{\"parameter\":\"gamma\",\"no_effect\":[{\"where\":{\"kernel\":\"linear\"},"
          "\"trials\":36},{\"where\":{\"kernel\":\"poly\"},\"trials\":12},"
          "{\"where\":{\"fast\":true},\"trials\":20}],"
          "\"when\":{\"kernel\":[\"rbf\"],\"fast\":[false]}}]");
}
END_TEST

START_TEST(what_has_no_effect_at_all_has_no_when)
{
    check("[{\"parameter\":\"gamma\",\"where\":{\"fast\":true},\"trials\":20},"
          "{\"parameter\":\"gamma\",\"where\":{\"fast\":false},\"trials\":30}]",
          "[{\"parameter\":\"gamma\",\"no_effect\":[{\"where\":{\"fast\":true},\"trials\":20},"
          "{\"where\":{\"fast\":false},\"trials\":30}]}]");
}
END_TEST

/* A stored reason may be of another version. */
START_TEST(anything_else_is_nothing)
{
    check("[]", "[]");
    check("null", "[]");
    check("{\"a\":1}", "[]");
    check("[1,{},{\"parameter\":3,\"where\":{}},{\"parameter\":\"gamma\",\"where\":[]}]", "[]");
    JSON_AUTO none = learned_of_reason(NULL, NULL);
    ck_assert(json_is_array(none) && json_array_size(none) == 0);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("learned");
    TCase *t = tcase_create("learned");
    tcase_add_test(t, a_when_names_the_values_that_are_left);
    tcase_add_test(t, what_has_no_effect_at_all_has_no_when);
    tcase_add_test(t, anything_else_is_nothing);
    suite_add_tcase(s, t);
    return s;
}
