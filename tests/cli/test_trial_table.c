#include "cli/trial_table.h"

#include <string.h>

#include "base/json.h"
#include "tests/check_main.h"

static struct as_err err;

/* The table of two trials of a sweep with a conditional parameter in the middle and one that is
 * active in neither. */
static void format(bool tty, struct str *b)
{
    static const char sweep_text[] =
        "{\"metric\":{\"name\":\"loss\"},\"document\":{\"parameters\":{\"zlr\":{},\"kind\":{},"
        "\"momentum\":{},\"never\":{},\"depth\":{}}}}";
    static const char items_text[] =
        "[{\"number\":4,\"value\":0.125,\"params\":{\"depth\":2,\"kind\":\"a\",\"zlr\":"
        "0.12345678901}},{\"number\":1,\"value\":1,\"params\":{\"zlr\":1e-05,\"kind\":\"b\","
        "\"momentum\":0.5,\"depth\":3}}]";
    AS_AUTO(table_freep) struct table *t = NULL;
    JSON_AUTO sweep = NULL;
    JSON_AUTO items = NULL;
    struct str hidden = {0};
    const struct look look = {.tty = tty, .width = SIZE_MAX};
    ck_ok(json_parse(sweep_text, strlen(sweep_text), &sweep, &err), err);
    ck_ok(json_parse(items_text, strlen(items_text), &items, &err), err);
    ck_ok(trial_table_create(items, TRIAL_TABLE_BEST, sweep, &look, &t, &err), err);
    ck_ok(table_format(t, &look, b, &hidden, &err), err);
    str_done(&hidden);
}

START_TEST(parameters_as_in_the_document)
{
    struct str b = {0};
    format(false, &b);
    ck_assert_str_eq(str_cstr(&b), "rank\ttrial\tloss\ttime\tzlr\tkind\tmomentum\tnever\tdepth\n"
                                   "1\t4\t0.125\t\t0.12345678901\ta\t\t\t2\n"
                                   "2\t1\t1\t\t1e-05\tb\t0.5\t\t3\n");
    str_done(&b);
}
END_TEST

START_TEST(a_terminal_shows_what_there_is)
{
    struct str b = {0};
    format(true, &b);
    const char *at = strstr(str_cstr(&b), "ZLR");
    ck_assert_ptr_nonnull(at);
    ck_assert_ptr_nonnull(at = strstr(at, "KIND"));
    ck_assert_ptr_nonnull(at = strstr(at, "MOMENTUM"));
    ck_assert_ptr_nonnull(strstr(at, "DEPTH"));
    ck_assert_ptr_null(strstr(str_cstr(&b), "NEVER"));
    ck_assert_ptr_nonnull(strstr(str_cstr(&b), "0.1235"));
    ck_assert_ptr_null(strstr(str_cstr(&b), "0.12345"));
    str_done(&b);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("trial_table");
    TCase *t = tcase_create("trial_table");
    tcase_add_test(t, parameters_as_in_the_document);
    tcase_add_test(t, a_terminal_shows_what_there_is);
    suite_add_tcase(s, t);
    return s;
}
