/* Lines of ASSAY_REPORT: what is a measurement, what is refused, and that the result does not
 * depend on how the bytes are cut into pieces. */
#include "tests/support/check_main.h"

#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "tests/trial-runner/reports/seen.h"
#include "trial-runner/reports/report_reader.h"

static const struct {
    const char *bytes, *want;
} cases[] = {
    {"{\"step\": 3, \"a\": 0.5}\n{\"a\": 1}\n", "3{\"a\":0.5} 4{\"a\":1.0} "},
    {"{\"a\": 1}\n\n  \r\n{\"a\": 2}\n", "0{\"a\":1.0} 1{\"a\":2.0} "},
    {"{\"a\": NaN, \"b\": -Infinity, \"c\": \"Infinity\"}\n",
     "0{\"a\":\"NaN\",\"b\":\"-Infinity\",\"c\":\"Infinity\"} "},
    {"{\"NaN\": 1, \"b\": 2}\n", "0{\"NaN\":1.0,\"b\":2.0} "},
    {"{\"x\\\"NaN\": 2}\n", "bad1('x\"NaN' is skipped, the name o) bad1(the line has no metric) "},
    {"{\"val/acc\": 2, \"train.loss\": 1, \"mAP50(B)\": 3}\n",
     "0{\"mAP50(B)\":3.0,\"train.loss\":1.0,\"val/acc\":2.0} "},
    {"{\"val loss\": 2, \"a\": 1}\n", "bad1('val loss' is skipped, the nam) 0{\"a\":1.0} "},
    {"{\"step\": 2.0, \"a\": 1}\n", "2{\"a\":1.0} "},
    {"{\"a\": 1, \"step\": 2}\n", "2{\"a\":1.0} "},
    {"{\"step\": -1, \"a\": 1}\n", "bad1(step: found -1, expected a who) "},
    {"{\"step\": 1.5, \"a\": 1}\n", "bad1(step: found 1.5, expected a wh) "},
    {"{\"step\": \"1\", \"a\": 1}\n", "bad1(step: found a string, expected) "},
    {"{\"step\": 1}\n", "bad1(the line has no metric) "},
    {"[1]\n", "bad1(expected an object, found a li) "},
    {"{\"a\": [1], \"b\": 2}\n", "a=[1] 0{\"b\":2.0} "},
    {"{\"a\": true}\n{\"a\": 1}\n", "a=true 0{\"a\":1.0} "},
    {"{\"a\": null, \"step\": null, \"b\": 2}\n", "0{\"b\":2.0} "},
    {"{\"a\": null}\n", "bad1(the line has no metric) "},
    {"{\"a\": \"soon\", \"b\": {\"c\": \"d\"}, \"e\": 1}\n",
     "a=soon b={\"c\":\"d\"} 0{\"e\":1.0} "},
    {"{\"\": 1, \"b\": 2}\n", "bad1('' is skipped, the name of a m) 0{\"b\":2.0} "},
    {"{\"a\": 1} {\"a\": 2}\n", NULL},
    {"{\"a\": 1e999}\n", NULL},
    {"{\"a\": 1, \"a\": 2}\n", NULL},
    {"\xff\xfe\n", NULL},
    {"{\"a\": 1", "0{\"a\":1.0} "}, /* completed by the end below: see whole_lines_only */
};

static struct report_reader reader;
static struct seen seen;
static struct as_err err;

static void setup(void)
{
    reader = (struct report_reader){0};
    seen = (struct seen){0};
}

static void teardown(void)
{
    report_reader_done(&reader);
    str_done(&seen.text);
}

static void begin_anew(void)
{
    teardown();
    setup();
}

static void feed(const char *bytes, size_t len)
{
    struct report_fns fns = seen_fns(&seen);
    ck_ok(report_reader_feed(&reader, bytes, len, &fns, &err), err);
}

/* All that was seen until now. */
static void saw(const char *expected)
{
    ck_assert_str_eq(str_cstr(&seen.text), expected);
}

START_TEST(lines)
{
    size_t len = strlen(cases[_i].bytes);
    for (size_t step = 1; step <= len; step += 3) { /* whatever the pieces */
        struct report_fns fns = seen_fns(&seen);
        begin_anew();
        for (size_t at = 0; at < len; at += step)
            feed(cases[_i].bytes + at, len - at < step ? len - at : step);
        if (cases[_i].bytes[len - 1] != '\n') {
            saw("");
            feed("}", 1);
        }
        ck_ok(report_reader_end(&reader, &fns, &err), err);
        if (cases[_i].want)
            saw(cases[_i].want);
        else
            ck_assert_uint_eq(seen.bad, 1);
    }
}
END_TEST

START_TEST(a_line_without_end_is_refused_and_reading_goes_on)
{
    char piece[1000];
    memset(piece, '1', sizeof piece);
    for (int i = 0; i < 200; i++)
        feed(piece, sizeof piece);
    ck_assert_uint_lt(reader.partial.cap, 4 * REPORT_MAX_LINE);
    feed("\n{\"a\": 2}\n", 10);
    saw("bad1(longer than 65536 bytes) 0{\"a\":2.0} ");
}
END_TEST

START_TEST(a_nul_byte_is_refused)
{
    feed("{\"a\": 1}\0\n", 10);
    saw("bad1(the line has a NUL byte) ");
}
END_TEST

START_TEST(a_restart_forgets_the_half_line)
{
    feed("{\"a\": 1}\n{\"a\":", 14);
    report_reader_restart(&reader);
    feed("{\"a\": 3}\n", 9);
    saw("0{\"a\":1.0} 1{\"a\":3.0} ");
}
END_TEST

START_TEST(too_many_metrics)
{
    AS_AUTO(str_done) struct str line = {0};
    for (int i = 0; i <= REPORT_MAX_METRICS; i++)
        str_printf(&line, "%s\"m%d\":1", i ? "," : "{", i);
    str_puts(&line, "}\n");
    feed(line.s, line.len);
    ck_assert_uint_eq(seen.items, 1); /* the first hundred count */
    str_clear(&seen.text);
    feed("{\"m100\": 1}\n", 12);
    saw("1{\"m100\":1.0} ");
    ck_assert_uint_eq(seen.bad, 1);
}
END_TEST

START_TEST(files_of_others)
{
    reader.of_others = true;
    reader.step_name = "epoch";
    const char *line = "{\"epoch\": 4, \"val/loss\": 2, \"step\": 7}\n";
    feed(line, strlen(line));
    saw("4{\"step\":7.0,\"val/loss\":2.0} ");
}
END_TEST

START_TEST(notes_are_cut_between_characters)
{
    struct report_fns fns = seen_fns(&seen);
    char text[REPORT_MAX_NOTE + 1], whole[2 * REPORT_MAX_NOTE + 1];
    for (size_t i = 0; i < REPORT_MAX_NOTE; i++) /* two bytes each, from an odd byte on */
        memcpy(whole + (i ? 2 * i - 1 : 0), i ? "\xc3\xa9" : "x", i ? 2 : 1);
    report_note_text(whole, 2 * REPORT_MAX_NOTE - 1, text);
    ck_assert_uint_eq(strlen(text), REPORT_MAX_NOTE - 1);
    ck_assert(as_utf8_valid(text, strlen(text)));
    fns.on_note = NULL; /* nobody wants notes: the numbers count */
    ck_ok(report_reader_feed(&reader, "{\"a\":\"x\",\"b\":1}\n", 16, &fns, &err), err);
    saw("0{\"b\":1.0} ");
}
END_TEST

START_TEST(out_of_memory_is_told)
{
    for (size_t nth = 1; nth < 50; nth++) {
        struct report_fns fns = seen_fns(&seen);
        begin_anew();
        as_mem_fail_nth(nth);
        as_status st = report_reader_feed(&reader, "{\"a\": 1}\n", 9, &fns, &err);
        as_mem_fail_nth(0);
        ck_assert(st == AS_OK || st == AS_E_NOMEM);
        ck_assert_uint_eq(seen.bad, 0);
    }
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("report");
    TCase *t = tcase_create("report");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_loop_test(t, lines, 0, (int)AS_ARRAY_LEN(cases));
    tcase_add_test(t, a_line_without_end_is_refused_and_reading_goes_on);
    tcase_add_test(t, a_nul_byte_is_refused);
    tcase_add_test(t, a_restart_forgets_the_half_line);
    tcase_add_test(t, too_many_metrics);
    tcase_add_test(t, files_of_others);
    tcase_add_test(t, notes_are_cut_between_characters);
    tcase_add_test(t, out_of_memory_is_told);
    suite_add_tcase(s, t);
    return s;
}
