#include "bench/scheduler/fill.h"

#include <stdio.h>

#include "search/regret_bound.h"

#define SQL_SIZE 3000

/* Without triggers; the counts are written at the end, and that the bounds of what is left to gain
 * are kept up to here: else the server computes all of them, from the first on, and reads all
 * trials for each. Of printf: the first argument is the number of trials of each sweep, the second
 * that of their points, the third the count at which the next bound is due. */
static const char completed[] =
    "set session_replication_role = replica;"
    "insert into trial (sweep_key, number, state, attempt, params, suggestion, seed, origin, "
    "suggestion_index, value, step, metrics, runner, epoch, claimed_at, started_at, finished_at, "
    "finish_seq, feasible) select key, n, 'completed', 1, '{\"x\":0.5}', '{}', n, 'suggested', n, "
    "random(), %2$lld - 1, '{\"loss\": 0.5}', 'holder', 1, now(), now(), now(), n + 1, true from "
    "sweep, generate_series(0, %1$lld - 1) n;"
    "insert into attempt (sweep_key, number, attempt, runner, epoch, claim_id, ended_at, outcome, "
    "reported, exit_code) select key, n, 1, 'holder', 1, 'c' || n, now(), 'completed', "
    "'completed', 0 from sweep, generate_series(0, %1$lld - 1) n;"
    "insert into measurement_chunk (sweep_key, number, metric, attempt, first_step, steps, "
    "measured, "
    "recorded) select key, n, 'loss', 1, c, array_agg(p), array_agg(random()), array_agg(0) from "
    "sweep, generate_series(0, %1$lld - 1) n, generate_series(0, %2$lld - 1, 64) c, "
    "generate_series(c, least(c + 63, %2$lld - 1)) p group by key, n, c;"
    "update sweep_count set n_total = %1$lld, n_completed = %1$lld, n_suggested = %1$lld, "
    "finish_seq = %1$lld; insert into regret_check (sweep_key, completed, seq, enough) select key, "
    "%1$lld, %1$lld, false from sweep; "
    "update sweep_base set started_at = now(), regret_due = %3$lld";

/* The name of the sweep, the epoch of the runner, the number of trials. */
static const char live[] =
    "insert into trial (sweep_key, number, state, attempt, params, suggestion, seed, origin, "
    "suggestion_index, runner, epoch, claimed_at, started_at) select key, n, case when n %% 2 = 0 "
    "then 'queued' else 'running' end, n %% 2, '{\"x\":0.5}', '{}', n, 'suggested', n, case when "
    "n %% 2 = 1 then 'holder' end, case when n %% 2 = 1 then %2$lld end, case when n %% 2 = 1 "
    "then now() end, case when n %% 2 = 1 then now() end from sweep, generate_series(0, %3$lld - "
    "1) n where name = '%1$s';"
    "insert into attempt (sweep_key, number, attempt, runner, epoch, claim_id) select key, n, 1, "
    "'holder', %2$lld, 'c' || n from sweep, generate_series(1, %3$lld - 1, 2) n where name = "
    "'%1$s'";

void fill_completed(struct server *s, int64_t trials, int64_t points)
{
    char sql[SQL_SIZE];
    (void)snprintf(sql, sizeof sql, completed, (long long)trials, (long long)points,
                   (long long)regret_bound_next((size_t)trials));
    pg_fixture_exec(s->url, sql);
}

void fill_live(struct server *s, const char *name, int64_t epoch, int64_t trials)
{
    char sql[SQL_SIZE];
    server_add_sweep(s, name, NULL);
    (void)snprintf(sql, sizeof sql, "/v1/sweeps/%s", name);
    json_decref(server_call(s, "PATCH", sql, "{\"state\":\"paused\"}"));
    (void)snprintf(sql, sizeof sql, live, name, (long long)epoch, (long long)trials);
    pg_fixture_exec(s->url, sql);
}
