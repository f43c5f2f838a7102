/* Sums as vectors and copies past the caches, for every length and place: against a plain loop. */
#include "trial-runner/collective/reduction.h"

#include <check.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "tests/support/check_main.h"
#include "trial-runner/collective/streaming_copy.h"

#define N 150 /* some lines of the cache, and parts of one */

START_TEST(sums_are_those_of_a_plain_loop)
{
    for (size_t n = 0; n <= N - 8; n++)
        for (size_t at = 0; at < 4; at++) {
            float a[N], b[N], r[N];
            double c[N], d[N], s[N];
            uint64_t u[N], v[N], w[N];
            for (size_t i = 0; i < N; i++) {
                a[i] = 0.1F * (float)i, b[i] = 7 - 0.3F * (float)i, r[i] = -1;
                c[i] = 0.1 * (double)i, d[i] = 7 - 0.3 * (double)i, s[i] = -1;
                u[i] = UINT64_MAX - i, v[i] = 3 * i, w[i] = 1;
            }
            reduce_f32_sum.combine(r + at, a + at, b + 1, n);
            reduce_f64_sum.combine(s + at, c + 1, d + at, n);
            reduce_u64_sum.combine(w + at, u + at, v + at, n);
            for (size_t i = 0; i < N - 4; i++) {
                bool in = i >= at && i < at + n;
                ck_assert(r[i] == (in ? a[i] + b[i - at + 1] : -1));
                ck_assert(s[i] == (in ? c[i - at + 1] + d[i] : -1));
                ck_assert_uint_eq(w[i], in ? u[i] + v[i] : 1);
            }
        }
}
END_TEST

START_TEST(a_sum_may_stand_where_an_operand_stood)
{
    for (size_t n = 0; n <= N; n++) {
        float a[N], b[N], c[N];
        for (size_t i = 0; i < N; i++)
            a[i] = (float)i, b[i] = 2 * (float)i, c[i] = (float)i;
        reduce_f32_sum.combine(a, a, b, n);
        reduce_f32_sum.combine(b, c, b, n);
        for (size_t i = 0; i < N; i++) {
            ck_assert(a[i] == (i < n ? 3 : 1) * (float)i);
            ck_assert(b[i] == (i < n ? 3 : 2) * (float)i);
        }
    }
}
END_TEST

START_TEST(streams_copy_what_they_must_and_no_more)
{
    for (size_t n = 0; n <= 300; n++)
        for (size_t to = 0; to < 64; to += 7) {
            unsigned char a[400], b[400];
            for (size_t i = 0; i < sizeof a; i++)
                a[i] = (unsigned char)(i * 31), b[i] = 255;
            streaming_copy(b + to, a + 3, n);
            for (size_t i = 0; i < sizeof b; i++)
                ck_assert_uint_eq(b[i], i >= to && i < to + n ? a[i - to + 3] : 255);
        }
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("reduction");
    TCase *t = tcase_create("reduction");
    tcase_add_test(t, sums_are_those_of_a_plain_loop);
    tcase_add_test(t, a_sum_may_stand_where_an_operand_stood);
    tcase_add_test(t, streams_copy_what_they_must_and_no_more);
    suite_add_tcase(s, t);
    return s;
}
