/* Messages of the values that matter: what is sent and what is kept make up all; damaged ones are
 * found. */
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "tests/support/check_main.h"
#include "trial-runner/distributed/significant.h"

#define MOST 40

static uint8_t message[4 + 5 + 4 * MOST];

/* n values, of which the first m have limits; every `keep`-th is significant. */
static void fill(float *x, float *before, float *limits, size_t n, size_t keep)
{
    for (size_t i = 0; i < n; i++) {
        x[i] = (float)i + 1;
        before[i] = 0.5F;
        limits[i] = i % keep == 0 ? (float)i + 1.5F : (float)i + 1.6F;
    }
}

START_TEST(nothing_is_lost)
{
    for (size_t n = 0; n <= MOST; n++)
        for (size_t keep = 1; keep <= 9; keep += 4) {
            float x[MOST], before[MOST], limits[MOST], after[MOST], sum[MOST];
            size_t m = n - n / 4, bytes = 0, sent = 0;
            fill(x, before, limits, n, keep);
            for (size_t i = 0; i < n; i++)
                sum[i] = 100;
            ck_assert_uint_le(significant_most(n), sizeof message);
            size_t len = significant_encode(x, before, after, limits, m, n, message);
            ck_assert(significant_measure(message, len, n, &bytes));
            ck_assert_uint_eq(bytes, len);
            ck_assert_uint_le(len, significant_most(n));
            significant_add(message, n, sum);
            for (size_t i = 0; i < n; i++) {
                float all = i < m ? x[i] + before[i] : x[i];
                bool there = i >= m || i % keep == 0;
                sent += there;
                ck_assert(sum[i] == (there ? 100 + all : 100));
                if (i < m)
                    ck_assert(after[i] == (there ? 0 : all));
            }
            ck_assert_uint_eq(len, 4 + (sent == 0 || sent == n ? 0 : (n + 7) / 8) + 4 * sent);
        }
}
END_TEST

START_TEST(zeros_stay_and_what_is_no_number_travels)
{
    const float x[] = {0, NAN, -0.5F, 2, 0}, limits[] = {0, 9, 0.5F, 3, 1};
    float after[5], sum[5] = {0};
    size_t len = significant_encode(x, NULL, after, limits, 5, 5, message);
    significant_add(message, 5, sum);
    ck_assert_uint_eq(len, 4 + 1 + 2 * 4);
    ck_assert(isnan(sum[1]) && sum[2] == -0.5F && sum[3] == 0 && after[3] == 2);
    len = significant_encode(x, NULL, NULL, NULL, 5, 5, message); /* as a sum comes back */
    ck_assert_uint_eq(len, 4 + 1 + 3 * 4);
}
END_TEST

START_TEST(damaged_messages_are_found)
{
    float x[10] = {0};
    size_t bytes;
    x[3] = x[7] = 1;
    size_t len = significant_encode(x, NULL, NULL, NULL, 10, 10, message);
    for (size_t cut = 0; cut < len; cut++)
        ck_assert(!significant_measure(message, cut, 10, &bytes));
    uint8_t good[sizeof message];
    memcpy(good, message, len);
    message[4] = 1; /* another place than was counted */
    message[5] = 0;
    ck_assert(!significant_measure(message, sizeof message, 10, &bytes));
    memcpy(message, good, len);
    message[5] = 0x80; /* a place behind the last value */
    ck_assert(!significant_measure(message, sizeof message, 10, &bytes));
    memcpy(message, good, len);
    message[0] = 11; /* more than there are */
    ck_assert(!significant_measure(message, sizeof message, 10, &bytes));
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("significant");
    TCase *t = tcase_create("significant");
    tcase_add_test(t, nothing_is_lost);
    tcase_add_test(t, zeros_stay_and_what_is_no_number_travels);
    tcase_add_test(t, damaged_messages_are_found);
    suite_add_tcase(s, t);
    return s;
}
