/* Ensembles as versions of models: of every method, of one sweep or several, and what is refused.
 * The files are those that the trainer writes, the predictions those of lifecycle/predictions.h. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "model/file/model_file.h"
#include "scheduler/content/blob_file.h"
#include "scheduler/content/blobs.h"
#include "scheduler/lifecycle/ensemble_requests.h"
#include "scheduler/services/models.h"
#include "tests/scheduler/lifecycle/predictions.h"
#include "tests/scheduler/services/model_bytes.h"
#include "tests/support/check_main.h"
#include "tests/support/service.h"
#include "tests/support/temp_folder.h"

static struct service s;
static struct as_err err;
static char dir[TEMP_FOLDER_SIZE];
static int64_t epoch;

static void setup(void)
{
    temp_folder_make(dir);
    epoch = make_runner(&s, "r", 16);
}

static void teardown(void)
{
    temp_folder_remove(dir);
}

/* Trial k leaves its predictions, the file of a model, and one more file unless it is NULL. */
static void leave_model_and(struct attempt_ref ref, int k, const struct file_row *more)
{
    char hex[SHA256_HEX_SIZE];
    size_t len = 0;
    AS_AUTO(as_freep) char *bytes = model_bytes(dir, (float)k, &len);
    put_bytes(&s, bytes, len, hex);
    const struct file_row f = {.path = "model.safetensors", .size = (int64_t)len, .sha256 = hex};
    const struct file_row files[] = {f, more ? *more : f};
    leave_predictions_with(&s, ref, k, true, PREDICTED_ROWS, files, more ? 2 : 1);
}

static void leave_model(struct attempt_ref ref, int k)
{
    leave_model_and(ref, k, NULL);
}

/* A sweep of n trials from trial `first` of predictions.h, which has ended. */
static void ended_sweep(const char *name, int n, int first, bool models)
{
    char limits[40];
    (void)snprintf(limits, sizeof limits, "'max_trials': %d", n);
    make_sweep(&s, name, limits, "");
    struct claim_list list = claim(&s, "r", epoch, n);
    for (int k = 0; k < n; k++) {
        if (models)
            leave_model(ref_of(&list.rows[k]), first + k);
        else
            leave_predictions(&s, ref_of(&list.rows[k]), first + k, true, PREDICTED_ROWS);
        finish(&s, ref_of(&list.rows[k]), 1.0 / 3);
    }
    (void)reap(&s);
    ck_assert_int_eq(sweep_of_id(&s, name).state, SWEEP_COMPLETED);
}

static int64_t ask_for(const char *sweep, const char *body)
{
    struct ensemble_asked e;
    bool created;
    JSON_AUTO j = json_of(body);
    ck_ok(ensemble_ask(s.db, &s.a, sweep, j, &e, &created, &err), err);
    return e.number;
}

/* The ensemble as the API returns it. */
static json_t *result(const char *sweep, int64_t number)
{
    struct ensemble_asked e;
    json_t *j = NULL;
    ck_ok(ensemble_asked_get(s.db, &s.a, sweep, number, &e, &err), err);
    ck_assert_str_eq(e.state, "ready");
    ck_ok(json_parse(e.result, strlen(e.result), &j, &err), err);
    return j;
}

static as_status add(const char *sweep, int64_t ensemble, struct model_version_row *ret)
{
    const struct model_request q = {.sweep = sweep, .trial = -1, .ensemble = ensemble};
    bool created;
    err = (struct as_err){0};
    return model_add(s.db, &s.a, "m", &q, ret, &created, &err);
}

static struct model_file *file_of(const struct model_version_row *v)
{
    AS_AUTO(blob_file_done) struct blob_file copy = {0};
    struct model_file *f = NULL;
    ck_ok(blob_file_init(s.db, v->sha256, &copy, &err), err);
    ck_ok(model_file_read(copy.path, 1 << 20, &f, &err), err);
    return f;
}

/* The version is what the ensemble is: the same weights in the same order, the same biases. */
static void is_version_of(const struct model_version_row *v, const json_t *e)
{
    AS_AUTO(model_file_freep) struct model_file *f = file_of(v);
    const json_t *members = json_object_get(e, "members"), *member;
    const json_t *combine = json_object_get(e, "combine");
    const struct model_combine *c = model_file_combine(f);
    size_t i;
    ck_assert_str_eq(v->kind, "ensemble");
    ck_assert_uint_eq(model_file_n_members(f), json_array_size(members));
    json_array_foreach(members, i, member)
    {
        const struct model_member *m = model_file_member(f, i);
        double weight = json_number_value(json_object_get(member, "weight"));
        const char *sweep = json_string_value(json_object_get(member, "sweep"));
        ck_assert_int_eq(m->trial, json_integer_value(json_object_get(member, "number")));
        ck_assert_double_eq(c->kind == MODEL_LINEAR ? c->weights[i] : m->weight, weight);
        ck_assert_str_eq(m->sweep ? m->sweep : "a", sweep ? sweep : "a");
    }
    ck_assert((c->kind == MODEL_LINEAR) == (json_object_get(combine, "biases") != NULL));
    const json_t *calibration = json_object_get(combine, "calibration");
    ck_assert((calibration != NULL) == json_is_true(json_object_get(e, "calibrate")));
    ck_assert_double_eq(c->calibration.slope,
                        json_number_value(json_object_get(calibration, "slope")));
    ck_assert_double_eq(c->calibration.bias,
                        json_number_value(json_object_get(calibration, "bias")));
    const json_t *threshold = json_object_get(combine, "threshold");
    ck_assert(threshold ? c->threshold == json_number_value(threshold) : isnan(c->threshold));
    json_array_foreach(json_object_get(combine, "biases"), i, member)
        ck_assert_double_eq(c->biases[i], json_number_value(member));
}

START_TEST(each_method_becomes_a_version)
{
    static const char *const bodies[] = {
        "{'method': 'greedy', 'size': 3}",
        "{'method': 'stacking'}",
        "{'method': 'stacking', 'non_negative': true}",
        "{'method': 'average', 'size': 2}",
        "{'method': 'bucketing'}",
        "{'method': 'greedy', 'size': 3, 'calibrate': true}",
        "{'method': 'stacking', 'calibrate': true, 'metric': 'log_loss'}",
        "{'method': 'bucketing', 'calibrate': true}"};
    struct model_version_row v;
    ended_sweep("a", 4, 0, true);
    for (size_t i = 0; i < AS_ARRAY_LEN(bodies); i++) {
        char method[64];
        int64_t number = ask_for("a", bodies[i]);
        ck_fails(add("a", number, &v), AS_E_CONFLICT, err, "is not computed yet");
        (void)reap(&s);
        JSON_AUTO e = result("a", number);
        ck_ok(add("a", number, &v), err);
        ck_assert_int_eq(v.version, (int64_t)i + 1);
        is_version_of(&v, e);
        (void)snprintf(method, sizeof method, "\"method\":\"%s\",\"number\":%d,",
                       json_string_value(json_object_get(e, "method")), (int)number);
        ck_assert_msg(strstr(v.lineage, method), "%s", v.lineage);
        ck_assert(strstr(v.measured_on, "cross-fitted"));
    }
    ck_fails(add("a", 77, &v), AS_E_NOT_FOUND, err, "no ensemble 77");
}
END_TEST

/* Members of another sweep say so; a sweep of the same name is not the one that was asked for. */
START_TEST(several_sweeps)
{
    struct model_version_row v;
    ended_sweep("a", 2, 0, true);
    ended_sweep("b", 2, 2, true);
    int64_t number = ask_for("a", "{'method': 'stacking', 'sweeps': ['b']}");
    (void)reap(&s);
    JSON_AUTO e = result("a", number);
    ck_assert_uint_eq(json_array_size(json_object_get(e, "members")), 4);
    ck_ok(add("a", number, &v), err);
    is_version_of(&v, e);
    ck_assert(strstr(v.members, "\"sweep\":\"b\"") && !strstr(v.members, "\"sweep\":\"a\""));
    JSON_AUTO lineage = NULL;
    ck_ok(json_parse(v.lineage, strlen(v.lineage), &lineage, &err), err);
    const json_t *others = json_object_get(lineage, "sweeps");
    ck_assert_uint_eq(json_array_size(others), 1);
    ck_assert_str_eq(json_string_value(json_object_get(json_array_get(others, 0), "sweep_id")),
                     "b");
    ck_assert(json_is_object(json_object_get(json_array_get(others, 0), "document")));
    JSON_AUTO trials = NULL;
    ck_ok(json_parse(v.trials, strlen(v.trials), &trials, &err), err);
    ck_assert_uint_eq(json_array_size(trials), 2); /* of `a` alone */
    ck_ok(sweep_delete(s.db, "b", &err), err);
    ck_fails(add("a", number, &v), AS_E_CONFLICT, err, "the sweep 'b' was deleted since");
    ended_sweep("b", 2, 2, true);
    ck_fails(add("a", number, &v), AS_E_CONFLICT, err, "the sweep 'b' was deleted since");
}
END_TEST

/* The values of the column of DATASET in the held-out rows, with a text that is none of them. */
static struct file_row put_column(void)
{
    AS_AUTO(str_done) struct str text = {0};
    str_puts(&text, "{\"column\":\"c\",\"values\":[\"rare\"");
    for (int i = 1; i < PREDICTED_ROWS; i++)
        str_printf(&text, ",\"%s\"", i % 3 == 1 ? "v" : "u");
    str_puts(&text, "]}");
    return put_text(&s, "buckets.json", str_cstr(&text));
}

/* A trial for each value, and one for others. A value that is too rare to be one of the data set's
 * is among the others. Trial k is wrong where (row + k) % 3 is 0. */
START_TEST(an_ensemble_by_a_column_becomes_a_version)
{
    struct model_version_row v;
    make_sweep(&s, "a", "'max_trials': 3", "");
    struct claim_list list = claim(&s, "r", epoch, 3);
    for (int k = 0; k < 3; k++) {
        const struct file_row column = put_column();
        leave_model_and(ref_of(&list.rows[k]), k, &column);
        finish(&s, ref_of(&list.rows[k]), 1.0 / 3);
    }
    (void)reap(&s);
    int64_t number = ask_for("a", "{'method': 'bucketing'}");
    (void)reap(&s);
    JSON_AUTO e = result("a", number);
    const json_t *combine = json_object_get(e, "combine"), *bucket;
    ck_assert_str_eq(json_string_value(json_object_get(combine, "kind")), "by");
    ck_assert_uint_eq(json_array_size(json_object_get(combine, "buckets")), 3);
    ck_ok(add("a", number, &v), err);
    AS_AUTO(model_file_freep) struct model_file *f = file_of(&v);
    const struct model_combine *c = model_file_combine(f);
    ck_assert(c->kind == MODEL_BY && c->n_buckets == 2 && c->column == 1);
    size_t i;
    json_array_foreach(json_object_get(combine, "buckets"), i, bucket)
    {
        const char *value = json_string_value(json_object_get(bucket, "value"));
        float row[] = {0, (float)(strcmp(value, "u") == 0 ? 0 : strcmp(value, "v") == 0 ? 1 : 2)};
        const struct model_member *m = model_file_member(f, model_combine_input(c, row));
        ck_assert_int_eq(m->trial, json_integer_value(json_object_get(bucket, "number")));
    }
    const struct model_member *m = model_file_member(f, c->other);
    ck_assert_int_eq(
        m->trial, json_integer_value(json_object_get(json_object_get(combine, "other"), "number")));
    ck_assert(strstr(v.lineage, "\"column\":\"c\""));
    pg_fixture_exec(s.url, "update ensemble_asked set result = replace(result::text, "
                           "'\"column\":\"c\"', '\"column\":\"d\"')::json");
    ck_fails(add("a", number, &v), AS_E_UNSUPPORTED, err, "/combine/column: found 'd'");
}
END_TEST

/* Trials of other programs take part in ensembles, and leave no model. */
START_TEST(members_without_a_model_are_refused_by_name)
{
    struct model_version_row v;
    ended_sweep("a", 1, 0, true);
    ended_sweep("other", 1, 1, false);
    int64_t number = ask_for("a", "{'method': 'average', 'sweeps': ['other']}");
    (void)reap(&s);
    ck_fails(add("a", number, &v), AS_E_UNSUPPORTED, err,
             "trial other/0 stored no model.safetensors");
}
END_TEST

/* The number of outputs that predictions have need not be that of the model. */
START_TEST(an_ensemble_that_does_not_fit_its_models_is_refused)
{
    struct model_version_row v;
    ended_sweep("a", 2, 0, true);
    int64_t number = ask_for("a", "{'method': 'stacking'}");
    (void)reap(&s);
    pg_fixture_exec(s.url, "update ensemble_asked set result = replace(result::text, "
                           "'\"biases\":[', '\"biases\":[1,')::json");
    ck_fails(add("a", number, &v), AS_E_UNSUPPORTED, err, "/combine/biases: found 3, expected 2");
}
END_TEST

TEST_SUITE()
{
    Suite *suite = suite_create("scheduler/services/model_choice");
    TCase *t = service_case(suite, "model_choice", &s, 0);
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, each_method_becomes_a_version);
    tcase_add_test(t, several_sweeps);
    tcase_add_test(t, an_ensemble_by_a_column_becomes_a_version);
    tcase_add_test(t, members_without_a_model_are_refused_by_name);
    tcase_add_test(t, an_ensemble_that_does_not_fit_its_models_is_refused);
    return suite;
}
