/* Trials of several folds, as the runner starts them: each row is predicted once, in the order of
 * the file; the metrics are those of these predictions; a trial that is killed goes on. */
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/rng.h"
#include "base/str.h"
#include "data/formats/npy.h"
#include "data/formats/safetensors.h"
#include "tests/support/check_main.h"
#include "tests/support/child.h"

#define ROWS 90
#define FOLDS 4

static struct as_err err;
static struct child child;

static void setup(void)
{
    child_setup(&child);
}

static void teardown(void)
{
    child_teardown(&child);
}

/* Three classes; a row of class 2 in ten. Or numbers. */
static size_t class_of(size_t i)
{
    return i % 10 == 0 ? 2 : i % 2;
}

static void write_job(bool numbers, const char *train)
{
    AS_AUTO(str_done) struct str table = {0}, job = {0};
    struct rng r;
    rng_init(&r, 6, 6);
    str_puts(&table, "a,b,y\n");
    for (size_t i = 0; i < ROWS; i++) {
        double a = rng_normal(&r) + (double)class_of(i), b = rng_normal(&r);
        str_printf(&table, "%.6f,%.6f,", a, b);
        if (numbers)
            str_printf(&table, "%.6f\n", 2 * a - b + 0.1 * rng_normal(&r));
        else
            str_printf(&table, "c%zu\n", class_of(i));
    }
    child_write(&child, "t.csv", table.s, table.len);
    str_printf(&job,
               "{\"train\":{\"dataset\":\"t\",%s},\"dataset\":{\"format\":\"csv\",\"task\":\"%s\","
               "\"target\":\"y\",\"rows\":%d,\"features\":2,\"outputs\":%d,%s\"input\":\"table\","
               "\"columns\":[{\"name\":\"a\",\"kind\":\"numeric\",\"missing\":0},{\"name\":\"b\","
               "\"kind\":\"numeric\",\"missing\":0}],\"paths\":{\"table\":\"%s/t.csv\"}}}",
               train, numbers ? "regression" : "classification", ROWS, numbers ? 1 : 3,
               numbers ? "" : "\"classes\":[\"c0\",\"c1\",\"c2\"],", child.dir);
    child_write(&child, "job.json", job.s, job.len);
}

#define FOUR                                                                                       \
    "\"epochs\":6,\"model\":{\"layers\":[8]},\"optimizer\":{\"lr\":0.02},\"validation\":{"         \
    "\"folds\":4,\"split\":\"stratified\",\"seed\":1}"

static double field(const char *line, const char *name)
{
    JSON_AUTO j = NULL;
    double v = NAN;
    ck_ok(json_parse(line, strlen(line), &j, &err), err);
    ck_assert_msg(json_number_get(json_object_get(j, name), &v), "%s in %s", name, line);
    return v;
}

/* Run the job; the lines of the report. */
static size_t run(char lines[FOLDS + 2][900], const char *option)
{
    size_t n = 0;
    child_start(&child, "3", option);
    while (n <= FOLDS && child_line(&child, lines[n], sizeof lines[n]))
        n++;
    return n;
}

static struct npy *open_artifact(const char *name)
{
    AS_AUTO(as_freep) char *folder = file_join(child.dir, "artifacts");
    AS_AUTO(as_freep) char *path = file_join(folder, name);
    struct npy *ret = NULL;
    ck_ok(npy_open(path, &ret, &err), err);
    return ret;
}

START_TEST(each_row_is_predicted_once)
{
    static char lines[FOLDS + 2][900];
    double wrong = 0;
    write_job(false, FOUR ",\"metrics\":[\"val_brier\"]");
    ck_assert_uint_eq(run(lines, NULL), FOLDS);
    ck_assert_int_eq(child_wait(&child), 0);
    for (size_t i = 0; i < FOLDS; i++)
        ck_assert_double_eq(field(lines[i], "step"), (double)i + 1);
    AS_AUTO(npy_freep) struct npy *p = open_artifact("predictions.npy");
    AS_AUTO(npy_freep) struct npy *y = open_artifact("targets.npy");
    ck_assert_uint_eq(npy_header_of(p)->shape[0], ROWS);
    ck_assert_uint_eq(npy_header_of(p)->shape[1], 3);
    ck_assert_int_eq(npy_header_of(y)->type, NPY_I8);
    ck_assert_uint_eq(npy_header_of(y)->n_dims, 1);
    double brier = 0;
    for (size_t i = 0; i < ROWS; i++) {
        double row[3], label;
        ck_ok(npy_read(p, 3, row, &err), err);
        ck_ok(npy_read(y, 1, &label, &err), err);
        ck_assert_uint_eq((size_t)label, class_of(i)); /* the order of the file */
        ck_assert_double_eq_tol(row[0] + row[1] + row[2], 1, 1e-5);
        size_t best = row[1] > row[0] ? 1 : 0;
        best = row[2] > row[best] ? 2 : best;
        wrong += best != class_of(i);
        for (size_t c = 0; c < 3; c++)
            brier += (row[c] - (c == class_of(i))) * (row[c] - (c == class_of(i)));
    }
    const char *last = lines[FOLDS - 1];
    ck_assert_double_eq_tol(field(last, "val_error"), wrong / ROWS, 1e-9);
    ck_assert_double_eq_tol(field(last, "val_brier"), brier / ROWS, 1e-6);
    ck_assert_double_gt(field(last, "val_loss_std"), 0);
    ck_assert_double_eq(field(lines[0], "val_loss_std"), 0); /* one fold does not deviate */
    ck_assert_double_lt(field(last, "val_error"), 0.5);
}
END_TEST

/* All rows, in the order of the file. Numbers are written in the shortest way. */
START_TEST(buckets_are_of_all_rows)
{
    static char lines[FOLDS + 2][900];
    AS_AUTO(str_done) struct str want = {0};
    size_t len = 0;
    write_job(false, FOUR ",\"buckets\":\"b\"");
    ck_assert_uint_eq(run(lines, NULL), FOLDS);
    ck_assert_int_eq(child_wait(&child), 0);
    AS_AUTO(as_freep) char *table = child_read(&child, "t.csv", &len);
    AS_AUTO(as_freep) char *got = child_read(&child, "artifacts/buckets.json", &len);
    str_puts(&want, "{\"column\":\"b\",\"values\":[");
    char *line = strchr(table, '\n') + 1;
    for (size_t i = 0; i < ROWS; i++, line = strchr(line, '\n') + 1) {
        char *b = strchr(line, ',') + 1;
        size_t n = strcspn(b, ",");
        while (b[n - 1] == '0') /* all have a fraction */
            n--;
        str_printf(&want, "%s\"%.*s\"", i ? "," : "", (int)n, b);
    }
    str_puts(&want, "]}");
    ck_assert_msg(len == want.len && memcmp(got, want.s, len) == 0, "%.*s", (int)len, got);
}
END_TEST

/* The model file has the models of all folds, which have equal shares. */
START_TEST(the_model_has_a_member_for_each_fold)
{
    static char lines[FOLDS + 2][900];
    write_job(false, FOUR);
    ck_assert_uint_eq(run(lines, NULL), FOLDS);
    ck_assert_int_eq(child_wait(&child), 0);
    AS_AUTO(as_freep) char *path = file_join(child.dir, "artifacts/model.safetensors");
    AS_AUTO(safetensors_freep) struct safetensors *s = NULL;
    ck_ok(safetensors_read(path, 1 << 20, &s, &err), err);
    ck_assert_str_eq(safetensors_metadata(s, "format"), "assay-model");
    ck_assert_str_eq(safetensors_metadata(s, "version"), "1");
    const char *text = safetensors_metadata(s, "model");
    JSON_AUTO model = NULL;
    ck_ok(json_parse(text, strlen(text), &model, &err), err);
    json_t *members = json_object_get(model, "members");
    ck_assert_uint_eq(json_array_size(members), FOLDS);
    size_t rows = 0;
    for (size_t i = 0; i < FOLDS; i++) {
        char name[64];
        json_t *m = json_array_get(members, i), *fit = json_object_get(m, "preprocessing");
        ck_assert_double_eq(json_number_value(json_object_get(m, "weight")), 0.25);
        size_t train = (size_t)json_integer_value(json_object_get(fit, "training_rows"));
        size_t held = (size_t)json_integer_value(json_object_get(fit, "validation_rows"));
        ck_assert_uint_eq(train + held, ROWS);
        ck_assert(held == 22 || held == 23);
        rows += held;
        ck_assert(json_is_object(json_object_get(m, "train")));
        (void)snprintf(name, sizeof name, "members/%zu/layers.0.weight", i);
        ck_assert_ptr_nonnull(safetensors_get(s, name));
    }
    ck_assert_uint_eq(rows, ROWS);
    ck_assert_str_eq(json_string_value(json_object_get(json_object_get(model, "combine"), "kind")),
                     "mean");
    ck_assert(json_is_number(json_object_get(json_object_get(model, "metrics"), "val_error")));
}
END_TEST

START_TEST(numbers_have_folds_too)
{
    static char lines[FOLDS + 2][900];
    double squares = 0;
    write_job(true, FOUR ",\"patience\":3");
    ck_assert_uint_eq(run(lines, NULL), FOLDS);
    ck_assert_int_eq(child_wait(&child), 0);
    AS_AUTO(npy_freep) struct npy *p = open_artifact("predictions.npy");
    AS_AUTO(npy_freep) struct npy *y = open_artifact("targets.npy");
    ck_assert_int_eq(npy_header_of(y)->type, NPY_F4);
    for (size_t i = 0; i < ROWS; i++) {
        double a, b;
        ck_ok(npy_read(p, 1, &a, &err), err);
        ck_ok(npy_read(y, 1, &b, &err), err);
        squares += (a - b) * (a - b);
    }
    ck_assert_double_eq_tol(field(lines[FOLDS - 1], "val_loss"), squares / ROWS,
                            1e-5 * squares / ROWS);
}
END_TEST

/* The manifest of the model file. */
static json_t *read_manifest(void)
{
    AS_AUTO(as_freep) char *path = file_join(child.dir, "artifacts/model.safetensors");
    AS_AUTO(safetensors_freep) struct safetensors *s = NULL;
    json_t *model = NULL;
    ck_ok(safetensors_read(path, 1 << 20, &s, &err), err);
    const char *text = safetensors_metadata(s, "model");
    ck_ok(json_parse(text, strlen(text), &model, &err), err);
    return model;
}

/* After which epoch a fold's weights were best, by its own report. */
static double best_step_of(size_t fold)
{
    char name[64];
    size_t len;
    (void)snprintf(name, sizeof name, "checkpoints/folds/%zu/report", fold);
    AS_AUTO(as_freep) char *text = child_read(&child, name, &len);
    text[len - 1] = '\0'; /* the end of the last line */
    return field(strrchr(text, '\n') + 1, "best_step");
}

/* One model, that saw all rows, as long as the folds were best on average; what is measured and
 * written of the rows is that of the folds. */
START_TEST(a_refitted_model_saw_all_rows)
{
#define STOPPED                                                                                    \
    "\"epochs\":40,\"patience\":2,\"model\":{\"layers\":[8]},\"optimizer\":{\"lr\":0.1},"
    static char plain[FOLDS + 2][900], lines[FOLDS + 2][900];
    size_t n_plain, n;
    write_job(false, STOPPED "\"validation\":{\"folds\":4,\"seed\":1}");
    ck_assert_uint_eq(run(plain, NULL), FOLDS);
    ck_assert_int_eq(child_wait(&child), 0);
    AS_AUTO(as_freep) char *want = child_read(&child, "artifacts/predictions.npy", &n_plain);
    child_teardown(&child);
    child_setup(&child);
    write_job(false, STOPPED "\"validation\":{\"folds\":4,\"seed\":1,\"refit\":true}");
    ck_assert_uint_eq(run(lines, NULL), FOLDS);
    ck_assert_int_eq(child_wait(&child), 0);
    for (size_t i = 0; i < FOLDS; i++)
        ck_assert_str_eq(lines[i], plain[i]);
    AS_AUTO(as_freep) char *got = child_read(&child, "artifacts/predictions.npy", &n);
    ck_assert_uint_eq(n, n_plain);
    ck_assert_mem_eq(got, want, n);
    double best = 0; /* the folds have 23, 23, 22 and 22 rows */
    for (size_t i = 0; i < FOLDS; i++)
        best += best_step_of(i) * (i < 2 ? 23 : 22) / ROWS;
    JSON_AUTO model = read_manifest();
    json_t *members = json_object_get(model, "members"), *m = json_array_get(members, 0);
    json_t *fit = json_object_get(m, "preprocessing"), *train = json_object_get(m, "train");
    ck_assert_uint_eq(json_array_size(members), 1);
    ck_assert_double_eq(json_number_value(json_object_get(m, "weight")), 1);
    ck_assert_int_eq(json_integer_value(json_object_get(fit, "training_rows")), ROWS);
    ck_assert_int_eq(json_integer_value(json_object_get(fit, "validation_rows")), 0);
    ck_assert_double_lt(best, 40);
    ck_assert_int_eq(json_integer_value(json_object_get(train, "epochs")), llround(best));
    ck_assert_ptr_null(json_object_get(train, "patience"));
    ck_assert_double_eq_tol(
        json_number_value(json_object_get(json_object_get(model, "metrics"), "val_error")),
        field(lines[FOLDS - 1], "val_error"), 1e-12);
}
END_TEST

START_TEST(killed_it_ends_with_the_same_bits)
{
    static char whole[FOLDS + 2][900], parts[FOLDS + 2][900];
    static const char *const names[] = {"artifacts/predictions.npy", "artifacts/model.safetensors"};
    char *want[2];
    size_t len[2];
#define LONG                                                                                       \
    "\"epochs\":6,\"model\":{\"layers\":[8]},\"optimizer\":{\"lr\":0.02},\"batch_size\":4,"        \
    "\"validation\":{\"folds\":4,\"split\":\"stratified\",\"seed\":1,\"refit\":true}"
    write_job(false, LONG);
    ck_assert_uint_eq(run(whole, NULL), FOLDS);
    ck_assert_int_eq(child_wait(&child), 0);
    for (size_t i = 0; i < 2; i++)
        want[i] = child_read(&child, names[i], &len[i]);
    child_teardown(&child);
    child_setup(&child);
    write_job(false, LONG);
    int code = -1;
    for (int round = 0; code != 0; round++) {
        size_t n = 0;
        child_start(&child, "3", "--checkpoint-every=1ms");
        while (child_line(&child, parts[n], sizeof parts[n])) {
            ck_assert_str_eq(parts[n], whole[n]); /* folds that are done are reported again */
            n += n < FOLDS;
            if (round < 3 && n == (size_t)round + 1)
                ck_assert_int_eq(kill(child.pid, round == 1 ? SIGKILL : SIGTERM), 0);
        }
        code = child_wait(&child);
        ck_assert_msg(code == 0 || code == 75 || code == -SIGKILL, "code %d", code);
    }
    for (size_t i = 0; i < 2; i++) {
        size_t n = 0;
        AS_AUTO(as_freep) char *got = child_read(&child, names[i], &n);
        AS_AUTO(as_freep) char *expected = want[i];
        ck_assert_uint_eq(n, len[i]);
        if (i == 0) /* the other file names the folder of the table */
            ck_assert_mem_eq(got, expected, n);
        else
            ck_assert_mem_eq(got + n - 500, expected + n - 500, 500);
    }
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("train_folds");
    TCase *t = tcase_create("train_folds");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, each_row_is_predicted_once);
    tcase_add_test(t, buckets_are_of_all_rows);
    tcase_add_test(t, the_model_has_a_member_for_each_fold);
    tcase_add_test(t, numbers_have_folds_too);
    tcase_add_test(t, a_refitted_model_saw_all_rows);
    tcase_add_test(t, killed_it_ends_with_the_same_bits);
    suite_add_tcase(s, t);
    return s;
}
