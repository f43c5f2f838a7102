/* Blobs, data sets, tokens, events, metrics. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "scheduler/content/blobs.h"
#include "scheduler/content/content_gc.h"
#include "scheduler/services/datasets.h"
#include "scheduler/services/events.h"
#include "scheduler/services/service_metrics.h"
#include "scheduler/lifecycle/reaper.h"
#include "scheduler/services/tokens.h"
#include "tests/support/check_main.h"
#include "tests/support/service.h"

static struct service s;
static struct as_err err;

/* Blobs. */

START_TEST(content_survives_in_pieces)
{
    size_t len = 2 * BLOB_CHUNK_BYTES + 12345;
    AS_AUTO(as_freep) char *bytes = malloc(len);
    AS_AUTO(as_freep) char *back = malloc(len);
    char hex[SHA256_HEX_SIZE];
    for (size_t i = 0; i < len; i++)
        bytes[i] = (char)(i * 2654435761u >> 13);
    ck_ok(sha256_of(bytes, len, hex, &err), err);
    for (int round = 0; round < 2; round++) {
        AS_AUTO(blob_put_freep) struct blob_put *p = NULL;
        bool created = false;
        ck_ok(blob_put_create(hex, &p, &err), err);
        for (size_t at = 0; at < len; at += 100000)
            ck_ok(blob_put_add(p, bytes + at, len - at < 100000 ? len - at : 100000, &err), err);
        ck_ok(blob_put_commit(s.db, p, &created, &err), err);
        ck_assert(created == (round == 0));
    }
    int64_t size = 0;
    ck_ok(blob_stat(s.db, hex, &size, &err), err);
    ck_assert_int_eq(size, (int64_t)len);
    size_t at = 0, n = 1;
    for (; n > 0; at += n)
        ck_ok(blob_read(s.db, hex, (int64_t)at, back + at, 300001, &n, &err), err);
    ck_assert_uint_eq(at, len);
    ck_assert_mem_eq(bytes, back, len);
}
END_TEST

START_TEST(empty_content_is_content)
{
    char hex[SHA256_HEX_SIZE], buf[8];
    size_t n = 9;
    put_blob(&s, "", hex);
    ck_ok(blob_read(s.db, hex, 0, buf, sizeof buf, &n, &err), err);
    ck_assert_uint_eq(n, 0);
}
END_TEST

START_TEST(wrong_digests_are_refused)
{
    struct blob_put *p = NULL;
    bool created;
    int64_t size;
    char hex[SHA256_HEX_SIZE], buf[8];
    size_t n;
    ck_fails(blob_put_create("ABC", &p, &err), AS_E_INVAL, err, "64");
    ck_ok(sha256_of("a", 1, hex, &err), err);
    ck_ok(blob_put_create(hex, &p, &err), err);
    ck_ok(blob_put_add(p, "b", 1, &err), err);
    ck_fails(blob_put_commit(s.db, p, &created, &err), AS_E_INVAL, err,
             "sha256 of the 1 bytes received");
    blob_put_free(p);
    ck_fails(blob_stat(s.db, hex, &size, &err), AS_E_NOT_FOUND, err, hex);
    ck_fails(blob_read(s.db, hex, 0, buf, 8, &n, &err), AS_E_NOT_FOUND, err, hex);
}
END_TEST

START_TEST(unused_content_goes_and_used_stays)
{
    char used[SHA256_HEX_SIZE], unused[SHA256_HEX_SIZE], fresh[SHA256_HEX_SIZE];
    struct content_gc care = {.db = s.db};
    struct content_report r;
    int64_t size;
    make_sweep(&s, "a", "'max_trials': 1", "");
    int64_t e = make_runner(&s, "r", 1);
    struct claimed_row c = claim_one(&s, "r", e);
    struct attempt_ref ref = ref_of(&c);
    put_blob(&s, "used", used);
    put_blob(&s, "unused", unused);
    struct file_row f = {"x", 4, used};
    ck_ok(attempt_files(s.db, &ref, NULL, FILE_ARTIFACT, &f, 1, &err), err);
    pg_fixture_exec(s.url, "update blob set touched_at = now() - interval '25 h'");
    put_blob(&s, "fresh", fresh);
    ck_ok(content_gc_tick(&care, &r, &err), err);
    ck_assert_int_eq(r.removed, 1);
    ck_ok(blob_stat(s.db, used, &size, &err), err);
    ck_ok(blob_stat(s.db, fresh, &size, &err), err);
    ck_fails(blob_stat(s.db, unused, &size, &err), AS_E_NOT_FOUND, err, "");
    ck_assert_int_eq(pg_fixture_i64(s.url, "select count(*) from blob_chunk"), 2);
}
END_TEST

/* Data sets. */

static as_status add_dataset(const char *fields, struct dataset_row *ret, bool *created)
{
    json_t *doc = json_of(fields);
    as_status st = dataset_create(s.db, &s.a, doc, ret, created, &err);
    json_decref(doc);
    return st;
}

START_TEST(data_sets_are_read_in_full)
{
    char good[SHA256_HEX_SIZE], ragged[SHA256_HEX_SIZE], doc[400];
    struct dataset_row d;
    bool created = false;
    put_blob(&s, "x,y,class\n1,2,a\n3,4,b\n5,6,a\n", good);
    put_blob(&s, "x,y,class\n1,2,a\n3,b\n5,6,a\n", ragged);
    snprintf(doc, sizeof doc,
             "{'name': 'd', 'format': 'csv', 'files': {'table': '%s'}, 'target': 'class', "
             "'description': 'toy'}",
             good);
    ck_ok(add_dataset(doc, &d, &created), err);
    ck_assert(created);
    ck_assert_str_eq(d.task, "classification");
    ck_assert_int_eq(d.n_rows, 3);
    ck_assert_int_eq(d.n_features, 2);
    ck_assert_str_eq(d.classes, "[\"a\",\"b\"]");
    ck_assert_str_eq(d.target, "\"class\"");
    ck_assert_str_eq(d.files[0].role, "table");
    ck_assert_str_eq(d.files[0].sha256, good);
    int64_t log_end = commit_unsynced(&s); /* the first request may still wait for the disk */
    ck_ok(add_dataset(doc, &d, &created), err);
    ck_assert(!created);
    check_synced(&s, log_end);
    log_end = commit_unsynced(&s);
    put_blob(&s, "x,y,class\n1,2,a\n3,4,b\n5,6,a\n", good);
    check_synced(&s, log_end);
    snprintf(doc, sizeof doc,
             "{'name': 'd', 'format': 'csv', 'files': {'table': '%s'}, 'target': 0}", good);
    ck_fails(add_dataset(doc, &d, &created), AS_E_CONFLICT, err, "read in another way");
    snprintf(doc, sizeof doc,
             "{'name': 'e', 'format': 'csv', 'files': {'table': '%s'}, 'target': 'class'}", ragged);
    ck_fails(add_dataset(doc, &d, &created), AS_E_INVAL, err, "line 3");
    ck_assert_int_eq(err.pointer[0], '/');
    put_blob(&s, "x,y,class\n1,2,a\n3,9,b\n5,6,a\n", ragged);
    snprintf(doc, sizeof doc,
             "{'name': 'd', 'format': 'csv', 'files': {'table': '%s'}, 'target': 'class'}", ragged);
    ck_fails(add_dataset(doc, &d, &created), AS_E_CONFLICT, err, "other content");
    memset(ragged, 'f', 64);
    snprintf(doc, sizeof doc,
             "{'name': 'e', 'format': 'csv', 'files': {'table': '%s'}, 'target': 'class'}", ragged);
    ck_fails(add_dataset(doc, &d, &created), AS_E_UNSUPPORTED, err, "upload it first");
    ck_assert_str_eq(err.pointer, "/files/table");
    ck_fails(add_dataset("{'name': 'e', 'format': 'csv', 'files': {}}", &d, &created), AS_E_INVAL,
             err, "table");
    ck_fails(add_dataset("{'name': 'E', 'format': 'csv', 'files': {}}", &d, &created), AS_E_INVAL,
             err, "'E'");
    struct page_req req = {.size = 1};
    struct dataset_page page;
    ck_ok(dataset_list(s.db, &s.a, &req, &page, &err), err);
    ck_assert_uint_eq(page.n, 1);
    ck_assert_ptr_null(page.next_cursor);
    ck_ok(dataset_delete(s.db, "d", &err), err);
    ck_fails(dataset_get(s.db, &s.a, "d", &d, &err), AS_E_NOT_FOUND, err, "'d'");
    ck_fails(dataset_delete(s.db, "d", &err), AS_E_NOT_FOUND, err, "'d'");
    struct event_list events;
    ck_ok(events_after(s.db, &s.a, NULL, 0, 10, &events, &err), err);
    ck_assert_uint_eq(events.n, 2); /* it was added, and deleted; nothing else changed */
    for (size_t i = 0; i < events.n; i++) {
        ck_assert_str_eq(events.rows[i].type, "dataset.changed");
        ck_assert_str_eq(events.rows[i].dataset, "d");
    }
}
END_TEST

/* The row as a server from before migration 0006 wrote it. */
START_TEST(old_data_sets_are_read)
{
    char hex[SHA256_HEX_SIZE], sql[600];
    struct dataset_row d;
    struct dataset_info info = {0};
    put_blob(&s, "x,y,class\n1,2,a\n3,4,b\n", hex);
    snprintf(sql, sizeof sql,
             "insert into dataset (name, format, task, target, n_rows, n_features, n_outputs, "
             "classes, sha256) values ('old', 'csv', 'classification', '\"class\"', 2, 2, 2, "
             "'[\"a\",\"b\"]', '%s'); insert into dataset_file (dataset, role, sha256, size) "
             "values ('old', 'table', '%s', 26)",
             hex, hex);
    pg_fixture_exec(s.url, sql);
    ck_ok(dataset_get(s.db, &s.a, "old", &d, &err), err);
    ck_assert_str_eq(d.input, "table");
    ck_ok(dataset_row_info(&d, &info, &err), err);
    ck_assert_uint_eq(dataset_inputs(&info), 2);
    ck_assert_ptr_null(info.columns);
    dataset_info_done(&info);
}
END_TEST

START_TEST(data_sets_of_other_kinds)
{
    char table[SHA256_HEX_SIZE], text[SHA256_HEX_SIZE], doc[400];
    struct dataset_row d;
    struct dataset_page page;
    bool created = false;
    put_blob(&s, "x,job,y\n1,cook,a\n,cook,b\n3,?,a\n", table);
    put_blob(&s, "to be or not", text);
    snprintf(doc, sizeof doc,
             "{'name': 'jobs', 'format': 'csv', 'files': {'table': '%s'}, 'target': 'y'}", table);
    ck_ok(add_dataset(doc, &d, &created), err);
    ck_assert_str_eq(d.input, "table");
    ck_assert_str_eq(d.columns, "[{\"kind\":\"numeric\",\"missing\":1,\"name\":\"x\"},{"
                                "\"kind\":\"categorical\",\"missing\":1,\"name\":\"job\","
                                "\"other\":0,\"values\":[\"cook\"]}]");
    struct dataset_info info = {0};
    ck_ok(dataset_row_info(&d, &info, &err), err);
    ck_assert_uint_eq(dataset_inputs(&info), 5);
    dataset_info_done(&info);
    snprintf(doc, sizeof doc,
             "{'name': 'play', 'format': 'tokens', 'files': {'table': '%s'}, 'options': {'raw': "
             "true, 'vocab': 60000}}",
             text);
    ck_ok(add_dataset(doc, &d, &created), err);
    ck_assert_str_eq(d.task, "language_modeling");
    ck_assert_str_eq(d.options, "{\"raw\":true,\"vocab\":60000}");
    ck_assert_int_eq(d.n_outputs, 60000);
    ck_assert_int_eq(d.n_rows, 6);
    char other[SHA256_HEX_SIZE];
    snprintf(other, sizeof other, "%s", d.sha256);
    snprintf(doc, sizeof doc, "{'name': 'bytes', 'format': 'text', 'files': {'table': '%s'}}",
             text);
    ck_ok(add_dataset(doc, &d, &created), err);
    ck_assert_str_ne(d.sha256, other);
    ck_assert_ptr_null(d.options);
    struct page_req req = {.size = 10};
    ck_ok(dataset_list(s.db, &s.a, &req, &page, &err), err);
    ck_assert_uint_eq(page.n, 3);
    snprintf(doc, sizeof doc,
             "{'name': 'e', 'format': 'text', 'files': {'table': '%s'}, 'target': 'a'}", text);
    ck_fails(add_dataset(doc, &d, &created), AS_E_INVAL, err, "none is named");
    ck_assert_str_eq(err.pointer, "/target");
    snprintf(doc, sizeof doc,
             "{'name': 'e', 'format': 'text', 'files': {'table': '%s'}, 'options': {'row': 1}}",
             text);
    ck_fails(add_dataset(doc, &d, &created), AS_E_INVAL, err, "raw");
    ck_assert_str_eq(err.pointer, "/options/row");
    snprintf(doc, sizeof doc, "{'name': 'e', 'format': 'idx', 'files': {'table': '%s'}}", text);
    ck_fails(add_dataset(doc, &d, &created), AS_E_INVAL, err, "features and targets");
}
END_TEST

/* Tokens. */

START_TEST(tokens_say_who)
{
    struct token_row row;
    struct principal who;
    char text[TOKEN_TEXT_SIZE], other[TOKEN_TEXT_SIZE];
    ck_ok(token_create(s.db, &s.a, ROLE_RUNNER, "lab", 0, &row, text, &err), err);
    ck_assert(strncmp(text, "assay_runner_", 13) == 0);
    ck_ok(token_verify(s.db, text, &who, &err), err);
    ck_assert_int_eq(who.role, ROLE_RUNNER);
    ck_assert_str_eq(who.id, row.id);
    snprintf(other, sizeof other, "%s", text);
    other[strlen(other) - 1] = other[strlen(other) - 1] == 'a' ? 'b' : 'a';
    ck_fails(token_verify(s.db, other, &who, &err), AS_E_DENIED, err, "not valid");
    snprintf(other, sizeof other, "assay_admin_%s", text + 13); /* a higher role with the same
                                                                   secret */
    ck_fails(token_verify(s.db, other, &who, &err), AS_E_DENIED, err, "not valid");
    ck_fails(token_verify(s.db, "", &who, &err), AS_E_DENIED, err, "not valid");
    ck_fails(token_verify(s.db, "assay_user_abcd_0123456789012345678901'", &who, &err), AS_E_DENIED,
             err, "not valid");
    ck_assert_int_eq(pg_fixture_i64(s.url, "select count(*) from token where last_used_at is not "
                                           "null"),
                     1);
    ck_assert_int_eq(pg_fixture_i64(s.url, "select count(*) from token where sha256 like '%_%' and "
                                           "length(sha256) = 64"),
                     1);
    ck_ok(token_revoke(s.db, row.id, &err), err);
    ck_fails(token_verify(s.db, text, &who, &err), AS_E_DENIED, err, "not valid");
    ck_fails(token_revoke(s.db, row.id, &err), AS_E_NOT_FOUND, err, row.id);
    ck_ok(token_create(s.db, &s.a, ROLE_VIEWER, NULL, 60000, &row, text, &err), err);
    ck_ok(token_verify(s.db, text, &who, &err), err);
    pg_fixture_exec(s.url, "update token set expires_at = now() + interval '1 h'");
    ck_ok(token_verify(s.db, text, &who, &err), err);
    ck_assert(who.left_ms > 3500000 && who.left_ms <= 3600000);
    pg_fixture_exec(s.url, "update token set expires_at = now()");
    ck_fails(token_verify(s.db, text, &who, &err), AS_E_DENIED, err, "not valid");
}
END_TEST

START_TEST(the_last_admin_stays)
{
    struct token_row one, two;
    char text[TOKEN_TEXT_SIZE];
    struct token_page page;
    struct page_req req = {.size = 1};
    ck_ok(token_create(s.db, &s.a, ROLE_ADMIN, "one", 0, &one, text, &err), err);
    ck_fails(token_revoke(s.db, one.id, &err), AS_E_CONFLICT, err, "last admin");
    ck_ok(token_create(s.db, &s.a, ROLE_ADMIN, "two", 0, &two, text, &err), err);
    ck_ok(token_list(s.db, &s.a, &req, &page, &err), err);
    ck_assert_str_eq(page.rows[0].name, "two");
    req.cursor = page.next_cursor;
    ck_ok(token_list(s.db, &s.a, &req, &page, &err), err);
    ck_assert_str_eq(page.rows[0].name, "one");
    ck_assert_ptr_null(page.next_cursor);
    ck_ok(token_revoke(s.db, one.id, &err), err);
}
END_TEST

START_TEST(tokens_are_imported)
{
    char text[TOKEN_TEXT_SIZE], other[TOKEN_TEXT_SIZE];
    struct principal who;
    token_make(ROLE_ADMIN, text);
    ck_ok(token_import(s.db, text, "file", &err), err);
    ck_ok(token_import(s.db, text, "file", &err), err);
    ck_ok(token_verify(s.db, text, &who, &err), err);
    snprintf(other, sizeof other, "%s", text);
    other[strlen(other) - 1] = other[strlen(other) - 1] == 'a' ? 'b' : 'a';
    ck_fails(token_import(s.db, other, "file", &err), AS_E_CONFLICT, err, "another secret");
    ck_fails(token_import(s.db, "secret", NULL, &err), AS_E_INVAL, err, "ROLE");
}
END_TEST

/* Events. */

START_TEST(events_tell_a_life)
{
    struct event_list list;
    int64_t after = 0;
    make_sweep(&s, "other", "'max_trials': 1", "");
    ck_ok(events_now(s.db, &after, &err), err);
    make_sweep(&s, "a", "'max_trials': 1", ", 'ensemble': false");
    int64_t e = make_runner(&s, "r", 1);
    pg_fixture_exec(s.url, "update sweep_base set state = 'paused' where id = 'other'");
    struct claimed_row c = claim_one(&s, "r", e);
    finish(&s, ref_of(&c), 0.5);
    (void)reap(&s);
    static const char *const want[] = {"sweep.created running",   "trial.changed running",
                                       "trial.measured running",  "trial.changed completed",
                                       "sweep.changed finishing", "ensemble.ready none",
                                       "sweep.changed completed"};
    size_t n = 0;
    int64_t end_ns = clock_mono_ns() + PATIENCE_MS * NS_PER_MS;
    /* two at a time; another transaction in the cluster may delay them for a moment */
    while (n < AS_ARRAY_LEN(want) && clock_mono_ns() < end_ns) {
        ck_ok(events_after(s.db, &s.a, "a", after, 2, &list, &err), err);
        for (size_t k = 0; k < list.n; k++, n++) {
            char got[64];
            ck_assert_uint_lt(n, AS_ARRAY_LEN(want));
            snprintf(got, sizeof got, "%s %s", list.rows[k].type, list.rows[k].state);
            ck_assert_str_eq(got, want[n]);
            ck_assert_int_gt(list.rows[k].id, after);
        }
        after = list.last_id;
    }
    ck_assert_uint_eq(n, AS_ARRAY_LEN(want));
    ck_ok(events_after(s.db, &s.a, NULL, 0, 1000, &list, &err), err);
    ck_assert_uint_eq(list.n, AS_ARRAY_LEN(want) + 2); /* the other sweep, the runner */
    ck_fails(events_after(s.db, &s.a, "no", 0, 1, &list, &err), AS_E_NOT_FOUND, err, "'no'");
    pg_fixture_exec(s.url, "update event set time = now() - interval '8 days'");
    (void)reap(&s);
    ck_assert_int_eq(pg_fixture_i64(s.url, "select count(*) from event_each"), 0);
}
END_TEST

/* Writers whose transactions end in another order than they began, and a reader that follows. */
#define WRITERS 6
#define EVENTS_EACH 60

static void *writer_thread(void *p)
{
    char sql[400];
    const char *id = p;
    snprintf(sql, sizeof sql,
             "do $$ begin for i in 1..%d loop insert into event (id, type, runner) values "
             "((pg_current_xact_id()::text::bigint << 20), 'runner.changed', '%s'); perform "
             "pg_sleep(random() * 0.004); commit; end loop; end $$",
             EVENTS_EACH, id);
    pg_fixture_exec(s.url, sql);
    return NULL;
}

START_TEST(followers_miss_nothing)
{
    static const char *const names[WRITERS] = {"a", "b", "c", "d", "e", "f"};
    pthread_t threads[WRITERS];
    struct event_list list;
    int64_t after = 0, seen = 0, before = clock_mono_ns();
    for (int i = 0; i < WRITERS; i++)
        pthread_create(&threads[i], NULL, writer_thread, (void *)names[i]);
    while (seen < WRITERS * EVENTS_EACH && clock_mono_ns() - before < PATIENCE_MS * NS_PER_MS) {
        ck_ok(events_after(s.db, &s.a, NULL, after, 7, &list, &err), err);
        for (size_t i = 0; i < list.n; i++) {
            ck_assert_int_gt(list.rows[i].id, after);
            after = list.rows[i].id;
        }
        seen += (int64_t)list.n;
        after = list.last_id;
    }
    for (int i = 0; i < WRITERS; i++)
        pthread_join(threads[i], NULL);
    ck_assert_int_eq(seen, WRITERS * EVENTS_EACH);
}
END_TEST

/* Metrics. */

START_TEST(metrics_are_prometheus_text)
{
    AS_AUTO(str_done) struct str b = {0};
    make_sweep(&s, "a", "'max_trials': 3", "");
    int64_t e = make_runner(&s, "r", 4);
    claim(&s, "r", e, 2);
    ck_ok(metrics_write(s.db, &b, &err), err);
    static const char *const want[] = {"assay_database_up 1\n",
                                       "assay_trials{state=\"pruned\"} 0\n",
                                       "assay_runners{state=\"lost\"} 0\n",
                                       "assay_runners{state=\"left\"} 0\n",
                                       "assay_sweeps{state=\"cancelled\"} 0\n",
                                       "assay_trials{state=\"running\"} 2\n",
                                       "assay_runners{state=\"live\"} 1",
                                       "assay_sweeps{state=\"running\"} 1",
                                       "assay_trials_claimed_total 2\n",
                                       "# TYPE assay_trials gauge\n",
                                       "assay_pg_dead_tuples{table=\"trial\"}"};
    for (size_t i = 0; i < AS_ARRAY_LEN(want); i++)
        ck_assert_msg(strstr(str_cstr(&b), want[i]) != NULL, "no %s in %s", want[i], str_cstr(&b));
    struct store *away = NULL;
    struct store_opts opts = {.url = "host=/nonexistent dbname=x"};
    str_clear(&b);
    ck_ok(store_open(&opts, &away, &err), err);
    ck_ok(metrics_write(away, &b, &err), err);
    ck_assert_ptr_nonnull(strstr(str_cstr(&b), "assay_database_up 0\n"));
    store_close(away);
}
END_TEST

TEST_SUITE()
{
    Suite *su = suite_create("content");
    TCase *c = service_case(su, "content", &s, 0);
    tcase_add_test(c, content_survives_in_pieces);
    tcase_add_test(c, empty_content_is_content);
    tcase_add_test(c, wrong_digests_are_refused);
    tcase_add_test(c, unused_content_goes_and_used_stays);
    tcase_add_test(c, data_sets_are_read_in_full);
    tcase_add_test(c, old_data_sets_are_read);
    tcase_add_test(c, data_sets_of_other_kinds);
    tcase_add_test(c, tokens_say_who);
    tcase_add_test(c, the_last_admin_stays);
    tcase_add_test(c, tokens_are_imported);
    tcase_add_test(c, events_tell_a_life);
    tcase_add_test(c, followers_miss_nothing);
    tcase_add_test(c, metrics_are_prometheus_text);
    return su;
}
