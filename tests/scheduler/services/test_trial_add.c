/* Trials that people add: enqueued trials run first and count; known results inform the search and
 * do not count. */
#include <math.h>
#include <string.h>

#include "tests/support/check_main.h"
#include "tests/support/service.h"

static struct service s;
static struct as_err err;

static as_status try_add(const char *sweep, const char *body, const struct idem_key *idem,
                         struct trial_row *ret)
{
    json_t *doc = json_of(body);
    as_status st = trial_add(s.db, &s.a, sweep, doc, idem, ret, &err);
    json_decref(doc);
    return st;
}

static struct trial_row add(const char *sweep, const char *body)
{
    struct trial_row row;
    ck_ok(try_add(sweep, body, NULL, &row), err);
    return row;
}

START_TEST(enqueued_trials_run_next)
{
    make_sweep(&s, "a", "'max_trials': 4", "");
    int64_t e = make_runner(&s, "r", 9);
    claim_one(&s, "r", e);
    struct trial_row x = add("a", "{'params': {'x': 0.5}}");
    ck_assert_int_eq(x.number, 1);
    ck_assert_int_eq(x.state, TRIAL_QUEUED);
    ck_assert_int_eq(x.origin, ORIGIN_ENQUEUED);
    ck_assert(!x.has_index && !x.has_seen);
    struct claim_list list = claim(&s, "r", e, 9);
    ck_assert_uint_eq(list.n, 3); /* it is one of four */
    ck_assert_str_eq(list.rows[0].params, "{\"x\":0.5}");
    ck_assert_int_eq(trial_of(&s, "a", 2).index, 1); /* the method's own indices continue */
    ck_assert_int_eq(trial_of(&s, "a", 3).index, 2);
    ck_fails(try_add("a", "{'params': {'x': 0.5}}", NULL, &x), AS_E_CONFLICT, err, "max_trials");
}
END_TEST

static const char *why_of(const char *sweep, int64_t number)
{
    struct trial_detail detail;
    ck_ok(trial_get(s.db, &s.a, sweep, number, &detail, &err), err);
    return detail.why;
}

/* Each trial has its reason in words: the method's own with the names of the objectives, or who
 * added it. One that an older server has stored without any field has the method's name. */
START_TEST(reasons_in_words)
{
    json_t *doc =
        json_of("{'name': 'two', 'metrics': [{'name': 'loss', 'goal': 'minimize'}, {'name': "
                "'size', 'goal': 'minimize'}], 'parameters': {'x': {'type': 'float', 'min': "
                "0, 'max': 1}}, 'limits': {'max_trials': 9}}");
    struct sweep_row row;
    ck_ok(sweep_create(s.db, &s.a, doc, NULL, &row, &err), err);
    json_decref(doc);
    make_sweep(&s, "a", "'max_trials': 4", "");
    ck_assert_int_eq(add("a", "{'params': {'x': 0.5}}").number, 0);
    ck_assert_int_eq(add("a", "{'params': {'x': 0.5}, 'metrics': {'loss': 1}}").number, 1);
    ck_assert_str_eq(why_of("a", 0), "enqueued by hand");
    ck_assert_str_eq(why_of("a", 1), "a known result, added by hand");
    (void)ask_one(&s, "two", "c");
    ck_assert_ptr_nonnull(strstr(why_of("two", 0), "point 0 of the initial design"));
    pg_fixture_exec(s.url,
                    "update trial set suggestion = '{\"method\":\"gp\",\"phase\":\"model\","
                    "\"acquisition\":\"ehvi\",\"predicted\":[{\"mean\":1,\"deviation\":2},"
                    "{\"mean\":3,\"deviation\":4}],\"observed\":5}' where number = 0 and origin = "
                    "'suggested'");
    ck_assert_str_eq(why_of("two", 0),
                     "chosen by expected hypervolume improvement: predicted loss 1 ± "
                     "2, size 3 ± 4; 5 results seen");
    pg_fixture_exec(
        s.url, "update trial set suggestion = '{\"method\":\"of tomorrow\"}' where number = 0");
    ck_assert_str_eq(why_of("two", 0), "of tomorrow");
}
END_TEST

static as_status try_begin(const char *client, const char *params, struct suggestion_list *ret)
{
    json_t *tree = json_of(params);
    struct ask_request req = {
        .sweep = "a", .client = client, .count = 1, .lease_ms = 600000, .params = tree};
    as_status st = trial_begin(s.db, NULL, &s.a, &req, ret, &err);
    json_decref(tree);
    return st;
}

/* A client begins a trial of its own: nobody else gets it, and the limits hold. */
START_TEST(a_trial_begins_with_its_client)
{
    struct suggestion_list list;
    make_sweep(&s, "a", "'max_trials': 3, 'max_concurrent_trials': 2", "");
    ck_ok(try_begin("c", "{'x': 0.25}", &list), err);
    ck_assert_uint_eq(list.n, 1);
    ck_assert_int_eq(list.rows[0].number, 0);
    ck_assert_int_eq(list.rows[0].attempt, 1);
    ck_assert_int_eq(list.rows[0].origin, ORIGIN_ENQUEUED);
    ck_assert_str_eq(list.rows[0].params, "{\"x\":0.25}");
    ck_ok(try_begin("c", "{'x': 0.25}", &list), err); /* repeated: it holds one */
    ck_assert_uint_eq(list.n, 1);
    ck_assert_int_eq(list.rows[0].number, 0);
    ck_assert_int_eq(ask_one(&s, "a", "other").number, 1);
    ck_ok(try_begin("d", "{'x': 0.5}", &list), err); /* two run: it waits */
    ck_assert_uint_eq(list.n, 0);
    ck_assert(!list.done);
    tell(&s, "a", 0, "c", 0.5);
    ck_ok(try_begin("d", "{'x': 0.5}", &list), err);
    ck_assert_int_eq(list.rows[0].number, 2);
    tell(&s, "a", 1, "other", 0.5);
    ck_fails(try_begin("e", "{'x': 0.5}", &list), AS_E_CONFLICT, err, "max_trials");
    ck_fails(try_begin("e", "{'y': 0.5}", &list), AS_E_INVAL, err, "/params/");
}
END_TEST

/* A sweep with added trials suggests the same as one without them. */
START_TEST(additions_neither_skip_nor_repeat)
{
    static const char doc[] = "{'name': '%c', 'metric': {'name': 'loss', 'goal': 'minimize'}, "
                              "'parameters': {'x': {'type': 'float', 'min': 0, 'max': 1}}, "
                              "'search': {'method': 'sobol', 'seed': 3}, 'limits': {'max_trials': "
                              "%d}, 'trial': {'command': ['true']}}";
    char text[400];
    const char *plain[6];
    for (int i = 0; i < 2; i++) {
        struct sweep_row row;
        snprintf(text, sizeof text, doc, 'a' + i, 6 + 2 * i);
        json_t *j = json_of(text);
        ck_ok(sweep_create(s.db, &s.a, j, NULL, &row, &err), err);
        json_decref(j);
    }
    for (int i = 0; i < 6; i++)
        plain[i] = ask_one(&s, "a", (const char[]){(char)('a' + i), '\0'}).params;
    int same = 0;
    for (int i = 0; i < 8; i++) {
        if (i == 2 || i == 5)
            add("b", "{'params': {'x': 0.25}}");
        struct suggestion_row x = ask_one(&s, "b", (const char[]){(char)('a' + i), '\0'});
        if (x.origin == ORIGIN_SUGGESTED)
            ck_assert_str_eq(x.params, plain[same++]);
        else
            ck_assert_str_eq(x.params, "{\"x\":0.25}");
    }
    ck_assert_int_eq(same, 6);
}
END_TEST

#define PRIOR_DOC                                                                                  \
    "{'name': '%s', 'metric': {'name': 'gain', 'goal': '%s'}, 'parameters': {'x': {'type': "       \
    "'float', 'min': 0, 'max': %s}, 'c': {'type': 'categorical', 'values': ['p', 'q']}}, "         \
    "'search': {'method': '%s', 'seed': 3%s}, 'limits': {'max_trials': 9}}"

static as_status create_after(const char *name, const char *goal, const char *max,
                              const char *method, const char *prior, struct sweep_row *ret)
{
    char text[900];
    snprintf(text, sizeof text, PRIOR_DOC, name, goal, max, method, prior);
    json_t *doc = json_of(text);
    as_status st = sweep_create(s.db, &s.a, doc, NULL, ret, &err);
    json_decref(doc);
    return st;
}

static void cancel(const char *id)
{
    struct sweep_patch p;
    struct sweep_changed changed;
    json_t *patch = json_of("{'state': 'cancelled'}");
    ck_ok(sweep_patch_parse(patch, &p, &err), err);
    ck_ok(sweep_change(s.db, &s.a, id, &p, NULL, &changed, &err), err);
    json_decref(patch);
}

/* A sweep takes a snapshot of an earlier one, begins at its best trial, and needs it no more. */
START_TEST(earlier_sweeps_are_taken)
{
    struct sweep_row row;
    ck_ok(create_after("old", "maximize", "10", "gp", "", &row), err);
    add("old", "{'params': {'x': 7, 'c': 'q'}, 'metrics': {'gain': 5}}");
    add("old", "{'params': {'x': 3, 'c': 'p'}, 'metrics': {'gain': 9}}");
    add("old", "{'params': {'x': 9.5, 'c': 'p'}, 'metrics': {'gain': 99}}");
    add("old", "{'params': {'x': 1, 'c': 'p'}, 'state': 'failed', 'reason': 'no'}");
    ck_ok(create_after("new", "minimize", "8", "gp", ", 'prior': ['old']", &row), err);
    json_t *doc = json_loads(row.document, 0, NULL);
    const json_t *taken =
        json_array_get(json_object_get(json_object_get(doc, "search"), "prior"), 0);
    ck_assert_str_eq(json_string_value(json_object_get(taken, "sweep")), "old");
    ck_assert_int_eq(json_integer_value(json_object_get(taken, "completed")), 3);
    ck_assert_int_eq(json_integer_value(json_object_get(taken, "dropped")), 1); /* 9.5 */
    ck_assert_uint_eq(json_array_size(json_object_get(taken, "trials")), 2);
    json_decref(doc);
    cancel("old");
    ck_ok(sweep_delete(s.db, "old", &err), err);
    json_t *first = json_loads(ask_one(&s, "new", "k").params, 0, NULL);
    ck_assert_double_eq(json_number_value(json_object_get(first, "x")), 3);
    ck_assert_str_eq(json_string_value(json_object_get(first, "c")), "p");
    json_decref(first);
}
END_TEST

START_TEST(earlier_sweeps_are_refused)
{
    static const struct {
        const char *method, *prior, *pointer, *part;
    } bad[] = {
        {"gp", ", 'prior': ['none']", "/search/prior/0", "no sweep 'none'"},
        {"gp", ", 'prior': ['empty']", "/search/prior/0", "no completed trial"},
        {"gp", ", 'prior': ['a', 'b', 'c', 'd', 'e']", "/search/prior", "at most 4"},
        {"gp", ", 'prior': 'empty'", "/search/prior", "expected a list"},
        {"gp", ", 'prior': [7]", "/search/prior/0", "expected an object"},
        {"random", ", 'prior': ['full']", "/search/prior", "the method random"},
        {"grid", ", 'prior': ['full']", "/search/prior", "the method grid"},
    };
    struct sweep_row row;
    ck_ok(create_after("empty", "maximize", "10", "gp", "", &row), err);
    ck_ok(create_after("full", "maximize", "10", "gp", "", &row), err);
    add("full", "{'params': {'x': 7, 'c': 'q'}, 'metrics': {'gain': 5}}");
    for (size_t i = 0; i < AS_ARRAY_LEN(bad); i++) {
        as_status st = create_after("n", "minimize", "8", bad[i].method, bad[i].prior, &row);
        ck_assert_msg(st == AS_E_INVAL || st == AS_E_TOO_LARGE, "%zu: %d", i, (int)st);
        ck_assert_str_eq(err.pointer, bad[i].pointer);
        ck_assert_msg(strstr(err.msg, bad[i].part) != NULL, "%s", err.msg);
    }
    ck_assert_int_eq(pg_fixture_i64(s.url, "select count(*) from sweep"), 2);
}
END_TEST

START_TEST(known_results_use_no_budget)
{
    struct sweep_row row;
    json_t *doc = json_of("{'name': 'a', 'metric': {'name': 'loss', 'goal': 'minimize'}, "
                          "'parameters': {'x': {'type': 'float', 'min': 0, 'max': 1}}, 'search': "
                          "{'method': 'gp', 'seed': 3}, 'limits': {'max_trials': 2, "
                          "'max_failed_trials': 0, 'wall_time': 1}}");
    ck_ok(sweep_create_paused(s.db, &s.a, doc, NULL, &row, &err), err);
    json_decref(doc);
    ck_assert_int_eq(row.state, SWEEP_PAUSED);
    ck_assert_uint_eq(ask(&s, "a", "c", 5).n, 0);
    struct trial_row x = add("a", "{'params': {'x': 0.5}, 'metrics': {'loss': 0.125, 'other': 3}}");
    ck_assert_int_eq(x.state, TRIAL_COMPLETED);
    ck_assert_int_eq(x.origin, ORIGIN_KNOWN);
    ck_assert_double_eq(x.value, 0.125);
    ck_assert(x.has_feasible && x.feasible);
    ck_assert_int_eq(x.finish_seq, 1);
    ck_assert_ptr_nonnull(strstr(x.metrics, "other"));
    x = add("a", "{'params': {'x': 0.75}, 'state': 'failed', 'reason': 'it burnt'}");
    ck_assert_int_eq(x.state, TRIAL_FAILED);
    ck_assert_str_eq(x.reason, "it burnt");
    row = sweep_of_id(&s, "a");
    ck_assert_int_eq(row.state, SWEEP_PAUSED); /* a known failure does not make the sweep fail */
    ck_assert_int_eq(row.planned, 4);
    ck_assert_int_eq(row.known, 2);
    ck_assert(row.has_best);
    const sweep_state run = SWEEP_RUNNING;
    const struct sweep_patch resume = {.state = &run};
    struct sweep_changed resumed;
    ck_ok(sweep_change(s.db, &s.a, "a", &resume, NULL, &resumed, &err), err);
    struct suggestion_list list = ask(&s, "a", "c", 9);
    ck_assert_uint_eq(list.n, 2);
    ck_assert_int_eq(list.rows[0].number, 2);
    ck_assert_int_eq(trial_of(&s, "a", 2).index, 0);
    ck_assert_int_eq(trial_of(&s, "a", 2).seen, 2);
    tell(&s, "a", 2, "c", 1);
    tell(&s, "a", 3, "c", 2);
    ck_assert_int_eq(sweep_of_id(&s, "a").state, SWEEP_FINISHING);
    ck_fails(try_add("a", "{'params': {'x': 0.5}}", NULL, &x), AS_E_CONFLICT, err, "finishing");
}
END_TEST

/* max_trials does not count known results. */
static void count_call(void *ctx, int64_t sweep_key)
{
    (void)sweep_key;
    ++*(int *)ctx;
}

/* A thousand known results must not cause a thousand computations ahead. */
START_TEST(known_results_prepare_nothing)
{
    int calls = 0;
    make_learner(&s, "a", "'max_trials': 3", "");
    store_on_finished(s.db, count_call, &calls);
    add("a", "{'params': {'x': 0.5, 'y': 0.5}, 'metrics': {'loss': 1}}");
    add("a", "{'params': {'x': 0.25, 'y': 0.5}, 'state': 'failed'}");
    ck_assert_int_eq(calls, 0);
    int64_t number = ask_one(&s, "a", "me").number;
    tell(&s, "a", number, "me", 0.5);
    ck_assert_int_eq(calls, 1);
    store_on_finished(s.db, NULL, NULL);
}
END_TEST

START_TEST(limits_count_the_others)
{
    struct sweep_changed changed;
    make_sweep(&s, "a", "'max_trials': 2", "");
    add("a", "{'params': {'x': 0.5}, 'metrics': {'loss': 1}}");
    add("a", "{'params': {'x': 0.5}}");
    json_t *limits = json_of("{'max_trials': 1}");
    const struct sweep_patch one = {.limits = limits};
    ck_ok(sweep_change(s.db, &s.a, "a", &one, NULL, &changed, &err), err);
    json_decref(limits);
    ck_assert_int_eq(changed.sweep.planned, 2);
    int64_t e = make_runner(&s, "r", 9);
    ck_assert_uint_eq(claim(&s, "r", e, 9).n, 1);
}
END_TEST

START_TEST(bad_additions_are_named)
{
    static const struct {
        const char *body, *pointer;
    } wrong[] = {
        {"{'params': {'x': 7}}", "/params/x"},
        {"{'params': {}}", "/params/x"},
        {"{'params': {'x': 0.5, 'z': 1}}", "/params/z"},
        {"{'params': {'x': 0.5}, 'metrics': {'loss': 'NaN'}}", "/metrics/loss"},
        {"{'params': {'x': 0.5}, 'metrics': {'other': 1}}", "/metrics/loss"},
        {"{'params': {'x': 0.5}, 'metrics': {'a b': 1}}", "/metrics/a b"},
        {"{'params': {'x': 0.5}, 'state': 'completed'}", "/metrics/loss"},
        {"{'params': {'x': 0.5}, 'state': 'odd'}", "/state"},
        {"{'params': {'x': 0.5}, 'reason': 'because'}", "/reason"},
        {"{'params': {'x': 0.5}, 'more': 1}", "/more"},
        {"{'params': 3}", "/params"},
    };
    struct trial_row row;
    make_sweep(&s, "a", "'max_trials': 2", "");
    for (size_t i = 0; i < AS_ARRAY_LEN(wrong); i++) {
        ck_fails(try_add("a", wrong[i].body, NULL, &row), AS_E_INVAL, err, "");
        ck_assert_str_eq(err.pointer, wrong[i].pointer);
    }
    ck_assert_int_eq(sweep_of_id(&s, "a").counts.total, 0);
    ck_assert_int_eq(sweep_of_id(&s, "a").planned, 2);
    ck_fails(try_add("none", "{'params': {'x': 0.5}}", NULL, &row), AS_E_NOT_FOUND, err, "none");
    make_grid(&s, "g", 3, "");
    ck_fails(try_add("g", "{'params': {'i': 1}}", NULL, &row), AS_E_CONFLICT, err, "grid");
}
END_TEST

START_TEST(rules_of_the_space_hold)
{
    json_t *doc = json_of("{'name': 'a', 'metric': {'name': 'loss', 'goal': 'minimize'}, "
                          "'parameters': {'x': {'type': 'int', 'min': 1, 'max': 8}, 'y': {'type': "
                          "'int', 'min': 1, 'max': 8}}, 'parameter_constraints': ['x * y <= 16'], "
                          "'forbidden': [{'x': 2, 'y': 2}], 'search': {'method': 'random'}, "
                          "'limits': {'max_trials': 9}}");
    struct sweep_row sweep;
    struct trial_row row;
    ck_ok(sweep_create(s.db, &s.a, doc, NULL, &sweep, &err), err);
    json_decref(doc);
    add("a", "{'params': {'x': 2, 'y': 8}}");
    ck_fails(try_add("a", "{'params': {'x': 3, 'y': 8}}", NULL, &row), AS_E_INVAL, err,
             "x * y <= 16");
    ck_fails(try_add("a", "{'params': {'x': 2, 'y': 2}}", NULL, &row), AS_E_INVAL, err,
             "/forbidden/0");
    ck_assert_str_eq(err.pointer, "/params");
}
END_TEST

START_TEST(a_key_adds_once)
{
    struct trial_row row;
    char sha[SHA256_HEX_SIZE];
    ck_ok(sha256_of("body", 4, sha, &err), err);
    struct idem_key k = {.scope = "u POST trials", .key = "k1", .body_sha256 = sha};
    make_sweep(&s, "a", "'max_trials': 5", "");
    for (int i = 0; i < 3; i++) {
        ck_ok(try_add("a", "{'params': {'x': 0.5}}", &k, &row), err);
        ck_assert_int_eq(row.number, 0);
    }
    char other[SHA256_HEX_SIZE];
    ck_ok(sha256_of("other", 5, other, &err), err);
    k.body_sha256 = other;
    ck_fails(try_add("a", "{'params': {'x': 0.25}}", &k, &row), AS_E_CONFLICT, err, "another body");
    ck_assert_int_eq(sweep_of_id(&s, "a").counts.total, 1);
}
END_TEST

static as_status add_list(const char *text, struct trials_added *ret)
{
    json_t *list = json_of(text);
    as_status st = trials_add(s.db, &s.a, "a", list, NULL, "me rows", ret, &err);
    json_decref(list);
    return st;
}

START_TEST(a_list_is_added_as_one)
{
    struct trials_added added;
    make_sweep(&s, "a", "'max_trials': 2", "");
    add("a", "{'params': {'x': 0.5}, 'metrics': {'loss': 3}}");
    ck_ok(
        add_list("[{'params': {'x': 0.25}, 'metrics': {'loss': 1.5, 'other': 2}}, {'params': {'x': "
                 "0.5}}, {'params': {'x': 0.75}, 'state': 'failed', 'reason': 'it burnt'}]",
                 &added),
        err);
    ck_assert(added.n == 3 && added.n_added == 3);
    for (int64_t i = 0; i < 3; i++)
        ck_assert_int_eq(added.numbers[i], i + 1);
    struct trial_row x = trial_of(&s, "a", 1);
    ck_assert(x.state == TRIAL_COMPLETED && x.feasible && x.origin == ORIGIN_KNOWN);
    ck_assert(x.has_value && x.value == 1.5);
    ck_assert_int_eq(x.finish_seq, 2);
    ck_assert_ptr_nonnull(strstr(x.metrics, "other"));
    ck_assert_int_gt(x.finished_ms, 0);
    x = trial_of(&s, "a", 2);
    ck_assert(x.state == TRIAL_QUEUED && x.origin == ORIGIN_ENQUEUED && !x.has_value);
    x = trial_of(&s, "a", 3);
    ck_assert(x.state == TRIAL_FAILED && x.finish_seq == 3);
    ck_assert_str_eq(x.reason, "it burnt");
    ck_assert_int_eq(sweep_of_id(&s, "a").planned, 5);
    ck_assert(sweep_of_id(&s, "a").best_value == 1.5);
    ck_assert_int_eq(
        pg_fixture_i64(s.url, "select count(*) from event_each where number is not null"), 4);
    ck_assert_int_eq(pg_fixture_i64(s.url, "select count(*) from measurement"), 3);
}
END_TEST

START_TEST(a_list_is_all_or_nothing)
{
    static const struct {
        const char *list, *pointer;
        as_status st;
    } wrong[] = {
        {"[]", "", AS_E_INVAL},
        {"[{'params': {'x': 0.5}}, {'params': {'x': 7}}]", "/1/params/x", AS_E_INVAL},
        {"[{'params': {'x': 0.5}}, {'params': {'x': 0.1}, 'metrics': {}}]", "/1/metrics/loss",
         AS_E_INVAL},
        {"[{'params': {'x': 0.5}}, 7]", "/1", AS_E_INVAL},
        {"[{'params': {'x': 0.5}, 'reason': 'x'}]", "/0/reason", AS_E_INVAL},
        {"[{'params': {'x': 0.5}, 'key': 'a'}, {'params': {'x': 0.5}}]", "", AS_E_INVAL},
        {"[{'params': {'x': 0.5}, 'key': 'a'}, {'params': {'x': 0.5}, 'key': 'a'}]", "/1/key",
         AS_E_INVAL},
        {"[{'params': {'x': 0.5}}, {'params': {'x': 0.5}}, {'params': {'x': 0.5}}]", "",
         AS_E_CONFLICT}, /* max_trials */
    };
    struct trials_added added;
    make_sweep(&s, "a", "'max_trials': 2", "");
    for (size_t i = 0; i < AS_ARRAY_LEN(wrong); i++) {
        ck_fails(add_list(wrong[i].list, &added), wrong[i].st, err, "");
        ck_assert_str_eq(err.pointer, wrong[i].pointer);
        ck_assert_int_eq(sweep_of_id(&s, "a").counts.total, 0);
    }
    json_t *many = json_array();
    for (int i = 0; i <= 5000; i++)
        json_array_append_new(many, json_of("{'params': {'x': 0.5}, 'state': 'failed'}"));
    ck_fails(trials_add(s.db, &s.a, "a", many, NULL, "me", &added, &err), AS_E_TOO_LARGE, err,
             "5001 trials, expected 1 to 5000");
    json_array_remove(many, 0);
    ck_ok(trials_add(s.db, &s.a, "a", many, NULL, "me", &added, &err), err);
    ck_assert_int_eq(sweep_of_id(&s, "a").counts.total, 5000);
    json_decref(many);
}
END_TEST

/* A file that is sent again, longer and cut differently. */
START_TEST(keys_of_rows_add_nothing_twice)
{
    struct trials_added added;
    make_sweep(&s, "a", "'max_trials': 9", "");
    ck_ok(
        add_list("[{'params': {'x': 0.25}, 'metrics': {'loss': 1}, 'key': 'k1'}, {'params': {'x': "
                 "0.5}, 'state': 'failed', 'key': 'k2'}]",
                 &added),
        err);
    ck_assert_uint_eq(added.n_added, 2);
    ck_ok(
        add_list("[{'params': {'x': 0.5}, 'state': 'failed', 'key': 'k2'}, {'params': {'x': 0.75}, "
                 "'key': 'k3'}, {'params': {'x': 0.25}, 'metrics': {'loss': 1}, 'key': 'k1'}]",
                 &added),
        err);
    ck_assert_uint_eq(added.n_added, 1);
    ck_assert(added.numbers[0] == 1 && added.numbers[1] == 2 && added.numbers[2] == 0);
    ck_assert_int_eq(sweep_of_id(&s, "a").counts.total, 3);
    ck_fails(add_list("[{'params': {'x': 0.75}, 'key': 'k4'}, {'params': {'x': 0.5}, 'key': 'k2'}]",
                      &added),
             AS_E_CONFLICT, err, "used for another trial");
    ck_assert_str_eq(err.pointer, "/1/key");
    ck_assert_int_eq(sweep_of_id(&s, "a").counts.total, 3);
}
END_TEST

TEST_SUITE()
{
    Suite *su = suite_create("trial_add");
    TCase *c = service_case(su, "trial_add", &s, 0);
    tcase_add_test(c, enqueued_trials_run_next);
    tcase_add_test(c, reasons_in_words);
    tcase_add_test(c, a_trial_begins_with_its_client);
    tcase_add_test(c, additions_neither_skip_nor_repeat);
    tcase_add_test(c, earlier_sweeps_are_taken);
    tcase_add_test(c, earlier_sweeps_are_refused);
    tcase_add_test(c, known_results_use_no_budget);
    tcase_add_test(c, known_results_prepare_nothing);
    tcase_add_test(c, limits_count_the_others);
    tcase_add_test(c, a_list_is_added_as_one);
    tcase_add_test(c, a_list_is_all_or_nothing);
    tcase_add_test(c, keys_of_rows_add_nothing_twice);
    tcase_add_test(c, bad_additions_are_named);
    tcase_add_test(c, rules_of_the_space_hold);
    tcase_add_test(c, a_key_adds_once);
    return su;
}
