/* The store: every statement prepares, connections recover, fsync is required. */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "scheduler/services/migrate.h"
#include "scheduler/store/pg_priv.h"
#include "tests/support/check_main.h"
#include "tests/support/service.h"

static struct service s;
static struct as_err err;

/* A statement that names a missing column fails here, not in production. */
START_TEST(every_statement_prepares)
{
    PGconn *c = PQconnectdb(s.url);
    size_t n = 0;
    for (const struct stmt_set *const *set = store_stmt_sets; *set; set++) {
        for (size_t i = 0; i < (*set)->n; i++, n++) {
            const struct stmt *st = &(*set)->stmts[i];
            ck_assert_ptr_nonnull(st->name);
            PGresult *r = PQprepare(c, st->name, st->sql, 0, NULL);
            ck_assert_msg(PQresultStatus(r) == PGRES_COMMAND_OK, "%s: %s", st->name,
                          PQerrorMessage(c));
            PQclear(r);
        }
    }
    ck_assert_uint_gt(n, 60);
    ck_assert_uint_lt(n * 2, CONN_STMTS);
    PQfinish(c);
}
END_TEST

START_TEST(a_killed_connection_is_replaced)
{
    make_sweep(&s, "a", "'max_trials': 1", "");
    for (int i = 0; i < 5; i++) {
        pg_fixture_kill_backends(s.url);
        ck_assert_str_eq(sweep_of_id(&s, "a").id, "a");
    }
    ck_assert_int_ge(atomic_load(&store_counters(s.db)->connects), 6);
}
END_TEST

START_TEST(bad_urls_are_refused)
{
    struct store *db = NULL;
    struct store_opts opts = {.url = "postgresql://[nowhere"};
    ck_fails(store_open(&opts, &db, &err), AS_E_INVAL, err, "URL");
    opts = (struct store_opts){.url = s.url, .config = {.lease_ms = 1000, .heartbeat_ms = 900}};
    ck_fails(store_open(&opts, &db, &err), AS_E_INVAL, err, "twice as long");
    ck_assert_ptr_null(db);
}
END_TEST

START_TEST(an_absent_database_is_unavailable_at_once)
{
    struct store *db = NULL;
    struct store_opts opts = {.url = "host=/nonexistent dbname=x"};
    ck_ok(store_open(&opts, &db, &err), err);
    int64_t before = clock_mono_ns();
    for (int i = 0; i < 50; i++)
        ck_fails(migrate_check(db, &err), AS_E_UNAVAILABLE, err, "cannot reach the database");
    ck_assert_int_lt(clock_mono_ns() - before, 60 * NS_PER_S); /* a bound for a hang, not a speed */
    ck_assert_int_eq(store_up_ns(db), 0);
    store_close(db);
}
END_TEST

START_TEST(fsync_off_is_refused)
{
    struct store *db = NULL;
    struct store_opts opts = {.url = s.url};
    unsetenv("ASSAY_ALLOW_FSYNC_OFF");
    ck_ok(store_open(&opts, &db, &err), err);
    ck_fails(store_ready(db, &err), AS_E_CONFLICT, err, "fsync=off");
    setenv("ASSAY_ALLOW_FSYNC_OFF", "1", 1);
    store_close(db);
}
END_TEST

START_TEST(arrays_survive_any_text)
{
    const char *odd = "q\"u\\o{t},e'";
    AS_AUTO(str_done) struct str b = {0};
    array_open(&b);
    array_str(&b, odd);
    array_str(&b, "");
    array_close(&b);
    char sql[200], got[64];
    snprintf(sql, sizeof sql, "select ($txt$%s$txt$::text[])[1]", str_cstr(&b));
    pg_fixture_text(s.url, sql, got, sizeof got);
    ck_assert_str_eq(got, odd);
}
END_TEST

Suite *test_suite(void)
{
    Suite *su = suite_create("store");
    TCase *c = service_case(su, "store", &s, 0);
    tcase_add_test(c, every_statement_prepares);
    tcase_add_test(c, a_killed_connection_is_replaced);
    tcase_add_test(c, bad_urls_are_refused);
    tcase_add_test(c, an_absent_database_is_unavailable_at_once);
    tcase_add_test(c, fsync_off_is_refused);
    tcase_add_test(c, arrays_survive_any_text);
    return su;
}
