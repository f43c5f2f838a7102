/* The output of a group as lines: complete, marked, however the bytes are cut. */
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "tests/support/check_main.h"
#include "trial-runner/group/group_output.h"

static struct group_output o;
static struct str got;

static void begin(void)
{
    memset(&o, 0, sizeof o);
    str_clear(&got);
}

static void on_line(void *arg, const char *text, size_t len)
{
    (void)arg;
    ck_assert(len > 0 && text[len - 1] == '\n');
    str_add(&got, text, len);
}

static void add(const char *text)
{
    group_output_add(&o, text, strlen(text), on_line, NULL);
}

START_TEST(lines_are_marked_when_they_are_complete)
{
    add("one\ntw");
    ck_assert_str_eq(str_cstr(&got), "[group] one\n");
    add("o\n\nthr");
    add("ee");
    ck_assert_str_eq(str_cstr(&got), "[group] one\n[group] two\n[group] \n");
    ck_assert_str_eq(o.last, "two");
    group_output_end(&o, on_line, NULL);
    group_output_end(&o, on_line, NULL);
    ck_assert_str_eq(str_cstr(&got), "[group] one\n[group] two\n[group] \n[group] three\n");
    ck_assert_str_eq(o.last, "three");
}
END_TEST

START_TEST(any_cut_gives_the_same_lines)
{
    static const char text[] = "a\n\tb \x01\n\n  \ncd\r\n \n";
    static const char lines[] =
        "[group] a\n[group] \tb \x01\n[group] \n[group]   \n[group] cd\r\n[group]  \n";
    for (size_t piece = 1; piece < sizeof text; piece++) {
        begin();
        for (size_t at = 0; at < sizeof text - 1; at += piece)
            group_output_add(&o, text + at,
                             piece < sizeof text - 1 - at ? piece : sizeof text - 1 - at, on_line,
                             NULL);
        ck_assert_str_eq(str_cstr(&got), lines);
        ck_assert_str_eq(o.last, "cd ");
    }
}
END_TEST

START_TEST(long_lines_are_cut)
{
    char full[GROUP_OUTPUT_LINE + 1] = {0};
    memset(full, 'x', GROUP_OUTPUT_LINE);
    add(full);
    ck_assert_uint_eq(got.len, 0);
    add("y\n");
    ck_assert_uint_eq(got.len, 2 * strlen(GROUP_OUTPUT_MARK) + GROUP_OUTPUT_LINE + 3);
    ck_assert(strstr(str_cstr(&got), "x\n[group] y\n"));
    add(full);
    add("\n");
    ck_assert_str_eq(o.last, full);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("group_output");
    TCase *c = tcase_create("lines");
    tcase_add_checked_fixture(c, begin, NULL);
    tcase_add_test(c, lines_are_marked_when_they_are_complete);
    tcase_add_test(c, any_cut_gives_the_same_lines);
    tcase_add_test(c, long_lines_are_cut);
    suite_add_tcase(s, c);
    return s;
}
