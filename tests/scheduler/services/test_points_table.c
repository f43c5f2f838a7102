/* Lines of points: what thinning keeps, what is read of a trial that changed, and how many points
 * there are at most. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "scheduler/services/points_table.h"
#include "tests/scheduler/services/columns.h"
#include "tests/support/check_main.h"

static struct arena a;
static struct as_err err;

static void setup(void)
{
    a = (struct arena){0};
}

static void teardown(void)
{
    arena_done(&a);
}

static struct points_table *make(size_t trials, size_t max_points)
{
    struct points_table *t = points_table_create("loss", max_points);
    ck_assert_ptr_nonnull(t);
    ck_ok(points_table_extend(t, trials, &err), err);
    return t;
}

static void add(struct points_table *t, int64_t number, int64_t attempt, int64_t step, double value)
{
    const struct point_row p = {number, attempt, step, value, true, (double)step / 2};
    ck_ok(points_table_add(t, &p, &err), err);
}

static struct columnar written(const struct points_table *t, const struct table_part *part)
{
    AS_AUTO(str_done) struct str b = {0};
    ck_ok(points_table_write(t, part, &b, &err), err);
    return parse_columns(&a, b.s, b.len);
}

static struct columnar whole(const struct points_table *t, size_t max_points)
{
    const struct table_part part = {.max_points = max_points, .is_whole = true, .version = 1};
    return written(t, &part);
}

/* The rows of one trial, a run. */
static size_t rows_of(const struct columnar *f, double trial, size_t *ret_first)
{
    size_t n = 0;
    for (size_t i = 0; i < f->n_rows; i++)
        if (number(f, "trial", i) == trial && n++ == 0)
            *ret_first = i;
    return n;
}

START_TEST(few_points_are_all_kept)
{
    AS_AUTO(points_table_freep) struct points_table *t = make(3, POINTS_TABLE_MAX);
    for (int i = 0; i < 9; i++)
        add(t, 1, 1, 10 * i, i % 4);
    struct columnar f = whole(t, POINTS_LINE_MAX);
    ck_assert_uint_eq(f.n_rows, 9);
    for (size_t i = 0; i < 9; i++) {
        ck_assert_double_eq(number(&f, "trial", i), 1);
        ck_assert_double_eq(number(&f, "step", i), 10.0 * (double)i);
        ck_assert_double_eq(number(&f, "time", i), 5.0 * (double)i);
        ck_assert_double_eq(number(&f, "value", i), (double)(i % 4));
    }
}
END_TEST

/* Whatever is asked for, a line has its first and last point, its extremes, and no other values
 * than it was given. */
START_TEST(extremes_are_kept)
{
    static const size_t lengths[] = {1, 2, 3, 5, 100, 1023, 1024, 1025, 5000, 40000};
    for (size_t k = 0; k < AS_ARRAY_LEN(lengths); k++) {
        AS_AUTO(points_table_freep) struct points_table *t = make(1, POINTS_TABLE_MAX);
        AS_AUTO(as_freep) double *values = as_calloc(lengths[k], sizeof *values);
        struct rng r;
        rng_init(&r, k, 1);
        double low = INFINITY, high = -INFINITY;
        for (size_t i = 0; i < lengths[k]; i++) {
            values[i] = rng_uniform(&r) - 0.5;
            low = fmin(low, values[i]);
            high = fmax(high, values[i]);
            add(t, 0, 1, (int64_t)i, values[i]);
        }
        for (size_t max = POINTS_LINE_MIN; max <= POINTS_LINE_MAX; max *= 2) {
            struct columnar f = whole(t, max);
            bool has_low = false, has_high = false;
            ck_assert_uint_le(f.n_rows, max);
            if (lengths[k] >= max)
                ck_assert_uint_ge(f.n_rows, max / 4);
            for (size_t i = 0; i < f.n_rows; i++) {
                size_t step = (size_t)number(&f, "step", i);
                ck_assert_double_eq(number(&f, "value", i), values[step]);
                has_low = has_low || values[step] == low;
                has_high = has_high || values[step] == high;
                ck_assert(i == 0 || step > (size_t)number(&f, "step", i - 1));
            }
            ck_assert(has_low && has_high);
            ck_assert_double_eq(number(&f, "step", 0), 0);
            ck_assert_double_eq(number(&f, "step", f.n_rows - 1), (double)(lengths[k] - 1));
        }
    }
}
END_TEST

/* Every run of a long line keeps its own extremes: a short spike is seen wherever it is. */
START_TEST(a_spike_is_seen)
{
    for (int64_t spike = 0; spike < 3000; spike += 37) {
        AS_AUTO(points_table_freep) struct points_table *t = make(1, POINTS_TABLE_MAX);
        for (int64_t i = 0; i < 3000; i++)
            add(t, 0, 1, i, i == spike ? 7 : 0.001 * (double)i);
        struct columnar f = whole(t, 16);
        bool is_seen = false;
        for (size_t i = 0; i < f.n_rows; i++)
            is_seen =
                is_seen || (number(&f, "value", i) == 7 && number(&f, "step", i) == (double)spike);
        ck_assert(is_seen);
    }
}
END_TEST

START_TEST(values_that_are_not_finite)
{
    AS_AUTO(points_table_freep) struct points_table *t = make(2, POINTS_TABLE_MAX);
    for (int i = 0; i < 500; i++)
        add(t, 0, 1, i, i < 400 ? (i == 77 ? -INFINITY : 1.0 / (i + 1)) : NAN);
    for (int i = 0; i < 500; i++)
        add(t, 1, 1, i, NAN);
    struct columnar f = whole(t, 8);
    size_t first = 0, n = rows_of(&f, 0, &first);
    double low = INFINITY;
    for (size_t i = first; i < first + n; i++)
        low = fmin(low, number(&f, "value", i));
    ck_assert_double_eq(low, -INFINITY);
    ck_assert_double_eq(number(&f, "value", first), 1);
    ck_assert_double_nan(number(&f, "value", first + n - 1)); /* it diverged, and that is seen */
    ck_assert_uint_ge(rows_of(&f, 1, &first), 2);
}
END_TEST

START_TEST(all_points_are_bounded)
{
    AS_AUTO(points_table_freep) struct points_table *t = make(100, 2000);
    struct rng r;
    rng_init(&r, 3, 1);
    for (int i = 0; i < 300; i++)
        for (int trial = 0; trial < 100; trial++)
            add(t, trial, 1, i, rng_uniform(&r));
    struct columnar f = whole(t, POINTS_LINE_MAX);
    ck_assert_uint_le(f.n_rows, 2000);
    ck_assert_uint_ge(f.n_rows, 500);
    ck_assert_uint_eq(points_table_resolution(t), 16);
    ck_assert_uint_le(points_table_bytes(t), 2000 * 48 + 100 * 64 * 5);
    for (int trial = 0; trial < 100; trial++) {
        size_t first = 0, n = rows_of(&f, trial, &first);
        ck_assert_uint_ge(n, POINTS_LINE_MIN);
        ck_assert_double_eq(number(&f, "step", first + n - 1), 299);
    }
    /* More trials than that have the least that a line has. */
    AS_AUTO(points_table_freep) struct points_table *many = make(1000, 2000);
    for (int trial = 0; trial < 1000; trial++)
        for (int i = 0; i < 20; i++)
            add(many, trial, 1, i, rng_uniform(&r));
    f = whole(many, POINTS_LINE_MAX);
    ck_assert_uint_le(f.n_rows, 1000 * POINTS_LINE_MIN);
    ck_assert_uint_eq(points_table_resolution(many), POINTS_LINE_MIN);
}
END_TEST

/* What was only measured on is read from where the line ends; all else is read again. */
START_TEST(what_is_read_of_a_change)
{
    AS_AUTO(points_table_freep) struct points_table *t = make(1, POINTS_TABLE_MAX);
    const struct table_change measured = {0, 9, 2, true}, changed = {0, 9, 2, false},
                              next = {0, 9, 3, true};
    struct point_want w = points_table_want(t, &measured);
    ck_assert_int_eq(w.attempt, POINTS_ANY_ATTEMPT);
    add(t, 0, 1, 4, 1);
    add(t, 0, 2, 5, 1);
    points_table_complete(t, 0);
    w = points_table_want(t, &measured);
    ck_assert_int_eq(w.attempt, 2);
    ck_assert_int_eq(w.after, 5);
    add(t, 0, 2, 6, 1);
    ck_assert_uint_eq(whole(t, 9).n_rows, 3);
    w = points_table_want(t, &measured); /* the read before this one failed half-way */
    ck_assert_int_eq(w.attempt, POINTS_ANY_ATTEMPT);
    ck_assert_int_eq(w.after, -1);
    ck_assert_uint_eq(whole(t, 9).n_rows, 0);
    const struct table_change *const again[] = {&changed, &next};
    for (size_t i = 0; i < AS_ARRAY_LEN(again); i++) {
        add(t, 0, 2, 5, 1);
        points_table_complete(t, 0);
        w = points_table_want(t, again[i]);
        ck_assert_int_eq(w.after, -1);
    }
    /* the second attempt has not come as far as the first one yet */
    add(t, 0, 2, 1, 1);
    add(t, 0, 1, 2, 1);
    points_table_complete(t, 0);
    w = points_table_want(t, &measured);
    ck_assert_int_eq(w.after, -1);
}
END_TEST

START_TEST(a_part_has_whole_lines)
{
    AS_AUTO(points_table_freep) struct points_table *t = make(3, POINTS_TABLE_MAX);
    for (int trial = 0; trial < 3; trial++)
        for (int i = 0; i < 5; i++)
            add(t, trial, 1, i, i);
    points_table_mark(t, 1, 20);
    points_table_mark(t, 1, 10);
    points_table_mark(t, 7, 30); /* no such trial */
    ck_assert_uint_eq(points_table_changed(t, 19), 1);
    ck_assert_uint_eq(points_table_changed(t, 20), 0);
    struct table_part part = {
        .max_points = POINTS_LINE_MAX, .is_single = true, .since = 15, .version = 20};
    struct columnar f = written(t, &part);
    ck_assert(!f.is_whole);
    ck_assert_str_eq(f.version, "20");
    ck_assert_uint_eq(f.n_rows, 5);
    ck_assert_double_eq(number(&f, "trial", 0), 1);
    ck_assert_int_eq((int)column(&f, "value")->type, COLUMNAR_F32);
    part.since = 20;
    ck_assert_uint_eq(written(t, &part).n_rows, 0);
}
END_TEST

START_TEST(points_that_do_not_fit_are_refused)
{
    AS_AUTO(points_table_freep) struct points_table *t = make(1, POINTS_TABLE_MAX);
    struct point_row p = {.number = 1, .attempt = 1, .step = 1};
    ck_fails(points_table_add(t, &p, &err), AS_E_INTERNAL, err, "trial 1");
    p.number = 0;
    ck_ok(points_table_add(t, &p, &err), err);
    ck_fails(points_table_add(t, &p, &err), AS_E_INTERNAL, err, "step 1");
}
END_TEST

TEST_SUITE()
{
    Suite *suite = suite_create("points_table");
    TCase *t = tcase_create("points_table");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, few_points_are_all_kept);
    tcase_add_test(t, extremes_are_kept);
    tcase_add_test(t, a_spike_is_seen);
    tcase_add_test(t, values_that_are_not_finite);
    tcase_add_test(t, all_points_are_bounded);
    tcase_add_test(t, what_is_read_of_a_change);
    tcase_add_test(t, a_part_has_whole_lines);
    tcase_add_test(t, points_that_do_not_fit_are_refused);
    suite_add_tcase(suite, t);
    return suite;
}
