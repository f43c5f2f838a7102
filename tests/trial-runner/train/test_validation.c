/* Columns with a use of their own, through the whole trainer: which rows are held out, how much a
 * row counts. Training that ends early. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/rng.h"
#include "base/str.h"
#include "data/formats/safetensors.h"
#include "tests/support/check_main.h"
#include "tests/support/rig.h"

#define ROWS 120

static struct rig rig;

/* What a table has beside the inputs a, b and the class. */
struct table {
    const char *header; /* "day," */
    void (*cells)(struct str *out, size_t row);
    size_t (*copies)(size_t row); /* NULL: 1 */
};

static bool is_held(size_t row)
{
    return row * 7 % 10 < 3;
}

/* Two clouds that overlap. The table is the data set `name` afterwards. */
static void write_table(const char *name, const struct table *t)
{
    AS_AUTO(str_done) struct str text = {0};
    AS_AUTO(as_freep) char *path = file_join(rig.dir, "t.csv");
    struct rng r;
    rng_init(&r, 4, 4);
    str_printf(&text, "a,%sb,class\n", t->header);
    for (size_t i = 0; i < ROWS; i++) {
        double a = rng_normal(&r), b = rng_normal(&r);
        const char *class = a + b + 0.7 * rng_normal(&r) > 0 ? "up" : "down";
        for (size_t k = t->copies ? t->copies(i) : 1; k > 0; k--) {
            str_printf(&text, "%.6f,", a);
            t->cells(&text, i);
            str_printf(&text, "%.6f,%s\n", b, class);
        }
    }
    ck_ok(file_replace(path, text.s, text.len, 0644, &rig.err), rig.err);
    struct dataset_paths paths = {.table = path};
    rig_data(&rig, name, &paths, DATASET_CSV, DATASET_TASK_AUTO);
}

static void same_bytes(const char *a, const char *b, const char *id, const char *file)
{
    size_t n = 0, m = 0;
    AS_AUTO(as_freep) char *x = rig_read(&rig, a, id, file, &n);
    AS_AUTO(as_freep) char *y = rig_read(&rig, b, id, file, &m);
    ck_assert_msg(x && y && n == m && memcmp(x, y, n) == 0, "%s differs", file);
}

/* The columns of the data set that the model file describes. */
static void inputs_are(const char *tag, const char *id, const char *const *names, size_t n)
{
    char path[256];
    AS_AUTO(safetensors_freep) struct safetensors *s = NULL;
    (void)snprintf(path, sizeof path, "%s/%s/%s/artifacts/model.safetensors", rig.dir, tag, id);
    ck_ok(safetensors_read(path, 1 << 20, &s, &rig.err), rig.err);
    const char *text = safetensors_metadata(s, "dataset");
    JSON_AUTO info = NULL;
    ck_ok(json_parse(text, strlen(text), &info, &rig.err), rig.err);
    const json_t *columns = json_object_get(info, "columns");
    ck_assert_uint_eq(json_array_size(columns), n);
    for (size_t i = 0; i < n; i++)
        ck_assert_str_eq(json_string_value(json_object_get(json_array_get(columns, i), "name")),
                         names[i]);
    ck_assert_int_eq(json_integer_value(json_object_get(info, "features")), (json_int_t)n);
}

static const char *const ab[] = {"a", "b"};

static void part_and_day(struct str *out, size_t row)
{
    /* held-out rows are the last ones by day; within a side the days go down */
    int day = (int)(is_held(row) ? 400 - row : 200 - row);
    str_printf(out, "%s,%d,", is_held(row) ? "validation" : "train", day);
}

static void part_alone(struct str *out, size_t row)
{
    str_printf(out, "%s,", is_held(row) ? "1" : "0");
}

static void day_alone(struct str *out, size_t row)
{
    /* two rows a day: a table in which every row has another text is refused */
    int day = (int)(is_held(row) ? 400 - row : 200 - row) / 2;
    str_printf(out, "%04d-%02d-%02d,", 1990 + day / 336, 1 + day / 28 % 12, 1 + day % 28);
}

static void nothing(struct str *out, size_t row)
{
    (void)out;
    (void)row;
}

#define SMALL "\"epochs\":4,\"model\":{\"layers\":[6]},\"metrics\":[\"val_auc\"],"

/* The same rows by words and by dates: the same training, to the bit. The column is no input. */
START_TEST(a_column_or_an_order_holds_rows_out)
{
    static const struct trial words = {"m", SMALL "\"validation\":{\"column\":\"part\"}", "1"};
    static const struct trial days = {"m", SMALL "\"validation\":{\"order\":\"day\",\"last\":0.3}",
                                      "1"};
    write_table("t", &(struct table){"part,", part_alone, NULL});
    ck_assert_int_eq(rig_solo(&rig, "words", &words, "cpu"), 0);
    inputs_are("words", "m", ab, 2);
    write_table("t", &(struct table){"day,", day_alone, NULL});
    ck_assert_int_eq(rig_solo(&rig, "days", &days, "cpu"), 0);
    inputs_are("days", "m", ab, 2);
    same_bytes("words", "days", "m", "report");
    same_bytes("words", "days", "m", "artifacts/predictions.npy");
    same_bytes("words", "days", "m", "artifacts/targets.npy");
    size_t n = 0;
    AS_AUTO(as_freep) char *y = rig_read(&rig, "words", "m", "artifacts/targets.npy", &n);
    ck_assert_uint_eq(n, 128 + 8 * 36); /* the header; 36 of 120 rows are held out */
    /* a column that is not named stays an input */
    static const char *const three[] = {"a", "day", "b"};
    write_table("t", &(struct table){"part,day,", part_and_day, NULL});
    ck_assert_int_eq(rig_solo(&rig, "both", &words, "cpu"), 0);
    inputs_are("both", "m", three, 3);
}
END_TEST

static void groups_of_four(struct str *out, size_t row)
{
    str_printf(out, "g%zu,", row / 4);
}

START_TEST(groups_stay_together)
{
    static const struct trial t = {
        "m", SMALL "\"validation\":{\"groups\":\"who\",\"fraction\":0.25,\"seed\":3}", "1"};
    write_table("t", &(struct table){"who,", groups_of_four, NULL});
    ck_assert_int_eq(rig_solo(&rig, "g", &t, "cpu"), 0);
    inputs_are("g", "m", ab, 2);
    size_t n = 0;
    AS_AUTO(as_freep) char *y = rig_read(&rig, "g", "m", "artifacts/targets.npy", &n);
    ck_assert_uint_eq((n - 128) / 8, 28); /* 7 groups of 4; 8 would be two more than 30 */
}
END_TEST

static void part_and_group(struct str *out, size_t row)
{
    str_printf(out, "%d,g%zu,", is_held(row), row / 4);
}

/* Texts of the held-out rows, in the order of the predictions. */
START_TEST(buckets_are_of_the_held_rows)
{
    static const struct trial t = {
        "m", SMALL "\"buckets\":\"who\",\"validation\":{\"column\":\"part\"}", "1"};
    write_table("t", &(struct table){"part,who,", part_and_group, NULL});
    size_t len = 0;
    ck_assert_int_eq(rig_solo(&rig, "held", &t, "cpu"), 0);
    AS_AUTO(as_freep) char *text = rig_read(&rig, "held", "m", "artifacts/buckets.json", &len);
    AS_AUTO(str_done) struct str want = {0};
    str_puts(&want, "{\"column\":\"who\",\"values\":[");
    for (size_t row = 0; row < ROWS; row++)
        if (is_held(row))
            str_printf(&want, "%s\"g%zu\"", want.s[want.len - 1] == '[' ? "" : ",", row / 4);
    str_puts(&want, "]}");
    ck_assert_msg(len == want.len && memcmp(text, want.s, len) == 0, "%.*s\n%s", (int)len, text,
                  want.s);
}
END_TEST

static size_t times(size_t row)
{
    return row % 3;
}

static void part_and_weight(struct str *out, size_t row)
{
    str_printf(out, "%d,%zu,", is_held(row), 5 * times(row));
}

/* A row of weight 2 counts as two rows of weight 1, and one of weight 0 as none: in the loss, over
 * whole batches, and in every metric. */
START_TEST(weights_count_as_copies)
{
#define WHOLE                                                                                      \
    "\"epochs\":30,\"batch_size\":1000,\"standardize\":false,\"model\":{\"layers\":[5]},"          \
    "\"optimizer\":{\"kind\":\"sgd\",\"lr\":0.5,\"momentum\":0.9},"                                \
    "\"validation\":{\"column\":\"part\"},\"metrics\":[\"val_auc\",\"val_average_precision\","     \
    "\"val_balanced_accuracy\",\"val_f1\",\"val_log_loss\",\"val_brier\",\"val_top5\"]"
    static const char *const losses[] = {"", ",\"loss\":\"bce\"", ",\"class_weights\":[1,3]"};
    static const char *const metrics[] = {"train_loss",
                                          "val_loss",
                                          "val_error",
                                          "val_accuracy",
                                          "val_auc",
                                          "val_f1",
                                          "val_brier",
                                          "val_top5",
                                          "val_average_precision",
                                          "val_log_loss",
                                          "val_balanced_accuracy"};
    static const char *const backends[] = {"cpu", "reference"};
    for (size_t l = 0; l < 2 * AS_ARRAY_LEN(losses); l++) {
        char weighted[700], copied[700];
        const char *backend = backends[l % 2];
        (void)snprintf(weighted, sizeof weighted, WHOLE "%s,\"weights\":\"w\"", losses[l / 2]);
        (void)snprintf(copied, sizeof copied, WHOLE "%s", losses[l / 2]);
        const struct trial a = {"a", weighted, "1"}, b = {"b", copied, "1"};
        bool both = l / 2 == 2; /* class weights are shares of a batch, which copies change */
        write_table("t", &(struct table){"part,w,", part_and_weight, NULL});
        ck_assert_int_eq(rig_solo(&rig, "t", &a, backend), 0);
        inputs_are("t", "a", ab, 2);
        if (both)
            continue;
        write_table("t", &(struct table){"part,", part_alone, times});
        ck_assert_int_eq(rig_solo(&rig, "t", &b, backend), 0);
        for (size_t m = 0; m < AS_ARRAY_LEN(metrics); m++) {
            double x = rig_last(&rig, "t", &a, metrics[m]);
            double y = rig_last(&rig, "t", &b, metrics[m]);
            ck_assert_msg(fabs(x - y) <= 2e-5 * (1 + fabs(y)), "%s: %.9g, as copies %.9g",
                          metrics[m], x, y);
        }
    }
}
END_TEST

static void bad_weight(struct str *out, size_t row)
{
    str_printf(out, "%d,", row == 7 ? -1 : 1);
}

static void bad_part(struct str *out, size_t row)
{
    str_printf(out, "%s,", row == 7 ? "perhaps" : "train");
}

static void fails(const struct table *t, const char *train)
{
    const struct trial m = {"m", train, "1"};
    write_table("t", t);
    (void)rig_solo(&rig, "f", &m, "cpu"); /* a group ends well when its members do not */
    size_t n = 0;
    ck_assert_ptr_null(rig_read(&rig, "f", "m", "artifacts/predictions.npy", &n));
}

START_TEST(bad_columns_end_the_trial)
{
    fails(&(struct table){"w,", bad_weight, NULL}, SMALL "\"weights\":\"w\"");
    fails(&(struct table){"part,", bad_part, NULL}, SMALL "\"validation\":{\"column\":\"part\"}");
    fails(&(struct table){"", nothing, NULL}, SMALL "\"weights\":\"w\"");
}
END_TEST

/* ---- patience ---- */

/* The lines of a report; ret_n of them. */
static json_t *lines_of(const char *tag, const char *id, size_t *ret_n)
{
    size_t len = 0;
    AS_AUTO(as_freep) char *text = rig_read(&rig, tag, id, "report", &len);
    json_t *all = json_array();
    ck_assert_ptr_nonnull(text);
    for (char *at = text, *end; (end = strchr(at, '\n')); at = end + 1) {
        json_t *line = NULL;
        ck_ok(json_parse(at, (size_t)(end - at), &line, &rig.err), rig.err);
        ck_assert_int_eq(json_array_append_new(all, line), 0);
    }
    *ret_n = json_array_size(all);
    return all;
}

static double value_in(const json_t *lines, size_t i, const char *name)
{
    double v = NAN;
    (void)json_number_get(json_object_get(json_array_get(lines, i), name), &v);
    return v;
}

/* The report of a trial with patience: it goes on for `patience` reports after the best one, and
 * the last line repeats that one. */
static size_t best_by_hand(const char *tag, const char *id, size_t patience, size_t epochs)
{
    size_t n = 0, best = 0;
    JSON_AUTO lines = lines_of(tag, id, &n);
    for (size_t i = 1; i + 1 < n; i++)
        if (value_in(lines, i, "val_loss") < value_in(lines, best, "val_loss"))
            best = i;
    size_t last = best + patience + 1 < epochs ? best + patience + 1 : epochs;
    ck_assert_uint_eq(n, last + 1);
    ck_assert_double_eq(value_in(lines, n - 1, "step"), (double)n);
    ck_assert_double_eq(value_in(lines, n - 1, "best_step"), (double)best + 1);
    ck_assert_double_eq(value_in(lines, n - 1, "val_loss"), value_in(lines, best, "val_loss"));
    ck_assert_double_eq(value_in(lines, n - 1, "val_auc"), value_in(lines, best, "val_auc"));
    return best;
}

/* Overfits within a few epochs. */
#define EAGER                                                                                      \
    "\"epochs\":40,\"batch_size\":8,\"model\":{\"layers\":[40],\"norm\":\"batch\"},"               \
    "\"optimizer\":{\"lr\":0.05},\"metrics\":[\"val_auc\",\"val_log_loss\"]"

START_TEST(patience_keeps_the_best_weights)
{
    static const struct trial t[] = {{"a", EAGER ",\"patience\":4", "1"},
                                     {"b", EAGER ",\"patience\":2", "2"},
                                     {"c", EAGER, "3"},
                                     {"d", EAGER ",\"patience\":40", "4"}};
    static const char *const backends[] = {"cpu", "reference"};
    const struct trial *all[] = {&t[0], &t[1], &t[2], &t[3]};
    write_table("t", &(struct table){"", nothing, NULL});
    for (size_t b = 0; b < 2; b++) {
        char solo[16], fused[16];
        (void)snprintf(solo, sizeof solo, "s-%s", backends[b]);
        (void)snprintf(fused, sizeof fused, "f-%s", backends[b]);
        for (size_t i = 0; i < 4; i++)
            ck_assert_int_eq(rig_solo(&rig, solo, &t[i], backends[b]), 0);
        size_t best = best_by_hand(solo, "a", 4, 40);
        ck_assert_uint_lt(best, 35); /* else this tests nothing */
        (void)best_by_hand(solo, "b", 2, 40);
        (void)best_by_hand(solo, "d", 40, 40);
        /* in a group only the member itself ends */
        rig_job(&rig, fused, all, 4, 4);
        ck_assert_int_eq(rig_run(&rig, backends[b], 2), 0);
        for (size_t i = 0; i < 4; i++)
            rig_same(&rig, solo, fused, &t[i]);
    }
}
END_TEST

/* The files of a trial that ended early are those of a trial that ended after the best epoch. */
START_TEST(files_are_those_of_the_best_report)
{
    static const struct trial patient = {"m", EAGER ",\"patience\":4", "1"};
    char text[400];
    write_table("t", &(struct table){"", nothing, NULL});
    ck_assert_int_eq(rig_solo(&rig, "early", &patient, "cpu"), 0);
    size_t best = best_by_hand("early", "m", 4, 40), n = 0, m = 0;
    (void)snprintf(text, sizeof text, "\"epochs\":%zu%s", best + 1, strchr(EAGER, ','));
    const struct trial just = {"m", text, "1"};
    ck_assert_int_eq(rig_solo(&rig, "just", &just, "cpu"), 0);
    same_bytes("early", "just", "m", "artifacts/predictions.npy");
    AS_AUTO(as_freep) char *x = rig_read(&rig, "early", "m", "artifacts/model.safetensors", &n);
    AS_AUTO(as_freep) char *y = rig_read(&rig, "just", "m", "artifacts/model.safetensors", &m);
    ck_assert(x && y && n > 1304 && m > 1304);
    /* the tensors; the headers name other documents */
    ck_assert_mem_eq(x + n - 1304, y + m - 1304, 1304);
}
END_TEST

/* ---- snapshots ---- */

#define CYCLES(snapshots)                                                                          \
    "\"epochs\":11,\"batch_size\":8,\"model\":{\"layers\":[20],\"norm\":\"batch\"},"               \
    "\"optimizer\":{\"lr\":0.05,\"ema\":0.5},\"metrics\":[\"val_auc\",\"val_log_loss\"],"          \
    "\"schedule\":{\"kind\":\"cosine\",\"cycles\":3,\"snapshots\":" snapshots "}"

/* A group ends with what each has alone. The last report is of the mean: with one snapshot it
 * repeats the last epoch's, with more it has other values. */
START_TEST(snapshots_have_a_report_of_their_mean)
{
    static const struct trial t[] = {
        {"a", CYCLES("1"), "1"}, {"b", CYCLES("3"), "2"}, {"c", CYCLES("2"), "3"}};
    static const char *const names[] = {"val_loss", "val_error", "val_auc", "val_log_loss"};
    static const char *const backends[] = {"cpu", "reference"};
    const struct trial *all[] = {&t[0], &t[1], &t[2]};
    size_t n = 0;
    write_table("t", &(struct table){"", nothing, NULL});
    for (size_t b = 0; b < 2; b++) {
        char solo[16], fused[16];
        (void)snprintf(solo, sizeof solo, "s-%s", backends[b]);
        (void)snprintf(fused, sizeof fused, "f-%s", backends[b]);
        for (size_t i = 0; i < 3; i++)
            ck_assert_int_eq(rig_solo(&rig, solo, &t[i], backends[b]), 0);
        rig_job(&rig, fused, all, 3, 3);
        ck_assert_int_eq(rig_run(&rig, backends[b], 2), 0);
        for (size_t i = 0; i < 3; i++)
            rig_same(&rig, solo, fused, &t[i]);
    }
    JSON_AUTO one = lines_of("s-cpu", "a", &n);
    ck_assert_uint_eq(n, 12);
    ck_assert_double_eq(value_in(one, 11, "step"), 12);
    ck_assert_double_eq(value_in(one, 11, "train_loss"), value_in(one, 10, "train_loss"));
    for (size_t i = 0; i < AS_ARRAY_LEN(names); i++)
        ck_assert_double_eq_tol(value_in(one, 11, names[i]), value_in(one, 10, names[i]), 1e-5);
    JSON_AUTO three = lines_of("s-cpu", "b", &n);
    ck_assert_double_ne(value_in(three, 11, "val_loss"), value_in(three, 10, "val_loss"));
    ck_assert_double_gt(value_in(three, 4, "lr"), value_in(three, 2, "lr")); /* it began anew */
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("train_validation");
    TCase *t = tcase_create("train_validation");
    rig_fixture(t, &rig);
    tcase_add_test(t, a_column_or_an_order_holds_rows_out);
    tcase_add_test(t, groups_stay_together);
    tcase_add_test(t, buckets_are_of_the_held_rows);
    tcase_add_test(t, weights_count_as_copies);
    tcase_add_test(t, bad_columns_end_the_trial);
    tcase_add_test(t, patience_keeps_the_best_weights);
    tcase_add_test(t, snapshots_have_a_report_of_their_mean);
    tcase_add_test(t, files_are_those_of_the_best_report);
    suite_add_tcase(s, t);
    return s;
}
