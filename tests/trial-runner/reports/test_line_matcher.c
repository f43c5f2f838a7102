/* Patterns over the lines that a program prints. */
#include "tests/support/check_main.h"

#include <string.h>

#include "tests/trial-runner/reports/seen.h"
#include "trial-runner/reports/line_matcher.h"

#define EPOCHS "[\"Epoch (?P<step>\\\\d+).* loss: (?P<loss>[0-9.eE+-]+)\"]"

static const struct {
    const char *patterns, *bytes, *want, *groups; /* groups: NULL for none */
} cases[] = {
    {EPOCHS, "Epoch 3/10 - loss: 0.5\nnothing\nEpoch 4 loss: 1e-3.\n",
     "3{\"loss\":0.5} 4{\"loss\":0.001} "},
    {EPOCHS, "Epoch 3 loss: -\nEpoch 4 loss: 2\n", "4{\"loss\":2.0} "},
    {EPOCHS, "Traceback: Epoch 1 loss: 0.5",
     "1{\"loss\":0.5} "}, /* also in an error, also at the end */
    {EPOCHS, "Epoch 1 loss: 1\rEpoch 2 loss: 2\r\n", "1{\"loss\":1.0} 2{\"loss\":2.0} "},
    {EPOCHS, "\x1b[1;32mEpoch\x1b[0m 1 loss: \x1b[31m0.5\x1b[0m\n", "1{\"loss\":0.5} "},
    {"[\"acc=(?P<acc>\\\\S+)\"]", "acc=0.5\nacc=nan\nacc=-inf\n",
     "0{\"acc\":0.5} 1{\"acc\":\"NaN\"} 2{\"acc\":\"-Infinity\"} "},
    {"[\"^Epoch (?P<step>\\\\d+)\",\"loss (?P<loss>\\\\S+)\",\"acc (?P<acc>\\\\S+)%\"]",
     "loss 9\nEpoch 1\nloss 0.5\nacc 80%\nEpoch 2\nloss 0.4\n",
     "0{\"loss\":9.0} 1{\"loss\":0.5} 1{\"acc\":80.0} 2{\"loss\":0.4} "},
    {"[\"a=(?P<a>\\\\d+)\",\"b=(?P<b>\\\\d+)\"]", "a=1 b=2\nb=3\n",
     "0{\"a\":1.0} 0{\"b\":2.0} 1{\"b\":3.0} "},
    {"[\"a=(?P<a>\\\\d+)(?: b=(?P<b>\\\\d+))?\"]", "a=1\na=2 b=3\n",
     "0{\"a\":1.0} 1{\"a\":2.0,\"b\":3.0} "},
    {"[\"(?P<step>\\\\S+) (?P<a>\\\\d+)\"]", "x 1\n1.5 2\n2.0 3\n",
     "bad1(the step must be a whole numbe) "
     "bad2(the step must be a whole numbe) 2{\"a\":3.0} "},
    {EPOCHS, "Epoch 3 loss: 0.5\n", "3{\"val/loss.mean\":0.5} ", "{\"loss\":\"val/loss.mean\"}"},
    {"[\"a=(?P<a>\\\\d+)(?: b=(?P<b>\\\\d+))?\",\"^A=(?P<a>\\\\d+)\"]", "a=1 b=2\nA=3\n",
     "0{\"b\":2.0,\"val/a\":1.0} 0{\"val/a\":3.0} ", "{\"a\":\"val/a\"}"},
};

static void feed(struct line_matcher *m, struct seen *s, const char *bytes, size_t len)
{
    struct report_fns fns = seen_fns(s);
    struct as_err err = {0};
    ck_ok(line_matcher_feed(m, bytes, len, &fns, &err), err);
}

/* Returns the report, which the caller frees after line_matcher_done(). */
static json_t *start(struct line_matcher *m, const char *patterns, const char *groups)
{
    struct as_err err = {0};
    json_t *report = NULL;
    AS_AUTO(str_done) struct str text = {0};
    str_printf(&text, "[{\"csv\":\"m.csv\"},{\"stdout\":%s%s%s}]", patterns,
               groups ? ",\"groups\":" : "", groups ? groups : "");
    ck_ok(json_parse(str_cstr(&text), text.len, &report, &err), err);
    ck_ok(line_matcher_init(m, report, &err), err);
    return report;
}

START_TEST(lines)
{
    size_t len = strlen(cases[_i].bytes);
    for (size_t piece = 1; piece <= len; piece += 3) { /* whatever the pieces */
        struct line_matcher m = {0};
        struct seen s = {0};
        struct report_fns fns = seen_fns(&s);
        struct as_err err = {0};
        JSON_AUTO report = start(&m, cases[_i].patterns, cases[_i].groups);
        for (size_t at = 0; at < len; at += piece)
            feed(&m, &s, cases[_i].bytes + at, len - at < piece ? len - at : piece);
        ck_ok(line_matcher_end(&m, &fns, &err), err);
        ck_assert_str_eq(str_cstr(&s.text), cases[_i].want);
        line_matcher_done(&m);
        str_done(&s.text);
    }
}
END_TEST

/* Two sources: the groups of one are not those of the other. */
START_TEST(groups_belong_to_the_patterns_beside_them)
{
    struct line_matcher m = {0};
    struct seen s = {0};
    struct as_err err = {0};
    JSON_AUTO report = json_pack("[{s:[s],s:{s:s}},{s:[s]}]", "stdout", "^a (?P<x>\\d+)", "groups",
                                 "x", "val/x", "stdout", "^b (?P<x>\\d+)");
    ck_ok(line_matcher_init(&m, report, &err), err);
    feed(&m, &s, "a 1\nb 2\n", 8);
    ck_assert_str_eq(str_cstr(&s.text), "0{\"val/x\":1.0} 0{\"x\":2.0} ");
    line_matcher_done(&m);
    str_done(&s.text);
}
END_TEST

START_TEST(a_long_line_is_cut_and_said)
{
    struct line_matcher m = {0};
    struct seen s = {0};
    char piece[1000];
    memset(piece, '.', sizeof piece);
    JSON_AUTO report = start(&m, "[\"a=(?P<a>\\\\d+)\"]", NULL);
    feed(&m, &s, "a=1", 3);
    for (int i = 0; i < 200; i++)
        feed(&m, &s, piece, sizeof piece);
    ck_assert_uint_lt(m.line.cap, 4 * LINE_MAX_BYTES);
    feed(&m, &s, "a=2\na=3\n", 8);
    ck_assert_str_eq(str_cstr(&s.text),
                     "bad1(a line is longer than 16384 by) 0{\"a\":1.0} 1{\"a\":3.0} ");
    line_matcher_done(&m);
    str_done(&s.text);
}
END_TEST

START_TEST(a_slow_pattern_is_given_up)
{
    struct line_matcher m = {0};
    struct seen s = {0};
    JSON_AUTO report = start(&m, "[\"(?P<x>(?:1|1)*)*[cd]\",\"^(?P<a>\\\\d)\"]", NULL);
    for (int i = 0; i < 3 * LINE_MAX_OVERRUNS; i++)
        feed(&m, &s, "111111111111111111111111111111111111111111111111111111b\n", 56);
    ck_assert_uint_eq(m.patterns[0].overruns, LINE_MAX_OVERRUNS);
    ck_assert_uint_eq(s.bad, 2);                       /* the first time, and the last */
    ck_assert_uint_eq(s.items, 3 * LINE_MAX_OVERRUNS); /* the other pattern goes on */
    line_matcher_done(&m);
    str_done(&s.text);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("line_matcher");
    TCase *t = tcase_create("line_matcher");
    tcase_add_loop_test(t, lines, 0, (int)AS_ARRAY_LEN(cases));
    tcase_add_test(t, groups_belong_to_the_patterns_beside_them);
    tcase_add_test(t, a_long_line_is_cut_and_said);
    tcase_add_test(t, a_slow_pattern_is_given_up);
    suite_add_tcase(s, t);
    return s;
}
