/* Models: versions of trials, their numbers, aliases, content that outlives its sweep, and what is
 * left when a transaction is lost. The files are those that the trainer writes, with other
 * weights. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "model/file/model_file.h"
#include "scheduler/content/blob_file.h"
#include "scheduler/content/blobs.h"
#include "scheduler/content/content_gc.h"
#include "scheduler/services/events.h"
#include "scheduler/services/models.h"
#include "scheduler/services/model_schema.h"
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
    epoch = make_runner(&s, "r", 8);
}

static void teardown(void)
{
    temp_folder_remove(dir);
}

/* A completed trial with one file. */
static int64_t trial_with(const char *name, const char *bytes, size_t len, double loss)
{
    char hex[SHA256_HEX_SIZE];
    struct claimed_row c = claim_one(&s, "r", epoch);
    struct attempt_ref ref = ref_of(&c);
    put_bytes(&s, bytes, len, hex);
    const struct file_row f = {.path = name, .size = (int64_t)len, .sha256 = hex};
    ck_ok(attempt_files(s.db, &ref, NULL, FILE_ARTIFACT, &f, 1, &err), err);
    measure(&s, ref, "val_error", 1, loss / 2);
    (void)finish(&s, ref, loss);
    return ref.number;
}

static int64_t trained(float weight, double loss)
{
    size_t len = 0;
    AS_AUTO(as_freep) char *bytes = model_bytes(dir, weight, &len);
    return trial_with("model.safetensors", bytes, len, loss);
}

static as_status add(const char *model, const char *sweep, int64_t trial,
                     struct model_version_row *ret, bool *ret_created)
{
    const struct model_request q = {.sweep = sweep, .trial = trial, .by = "me"};
    err = (struct as_err){0};
    return model_add(s.db, &s.a, model, &q, ret, ret_created, &err);
}

static struct model_version_row added(const char *model, const char *sweep, int64_t trial)
{
    struct model_version_row v;
    bool created;
    ck_ok(add(model, sweep, trial, &v, &created), err);
    return v;
}

static void refused(as_status st, const char *model, const char *sweep, int64_t trial,
                    const char *words)
{
    struct model_version_row v;
    bool created;
    ck_fails(add(model, sweep, trial, &v, &created), st, err, words);
}

static int64_t count(const char *from)
{
    char sql[200];
    (void)snprintf(sql, sizeof sql, "select count(*) from %s", from);
    return pg_fixture_i64(s.url, sql);
}

START_TEST(a_trial_becomes_a_version_once)
{
    struct model_version_row again;
    bool created = true;
    (void)make_sweep(&s, "s", "'max_trials': 2", "");
    int64_t number = trained(1, 0.5);
    struct model_version_row v = added("m", "s", number);
    ck_assert_int_eq(v.version, 1);
    ck_assert_str_eq(v.kind, "trial");
    ck_assert_str_eq(v.sweep_id, "s");
    ck_assert_str_eq(v.created_by, "me");
    ck_assert_str_eq(v.measured_on, "held-out rows");
    ck_assert(strstr(v.metrics, "\"val_error\": 0.25") && strstr(v.metrics, "\"loss\": 0.5"));
    ck_assert_str_eq(v.inputs, "[{\"name\":\"x\",\"kind\":\"number\",\"missing\":true},{\"name\":"
                               "\"c\",\"kind\":\"category\",\"missing\":false,\"values\":[\"u\","
                               "\"v\"]}]");
    ck_assert_str_eq(v.outputs,
                     "{\"target\":\"y\",\"classes\":[\"no\",\"yes\"],\"positive\":\"yes\"}");
    ck_assert(strstr(v.members, "\"kind\":\"mlp\"") && strstr(v.members, "\"weight\":1.0"));
    ck_assert(strstr(v.lineage, "\"sweep_id\":\"s\"") && strstr(v.lineage, "\"document\":{"));
    ck_ok(add("m", "s", number, &again, &created), err);
    ck_assert(!created && again.version == 1);
    /* the same in another model: one file, two versions */
    ck_assert_str_eq(added("other", "s", number).sha256, v.sha256);
    ck_assert_int_eq(added("m", "s", trained(2, 0.4)).version, 2);
    ck_assert_int_eq(count("model_version"), 3);
    ck_assert_int_eq(count("event where type = 'model.changed' and model = 'm'"), 2);
}
END_TEST

START_TEST(what_is_no_model_is_refused_and_leaves_nothing)
{
    size_t len = 0;
    AS_AUTO(as_freep) char *bytes = model_bytes(dir, 1, &len);
    (void)make_sweep(&s, "s", "'max_trials': 6", "");
    int64_t none = trial_with("notes.txt", "hello", 5, 1);
    int64_t fake = trial_with("model.safetensors", "hello", 5, 1);
    bytes[len - 1] ^= 1; /* a weight changed */
    int64_t altered = trial_with("model.safetensors", bytes, len, 1);
    struct claimed_row running = claim_one(&s, "r", epoch);
    refused(AS_E_UNSUPPORTED, "m", "s", none, "s/0 stored no model.safetensors");
    refused(AS_E_UNSUPPORTED, "m", "s", fake, "model.safetensors of trial s/1");
    refused(AS_E_UNSUPPORTED, "m", "s", altered, "model.safetensors of trial s/2");
    refused(AS_E_CONFLICT, "m", "s", ref_of(&running).number, "s/3 is running");
    refused(AS_E_NOT_FOUND, "m", "s", 77, "77");
    refused(AS_E_NOT_FOUND, "m", "nope", 0, "nope");
    refused(AS_E_CONFLICT, "m", "s", -1, "is running");
    refused(AS_E_INVAL, "-m", "s", none, "is not the name of a model");
    refused(AS_E_INVAL, "", "s", none, "is not the name of a model");
    refused(AS_E_INVAL, "a/b", "s", none, "is not the name of a model");
    ck_assert_int_eq(count("model"), 0);
    ck_assert_int_eq(count("event where type = 'model.changed'"), 0);
}
END_TEST

START_TEST(an_alias_moves_and_holds_its_version)
{
    struct model_row m;
    struct model_version_row v;
    (void)make_sweep(&s, "s", "'max_trials': 3", "");
    for (int i = 0; i < 3; i++)
        (void)added("m", "s", trained((float)i, 1 - i * 0.1));
    ck_ok(model_version_get(s.db, &s.a, "m", "default", &v, &err), err);
    ck_assert_int_eq(v.version, 3);
    ck_ok(model_alias_set(s.db, &s.a, "m", "champion", 1, &m, &err), err);
    ck_assert(m.default_version == 1 && strstr(m.aliases, "\"champion\" : 1"));
    ck_ok(model_version_get(s.db, &s.a, "m", "default", &v, &err), err);
    ck_assert_int_eq(v.version, 1);
    ck_assert_str_eq(v.aliases, "[\"champion\"]");
    ck_fails(model_version_delete(s.db, "m", "1", &err), AS_E_CONFLICT, err, "champion");
    ck_ok(model_alias_set(s.db, &s.a, "m", "champion", 2, &m, &err), err);
    ck_ok(model_version_delete(s.db, "m", "1", &err), err);
    ck_fails(model_version_get(s.db, &s.a, "m", "1", &v, &err), AS_E_NOT_FOUND, err, "version 1");
    ck_fails(model_version_delete(s.db, "m", "champion", &err), AS_E_CONFLICT, err, "champion");
    ck_fails(model_version_delete(s.db, "m", "default", &err), AS_E_INVAL, err, "default");
    ck_fails(model_version_get(s.db, &s.a, "m", "99999999999999999999", &v, &err), AS_E_NOT_FOUND,
             err, "no version");
    ck_fails(model_alias_set(s.db, &s.a, "m", "2nd", 2, &m, &err), AS_E_INVAL, err, "alias");
    ck_fails(model_alias_set(s.db, &s.a, "m", "default", 2, &m, &err), AS_E_INVAL, err, "default");
    ck_fails(model_alias_set(s.db, &s.a, "m", "x", 1, &m, &err), AS_E_NOT_FOUND, err, "version 1");
    ck_fails(model_alias_set(s.db, &s.a, "n", "x", 1, &m, &err), AS_E_NOT_FOUND, err, "model 'n'");
    ck_ok(model_alias_delete(s.db, "m", "champion", &err), err);
    ck_fails(model_alias_delete(s.db, "m", "champion", &err), AS_E_NOT_FOUND, err, "champion");
}
END_TEST

START_TEST(numbers_are_given_once)
{
    struct model_row m;
    (void)make_sweep(&s, "s", "'max_trials': 3", "");
    int64_t a = trained(1, 1), b = trained(2, 1);
    (void)added("m", "s", a);
    (void)added("m", "s", b);
    ck_ok(model_version_delete(s.db, "m", "2", &err), err);
    ck_assert_int_eq(added("m", "s", b).version, 3);
    ck_ok(model_delete(s.db, "m", &err), err);
    ck_fails(model_get(s.db, &s.a, "m", &m, &err), AS_E_NOT_FOUND, err, "model 'm'");
    ck_fails(model_delete(s.db, "m", &err), AS_E_NOT_FOUND, err, "model 'm'");
    struct model_page page;
    ck_ok(model_list(s.db, &s.a, &(struct page_req){0}, &page, &err), err);
    ck_assert_uint_eq(page.n, 0);
    ck_assert_int_eq(added("m", "s", a).version, 4);
}
END_TEST

/* The sweep goes, its files go, and the model's stays; it goes with the last version. */
START_TEST(a_model_outlives_its_sweep)
{
    struct content_gc care = {.db = s.db};
    struct content_report r;
    int64_t size = 0;
    (void)make_sweep(&s, "s", "'max_trials': 1", "");
    struct model_version_row v = added("m", "s", trained(1, 1));
    const char *file = arena_strdup(&s.a, v.sha256);
    struct reaper_report report;
    ck_ok(reaper_finish(&s.reaper, &report, &err), err);
    ck_ok(sweep_delete(s.db, "s", &err), err);
    pg_fixture_exec(s.url, "update blob set touched_at = now() - interval '2 days', released_at = "
                           "released_at - interval '2 days'");
    ck_ok(content_gc_tick(&care, &r, &err), err);
    ck_assert_int_eq(r.removed, 1); /* the trial's own file */
    ck_ok(blob_stat(s.db, file, &size, &err), err);
    ck_ok(model_version_get(s.db, &s.a, "m", "1", &v, &err), err);
    ck_assert_int_eq(size, v.size);
    AS_AUTO(blob_file_done) struct blob_file copy = {0};
    AS_AUTO(model_file_freep) struct model_file *f = NULL;
    ck_ok(blob_file_init(s.db, file, &copy, &err), err);
    ck_ok(model_file_read(copy.path, 1 << 20, &f, &err), err);
    ck_ok(model_delete(s.db, "m", &err), err);
    pg_fixture_exec(s.url, "update blob set touched_at = now() - interval '2 days', released_at = "
                           "released_at - interval '2 days'");
    ck_ok(content_gc_tick(&care, &r, &err), err);
    ck_assert_int_eq(r.removed, 1);
    ck_fails(blob_stat(s.db, file, &size, &err), AS_E_NOT_FOUND, err, "");
}
END_TEST

struct adder {
    pthread_t thread;
    int64_t trial, version;
};

static void *add_at_once(void *arg)
{
    struct adder *x = arg;
    AS_AUTO(arena_done) struct arena a = {0};
    struct as_err e = {0};
    struct model_version_row v;
    bool created;
    const struct model_request q = {.sweep = "s", .trial = x->trial};
    if (model_add(s.db, &a, "m", &q, &v, &created, &e) == AS_OK)
        x->version = v.version;
    return NULL;
}

START_TEST(added_at_once_they_get_distinct_numbers)
{
    struct adder x[8] = {0};
    bool seen[5] = {false};
    (void)make_sweep(&s, "s", "'max_trials': 4", "");
    for (int i = 0; i < 4; i++)
        x[i].trial = x[i + 4].trial = trained((float)i, 1);
    for (size_t i = 0; i < 8; i++)
        ck_assert_int_eq(pthread_create(&x[i].thread, NULL, add_at_once, &x[i]), 0);
    for (size_t i = 0; i < 8; i++)
        (void)pthread_join(x[i].thread, NULL);
    for (size_t i = 0; i < 4; i++) {
        ck_assert_int_eq(x[i].version, x[i + 4].version); /* one content, one version */
        ck_assert(x[i].version >= 1 && x[i].version <= 4 && !seen[x[i].version]);
        seen[x[i].version] = true;
    }
}
END_TEST

START_TEST(lists_have_pages)
{
    struct model_page models;
    struct model_version_page versions;
    (void)make_sweep(&s, "s", "'max_trials': 3", "");
    for (int i = 0; i < 3; i++)
        (void)added("m", "s", trained((float)i, 1));
    (void)added("Z", "s", 0);
    ck_ok(model_list(s.db, &s.a, &(struct page_req){.size = 1}, &models, &err), err);
    ck_assert_str_eq(models.rows[0].name, "Z");
    ck_ok(model_list(s.db, &s.a, &(struct page_req){.cursor = models.next_cursor}, &models, &err),
          err);
    ck_assert(models.n == 1 && !models.next_cursor && models.rows[0].versions == 3);
    struct page_req page = {.size = 2};
    ck_ok(model_version_list(s.db, &s.a, "m", &page, &versions, &err), err);
    ck_assert(versions.n == 2 && versions.rows[0].version == 3 && versions.rows[1].version == 2);
    ck_assert(!versions.rows[0].inputs && strcmp(versions.rows[0].trials, "[2]") == 0);
    page.cursor = versions.next_cursor;
    ck_ok(model_version_list(s.db, &s.a, "m", &page, &versions, &err), err);
    ck_assert(versions.n == 1 && versions.rows[0].version == 1 && !versions.next_cursor);
    page.cursor = models.rows[0].name;
    ck_fails(model_version_list(s.db, &s.a, "m", &page, &versions, &err), AS_E_INVAL, err,
             "cursor");
    ck_fails(model_version_list(s.db, &s.a, "n", &(struct page_req){0}, &versions, &err),
             AS_E_NOT_FOUND, err, "model 'n'");
}
END_TEST

START_TEST(schemas_of_other_data)
{
    struct dataset_info image = {.input = DATASET_IMAGE,
                                 .task = DATASET_REGRESSION,
                                 .n_features = 24,
                                 .n_outputs = 2,
                                 .height = 2,
                                 .width = 4,
                                 .channels = 3};
    struct dataset_info text = {.input = DATASET_TOKEN_TEXT,
                                .task = DATASET_LANGUAGE_MODELING,
                                .n_features = 1,
                                .n_outputs = 256};
    struct dataset_info several = {.input = DATASET_TABLE,
                                   .task = DATASET_REGRESSION,
                                   .n_features = 3,
                                   .n_outputs = 2,
                                   .target = (char *)"a,b"};
    struct dataset_info comma = several;
    comma.n_outputs = 1;
    const struct {
        json_t *found;
        const char *expected;
    } rows[] = {
        {model_inputs_json(&image),
         "[{\"kind\":\"image\",\"missing\":false,\"name\":\"image\",\"shape\":[2,4,3]}]"},
        {model_outputs_json(&image), "{\"targets\":[\"0\",\"1\"]}"},
        {model_inputs_json(&text),
         "[{\"kind\":\"tokens\",\"missing\":false,\"name\":\"tokens\",\"size\":256}]"},
        {model_outputs_json(&text), "{\"size\":256}"},
        {model_inputs_json(&several),
         "[{\"kind\":\"numbers\",\"missing\":false,\"name\":\"features\",\"size\":3}]"},
        {model_outputs_json(&several), "{\"targets\":[\"a\",\"b\"]}"},
        {model_outputs_json(&comma), "{\"targets\":[\"a,b\"]}"},
    };
    for (size_t i = 0; i < AS_ARRAY_LEN(rows); i++) {
        AS_AUTO(as_freep) char *found = json_format(rows[i].found);
        json_decref(rows[i].found);
        ck_assert_str_eq(found, rows[i].expected);
    }
}
END_TEST

TEST_SUITE()
{
    Suite *suite = suite_create("scheduler/services/models");
    TCase *t = service_case(suite, "models", &s, 0);
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, a_trial_becomes_a_version_once);
    tcase_add_test(t, what_is_no_model_is_refused_and_leaves_nothing);
    tcase_add_test(t, an_alias_moves_and_holds_its_version);
    tcase_add_test(t, numbers_are_given_once);
    tcase_add_test(t, a_model_outlives_its_sweep);
    tcase_add_test(t, added_at_once_they_get_distinct_numbers);
    tcase_add_test(t, lists_have_pages);
    tcase_add_test(t, schemas_of_other_data);
    return suite;
}
