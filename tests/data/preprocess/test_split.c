/* The rows that are held out: a permutation, in the order of one shuffle, with each class in
 * proportion. */
#include <stdbool.h>

#include "base/mem.h"
#include "base/rng.h"
#include "data/preprocess/holdout.h"
#include "data/preprocess/split.h"
#include "tests/support/check_main.h"

#define MAX_ROWS 400
#define MAX_CLASSES 9

static struct as_err err;

struct counts {
    size_t rows[MAX_CLASSES], held[MAX_CLASSES];
};

/* Split, check that the result is a permutation, and count. */
static struct counts split(const int32_t *labels, size_t n, size_t classes, size_t n_held,
                           uint64_t seed)
{
    struct counts c = {0};
    int32_t rows[MAX_ROWS];
    bool seen[MAX_ROWS] = {0};
    ck_ok(split_stratified(labels, n, classes, n_held, seed, rows, &err), err);
    for (size_t i = 0; i < n; i++) {
        ck_assert(rows[i] >= 0 && (size_t)rows[i] < n && !seen[rows[i]]);
        seen[rows[i]] = true;
        c.rows[labels[rows[i]]]++;
        c.held[labels[rows[i]]] += i < n_held;
    }
    return c;
}

/* One rare class among many rows: a random split of this seed misses it, a stratified one
 * cannot. */
START_TEST(rare_classes_are_on_both_sides)
{
    int32_t labels[MAX_ROWS] = {0};
    labels[7] = labels[300] = 1;
    size_t missed = 0;
    for (uint64_t seed = 0; seed < 50; seed++) {
        int32_t rows[MAX_ROWS];
        struct counts c = split(labels, MAX_ROWS, 2, 40, seed);
        ck_assert_uint_eq(c.held[1], 1);
        ck_assert_uint_eq(c.held[0], 39);
        split_random(MAX_ROWS, seed, rows);
        size_t there = 0;
        for (size_t i = 0; i < 40; i++)
            there += labels[rows[i]] == 1;
        missed += there == 0;
    }
    ck_assert_uint_gt(missed, 25); /* 81 % are expected to */
}
END_TEST

/* Any classes, any number of held-out rows: the sum is exact, each class is within one row of its
 * share unless a side would be empty, and has rows on both sides where there is room. */
START_TEST(shares_are_exact)
{
    struct rng r;
    rng_init(&r, 11, 0);
    for (int round = 0; round < 3000; round++) {
        int32_t labels[MAX_ROWS];
        size_t classes = 1 + rng_below(&r, MAX_CLASSES), n = 2 + rng_below(&r, 60);
        size_t n_held = 1 + rng_below(&r, n - 1);
        for (size_t i = 0; i < n; i++)
            labels[i] = (int32_t)(rng_below(&r, 4) ? 0 : rng_below(&r, classes));
        struct counts c = split(labels, n, classes, n_held, (uint64_t)round);
        size_t sum = 0, several = 0, room = 0;
        for (size_t k = 0; k < classes; k++) {
            sum += c.held[k];
            several += c.rows[k] > 1;
            room += c.rows[k] > 0 ? c.rows[k] - 1 : 0;
        }
        ck_assert_uint_eq(sum, n_held);
        for (size_t k = 0; k < classes; k++) {
            ck_assert_uint_le(c.held[k], c.rows[k]);
            if (c.rows[k] > 1 && several <= n_held)
                ck_assert_uint_ge(c.held[k], 1);
            if (c.rows[k] > 0 && room >= n_held)
                ck_assert_uint_lt(c.held[k], c.rows[k]);
        }
    }
}
END_TEST

START_TEST(proportions)
{
    int32_t labels[MAX_ROWS];
    for (size_t i = 0; i < MAX_ROWS; i++)
        labels[i] = i < 200 ? 0 : i < 320 ? 1 : 2; /* 200, 120, 80 */
    struct counts c = split(labels, MAX_ROWS, 3, 100, 5);
    ck_assert(c.held[0] == 50 && c.held[1] == 30 && c.held[2] == 20);
    c = split(labels, MAX_ROWS, 3, 99, 5); /* 49.5, 29.7, 19.8: the largest remainders get a row */
    ck_assert(c.held[0] == 49 && c.held[1] == 30 && c.held[2] == 20);
}
END_TEST

/* The order is that of the shuffle, so one class is split as split_random() does. */
START_TEST(one_class_is_the_random_split)
{
    int32_t labels[MAX_ROWS] = {0}, a[MAX_ROWS], b[MAX_ROWS];
    ck_ok(split_stratified(labels, MAX_ROWS, 1, 77, 3, a, &err), err);
    split_random(MAX_ROWS, 3, b);
    ck_assert_mem_eq(a, b, sizeof a);
}
END_TEST

START_TEST(runs_out_of_memory_cleanly)
{
    int32_t labels[10] = {0, 1}, rows[10];
    for (size_t nth = 1; nth <= 2; nth++) {
        as_mem_fail_nth(nth);
        as_status st = split_stratified(labels, 10, 2, 3, 0, rows, &err);
        as_mem_fail_nth(0);
        ck_assert_int_eq(st, AS_E_NOMEM);
    }
}
END_TEST

/* Parts that are given: each side in the order of the file, then the rows that are for nothing. */
START_TEST(given_parts_keep_the_order_of_the_file)
{
    static const unsigned char part[] = {HOLDOUT_TRAIN, HOLDOUT_HELD, HOLDOUT_UNUSED, HOLDOUT_HELD,
                                         HOLDOUT_TRAIN};
    static const int32_t want[] = {1, 3, 0, 4, 2};
    const struct preprocess_opts opts = {.part = part, .split_seed = 5, .n_validation = 4};
    struct preprocess_rows r;
    int32_t rows[5];
    ck_ok(split_rows(&opts, NULL, 5, 0, rows, &r, &err), err);
    ck_assert_mem_eq(rows, want, sizeof want);
    ck_assert(r.held == rows && r.n_held == 2 && r.train == rows + 2 && r.n_train == 2);
}
END_TEST

/* Rows that are trained on and measured on are in both lists. */
START_TEST(parts_may_share_rows)
{
    static const unsigned char part[] = {HOLDOUT_TRAIN, HOLDOUT_BOTH, HOLDOUT_HELD, HOLDOUT_BOTH};
    static const int32_t want[] = {2, 1, 3, 0};
    const struct preprocess_opts opts = {.part = part};
    struct preprocess_rows r;
    int32_t rows[4];
    ck_ok(split_rows(&opts, NULL, 4, 0, rows, &r, &err), err);
    ck_assert_mem_eq(rows, want, sizeof want);
    ck_assert(r.held == rows && r.n_held == 3 && r.train == rows + 1 && r.n_train == 3);
}
END_TEST

/* By chance: a shuffle, or a stratified one where there are classes to stratify by. */
START_TEST(the_options_choose_the_shuffle)
{
    int32_t labels[MAX_ROWS] = {0}, rows[MAX_ROWS], want[MAX_ROWS];
    struct preprocess_opts opts = {.split_seed = 9, .n_validation = 77};
    struct preprocess_rows r;
    for (size_t i = 0; i < MAX_ROWS; i++)
        labels[i] = i % 5 == 0;
    split_random(MAX_ROWS, 9, want);
    ck_ok(split_rows(&opts, labels, MAX_ROWS, 2, rows, &r, &err), err);
    ck_assert_mem_eq(rows, want, sizeof want);
    ck_assert(r.held == rows && r.n_held == 77);
    ck_assert(r.train == rows + 77 && r.n_train == MAX_ROWS - 77);
    opts.stratify = true;
    ck_ok(split_rows(&opts, NULL, MAX_ROWS, 0, rows, &r, &err), err);
    ck_assert_mem_eq(rows, want, sizeof want);
    ck_ok(split_stratified(labels, MAX_ROWS, 2, 77, 9, want, &err), err);
    ck_ok(split_rows(&opts, labels, MAX_ROWS, 2, rows, &r, &err), err);
    ck_assert_mem_eq(rows, want, sizeof want);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("split");
    TCase *t = tcase_create("split");
    tcase_add_test(t, rare_classes_are_on_both_sides);
    tcase_add_test(t, shares_are_exact);
    tcase_add_test(t, proportions);
    tcase_add_test(t, one_class_is_the_random_split);
    tcase_add_test(t, runs_out_of_memory_cleanly);
    tcase_add_test(t, given_parts_keep_the_order_of_the_file);
    tcase_add_test(t, parts_may_share_rows);
    tcase_add_test(t, the_options_choose_the_shuffle);
    suite_add_tcase(s, t);
    return s;
}
