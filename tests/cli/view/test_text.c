#include "cli/view/text.h"

#include <string.h>

#include "cli/view/terminal.h"
#include "tests/support/check_main.h"

static void check_escape(const char *in, size_t len, text_lines lines, const char *want)
{
    struct str b = {0};
    text_escape(&b, in, len, lines);
    ck_assert_str_eq(str_cstr(&b), want);
    str_done(&b);
}

START_TEST(escape)
{
    check_escape("plain", 5, TEXT_ONE_LINE, "plain");
    check_escape("a\nb\tc\r", 6, TEXT_ONE_LINE, "a\\nb\\tc\\r");
    check_escape("a\nb\tc\r", 6, TEXT_KEEP_LINES, "a\nb\tc\\r");
    check_escape("\x1b[31mred\x1b[0m", 12, TEXT_KEEP_LINES, "\\x1b[31mred\\x1b[0m");
    check_escape("\0x", 2, TEXT_KEEP_LINES, "\\x00x");
    check_escape("\x7f", 1, TEXT_KEEP_LINES, "\\x7f");
    check_escape("\xc2\x9b"
                 "31m",
                 5, TEXT_KEEP_LINES, "\\x9b31m"); /* C1 control */
    check_escape("\xe2\x80\xae"
                 "abc",
                 6, TEXT_KEEP_LINES, "\\u{202e}abc"); /* reverses the direction of text */
    check_escape("grün 漢", strlen("grün 漢"), TEXT_ONE_LINE, "grün 漢");
    check_escape("\xff\xc3", 2, TEXT_ONE_LINE, "\\xff\\xc3");          /* not UTF-8 */
    check_escape("\xc0\x80", 2, TEXT_ONE_LINE, "\\xc0\\x80");          /* overlong */
    check_escape("\xed\xa0\x80", 3, TEXT_ONE_LINE, "\\xed\\xa0\\x80"); /* surrogate */
}
END_TEST

START_TEST(widths)
{
    ck_assert_uint_eq(text_width(""), 0);
    ck_assert_uint_eq(text_width("grün"), 4);
    ck_assert_uint_eq(text_width("漢字"), 4);
    ck_assert_uint_eq(text_width("e\xcc\x81"), 1); /* a combining accent */
}
END_TEST

static void check_pad(const char *s, size_t width, bool right, const char *want)
{
    struct str b = {0};
    text_pad(&b, s, width, right, "…");
    ck_assert_str_eq(str_cstr(&b), want);
    str_done(&b);
}

START_TEST(padding)
{
    check_pad("abc", 5, false, "abc  ");
    check_pad("abc", 5, true, "  abc");
    check_pad("abc", 3, true, "abc");
    check_pad("abcdef", 4, false, "abc…");
    check_pad("漢字漢", 4, false, "漢… "); /* a wide character is not cut in half */
    check_pad("abc", 1, false, "…");
    check_pad("abc", 0, false, "");
    struct str b = {0};
    text_cut(&b, "abcdef", 2, "...");
    ck_assert_str_eq(str_cstr(&b), "ab");
    str_done(&b);
}
END_TEST

TEST_SUITE()
{
    terminal_setup();
    Suite *s = suite_create("text");
    TCase *t = tcase_create("text");
    tcase_add_test(t, escape);
    tcase_add_test(t, widths);
    tcase_add_test(t, padding);
    suite_add_tcase(s, t);
    return s;
}
