/* Durable cycles of the scheduler: claim a trial, record its metric, complete it. Each is a
 * transaction of PostgreSQL with fsync on. The floor is the same number of bare commits (an update
 * of one row by a prepared statement, three to a cycle) with as many connections, on the same
 * cluster in the same run. */
#include <libpq-fe.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/json.h"
#include "bench/bench.h"
#include "scheduler/lifecycle/attempts.h"
#include "scheduler/assign/claims.h"
#include "scheduler/services/runners.h"
#include "scheduler/services/sweeps.h"
#include "tests/support/pg_fixture.h"

#define MAX_WORKERS 16
#define RUN_NS (3 * NS_PER_S)
#define COMMITS_PER_CYCLE 3

struct work {
    struct store *db; /* NULL: bare commits */
    const char *url;
    int worker;
    int64_t deadline_ns;
    int64_t done;
    bool failed;
};

static bool check(as_status st, const struct as_err *err)
{
    if (st == AS_OK)
        return true;
    (void)fprintf(stderr, "cycles: %s\n", err->msg);
    return false;
}

static bool one_cycle(struct work *w, int64_t epoch, const char *runner, int64_t serial)
{
    AS_AUTO(arena_done) struct arena a = {0};
    struct as_err err = {0};
    char claim_id[48];
    (void)snprintf(claim_id, sizeof claim_id, "%s-%lld", runner, (long long)serial);
    struct claim_request req = {
        .runner = runner, .epoch = epoch, .claim_id = claim_id, .max_trials = 1};
    struct claim_list got = {0};
    if (!check(claim_trials(w->db, NULL, &a, &req, &got, &err), &err) || got.n != 1)
        return false;
    struct attempt_ref ref = {got.rows[0].sweep, got.rows[0].number, got.rows[0].attempt};
    struct measurement m = {.step = 0, .metric = "loss", .value = (double)serial};
    struct completion c = {.outcome = OUTCOME_COMPLETED, .has_exit_code = true};
    struct trial_row row;
    int64_t recorded = 0;
    return check(attempt_measure(w->db, &ref, NULL, &m, 1, &recorded, &err), &err) &&
           check(attempt_complete(w->db, &a, &ref, NULL, &c, &row, &err), &err);
}

static void *run_cycles(void *arg)
{
    struct work *w = arg;
    AS_AUTO(arena_done) struct arena a = {0};
    struct as_err err = {0};
    char name[32];
    (void)snprintf(name, sizeof name, "bench-%d", w->worker);
    struct runner_register r = {.name = name, .slots = 1};
    struct registration reg;
    w->failed = !check(runner_register(w->db, &a, &r, &reg, &err), &err);
    while (!w->failed && clock_mono_ns() < w->deadline_ns) {
        w->failed = !one_cycle(w, reg.epoch, name, w->done);
        w->done += !w->failed;
    }
    return NULL;
}

static void *run_commits(void *arg)
{
    struct work *w = arg;
    PGconn *c = PQconnectdb(w->url);
    char row[16];
    (void)snprintf(row, sizeof row, "%d", w->worker);
    const char *const values[] = {row};
    PQclear(PQprepare(c, "bump", "update bare set n = n + 1 where id = $1", 1, NULL));
    while (!w->failed && clock_mono_ns() < w->deadline_ns) {
        PGresult *res = PQexecPrepared(c, "bump", 1, values, NULL, NULL, 0);
        w->failed = PQresultStatus(res) != PGRES_COMMAND_OK;
        w->done += !w->failed;
        PQclear(res);
    }
    PQfinish(c);
    return NULL;
}

/* Cycles of n threads in a second; NaN if one failed. */
static double rate(void *(*run)(void *), struct store *db, const char *url, int n)
{
    struct work work[MAX_WORKERS] = {0};
    pthread_t threads[MAX_WORKERS];
    int64_t start = clock_mono_ns(), done = 0;
    bool failed = false;
    for (int i = 0; i < n; i++) {
        work[i] = (struct work){.db = db, .url = url, .worker = i, .deadline_ns = start + RUN_NS};
        if (pthread_create(&threads[i], NULL, run, &work[i]) != 0)
            abort();
    }
    for (int i = 0; i < n; i++) {
        (void)pthread_join(threads[i], NULL);
        done += work[i].done;
        failed |= work[i].failed;
    }
    return failed ? NAN : (double)done / ((double)(clock_mono_ns() - start) / 1e9);
}

static bool make_sweeps(struct store *db, int n)
{
    static const char document[] =
        "{\"name\":\"bench\",\"metric\":{\"name\":\"loss\",\"goal\":\"minimize\"},"
        "\"parameters\":{\"x\":{\"type\":\"float\",\"min\":0,\"max\":1}},"
        "\"search\":{\"method\":\"random\",\"seed\":1},\"limits\":{\"max_trials\":1000000},"
        "\"trial\":{\"command\":[\"true\"]}}";
    AS_AUTO(arena_done) struct arena a = {0};
    struct as_err err = {0};
    JSON_AUTO doc = NULL;
    struct sweep_row row;
    bool fine = check(json_parse(document, strlen(document), &doc, &err), &err);
    for (int i = 0; i < n && fine; i++)
        fine = check(sweep_create(db, &a, doc, NULL, &row, &err), &err);
    return fine;
}

/* Report `sweeps` sweeps with `workers` runners of one slot each. */
static void measure_cycles(int sweeps, int workers)
{
    char url[PG_URL_SIZE], name[64];
    struct as_err err = {0};
    AS_AUTO(store_closep) struct store *db = NULL;
    pg_fixture_database(url);
    pg_fixture_exec(url, "create table bare (id int primary key, n int not null); "
                         "insert into bare select i, 0 from generate_series(0, 63) i");
    struct store_opts opts = {.url = url, .max_connections = workers};
    double cycles = NAN;
    if (check(store_open(&opts, &db, &err), &err) && make_sweeps(db, sweeps))
        cycles = rate(run_cycles, db, url, workers);
    double floor = rate(run_commits, NULL, url, workers) / COMMITS_PER_CYCLE;
    (void)snprintf(name, sizeof name, "%d sweep%s, %d runner%s", sweeps, sweeps == 1 ? "" : "s",
                   workers, workers == 1 ? "" : "s");
    bench_report(name, cycles, "cycles/s", floor, NAN, NULL,
                 "claim, measure, complete; floor: three bare commits");
}

int main(int argc, char **argv)
{
    if (!bench_start("cycles", "durable claim + measure + complete cycles", argc, argv))
        return bench_exit();
    pg_fixture_start_with_fsync();
    measure_cycles(1, 1);
    measure_cycles(1, 8);
    measure_cycles(8, 8);
    return bench_exit();
}
