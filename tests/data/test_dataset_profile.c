/* What people see of a registered data set: distributions of all kinds of columns and formats, and
 * the first rows. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/str.h"
#include "data/dataset_profile.h"
#include "data/dataset_read.h"
#include "data/formats/npy.h"
#include "tests/support/check_main.h"
#include "tests/support/temp_folder.h"

static struct as_err err;
static char dir[TEMP_FOLDER_SIZE];

static void setup(void)
{
    temp_folder_make(dir);
}

static void teardown(void)
{
    temp_folder_remove(dir);
}

/* The profile of a file with this content. Owned by the caller. */
static struct dataset_profile profile_of(const char *name, const void *bytes, size_t len,
                                         dataset_format format, const char *target)
{
    AS_AUTO(dataset_info_done) struct dataset_info info = {0};
    struct dataset_profile p = {0};
    char path[TEMP_FOLDER_SIZE + 32];
    (void)snprintf(path, sizeof path, "%s/%s", dir, name);
    const struct dataset_paths paths = {.table = path};
    ck_ok(file_replace(path, bytes, len, 0644, &err), err);
    ck_ok(dataset_inspect(&paths, format, target, DATASET_TASK_AUTO, NULL, &info, &err), err);
    ck_ok(dataset_profile_read(&paths, &info, &p, &err), err);
    return p;
}

static struct dataset_profile of_text(const char *text, const char *target)
{
    return profile_of("t.csv", text, strlen(text), DATASET_CSV, target);
}

static size_t counted(const struct number_bins *b)
{
    size_t n = 0;
    for (int64_t p = b->first; p <= b->last; p++)
        n += b->counts[p - b->first];
    return n;
}

START_TEST(kinds_of_columns)
{
    AS_AUTO(dataset_profile_done)
    struct dataset_profile p =
        of_text("age,town,seen,kind\n1,Ulm,2024-03-09,a\n2,Ulm,2024-03-10,b\n,Rom,2024-03-11,a\n"
                "4,Rom,,b\n5,Bad,2024-03-09 12:00,a\n",
                "kind");
    ck_assert_uint_eq(p.n_looked, 5);
    ck_assert_uint_eq(p.n_columns, 4);
    const struct profile_column *kind = &p.columns[0], *age = &p.columns[1], *town = &p.columns[2];
    const struct profile_column *seen = &p.columns[3];
    ck_assert(kind->is_target && kind->kind == PROFILE_CATEGORICAL);
    ck_assert_str_eq(kind->top[0].name, "a");
    ck_assert_uint_eq(kind->top[0].rows, 3);
    ck_assert_int_eq(age->kind, PROFILE_NUMERIC);
    ck_assert_uint_eq(age->n_missing, 1);
    ck_assert_uint_eq(age->numbers.n, 4);
    ck_assert_double_eq(age->numbers.least, 1);
    ck_assert_double_eq(age->numbers.most, 5);
    ck_assert_double_eq(age->numbers.mean, 3);
    ck_assert_double_eq(number_bins_width(&age->numbers), 1);
    ck_assert_mem_eq(age->numbers.counts, ((size_t[]){1, 1, 0, 1, 1}), 5 * sizeof(size_t));
    ck_assert_int_eq(town->kind, PROFILE_CATEGORICAL);
    ck_assert_uint_eq(town->n_top, 2); /* Bad is in one row: a rare value */
    ck_assert_uint_eq(town->n_values, 3);
    ck_assert_uint_eq(town->n_other, 1);
    ck_assert_int_eq(seen->kind, PROFILE_DATE);
    ck_assert_uint_eq(seen->n_missing, 1);
    ck_assert_double_eq(seen->numbers.least, 19791); /* days since 1970-01-01 */
    ck_assert_double_eq(seen->numbers.most, 19793);
    ck_assert_uint_eq(p.n_first, 5);
    ck_assert_str_eq(p.cells[4 * 4 + 2], "Bad");
}
END_TEST

START_TEST(long_cells_are_cut_between_characters)
{
    AS_AUTO(str_done) struct str text = {0};
    str_puts(&text, "prose,y\n");
    for (int row = 0; row < 200; row++) {
        str_printf(&text, "row %d ", row);
        for (int i = 0; i < 60; i++)
            str_puts(&text, i % 5 ? "ä" : " ä");
        str_printf(&text, ",%d\n", row % 2);
    }
    AS_AUTO(dataset_profile_done) struct dataset_profile p = of_text(str_cstr(&text), "y");
    ck_assert_int_eq(p.columns[1].kind, PROFILE_TEXT);
    ck_assert_double_ge(p.columns[1].numbers.least, 100);
    ck_assert_uint_eq(p.n_first, PROFILE_ROWS);
    ck_assert(as_utf8_valid(p.cells[1], strlen(p.cells[1])));
    ck_assert(as_ends_with(p.cells[1], "…"));
    ck_assert_uint_le(strlen(p.cells[1]), PROFILE_CELL + strlen("…"));
}
END_TEST

/* Whatever comes after the width was chosen, each number is counted, in at most NUMBER_BINS. */
START_TEST(bins_grow)
{
    struct number_bins b = {0};
    double sum = 0;
    const size_t n = 20000;
    for (size_t i = 0; i < n; i++) {
        const double v = sin((double)i) * pow(1.001, (double)i) + 1e6;
        sum += v;
        number_bins_add(&b, v);
    }
    number_bins_end(&b);
    const double width = number_bins_width(&b);
    ck_assert_uint_eq(b.n, n);
    ck_assert_uint_eq(counted(&b), n);
    ck_assert_int_lt(b.last - b.first, NUMBER_BINS);
    ck_assert_int_ge(b.last - b.first, NUMBER_BINS / 4); /* and no wider than need be */
    ck_assert_double_le((double)b.first * width, b.least);
    ck_assert_double_gt((double)(b.last + 1) * width, b.most);
    ck_assert_double_eq_tol(b.mean, sum / (double)n, 1e-6 * fabs(sum / (double)n));
}
END_TEST

START_TEST(bins_of_extremes)
{
    static const double sets[][3] = {{0, 0, 0},       {-3, -3, -3},        {1e300, -1e300, 0},
                                     {5e-324, 0, 0},  {1e15, 1e15 + 1, 0}, {0.1, 0.1, 0.1},
                                     {-0.5, 0.5, -1}, {1e-300, 1e300, 1}};
    for (size_t k = 0; k < AS_ARRAY_LEN(sets); k++) {
        struct number_bins b = {0};
        for (size_t i = 0; i < 600; i++)
            number_bins_add(&b, sets[k][i % 3]);
        number_bins_end(&b);
        ck_assert_uint_eq(counted(&b), 600);
        ck_assert_int_lt(b.last - b.first, NUMBER_BINS);
    }
}
END_TEST

START_TEST(tokens_by_frequency)
{
    AS_AUTO(dataset_profile_done)
    struct dataset_profile p = profile_of("t.txt", "aab\nab a", 8, DATASET_TEXT, NULL);
    ck_assert_uint_eq(p.n_looked, 8);
    ck_assert_uint_eq(p.columns[0].n_values, 4);
    ck_assert_str_eq(p.columns[0].top[0].name, "a");
    ck_assert_uint_eq(p.columns[0].top[0].rows, 4);
    ck_assert_str_eq(p.columns[0].top[3].name, "0x20");
}
END_TEST

START_TEST(rows_of_an_array)
{
    AS_AUTO(dataset_info_done) struct dataset_info info = {0};
    AS_AUTO(dataset_profile_done) struct dataset_profile p = {0};
    char path[TEMP_FOLDER_SIZE + 32];
    const float values[] = {0.5f, NAN, 1, 2.5f, 4, 0, 1.5f, 6, 1};
    (void)snprintf(path, sizeof path, "%s/a.npy", dir);
    const struct dataset_paths paths = {.table = path};
    ck_ok(npy_write(path, NPY_F4, (size_t[]){3, 3}, 2, values, &err), err);
    ck_ok(dataset_inspect(&paths, DATASET_NPY, "-1", DATASET_TASK_AUTO, NULL, &info, &err), err);
    ck_ok(dataset_profile_read(&paths, &info, &p, &err), err);
    ck_assert_uint_eq(p.n_columns, 3);
    ck_assert_int_eq(p.columns[0].kind, PROFILE_CATEGORICAL);
    ck_assert_str_eq(p.columns[0].top[0].name, "1");
    ck_assert_uint_eq(p.columns[0].top[0].rows, 2);
    ck_assert_str_eq(p.columns[2].name, "1");
    ck_assert_uint_eq(p.columns[2].n_missing, 1);
    ck_assert_double_eq(p.columns[2].numbers.most, 6);
    ck_assert_str_eq(p.cells[1], "0.5");
    ck_assert_str_eq(p.cells[2], "");
}
END_TEST

START_TEST(as_json)
{
    AS_AUTO(dataset_profile_done) struct dataset_profile p = of_text("x,y\n1,a\n2,b\n3,a\n", "y");
    JSON_AUTO j = dataset_profile_to_json(&p);
    const json_t *columns = json_object_get(j, "columns");
    ck_assert_int_eq(json_integer_value(json_object_get(j, "rows_looked_at")), 3);
    const json_t *top =
        json_object_get(json_object_get(json_array_get(columns, 0), "values"), "top");
    ck_assert_str_eq(json_string_value(json_object_get(json_array_get(top, 0), "value")), "a");
    const json_t *numbers = json_object_get(json_array_get(columns, 1), "numbers");
    ck_assert_double_eq(json_real_value(json_object_get(numbers, "mean")), 2);
    ck_assert_uint_eq(json_array_size(json_object_get(numbers, "counts")), 3);
    ck_assert_uint_eq(json_array_size(json_object_get(j, "first_rows")), 3);
}
END_TEST

/* The nth allocation fails: an error, and nothing is lost. */
START_TEST(without_memory)
{
    AS_AUTO(dataset_info_done) struct dataset_info info = {0};
    static const char text[] = "x,town,y\n1,Ulm,a\n2,Ulm,b\n3,Rom,a\n4,Rom,b\n";
    char path[TEMP_FOLDER_SIZE + 32];
    as_status st = AS_E_NOMEM;
    (void)snprintf(path, sizeof path, "%s/t.csv", dir);
    const struct dataset_paths paths = {.table = path};
    ck_ok(file_replace(path, text, sizeof text - 1, 0644, &err), err);
    ck_ok(dataset_inspect(&paths, DATASET_CSV, "y", DATASET_TASK_AUTO, NULL, &info, &err), err);
    for (size_t n = 1; st != AS_OK; n++) {
        struct dataset_profile p = {0};
        as_mem_fail_nth(n);
        st = dataset_profile_read(&paths, &info, &p, &err);
        as_mem_fail_nth(0);
        ck_assert(st == AS_OK || st == AS_E_NOMEM);
        dataset_profile_done(&p);
    }
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("dataset_profile");
    TCase *tc = tcase_create("dataset_profile");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, kinds_of_columns);
    tcase_add_test(tc, long_cells_are_cut_between_characters);
    tcase_add_test(tc, bins_grow);
    tcase_add_test(tc, bins_of_extremes);
    tcase_add_test(tc, tokens_by_frequency);
    tcase_add_test(tc, rows_of_an_array);
    tcase_add_test(tc, as_json);
    tcase_add_test(tc, without_memory);
    suite_add_tcase(s, tc);
    return s;
}
