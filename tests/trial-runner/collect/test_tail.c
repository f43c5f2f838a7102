#include "tests/support/check_main.h"

#include <stdlib.h>
#include <string.h>

#include "trial-runner/collect/tail.h"

static struct tail t;

static void reset(void)
{
    memset(&t, 0, sizeof t);
}

START_TEST(keeps_what_fits)
{
    AS_AUTO(str_done) struct str b = {0};
    ck_assert(!tail_text(&t, &b));
    ck_assert_str_eq(str_cstr(&b), "");
    tail_add(&t, "one\n", 4);
    tail_add(&t, "two", 3);
    ck_assert(!tail_text(&t, &b));
    ck_assert_str_eq(str_cstr(&b), "one\ntwo");
}
END_TEST

START_TEST(drops_the_beginning_at_a_line)
{
    AS_AUTO(str_done) struct str b = {0};
    char line[] = "line 000000\n";
    for (int i = 0; i < 20000; i++) {
        for (int d = 0, v = i; d < 6; d++, v /= 10)
            line[10 - d] = (char)('0' + v % 10);
        tail_add(&t, line, 12);
    }
    ck_assert(tail_text(&t, &b));
    ck_assert_uint_le(b.len, TAIL_BYTES);
    ck_assert_uint_gt(b.len, TAIL_BYTES - 24);
    ck_assert(as_starts_with(b.s, "line "));
    ck_assert(as_ends_with(b.s, "line 019999\n"));
}
END_TEST

START_TEST(one_piece_larger_than_the_ring)
{
    AS_AUTO(str_done) struct str b = {0};
    size_t n = 3 * TAIL_BYTES;
    char *piece = malloc(n);
    memset(piece, 'x', n);
    piece[n - 1] = 'y';
    tail_add(&t, piece, n);
    free(piece);
    ck_assert(tail_text(&t, &b));
    ck_assert_uint_eq(b.len, TAIL_BYTES);
    ck_assert_int_eq(b.s[b.len - 1], 'y');
}
END_TEST

START_TEST(text_is_utf8_whatever_comes)
{
    AS_AUTO(str_done) struct str b = {0};
    tail_add(&t, "a\0b\xff\xc3\xa9\xe2\x82", 8);
    tail_text(&t, &b);
    ck_assert(as_utf8_valid(b.s, b.len));
    ck_assert_str_eq(b.s, "a\xEF\xBF\xBD"
                          "b\xEF\xBF\xBD\xc3\xa9\xEF\xBF\xBD\xEF\xBF\xBD");
}
END_TEST

START_TEST(binary_output_stays_bounded)
{
    AS_AUTO(str_done) struct str b = {0};
    char noise[4096];
    for (size_t i = 0; i < sizeof noise; i++)
        noise[i] = (char)(0x80 + i % 0x80);
    for (int i = 0; i < 64; i++)
        tail_add(&t, noise, sizeof noise);
    ck_assert(tail_text(&t, &b));
    ck_assert_uint_le(b.len, TAIL_BYTES);
    ck_assert(as_utf8_valid(b.s, b.len));
}
END_TEST

START_TEST(last_line)
{
    AS_AUTO(str_done) struct str a = {0}, b = {0}, c = {0};
    tail_last_line(&t, 100, &a);
    ck_assert_str_eq(str_cstr(&a), "");
    tail_add(&t, "first\nthe\tlast \xc3\xa9\n \n\n", 21);
    tail_last_line(&t, 100, &b);
    ck_assert_str_eq(str_cstr(&b), "the last \xc3\xa9");
    tail_last_line(&t, 10, &c); /* not in the middle of a character */
    ck_assert_str_eq(str_cstr(&c), "the last ");
}
END_TEST

START_TEST(last_lines)
{
    static const char text[] = "one\n\ntwo\n  \nth\tree\n\n";
    static const struct {
        size_t lines, max;
        const char *want;
    } cases[] = {
        {5, 100, "one | two | th ree"},
        {2, 100, "two | th ree"},
        {1, 100, "th ree"},
        {5, 12, "two | th ree"},
        {5, 11, "th ree"},
        {5, 2, "th"},
        {0, 100, ""},
    };
    tail_add(&t, text, sizeof text - 1);
    for (size_t i = 0; i < AS_ARRAY_LEN(cases); i++) {
        AS_AUTO(str_done) struct str b = {0};
        tail_last_lines(&t, cases[i].lines, cases[i].max, &b);
        ck_assert_str_eq(str_cstr(&b), cases[i].want);
    }
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("tail");
    TCase *tc = tcase_create("tail");
    tcase_add_checked_fixture(tc, reset, NULL);
    tcase_add_test(tc, keeps_what_fits);
    tcase_add_test(tc, drops_the_beginning_at_a_line);
    tcase_add_test(tc, one_piece_larger_than_the_ring);
    tcase_add_test(tc, text_is_utf8_whatever_comes);
    tcase_add_test(tc, binary_output_stays_bounded);
    tcase_add_test(tc, last_line);
    tcase_add_test(tc, last_lines);
    suite_add_tcase(s, tc);
    return s;
}
