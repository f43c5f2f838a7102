#include "bench/scheduler/sets.h"

#include <libpq-fe.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "bench/scheduler/server.h"
#include "bench/scheduler/usage.h"

#define CONNECTIONS_MAX 8

/* The names of a set: $1 keys of sweeps, $2 numbers. */
#define SET "unnest($1::bigint[], $2::int[]) as l(sweep_key, number)"
#define SAME(t) t ".sweep_key = l.sweep_key and " t ".number = l.number"
#define EVENT_ID "(pg_current_xact_id()::text::bigint << 20) + row_number() over () - 1"

/* What the two transactions of a set run: trials begin; they measure and end. */
static const char *const lock_runner = "select from runner where name = $1 for no key update";
static const char *const lock_sweeps =
    "select from sweep where key = any($1::bigint[]) order by key for no key update";
/* $1 the sweeps, $2 how many, $3 trials of the set, $4 runner. */
static const char *const begin_trials =
    "with l as (select u.key, s.n_total + k / $2::int as number, k from generate_series(0, "
    "$3::int - 1) k join unnest($1::bigint[]) with ordinality u(key, i) on u.i = 1 + k % $2::int "
    "join sweep s on s.key = u.key), begun as (insert into trial (sweep_key, number, state, "
    "attempt, params, suggestion, seed, origin, suggestion_index, runner, epoch, claimed_at, "
    "started_at) select key, number, 'running', 1, '{\"x\":0.5}', '{}', k, 'suggested', number, "
    "$4, 1, now(), now() from l returning sweep_key, number), attempts as (insert into attempt "
    "(sweep_key, number, attempt, runner, epoch, claim_id) select sweep_key, number, 1, $4, 1, "
    "'c' from begun), events as (insert into event (id, type, sweep_key, sweep, number, state, "
    "attempt, runner) select " EVENT_ID ", 'trial.changed', b.sweep_key, s.id, b.number, "
    "'running', 1, $4 from begun b join sweep s on s.key = b.sweep_key) select "
    "array_agg(sweep_key), array_agg(number) from begun";
static const char *const lock_trials =
    "select from trial t join " SET " on " SAME("t") " order by t.sweep_key, t.number for no key "
                                                     "update of t";
static const char *const add_points =
    "insert into measurement_chunk (sweep_key, number, metric, attempt, first_step, steps, "
    "measured, "
    "recorded) select sweep_key, number, 'loss', 1, 0, array[0], array[0.5], array[0] from " SET;
/* No condition beyond the key: with one the planner may prefer another index. */
static const char *const end_trials =
    "with l as materialized (select sweep_key, number, (select finish_seq from sweep s where s.key "
    "= sweep_key) + row_number() over (partition by sweep_key order by number) as seq from " SET
    "), moved as (update trial t set state = 'completed', finished_at = clock_timestamp(), "
    "finish_seq = l.seq, feasible = true, value = 0.5, step = 0, metrics = t.metrics || "
    "'{\"loss\": 0.5}' from l where " SAME(
        "t") " returning t.sweep_key, t.number), attempts as (update attempt x set ended_at = "
             "clock_timestamp(), outcome = 'completed', reported = 'completed', exit_code = 0 "
             "from " SET " where " SAME(
                 "x") ") insert into event (id, type, sweep_key, sweep, number, state, attempt, "
                      "value) select " EVENT_ID
                      ", 'trial.changed', m.sweep_key, (select s.id from sweep s where s.key = "
                      "m.sweep_key), m.number, 'completed', 1, 0.5 from moved m";

struct job {
    const char *url;
    char keys[200]; /* of the sweeps, as an array */
    char n_sweeps[8], set[8], runner[16];
    int64_t until_ns;
    int64_t sets; /* done */
};

static PGresult *check(PGconn *c, PGresult *r)
{
    ExecStatusType st = PQresultStatus(r);
    if (st != PGRES_COMMAND_OK && st != PGRES_TUPLES_OK)
        wire_give_up("sets", PQerrorMessage(c));
    return r;
}

static void run(PGconn *c, const char *name, int n, const char *const *values)
{
    PQclear(check(c, PQexecPrepared(c, name, n, values, NULL, NULL, 0)));
}

static void command(PGconn *c, const char *sql)
{
    PQclear(check(c, PQexec(c, sql)));
}

static void prepare(PGconn *c)
{
    const char *const stmts[][2] = {
        {"lock_runner", lock_runner}, {"lock_sweeps", lock_sweeps}, {"begin_trials", begin_trials},
        {"lock_trials", lock_trials}, {"add_points", add_points},   {"end_trials", end_trials},
    };
    /* On tables that nobody has analysed a plan of a set may read a table from end to end. */
    command(c, "set enable_seqscan = off; set enable_bitmapscan = off; set enable_hashjoin = off; "
               "set enable_mergejoin = off; set enable_material = off; set plan_cache_mode = "
               "force_generic_plan");
    for (size_t i = 0; i < AS_ARRAY_LEN(stmts); i++)
        PQclear(check(c, PQprepare(c, stmts[i][0], stmts[i][1], 0, NULL)));
}

static void one_set(PGconn *c, const struct job *j)
{
    const char *const runner[] = {j->runner}, *const keys[] = {j->keys};
    const char *const begin[] = {j->keys, j->n_sweeps, j->set, j->runner};
    command(c, "begin");
    run(c, "lock_runner", 1, runner);
    run(c, "lock_sweeps", 1, keys);
    PGresult *r = check(c, PQexecPrepared(c, "begin_trials", 4, begin, NULL, NULL, 0));
    const char *const names[] = {PQgetvalue(r, 0, 0), PQgetvalue(r, 0, 1)};
    command(c, "commit");
    command(c, "begin");
    run(c, "lock_sweeps", 1, keys);
    run(c, "lock_trials", 2, names);
    run(c, "add_points", 2, names);
    run(c, "end_trials", 2, names);
    command(c, "commit");
    PQclear(r);
}

static void *work(void *arg)
{
    struct job *j = arg;
    PGconn *c = PQconnectdb(j->url);
    if (PQstatus(c) != CONNECTION_OK)
        wire_give_up("sets", PQerrorMessage(c));
    prepare(c);
    do {
        one_set(c, j);
        j->sets++;
    } while (clock_mono_ns() < j->until_ns);
    PQfinish(c);
    return NULL;
}

/* The keys of the sweeps, which a server made in the order of their names. */
static void make_sweeps(struct server *s, int sweeps, char *ret_keys, int size)
{
    char name[24];
    for (int i = 0; i < sweeps; i++) {
        (void)snprintf(name, sizeof name, "sweep-%d", i);
        server_add_sweep(s, name, NULL);
    }
    pg_fixture_text(s->url, "select array_agg(key order by key) from sweep", ret_keys, size);
}

struct floor sets_cycles(int sweeps, int set, int connections, double seconds)
{
    struct server s;
    struct job jobs[CONNECTIONS_MAX] = {0};
    pthread_t threads[CONNECTIONS_MAX];
    char keys[200];
    int64_t done = 0;
    server_start(&s);
    make_sweeps(&s, sweeps, keys, sizeof keys);
    for (int i = 0; i < connections; i++) {
        struct job *j = &jobs[i];
        *j = (struct job){.url = s.url};
        (void)snprintf(j->keys, sizeof j->keys, "%s", keys);
        (void)snprintf(j->n_sweeps, sizeof j->n_sweeps, "%d", sweeps);
        (void)snprintf(j->set, sizeof j->set, "%d", set);
        (void)snprintf(j->runner, sizeof j->runner, "bench-%d", i);
        (void)server_add_runner(&s, j->runner, set);
    }
    struct usage begin = usage_now(0);
    int64_t begin_ns = clock_mono_ns();
    for (int i = 0; i < connections; i++) {
        jobs[i].until_ns = begin_ns + (int64_t)(seconds * NS_PER_S);
        if (pthread_create(&threads[i], NULL, work, &jobs[i]) != 0)
            wire_give_up("sets", "no thread");
    }
    for (int i = 0; i < connections; i++) {
        (void)pthread_join(threads[i], NULL);
        done += jobs[i].sets * set;
    }
    double took_s = (double)(clock_mono_ns() - begin_ns) / NS_PER_S;
    struct usage end = usage_now(0);
    server_stop(&s);
    return (struct floor){(double)done / took_s, usage_us(&begin, &end, (double)done)};
}
