/* The store: every statement prepares, connections recover and are tried again in time, fsync is
 * required. */
#include <arpa/inet.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

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

#define TRIES 12

/* A database that hangs up: where it listens, and when it was called. */
struct refusal {
    int fd, port;
    int64_t at_ns[TRIES];
};

static void *hang_up(void *arg)
{
    struct refusal *r = arg;
    for (int i = 0; i < TRIES; i++) {
        int fd = accept(r->fd, NULL, NULL);
        r->at_ns[i] = clock_mono_ns();
        close(fd);
    }
    close(r->fd); /* whoever calls now is refused at once */
    return NULL;
}

static void refusal_begin(struct refusal *r, pthread_t *thread)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof a;
    r->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_ge(r->fd, 0);
    ck_assert_int_eq(bind(r->fd, (struct sockaddr *)&a, n), 0);
    ck_assert_int_eq(listen(r->fd, 8), 0);
    ck_assert_int_eq(getsockname(r->fd, (struct sockaddr *)&a, &n), 0);
    r->port = ntohs(a.sin_port);
    ck_assert_int_eq(pthread_create(thread, NULL, hang_up, r), 0);
}

/* However long it was away: a server that is wanted looks again within seconds. The shortest of the
 * last pauses counts, because a busy machine only makes them longer. */
START_TEST(a_database_that_is_away_is_looked_for_each_second)
{
    static struct refusal r;
    struct store *db = NULL;
    pthread_t thread;
    char url[64];
    refusal_begin(&r, &thread);
    (void)snprintf(url, sizeof url, "host=127.0.0.1 port=%d dbname=x", r.port);
    struct store_opts opts = {.url = url};
    ck_ok(store_open(&opts, &db, &err), err);
    while (pthread_tryjoin_np(thread, NULL) != 0) {
        ck_fails(migrate_check(db, &err), AS_E_UNAVAILABLE, err, "cannot reach the database");
        clock_sleep_ms(5);
    }
    store_close(db);
    int64_t shortest_ns = INT64_MAX;
    for (int i = TRIES - 4; i < TRIES; i++)
        shortest_ns =
            r.at_ns[i] - r.at_ns[i - 1] < shortest_ns ? r.at_ns[i] - r.at_ns[i - 1] : shortest_ns;
    ck_assert_int_lt(shortest_ns, 2 * NS_PER_S);
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

/* What every table and sequence holds. */
static void content_of(const char *url, char ret[64])
{
    pg_fixture_text(
        url,
        "select md5(concat((select string_agg(concat(relname, query_to_xml(format('select md5("
        "string_agg(t::text, '';'' order by t::text)) from public.%I t', relname), true, true, "
        "'')), ';' order by relname) from pg_class where relkind = 'r' and relnamespace = "
        "'public'::regnamespace), (select string_agg(concat(sequencename, last_value), ';' order "
        "by sequencename) from pg_sequences where schemaname = 'public')))",
        ret, 64);
}

/* Of each kind of rows that tests leave; as many trials as make the tables large. */
static void fill(struct service *t, int trials)
{
    char hex[SHA256_HEX_SIZE], sql[400];
    (void)make_grid(t, "a", 4, "'max_trials': 4");
    (void)make_learner(t, "b", "'max_trials': 100000", "");
    struct claimed_row c = claim_one(t, "r", make_runner(t, "r", 1));
    finish(t, ref_of(&c), 1);
    tell(t, "b", ask_one(t, "b", "client").number, "client", 2);
    put_blob(t, "content", hex);
    snprintf(sql, sizeof sql,
             "insert into trial (sweep_key, number, state, origin, suggestion_index, attempt, "
             "params, suggestion, seed) select (select key from sweep where id = 'b'), n, "
             "'queued', 'suggested', n, 0, '{\"x\":0.5,\"y\":0.5}', '{}', n from "
             "generate_series(10, %d) n",
             trials + 9);
    pg_fixture_exec(t->url, sql);
}

/* The database that tests share (service_begin()), after few rows, and after many. */
START_TEST(what_a_test_left_is_gone)
{
    static struct service t;
    char url[PG_URL_SIZE], before[64], filled[64], after[64];
    content_of(s.url, before);
    service_begin(&t, 0);
    memcpy(url, t.url, sizeof url);
    for (int trials = 1; trials <= 12001; trials += 12000) {
        fill(&t, trials);
        content_of(t.url, filled);
        ck_assert_str_ne(before, filled);
        service_end(&t);
        service_begin(&t, 0);
        ck_assert_str_eq(t.url, url);
        content_of(t.url, after);
        ck_assert_str_eq(before, after);
        ck_assert_int_eq(atomic_load(&store_counters(t.db)->trials_claimed), 0);
        ck_assert_int_eq(pg_fixture_i64(url, "select pg_relation_size('trial')") == 0, trials > 1);
    }
    service_close(&t);
}
END_TEST

/* Where emptying tables is not enough, the next test has another database. */
START_TEST(a_changed_schema_is_not_shared)
{
    static const char *const changes[] = {"begin; drop view event_each; rollback", NULL};
    static struct service t;
    char url[PG_URL_SIZE];
    for (size_t i = 0; i < AS_ARRAY_LEN(changes); i++) {
        service_begin(&t, 0);
        memcpy(url, t.url, sizeof url);
        if (changes[i])
            pg_fixture_exec(url, changes[i]);
        else
            pg_fixture_kill_backends(url);
        service_end(&t);
        service_begin(&t, 0);
        ck_assert_str_ne(t.url, url);
        ck_assert_ptr_nonnull(make_sweep(&t, "a", "'max_trials': 1", ""));
        service_end(&t);
    }
    service_close(&t);
}
END_TEST

TEST_SUITE()
{
    Suite *su = suite_create("store");
    TCase *c = service_case(su, "store", &s, 0);
    tcase_add_test(c, every_statement_prepares);
    tcase_add_test(c, bad_urls_are_refused);
    tcase_add_test(c, an_absent_database_is_unavailable_at_once);
    tcase_add_test(c, a_database_that_is_away_is_looked_for_each_second);
    tcase_add_test(c, fsync_off_is_refused);
    tcase_add_test(c, arrays_survive_any_text);
    tcase_add_test(c, what_a_test_left_is_gone);
    tcase_add_test(c, a_changed_schema_is_not_shared);
    tcase_add_test(service_case_alone(su, "connections", &s, 0), a_killed_connection_is_replaced);
    return su;
}
