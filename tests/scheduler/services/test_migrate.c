/* Migrations: applied once, and refused if they do not fit. */
#include <pthread.h>
#include <string.h>

#include "scheduler/services/migrate.h"
#include "scheduler/store/migration_store.h"
#include "tests/support/check_main.h"
#include "tests/support/pg_fixture.h"

static char url[PG_URL_SIZE];
static struct store *db;
static struct as_err err;

static void open_empty(void)
{
    pg_fixture_empty_database(url);
    struct store_opts opts = {.url = url};
    ck_ok(store_open(&opts, &db, &err), err);
}

static void close_db(void)
{
    store_close(db);
}

START_TEST(applies_all_and_then_nothing)
{
    size_t n = 0;
    ck_fails(migrate_check(db, &err), AS_E_CONFLICT, err, "0 of");
    ck_ok(migrate_run(db, &n, &err), err);
    ck_assert_uint_eq(n, store_migrations_count);
    ck_ok(migrate_check(db, &err), err);
    ck_ok(migrate_run(db, &n, &err), err);
    ck_assert_uint_eq(n, 0);
    ck_assert_int_eq(pg_fixture_i64(url, "select count(*) from schema_migration where "
                                         "length(sha256) = 64 and name <> ''"),
                     (int64_t)store_migrations_count);
}
END_TEST

START_TEST(refuses_a_changed_checksum)
{
    ck_ok(migrate_run(db, NULL, &err), err);
    pg_fixture_exec(url, "update schema_migration set sha256 = repeat('0', 64) where version = 2");
    ck_fails(migrate_check(db, &err), AS_E_CONFLICT, err, "0002_sweeps was applied");
    ck_fails(migrate_run(db, NULL, &err), AS_E_CONFLICT, err, "never change");
}
END_TEST

START_TEST(refuses_a_newer_schema)
{
    ck_ok(migrate_run(db, NULL, &err), err);
    pg_fixture_exec(url, "insert into schema_migration (version, name, sha256) values (9999, "
                         "'future', repeat('0', 64))");
    ck_fails(migrate_run(db, NULL, &err), AS_E_CONFLICT, err, "9999_future");
    ck_fails(store_ready(db, &err), AS_E_CONFLICT, err, "newer");
}
END_TEST

/* A migration that fails leaves nothing behind, and those before it stay. */
START_TEST(a_failure_leaves_nothing_behind)
{
    size_t n = 0;
    pg_fixture_exec(url, "create table trial (x int)"); /* collides with 0002 */
    ck_fails(migrate_run(db, NULL, &err), AS_E_INTERNAL, err, "0002_sweeps");
    ck_assert_int_eq(pg_fixture_i64(url, "select count(*) from schema_migration"), 1);
    ck_assert_int_eq(pg_fixture_i64(url, "select (to_regclass('sweep') is null)::int"), 1);
    pg_fixture_exec(url, "drop table trial");
    ck_ok(migrate_run(db, &n, &err), err);
    ck_assert_uint_eq(n, store_migrations_count - 1);
}
END_TEST

/* A database with sweeps of the version before. */
START_TEST(old_sweeps_get_an_order_of_ending)
{
    pg_fixture_exec(url, "create table client (x int)"); /* collides with 0004 */
    ck_fails(migrate_run(db, NULL, &err), AS_E_INTERNAL, err, "0004_search");
    pg_fixture_exec(
        url, "insert into sweep (id, name, document, metric, goal, method, seed, planned, "
             "max_restarts, grace_ms) values ('a', 'a', '{}', 'm', 'minimize', 'random', 1, 9, 3, "
             "0); insert into trial (sweep_key, number, state, attempt, params, suggestion, seed, "
             "value, runner, epoch, claimed_at, started_at, finished_at) select 1, i, case i % 4 "
             "when 0 then 'completed' when 1 then 'failed' when 2 then 'running' else 'queued' "
             "end, 1, '{}', '{}', 0, 0.5, 'r', 1, now(), now(), case when i % 4 < 2 then now() - "
             "i * interval '1 s' end from generate_series(0, 7) i; insert into attempt (sweep_key, "
             "number, attempt, runner, epoch, claim_id) select 1, i, 1, 'r', 1, 'c' from "
             "generate_series(0, 7) i where i % 4 = 2; drop table client");
    ck_ok(migrate_run(db, NULL, &err), err);
    ck_assert_int_eq(pg_fixture_i64(url, "select n_suggested from sweep"), 8);
    ck_assert_int_eq(pg_fixture_i64(url, "select finish_seq from sweep"), 4);
    ck_assert_int_eq(pg_fixture_i64(url, "select count(*) from trial where suggestion_index = "
                                         "number and (feasible is not null) = (state = "
                                         "'completed')"),
                     8);
    /* here, higher numbers ended earlier */
    ck_assert_int_eq(pg_fixture_i64(url, "select finish_seq from trial where number = 5"), 1);
    ck_assert_int_eq(pg_fixture_i64(url, "select finish_seq from trial where number = 0"), 4);
}
END_TEST

/* Points of before are cut into chunks, by series; those that are older than times have none. */
START_TEST(old_points_become_chunks)
{
    pg_fixture_exec(url, "create table measurement_chunk (x int)"); /* collides with 0028 */
    ck_fails(migrate_run(db, NULL, &err), AS_E_INTERNAL, err, "0028_chunks");
    pg_fixture_exec(url, "create table plain as select 1::bigint as sweep_key, n as number, m as "
                         "metric, 1 as attempt, 3 * i as step, i / 7.0::float8 as value, case when "
                         "i > 50 then now() end as recorded_at from generate_series(0, 2) n, "
                         "(values ('a'), ('b')) m(m), generate_series(0::bigint, 64 * n) i; insert "
                         "into measurement select * from plain; drop table measurement_chunk");
    ck_ok(migrate_run(db, NULL, &err), err);
    ck_assert_int_eq(pg_fixture_i64(url, "select count(*) from (select * from measurement except "
                                         "all select * from plain) x"),
                     0);
    ck_assert_int_eq(pg_fixture_i64(url, "select count(*) from measurement"), 2 * (1 + 65 + 129));
    ck_assert_int_eq(pg_fixture_i64(url, "select count(*) from measurement_chunk"),
                     2 * (1 + 2 + 3));
}
END_TEST

/* Sweeps from before groups continue as they began: each trial alone. */
START_TEST(old_sweeps_have_no_groups)
{
    pg_fixture_exec(url, "create table trial_group (x int)"); /* collides with 0005's index */
    ck_fails(migrate_run(db, NULL, &err), AS_E_INTERNAL, err, "0005_groups");
    pg_fixture_exec(
        url,
        "insert into sweep (id, name, document, metric, goal, method, seed, planned, "
        "max_restarts, grace_ms) values ('a', 'a', '{}', 'm', 'minimize', 'random', 1, 9, 3, "
        "0); insert into trial (sweep_key, number, state, attempt, params, suggestion, seed, "
        "suggestion_index, runner, epoch, claimed_at, started_at) select 1, i, case i % 2 when "
        "0 then 'running' else 'queued' end, 1, '{}', '{}', 0, i, 'r', 1, now(), now() from "
        "generate_series(0, 5) i; insert into attempt (sweep_key, number, attempt, runner, "
        "epoch, claim_id, ended_at, outcome) select 1, i, 1, 'r', 1, 'c', case i % 2 when 1 "
        "then now() end, case i % 2 when 1 then 'released' end from generate_series(0, 5) i; "
        "drop table trial_group");
    ck_ok(migrate_run(db, NULL, &err), err);
    ck_assert_int_eq(pg_fixture_i64(url, "select count(*) from sweep where max_group is null"), 1);
    ck_assert_int_eq(pg_fixture_i64(url, "select count(*) from trial where shape is null and "
                                         "bytes_per_member is null and group_id is null"),
                     6);
    /* and the table has what groups need */
    ck_assert_int_eq(pg_fixture_i64(url, "select count(*) from pg_constraint where conname in "
                                         "('trial_shaped', 'trial_grouped', 'attempt_grouped')"),
                     3);
}
END_TEST

static void *migrate_thread(void *arg)
{
    struct store *own = NULL;
    struct store_opts opts = {.url = url};
    struct as_err e = {0};
    as_status *st = arg;
    *st = store_open(&opts, &own, &e);
    if (*st == AS_OK)
        *st = migrate_run(own, NULL, &e);
    store_close(own);
    return NULL;
}

START_TEST(many_at_once_apply_once)
{
    pthread_t threads[4];
    as_status st[4];
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, migrate_thread, &st[i]), 0);
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
        ck_assert_int_eq(st[i], AS_OK);
    }
    ck_ok(migrate_check(db, &err), err);
}
END_TEST

START_TEST(versions_ascend_without_holes)
{
    for (size_t i = 0; i < store_migrations_count; i++)
        ck_assert_int_eq(store_migrations[i].version, (int)i + 1);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("migrate");
    TCase *c = tcase_create("migrate");
    pg_fixture_start();
    tcase_add_checked_fixture(c, open_empty, close_db);
    tcase_add_test(c, applies_all_and_then_nothing);
    tcase_add_test(c, refuses_a_changed_checksum);
    tcase_add_test(c, refuses_a_newer_schema);
    tcase_add_test(c, a_failure_leaves_nothing_behind);
    tcase_add_test(c, old_sweeps_get_an_order_of_ending);
    tcase_add_test(c, old_points_become_chunks);
    tcase_add_test(c, old_sweeps_have_no_groups);
    tcase_add_test(c, many_at_once_apply_once);
    tcase_add_test(c, versions_ascend_without_holes);
    suite_add_tcase(s, c);
    return s;
}
