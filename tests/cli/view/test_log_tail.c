#include "cli/view/log_tail.h"

#include <string.h>

#include "tests/support/check_main.h"

static size_t overlap(const char *before, const char *now)
{
    size_t n = 99999;
    struct as_err err = {0};
    ck_ok(log_tail_overlap(before, strlen(before), now, strlen(now), &n, &err), err);
    return n;
}

START_TEST(overlaps)
{
    ck_assert_uint_eq(overlap("", ""), 0);
    ck_assert_uint_eq(overlap("", "abc"), 0);
    ck_assert_uint_eq(overlap("abc", ""), 0);
    ck_assert_uint_eq(overlap("abc", "abc"), 3);
    ck_assert_uint_eq(overlap("abc", "abcdef"), 3);              /* the tail grew */
    ck_assert_uint_eq(overlap("one\ntwo\n", "two\nthree\n"), 4); /* its beginning was dropped */
    ck_assert_uint_eq(overlap("abc", "xyz"), 0);                 /* all of it was dropped */
    ck_assert_uint_eq(overlap("x\nx\n", "x\nx\nx\n"), 4);
    ck_assert_uint_eq(overlap("aabaab", "aabaac"), 3); /* falls back within the match */
    ck_assert_uint_eq(overlap("abcabc", "abc"), 3);
}
END_TEST

/* Compare with the definition, for all short texts over two letters. */
START_TEST(all_short)
{
    char a[8], b[8];
    for (unsigned x = 0; x < 64; x++) {
        for (unsigned y = 0; y < 64; y++) {
            for (int i = 0; i < 6; i++) {
                a[i] = (x >> i & 1) ? 'a' : 'b';
                b[i] = (y >> i & 1) ? 'a' : 'b';
            }
            a[6] = b[6] = 0;
            size_t want = 6;
            while (strncmp(a + 6 - want, b, want) != 0)
                want--;
            ck_assert_uint_eq(overlap(a, b), want);
        }
    }
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("log_tail");
    TCase *t = tcase_create("log_tail");
    tcase_add_test(t, overlaps);
    tcase_add_test(t, all_short);
    suite_add_tcase(s, t);
    return s;
}
