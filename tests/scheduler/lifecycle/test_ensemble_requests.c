/* Ensembles that are asked for after the end of sweeps. */
#include <string.h>

#include "scheduler/lifecycle/ensemble_requests.h"
#include "scheduler/lifecycle/ensembles.h"
#include "search/ensemble/ensemble.h"
#include "tests/scheduler/lifecycle/predictions.h"
#include "tests/support/check_main.h"
#include "tests/support/service.h"

static struct service s;
static struct as_err err;
static int64_t epoch;

static void begin(void)
{
    epoch = make_runner(&s, "r", 16);
}

/* A sweep of n trials from trial `first` of predictions.h, which has ended. */
static void ended_sweep(const char *name, int n, int first)
{
    char limits[40];
    (void)snprintf(limits, sizeof limits, "'max_trials': %d", n);
    make_sweep(&s, name, limits, "");
    struct claim_list list = claim(&s, "r", epoch, n);
    for (int k = 0; k < n; k++) {
        leave_predictions(&s, ref_of(&list.rows[k]), first + k, true, PREDICTED_ROWS);
        finish(&s, ref_of(&list.rows[k]), 1.0 / 3);
    }
    (void)reap(&s);
    ck_assert_int_eq(sweep_of_id(&s, name).state, SWEEP_COMPLETED);
}

static as_status ask_for(const char *sweep, const char *body, struct ensemble_asked *ret,
                         bool *ret_created)
{
    JSON_AUTO j = json_of(body);
    return ensemble_ask(s.db, &s.a, sweep, j, ret, ret_created, &err);
}

/* Ask, let it be computed, and return the result. */
static json_t *asked(const char *sweep, const char *body, int64_t number)
{
    struct ensemble_asked e;
    bool created = false;
    json_t *j = NULL;
    ck_ok(ask_for(sweep, body, &e, &created), err);
    ck_assert(created && e.result == NULL);
    ck_assert_int_eq(e.number, number);
    (void)reap(&s);
    ck_ok(ensemble_asked_get(s.db, &s.a, sweep, number, &e, &err), err);
    ck_assert_ptr_nonnull(e.result);
    ck_ok(json_parse(e.result, strlen(e.result), &j, &err), err);
    ck_assert_str_eq(e.state, json_string_value(json_object_get(j, "state")));
    return j;
}

static const char *word(const json_t *j, const char *name)
{
    return json_string_value(json_object_get(j, name));
}

START_TEST(each_method)
{
    static const char *const bodies[] = {
        "{'method': 'greedy', 'size': 3}", "{'method': 'stacking'}",
        "{'method': 'average', 'size': 2}", "{'method': 'bucketing'}"};
    static const size_t members[] = {2, 4, 2, 1};
    ended_sweep("a", 4, 0);
    for (int m = 0; m < 4; m++) {
        json_t *j = asked("a", bodies[m], m + 1);
        ck_assert_str_eq(word(j, "state"), "ready");
        ck_assert_str_eq(word(j, "method"), ensemble_method_names[m]);
        ck_assert_uint_ge(json_array_size(json_object_get(j, "members")), members[m]);
        double gain = json_number_value(json_object_get(json_object_get(j, "gain"), "value"));
        ck_assert(m == ENSEMBLE_BUCKETING ? gain == 0 : gain > 0.2); /* one trial is wrong in 1/3 */
        ck_assert_str_eq(word(j, "recommended"), m == ENSEMBLE_BUCKETING ? "single" : "ensemble");
        json_decref(j);
    }
    struct ensemble_asked_list list;
    ck_ok(ensemble_asked_list(s.db, &s.a, "a", &list, &err), err);
    ck_assert_uint_eq(list.n, 4);
    ck_assert_int_eq(list.rows[0].number, 4); /* newest first */
    ck_assert_ptr_null(strstr(list.rows[0].result, "members"));
    ck_assert_ptr_nonnull(strstr(list.rows[0].result, "best_single"));
    /* the sweep's own stays as it was */
    const char *own = NULL;
    ck_ok(ensemble_get(s.db, &s.a, "a", &own, &err), err);
    ck_assert_ptr_nonnull(strstr(own, "\"method\":\"greedy\",\"size\":16"));
}
END_TEST

/* Equal requests are one, in any order of fields, until the sweep runs on. */
START_TEST(the_same_request_is_the_same_ensemble)
{
    struct ensemble_asked e;
    struct sweep_changed changed;
    bool created = false;
    ended_sweep("a", 2, 0);
    ck_ok(ask_for("a", "{'size': 16, 'method': 'average'}", &e, &created), err);
    ck_assert(created);
    (void)reap(&s);
    ck_ok(ask_for("a", "{'method': 'average'}", &e, &created), err);
    ck_assert(!created && e.number == 1 && strcmp(e.state, "ready") == 0);
    json_t *limits = json_of("{'max_trials': 3}");
    const struct sweep_patch patch = {.limits = limits};
    ck_ok(sweep_change(s.db, &s.a, "a", &patch, NULL, &changed, &err), err);
    json_decref(limits);
    ck_fails(ask_for("a", "{}", &e, &created), AS_E_CONFLICT, err, "that have ended");
    struct claim_list list = claim(&s, "r", epoch, 4);
    ck_assert_uint_eq(list.n, 1);
    leave_predictions(&s, ref_of(&list.rows[0]), 2, true, PREDICTED_ROWS);
    finish(&s, ref_of(&list.rows[0]), 1.0 / 3);
    (void)reap(&s);
    json_t *j = asked("a", "{'method': 'average'}", 2);
    ck_assert_int_eq(json_integer_value(json_object_get(j, "candidates")), 3);
    json_decref(j);
}
END_TEST

START_TEST(several_sweeps)
{
    ended_sweep("a", 1, 0); /* alone it has no ensemble */
    ended_sweep("b", 1, 1);
    json_t *j = asked("a", "{'method': 'average'}", 1);
    ck_assert_str_eq(word(j, "state"), "none");
    json_decref(j);
    j = asked("a", "{'method': 'average', 'sweeps': ['b']}", 2);
    ck_assert_str_eq(word(j, "state"), "ready");
    json_t *members = json_object_get(j, "members");
    ck_assert_uint_eq(json_array_size(members), 2);
    ck_assert_str_eq(word(json_array_get(members, 0), "sweep"), "a");
    ck_assert_str_eq(word(json_array_get(members, 1), "sweep"), "b");
    ck_assert_ptr_nonnull(
        strchr(json_string_value(
                   json_array_get(json_object_get(json_object_get(j, "best_single"), "picked"), 0)),
               '/'));
    ck_assert(json_number_value(json_object_get(j, "value")) == 0);
    json_decref(j);
    /* a sweep that is deleted before the computation */
    struct ensemble_asked e;
    bool created = false;
    ck_ok(ask_for("a", "{'method': 'stacking', 'sweeps': ['b']}", &e, &created), err);
    ck_ok(sweep_delete(s.db, "b", &err), err);
    (void)reap(&s);
    ck_ok(ensemble_asked_get(s.db, &s.a, "a", e.number, &e, &err), err);
    ck_assert_str_eq(e.state, "none");
    ck_assert_ptr_nonnull(strstr(e.result, "no sweep 'b'"));
}
END_TEST

/* The second trial of three, whose mistakes complete those of the first, has a large model. */
START_TEST(within_bytes)
{
    static const char *const models[] = {"four", "a large model", "five."};
    make_sweep(&s, "a", "'max_trials': 3", "");
    struct claim_list list = claim(&s, "r", epoch, 3);
    for (int k = 0; k < 3; k++) {
        const struct file_row model = put_text(&s, "model.safetensors", models[k]);
        leave_predictions_and(&s, ref_of(&list.rows[k]), k, true, PREDICTED_ROWS, &model);
        finish(&s, ref_of(&list.rows[k]), 1.0 / 3);
    }
    (void)reap(&s);
    static const char *const bodies[] = {
        "{'method': 'average', 'size': 3}", "{'method': 'average', 'size': 3, 'max_bytes': 9}",
        "{'max_bytes': 9}", "{'method': 'stacking', 'max_bytes': 9}",
        "{'method': 'stacking', 'max_bytes': 4}"};
    static const size_t members[] = {3, 2, 2, 2, 1};
    for (int m = 0; m < 5; m++) {
        JSON_AUTO j = asked("a", bodies[m], m + 1);
        const json_t *of = json_object_get(j, "members");
        ck_assert_uint_eq(json_array_size(of), members[m]);
        for (size_t i = 0; m > 0 && i < members[m]; i++)
            ck_assert_int_ne(json_integer_value(json_object_get(json_array_get(of, i), "number")),
                             1);
    }
    JSON_AUTO none = asked("a", "{'max_bytes': 3}", 6);
    ck_assert_str_eq(word(none, "state"), "none");
    ck_assert_str_eq(word(none, "reason"), "each model has more than 3 bytes");
}
END_TEST

/* A trial with a model of so many bytes. */
static void leave_model(const struct claim_list *list, int k, int place, size_t bytes)
{
    char text[32] = "";
    memset(text, 'a' + place, bytes);
    const struct file_row model = put_text(&s, "model.safetensors", text);
    leave_predictions_and(&s, ref_of(&list->rows[k]), place, true, PREDICTED_ROWS, &model);
    finish(&s, ref_of(&list->rows[k]), 1.0 / 3);
}

/* Both trials of b have the model of a's one in their files, 8 bytes of 10. */
START_TEST(a_model_that_further_layers_see_counts_once)
{
    make_sweep(&s, "a", "'max_trials': 1", "");
    struct claim_list list = claim(&s, "r", epoch, 1);
    leave_model(&list, 0, 0, 8);
    (void)reap(&s);
    make_sweep(&s, "b", "'max_trials': 2", "");
    list = claim(&s, "r", epoch, 2);
    for (int k = 0; k < 2; k++)
        leave_model(&list, k, k + 1, 10);
    (void)reap(&s);
    pg_fixture_exec(
        s.url, "update sweep_base set document = jsonb_set(document::jsonb, '{trial}', "
               "'{\"train\": {\"stack\": [\"a/0\", \"gone/3\", \"odd\"]}}')::json where id = 'b'");
    static const char *const bodies[] = {
        "{'method': 'average', 'size': 3, 'sweeps': ['b'], 'max_bytes': 12}",
        "{'method': 'average', 'size': 3, 'sweeps': ['b'], 'max_bytes': 11}",
        "{'method': 'average', 'size': 3, 'sweeps': ['b'], 'max_bytes': 9}"};
    for (int m = 0; m < 3; m++) {
        JSON_AUTO j = asked("a", bodies[m], m + 1);
        ck_assert_uint_eq(json_array_size(json_object_get(j, "members")), (size_t)(3 - m));
    }
}
END_TEST

START_TEST(refuses)
{
    struct ensemble_asked e;
    bool created;
    ended_sweep("a", 2, 0);
    ended_sweep("other-rows", 2, 100);
    make_sweep(&s, "runs", "'max_trials': 2", "");
    ck_fails(ask_for("x", "{}", &e, &created), AS_E_NOT_FOUND, err, "'x'");
    ck_fails(ask_for("a", "{'sweeps': ['x']}", &e, &created), AS_E_NOT_FOUND, err, "'x'");
    ck_fails(ask_for("a", "{'sweeps': ['runs']}", &e, &created), AS_E_CONFLICT, err, "'runs' is");
    ck_fails(ask_for("a", "{'sweeps': ['other-rows']}", &e, &created), AS_E_CONFLICT, err,
             "targets.npy or weights.npy differ");
    ck_fails(ask_for("a", "{'sweeps': ['a']}", &e, &created), AS_E_INVAL, err, "twice");
    ck_fails(ask_for("a", "{'sweeps': [3]}", &e, &created), AS_E_INVAL, err, "/sweeps/0");
    ck_fails(ask_for("a", "{'sweeps': 'b'}", &e, &created), AS_E_INVAL, err, "/sweeps");
    ck_fails(ask_for("a", "{'method': 'bagging'}", &e, &created), AS_E_INVAL, err, "bucketing");
    ck_fails(ask_for("a", "{'size': 101}", &e, &created), AS_E_INVAL, err, "/size");
    ck_fails(ask_for("a", "{'method': 'greedy', 'non_negative': true}", &e, &created), AS_E_INVAL,
             err, "only stacking");
    ck_fails(ask_for("a", "{'by': 'c'}", &e, &created), AS_E_INVAL, err,
             "/by: found with method greedy, expected bucketing");
    ck_fails(ask_for("a", "{'method': 'bucketing', 'by': 7}", &e, &created), AS_E_INVAL, err,
             "/by");
    ck_fails(ask_for("a", "{'max_bytes': 0}", &e, &created), AS_E_INVAL, err, "/max_bytes");
    ck_fails(ask_for("a", "{'method': 'bucketing', 'by': 'c', 'max_bytes': 9}", &e, &created),
             AS_E_INVAL, err, "/max_bytes: found beside `by`");
    ck_fails(ask_for("a", "{'sort': 1}", &e, &created), AS_E_INVAL, err, "/sort");
    ck_fails(ensemble_asked_get(s.db, &s.a, "a", 1, &e, &err), AS_E_NOT_FOUND, err, "ensemble 1");
    struct ensemble_asked_list list;
    ck_fails(ensemble_asked_list(s.db, &s.a, "x", &list, &err), AS_E_NOT_FOUND, err, "'x'");
    ck_ok(ensemble_asked_list(s.db, &s.a, "a", &list, &err), err);
    ck_assert_uint_eq(list.n, 0);
}
END_TEST

/* Trials left the values of two columns, one of them for another number of rows. A column that none
 * left is looked for in a data set, which programs do not have. */
START_TEST(by_a_column_that_trials_left)
{
    static const char *const names[] = {"north", "west", "south"};
    make_sweep(&s, "a", "'max_trials': 3", "");
    struct claim_list list = claim(&s, "r", epoch, 3);
    for (int k = 0; k < 3; k++) {
        const struct file_row buckets =
            k == 0 ? put_text(&s, "buckets.json", "{\"column\":\"other\",\"values\":[\"x\"]}")
                   : put_buckets(&s, names);
        leave_predictions_and(&s, ref_of(&list.rows[k]), k, true, PREDICTED_ROWS, &buckets);
        finish(&s, ref_of(&list.rows[k]), 1.0 / 3);
    }
    (void)reap(&s);
    json_t *j = asked("a", "{'method': 'bucketing', 'by': 'region'}", 1);
    const json_t *combine = json_object_get(j, "combine");
    ck_assert_str_eq(word(combine, "kind"), "by");
    ck_assert_str_eq(word(combine, "column"), "region");
    ck_assert_uint_eq(json_array_size(json_object_get(combine, "buckets")), 3);
    json_decref(j);
    j = asked("a", "{'method': 'bucketing', 'by': 'other'}", 2);
    ck_assert_msg(strstr(word(j, "reason"), "has 1 values, the targets ask for 600"), "%s",
                  word(j, "reason"));
    json_decref(j);
    j = asked("a", "{'method': 'bucketing', 'by': 'colour'}", 3);
    ck_assert_msg(strstr(word(j, "reason"), "no trial left buckets.json of the column 'colour'"),
                  "%s", word(j, "reason"));
    json_decref(j);
}
END_TEST

START_TEST(one_server_at_a_time)
{
    struct ensemble_asked e;
    bool worked = true, created;
    ended_sweep("a", 2, 0);
    ck_ok(ask_for("a", "{}", &e, &created), err);
    pg_fixture_exec(s.url, "update ensemble_asked set lease_until = now() + interval '1 h'");
    ck_ok(ensemble_requests_tick(s.db, &worked, &err), err);
    ck_assert(!worked); /* another server computes it */
    pg_fixture_exec(s.url, "update ensemble_asked set lease_until = now() - interval '1 s'");
    ck_ok(ensemble_requests_tick(s.db, &worked, &err), err);
    ck_assert(worked); /* that server died */
}
END_TEST

static void count_wakes(void *ctx)
{
    ++*(int *)ctx;
}

/* Whoever asks does not wait for the next round: the reaper is woken, and its short round makes one
 * ensemble after another. */
START_TEST(made_without_waiting_for_a_round)
{
    struct ensemble_asked e;
    struct reaper_report report;
    bool created;
    int wakes = 0;
    ended_sweep("a", 2, 0);
    ck_ok(reaper_finish(&s.reaper, &report, &err), err); /* the sweep's own */
    store_on_finishing(s.db, count_wakes, &wakes);
    ck_ok(ask_for("a", "{}", &e, &created), err);
    ck_ok(ask_for("a", "{'method': 'stacking'}", &e, &created), err);
    ck_assert_int_eq(wakes, 2);
    ck_ok(ask_for("a", "{}", &e, &created), err); /* it is there already */
    ck_assert_int_eq(wakes, 2);
    store_on_finishing(s.db, NULL, NULL);
    for (int i = 0; i < 2; i++) {
        ck_ok(reaper_finish(&s.reaper, &report, &err), err);
        ck_assert_int_eq(report.ensembles, 1);
        ck_assert(report.more_to_finish);
    }
    ck_ok(reaper_finish(&s.reaper, &report, &err), err);
    ck_assert_int_eq(report.ensembles, 0);
    ck_assert(!report.more_to_finish);
}
END_TEST

TEST_SUITE()
{
    Suite *su = suite_create("ensemble requests");
    TCase *c = service_case(su, "ensemble requests", &s, 0);
    tcase_add_checked_fixture(c, begin, NULL);
    tcase_add_test(c, each_method);
    tcase_add_test(c, the_same_request_is_the_same_ensemble);
    tcase_add_test(c, several_sweeps);
    tcase_add_test(c, within_bytes);
    tcase_add_test(c, a_model_that_further_layers_see_counts_once);
    tcase_add_test(c, refuses);
    tcase_add_test(c, by_a_column_that_trials_left);
    tcase_add_test(c, one_server_at_a_time);
    tcase_add_test(c, made_without_waiting_for_a_round);
    return su;
}
