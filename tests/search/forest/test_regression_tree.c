/* One tree: its splits against those of an exhaustive search, its leaves, and what is left to
 * chance. */
#include "search/forest/regression_tree.h"

#include <math.h>
#include <stdbool.h>

#include "search/forest/forest.h"
#include "tests/support/check_main.h"

#define ROWS 12
#define PARAMS 3
#define VALUES 5 /* of the last parameter, a choice */

static const uint64_t levels[PARAMS] = {0, 0, VALUES};

/* Numbers with ties and a choice, and values that follow neither. */
static void draw_rows(uint64_t seed, double x[ROWS * PARAMS], double y[ROWS])
{
    struct rng r;
    rng_init(&r, seed, 0);
    for (size_t i = 0; i < ROWS; i++) {
        x[i * PARAMS] = rng_uniform(&r);
        x[i * PARAMS + 1] = (double)rng_below(&r, 4) / 4;
        x[i * PARAMS + 2] = (double)rng_below(&r, VALUES);
        y[i] = rng_normal(&r);
    }
}

static struct regression_tree *grow(const struct tree_rows *t, size_t leaf, uint64_t seed)
{
    struct regression_tree *tree = NULL;
    struct as_err err = {0};
    struct rng r;
    struct tree_rows ordered = *t;
    AS_AUTO(as_freep) uint32_t *times = as_calloc(t->n, sizeof *times);
    AS_AUTO(as_freep) uint32_t *order = as_calloc(t->n, t->d * sizeof *order);
    for (size_t i = 0; i < t->n; i++)
        times[i] = 1;
    rng_init(&r, seed, 1);
    ck_ok(tree_order(t, order, &err), err);
    ordered.order = order;
    const struct tree_limits limits = {t->d, leaf};
    ck_ok(regression_tree_grow(&ordered, &limits, times, &r, &tree, &err), err);
    return tree;
}

/* The squares about the means of two sides; INFINITY if one is smaller than `leaf`. */
static double squares_of(const double *y, const bool *right, size_t leaf)
{
    double sum[2] = {0}, squares = 0;
    size_t n[2] = {0};
    for (size_t i = 0; i < ROWS; i++) {
        sum[right[i]] += y[i];
        n[right[i]]++;
    }
    if (n[0] < leaf || n[1] < leaf)
        return INFINITY;
    for (size_t i = 0; i < ROWS; i++)
        squares += pow(y[i] - sum[right[i]] / (double)n[right[i]], 2);
    return squares;
}

/* The least squares of all thresholds and of all sets of the choice's values. */
static double least_squares(const double *x, const double *y, size_t leaf)
{
    double least = INFINITY;
    bool right[ROWS];
    for (size_t j = 0; j + 1 < PARAMS; j++)
        for (size_t k = 0; k < ROWS; k++) {
            for (size_t i = 0; i < ROWS; i++)
                right[i] = x[i * PARAMS + j] > x[k * PARAMS + j];
            least = fmin(least, squares_of(y, right, leaf));
        }
    for (unsigned set = 0; set < 1U << VALUES; set++) {
        for (size_t i = 0; i < ROWS; i++)
            right[i] = set >> (unsigned)x[i * PARAMS + PARAMS - 1] & 1;
        least = fmin(least, squares_of(y, right, leaf));
    }
    return least;
}

/* With leaves of five of 12 rows a tree has one split. Where the best split of all has such leaves,
 * it is that one: the order of the means finds the best set of values, if all sets may be taken. */
START_TEST(the_split_is_the_best_one)
{
    const size_t leaf = 5;
    size_t n = 0;
    for (uint64_t seed = 0; seed < 400; seed++) {
        double x[ROWS * PARAMS], y[ROWS], squares = 0;
        draw_rows(seed, x, y);
        double least = least_squares(x, y, 1);
        if (least_squares(x, y, leaf) > least)
            continue;
        n++;
        const struct tree_rows t = {ROWS, PARAMS, x, y, levels, NULL};
        AS_AUTO(regression_tree_freep) struct regression_tree *tree = grow(&t, leaf, seed);
        for (size_t i = 0; i < ROWS; i++)
            squares += pow(y[i] - regression_tree_find(tree, x + i * PARAMS)->mean, 2);
        ck_assert_double_eq_tol(squares, least, 1e-12);
    }
    ck_assert_uint_gt(n, 50);
}
END_TEST

/* Leaves of one row return the rows; a leaf's variance is that of its rows. */
START_TEST(leaves_return_their_rows)
{
    double x[ROWS * PARAMS], y[ROWS], mean = 0, variance = 0;
    draw_rows(7, x, y);
    const struct tree_rows t = {ROWS, PARAMS, x, y, levels, NULL};
    AS_AUTO(regression_tree_freep) struct regression_tree *tree = grow(&t, 1, 7);
    AS_AUTO(regression_tree_freep) struct regression_tree *stump = grow(&t, ROWS, 7);
    for (size_t i = 0; i < ROWS; i++) {
        ck_assert_double_eq(regression_tree_find(tree, x + i * PARAMS)->mean, y[i]);
        ck_assert_double_eq(regression_tree_find(tree, x + i * PARAMS)->variance, 0);
        mean += y[i] / ROWS;
    }
    for (size_t i = 0; i < ROWS; i++)
        variance += (y[i] - mean) * (y[i] - mean) / ROWS;
    const struct tree_leaf *leaf = regression_tree_find(stump, x);
    ck_assert_double_eq_tol(leaf->mean, mean, 1e-15);
    ck_assert_double_eq_tol(leaf->variance, variance, 1e-15);
}
END_TEST

/* The threshold is anywhere between two rows. 1000 trees: 5 deviations are 0.08 (a false alarm in
 * two million). */
START_TEST(thresholds_are_drawn)
{
    const double x[2] = {0.2, 0.8}, y[2] = {0, 1};
    const uint64_t number = 0;
    const struct tree_rows t = {2, 1, x, y, &number, NULL};
    double sums[3] = {0};
    static const double at[3] = {0.35, 0.5, 0.65};
    for (uint64_t seed = 0; seed < 1000; seed++) {
        AS_AUTO(regression_tree_freep) struct regression_tree *tree = grow(&t, 1, seed);
        ck_assert_double_eq(regression_tree_find(tree, &x[0])->mean, 0);
        ck_assert_double_eq(regression_tree_find(tree, &x[1])->mean, 1);
        for (size_t k = 0; k < 3; k++)
            sums[k] += regression_tree_find(tree, &at[k])->mean / 1000;
    }
    for (size_t k = 0; k < 3; k++)
        ck_assert_double_eq_tol(sums[k], (at[k] - 0.2) / 0.6, 0.08);
}
END_TEST

/* A choice of more values than a word has bits: even ones are good, odd ones bad, and each of those
 * that no row has is on a side by chance. */
START_TEST(values_of_a_choice)
{
    double x[100], y[100];
    const uint64_t n_values = 150;
    for (size_t i = 0; i < 100; i++) {
        x[i] = (double)i;
        y[i] = (double)(i % 2);
    }
    const struct tree_rows t = {100, 1, x, y, &n_values, NULL};
    double sum = 0;
    for (uint64_t seed = 0; seed < 20; seed++) {
        AS_AUTO(regression_tree_freep) struct regression_tree *tree = grow(&t, 1, seed);
        for (size_t i = 0; i < 100; i++)
            ck_assert_double_eq(regression_tree_find(tree, &x[i])->mean, y[i]);
        for (double v = 100; v < 150; v++)
            sum += regression_tree_find(tree, &v)->mean / 1000;
    }
    ck_assert_double_eq_tol(sum, 0.5, 0.08); /* 5 deviations */
}
END_TEST

/* A row that counts several times is as several rows, and one that does not count is none. */
START_TEST(rows_count)
{
    const double x[4] = {0.1, 0.1, 0.1, 0.9}, y[4] = {0, 4, 9, 5};
    const uint64_t number = 0;
    const uint32_t times[4] = {3, 1, 0, 2}, order[4] = {0, 1, 2, 3};
    const struct tree_rows t = {4, 1, x, y, &number, order};
    const struct tree_limits limits = {1, 1};
    struct as_err err = {0};
    struct rng r;
    AS_AUTO(regression_tree_freep) struct regression_tree *tree = NULL;
    rng_init(&r, 1, 1);
    ck_ok(regression_tree_grow(&t, &limits, times, &r, &tree, &err), err);
    const struct tree_leaf *leaf = regression_tree_find(tree, &x[0]);
    ck_assert_double_eq_tol(leaf->mean, 1, 1e-15);
    ck_assert_double_eq_tol(leaf->variance, 3, 1e-15);
    ck_assert_double_eq(regression_tree_find(tree, &x[3])->mean, 5);
}
END_TEST

START_TEST(memory_runs_out)
{
    double x[ROWS * PARAMS], y[ROWS];
    draw_rows(3, x, y);
    const struct tree_rows t = {ROWS, PARAMS, x, y, levels, NULL};
    for (size_t nth = 1;; nth++) {
        struct forest *f = NULL;
        struct rng r;
        rng_init(&r, 3, 1);
        as_mem_fail_nth(nth);
        as_status st = forest_grow(&t, &r, &f, NULL);
        as_mem_fail_nth(0);
        if (st == AS_OK) {
            forest_free(f);
            ck_assert_uint_gt(nth, 10);
            break;
        }
        ck_assert_int_eq(st, AS_E_NOMEM);
        ck_assert_ptr_null(f);
    }
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("search/forest/regression_tree");
    TCase *t = tcase_create("regression_tree");
    tcase_add_test(t, the_split_is_the_best_one);
    tcase_add_test(t, leaves_return_their_rows);
    tcase_add_test(t, thresholds_are_drawn);
    tcase_add_test(t, values_of_a_choice);
    tcase_add_test(t, rows_count);
    tcase_add_test(t, memory_runs_out);
    suite_add_tcase(s, t);
    return s;
}
