#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/opt.h"
#include "tests/support/check_main.h"

START_TEST(parsing)
{
    struct as_err err = {0};
    bool watch = false;
    const char *server = "none";
    int64_t n = 3, wait_ms = 0;
    const struct opt table[] = {
        {"watch", 'w', OPT_FLAG, &watch, NULL, NULL, "follow"},
        {"server", 0, OPT_STRING, &server, "URL", "ASSAY_TEST_SERVER", "where"},
        {"slots", 'n', OPT_I64, &n, "N", NULL, "how many"},
        {"wait", 0, OPT_DURATION, &wait_ms, "TIME", NULL, "how long"},
        {0},
    };
    (void)setenv("ASSAY_TEST_SERVER", "from-env", 1);
    char *argv[] = {"p", "run", "-w", "--slots=5", "x.yaml", "--wait", "2m", "--", "-n", NULL};
    int n_args = 0;
    ck_ok(opt_parse(table, 9, argv, &n_args, &err), err);
    ck_assert(watch);
    ck_assert_str_eq(server, "from-env");
    ck_assert_int_eq(n, 5);
    ck_assert_int_eq(wait_ms, 120000);
    ck_assert_int_eq(n_args, 3);
    ck_assert_str_eq(argv[1], "run");
    ck_assert_str_eq(argv[2], "x.yaml");
    ck_assert_str_eq(argv[3], "-n");

    char *typo[] = {"p", "--slot", "5", NULL};
    ck_fails(opt_parse(table, 3, typo, &n_args, &err), AS_E_INVAL, err, "did you mean --slots");
    char *cut[] = {"p", "--slots", NULL};
    ck_fails(opt_parse(table, 2, cut, &n_args, &err), AS_E_INVAL, err, "needs a value");
    char *text[] = {"p", "--slots", "many", NULL};
    ck_fails(opt_parse(table, 3, text, &n_args, &err), AS_E_INVAL, err, "whole number");
}
END_TEST

START_TEST(options_before_something_else)
{
    struct as_err err = {0};
    bool json = false;
    const char *server = NULL;
    const struct opt table[] = {
        {"json", 'j', OPT_FLAG, &json, NULL, NULL, ""},
        {"server", 's', OPT_STRING, &server, "URL", NULL, ""},
        {0},
    };
    static const struct {
        const char *args[6];
        int first;
    } cases[] = {
        {{"p", "show", "--json"}, 1},       {{"p", "--server", "u", "--json", "show", "x"}, 4},
        {{"p", "--server=u", "show"}, 2},   {{"p", "-j", "-s", "show"}, 4},
        {{"p", "--json", "--", "show"}, 2}, {{"p"}, 1},
    };
    int at = 0;
    for (size_t i = 0; i < AS_ARRAY_LEN(cases); i++) {
        int argc = 0;
        while (cases[i].args[argc])
            argc++;
        ck_ok(opt_skip(table, argc, (char **)cases[i].args, &at, &err), err);
        ck_assert_int_eq(at, cases[i].first);
    }
    ck_assert(!json && !server);
    char *unknown[] = {"p", "--sever", "u", NULL}, *cut[] = {"p", "--server", NULL};
    ck_fails(opt_skip(table, 3, unknown, &at, &err), AS_E_INVAL, err, "did you mean --server");
    ck_fails(opt_skip(table, 2, cut, &at, &err), AS_E_INVAL, err, "needs a value");
}
END_TEST

START_TEST(choices)
{
    struct as_err err = {0};
    const char *kind = "none";
    const struct opt table[] = {
        {"kind", 0, OPT_STRING, &kind, "KIND", NULL, "one of", "red|green|greener"},
        {0},
    };
    static const char *const good[] = {"red", "green", "greener"};
    static const char *const bad[] = {"", "gre", "reds", "red|green", "|", "blue"};
    AS_AUTO(as_freep) char *help = NULL;
    size_t len;
    int n;
    for (size_t i = 0; i < AS_ARRAY_LEN(good) + AS_ARRAY_LEN(bad); i++) {
        bool is_good = i < AS_ARRAY_LEN(good);
        char option[] = "--kind", value[20], *argv[] = {option, option, value, NULL};
        (void)snprintf(value, sizeof value, "%s", is_good ? good[i] : bad[i - AS_ARRAY_LEN(good)]);
        kind = "none";
        as_status st = opt_parse(table, 3, argv, &n, &err);
        ck_assert_msg(is_good ? st == AS_OK && as_streq(kind, value)
                              : st == AS_E_INVAL && as_streq(kind, "none"),
                      "%s", value);
    }
    ck_assert_ptr_nonnull(strstr(err.msg, "red, green, greener"));
    FILE *f = open_memstream(&help, &len);
    opt_help(table, f);
    ck_assert_int_eq(fclose(f), 0);
    ck_assert_ptr_nonnull(strstr(help, "one of: red, green, greener"));
}
END_TEST

START_TEST(an_option_several_times)
{
    struct as_err err = {0};
    struct opt_list sets = {0};
    const struct opt table[] = {
        {"set", 's', OPT_LIST, &sets, "FIELD=VALUE", NULL, "change a field"},
        {0},
    };
    char *argv[] = {"p", "--set", "a=1", "file", "--set=b=-2", "-s", "c=3", NULL};
    int n_args = 0;
    ck_ok(opt_parse(table, 7, argv, &n_args, &err), err);
    ck_assert_uint_eq(sets.n, 3);
    ck_assert_str_eq(sets.values[0], "a=1");
    ck_assert_str_eq(sets.values[1], "b=-2");
    ck_assert_str_eq(sets.values[2], "c=3");
    ck_assert_int_eq(n_args, 1);

    static char *many[1 + OPT_LIST_MAX + 2];
    many[0] = "p";
    for (int i = 0; i <= OPT_LIST_MAX; i++)
        many[1 + i] = "--set=x=1";
    sets.n = 0;
    ck_fails(opt_parse(table, 2 + OPT_LIST_MAX, many, &n_args, &err), AS_E_INVAL, err,
             "at most 256 times");
}
END_TEST

START_TEST(ranges_of_numbers)
{
    struct as_err err = {0};
    struct opt_range r[] = {{"workers", 1, 1, 256}, {"max-blob", INT64_MAX, 1, INT64_MAX}};
    ck_ok(opt_check_ranges(r, 2, &err), err);
    r[1].value = 0;
    ck_fails(opt_check_ranges(r, 2, &err), AS_E_INVAL, err, "--max-blob is 0, expected 1 or more");
    r[0].value = 257;
    ck_fails(opt_check_ranges(r, 2, &err), AS_E_INVAL, err, "--workers is 257, expected 1 to 256");
}
END_TEST

struct written {
    char text[OPT_LIST_MAX][80], *argv[OPT_LIST_MAX];
    int n;
};

static as_status write_argument(void *arg, const char *argument, struct as_err *err)
{
    struct written *w = arg;
    (void)err;
    (void)snprintf(w->text[w->n], sizeof w->text[w->n], "%s", argument);
    w->argv[w->n] = w->text[w->n];
    w->n++;
    return AS_OK;
}

/* The arguments of a table set the same values again, also texts that are empty or look like
 * options. */
START_TEST(arguments_again)
{
    struct as_err err = {0};
    struct values {
        bool on, off;
        const char *text, *none, *empty, *dashes;
        int64_t n, ms;
        double x;
        struct opt_list list, nothing;
    } v = {.on = true,
           .text = "a b=c",
           .empty = "",
           .dashes = "--off",
           .n = -5,
           .ms = 1500,
           .x = 0.1,
           .list = {2, {"one", ""}}},
      w = {.off = false};
#define TABLE(v)                                                                                   \
    {                                                                                              \
        {"on", 0, OPT_FLAG, &(v).on, NULL, NULL, ""},                                              \
            {"off", 0, OPT_FLAG, &(v).off, NULL, NULL, ""},                                        \
            {"text", 0, OPT_STRING, &(v).text, "T", NULL, ""},                                     \
            {"none", 0, OPT_STRING, &(v).none, "T", NULL, ""},                                     \
            {"empty", 0, OPT_STRING, &(v).empty, "T", NULL, ""},                                   \
            {"dashes", 0, OPT_STRING, &(v).dashes, "T", NULL, ""},                                 \
            {"n", 0, OPT_I64, &(v).n, "N", NULL, ""},                                              \
            {"ms", 0, OPT_DURATION, &(v).ms, "TIME", NULL, ""},                                    \
            {"x", 0, OPT_DOUBLE, &(v).x, "X", NULL, ""},                                           \
            {"list", 0, OPT_LIST, &(v).list, "T", NULL, ""},                                       \
            {"nothing", 0, OPT_LIST, &(v).nothing, "T", NULL, ""}, {.name = NULL},                 \
    }
    const struct opt from[] = TABLE(v), to[] = TABLE(w);
    struct written args = {.argv = {"program"}, .n = 1};
    int n_args = 0;
    ck_ok(opt_arguments(from, write_argument, &args, &err), err);
    ck_ok(opt_parse(to, args.n, args.argv, &n_args, &err), err);
    ck_assert_int_eq(n_args, 0);
    ck_assert(w.on && !w.off && !w.none && w.nothing.n == 0);
    ck_assert_str_eq(w.text, v.text);
    ck_assert_str_eq(w.empty, "");
    ck_assert_str_eq(w.dashes, v.dashes);
    ck_assert_int_eq(w.n, v.n);
    ck_assert_int_eq(w.ms, v.ms);
    ck_assert(w.x == v.x);
    ck_assert_uint_eq(w.list.n, 2);
    ck_assert_str_eq(w.list.values[0], "one");
    ck_assert_str_eq(w.list.values[1], "");
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("opt");
    TCase *t = tcase_create("opt");
    tcase_add_test(t, parsing);
    tcase_add_test(t, options_before_something_else);
    tcase_add_test(t, choices);
    tcase_add_test(t, an_option_several_times);
    tcase_add_test(t, ranges_of_numbers);
    tcase_add_test(t, arguments_again);
    suite_add_tcase(s, t);
    return s;
}
