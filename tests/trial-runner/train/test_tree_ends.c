/* Models of trees in assay-train, a process of its own: the rules that choose the model of a run
 * (`patience`), trials with folds, and the metrics that they report. */
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "model/trees/xgboost.h"
#include "tests/support/check_main.h"
#include "tests/support/roots.h"
#include "tests/support/tree_jobs.h"

/* ---- patience ---- */

#define FAST "\"kind\":\"boosted_trees\",\"learning_rate\":0.5,\"max_depth\":3,"

/* Run the job; of all reports but the last one, the best value of `metric` and its step. Returns
 * the step of the report before the last. */
static double run_with_best(const char *metric, bool maximize, double *ret_best, double *ret_step)
{
    char line[LINE], before[LINE] = "";
    *ret_step = 0;
    child_start(&child, "11", NULL);
    last[0] = 0;
    while (child_line(&child, line, sizeof line)) {
        (void)snprintf(before, sizeof before, "%s", last);
        (void)snprintf(last, sizeof last, "%s", line);
        double v = before[0] ? field(before, metric) : NAN;
        if (before[0] && (*ret_step <= 0 || (maximize ? v > *ret_best : v < *ret_best))) {
            *ret_best = v;
            *ret_step = field(before, "step");
        }
    }
    int code = child_wait(&child);
    AS_AUTO(as_freep) char *text = child_read(&child, "err", NULL);
    ck_assert_msg(code == 0, "exit %d: %s", code, text);
    return field(before, "step");
}

/* The model of the best report is kept, as for networks: the last report is one step after the end,
 * has its values, and says which it was. */
static void keeps_the_best(const char *metric, bool maximize, const char *model, const char *more,
                           double patience)
{
    double best = NAN, best_step = 0;
    digits_job(model, more);
    double end = run_with_best(metric, maximize, &best, &best_step);
    ck_assert_double_eq(field(last, "step"), end + 1);
    ck_assert_double_eq(field(last, "best_step"), best_step);
    ck_assert_double_eq_tol(field(last, metric), best, 1e-6);
    ck_assert_double_le(end - best_step, patience);
    AS_AUTO(stored_done) struct stored s = {0};
    stored_read(&s);
    ck_assert_double_eq((double)tree_model_rounds(s.model), best_step);
    AS_AUTO(as_freep) char *path = file_join(source_root(), "examples/digits.csv");
    predicts_as_recorded(path);
}

START_TEST(patience)
{
    keeps_the_best("val_loss", false, FAST "\"n_estimators\":2000",
                   ",\"report_every\":2,\"patience\":3", 6);
    ck_assert_double_eq(field(last, "step"), field(last, "best_step") + 7);
    teardown();
    setup();
    /* the last round is judged, too, also where no report is due */
    keeps_the_best("val_loss", false,
                   "\"kind\":\"boosted_trees\",\"learning_rate\":0.05,\"max_depth\":3,"
                   "\"n_estimators\":13",
                   ",\"report_every\":5,\"patience\":3", 0);
    ck_assert_double_eq(field(last, "best_step"), 13);
}
END_TEST

/* What counts is the sweep's metric, in its direction. With early_stopping_rounds that rule
 * decides, and the mean of a forest has no best tree. */
START_TEST(patience_follows_the_metric)
{
    keeps_the_best("val_accuracy", true, FAST "\"n_estimators\":500",
                   ",\"report_every\":1,\"patience\":4},\"metric\":{\"name\":\"val_accuracy\","
                   "\"goal\":\"maximize\"",
                   4);
    teardown();
    setup();
    digits_job(FAST "\"n_estimators\":500,\"early_stopping_rounds\":20",
               ",\"report_every\":1,\"patience\":1");
    (void)run_job();
    ck_assert_double_eq(field(last, "step"), field(last, "best_step") + 20);
    teardown();
    setup();
    digits_job("\"kind\":\"random_forest\",\"n_estimators\":30",
               ",\"report_every\":1,\"patience\":1");
    ck_assert_int_eq(run_job(), 30);
    AS_AUTO(stored_done) struct stored s = {0};
    stored_read(&s);
    ck_assert_uint_eq(tree_model_rounds(s.model), 30);
}
END_TEST

/* ---- folds ---- */

#define FOLDS ",\"validation\":{\"folds\":3,\"seed\":4}"

static json_t *artifact_json(const char *name)
{
    AS_AUTO(as_freep) char *text = child_read(&child, name, NULL);
    json_t *doc = NULL;
    ck_ok(json_parse(text, strlen(text), &doc, &err), err);
    return doc;
}

static json_t *columns_of_fold(int i)
{
    char name[80];
    (void)snprintf(name, sizeof name, "checkpoints/folds/%d/others/importance.json", i);
    JSON_AUTO doc = artifact_json(name);
    return json_incref(json_object_get(doc, "columns"));
}

static double score(const json_t *columns, const char *column, const char *name)
{
    size_t i;
    const json_t *c;
    json_array_foreach(columns, i, c)
    {
        if (as_streq(json_string_value(json_object_get(c, "column")), column))
            return json_number_value(json_object_get(c, name));
    }
    return 0;
}

/* The importance is of all models together: their splits are added up. */
static void has_importance_of_all(void)
{
    static const char *const names[] = {"colour", "width", "noise"};
    JSON_AUTO doc = artifact_json("artifacts/importance.json");
    const json_t *mean = json_object_get(doc, "columns");
    double splits[3] = {0}, gain[3] = {0}, all = 0;
    for (int i = 0; i < 3; i++) {
        JSON_AUTO columns = columns_of_fold(i);
        for (int c = 0; c < 3; c++) {
            double n = score(columns, names[c], "weight");
            splits[c] += n;
            gain[c] += n * score(columns, names[c], "gain");
            all += n * score(columns, names[c], "gain");
        }
    }
    for (int c = 0; c < 3; c++) {
        ck_assert_double_eq(score(mean, names[c], "weight"), splits[c]);
        ck_assert_double_eq_tol(score(mean, names[c], "share"), gain[c] / all, 1e-9);
        ck_assert_double_eq_tol(score(mean, names[c], "gain") * splits[c], gain[c], 1e-6 * all);
    }
    ck_assert_str_eq(json_string_value(json_object_get(json_array_get(mean, 0), "column")),
                     "colour");
}

/* Each row is predicted by trees that have not seen it, each training stops where the rows of the
 * others say (fold_rounds.h), and the model holds them all. */
START_TEST(folds_of_trees)
{
    AS_AUTO(as_freep)
    char *path = table_job(false,
                           "\"kind\":\"boosted_trees\",\"n_estimators\":400,"
                           "\"learning_rate\":0.3,\"early_stopping_rounds\":5",
                           FOLDS);
    ck_assert_int_eq(run_job(), 3);
    ck_assert_double_lt(field(last, "val_rmse"), 3);
    ck_assert_double_ge(field(last, "val_rmse_std"), 0);
    size_t n, m;
    AS_AUTO(as_freep) double *p = recorded("artifacts/predictions.npy", &n);
    AS_AUTO(as_freep) double *y = recorded("artifacts/targets.npy", &m);
    ck_assert_uint_eq(n, 800);
    ck_assert_uint_eq(m, 800);
    double squares = 0;
    for (size_t i = 0; i < n; i++)
        squares += (p[i] - y[i]) * (p[i] - y[i]);
    ck_assert_double_eq_tol(field(last, "val_loss"), squares / 800, 1e-4 * squares / 800);
    AS_AUTO(as_freep) char *file = in_dir("artifacts/model.safetensors");
    AS_AUTO(safetensors_freep) struct safetensors *s = NULL;
    ck_ok(safetensors_read(file, 1 << 26, &s, &err), err);
    for (int i = 0; i < 3; i++) {
        char name[40];
        (void)snprintf(name, sizeof name, "members/%d/trees", i);
        ck_assert_ptr_nonnull(safetensors_get(s, name));
    }
    has_importance_of_all();
}
END_TEST

/* The trees of all rows: as many rounds as the folds' best ones had on average, and no rule that
 * stops. */
START_TEST(trees_are_refitted)
{
    double rounds = 0;
    free(table_job(false,
                   "\"kind\":\"boosted_trees\",\"n_estimators\":400,"
                   "\"learning_rate\":0.3,\"early_stopping_rounds\":5",
                   ",\"validation\":{\"folds\":4,\"seed\":4,\"refit\":true}"));
    ck_assert_int_eq(run_job(), 4);
    for (int i = 0; i < 4; i++) {
        char name[40];
        (void)snprintf(name, sizeof name, "checkpoints/folds/%d/report", i);
        AS_AUTO(as_freep) char *report = child_read(&child, name, NULL);
        report[strlen(report) - 1] = '\0';
        rounds += field(strrchr(report, '\n') + 1, "best_step") / 4; /* folds of 200 rows each */
    }
    AS_AUTO(as_freep) char *file = in_dir("artifacts/model.safetensors");
    AS_AUTO(safetensors_freep) struct safetensors *s = NULL;
    ck_ok(safetensors_read(file, 1 << 26, &s, &err), err);
    const char *text = safetensors_metadata(s, "model");
    JSON_AUTO manifest = NULL;
    ck_ok(json_parse(text, strlen(text), &manifest, &err), err);
    json_t *members = json_object_get(manifest, "members"), *m = json_array_get(members, 0);
    json_t *model = json_object_get(json_object_get(m, "train"), "model");
    ck_assert_uint_eq(json_array_size(members), 1);
    ck_assert_int_eq(json_integer_value(json_object_get(model, "n_estimators")), llround(rounds));
    ck_assert_ptr_null(json_object_get(model, "early_stopping_rounds"));
    ck_assert_ptr_nonnull(safetensors_get(s, "members/0/trees"));
    JSON_AUTO whole = artifact_json("artifacts/importance.json");
    JSON_AUTO own = artifact_json("checkpoints/folds/all/importance.json");
    ck_assert(json_object_size(json_array_get(json_object_get(own, "columns"), 0)) > 0);
    ck_assert_uint_eq(json_array_size(json_object_get(whole, "columns")),
                      json_array_size(json_object_get(own, "columns")));
}
END_TEST

/* Stopped and killed in each fold, a trial ends with the predictions of one that was left alone. */
START_TEST(folds_of_trees_resume)
{
    static const char model[] = "\"kind\":\"boosted_trees\",\"n_estimators\":300,"
                                "\"subsample\":0.7,\"max_depth\":3";
    char line[LINE];
    size_t len, again;
    free(table_job(true, model, FOLDS));
    (void)run_job();
    char whole[LINE];
    (void)snprintf(whole, sizeof whole, "%s", last);
    AS_AUTO(as_freep) char *want = child_read(&child, "artifacts/predictions.npy", &len);
    AS_AUTO(as_freep) char *want_i = child_read(&child, "artifacts/importance.json", NULL);
    teardown();
    setup();
    free(table_job(true, model, FOLDS));
    for (int code = -1, round = 0; code != 0; round++) {
        child_start(&child, "11", "--checkpoint-every=1ms");
        for (int n = 0; child_line(&child, line, sizeof line); n++) {
            (void)snprintf(last, sizeof last, "%s", line);
            if (round < 2 && n == round)
                ck_assert_int_eq(kill(child.pid, round ? SIGKILL : SIGTERM), 0);
        }
        code = child_wait(&child);
        ck_assert_msg(code == 0 || code == 75 || code == -SIGKILL, "code %d", code);
    }
    ck_assert_str_eq(last, whole);
    AS_AUTO(as_freep) char *got = child_read(&child, "artifacts/predictions.npy", &again);
    AS_AUTO(as_freep) char *got_i = child_read(&child, "artifacts/importance.json", NULL);
    ck_assert_uint_eq(len, again);
    ck_assert_mem_eq(got, want, len);
    ck_assert_str_eq(got_i, want_i);
}
END_TEST

/* ---- metrics ---- */

static json_t *names_of(const char *line)
{
    JSON_AUTO j = NULL;
    JSON_AUTO names = json_object();
    const char *name;
    json_t *value;
    ck_ok(json_parse(line, strlen(line), &j, &err), err);
    json_object_foreach(j, name, value)(void) json_object_set_new(names, name, json_null());
    return json_incref(names);
}

/* Trees and networks report the same metrics, of the same rows: those of the predictions that both
 * leave. */
START_TEST(metrics_are_those_of_networks)
{
    static const char *const models[] = {"\"kind\":\"logistic\"",
                                         "\"kind\":\"boosted_trees\",\"n_estimators\":30",
                                         "\"kind\":\"random_forest\",\"n_estimators\":30"};
    JSON_AUTO names = NULL;
    for (size_t i = 0; i < AS_ARRAY_LEN(models); i++) {
        free(table_job(true, models[i],
                       ",\"epochs\":3,\"metrics\":[\"val_auc\",\"val_log_loss\",\"val_brier\","
                       "\"val_f1\",\"val_balanced_accuracy\"]"));
        (void)run_job();
        JSON_AUTO mine = names_of(last);
        names = names ? names : json_incref(mine);
        ck_assert_msg(json_equal(names, mine), "%s", last);
        size_t n, m;
        AS_AUTO(as_freep) double *p = recorded("artifacts/predictions.npy", &n);
        AS_AUTO(as_freep) double *y = recorded("artifacts/targets.npy", &m);
        ck_assert_uint_eq(n, 2 * m);
        double wrong = 0, surprise = 0, brier = 0;
        for (size_t r = 0; r < m; r++) {
            bool truth = y[r] > 0.5;
            double one = p[2 * r + 1], mine_p = p[2 * r + truth];
            wrong += (one > p[2 * r]) != truth;
            surprise -= log(mine_p > 1.2e-7 ? mine_p : 1.2e-7);
            brier += (one - truth) * (one - truth);
        }
        ck_assert_double_eq_tol(field(last, "val_error"), wrong / (double)m, 1e-9);
        ck_assert_double_eq_tol(field(last, "val_accuracy"), 1 - wrong / (double)m, 1e-9);
        ck_assert_double_eq_tol(field(last, "val_log_loss"), surprise / (double)m, 1e-5);
        ck_assert_double_eq_tol(field(last, "val_loss"), surprise / (double)m, 1e-5);
        ck_assert_double_eq_tol(field(last, "val_brier"), brier / (double)m, 1e-6);
        teardown();
        setup();
    }
}
END_TEST

TEST_SUITE()
{
    static const char lacks[] = "XGBoost's library is not here (Debian: libxgboost0)";
    const struct xgboost *x = NULL;
    Suite *s = suite_create("train_tree_ends");
    TCase *t = tcase_create("all");
    bool here = xgboost_open(&x, NULL) == AS_OK;
    tcase_add_checked_fixture(t, setup, teardown);
    add_test_if(t, patience, here, lacks);
    add_test_if(t, patience_follows_the_metric, here, lacks);
    add_test_if(t, folds_of_trees, here, lacks);
    add_test_if(t, trees_are_refitted, here, lacks);
    add_test_if(t, folds_of_trees_resume, here, lacks);
    add_test_if(t, metrics_are_those_of_networks, here, lacks);
    suite_add_tcase(s, t);
    return s;
}
