/* The split into training and held-out rows, which depends on its seed alone, and standardising by
 * the training rows. */
#include <math.h>
#include <string.h>

#include "tests/support/check_main.h"
#include "data/preprocess/train_data.h"

static struct as_err err;

/* n rows of (row, 5, row^2); labels or targets. */
static struct dataset make(size_t n, bool classes)
{
    struct dataset d = {.n_rows = n, .n_features = 3, .n_outputs = classes ? 2 : 1};
    d.x = as_calloc(n * 3, sizeof *d.x);
    d.labels = classes ? as_calloc(n, sizeof *d.labels) : NULL;
    d.targets = classes ? NULL : as_calloc(n, sizeof *d.targets);
    for (size_t i = 0; i < n; i++) {
        d.x[i * 3] = (float)i;
        d.x[i * 3 + 1] = 5.1f;
        d.x[i * 3 + 2] = (float)(i * i);
        if (classes)
            d.labels[i] = (int32_t)(i % 2);
        else
            d.targets[i] = 1000 + 10 * (float)i;
    }
    return d;
}

static struct dataset_info plain(size_t n, bool classes)
{
    return (struct dataset_info){.task = classes ? DATASET_CLASSIFICATION : DATASET_REGRESSION,
                                 .n_rows = n,
                                 .n_features = 3,
                                 .n_outputs = classes ? 2 : 1};
}

/* A quarter of n rows is held out, at least one. */
static struct preprocess_opts opts_of(size_t n, uint64_t seed, bool standardize)
{
    size_t held = (size_t)lround(0.25 * (double)n);
    return (struct preprocess_opts){
        .split_seed = seed, .n_validation = held ? held : 1, .standardize = standardize};
}

static struct train_data prepare(size_t n, bool classes, uint64_t seed, bool standardize)
{
    struct preprocess_opts opts = opts_of(n, seed, standardize);
    struct dataset set = make(n, classes);
    struct dataset_info info = plain(n, classes);
    struct train_data d = {0};
    ck_ok(train_data_prepare(&set, &info, &opts, &d, &err), err);
    ck_assert_ptr_null(set.x); /* taken */
    return d;
}

START_TEST(split_is_a_partition)
{
    AS_AUTO(train_data_done) struct train_data d = prepare(101, true, 0, true);
    bool seen[101] = {0};
    ck_assert_uint_eq(d.n_val, 25);
    ck_assert_uint_eq(d.n_train, 76);
    for (size_t i = 0; i < d.n_val; i++)
        seen[d.val_rows[i]] = true;
    for (size_t i = 0; i < d.n_train; i++) {
        ck_assert(!seen[d.train_rows[i]]);
        seen[d.train_rows[i]] = true;
    }
    for (size_t i = 0; i < 101; i++)
        ck_assert(seen[i]);
}
END_TEST

START_TEST(split_depends_on_its_seed_alone)
{
    AS_AUTO(train_data_done) struct train_data a = prepare(101, true, 7, true);
    AS_AUTO(train_data_done) struct train_data b = prepare(101, false, 7, false);
    AS_AUTO(train_data_done) struct train_data c = prepare(101, true, 8, true);
    ck_assert_mem_eq(a.rows, b.rows, 101 * sizeof *a.rows);
    ck_assert_mem_ne(a.rows, c.rows, 101 * sizeof *a.rows);
}
END_TEST

START_TEST(standardised_by_training_rows)
{
    AS_AUTO(train_data_done) struct train_data d = prepare(200, false, 1, true);
    for (size_t c = 0; c < 3; c += 2) {
        double sum = 0, squares = 0;
        for (size_t i = 0; i < d.n_train; i++) {
            double v = (double)d.set.x[(size_t)d.train_rows[i] * 3 + c];
            sum += v;
            squares += v * v;
        }
        ck_assert_double_eq_tol(sum / (double)d.n_train, 0, 1e-5);
        ck_assert_double_eq_tol(squares / (double)d.n_train, 1, 1e-4);
    }
    ck_assert_float_eq(d.fit.scale[1], 1); /* constant */
    for (size_t i = 0; i < 200; i++)
        ck_assert_float_eq(d.set.x[i * 3 + 1], 0);
    size_t row = (size_t)d.val_rows[0];
    ck_assert_float_eq(d.val_targets[0], 1000 + 10 * (float)row);
    ck_assert_double_eq_tol((double)d.set.targets[row] * d.fit.target_scale[0] +
                                d.fit.target_mean[0],
                            1000 + 10 * (double)row, 1e-3);
}
END_TEST

START_TEST(left_as_it_is)
{
    AS_AUTO(train_data_done) struct train_data d = prepare(10, true, 1, false);
    ck_assert_float_eq(d.set.x[9], 3);
    ck_assert_float_eq(d.fit.mean[0], 0);
    ck_assert_float_eq(d.fit.scale[0], 1);
    ck_assert_uint_eq(d.n_targets, 0);
    ck_assert_int_eq(d.class_rows[0] + d.class_rows[1], d.n_train);
}
END_TEST

START_TEST(two_rows)
{
    AS_AUTO(train_data_done) struct train_data d = prepare(2, false, 0, true);
    ck_assert_uint_eq(d.n_val, 1);
    ck_assert_uint_eq(d.n_train, 1);
    ck_assert_double_eq(d.fit.target_scale[0], 1);
    for (size_t i = 0; i < 6; i++)
        ck_assert(isfinite(d.set.x[i]));
}
END_TEST

START_TEST(out_of_memory)
{
    for (size_t n = 1; n < 12; n++) {
        struct preprocess_opts opts = opts_of(10, 0, true);
        struct dataset set = make(10, false);
        struct dataset_info info = plain(10, false);
        struct train_data d = {0};
        as_mem_fail_nth(n);
        as_status st = train_data_prepare(&set, &info, &opts, &d, &err);
        as_mem_fail_nth(0);
        ck_assert(st == AS_OK || st == AS_E_NOMEM);
        train_data_done(&d);
    }
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("train_data");
    TCase *t = tcase_create("train_data");
    tcase_add_test(t, split_is_a_partition);
    tcase_add_test(t, split_depends_on_its_seed_alone);
    tcase_add_test(t, standardised_by_training_rows);
    tcase_add_test(t, left_as_it_is);
    tcase_add_test(t, two_rows);
    tcase_add_test(t, out_of_memory);
    suite_add_tcase(s, t);
    return s;
}
