/* Sweeps: created, refused, listed, changed, deleted. */
#include <stdio.h>
#include <string.h>

#include "scheduler/services/datasets.h"
#include "scheduler/lifecycle/reaper.h"
#include "tests/support/check_main.h"
#include "tests/support/service.h"

static struct service s;
static struct as_err err;

START_TEST(names_become_ids)
{
    ck_assert_str_eq(make_sweep(&s, "a", "'max_trials': 3", ""), "a");
    ck_assert_str_eq(make_sweep(&s, "a", "'max_trials': 3", ""), "a-2");
    ck_assert_str_eq(make_sweep(&s, "a", "'max_trials': 3", ""), "a-3");
    struct sweep_row row = sweep_of_id(&s, "a-2");
    ck_assert_str_eq(row.name, "a");
    ck_assert_int_eq(row.state, SWEEP_RUNNING);
    ck_assert_int_eq(row.planned, 3);
    ck_assert_int_eq(row.seed, 7);
    ck_assert_int_eq(row.counts.total, 0);
    ck_assert(!row.has_best && !row.maximize && row.started_ms == 0 && row.created_ms > 0);
    ck_assert_str_eq(row.metric, "loss");
    ck_assert_str_eq(row.method, "random");
}
END_TEST

/* The order of the parameters is the order of the search, so it must come back unchanged. */
START_TEST(documents_keep_their_order)
{
    struct sweep_row row;
    json_t *doc = json_of("{'name': 'o', 'metric': {'name': 'm', 'goal': 'maximize'}, "
                          "'parameters': {'zz': {'type': 'bool'}, 'aa': {'type': 'bool'}}, "
                          "'limits': {'max_trials': 2}, 'trial': {'command': ['true']}}");
    ck_ok(sweep_create(s.db, &s.a, doc, NULL, &row, &err), err);
    json_decref(doc);
    ck_assert(strstr(row.document, "zz") < strstr(row.document, "aa"));
    ck_assert(row.maximize);
    ck_assert_int_ge(row.seed, 0);
}
END_TEST

START_TEST(bad_documents_change_nothing)
{
    static const struct {
        const char *doc, *pointer;
    } bad[] = {
        {"{'name': 'b', 'metric': {'name': 'm', 'goal': 'minimize'}, 'parameters': {'x': {'type': "
         "'float', 'min': 2, 'max': 1}}, 'limits': {'max_trials': 2}, 'trial': {'command': "
         "['true']}}",
         "/parameters/x"},
        {"{'name': 'b', 'metric': {'name': 'val_loss', 'goal': 'minimize'}, 'parameters': {'x': "
         "{'type': "
         "'bool'}}, 'limits': {'max_trials': 2}, 'trial': {'train': {'dataset': 'none', 'epochs': "
         "1}}}",
         "/trial/train/dataset"},
        {"{'name': 'b', 'metric': {'name': 'm', 'goal': 'minimize'}, 'parameters': {'x': {'type': "
         "'float', 'min': 0, 'max': 1}}, 'constraints': [{'metric': 'ms', 'max': 1}, {'metric': "
         "'x', 'max': 0.5}], 'limits': {'max_trials': 2}, 'trial': {'command': ['true']}}",
         "/constraints/1/metric"},
    };
    struct sweep_row row;
    for (size_t i = 0; i < AS_ARRAY_LEN(bad); i++) {
        json_t *doc = json_of(bad[i].doc);
        as_status st = sweep_create(s.db, &s.a, doc, NULL, &row, &err);
        ck_assert_int_eq(st, AS_E_INVAL);
        ck_assert_msg(strncmp(err.pointer, bad[i].pointer, strlen(bad[i].pointer)) == 0,
                      "pointer is %s", err.pointer);
        json_decref(doc);
    }
    ck_assert_int_eq(pg_fixture_i64(s.url, "select count(*) from sweep"), 0);
    ck_assert_int_eq(pg_fixture_i64(s.url, "select count(*) from event_each"), 0);
}
END_TEST

/* `more`: fields of the document, with a comma before. */
static as_status create_train_with(const char *metric, const char *dataset, const char *more)
{
    char text[700];
    struct sweep_row row;
    snprintf(text, sizeof text,
             "{'name': 't', 'metric': {'name': '%s', 'goal': 'minimize'}, 'parameters': {'lr': "
             "{'type': 'float', 'min': 0.1, 'max': 1}}, 'limits': {'max_trials': 2}, 'trial': "
             "{'train': {'dataset': '%s', 'epochs': 2, 'optimizer': {'kind': 'sgd', 'lr': "
             "'${lr}'}}}%s}",
             metric, dataset, more);
    json_t *doc = json_of(text);
    as_status st = sweep_create(s.db, &s.a, doc, NULL, &row, &err);
    json_decref(doc);
    return st;
}

static as_status create_train(const char *metric, const char *dataset)
{
    return create_train_with(metric, dataset, "");
}

/* With a parameter p, which is float32 or bfloat16. */
static as_status create_precise(const char *precision, const char *more)
{
    char text[700];
    struct sweep_row row;
    snprintf(text, sizeof text,
             "{'name': 'p', 'metric': {'name': 'val_error', 'goal': 'minimize'}, 'parameters': "
             "{'p': {'type': 'categorical', 'values': ['float32', 'bfloat16']}}, 'limits': "
             "{'max_trials': 2}, 'trial': {'train': {'dataset': 'toy', 'epochs': 2, 'precision': "
             "'%s'}}%s}",
             precision, more);
    json_t *doc = json_of(text);
    as_status st = sweep_create(s.db, &s.a, doc, NULL, &row, &err);
    json_decref(doc);
    return st;
}

static as_status change(const char *id, const char *patch, struct sweep_row *ret)
{
    struct sweep_patch p;
    struct sweep_changed changed;
    json_t *doc = json_of(patch);
    as_status st = sweep_patch_parse(doc, &p, &err);
    if (st == AS_OK)
        st = sweep_change(s.db, &s.a, id, &p, NULL, &changed, &err);
    json_decref(doc);
    if (st == AS_OK)
        *ret = changed.sweep;
    return st;
}

static struct dataset_row make_toy(void)
{
    char hex[SHA256_HEX_SIZE], text[300];
    struct dataset_row d;
    bool created;
    put_blob(&s, "x,y,class\n1,2,a\n3,4,b\n5,6,a\n7,8,b\n", hex);
    snprintf(text, sizeof text,
             "{'name': 'toy', 'format': 'csv', 'files': {'table': '%s'}, 'target': 'class'}", hex);
    json_t *doc = json_of(text);
    ck_ok(dataset_create(s.db, &s.a, doc, &d, &created, &err), err);
    json_decref(doc);
    return d;
}

/* A new sweep is split by classes. One that was stored before splits had rules stays as it is, also
 * when its document is written again. */
START_TEST(stored_sweeps_keep_their_split)
{
    struct sweep_row row;
    make_toy();
    ck_ok(create_train("val_error", "toy"), err);
    ck_ok(change("t", "{'limits': {'max_trials': 5}}", &row), err);
    ck_assert_ptr_nonnull(strstr(row.document, "\"split\": \"stratified\""));
    pg_fixture_exec(s.url, "update sweep_base set document = regexp_replace(document::text, "
                           "',\\s*\"validation\":\\s*{[^}]*}', '')::json");
    ck_ok(change("t", "{'limits': {'max_trials': 6}}", &row), err);
    ck_assert_ptr_nonnull(strstr(row.document, "\"max_trials\": 6"));
    ck_assert_ptr_null(strstr(row.document, "validation"));
}
END_TEST

START_TEST(bfloat16_needs_a_gpu)
{
    (void)make_toy();
    ck_fails(create_precise("bfloat16", ""), AS_E_INVAL, err, "which only CUDA computes");
    ck_assert_str_eq(err.pointer, "/trial/train/precision");
    ck_fails(create_precise("${p}", ""), AS_E_INVAL, err, "which only CUDA computes");
    ck_ok(create_precise("float32", ""), err);
    ck_ok(create_precise("${p}", ", 'resources': {'gpus': 1}"), err);
}
END_TEST

START_TEST(the_metric_fits_the_data_set)
{
    struct dataset_row d = make_toy();
    ck_fails(create_train("val_rmse", "toy"), AS_E_INVAL, err, "never reports 'val_rmse'");
    ck_assert_str_eq(err.pointer, "/metric/name");
    /* The trainer uses one GPU: others would be held and idle. */
    ck_fails(create_train_with("val_error", "toy", ", 'resources': {'gpus': 2}"), AS_E_UNSUPPORTED,
             err, "/resources/gpus: 2: trial.train uses one GPU");
    ck_assert_str_eq(err.pointer, "/resources/gpus");
    ck_ok(create_train("val_error", "toy"), err);
    /* and while the sweep lives, its data set stays */
    ck_fails(dataset_delete(s.db, "toy", &err), AS_E_CONFLICT, err, "'t' uses");
    int64_t epoch = make_runner(&s, "r", 1);
    struct claimed_row c = claim_one(&s, "r", epoch);
    ck_assert_ptr_nonnull(c.dataset);
    ck_assert_str_eq(c.dataset->name, "toy");
    ck_assert_uint_eq(c.dataset->n_files, 1);
    ck_assert_ptr_null(c.dataset->expected_sha256);
    /* other content under the name, as if a sweep ended and was resumed */
    pg_fixture_exec(s.url, "update dataset set sha256 = repeat('0', 64), n_rows = 3");
    make_runner(&s, "r2", 1);
    c = claim_one(&s, "r2", 1);
    ck_assert_str_eq(c.dataset->expected_sha256, d.sha256);
    ck_assert_int_eq(c.dataset->expected_rows, 4);
    ck_assert_int_eq(c.dataset->expected_features, 2);
}
END_TEST

START_TEST(lists_page_newest_first)
{
    char name[16];
    for (int i = 0; i < 7; i++) {
        snprintf(name, sizeof name, "n%d", i);
        make_sweep(&s, name, "'max_trials': 1", "");
    }
    struct sweep_query q = {.page.size = 3};
    struct sweep_page page;
    int seen = 0;
    do {
        ck_ok(sweep_list(s.db, &s.a, &q, &page, &err), err);
        for (size_t i = 0; i < page.n; i++, seen++) {
            snprintf(name, sizeof name, "n%d", 6 - seen);
            ck_assert_str_eq(page.rows[i].id, name);
        }
        q.page.cursor = page.next_cursor;
    } while (q.page.cursor);
    ck_assert_int_eq(seen, 7);
    q.page.cursor = "6d";
    ck_fails(sweep_list(s.db, &s.a, &q, &page, &err), AS_E_INVAL, err, "cursor");
    q.page = (struct page_req){.size = 1001};
    ck_fails(sweep_list(s.db, &s.a, &q, &page, &err), AS_E_INVAL, err, "page_size");
    sweep_state paused = SWEEP_PAUSED;
    q = (struct sweep_query){.state = &paused};
    ck_ok(sweep_list(s.db, &s.a, &q, &page, &err), err);
    ck_assert_uint_eq(page.n, 0);
}
END_TEST

START_TEST(pause_resume_cancel)
{
    struct sweep_row row;
    make_sweep(&s, "a", "'max_trials': 5", "");
    int64_t epoch = make_runner(&s, "r", 4);
    struct claimed_row c = claim_one(&s, "r", epoch);
    ck_ok(change("a", "{'state': 'paused'}", &row), err);
    ck_assert_int_eq(row.state, SWEEP_PAUSED);
    ck_assert_uint_eq(claim(&s, "r", epoch, 4).n, 0);
    ck_ok(change("a", "{'state': 'paused'}", &row), err); /* a repeat is allowed */
    finish(&s, ref_of(&c), 0.5);                          /* running trials go on */
    ck_ok(change("a", "{'state': 'running'}", &row), err);
    ck_assert_int_eq(row.counts.by_state[TRIAL_COMPLETED], 1);
    c = claim_one(&s, "r", epoch);
    ck_ok(change("a", "{'state': 'cancelled'}", &row), err);
    ck_assert_int_eq(row.state, SWEEP_CANCELLED);
    ck_assert_int_eq(row.counts.by_state[TRIAL_CANCELLED], 1);
    ck_assert_int_gt(row.finished_ms, 0);
    ck_assert_str_eq(row.reason, "cancelled by a user");
    struct attempt_ref ref = ref_of(&c);
    struct directive_list d;
    ck_ok(heartbeat(&s, "r", epoch, &ref, 1, &d, &err), err);
    ck_assert_uint_eq(d.n, 1);
    ck_assert_ptr_nonnull(strstr(d.rows[0].reason, "cancelled"));
    ck_fails(change("a", "{'state': 'paused'}", &row), AS_E_CONFLICT, err, "cannot become");
    check_invariants(&s);
}
END_TEST

START_TEST(limits_change)
{
    struct sweep_row row;
    make_sweep(&s, "a", "'max_trials': 3, 'max_concurrent_trials': 2", "");
    int64_t epoch = make_runner(&s, "r", 10);
    ck_assert_uint_eq(claim(&s, "r", epoch, 10).n, 2);
    ck_ok(change("a", "{'limits': {'max_concurrent_trials': null, 'max_trials': 6}}", &row), err);
    ck_assert_int_eq(row.planned, 6);
    ck_assert_ptr_null(strstr(row.document, "max_concurrent"));
    ck_assert_uint_eq(claim(&s, "r", epoch, 10).n, 4);
    ck_fails(change("a", "{}", &row), AS_E_INVAL, err, "changes nothing");
    ck_fails(change("a", "{'limits': {'max_trials': 0}}", &row), AS_E_INVAL, err, "");
    ck_fails(change("a", "{'limits': {'max_trials': null}}", &row), AS_E_INVAL, err, "null");
    ck_fails(change("a", "{'limits': {'grace': 'x'}}", &row), AS_E_INVAL, err, "grace");
    ck_assert_str_eq(err.pointer, "/limits/grace");
    ck_fails(change("a", "{'limits': {'patience': 1}}", &row), AS_E_INVAL, err, "patience");
    ck_fails(change("a", "{'state': 'failed'}", &row), AS_E_INVAL, err, "");
    ck_fails(change("b", "{'state': 'paused'}", &row), AS_E_NOT_FOUND, err, "'b'");
}
END_TEST

/* A grid has no more trials than cells, whatever the patch asks for. */
START_TEST(a_grid_stays_within_its_cells)
{
    struct sweep_row row;
    make_grid(&s, "g", 4, "'max_trials': 2");
    ck_ok(change("g", "{'limits': {'max_trials': 100}}", &row), err);
    ck_assert_int_eq(row.planned, 4);
}
END_TEST

START_TEST(only_ended_sweeps_are_deleted)
{
    struct sweep_row row;
    make_sweep(&s, "a", "'max_trials': 3", "");
    int64_t epoch = make_runner(&s, "r", 1);
    struct claimed_row c = claim_one(&s, "r", epoch);
    measure(&s, ref_of(&c), "loss", 0, 1);
    ck_fails(sweep_delete(s.db, "a", &err), AS_E_CONFLICT, err, "cancel it first");
    ck_ok(change("a", "{'state': 'cancelled'}", &row), err);
    ck_ok(sweep_delete(s.db, "a", &err), err);
    ck_fails(sweep_delete(s.db, "a", &err), AS_E_NOT_FOUND, err, "'a'");
    ck_assert_int_eq(pg_fixture_i64(s.url, "select count(*) from trial"), 0);
    ck_assert_int_eq(pg_fixture_i64(s.url, "select count(*) from measurement"), 0);
    ck_assert_int_eq(pg_fixture_i64(s.url, "select count(*) from attempt"), 0);
    ck_fails(sweep_get(s.db, &s.a, "a", &row, &err), AS_E_NOT_FOUND, err, "'a'");
}
END_TEST

START_TEST(keys_make_one_sweep)
{
    struct idem_key k = {.scope = "me POST /v1/sweeps", .key = "k1", .body_sha256 = "aa"};
    struct idem_answer answer;
    struct sweep_row one, two;
    json_t *doc = json_of("{'name': 'i', 'metric': {'name': 'm', 'goal': 'maximize'}, "
                          "'parameters': {'a': {'type': 'bool'}}, 'limits': {'max_trials': 2}, "
                          "'trial': {'command': ['true']}}");
    ck_ok(idempotency_find(s.db, &s.a, &k, &answer, &err), err);
    ck_assert_int_eq(answer.outcome, IDEM_NEW);
    ck_ok(sweep_create(s.db, &s.a, doc, &k, &one, &err), err);
    /* the server dies here: no answer is stored */
    ck_ok(idempotency_find(s.db, &s.a, &k, &answer, &err), err);
    ck_assert_int_eq(answer.outcome, IDEM_NEW);
    int64_t log_end = commit_unsynced(&s); /* what the repeat finds may not be on disk */
    ck_ok(sweep_create(s.db, &s.a, doc, &k, &two, &err), err);
    check_synced(&s, log_end);
    ck_assert_str_eq(one.id, two.id);
    ck_assert_int_eq(pg_fixture_i64(s.url, "select count(*) from sweep"), 1);
    ck_ok(idempotency_store(s.db, &k, 201, "{\"id\":\"i\"}", "/v1/sweeps/i", &err), err);
    ck_ok(idempotency_store(s.db, &k, 500, "other", NULL, &err), err); /* the first one stays */
    log_end = commit_unsynced(&s);
    ck_ok(idempotency_find(s.db, &s.a, &k, &answer, &err), err);
    check_synced(&s, log_end);
    ck_assert_int_eq(answer.outcome, IDEM_REPEATED);
    ck_assert_int_eq(answer.status, 201);
    ck_assert_str_eq(answer.body, "{\"id\":\"i\"}");
    ck_assert_str_eq(answer.location, "/v1/sweeps/i");
    k.body_sha256 = "bb";
    ck_ok(idempotency_find(s.db, &s.a, &k, &answer, &err), err);
    ck_assert_int_eq(answer.outcome, IDEM_OTHER_BODY);
    ck_fails(sweep_create(s.db, &s.a, doc, &k, &two, &err), AS_E_CONFLICT, err, "another body");
    k.key = "";
    ck_fails(idempotency_find(s.db, &s.a, &k, &answer, &err), AS_E_INVAL, err, "128");
    json_decref(doc);
    pg_fixture_exec(s.url, "update idempotency set created_at = now() - interval '25 h'");
    (void)reap(&s);
    ck_assert_int_eq(pg_fixture_i64(s.url, "select count(*) from idempotency"), 0);
}
END_TEST

TEST_SUITE()
{
    Suite *su = suite_create("sweeps");
    TCase *c = service_case(su, "sweeps", &s, 0);
    tcase_add_test(c, names_become_ids);
    tcase_add_test(c, documents_keep_their_order);
    tcase_add_test(c, bad_documents_change_nothing);
    tcase_add_test(c, stored_sweeps_keep_their_split);
    tcase_add_test(c, bfloat16_needs_a_gpu);
    tcase_add_test(c, the_metric_fits_the_data_set);
    tcase_add_test(c, lists_page_newest_first);
    tcase_add_test(c, pause_resume_cancel);
    tcase_add_test(c, limits_change);
    tcase_add_test(c, a_grid_stays_within_its_cells);
    tcase_add_test(c, only_ended_sweeps_are_deleted);
    tcase_add_test(c, keys_make_one_sweep);
    return su;
}
