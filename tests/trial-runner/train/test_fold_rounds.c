/* Boosted trees in folds, each judged after the rounds that were best in the other folds. */
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/rng.h"
#include "base/str.h"
#include "model/trees/xgboost.h"
#include "tests/support/check_main.h"
#include "tests/support/child.h"
#include "trial-runner/train/fold_rounds.h"

#define ROWS 120
#define FOLDS 4
#define LINE 900

/* Rows and columns are drawn, so that the trees can be resumed at every eighth round only. */
#define BOOSTED                                                                                    \
    "\"kind\":\"boosted_trees\",\"learning_rate\":0.2,\"max_depth\":3,\"subsample\":0.7,"          \
    "\"colsample_bytree\":0.7,"
#define STOPPED "\"n_estimators\":150,\"early_stopping_rounds\":9"

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

/* Numbers with so much noise that folds are best after unequal numbers of rounds. */
static void write_job(const char *model, const char *more)
{
    AS_AUTO(str_done) struct str table = {0}, job = {0};
    struct rng r;
    rng_init(&r, 4, 8);
    str_puts(&table, "a,b,y\n");
    for (size_t i = 0; i < ROWS; i++) {
        double a = rng_normal(&r), b = rng_normal(&r);
        str_printf(&table, "%.6f,%.6f,%.6f\n", a, b, a * b - b + 0.7 * rng_normal(&r));
    }
    child_write(&child, "t.csv", table.s, table.len);
    str_printf(
        &job,
        "{\"train\":{\"dataset\":\"t\",\"model\":{" BOOSTED "%s},\"validation\":{\"folds\":4,"
        "\"seed\":1}%s},\"dataset\":{\"format\":\"csv\",\"task\":\"regression\",\"target\":\"y\","
        "\"rows\":%d,\"features\":2,\"outputs\":1,\"input\":\"table\",\"columns\":[{\"name\":\"a\","
        "\"kind\":\"numeric\",\"missing\":0},{\"name\":\"b\",\"kind\":\"numeric\",\"missing\":0}],"
        "\"paths\":{\"table\":\"%s/t.csv\"}}}",
        model, more, ROWS, child.dir);
    child_write(&child, "job.json", job.s, job.len);
}

static double field(const char *line, const char *name)
{
    JSON_AUTO j = NULL;
    double v = NAN;
    ck_ok(json_parse(line, strlen(line), &j, &err), err);
    (void)json_number_get(json_object_get(j, name), &v);
    return v;
}

/* Run the job to its end; the last line of its report. */
static void run(char last[LINE])
{
    char line[LINE];
    child_start(&child, "3", NULL);
    while (child_line(&child, line, sizeof line))
        (void)snprintf(last, LINE, "%s", line);
    ck_assert_int_eq(child_wait(&child), 0);
}

/* A file of a fold's first or second training. */
static char *read_part(size_t fold, bool second, const char *name, size_t *ret_len)
{
    char path[96];
    (void)snprintf(path, sizeof path, "checkpoints/folds/%zu/%s%s", fold, second ? "others/" : "",
                   name);
    return child_read(&child, path, ret_len);
}

static double value_of(size_t fold, bool second, const char *name)
{
    size_t len;
    AS_AUTO(as_freep) char *text = read_part(fold, second, "report", &len);
    text[len - 1] = '\0'; /* the end of the last line */
    const char *end = strrchr(text, '\n');
    return field(end ? end + 1 : text, name);
}

START_TEST(rounds_are_the_mean_of_the_others)
{
    static const double best[] = {10, 20, 31, 0.2};
    ck_assert_uint_eq(fold_rounds_of(best, 4, 0), 17);
    ck_assert_uint_eq(fold_rounds_of(best, 4, 3), 20);
    ck_assert_uint_eq(fold_rounds_of(best, 2, 0), 20);
    ck_assert_uint_eq(fold_rounds_of(best + 2, 2, 0), 1);
}
END_TEST

/* What is reported is of the second trainings, whose rounds are those of the other folds. */
START_TEST(folds_are_judged_by_the_rounds_of_others)
{
    char last[LINE];
    double best[FOLDS], judged = 0, chosen = 0;
    write_job(STOPPED, "");
    run(last);
    for (size_t i = 0; i < FOLDS; i++) {
        best[i] = value_of(i, false, "best_step");
        ck_assert_double_ge(best[i], 1);
    }
    for (size_t i = 0; i < FOLDS; i++) {
        double rounds = (double)fold_rounds_of(best, FOLDS, i);
        ck_assert_double_eq(value_of(i, true, "step"), rounds);
        ck_assert_double_eq(value_of(i, true, "best_step"), rounds);
        judged += value_of(i, true, "val_rmse") / FOLDS;
        chosen += value_of(i, false, "val_rmse") / FOLDS;
    }
    ck_assert_double_eq(field(last, "step"), FOLDS);
    ck_assert_double_eq_tol(field(last, "val_rmse"), judged, 1e-9);
    ck_assert_double_gt(judged, 1.001 * chosen);
}
END_TEST

/* Whether the trees of the first training are cut or continued: the bits are those of a training
 * that has so many rounds from its beginning. */
START_TEST(cut_and_continued_trees_have_the_bits_of_others)
{
    char last[LINE], model[64];
    double best[FOLDS];
    char *want[FOLDS];
    size_t len[FOLDS], cut = 0, n;
    write_job(STOPPED, "");
    run(last);
    for (size_t i = 0; i < FOLDS; i++)
        best[i] = value_of(i, false, "best_step");
    for (size_t i = 0; i < FOLDS; i++) {
        cut += value_of(i, false, "step") >= (double)fold_rounds_of(best, FOLDS, i);
        want[i] = read_part(i, true, "predictions.npy", &len[i]);
    }
    ck_assert(cut > 0 && cut < FOLDS);
    for (size_t i = 0; i < FOLDS; i++) {
        child_teardown(&child);
        child_setup(&child);
        (void)snprintf(model, sizeof model, "\"n_estimators\":%zu", fold_rounds_of(best, FOLDS, i));
        write_job(model, "");
        run(last);
        AS_AUTO(as_freep) char *got = read_part(i, false, "predictions.npy", &n);
        AS_AUTO(as_freep) char *own = want[i];
        ck_assert_uint_eq(n, len[i]);
        ck_assert_mem_eq(got, own, n);
    }
}
END_TEST

/* `patience` chooses among the reported rounds; the training on all rows has as many as the folds
 * on average. */
START_TEST(patience_and_refit)
{
    char last[LINE];
    size_t len;
    double best[FOLDS], mean = 0;
    write_job("\"n_estimators\":150", ",\"patience\":3,\"report_every\":4");
    run(last);
    for (size_t i = 0; i < FOLDS; i++)
        best[i] = value_of(i, false, "best_step");
    for (size_t i = 0; i < FOLDS; i++)
        ck_assert_double_eq(value_of(i, true, "step"), (double)fold_rounds_of(best, FOLDS, i));
    child_teardown(&child);
    child_setup(&child);
    write_job(STOPPED, "");
    AS_AUTO(as_freep) char *job = child_read(&child, "job.json", &len);
    AS_AUTO(str_done) struct str refit = {0};
    const char *seed = strstr(job, "\"seed\":1}");
    str_add(&refit, job, (size_t)(seed - job));
    str_puts(&refit, "\"refit\":true,");
    str_add(&refit, seed, len - (size_t)(seed - job));
    child_write(&child, "job.json", refit.s, refit.len);
    run(last);
    for (size_t i = 0; i < FOLDS; i++)
        mean += value_of(i, true, "best_step") / FOLDS;
    AS_AUTO(as_freep) char *all = child_read(&child, "checkpoints/folds/all/report", &len);
    all[len - 1] = '\0';
    const char *end = strrchr(all, '\n');
    ck_assert_double_eq(field(end ? end + 1 : all, "step"), round(mean));
}
END_TEST

/* Killed before, while and after folds are trained again. */
START_TEST(killed_it_ends_with_the_same_bits)
{
    char last[LINE], line[LINE];
    size_t len, n;
    write_job(STOPPED, "");
    run(last);
    AS_AUTO(as_freep) char *want = child_read(&child, "artifacts/predictions.npy", &len);
    child_teardown(&child);
    child_setup(&child);
    write_job(STOPPED, "");
    int code = -1;
    for (int round = 0; code != 0; round++) {
        size_t lines = 0;
        child_start(&child, "3", "--checkpoint-every=1ms");
        while (child_line(&child, line, sizeof line)) {
            lines++; /* the last fold is reported when all have been trained again */
            if (round < 4 && lines == (size_t)(round < 2 ? 1 : FOLDS - 1))
                ck_assert_int_eq(kill(child.pid, round % 2 ? SIGKILL : SIGTERM), 0);
        }
        code = child_wait(&child);
        ck_assert_msg(code == 0 || code == 75 || code == -SIGKILL, "code %d", code);
    }
    ck_assert_str_eq(line, last);
    AS_AUTO(as_freep) char *got = child_read(&child, "artifacts/predictions.npy", &n);
    ck_assert_uint_eq(n, len);
    ck_assert_mem_eq(got, want, n);
}
END_TEST

/* Of a forest and of networks nothing is chosen by rounds. */
START_TEST(others_have_no_second_training)
{
    static const char *const trains[] = {
        "{\"model\":{\"kind\":\"boosted_trees\"}}",
        "{\"model\":{\"kind\":\"boosted_trees\",\"early_stopping_rounds\":0}}",
        "{\"model\":{\"kind\":\"random_forest\",\"early_stopping_rounds\":5}}",
        "{\"model\":{\"kind\":\"mlp\"},\"patience\":5}", "{\"patience\":5}"};
    for (size_t i = 0; i < AS_ARRAY_LEN(trains); i++) {
        JSON_AUTO j = NULL;
        ck_ok(json_parse(trains[i], strlen(trains[i]), &j, &err), err);
        ck_assert(!fold_rounds_chosen(j));
    }
    JSON_AUTO yes = NULL;
    const char *stops = "{\"model\":{\"kind\":\"boosted_trees\"},\"patience\":5}";
    ck_ok(json_parse(stops, strlen(stops), &yes, &err), err);
    ck_assert(fold_rounds_chosen(yes));
}
END_TEST

TEST_SUITE()
{
    static const char lacks[] = "XGBoost's library is not here (Debian: libxgboost0)";
    const struct xgboost *x = NULL;
    Suite *s = suite_create("train_fold_rounds");
    TCase *t = tcase_create("train_fold_rounds");
    bool here = xgboost_open(&x, NULL) == AS_OK;
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, rounds_are_the_mean_of_the_others);
    tcase_add_test(t, others_have_no_second_training);
    add_test_if(t, folds_are_judged_by_the_rounds_of_others, here, lacks);
    add_test_if(t, cut_and_continued_trees_have_the_bits_of_others, here, lacks);
    add_test_if(t, patience_and_refit, here, lacks);
    add_test_if(t, killed_it_ends_with_the_same_bits, here, lacks);
    suite_add_tcase(s, t);
    return s;
}
