#include "cli/view/trial_table.h"

#include <string.h>

#include "base/json.h"
#include "tests/support/check_main.h"

static struct as_err err;

/* The table of two trials. The sweep has a conditional parameter between others, and one that is
 * active in neither trial. */
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
    const struct terminal terminal = {.tty = tty, .width = SIZE_MAX};
    ck_ok(json_parse(sweep_text, strlen(sweep_text), &sweep, &err), err);
    ck_ok(json_parse(items_text, strlen(items_text), &items, &err), err);
    ck_ok(trial_table_create(items, TRIAL_TABLE_BEST, sweep, &terminal, &t, &err), err);
    ck_ok(table_format(t, &terminal, b, &hidden, &err), err);
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

START_TEST(several_objectives_and_a_constraint)
{
    static const char sweep_text[] =
        "{\"metric\":{\"name\":\"error\"},\"metrics\":[{\"name\":\"error\",\"goal\":"
        "\"minimize\"},{\"name\":\"speed\",\"goal\":\"maximize\"}],\"constraints\":[{"
        "\"metric\":\"mb\",\"max\":10},{\"metric\":\"error\",\"max\":1}],\"document\":{"
        "\"parameters\":{\"x\":{}}}}";
    static const char items_text[] =
        "[{\"number\":0,\"state\":\"completed\",\"value\":0.5,\"feasible\":true,\"metrics\":{"
        "\"error\":0.5,\"speed\":3,\"mb\":9,\"other\":1},\"params\":{\"x\":1},\"started_at\":"
        "\"2026-11-29T10:00:00Z\",\"finished_at\":\"2026-11-29T11:00:00Z\",\"ran_ms\":2500},"
        "{\"number\":1,\"state\":\"completed\",\"value\":0.1,\"feasible\":false,\"metrics\":{"
        "\"error\":0.1,\"speed\":4,\"mb\":11},\"params\":{\"x\":2},\"group\":\"s.g1.1\"},"
        "{\"number\":2,\"state\":\"running\",\"value\":null,\"feasible\":null,\"metrics\":{},"
        "\"params\":{\"x\":3}}]";
    AS_AUTO(table_freep) struct table *t = NULL;
    JSON_AUTO sweep = NULL;
    JSON_AUTO items = NULL;
    struct str b = {0};
    const struct terminal terminal = {.width = SIZE_MAX};
    ck_ok(json_parse(sweep_text, strlen(sweep_text), &sweep, &err), err);
    ck_ok(json_parse(items_text, strlen(items_text), &items, &err), err);
    ck_ok(trial_table_create(items, TRIAL_TABLE_ALL, sweep, &terminal, &t, &err), err);
    ck_ok(table_format(t, &terminal, &b, NULL, &err), err);
    ck_assert_str_eq(str_cstr(&b),
                     "trial\tstate\terror\tspeed\tmb\tfeasible\tstep\ttime\tx\tgroup\treason\n"
                     "0\tcompleted\t0.5\t3\t9\tyes\t\t2.500\t1\t\t\n"
                     "1\tcompleted\t0.1\t4\t11\tno\t\t\t2\ts.g1.1\t\n"
                     "2\trunning\t\t\t\t\t\t\t3\t\t\n");
    str_done(&b);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("trial_table");
    TCase *t = tcase_create("trial_table");
    tcase_add_test(t, parameters_as_in_the_document);
    tcase_add_test(t, a_terminal_shows_what_there_is);
    tcase_add_test(t, several_objectives_and_a_constraint);
    suite_add_tcase(s, t);
    return s;
}
