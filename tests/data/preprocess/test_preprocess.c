/* Fitting and applying: one-hot inputs and codes of categories, targets, channels of images,
 * windows of text, what the record holds, and memory that runs out. */
#include <math.h>
#include <string.h>

#include "base/json.h"
#include "tests/support/check_main.h"
#include "data/preprocess/record.h"
#include "data/preprocess/train_data.h"

static struct as_err err;

/* ---- tables ---- */

#define ROWS 40

/* age: a number, every fifth missing; job: cook, king, clerk (one row, 0), missing in every fourth;
 * pay: a number. Rows are (age, job, pay). */
static char *jobs[] = {(char *)"clerk", (char *)"cook", (char *)"king"};
static struct dataset_column columns[] = {
    {.name = (char *)"age", .n_missing = 8},
    {.name = (char *)"job", .categorical = true, .n_missing = 10, .n_values = 3, .values = jobs},
    {.name = (char *)"pay"},
};

static struct dataset_info table_info(dataset_task task, size_t outputs)
{
    return (struct dataset_info){
        .task = task, .n_rows = ROWS, .n_features = 3, .n_outputs = outputs, .columns = columns};
}

static struct dataset table(dataset_task task, size_t outputs)
{
    struct dataset d = {.n_rows = ROWS, .n_features = 3, .n_outputs = outputs};
    d.x = as_calloc(ROWS * 3, sizeof *d.x);
    if (task == DATASET_CLASSIFICATION)
        d.labels = as_calloc(ROWS, sizeof *d.labels);
    else
        d.targets = as_calloc(ROWS * outputs, sizeof *d.targets);
    for (size_t i = 0; i < ROWS; i++) {
        d.x[i * 3] = i % 5 == 4 ? NAN : (float)(i * i);
        d.x[i * 3 + 1] = (float)(i == 0 ? 0 : i % 4 == 3 ? 4 : 1 + i % 2);
        d.x[i * 3 + 2] = (float)i;
        if (d.labels)
            d.labels[i] = i % 3 == 0;
        for (size_t k = 0; d.targets && k < outputs; k++)
            d.targets[i * outputs + k] = (float)(k ? 1000 * i : i) / ROWS;
    }
    return d;
}

/* A quarter of n rows is held out. */
static struct preprocess_opts opts_of(size_t n, uint64_t seed)
{
    return (struct preprocess_opts){.split_seed = seed, .n_validation = n / 4, .standardize = true};
}

static struct train_data prepare(const struct preprocess_opts *opts, dataset_task task,
                                 size_t outputs)
{
    struct dataset set = table(task, outputs);
    struct dataset_info info = table_info(task, outputs);
    struct train_data d = {0};
    ck_ok(train_data_prepare(&set, &info, opts, &d, &err), err);
    return d;
}

static bool is_training(const struct train_data *d, int32_t row)
{
    for (size_t i = 0; i < d->n_train; i++)
        if (d->train_rows[i] == row)
            return true;
    return false;
}

/* A seed that puts row 0, the only clerk, where we want it. */
static uint64_t seed_with_clerk(bool training)
{
    for (uint64_t seed = 0;; seed++) {
        struct preprocess_opts opts = opts_of(ROWS, seed);
        AS_AUTO(train_data_done) struct train_data d = prepare(&opts, DATASET_CLASSIFICATION, 2);
        if (is_training(&d, 0) == training)
            return seed;
    }
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The median by another way: all values sorted. */
static double median_age(const struct train_data *d)
{
    double v[ROWS];
    size_t n = 0;
    for (size_t i = 0; i < d->n_train; i++)
        if (d->train_rows[i] % 5 != 4)
            v[n++] = (double)(d->train_rows[i] * d->train_rows[i]);
    qsort(v, n, sizeof *v, compare);
    return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

START_TEST(one_hot)
{
    struct preprocess_opts opts = opts_of(ROWS, seed_with_clerk(true));
    AS_AUTO(train_data_done) struct train_data d = prepare(&opts, DATASET_CLASSIFICATION, 2);
    /* age, its indicator, pay; clerk, cook, king, others, missing */
    ck_assert_uint_eq(d.set.n_features, 8);
    ck_assert_uint_eq(d.n_codes, 0);
    for (size_t i = 0; i < ROWS; i++) {
        const float *x = d.set.x + i * 8;
        bool missing = i % 5 == 4;
        double age = missing ? median_age(&d) : (double)(i * i);
        ck_assert_double_eq_tol((double)x[0] * (double)d.fit.scale[0] + (double)d.fit.mean[0], age,
                                1e-3);
        ck_assert_float_eq(x[1], missing ? 1 : 0);
        ck_assert_double_eq_tol((double)x[2] * (double)d.fit.scale[2] + (double)d.fit.mean[2],
                                (double)i, 1e-4);
        size_t hot = i == 0 ? 0 : i % 4 == 3 ? 4 : 1 + i % 2;
        for (size_t k = 0; k < 5; k++)
            ck_assert_float_eq(x[3 + k], k == hot ? 1 : 0);
    }
    ck_assert_int_eq(d.class_rows[0] + d.class_rows[1], d.n_train);
}
END_TEST

START_TEST(unseen_is_among_the_others)
{
    struct preprocess_opts opts = opts_of(ROWS, seed_with_clerk(false));
    AS_AUTO(train_data_done) struct train_data d = prepare(&opts, DATASET_CLASSIFICATION, 2);
    ck_assert_float_eq(d.set.x[3], 0);
    ck_assert_float_eq(d.set.x[3 + 3], 1);
    ck_assert_int_eq(d.fit.seen[0], 0);
    ck_assert_int_eq(d.fit.seen[1], 1);
}
END_TEST

START_TEST(codes)
{
    struct preprocess_opts opts = opts_of(ROWS, seed_with_clerk(true));
    opts.embed_categories = true;
    AS_AUTO(train_data_done) struct train_data d = prepare(&opts, DATASET_CLASSIFICATION, 2);
    ck_assert_uint_eq(d.set.n_features, 3);
    ck_assert_uint_eq(d.n_codes, 1);
    ck_assert_int_eq(d.codes[0], 0);
    ck_assert_int_eq(d.codes[1], 2);
    ck_assert_int_eq(d.codes[3], 4);
}
END_TEST

START_TEST(several_targets)
{
    struct preprocess_opts opts = opts_of(ROWS, 0);
    AS_AUTO(train_data_done) struct train_data d = prepare(&opts, DATASET_REGRESSION, 2);
    ck_assert_uint_eq(d.n_targets, 2);
    for (size_t k = 0; k < 2; k++) {
        double sum = 0, squares = 0;
        for (size_t i = 0; i < d.n_train; i++) {
            double v = (double)d.set.targets[(size_t)d.train_rows[i] * 2 + k];
            sum += v;
            squares += v * v;
        }
        ck_assert_double_eq_tol(sum, 0, 1e-4);
        ck_assert_double_eq_tol(squares / (double)d.n_train, 1, 1e-4);
        size_t row = (size_t)d.val_rows[3];
        ck_assert_double_eq_tol((double)d.set.targets[row * 2 + k] * d.fit.target_scale[k] +
                                    d.fit.target_mean[k],
                                (double)d.val_targets[3 * 2 + k], 1e-2);
    }
}
END_TEST

START_TEST(bce_targets)
{
    struct preprocess_opts opts = opts_of(ROWS, 0);
    opts.targets_as_shares = true;
    AS_AUTO(train_data_done) struct train_data two = prepare(&opts, DATASET_CLASSIFICATION, 2);
    ck_assert_uint_eq(two.n_targets, 1);
    for (size_t i = 0; i < ROWS; i++)
        ck_assert_float_eq(two.set.targets[i], i % 3 == 0 ? 1 : 0);
    AS_AUTO(train_data_done) struct train_data shares = prepare(&opts, DATASET_REGRESSION, 1);
    ck_assert_float_eq(shares.set.targets[20], 0.5f);
    struct dataset set = table(DATASET_REGRESSION, 2);
    struct dataset_info info = table_info(DATASET_REGRESSION, 2);
    struct train_data no = {0};
    ck_fails(train_data_prepare(&set, &info, &opts, &no, &err), AS_E_INVAL, err,
             "the target of row 1 is 25, expected 0 to 1");
}
END_TEST

START_TEST(record_says_all)
{
    struct preprocess_opts opts = opts_of(ROWS, seed_with_clerk(false));
    struct dataset_info info = table_info(DATASET_CLASSIFICATION, 2);
    AS_AUTO(train_data_done) struct train_data d = prepare(&opts, DATASET_CLASSIFICATION, 2);
    JSON_AUTO record = preprocess_to_json(&d.fit, &info);
    const json_t *list = json_object_get(record, "columns");
    const json_t *age = json_array_get(list, 0), *job = json_array_get(list, 2);
    ck_assert_str_eq(json_string_value(json_object_get(age, "column")), "age");
    ck_assert_double_eq(json_number_value(json_object_get(age, "missing")), (double)d.fit.fill[0]);
    ck_assert_int_eq(json_integer_value(json_object_get(age, "indicator")), 1);
    ck_assert_int_eq(json_integer_value(json_object_get(job, "input")), 3);
    ck_assert(json_is_null(json_array_get(json_object_get(job, "values"), 0)));
    ck_assert_str_eq(json_string_value(json_array_get(json_object_get(job, "values"), 1)), "cook");
    ck_assert_int_eq(json_integer_value(json_object_get(job, "other")), 6);
    ck_assert_int_eq(json_integer_value(json_object_get(job, "missing")), 7);
}
END_TEST

/* ---- images ---- */

START_TEST(channels_are_standardised)
{
    struct dataset_info info = {.task = DATASET_CLASSIFICATION,
                                .input = DATASET_IMAGE,
                                .n_rows = 20,
                                .n_features = 30,
                                .n_outputs = 2,
                                .height = 2,
                                .width = 5,
                                .channels = 3};
    struct dataset set = {.n_rows = 20, .n_features = 30, .n_outputs = 2};
    struct preprocess_opts opts = opts_of(20, 0);
    AS_AUTO(train_data_done) struct train_data d = {0};
    set.x = as_calloc(600, sizeof *set.x);
    set.labels = as_calloc(20, sizeof *set.labels);
    for (size_t i = 0; i < 600; i++)
        set.x[i] = (float)(i % 3 == 2 ? 7 : i % 3 * 100 + i * i % 17);
    ck_ok(train_data_prepare(&set, &info, &opts, &d, &err), err);
    ck_assert_uint_eq(d.fit.n_scales, 3);
    ck_assert_float_eq(d.fit.mean[2], 7);
    ck_assert_float_eq(d.fit.scale[2], 1);
    for (size_t c = 0; c < 2; c++) {
        double sum = 0, squares = 0;
        for (size_t i = 0; i < d.n_train; i++)
            for (size_t p = 0; p < 10; p++) {
                double v = (double)d.set.x[(size_t)d.train_rows[i] * 30 + p * 3 + c];
                sum += v;
                squares += v * v;
            }
        ck_assert_double_eq_tol(sum / 150, 0, 1e-5);
        ck_assert_double_eq_tol(squares / 150, 1, 1e-4);
    }
}
END_TEST

/* Images of bytes: the moments of the float path, but exact, and the bytes as they were. Enough
 * rows for several blocks of sums, and a width that no vector divides. */
START_TEST(images_of_bytes)
{
    enum { N = 700, WIDTH = 7 * 5 * 3 };
    struct dataset_info info = {.task = DATASET_CLASSIFICATION,
                                .input = DATASET_IMAGE,
                                .n_rows = N,
                                .n_features = WIDTH,
                                .n_outputs = 2,
                                .height = 7,
                                .width = 5,
                                .channels = 3};
    struct dataset set[2] = {{.n_rows = N, .n_features = WIDTH, .n_outputs = 2},
                             {.n_rows = N, .n_features = WIDTH, .n_outputs = 2}};
    struct preprocess_opts opts = opts_of(N, 0);
    AS_AUTO(train_data_done) struct train_data bytes = {0}, floats = {0};
    set[0].bytes = as_calloc(N * WIDTH + 4, 1);
    set[1].x = as_calloc(N * WIDTH, sizeof(float));
    set[0].labels = as_calloc(N, sizeof(int32_t));
    set[1].labels = as_calloc(N, sizeof(int32_t));
    for (size_t i = 0; i < N * WIDTH; i++) {
        set[0].bytes[i] = (unsigned char)(i % 3 == 2 ? 255 : i * i / 7 % (i % 3 ? 256 : 40));
        set[1].x[i] = (float)set[0].bytes[i];
    }
    const unsigned char *was = set[0].bytes;
    ck_ok(train_data_prepare(&set[0], &info, &opts, &bytes, &err), err);
    ck_ok(train_data_prepare(&set[1], &info, &opts, &floats, &err), err);
    ck_assert(bytes.is_bytes && !floats.is_bytes);
    ck_assert_ptr_eq(bytes.set.bytes, was);
    ck_assert_ptr_null(bytes.set.x);
    ck_assert_float_eq(bytes.fit.mean[2], 255);
    ck_assert_float_eq(bytes.fit.scale[2], 1);
    for (size_t c = 0; c < 2; c++) {
        uint64_t sum = 0, squares = 0, n = bytes.n_train * 35;
        for (size_t i = 0; i < bytes.n_train; i++)
            for (size_t p = c; p < WIDTH; p += 3) {
                uint64_t v = was[(size_t)bytes.train_rows[i] * WIDTH + p];
                sum += v;
                squares += v * v;
            }
        double mean = (double)sum / (double)n;
        double around = (double)(n * squares - sum * sum) / (double)n; /* both below 2^53 */
        ck_assert_float_eq(bytes.fit.mean[c], (float)mean);
        ck_assert_float_eq(bytes.fit.scale[c], (float)sqrt(around / (double)n));
        ck_assert_float_eq_tol(bytes.fit.mean[c], floats.fit.mean[c], 1e-5f * floats.fit.mean[c]);
        ck_assert_float_eq_tol(bytes.fit.scale[c], floats.fit.scale[c],
                               1e-5f * floats.fit.scale[c]);
    }
}
END_TEST

/* ---- text ---- */

static as_status text(size_t n, size_t context, struct train_data *ret)
{
    struct dataset_info info = {.task = DATASET_LANGUAGE_MODELING,
                                .input = DATASET_TOKEN_TEXT,
                                .n_rows = n,
                                .n_features = 1,
                                .n_outputs = 256};
    struct dataset set = {.n_rows = n, .n_features = 1, .n_outputs = 256};
    struct preprocess_opts opts = {.n_validation = (size_t)lround(0.2 * (double)n),
                                   .context = context};
    set.tokens = as_calloc(n, sizeof *set.tokens);
    return train_data_prepare(&set, &info, &opts, ret, &err);
}

START_TEST(windows)
{
    for (size_t n = 15; n < 130; n++) {
        AS_AUTO(train_data_done) struct train_data d = {0};
        int32_t order[64], again[64];
        bool taken[130] = {0}, other_phase = false;
        size_t held = (size_t)lround(0.2 * (double)n);
        as_status st = text(n, 5, &d);
        if (held < 6) {
            ck_assert_int_eq(st, AS_E_INVAL);
            continue;
        }
        ck_ok(st, err);
        ck_assert_uint_eq(d.n_tokens, n - held);
        ck_assert_uint_eq(d.n_val, (held - 1) / 5);
        for (size_t i = 0; i < d.n_val; i++) {
            ck_assert_uint_eq(d.val_rows[i], d.n_tokens + 5 * i);
            ck_assert_uint_le(d.val_rows[i] + 5, n - 1);
        }
        train_data_order(&d, 3, 0, 1, order);
        train_data_order(&d, 3, 0, 1, again);
        ck_assert_mem_eq(order, again, d.n_train * sizeof *order);
        for (size_t i = 0; i < d.n_train; i++) {
            ck_assert_int_eq(order[i] % 5, order[0] % 5);
            ck_assert_uint_le(order[i] + 5, d.n_tokens - 1); /* the last target is there */
            ck_assert(!taken[order[i]]);
            taken[order[i]] = true;
        }
        for (int64_t epoch = 2; epoch < 30; epoch++) {
            train_data_order(&d, 3, 0, epoch, again);
            other_phase = other_phase || again[0] % 5 != order[0] % 5;
        }
        ck_assert(other_phase);
        train_data_order(&d, 3, 1, 1, again); /* windows that are drawn again have the phase */
        for (size_t i = 0; i < d.n_train; i++) {
            ck_assert_int_eq(again[i] % 5, order[0] % 5);
            ck_assert_uint_le(again[i] + 5, d.n_tokens - 1);
        }
    }
}
END_TEST

/* A bootstrap sample is the same in every epoch, in another order; it has no held-out row, and
 * about 1 - 1/e of the training rows: of 400, 253 with a deviation of 6. */
START_TEST(bootstrap_samples)
{
    enum { N = 400, HELD = 100 };
    int32_t rows[N + HELD], order[N], again[N];
    size_t count[3][N + HELD] = {{0}}, distinct = 0, differ = 0;
    for (int32_t i = 0; i < N + HELD; i++)
        rows[i] = i;
    const struct train_data d = {.n_train = N, .n_val = HELD, .train_rows = rows + HELD};
    train_data_order(&d, 9, 5, 1, order);
    for (int64_t epoch = 1; epoch < 3; epoch++) {
        train_data_order(&d, 9, 5, epoch, again);
        for (size_t i = 0; i < N; i++)
            count[epoch - 1][again[i]]++;
    }
    ck_assert_mem_eq(count[0], count[1], sizeof count[0]);
    ck_assert_mem_ne(order, again, sizeof order); /* shuffled anew */
    for (size_t i = 0; i < HELD; i++)
        ck_assert_uint_eq(count[0][i], 0);
    train_data_order(&d, 10, 6, 1, again);
    for (size_t i = 0; i < N; i++)
        count[2][again[i]]++;
    for (size_t i = HELD; i < N + HELD; i++) {
        distinct += count[0][i] > 0;
        differ += count[0][i] != count[2][i];
    }
    ck_assert(distinct > 220 && distinct < 286);
    ck_assert_uint_gt(differ, 200);
    train_data_order(&d, 11, 6, 7, order); /* the seed shuffles and draws nothing */
    for (size_t i = 0; i < N; i++)
        count[2][order[i]]--;
    for (size_t i = 0; i < N + HELD; i++)
        ck_assert_uint_eq(count[2][i], 0);
}
END_TEST

START_TEST(text_too_short)
{
    struct train_data d = {0};
    ck_fails(text(100, 64, &d), AS_E_INVAL, err,
             "80 tokens to train on and 20 held out, expected at least 65 each");
}
END_TEST

START_TEST(out_of_memory)
{
    for (size_t n = 1; n < 20; n++) {
        struct preprocess_opts opts = opts_of(ROWS, 0);
        struct dataset set = table(DATASET_CLASSIFICATION, 2);
        struct dataset_info info = table_info(DATASET_CLASSIFICATION, 2);
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
    Suite *s = suite_create("preprocess");
    TCase *t = tcase_create("preprocess");
    tcase_add_test(t, one_hot);
    tcase_add_test(t, unseen_is_among_the_others);
    tcase_add_test(t, codes);
    tcase_add_test(t, several_targets);
    tcase_add_test(t, bce_targets);
    tcase_add_test(t, record_says_all);
    tcase_add_test(t, channels_are_standardised);
    tcase_add_test(t, images_of_bytes);
    tcase_add_test(t, windows);
    tcase_add_test(t, bootstrap_samples);
    tcase_add_test(t, text_too_short);
    tcase_add_test(t, out_of_memory);
    suite_add_tcase(s, t);
    return s;
}
