/* The table of a sweep: what it shows of each trial, what changed since a version, files that are
 * made once, and what is kept. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "scheduler/services/events.h"
#include "scheduler/services/table_export.h"
#include "tests/scheduler/services/columns.h"
#include "tests/support/check_main.h"
#include "tests/support/service.h"

static struct service s;
static struct as_err err;
static struct table_cache *cache;
static int64_t epoch;

static void setup(void)
{
    cache = table_cache_create(TABLE_CACHE_BYTES);
}

static void teardown(void)
{
    table_cache_free(cache);
}

static struct columnar whole(const char *columns)
{
    const struct table_request q = {.kind = &table_of_trials, .sweep = "a", .columns = columns};
    struct table_answer x;
    ck_ok(table_export(s.db, cache, &s.a, &q, &x, &err), err);
    ck_assert_ptr_nonnull(x.etag);
    struct columnar f = parse_columns(&s.a, x.bytes, x.len);
    ck_assert(f.is_whole);
    return f;
}

static struct columnar since(const char *version)
{
    struct table_request q = {.kind = &table_of_trials, .sweep = "a", .has_since = true};
    struct table_answer x;
    ck_ok(as_parse_i64(version, &q.since, &err), err);
    ck_ok(table_export(s.db, cache, &s.a, &q, &x, &err), err);
    return parse_columns(&s.a, x.bytes, x.len);
}

static void add_known(const char *text)
{
    JSON_AUTO body = json_of(text);
    struct trial_row row;
    ck_ok(trial_add(s.db, &s.a, "a", body, NULL, &row, &err), err);
}

START_TEST(shows_every_trial)
{
    make_sweep(&s, "a", "'max_trials': 4", "");
    epoch = make_runner(&s, "r", 4);
    struct claim_list list = claim(&s, "r", epoch, 3);
    struct attempt_ref ref = ref_of(&list.rows[1]);
    measure(&s, ref, "val/acc", 3, INFINITY);
    finish(&s, ref, 0.25);
    end(&s, ref_of(&list.rows[2]), OUTCOME_FAILED);
    struct columnar f = whole(NULL);
    ck_assert_uint_eq(f.n_rows, 3);
    for (size_t i = 0; i < 3; i++) {
        struct trial_row row = trial_of(&s, "a", (int64_t)i);
        JSON_AUTO params = json_of(row.params);
        ck_assert_double_eq(number(&f, "number", i), (double)i);
        ck_assert_str_eq(word(&f, "state", i), trial_state_format(row.state));
        ck_assert_str_eq(word(&f, "origin", i), "suggested");
        ck_assert_double_eq(number(&f, "attempt", i), 1);
        ck_assert_double_eq(number(&f, "param:x", i),
                            json_number_value(json_object_get(params, "x")));
        ck_assert_double_eq(number(&f, "created_at", i), (double)row.created_ms);
        ck_assert_str_eq(word(&f, "runner", i), "r");
        ck_assert_ptr_null(word(&f, "client", i));
        ck_assert_double_eq(number(&f, "infeasible", i), 0);
    }
    struct trial_row failed = trial_of(&s, "a", 2);
    ck_assert_ptr_nonnull(failed.reason);
    ck_assert_str_eq(word(&f, "reason", 2), failed.reason);
    ck_assert_ptr_null(word(&f, "reason", 0));
    ck_assert_double_nan(number(&f, "value", 0));
    ck_assert_double_nan(number(&f, "ended_at", 0));
    ck_assert_double_eq(number(&f, "value", 1), 0.25);
    ck_assert_double_eq(number(&f, "metric:loss", 1), 0.25);
    ck_assert_double_eq(number(&f, "metric:val/acc", 1), INFINITY);
    ck_assert_double_nan(number(&f, "metric:val/acc", 2));
    ck_assert_double_eq(number(&f, "ended_at", 1), (double)trial_of(&s, "a", 1).finished_ms);
}
END_TEST

START_TEST(shows_forks_and_tags)
{
    make_sweep(&s, "a", "'max_trials': 4", "");
    epoch = make_runner(&s, "r", 4);
    (void)claim(&s, "r", epoch, 2);
    add_known("{'params': {'x': 0.5}}");
    pg_fixture_exec(s.url, "update trial set origin = 'forked', parent = 0, fork_step = 5, tags = "
                           "'{good,x}' where number = 2");
    struct columnar f = whole("parent,fork_step,tags");
    ck_assert_double_nan(number(&f, "parent", 1));
    ck_assert_double_nan(number(&f, "fork_step", 1));
    ck_assert_ptr_null(word(&f, "tags", 1));
    ck_assert_double_eq(number(&f, "parent", 2), 0);
    ck_assert_double_eq(number(&f, "fork_step", 2), 5);
    ck_assert_str_eq(word(&f, "tags", 2), "good,x");
}
END_TEST

static void predict(int number, const char *predicted)
{
    char sql[256];
    (void)snprintf(sql, sizeof sql,
                   "update trial set suggestion = '{\"method\": \"gp\", \"predicted\": %s}' where "
                   "number = %d",
                   predicted, number);
    pg_fixture_exec(s.url, sql);
}

START_TEST(shows_predictions)
{
    make_sweep(&s, "a", "'max_trials': 4", "");
    epoch = make_runner(&s, "r", 4);
    (void)claim(&s, "r", epoch, 3);
    struct columnar f = whole("predicted:loss,deviation:loss");
    ck_assert_double_nan(number(&f, "predicted:loss", 0));
    f = whole(NULL);
    for (size_t i = 0; i < f.n_columns; i++)
        ck_assert(!as_starts_with(f.columns[i].name, "predicted:"));
    table_cache_free(cache); /* a server that has read nothing yet */
    cache = table_cache_create(TABLE_CACHE_BYTES);
    predict(1, "{\"mean\": 0.5, \"deviation\": 0.25, \"more\": [1]}");
    predict(2, "{\"mean\": \"NaN\", \"deviation\": \"Infinity\"}");
    f = whole(NULL);
    ck_assert_double_nan(number(&f, "predicted:loss", 0));
    ck_assert_double_nan(number(&f, "deviation:loss", 0));
    ck_assert_double_eq(number(&f, "predicted:loss", 1), 0.5);
    ck_assert_double_eq(number(&f, "deviation:loss", 1), 0.25);
    ck_assert_double_nan(number(&f, "predicted:loss", 2));
    ck_assert_double_eq(number(&f, "deviation:loss", 2), INFINITY);
}
END_TEST

START_TEST(shows_a_prediction_of_each_objective)
{
    JSON_AUTO doc = json_of(
        "{'name': 'a', 'metrics': [{'name': 'loss', 'goal': 'minimize'}, {'name': 'depth', "
        "'goal': 'maximize'}], 'search': {'method': 'random'}, 'limits': {'max_trials': 9}, "
        "'parameters': {'x': {'type': 'float', 'min': 0, 'max': 1}}}");
    struct sweep_row row;
    ck_ok(sweep_create(s.db, &s.a, doc, NULL, &row, &err), err);
    add_known("{'params': {'x': 0.5}, 'metrics': {'loss': 1, 'depth': 3}}");
    add_known("{'params': {'x': 0.5}, 'metrics': {'loss': 1, 'depth': 4}}");
    predict(0, "[{\"mean\": 1, \"deviation\": 2}, {\"mean\": 3, \"deviation\": 4}, {\"mean\": 9}]");
    predict(1, "null");
    struct columnar f =
        whole("predicted:loss,deviation:loss,predicted:depth,deviation:depth,metric:depth");
    ck_assert_double_eq(number(&f, "predicted:loss", 0), 1);
    ck_assert_double_eq(number(&f, "deviation:loss", 0), 2);
    ck_assert_double_eq(number(&f, "predicted:depth", 0), 3);
    ck_assert_double_eq(number(&f, "deviation:depth", 0), 4);
    ck_assert_double_eq(number(&f, "metric:depth", 0), 3);
    ck_assert_double_eq(number(&f, "metric:depth", 1), 4);
    ck_assert_double_nan(number(&f, "predicted:loss", 1));
}
END_TEST

START_TEST(parameters_of_every_kind)
{
    JSON_AUTO doc = json_of(
        "{'name': 'a', 'metric': {'name': 'loss', 'goal': 'minimize'}, 'search': {'method': "
        "'random'}, 'limits': {'max_trials': 9}, 'parameters': {'f': {'type': 'float', 'min': 0, "
        "'max': 1}, 'n': {'type': 'ordinal', 'values': [1, 2.5]}, 't': {'type': 'categorical', "
        "'values': ['a', 'ü']}, 'm': {'type': 'categorical', 'values': ['a', true, 1, [1, 2], "
        "null]}, 'b': {'type': 'bool'}, 'w': {'type': 'int', 'min': 1, 'max': 9, 'when': {'t': "
        "'a'}}}}");
    struct sweep_row row;
    ck_ok(sweep_create(s.db, &s.a, doc, NULL, &row, &err), err);
    add_known("{'params': {'f': 0.5, 'n': 2.5, 't': 'ü', 'm': [1, 2], 'b': true}, 'metrics': "
              "{'loss': 1}}");
    add_known("{'params': {'f': 1, 'n': 1, 't': 'a', 'm': true, 'b': false, 'w': 7}, 'metrics': "
              "{'loss': 2}}");
    add_known("{'params': {'f': 0, 'n': 1, 't': 'a', 'm': 'a', 'b': false, 'w': 7}, 'metrics': "
              "{'loss': 2}}");
    struct columnar f = whole(NULL);
    ck_assert_double_eq(number(&f, "param:f", 0), 0.5);
    ck_assert_double_eq(number(&f, "param:n", 0), 2.5);
    ck_assert_str_eq(word(&f, "param:t", 0), "ü");
    ck_assert_str_eq(word(&f, "param:m", 0), "[1,2]");
    ck_assert_str_eq(word(&f, "param:m", 1), "true");
    ck_assert_str_eq(word(&f, "param:m", 2), "a");
    ck_assert_str_eq(word(&f, "param:b", 0), "true");
    ck_assert_double_nan(number(&f, "param:w", 0));
    ck_assert_double_eq(number(&f, "param:w", 1), 7);
    ck_assert_str_eq(word(&f, "origin", 1), "known");
}
END_TEST

START_TEST(changes_since_a_version)
{
    make_sweep(&s, "a", "'max_trials': 9", "");
    epoch = make_runner(&s, "r", 9);
    struct claim_list list = claim(&s, "r", epoch, 3);
    struct columnar first = whole(NULL);
    struct columnar none = since(first.version);
    ck_assert(!none.is_whole);
    ck_assert_uint_eq(none.n_rows, 0);
    ck_assert_str_eq(none.version, first.version);

    measure(&s, ref_of(&list.rows[2]), "acc", 1, 0.5);
    struct columnar f = since(first.version);
    ck_assert_uint_eq(f.n_rows, 1);
    ck_assert_double_eq(number(&f, "number", 0), 2);
    ck_assert_double_eq(number(&f, "metric:acc", 0), 0.5);
    ck_assert_uint_eq(column(&f, "state")->n_words, 1); /* those of its rows */

    (void)claim(&s, "r", epoch, 1);
    struct columnar next = since(f.version), both = since(first.version);
    ck_assert_uint_eq(next.n_rows, 1);
    ck_assert_double_eq(number(&next, "number", 0), 3);
    ck_assert_uint_eq(both.n_rows, 2);
    ck_assert_double_eq(number(&both, "number", 0), 2);
    ck_assert_double_eq(number(&both, "number", 1), 3);
    ck_assert_uint_eq(whole("state").n_rows, 4);
}
END_TEST

/* A server that has just started knows from the events what changed before it read the table. */
START_TEST(another_server_knows_the_version)
{
    make_sweep(&s, "a", "'max_trials': 9", "");
    epoch = make_runner(&s, "r", 9);
    struct claim_list list = claim(&s, "r", epoch, 3);
    struct columnar first = whole(NULL);
    finish(&s, ref_of(&list.rows[1]), 0.5);
    (void)claim(&s, "r", epoch, 1);
    table_cache_free(cache);
    cache = table_cache_create(TABLE_CACHE_BYTES);
    struct columnar f = since(first.version);
    ck_assert(!f.is_whole);
    ck_assert_uint_eq(f.n_rows, 2);
    ck_assert_double_eq(number(&f, "number", 0), 1);
    ck_assert_double_eq(number(&f, "number", 1), 3);
}
END_TEST

/* Versions of which not all later events are kept, or that no server has given. */
START_TEST(unknown_versions_get_the_whole_table)
{
    make_sweep(&s, "a", "'max_trials': 9", "");
    epoch = make_runner(&s, "r", 9);
    (void)claim(&s, "r", epoch, 3);
    ck_assert(since("0").is_whole);
    ck_assert(since("9223372036854775807").is_whole);
    ck_assert_uint_eq(since("0").n_rows, 3);
}
END_TEST

START_TEST(columns_are_chosen)
{
    make_sweep(&s, "a", "'max_trials': 9", "");
    epoch = make_runner(&s, "r", 9);
    finish(&s, ref_of(&claim(&s, "r", epoch, 1).rows[0]), 1e-50);
    struct columnar f = whole("state,metric:nobody,state,param:x");
    ck_assert_uint_eq(f.n_columns, 4);
    ck_assert_str_eq(f.columns[0].name, "number");
    ck_assert_double_nan(number(&f, "metric:nobody", 0));
    struct table_request q = {.kind = &table_of_trials, .sweep = "a", .is_single = true};
    struct table_answer x;
    ck_ok(table_export(s.db, cache, &s.a, &q, &x, &err), err);
    f = parse_columns(&s.a, x.bytes, x.len);
    ck_assert_int_eq((int)column(&f, "param:x")->type, COLUMNAR_F32);
    ck_assert_int_eq((int)column(&f, "created_at")->type, COLUMNAR_F64);
    ck_assert_double_eq(number(&f, "value", 0), 0);
    static const char *const bad[] = {"", "param:y", "state,,value", "loss", "metric:a b"};
    for (size_t i = 0; i < AS_ARRAY_LEN(bad); i++) {
        q.columns = bad[i];
        ck_fails(table_export(s.db, cache, &s.a, &q, &x, &err), AS_E_INVAL, err, "columns");
    }
    q = (struct table_request){.kind = &table_of_trials, .sweep = "b"};
    ck_fails(table_export(s.db, cache, &s.a, &q, &x, &err), AS_E_NOT_FOUND, err, "b");
}
END_TEST

static int n_packed;

static as_status count_packs(const void *bytes, size_t len, struct str *ret, struct as_err *e)
{
    n_packed++;
    str_add(ret, bytes, len);
    return str_check(ret, e);
}

START_TEST(a_file_is_made_once)
{
    make_sweep(&s, "a", "'max_trials': 9", "");
    epoch = make_runner(&s, "r", 9);
    struct claim_list list = claim(&s, "r", epoch, 3);
    const struct table_request q = {.kind = &table_of_trials, .sweep = "a", .pack = count_packs};
    struct table_answer x, y;
    n_packed = 0;
    ck_ok(table_export(s.db, cache, &s.a, &q, &x, &err), err);
    ck_ok(table_export(s.db, cache, &s.a, &q, &y, &err), err);
    ck_assert_int_eq(n_packed, 1);
    ck_assert_str_eq(x.etag, y.etag);
    ck_assert_mem_eq(x.bytes, y.bytes, x.len);
    finish(&s, ref_of(&list.rows[0]), 1);
    ck_ok(table_export(s.db, cache, &s.a, &q, &y, &err), err);
    ck_assert_int_eq(n_packed, 2);
    ck_assert_str_ne(x.etag, y.etag);
}
END_TEST

/* More than one statement reads (table_trials.c). */
START_TEST(many_trials_are_read_in_order)
{
    make_sweep(&s, "a", "'max_trials': 9000", "");
    pg_fixture_exec(
        s.url,
        "insert into trial (sweep_key, number, state, origin, suggestion_index, attempt, restarts, "
        "params, suggestion, seed, value, step, metrics, feasible, finish_seq, epoch, created_at, "
        "started_at, finished_at) select s.key, n, 'completed', 'suggested', n, 1, 0, "
        "json_build_object('x', n / 4000.0), '{\"method\": \"random\"}', n, n, 1, "
        "jsonb_build_object('loss', n), true, n + 1, 1, now(), now(), now() from sweep s, "
        "generate_series(0, 4499) n where s.id = 'a'");
    struct columnar f = whole("value,param:x");
    ck_assert_uint_eq(f.n_rows, 4500);
    for (size_t i = 0; i < f.n_rows; i++) {
        ck_assert_double_eq(number(&f, "number", i), (double)i);
        ck_assert_double_eq(number(&f, "value", i), (double)i);
    }
    ck_assert_double_eq_tol(number(&f, "param:x", 2000), 0.5, 1e-12);
    pg_fixture_exec(s.url, "delete from trial; delete from sweep_base"); /* no attempt made them */
}
END_TEST

START_TEST(memory_is_bounded)
{
    struct table_cache *small = table_cache_create(64 << 10);
    for (int i = 0; i < 20; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "s%d", i);
        make_sweep(&s, name, "'max_trials': 9", "");
        const struct table_request q = {.kind = &table_of_trials, .sweep = name};
        struct table_answer x;
        ck_ok(table_export(s.db, small, &s.a, &q, &x, &err), err);
        ck_assert_uint_le(table_cache_bytes(small), 64 << 10);
    }
    ck_assert_uint_gt(table_cache_bytes(small), 0);
    table_cache_free(small);
}
END_TEST

TEST_SUITE()
{
    Suite *suite = suite_create("table_export");
    TCase *t = service_case(suite, "table_export", &s, 0);
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, shows_every_trial);
    tcase_add_test(t, shows_forks_and_tags);
    tcase_add_test(t, shows_predictions);
    tcase_add_test(t, shows_a_prediction_of_each_objective);
    tcase_add_test(t, parameters_of_every_kind);
    tcase_add_test(t, changes_since_a_version);
    tcase_add_test(t, another_server_knows_the_version);
    tcase_add_test(t, unknown_versions_get_the_whole_table);
    tcase_add_test(t, columns_are_chosen);
    tcase_add_test(t, a_file_is_made_once);
    tcase_add_test(t, many_trials_are_read_in_order);
    tcase_add_test(t, memory_is_bounded);
    return suite;
}
