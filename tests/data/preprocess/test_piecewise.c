/* Numbers in bins: against values worked out by hand and by numpy, and against a plain formula on
 * random rows; the record gives the same bits again. */
#include <math.h>
#include <string.h>

#include "base/json.h"
#include "base/rng.h"
#include "data/preprocess/piecewise.h"
#include "data/preprocess/record.h"
#include "tests/support/check_main.h"

static struct as_err err;

#define ROWS 60
#define TRAIN 50
#define FEATURES 6

static char *towns[] = {(char *)"Bern", (char *)"Ulm"};
static struct dataset_column columns[] = {
    {.name = (char *)"age", .n_missing = 5},
    {.name = (char *)"town", .categorical = true, .n_values = 2, .values = towns},
    {.name = (char *)"day", .part = DATASET_DAYS, .n_parts = 2},
    {.name = (char *)"day", .part = DATASET_WEEK_SIN, .index = 1, .n_parts = 2},
    {.name = (char *)"flag"},
    {.name = (char *)"same"},
};
static const struct dataset_info table = {.task = DATASET_CLASSIFICATION,
                                          .n_rows = ROWS,
                                          .n_features = FEATURES,
                                          .n_outputs = 2,
                                          .columns = columns};

static struct dataset rows_new(const struct dataset_info *info, uint64_t seed)
{
    struct dataset d = {.n_rows = ROWS, .n_features = info->n_features, .n_outputs = 2};
    struct rng rng;
    rng_init(&rng, seed, 1);
    d.x = as_calloc(ROWS * info->n_features, sizeof *d.x);
    d.labels = as_calloc(ROWS, sizeof *d.labels);
    ck_assert(d.x && d.labels);
    for (size_t r = 0; r < ROWS; r++) {
        float *x = d.x + r * info->n_features;
        for (size_t c = 0; c < info->n_features; c++)
            x[c] = (float)(rng_uniform(&rng) * rng_uniform(&rng) * 100 - 20);
        if (!info->columns)
            continue;
        x[0] = r % 10 == 3 ? NAN : x[0];
        x[1] = (float)(r % 3);
        x[4] = (float)(r % 2);
        x[5] = r < TRAIN ? 7 : 9; /* constant in the training rows */
    }
    return d;
}

static struct preprocess fitted(const struct dataset *set, const struct dataset_info *info,
                                size_t bins, bool codes)
{
    int32_t order[ROWS];
    for (int32_t i = 0; i < ROWS; i++)
        order[i] = i;
    const struct preprocess_rows rows = {order, order + TRAIN, TRAIN, ROWS - TRAIN};
    const struct preprocess_opts opts = {
        .standardize = true, .embed_categories = codes, .bins = bins};
    struct preprocess p = {0};
    ck_ok(preprocess_fit(set, info, &rows, &opts, &p, &err), err);
    return p;
}

/* numpy 1.24: numpy.quantile([1, 2, 4, 8, 16, 32, 64], [0, .25, .5, .75, 1]) is [1, 3, 8, 24, 64].
 * The values of 6 are 1, (6 - 3) / (8 - 3), 0, 0, and so on. */
START_TEST(by_hand)
{
    static const struct dataset_info one = {
        .task = DATASET_CLASSIFICATION, .n_rows = 12, .n_features = 1, .n_outputs = 2};
    const float raw[] = {1, 2, 4, 8, 16, 32, 64, 6, 0, 74, 24, 8};
    const float expected[][4] = {
        {1, 0.6F, 0, 0}, {-0.5F, 0, 0, 0}, {1, 1, 1, 1.25F}, {1, 1, 1, 0}, {1, 1, 0, 0}};
    struct dataset set = {.n_rows = 12, .n_features = 1, .n_outputs = 2};
    int32_t order[12], labels[12] = {0}, *codes = NULL;
    set.x = as_calloc(12, sizeof *set.x);
    memcpy(set.x, raw, sizeof raw);
    for (int32_t i = 0; i < 12; i++)
        order[i] = i;
    set.labels = labels;
    const struct preprocess_rows rows = {order, order + 7, 7, 5};
    const struct preprocess_opts opts = {.standardize = true, .bins = 4};
    AS_AUTO(preprocess_done) struct preprocess p = {0};
    ck_ok(preprocess_fit(&set, &one, &rows, &opts, &p, &err), err);
    ck_assert_uint_eq(p.n_edges[0], 5);
    const float edges[] = {1, 3, 8, 24, 64};
    ck_assert_mem_eq(p.edges, edges, sizeof edges);
    ck_ok(preprocess_apply(&p, &one, &set, &codes, &err), err);
    ck_assert_uint_eq(set.n_features, 4);
    for (size_t i = 0; i < 5; i++)
        for (size_t k = 0; k < 4; k++)
            ck_assert_float_eq(set.x[(7 + i) * 4 + k], expected[i][k]);
    free(set.x);
}
END_TEST

/* The formula of the paper, in its cases. `edges` has n of them. */
static float plain(const float *edges, size_t n, size_t t, float x)
{
    if (t + 1 >= n)
        return 0;
    if (x < edges[t] && t > 0)
        return 0;
    if (x >= edges[t + 1] && t + 2 < n)
        return 1;
    return (x - edges[t]) / (edges[t + 1] - edges[t]);
}

/* Values, then what is behind them: indicator, cycle, one-hot or codes. */
START_TEST(against_the_formula)
{
    enum { BINS = 5 };
    bool codes = _i == 1;
    AS_AUTO(dataset_done) struct dataset set = rows_new(&table, 3), raw = rows_new(&table, 3);
    AS_AUTO(preprocess_done) struct preprocess p = fitted(&set, &table, BINS, codes);
    AS_AUTO(as_freep) int32_t *got = NULL;
    ck_ok(preprocess_apply(&p, &table, &set, &got, &err), err);
    /* age, its indicator, days, sine, flag, same; Bern, Ulm, others */
    size_t width = 4 * BINS + 2 + (codes ? 0 : 3);
    ck_assert_uint_eq(set.n_features, width);
    ck_assert_uint_eq(preprocess_inputs(&p, &table), width);
    ck_assert_uint_eq(p.n_edges[0], BINS + 1); /* age */
    ck_assert_uint_eq(p.n_edges[1], 0);        /* its indicator */
    ck_assert_uint_eq(p.n_edges[3], 0);        /* the sine */
    ck_assert_uint_lt(p.n_edges[4], BINS + 1); /* flag: two values have few different quantiles */
    ck_assert_uint_eq(p.n_edges[5], 1);        /* same */
    const struct {
        size_t input, column, at;
    } numbers[] = {{0, 0, 0}, {2, 2, BINS + 1}, {4, 4, 2 * BINS + 2}, {5, 5, 3 * BINS + 2}};
    for (size_t r = 0; r < ROWS; r++) {
        const float *x = set.x + r * width, *from = raw.x + r * FEATURES;
        for (size_t i = 0; i < AS_ARRAY_LEN(numbers); i++)
            for (size_t k = 0; k < BINS; k++) {
                size_t in = numbers[i].input;
                float v = from[numbers[i].column];
                ck_assert_float_eq(
                    x[numbers[i].at + k],
                    plain(p.edges + in * (BINS + 1), p.n_edges[in], k, isnan(v) ? p.fill[0] : v));
            }
        ck_assert_float_eq(x[BINS], isnan(from[0]) ? 1 : 0);
        ck_assert_float_eq(x[2 * BINS + 1], (from[3] - p.mean[3]) / p.scale[3]);
        for (size_t s = 0; s < 3 && !codes; s++)
            ck_assert_float_eq(x[4 * BINS + 2 + s], from[1] == (float)s ? 1 : 0);
        if (codes)
            ck_assert_int_eq(got[r], (int32_t)from[1]);
    }
    ck_assert_float_eq(p.mean[0], 0);
    ck_assert_float_eq(p.scale[0], 1);
    ck_assert_float_ne(p.scale[3], 1);
}
END_TEST

/* Held-out rows do not move an edge. */
START_TEST(only_training_rows_count)
{
    AS_AUTO(dataset_done) struct dataset set = rows_new(&table, 3), other = rows_new(&table, 3);
    for (size_t i = TRAIN * FEATURES; i < ROWS * FEATURES; i++)
        other.x[i] += 1000;
    AS_AUTO(preprocess_done) struct preprocess p = fitted(&set, &table, 8, false);
    AS_AUTO(preprocess_done) struct preprocess q = fitted(&other, &table, 8, false);
    ck_assert_mem_eq(p.edges, q.edges, 6 * 9 * sizeof *p.edges);
}
END_TEST

START_TEST(extreme_numbers_stay_finite)
{
    AS_AUTO(dataset_done) struct dataset set = rows_new(&table, 3);
    set.x[2] = 3e38F;
    set.x[FEATURES + 2] = -3e38F;
    set.x[4] = 1e-44F; /* nearer to 0 than a float32 keeps its digits */
    AS_AUTO(preprocess_done) struct preprocess p = fitted(&set, &table, 8, false);
    AS_AUTO(as_freep) int32_t *codes = NULL;
    ck_ok(preprocess_apply(&p, &table, &set, &codes, &err), err);
    for (size_t i = 0; i < set.n_rows * set.n_features; i++)
        ck_assert(isfinite(set.x[i]));
}
END_TEST

static json_t *stored(const struct preprocess *p)
{
    JSON_AUTO record = preprocess_to_json(p, &table);
    AS_AUTO(as_freep) char *s = record ? json_format(record) : NULL;
    json_t *back = NULL;
    ck_assert_ptr_nonnull(s);
    ck_ok(json_parse(s, strlen(s), &back, &err), err);
    return back;
}

START_TEST(record_reads_back)
{
    AS_AUTO(dataset_done)
    struct dataset set = rows_new(&table, 3), x = rows_new(&table, 4), y = rows_new(&table, 4);
    AS_AUTO(preprocess_done) struct preprocess p = fitted(&set, &table, 256, _i == 1), back = {0};
    AS_AUTO(as_freep) int32_t *a = NULL;
    AS_AUTO(as_freep) int32_t *b = NULL;
    JSON_AUTO record = stored(&p);
    ck_ok(preprocess_from_json(record, "", &table, &back, &err), err);
    JSON_AUTO again = preprocess_to_json(&back, &table);
    ck_assert(json_equal(record, again));
    ck_ok(preprocess_apply(&p, &table, &x, &a, &err), err);
    ck_ok(preprocess_apply(&back, &table, &y, &b, &err), err);
    ck_assert_uint_eq(x.n_features, y.n_features);
    ck_assert_mem_eq(x.x, y.x, x.n_rows * x.n_features * sizeof *x.x);
}
END_TEST

static const struct {
    const char *field, *value, *message;
} malformed[] = {
    {"edges", "[]", "/p/columns/0/edges: found 0 numbers, expected 1 to 5"},
    {"edges", "[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]", "found 6 numbers, expected 1 to 5"},
    {"edges", "[1.0, 1.0]", "/p/columns/0/edges/1: expected a number above the one before it"},
    {"edges", "[1.0, \"2\"]", "/p/columns/0/edges/1: expected a number"},
    {"edges", "[1.0, 3e38]", "/p/columns/0/edges/1: expected a number"},
    {"edges", "[0.0, 1e-42]", "/p/columns/0/edges/1: expected a number"},
    {"edges", NULL, "/p/columns/0/edges is missing"},
    {"mean", "1.0", "/p/columns/0: found mean 1 and scale 1 beside edges, expected 0 and 1"},
    {"indicator", "1", "/p/columns/0/indicator: found 1, expected 4"},
};

START_TEST(malformed_is_refused)
{
    AS_AUTO(dataset_done) struct dataset set = rows_new(&table, 3);
    AS_AUTO(preprocess_done) struct preprocess p = fitted(&set, &table, 4, false), no = {0};
    JSON_AUTO record = stored(&p);
    json_t *age = json_array_get(json_object_get(record, "columns"), 0);
    const char *value = malformed[_i].value;
    int bad = value ? json_object_set_new(age, malformed[_i].field,
                                          json_loads(value, JSON_DECODE_ANY, NULL))
                    : json_object_del(age, malformed[_i].field);
    ck_assert_int_eq(bad, 0);
    ck_fails(preprocess_from_json(record, "/p", &table, &no, &err), AS_E_INVAL, err,
             malformed[_i].message);
}
END_TEST

START_TEST(edges_need_bins)
{
    AS_AUTO(dataset_done) struct dataset set = rows_new(&table, 3);
    AS_AUTO(preprocess_done) struct preprocess p = fitted(&set, &table, 4, false), no = {0};
    JSON_AUTO record = stored(&p);
    ck_assert_int_eq(json_object_set_new(record, "bins", json_integer(257)), 0);
    ck_fails(preprocess_from_json(record, "/p", &table, &no, &err), AS_E_INVAL, err,
             "/p/bins: found 257");
    ck_assert_int_eq(json_object_del(record, "bins"), 0);
    ck_fails(preprocess_from_json(record, "/p", &table, &no, &err), AS_E_INVAL, err,
             "/p/columns/0/indicator: found 4, expected 1");
}
END_TEST

START_TEST(out_of_memory)
{
    as_status st = AS_E_NOMEM;
    size_t nth = 0;
    AS_AUTO(dataset_done) struct dataset fit = rows_new(&table, 4);
    AS_AUTO(preprocess_done) struct preprocess p = fitted(&fit, &table, 4, true);
    while (st != AS_OK) {
        AS_AUTO(dataset_done) struct dataset set = rows_new(&table, 4);
        AS_AUTO(as_freep) int32_t *codes = NULL;
        as_mem_fail_nth(++nth);
        st = preprocess_apply(&p, &table, &set, &codes, &err);
        as_mem_fail_nth(0);
        ck_assert(st == AS_OK || st == AS_E_NOMEM);
        if (st != AS_OK)
            ck_assert_uint_eq(set.n_features, FEATURES); /* untouched */
    }
    ck_assert_uint_ge(nth, 4);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("piecewise");
    TCase *t = tcase_create("piecewise");
    tcase_add_test(t, by_hand);
    tcase_add_loop_test(t, against_the_formula, 0, 2);
    tcase_add_test(t, only_training_rows_count);
    tcase_add_test(t, extreme_numbers_stay_finite);
    tcase_add_loop_test(t, record_reads_back, 0, 2);
    tcase_add_loop_test(t, malformed_is_refused, 0, (int)AS_ARRAY_LEN(malformed));
    tcase_add_test(t, edges_need_bins);
    tcase_add_test(t, out_of_memory);
    suite_add_tcase(s, t);
    return s;
}
