/* The program and its database, which starts late, stops and returns, or takes no writes. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "tests/api/server/assayd_rig.h"
#include "tests/support/check_main.h"

/* The status of /readyz, until it is `want`. */
static void wait_readyz(const char *url, int want)
{
    struct rest nobody = {url, NULL};
    int64_t until = clock_mono_ns() + PATIENCE_MS * NS_PER_MS;
    int status = 0;
    while (status != want && clock_mono_ns() < until) {
        REPLY_AUTO r = rest_call(&nobody, "GET", "/readyz", NULL);
        status = r.status;
        clock_sleep_ms(20);
    }
    ck_assert_int_eq(status, want);
}

START_TEST(test_database_restart)
{
    char url[128], token[128], buf[80];
    pid_t pid = rig_start(url, token);
    struct rest admin = {url, token}, nobody = {url, NULL};
    wait_readyz(url, 200);
    pg_fixture_stop();
    wait_readyz(url, 503);
    REPLY_AUTO alive = rest_call(&nobody, "GET", "/healthz", NULL);
    ck_status(alive, 200);
    REPLY_AUTO away = rest_call(&admin, "GET", "/v1/sweeps", NULL);
    ck_status(away, 503);
    ck_assert_str_eq(reply_str(&away, "code"), "unavailable");
    ck_assert_str_ne(reply_header(&away, "Retry-After", buf, sizeof buf), "");
    pg_fixture_continue();
    wait_readyz(url, 200);
    REPLY_AUTO back = rest_call(&admin, "GET", "/v1/sweeps", NULL);
    ck_status(back, 200);
    rig_stop(pid);
}
END_TEST

/* A database that takes no writes: not ready, and why is nobody's business without a token. */
START_TEST(test_database_is_read_only)
{
    char url[128], token[128], name[64], sql[300];
    pid_t pid = rig_start(url, token);
    char *last = token + strlen(token) - 1;
    *last = *last == 'a' ? 'b' : 'a'; /* a guess that has the form of a token */
    struct rest nobody = {url, NULL}, guesser = {url, token};
    wait_readyz(url, 200);
    pg_fixture_text(rig_database, "select current_database()", name, sizeof name);
    (void)snprintf(sql, sizeof sql, "alter database %s set default_transaction_read_only = on",
                   name);
    pg_fixture_exec(rig_database, sql);
    pg_fixture_kill_backends(rig_database);
    wait_readyz(url, 503);
    REPLY_AUTO hidden = rest_call(&nobody, "GET", "/readyz", NULL);
    ck_status(hidden, 503);
    ck_assert_str_eq(reply_str(&hidden, "detail"), "the database does not take writes");
    assayd_await_log(pid, "read-only transaction");
    (void)snprintf(
        sql, sizeof sql,
        "begin read write; alter database %s reset default_transaction_read_only; commit", name);
    pg_fixture_exec(rig_database, sql);
    pg_fixture_kill_backends(rig_database);
    wait_readyz(url, 200);

    pg_fixture_stop(); /* its address is in the error of a connection that fails */
    wait_readyz(url, 503);
    REPLY_AUTO away = rest_call(&nobody, "GET", "/readyz", NULL);
    ck_assert_str_eq(reply_str(&away, "detail"), "the database cannot be reached");
    REPLY_AUTO guessed = rest_call(&guesser, "GET", "/v1/sweeps", NULL);
    ck_status(guessed, 503);
    ck_assert_str_eq(reply_str(&guessed, "detail"), "the token cannot be checked now");
    pg_fixture_continue();
    wait_readyz(url, 200);
    rig_stop(pid);
}
END_TEST

START_TEST(test_database_comes_late)
{
    char url[128], token[128];
    (void)unlink(rig_file("url"));
    pg_fixture_empty_database(rig_database);
    pg_fixture_stop();
    const char *const args[] = {"--listen",           "127.0.0.1:0",     "--database",
                                rig_database,         "--address-file",  rig_file("url"),
                                "--admin-token-file", rig_file("admin"), NULL};
    pid_t pid = assayd_start(rig_dir, args);
    assayd_await_log(pid, "waiting for the database");
    ck_assert_int_ne(access(rig_file("url"), F_OK), 0);
    pg_fixture_continue();
    rig_await_ready(pid, url, token);
    struct rest admin = {url, token};
    REPLY_AUTO r = rest_call(&admin, "GET", "/v1/sweeps", NULL);
    ck_status(r, 200);
    rig_stop(pid);
}
END_TEST

TEST_SUITE()
{
    TCase *tc;
    Suite *s = rig_suite("api_assayd_database", &tc);
    tcase_add_test(tc, test_database_restart);
    tcase_add_test(tc, test_database_is_read_only);
    tcase_add_test(tc, test_database_comes_late);
    return s;
}
