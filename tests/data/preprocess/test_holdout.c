/* Columns that decide which rows are held out: words, order, groups; weights. */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "data/preprocess/holdout.h"
#include "tests/support/check_main.h"

#define MAX 64

static struct as_err err;
static unsigned char part[MAX];

static struct dataset_cells cells_of(const char *const *texts)
{
    struct dataset_cells c = {0};
    for (size_t i = 0; texts[i]; i++)
        ck_ok(dataset_cells_add(&c, texts[i], strlen(texts[i]), &err), err);
    return c;
}

/* "T", "H", "-" for each row. */
static void expect(size_t n, const char *want)
{
    char got[MAX + 1] = "";
    for (size_t i = 0; i < n; i++)
        got[i] = "TH-"[part[i]];
    ck_assert_str_eq(got, want);
}

static void words(const char *const *texts, const char *want)
{
    AS_AUTO(dataset_cells_done) struct dataset_cells c = cells_of(texts);
    ck_ok(holdout_by_words(&c, "split", part, &err), err);
    expect(c.n, want);
}

static void bad_words(const char *const *texts, const char *message)
{
    AS_AUTO(dataset_cells_done) struct dataset_cells c = cells_of(texts);
    ck_fails(holdout_by_words(&c, "split", part, &err), AS_E_INVAL, err, message);
}

START_TEST(by_words)
{
    words((const char *[]){"0", "1", "0.0", "1.0", "1e0", NULL}, "THTHH");
    words((const char *[]){"train", "Validation", "TRAINING", "val", "dev", NULL}, "THTHH");
    words((const char *[]){"true", "False", "yes", "no", "t", NULL}, "HTHTH");
    /* test rows are held out if nothing else is; in a column of three parts they are for nothing */
    words((const char *[]){"train", "test", "train", NULL}, "THT");
    words((const char *[]){"train", "test", "valid", NULL}, "T-H");
    bad_words((const char *[]){"train", "2", NULL},
              "column 'split', row 2: found '2', expected 1, true or validation");
    bad_words((const char *[]){"train", "", NULL}, "row 2: the cell is empty");
    bad_words((const char *[]){"train", "maybe", NULL}, "found 'maybe'");
    bad_words((const char *[]){"0", "0", NULL}, "2 rows to train on and 0 held out");
    bad_words((const char *[]){"test", "val", NULL}, "0 rows to train on and 1 held out");
}
END_TEST

static void order(const char *const *texts, size_t n_held, const char *want)
{
    AS_AUTO(dataset_cells_done) struct dataset_cells c = cells_of(texts);
    ck_ok(holdout_by_order(&c, "when", n_held, part, &err), err);
    expect(c.n, want);
}

static void bad_order(const char *const *texts, const char *message)
{
    AS_AUTO(dataset_cells_done) struct dataset_cells c = cells_of(texts);
    ck_fails(holdout_by_order(&c, "when", 1, part, &err), AS_E_INVAL, err, message);
}

START_TEST(by_order)
{
    order((const char *[]){"3", "1", "10", "-2", NULL}, 2, "HTHT");
    order((const char *[]){"5", "5", "5", "1", NULL}, 2, "THHT"); /* equal: the order of the file */
    /* float32 would not tell these apart */
    order((const char *[]){"1700000001", "1700000000", "1700000002", NULL}, 1, "TTH");
    order((const char *[]){"2026-01-31", "2025-12-31", "2026-02-01", NULL}, 1, "TTH");
    order((const char *[]){"2024-02-29", "2024-03-01", "2024-02-28", NULL}, 2, "HHT");
    order((const char *[]){"1969-12-31", "0001-01-01", "9999-12-31", NULL}, 1, "TTH");
    order((const char *[]){"2026-01-01T10:00:00+02:00", "2026-01-01 09:00", "2026-01-01T08:30Z",
                           "2026-01-01T09:00:00.25", NULL},
          2, "THTH");
    order((const char *[]){"9.3.2024", "2024-02-10", "1 Apr 2024 12:00", NULL}, 1, "TTH");
    bad_order((const char *[]){"monday", "1", NULL},
              "row 1: found 'monday', expected a number, or a date");
    bad_order((const char *[]){"2026-01-01", "7", NULL}, "row 2: found '7', expected a date");
    bad_order((const char *[]){"1", "2026-01-01", NULL}, "found '2026-01-01', expected a number");
    bad_order((const char *[]){"1", "", NULL}, "row 2: the cell is empty");
    bad_order((const char *[]){"1", "0x10", NULL}, "found '0x10'");
    bad_order((const char *[]){"1", "nan", NULL}, "found 'nan'");
    bad_order((const char *[]){"2026-13-01", "2", NULL}, "found '2026-13-01'");
    bad_order((const char *[]){"2026-01-01", "2026-01-01T25:00", NULL}, "found '2026-01-01T25:00'");
    bad_order((const char *[]){"2026-01-01", "2026-01-01x", NULL}, "found '2026-01-01x'");
}
END_TEST

/* No group on both sides, about the number that was wanted, and the same groups whatever the order
 * of the rows is. */
START_TEST(by_groups)
{
    for (uint64_t seed = 0; seed < 200; seed++) {
        struct dataset_cells c = {0}, turned = {0};
        struct rng r;
        size_t n = 8 + seed % 50, n_held = 1 + seed % (n / 2), held = 0, largest = 0;
        signed char side[12];
        size_t size[12] = {0}, of[MAX];
        rng_init(&r, seed, 1);
        memset(side, -1, sizeof side);
        for (size_t i = 0; i < n; i++) {
            of[i] = i < 2 ? i : (size_t)rng_below(&r, 12); /* two groups at least */
            largest = ++size[of[i]] > largest ? size[of[i]] : largest;
        }
        for (size_t i = 0; i < n; i++) {
            char name[24];
            (void)snprintf(name, sizeof name, "patient %zu", of[i]);
            ck_ok(dataset_cells_add(&c, name, strlen(name), &err), err);
            (void)snprintf(name, sizeof name, "patient %zu", of[n - 1 - i]);
            ck_ok(dataset_cells_add(&turned, name, strlen(name), &err), err);
        }
        ck_ok(holdout_by_groups(&c, "patient", n_held, seed, part, &err), err);
        for (size_t i = 0; i < n; i++) {
            ck_assert(side[of[i]] == -1 || side[of[i]] == part[i]);
            side[of[i]] = (signed char)part[i];
            held += part[i];
        }
        ck_assert(held > 0 && held < n);
        ck_assert_uint_le(held > n_held ? held - n_held : n_held - held, largest);
        unsigned char other[MAX];
        ck_ok(holdout_by_groups(&turned, "patient", n_held, seed, other, &err), err);
        for (size_t i = 0; i < n; i++)
            ck_assert_int_eq(other[n - 1 - i], part[i]);
        dataset_cells_done(&c);
        dataset_cells_done(&turned);
    }
}
END_TEST

START_TEST(bad_groups)
{
    AS_AUTO(dataset_cells_done)
    struct dataset_cells one = cells_of((const char *[]){"a", "a", NULL});
    ck_fails(holdout_by_groups(&one, "g", 1, 0, part, &err), AS_E_INVAL, err, "found 1 group");
    AS_AUTO(dataset_cells_done)
    struct dataset_cells hole = cells_of((const char *[]){"a", "", "b", NULL});
    ck_fails(holdout_by_groups(&hole, "g", 1, 0, part, &err), AS_E_INVAL, err,
             "row 2: the cell is empty, expected the name of its group");
    AS_AUTO(dataset_cells_done)
    struct dataset_cells large = cells_of((const char *[]){"a", "a", "a", "b", "b", "b", NULL});
    ck_ok(holdout_by_groups(&large, "g", 1, 0, part, &err), err); /* each larger than wanted */
    ck_assert_int_eq(part[0] + part[3], 1);
}
END_TEST

/* Each row in one fold, folds of equal size, each class in proportion. */
START_TEST(by_fold)
{
    for (uint64_t seed = 0; seed < 60; seed++) {
        size_t n = 20 + seed % 40, k = 2 + seed % 6, classes = 1 + seed % 4;
        size_t held[8] = {0}, of_class[8][4] = {{0}}, of[MAX] = {0};
        int32_t labels[MAX];
        for (size_t i = 0; i < n; i++)
            labels[i] = (int32_t)(i * i % classes);
        for (size_t fold = 0; fold < k; fold++) {
            ck_ok(holdout_by_fold(seed % 2 ? labels : NULL, n, classes, k, fold, seed, part, &err),
                  err);
            for (size_t i = 0; i < n; i++) {
                held[fold] += part[i];
                of[i] += part[i];
                of_class[fold][labels[i]] += part[i];
            }
        }
        for (size_t i = 0; i < n; i++)
            ck_assert_uint_eq(of[i], 1);
        for (size_t f = 1; f < k; f++) {
            ck_assert_uint_le(held[0] - held[f] + 1, 2);
            for (size_t c = 0; c < classes && seed % 2; c++)
                ck_assert_uint_le(of_class[0][c] - of_class[f][c] + 1, 2);
        }
    }
}
END_TEST

START_TEST(weights)
{
    float w[4];
    AS_AUTO(dataset_cells_done)
    struct dataset_cells good = cells_of((const char *[]){"0", "2.5", "1e-3", "7", NULL});
    ck_ok(holdout_weights(&good, "w", w, &err), err);
    ck_assert(w[0] == 0 && w[1] == 2.5F && w[2] == 1e-3F && w[3] == 7);
    static const char *const bad[] = {"-1", "", "nan", "heavy", "1e31"};
    for (size_t i = 0; i < AS_ARRAY_LEN(bad); i++) {
        AS_AUTO(dataset_cells_done)
        struct dataset_cells c = cells_of((const char *[]){"1", bad[i], NULL});
        ck_fails(holdout_weights(&c, "w", w, &err), AS_E_INVAL, err, "column 'w', row 2");
    }
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("holdout");
    TCase *t = tcase_create("holdout");
    tcase_add_test(t, by_words);
    tcase_add_test(t, by_order);
    tcase_add_test(t, by_groups);
    tcase_add_test(t, bad_groups);
    tcase_add_test(t, by_fold);
    tcase_add_test(t, weights);
    suite_add_tcase(s, t);
    return s;
}
