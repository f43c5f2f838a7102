/* The inputs of trees, from rows that preprocessing has encoded. */
#include <math.h>
#include <string.h>

#include "data/preprocess/preprocess.h"
#include "model/trees/tree_inputs.h"
#include "tests/support/check_main.h"

static struct as_err err;

/* Two numbers, the second sometimes missing, between two categories of which the first is sometimes
 * missing and the second has rare values. */
static char *colours[] = {"blue", "green"};
static char *sizes[] = {"l", "m", "s"};
static struct dataset_column columns[] = {
    {.name = "colour", .categorical = true, .n_missing = 1, .n_values = 2, .values = colours},
    {.name = "width"},
    {.name = "size", .categorical = true, .n_other = 1, .n_values = 3, .values = sizes},
    {.name = "age", .n_missing = 2},
};
static const struct dataset_info table = {.input = DATASET_TABLE,
                                          .task = DATASET_REGRESSION,
                                          .n_rows = 4,
                                          .n_features = 4,
                                          .n_outputs = 1,
                                          .columns = columns};

/* As data/dataset_csv.c reads them: a missing number is NaN, a missing category n_values + 1, any
 * other value n_values. No training row (0, 1, 2) has the size "s". */
static const float raw[4][4] = {{0, 1.5F, 0, 30}, {3, -2, 3, NAN}, {1, 0, 1, 50}, {1, 7, 2, NAN}};
/* width, age; colour, size */
static const float want[4][4] = {
    {1.5F, 30, 0, 0}, {-2, NAN, NAN, 3}, {0, 50, 1, 1}, {7, NAN, 1, 3 /* not seen: other */}};

static void same(const float *got, const float *expected, size_t n)
{
    for (size_t i = 0; i < n; i++)
        ck_assert_msg(isnan(expected[i]) ? isnan(got[i])
                                         : !(got[i] < expected[i]) && !(got[i] > expected[i]),
                      "input %zu: %g, expected %g", i, (double)got[i], (double)expected[i]);
}

START_TEST(rows_of_a_table)
{
    static const int32_t train[] = {0, 1, 2}, held[] = {3}, pick[] = {3, 1};
    const struct preprocess_rows rows = {train, held, 3, 1};
    const struct preprocess_opts opts = {.n_validation = 1, .embed_categories = true};
    struct dataset set = {.n_rows = 4, .n_features = 4, .n_outputs = 1};
    AS_AUTO(preprocess_done) struct preprocess fit = {0};
    AS_AUTO(as_freep) int32_t *codes = NULL;
    float got[4][4];
    set.x = as_calloc(16, sizeof *set.x);
    ck_assert_ptr_nonnull(set.x);
    memcpy(set.x, raw, sizeof raw);
    ck_ok(preprocess_fit(&set, &table, &rows, &opts, &fit, &err), err);
    ck_ok(preprocess_apply(&fit, &table, &set, &codes, &err), err);
    ck_assert_uint_eq(tree_inputs_count(&table), 4);
    tree_inputs_of(&table, set.x, codes, NULL, 4, &got[0][0]);
    for (size_t r = 0; r < 4; r++)
        same(got[r], want[r], 4);
    tree_inputs_of(&table, set.x, codes, pick, 2, &got[0][0]);
    same(got[0], want[3], 4);
    same(got[1], want[1], 4);
    dataset_done(&set);
}
END_TEST

START_TEST(columns_of_inputs)
{
    static const size_t column[] = {1, 3, 0, 2};
    for (size_t i = 0; i < 4; i++) {
        ck_assert_uint_eq(tree_inputs_column(&table, i), column[i]);
        ck_assert_int_eq(tree_inputs_is_category(&table, i), i >= 2);
    }
}
END_TEST

START_TEST(pixels)
{
    static const struct dataset_info image = {.input = DATASET_IMAGE, .n_features = 2};
    static const float x[] = {1, 2, 3, 4};
    static const int32_t pick[] = {1};
    float got[2];
    tree_inputs_of(&image, x, NULL, pick, 1, got);
    same(got, x + 2, 2);
    ck_assert_uint_eq(tree_inputs_column(&image, 1), 1);
    ck_assert(!tree_inputs_is_category(&image, 1));
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("tree_inputs");
    TCase *t = tcase_create("all");
    tcase_add_test(t, rows_of_a_table);
    tcase_add_test(t, columns_of_inputs);
    tcase_add_test(t, pixels);
    suite_add_tcase(s, t);
    return s;
}
