/* Dates and texts as inputs: what is learnt about them, their record, and rows encoded with it. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/str.h"
#include "data/dataset_read.h"
#include "data/preprocess/record.h"
#include "data/text_hash.h"
#include "tests/support/check_main.h"
#include "tests/support/temp_folder.h"

enum { ROWS = 4, BUCKETS = 8, INPUTS = 1 + 1 + 4 + BUCKETS + 3 };

static const char table[] = "when,note,k,y\n"
                            "2024-03-01,one two three,u,1\n"
                            "2024-03-05,two three four,v,2\n"
                            ",,u,3\n"
                            "2024-04-10,five six seven,v,4\n";

static struct as_err err;
static struct dataset_info info;
static struct dataset set;
static struct preprocess fit;

static void setup(void)
{
    char dir[TEMP_FOLDER_SIZE], path[64];
    static const int32_t rows[ROWS] = {0, 1, 2, 3};
    const struct preprocess_rows split = {rows, rows + ROWS, ROWS, 0};
    const struct preprocess_opts opts = {.standardize = true};
    const struct dataset_options o = {.buckets = BUCKETS};
    temp_folder_make(dir);
    (void)snprintf(path, sizeof path, "%s/t.csv", dir);
    const struct dataset_paths paths = {.table = path};
    ck_ok(file_replace(path, table, strlen(table), 0644, &err), err);
    ck_ok(dataset_inspect(&paths, DATASET_CSV, "y", DATASET_REGRESSION, &o, &info, &err), err);
    ck_ok(dataset_load(&paths, &info, &set, &err), err);
    ck_ok(preprocess_fit(&set, &info, &split, &opts, &fit, &err), err);
    temp_folder_remove(dir);
}

static void teardown(void)
{
    preprocess_done(&fit);
    dataset_done(&set);
    dataset_info_done(&info);
}

/* Texts keep their numbers; days are filled with their median, and cycles with 0. */
START_TEST(inputs)
{
    int32_t *codes = NULL;
    float text[BUCKETS];
    ck_ok(preprocess_apply(&fit, &info, &set, &codes, &err), err);
    ck_assert_uint_eq(set.n_features, INPUTS);
    text_hash("five six seven", 14, BUCKETS, text);
    ck_assert_mem_eq(set.x + 3 * INPUTS + 6, text, sizeof text);
    text_hash("", 0, BUCKETS, text);
    ck_assert_mem_eq(set.x + 2 * INPUTS + 6, text, sizeof text);
    const float *row = set.x + 2 * INPUTS;
    ck_assert_float_eq(fit.fill[0], 4);
    ck_assert_float_eq(row[0], (4 - fit.mean[0]) / fit.scale[0]);
    ck_assert_float_eq(row[1], 1);
    ck_assert_float_eq(row[2], (0 - fit.mean[2]) / fit.scale[2]);
    ck_assert_float_ne(fit.scale[2], 1);
}
END_TEST

START_TEST(record_and_back)
{
    AS_AUTO(preprocess_done) struct preprocess again = {0};
    JSON_AUTO j = preprocess_to_json(&fit, &info);
    ck_assert_ptr_nonnull(j);
    const json_t *columns = json_object_get(j, "columns"), *item = json_array_get(columns, 2);
    ck_assert_uint_eq(json_array_size(columns), 5 + 1 + 1);
    ck_assert_str_eq(json_string_value(json_object_get(item, "kind")), "date");
    ck_assert_str_eq(json_string_value(json_object_get(item, "part")), "week_cos");
    item = json_array_get(columns, 5);
    ck_assert_str_eq(json_string_value(json_object_get(item, "kind")), "text");
    ck_assert_int_eq(json_integer_value(json_object_get(item, "input")), 6);
    ck_ok(preprocess_from_json(j, "/p", &info, &again, &err), err);
    ck_assert_uint_eq(again.n_scales, fit.n_scales);
    ck_assert_mem_eq(again.mean, fit.mean, fit.n_scales * sizeof *fit.mean);
    ck_assert_mem_eq(again.scale, fit.scale, fit.n_scales * sizeof *fit.scale);
    ck_assert_mem_eq(again.fill, fit.fill, info.n_features * sizeof *fit.fill);
}
END_TEST

/* The record of other dates or texts is refused at the first field that differs. */
START_TEST(other_records)
{
    static const struct {
        size_t item;
        const char *field;
        const char *value, *expected;
    } cases[] = {
        {1, "part", "\"month_sin\"", "/p/columns/1/part: found 'month_sin', expected 'week_sin'"},
        {1, "kind", "\"numeric\"", "/p/columns/1/kind"},
        {5, "buckets", "16", "/p/columns/5/buckets: found 16, expected 8"},
        {5, "input", "7", "/p/columns/5/input"},
        {5, "mean", "0", "/p/columns/5/mean"},
    };
    for (size_t i = 0; i < AS_ARRAY_LEN(cases); i++) {
        AS_AUTO(preprocess_done) struct preprocess again = {0};
        JSON_AUTO j = preprocess_to_json(&fit, &info);
        json_t *item = json_array_get(json_object_get(j, "columns"), cases[i].item);
        json_t *value = json_loads(cases[i].value, JSON_DECODE_ANY, NULL);
        ck_assert_int_eq(json_object_set_new(item, cases[i].field, value), 0);
        ck_fails(preprocess_from_json(j, "/p", &info, &again, &err), AS_E_INVAL, err,
                 cases[i].expected);
    }
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("derived");
    TCase *t = tcase_create("derived");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, inputs);
    tcase_add_test(t, record_and_back);
    tcase_add_test(t, other_records);
    suite_add_tcase(s, t);
    return s;
}
