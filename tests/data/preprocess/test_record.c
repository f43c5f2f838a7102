/* A record read back encodes rows as what was fitted does, bit for bit; every field of a record is
 * checked. */
#include <math.h>
#include <string.h>

#include "base/json.h"
#include "tests/support/check_main.h"
#include "data/preprocess/record.h"

static struct as_err err;

#define ROWS 23

/* ---- data sets to fit on; new rows are others of the same columns ---- */

static char *jobs[] = {(char *)"clerk", (char *)"cook", (char *)"king"};
static char *towns[] = {(char *)"Bern", (char *)"Ulm"};
static struct dataset_column columns[] = {
    {.name = (char *)"age", .n_missing = 3},
    {.name = (char *)"job", .categorical = true, .n_missing = 2, .n_values = 3, .values = jobs},
    {.name = (char *)"pay"},
    {.name = (char *)"town", .categorical = true, .n_values = 2, .values = towns},
};

static const struct dataset_info table = {.task = DATASET_REGRESSION,
                                          .n_rows = ROWS,
                                          .n_features = 4,
                                          .n_outputs = 2,
                                          .columns = columns};
static const struct dataset_info plain = {
    .task = DATASET_CLASSIFICATION, .n_rows = ROWS, .n_features = 4, .n_outputs = 3};
static const struct dataset_info image = {.task = DATASET_CLASSIFICATION,
                                          .input = DATASET_IMAGE,
                                          .n_rows = ROWS,
                                          .n_features = 12,
                                          .n_outputs = 3,
                                          .height = 2,
                                          .width = 2,
                                          .channels = 3};
static const struct dataset_info text = {.task = DATASET_LANGUAGE_MODELING,
                                         .input = DATASET_TOKEN_TEXT,
                                         .n_rows = ROWS,
                                         .n_features = 1,
                                         .n_outputs = 5};

static float number_of(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (float)(int32_t)(*state >> 32) / 3e7f;
}

/* A cell of a table with categories: those of a column of 3 are 0 to 4 (others, missing). The
 * training rows below hold no clerk. */
static float cell_of(const struct dataset_column *c, uint64_t *state, bool clerks)
{
    float v = number_of(state);
    if (!c->categorical)
        return c->n_missing && v > 40 ? NAN : v;
    size_t slots = dataset_column_slots(c), slot = (size_t)fabsf(v * 1000) % slots;
    return (float)(slot == 0 && !clerks ? 1 : slot);
}

/* Rows of `info`, other ones for each seed. Owned by the caller. */
static struct dataset rows_of(const struct dataset_info *info, uint64_t seed, bool clerks)
{
    struct dataset d = {
        .n_rows = info->n_rows, .n_features = info->n_features, .n_outputs = info->n_outputs};
    size_t n = d.n_rows * d.n_features;
    if (info->input == DATASET_TOKEN_TEXT) {
        d.tokens = as_calloc(n, sizeof *d.tokens);
        return d;
    }
    d.x = as_calloc(n, sizeof *d.x);
    for (size_t i = 0; i < n; i++)
        d.x[i] = info->columns ? cell_of(&columns[i % 4], &seed, clerks) : number_of(&seed);
    if (info->task == DATASET_REGRESSION)
        d.targets = as_calloc(d.n_rows * d.n_outputs, sizeof *d.targets);
    else
        d.labels = as_calloc(d.n_rows, sizeof *d.labels);
    for (size_t i = 0; d.targets && i < d.n_rows * d.n_outputs; i++)
        d.targets[i] = 1000 + number_of(&seed);
    return d;
}

/* Fit on all rows but the last five. */
static struct preprocess fitted(const struct dataset_info *info, bool standardize, bool codes)
{
    AS_AUTO(dataset_done) struct dataset set = rows_of(info, 1, false);
    int32_t order[ROWS];
    for (int32_t i = 0; i < ROWS; i++)
        order[i] = i;
    const struct preprocess_rows rows = {order, order + ROWS - 5, ROWS - 5, 5};
    const struct preprocess_opts opts = {
        .n_validation = 5, .context = 2, .standardize = standardize, .embed_categories = codes};
    struct preprocess p = {0};
    ck_ok(preprocess_fit(&set, info, &rows, &opts, &p, &err), err);
    return p;
}

/* As text and back, as a stored model's record comes. */
static json_t *stored(const struct preprocess *p, const struct dataset_info *info)
{
    JSON_AUTO record = preprocess_to_json(p, info);
    ck_assert_ptr_nonnull(record);
    AS_AUTO(as_freep) char *s = json_format(record);
    json_t *back = NULL;
    ck_ok(json_parse(s, strlen(s), &back, &err), err);
    return back;
}

static void same_encoding(const struct preprocess *a, const struct preprocess *b,
                          const struct dataset_info *info)
{
    AS_AUTO(dataset_done) struct dataset x = rows_of(info, 2, true), y = rows_of(info, 2, true);
    AS_AUTO(as_freep) int32_t *codes_x = NULL;
    AS_AUTO(as_freep) int32_t *codes_y = NULL;
    ck_ok(preprocess_apply(a, info, &x, &codes_x, &err), err);
    ck_ok(preprocess_apply(b, info, &y, &codes_y, &err), err);
    ck_assert_uint_eq(x.n_features, y.n_features);
    if (x.x)
        ck_assert_mem_eq(x.x, y.x, x.n_rows * x.n_features * sizeof *x.x);
    if (x.targets)
        ck_assert_mem_eq(x.targets, y.targets, x.n_rows * x.n_outputs * sizeof *x.targets);
    ck_assert_int_eq(codes_x == NULL, codes_y == NULL);
    ck_assert_int_eq(codes_x != NULL, a->n_codes > 0);
    if (codes_x)
        ck_assert_mem_eq(codes_x, codes_y, x.n_rows * a->n_codes * sizeof *codes_x);
}

START_TEST(read_back)
{
    const struct dataset_info *infos[] = {&table, &plain, &image, &text};
    for (int i = 0; i < 16; i++) {
        const struct dataset_info *info = infos[i / 4];
        AS_AUTO(preprocess_done) struct preprocess p = fitted(info, i % 2, i / 2 % 2);
        AS_AUTO(preprocess_done) struct preprocess back = {0};
        JSON_AUTO record = stored(&p, info);
        ck_ok(preprocess_from_json(record, "", info, &back, &err), err);
        JSON_AUTO again = preprocess_to_json(&back, info);
        ck_assert(json_equal(record, again));
        ck_assert_uint_eq(back.n_codes, p.n_codes);
        ck_assert_uint_eq(back.n_scales, p.n_scales);
        ck_assert_uint_eq(back.n_targets, p.n_targets);
        same_encoding(&p, &back, info);
    }
}
END_TEST

/* What is encoded later does not depend on the rows that are encoded with it. */
START_TEST(one_row_alone)
{
    AS_AUTO(preprocess_done) struct preprocess p = fitted(&table, true, false);
    AS_AUTO(dataset_done) struct dataset all = rows_of(&table, 3, true);
    AS_AUTO(dataset_done) struct dataset one = {.n_rows = 1, .n_features = 4};
    int32_t *none = NULL;
    one.x = as_calloc(4, sizeof *one.x);
    memcpy(one.x, all.x + 17 * 4, 4 * sizeof *one.x);
    ck_ok(preprocess_apply(&p, &table, &all, &none, &err), err);
    ck_ok(preprocess_apply(&p, &table, &one, &none, &err), err);
    /* age, its indicator, pay; three jobs, others, missing; two towns, others */
    ck_assert_uint_eq(one.n_features, 11);
    ck_assert_mem_eq(one.x, all.x + 17 * 11, 11 * sizeof *one.x);
}
END_TEST

START_TEST(other_columns_are_refused)
{
    AS_AUTO(preprocess_done) struct preprocess p = fitted(&table, true, false);
    AS_AUTO(dataset_done) struct dataset wide = rows_of(&image, 3, true);
    AS_AUTO(dataset_done) struct dataset set = rows_of(&table, 3, true);
    int32_t *none = NULL;
    ck_fails(preprocess_apply(&p, &table, &wide, &none, &err), AS_E_INVAL, err,
             "rows of 12 features, expected 4");
    ck_fails(preprocess_apply(&p, &image, &wide, &none, &err), AS_E_INVAL, err,
             "the data set's input is image, expected table");
    set.n_outputs = 1;
    ck_fails(preprocess_apply(&p, &table, &set, &none, &err), AS_E_INVAL, err,
             "rows of 1 targets, expected 2");
}
END_TEST

/* ---- records that are refused ---- */

static size_t index_of(const char *s)
{
    return (size_t)strtoul(s, NULL, 10);
}

/* The value at a path such as "columns/1/mean", and its parent and last name. */
static json_t *at(json_t *j, const char *path, json_t **parent, char last[64])
{
    char copy[128], *rest = copy;
    (void)snprintf(copy, sizeof copy, "%s", path);
    while (rest) {
        char *slash = strchr(rest, '/');
        if (slash)
            *slash = '\0';
        (void)snprintf(last, 64, "%s", rest);
        *parent = j;
        j = json_is_array(j) ? json_array_get(j, index_of(rest)) : json_object_get(j, rest);
        rest = slash ? slash + 1 : NULL;
    }
    return j;
}

/* The record of `info` with the value at `path` replaced (NULL: taken away) is refused. */
static void refused(const struct dataset_info *info, bool codes, const char *path,
                    const char *value, const char *message)
{
    AS_AUTO(preprocess_done) struct preprocess p = fitted(info, true, codes);
    JSON_AUTO record = stored(&p, info);
    json_t *parent = NULL;
    char last[64];
    struct preprocess no = {0};
    (void)at(record, path, &parent, last);
    json_t *v = value ? json_loads(value, JSON_DECODE_ANY, NULL) : NULL;
    ck_assert(!value == !v);
    if (json_is_array(parent))
        ck_assert_int_eq(v ? json_array_set_new(parent, index_of(last), v)
                           : json_array_remove(parent, index_of(last)),
                         0);
    else
        ck_assert_int_eq(v ? json_object_set_new(parent, last, v) : json_object_del(parent, last),
                         0);
    ck_fails(preprocess_from_json(record, "/p", info, &no, &err), AS_E_INVAL, err, message);
    ck_assert_ptr_null(no.mean);
}

static const struct {
    const struct dataset_info *info;
    bool codes;
    const char *path, *value, *message;
} malformed[] = {
    {&table, false, "input", "\"image\"", "/p/input: found 'image', expected 'table'"},
    {&table, false, "input", "1", "/p/input: found 1, expected a string"},
    {&table, false, "standardize", NULL, "/p/standardize is missing"},
    {&table, false, "training_rows", "0", "/p/training_rows: found 0, expected a whole number"},
    {&table, false, "validation_rows", "-1", "/p/validation_rows: found -1"},
    {&table, false, "columns", NULL, "/p/columns is missing"},
    {&table, false, "columns", "{}", "/p/columns: found an object, expected a list"},
    {&table, false, "columns/3", NULL, "/p/columns: found 3 columns, expected 4"},
    {&table, false, "columns/0", "7", "/p/columns/0: found a whole number, expected an object"},
    {&table, false, "columns/0/column", "\"pay\"", "found 'pay', expected 'age'"},
    {&table, false, "columns/0/kind", "\"categorical\"", "expected 'numeric'"},
    {&table, false, "columns/0/input", "1", "/p/columns/0/input: found 1, expected 0"},
    {&table, false, "columns/0/mean", "\"NaN\"", "/p/columns/0/mean: found \"NaN\""},
    {&table, false, "columns/0/mean", "1e39", "/p/columns/0/mean: found"},
    {&table, false, "columns/0/scale", "0.0", "/p/columns/0/scale: found 0, expected more than 0"},
    {&table, false, "columns/0/scale", "1e-60", "expected more than 0"},
    {&table, false, "columns/0/scale", "-1.0", "expected more than 0"},
    {&table, false, "columns/0/missing", NULL, "/p/columns/0/missing is missing"},
    {&table, false, "columns/0/indicator", "2", "/p/columns/0/indicator: found 2, expected 1"},
    {&table, false, "columns/1/missing", "1.5", "/p/columns/1/missing is not a known field"},
    {&table, false, "columns/2/kind", "\"numeric\"", "found 'numeric', expected 'categorical'"},
    {&table, false, "columns/2/input", "4", "/p/columns/2/input: found 4, expected 3"},
    {&table, false, "columns/2/values", "[]", "/p/columns/2/values: found 0, expected 3"},
    {&table, false, "columns/2/values/1", "\"smith\"", "expected 'cook' or null"},
    {&table, false, "columns/2/values/1", "1", "expected 'cook' or null"},
    {&table, false, "columns/2/other", "5", "/p/columns/2/other: found 5, expected 6"},
    {&table, false, "columns/2/missing", "6", "/p/columns/2/missing: found 6, expected 7"},
    {&table, false, "columns/3/missing", "11", "/p/columns/3/missing is not a known field"},
    {&table, true, "columns/2/code", "3", "/p/columns/2/code: found 3, expected 0"},
    {&table, true, "columns/3/code", NULL, "/p/columns/2/input is missing"},
    {&table, false, "target", NULL, "/p/target is missing"},
    {&table, false, "target/mean", "[1.0]", "/p/target/mean: found 1 numbers, expected 2"},
    {&table, false, "target/scale/1", "0.0", "/p/target/scale/1: found"},
    {&table, false, "target/scale/1", "null", "/p/target/scale/1: found null, expected a number"},
    {&table, false, "extra", "1", "/p/extra is not a known field"},
    {&plain, false, "target", "{}", "/p/target is not a known field"},
    {&plain, false, "columns/3/column", "\"4\"", "found '4', expected '3'"},
    {&image, false, "image/height", "3", "/p/image/height: found 3, expected 2"},
    {&image, false, "image/channels", "1", "/p/image/channels: found 1, expected 3"},
    {&image, false, "image/mean/2", NULL, "/p/image/mean: found 2 numbers, expected 3"},
    {&image, false, "image/scale/0", "-2.0", "/p/image/scale/0: found"},
    {&image, false, "image/mean/0", "1e39", "/p/image/mean/0: found"},
    {&image, false, "image/gamma", "1", "/p/image/gamma is not a known field"},
    {&text, false, "text", NULL, "/p/text is missing"},
    {&text, false, "text/context", "0", "/p/text/context: found 0"},
    {&text, false, "text/vocab", "6", "/p/text/vocab: found 6, expected 5"},
    {&text, false, "text/training_tokens", "1.5", "/p/text/training_tokens: found 1.5"},
};

START_TEST(malformed_is_refused)
{
    refused(malformed[_i].info, malformed[_i].codes, malformed[_i].path, malformed[_i].value,
            malformed[_i].message);
}
END_TEST

START_TEST(no_object)
{
    struct preprocess no = {0};
    JSON_AUTO list = json_array();
    ck_fails(preprocess_from_json(list, "", &table, &no, &err), AS_E_INVAL, err,
             "the document: found a list, expected an object");
}
END_TEST

START_TEST(out_of_memory)
{
    AS_AUTO(preprocess_done) struct preprocess p = fitted(&table, true, true);
    JSON_AUTO record = stored(&p, &table);
    as_status st = AS_E_NOMEM;
    size_t nth = 0;
    while (st != AS_OK) {
        AS_AUTO(preprocess_done) struct preprocess back = {0};
        AS_AUTO(dataset_done) struct dataset set = rows_of(&table, 4, true);
        AS_AUTO(as_freep) int32_t *codes = NULL;
        as_mem_fail_nth(++nth);
        st = preprocess_from_json(record, "", &table, &back, &err);
        if (st == AS_OK)
            st = preprocess_apply(&back, &table, &set, &codes, &err);
        as_mem_fail_nth(0);
        ck_assert(st == AS_OK || st == AS_E_NOMEM);
        if (st != AS_OK)
            ck_assert_uint_eq(set.n_features, 4); /* untouched */
    }
    ck_assert_uint_ge(nth, 8);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("record");
    TCase *t = tcase_create("record");
    tcase_add_test(t, read_back);
    tcase_add_test(t, one_row_alone);
    tcase_add_test(t, other_columns_are_refused);
    tcase_add_loop_test(t, malformed_is_refused, 0, (int)AS_ARRAY_LEN(malformed));
    tcase_add_test(t, no_object);
    tcase_add_test(t, out_of_memory);
    suite_add_tcase(s, t);
    return s;
}
