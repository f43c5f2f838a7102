/* Messages without zeros: nothing is lost, damaged ones are found, and a table of embeddings costs
 * the rows that were touched. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "tests/support/check_main.h"
#include "trial-runner/distributed/sparse_values.h"

#define MOST 300

static uint8_t message[MOST * 8 + 200];

static void same_after(const float *x, size_t n)
{
    float back[MOST];
    size_t bytes = 0;
    ck_assert_uint_le(sparse_most(n), sizeof message);
    size_t len = sparse_encode(x, n, message);
    ck_assert_uint_le(len, sparse_most(n));
    ck_assert(sparse_measure(message, len, n, &bytes));
    ck_assert_uint_eq(bytes, len);
    ck_assert(sparse_measure(message, sizeof message, n, &bytes) && bytes == len);
    memset(back, 0xFF, sizeof back);
    sparse_decode(message, n, back);
    ck_assert(memcmp(back, x, n * sizeof *x) == 0); /* also -0 */
}

START_TEST(nothing_is_lost)
{
    struct rng r;
    rng_init(&r, 5, 1);
    for (size_t n = 0; n <= MOST; n = n < 20 ? n + 1 : n + 40)
        for (int share = 0; share <= 10; share++) {
            float x[MOST];
            for (size_t i = 0; i < n; i++)
                x[i] = (int)rng_below(&r, 10) < share ? (i % 7 ? (float)rng_normal(&r) : -0.0F) : 0;
            same_after(x, n);
        }
}
END_TEST

/* The worst case: single values between gaps that are just long enough. */
START_TEST(no_message_is_longer_than_it_may_be)
{
    float x[MOST];
    for (size_t gap = 1; gap <= 6; gap++) {
        for (size_t i = 0; i < MOST; i++)
            x[i] = i % (gap + 1) == 0 ? 1 : 0;
        same_after(x, MOST);
    }
}
END_TEST

START_TEST(damaged_messages_are_found)
{
    float x[MOST] = {0};
    size_t bytes;
    x[3] = x[200] = 1;
    size_t len = sparse_encode(x, MOST, message);
    for (size_t cut = 0; cut < len; cut++)
        ck_assert(!sparse_measure(message, cut, MOST, &bytes));
    ck_assert(!sparse_measure(message, len, MOST - 1, &bytes)); /* of another slice */
    ck_assert(!sparse_measure(message, len, MOST + 1, &bytes));
    memset(message, 0xFF, sizeof message); /* a number without an end */
    ck_assert(!sparse_measure(message, sizeof message, MOST, &bytes));
}
END_TEST

/* Multiverso's case: 1,000 of 1,000,000 rows. The control: one value in each row costs more. */
START_TEST(a_table_costs_its_touched_rows)
{
    enum { ROWS = 1000000, WIDTH = 16, TOUCHED = 1000 };
    size_t n = (size_t)ROWS * WIDTH;
    AS_AUTO(as_freep) float *table = as_calloc(n, sizeof *table);
    AS_AUTO(as_freep) uint8_t *out = as_calloc(sparse_most(n), 1);
    struct rng r;
    size_t rows = 0;
    ck_assert(table && out);
    rng_init(&r, 7, 1);
    for (size_t i = 0; i < TOUCHED; i++) {
        float *row = table + rng_below(&r, ROWS) * WIDTH;
        rows += row[0] == 0;
        for (size_t k = 0; k < WIDTH; k++)
            row[k] = 1;
    }
    size_t touched = rows * WIDTH * sizeof(float), len = sparse_encode(table, n, out);
    ck_assert_uint_ge(len, touched);
    ck_assert_uint_le(len, touched + touched / 10);
    for (size_t i = 0; i < n; i++)
        table[i] = i % WIDTH == 0;
    ck_assert_uint_gt(sparse_encode(table, n, out), 10 * touched);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("sparse_values");
    TCase *t = tcase_create("sparse_values");
    tcase_add_test(t, nothing_is_lost);
    tcase_add_test(t, no_message_is_longer_than_it_may_be);
    tcase_add_test(t, damaged_messages_are_found);
    tcase_add_test(t, a_table_costs_its_touched_rows);
    suite_add_tcase(s, t);
    return s;
}
