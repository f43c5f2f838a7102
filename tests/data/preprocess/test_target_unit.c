/* Transformed targets: forward and back, the quantiles against scikit-learn, the record,
 * refusals. */
#include "data/preprocess/target_unit.h"

#include <math.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "data/preprocess/record.h"
#include "tests/support/check_main.h"

static struct as_err err;

/* Fit the targets [n, columns]; all rows but the last are training rows. */
static as_status fit(float *targets, size_t n, size_t columns, target_transform transform,
                     const struct dataset_info *info, struct preprocess *ret)
{
    AS_AUTO(as_freep) float *x = as_calloc(n, sizeof *x);
    AS_AUTO(as_freep) int32_t *rows = as_calloc(n, sizeof *rows);
    ck_assert(x && rows);
    for (size_t i = 0; i < n; i++)
        rows[i] = (int32_t)i;
    const struct dataset set = {
        .n_rows = n, .n_features = 1, .n_outputs = columns, .x = x, .targets = targets};
    const struct preprocess_rows split = {rows, rows + n - 1, n - 1, 1};
    const struct preprocess_opts opts = {.standardize = true, .target_transform = transform};
    return preprocess_fit(&set, info, &split, &opts, ret, &err);
}

static struct dataset_info info_of(size_t n, size_t columns)
{
    return (struct dataset_info){.task = DATASET_REGRESSION,
                                 .input = DATASET_TABLE,
                                 .n_rows = n,
                                 .n_features = 1,
                                 .n_outputs = columns};
}

/* Every target comes back, and the training targets have mean 0 and deviation 1 between. */
START_TEST(there_and_back)
{
    float y[] = {0.5f, 100, 2, 3000, 7, 11, 0.25f, 40, 3};
    const struct dataset_info info = info_of(9, 1);
    for (int t = TARGET_AS_IS; t <= TARGET_QUANTILE; t++) {
        AS_AUTO(preprocess_done) struct preprocess p = {0};
        double sum = 0, squares = 0;
        ck_ok(fit(y, 9, 1, (target_transform)t, &info, &p), err);
        for (size_t i = 0; i < 9; i++) {
            double z = target_unit_forward(&p, 0, (double)y[i]);
            ck_assert_double_eq_tol(target_unit_back(&p, 0, z), (double)y[i], 1e-6 * (double)y[i]);
            sum += i < 8 ? z : 0;
            squares += i < 8 ? z * z : 0;
        }
        ck_assert_double_eq_tol(sum / 8, 0, 1e-6);
        ck_assert_double_eq_tol(squares / 8, 1, 1e-6);
    }
}
END_TEST

/* QuantileTransformer(n_quantiles=11, output_distribution="normal") of scikit-learn 1.2: fit on
 * the first eleven targets, transform(from), inverse_transform(scores). */
START_TEST(quantiles_as_scikit_learn)
{
    float y[] = {3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 7};
    static const double from[] = {0, 1, 1.5, 3, 5, 5.5, 9, 100};
    static const double to[] = {-5.199337582605575,  -5.199337582605575, -1.0364333894937898,
                                -0.3853204664075676, 0.524400512708041,  1.0364333894937898,
                                5.19933758270342,    5.19933758270342};
    static const double scores[] = {-9, -1, -0.3, 0, 0.2, 1.5, 7};
    static const double back[] = {1, 1.5865525393145707, 3, 4, 4.792597094391029, 6.995783961934257,
                                  9};
    const struct dataset_info info = info_of(12, 1);
    AS_AUTO(preprocess_done) struct preprocess p = {0};
    ck_ok(fit(y, 12, 1, TARGET_QUANTILE, &info, &p), err);
    ck_assert_uint_eq(p.n_quantiles, 11);
    p.target_mean[0] = 0;
    p.target_scale[0] = 1;
    for (size_t i = 0; i < AS_ARRAY_LEN(from); i++)
        ck_assert_double_eq_tol(target_unit_forward(&p, 0, from[i]), to[i], 1e-6);
    for (size_t i = 0; i < AS_ARRAY_LEN(scores); i++)
        ck_assert_double_eq_tol(target_unit_back(&p, 0, scores[i]), back[i], 1e-6);
}
END_TEST

/* What is read back has the same bits; more rows than quantiles, several targets. */
START_TEST(record)
{
    enum { ROWS = 2400 };
    static float y[ROWS * 2];
    const struct dataset_info info = info_of(ROWS, 2);
    for (size_t i = 0; i < (size_t)ROWS * 2; i++)
        y[i] = (float)exp((double)(i * 7919 % 10007) / 900) + 1;
    for (int t = TARGET_AS_IS; t <= TARGET_QUANTILE; t++) {
        AS_AUTO(preprocess_done) struct preprocess p = {0};
        AS_AUTO(preprocess_done) struct preprocess again = {0};
        ck_ok(fit(y, ROWS, 2, (target_transform)t, &info, &p), err);
        JSON_AUTO j = preprocess_to_json(&p, &info);
        ck_assert_ptr_nonnull(j);
        AS_AUTO(as_freep) char *text = json_format(j);
        JSON_AUTO stored = NULL;
        ck_ok(json_parse(text, strlen(text), &stored, &err), err);
        ck_ok(preprocess_from_json(stored, "/p", &info, &again, &err), err);
        ck_assert_uint_eq(again.n_quantiles, t == TARGET_QUANTILE ? TARGET_MAX_QUANTILES : 0);
        for (double z = -4; z < 4; z += 0.37)
            for (size_t c = 0; c < 2; c++)
                ck_assert(target_unit_back(&p, c, z) == target_unit_back(&again, c, z));
        ck_assert(target_unit_forward(&p, 1, 77) == target_unit_forward(&again, 1, 77));
    }
}
END_TEST

START_TEST(bad_records)
{
    static const struct {
        const char *target, *expected;
    } cases[] = {
        {"\"transform\":\"sqrt\"", "/p/target/transform"},
        {"\"transform\":\"quantile\"", "/p/target/quantiles"},
        {"\"transform\":\"quantile\",\"quantiles\":[]", "/p/target/quantiles: found 0 lists"},
        {"\"transform\":\"quantile\",\"quantiles\":[[]]", "found 1 lists of 0"},
        {"\"transform\":\"quantile\",\"quantiles\":[[2,1]]", "ascending"},
        {"\"transform\":\"quantile\",\"quantiles\":[[1,\"2\"]]", "ascending numbers"},
        {"\"transform\":\"log\",\"quantiles\":[[1]]", "/p/target/quantiles"},
    };
    const struct dataset_info info = info_of(9, 1);
    for (size_t i = 0; i < AS_ARRAY_LEN(cases); i++) {
        AS_AUTO(preprocess_done) struct preprocess p = {0};
        AS_AUTO(str_done) struct str b = {0};
        JSON_AUTO j = NULL;
        str_printf(
            &b,
            "{\"input\":\"table\",\"standardize\":true,\"training_rows\":8,\"validation_rows\":1,"
            "\"columns\":[{\"column\":\"0\",\"kind\":\"numeric\",\"input\":0,\"mean\":0,\"scale\":"
            "1}],\"target\":{\"mean\":[0],\"scale\":[1],%s}}",
            cases[i].target);
        ck_ok(json_parse(b.s, b.len, &j, &err), err);
        ck_fails(preprocess_from_json(j, "/p", &info, &p, &err), AS_E_INVAL, err,
                 cases[i].expected);
    }
}
END_TEST

START_TEST(refused)
{
    float zero[] = {1, 2, 0, 4}, low[] = {1, 2, 3, -1};
    const struct dataset_info info = info_of(4, 1);
    struct preprocess p = {0};
    ck_fails(fit(zero, 4, 1, TARGET_LOG, &info, &p), AS_E_INVAL, err,
             "target.transform log: the target of row 2 is 0, expected more than 0");
    ck_fails(fit(low, 4, 1, TARGET_LOG1P, &info, &p), AS_E_INVAL, err, "row 3 is -1");
    ck_ok(fit(zero, 4, 1, TARGET_LOG1P, &info, &p), err);
    ck_assert(isfinite(target_unit_back(&p, 0, 1e9)));
    preprocess_done(&p);
}
END_TEST

/* Out of memory anywhere in fitting. */
START_TEST(out_of_memory)
{
    float y[] = {1, 2, 3, 4, 5, 6};
    const struct dataset_info info = info_of(6, 1);
    for (size_t n = 1; n < 20; n++) {
        AS_AUTO(preprocess_done) struct preprocess p = {0};
        as_mem_fail_nth(n + 2); /* the first two are the test's own */
        as_status st = fit(y, 6, 1, TARGET_QUANTILE, &info, &p);
        as_mem_fail_nth(0);
        ck_assert(st == AS_OK || st == AS_E_NOMEM);
    }
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("target_unit");
    TCase *t = tcase_create("target_unit");
    tcase_add_test(t, there_and_back);
    tcase_add_test(t, quantiles_as_scikit_learn);
    tcase_add_test(t, record);
    tcase_add_test(t, bad_records);
    tcase_add_test(t, refused);
    tcase_add_test(t, out_of_memory);
    suite_add_tcase(s, t);
    return s;
}
