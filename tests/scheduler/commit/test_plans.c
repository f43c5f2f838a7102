/* The plans of statements on sets, made while the tables are empty and nobody has analysed them, or
 * when they have few rows and somebody has: these plans stay when the tables have grown. Each row
 * is found by its whole key. */
#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "scheduler/store/pg_priv.h"
#include "tests/support/check_main.h"
#include "tests/support/service.h"

static struct service here;

static const struct stmt *stmt_named(const char *name)
{
    for (size_t i = 0; store_stmt_sets[i]; i++)
        for (size_t k = 0; k < store_stmt_sets[i]->n; k++)
            if (as_streq(store_stmt_sets[i]->stmts[k].name, name))
                return &store_stmt_sets[i]->stmts[k];
    ck_abort_msg("there is no statement %s", name);
}

static int count_parameters(const char *sql)
{
    int most = 0;
    for (const char *s = strchr(sql, '$'); s; s = strchr(s + 1, '$')) {
        int n = (int)strtol(s + 1, NULL, 10);
        most = n > most ? n : most;
    }
    return most;
}

/* The plan of a statement, as text. */
static void explain(PGconn *c, const struct stmt *s, struct str *ret)
{
    AS_AUTO(str_done) struct str sql = {0};
    PGresult *res = PQprepare(c, s->name, s->sql, 0, NULL);
    ck_assert_msg(PQresultStatus(res) == PGRES_COMMAND_OK, "%s: %s", s->name, PQerrorMessage(c));
    PQclear(res);
    str_printf(&sql, "explain (costs off) execute %s(", s->name);
    for (int i = 0, n = count_parameters(s->sql); i < n; i++)
        str_puts(&sql, i ? ", null" : "null");
    str_puts(&sql, ")");
    res = PQexec(c, str_cstr(&sql));
    ck_assert_msg(PQresultStatus(res) == PGRES_TUPLES_OK, "%s: %s", s->name, PQerrorMessage(c));
    str_clear(ret);
    for (int i = 0; i < PQntuples(res); i++)
        str_printf(ret, "%s\n", PQgetvalue(res, i, 0));
    PQclear(res);
}

/* Does every scan of an index of that name use that column? */
static bool uses_column(const char *plan, const char *index, const char *column)
{
    for (const char *s = strstr(plan, index); s; s = strstr(s + 1, index)) {
        const char *cond = strstr(s, "Index Cond:");
        const char *end = cond ? strchr(cond, '\n') : NULL;
        const char *at = cond ? strstr(cond, column) : NULL;
        if (!at || at > end)
            return false;
    }
    return true;
}

/* A database without trials, and a connection that plans without looking at values. */
static PGconn *connect_for_plans(void)
{
    char url[PG_URL_SIZE];
    pg_fixture_database(url);
    PGconn *c = PQconnectdb(url);
    PGresult *res =
        PQexec(c, "set plan_cache_mode=force_generic_plan; set enable_hashjoin=off; set "
                  "enable_mergejoin=off; set enable_seqscan=off; set enable_bitmapscan=off; set "
                  "enable_material=off; set enable_memoize=off; set jit=off");
    ck_assert_int_eq(PQresultStatus(res), PGRES_COMMAND_OK);
    PQclear(res);
    return c;
}

START_TEST(each_row_is_found_by_its_key)
{
    static const char *const statements[] = {
        "trial_move",     "attempt_end",   "measurement_latest", "trial_lock_each",
        "trial_get_many", "batch_find",    "batch_facts",        "batch_extend",
        "claims_begin",   "claims_sweeps", "claims_queue"};
    AS_AUTO(str_done) struct str plan = {0};
    PGconn *c = connect_for_plans();
    for (size_t i = 0; i < AS_ARRAY_LEN(statements); i++) {
        explain(c, stmt_named(statements[i]), &plan);
        const char *p = str_cstr(&plan);
        ck_assert_msg(uses_column(p, "using trial_pkey", "number") &&
                          uses_column(p, "using attempt_pkey", "number") &&
                          !strstr(p, "Seq Scan on trial") && !strstr(p, "Seq Scan on attempt") &&
                          !strstr(p, "Seq Scan on sweep"),
                      "%s:\n%s", statements[i], p);
    }
    PQfinish(c);
}
END_TEST

/* Of a sweep with a million completed trials, the few others are found by their state. */
START_TEST(trials_that_did_not_complete_are_found_by_their_state)
{
    static const char *const statements[] = {"trial_list_open_up", "trial_list_open_down",
                                             "trial_ended"};
    AS_AUTO(str_done) struct str plan = {0};
    PGconn *c = connect_for_plans();
    for (size_t i = 0; i < AS_ARRAY_LEN(statements); i++) {
        explain(c, stmt_named(statements[i]), &plan);
        ck_assert_msg(strstr(str_cstr(&plan), "using trial_open") &&
                          uses_column(str_cstr(&plan), "using trial_open", "state"),
                      "%s:\n%s", statements[i], str_cstr(&plan));
    }
    PQfinish(c);
}
END_TEST

/* As autovacuum does after a minute: a few sweeps are one page, which is read whole in no time. It
 * grows with each commit, and the plan stays. */
START_TEST(few_rows_that_were_analysed_are_found_by_their_key)
{
    static const char *const statements[] = {
        "sweep_lock",    "sweep_lock_many", "sweep_lock_free", "trial_lock_free", "trial_move",
        "batch_find",    "batch_facts",     "claims_lock",     "claims_held",     "claims_turns",
        "claims_sweeps", "claims_queue",    "claims_begin"};
    AS_AUTO(str_done) struct str plan = {0};
    AS_AUTO(conn_closep) struct conn *c = NULL;
    struct as_err err = {0};
    for (int i = 0; i < 8; i++) {
        char name[8];
        (void)snprintf(name, sizeof name, "s%d", i);
        make_sweep(&here, name, "'max_trials': 8", "");
    }
    (void)claim(&here, "r", make_runner(&here, "r", 8), 8);
    pg_fixture_exec(here.url, "vacuum analyze");
    ck_ok(conn_open(here.url, "plans", "", &c, &err), err);
    PQclear(PQexec(c->pg, "set plan_cache_mode=force_generic_plan"));
    for (size_t i = 0; i < AS_ARRAY_LEN(statements); i++) {
        explain(c->pg, stmt_named(statements[i]), &plan);
        ck_assert_msg(!strstr(str_cstr(&plan), "Seq Scan on sweep_") &&
                          !strstr(str_cstr(&plan), "Seq Scan on trial") &&
                          !strstr(str_cstr(&plan), "Seq Scan on attempt") &&
                          !strstr(str_cstr(&plan), "Seq Scan on runner"),
                      "%s:\n%s", statements[i], str_cstr(&plan));
    }
}
END_TEST

TEST_SUITE()
{
    Suite *suite = suite_create("commit_plans");
    TCase *t = tcase_create("plans");
    pg_fixture_start();
    tcase_add_test(t, each_row_is_found_by_its_key);
    tcase_add_test(t, trials_that_did_not_complete_are_found_by_their_state);
    suite_add_tcase(suite, t);
    tcase_add_test(service_case_alone(suite, "analysed", &here, 0),
                   few_rows_that_were_analysed_are_found_by_their_key);
    return suite;
}
