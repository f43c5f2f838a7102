/* Helpers for tests of the scheduler: they open a store on a new database, make sweeps, runners,
 * claims and completions in one line each, and fail the test when an operation fails.
 *
 * Each test ends with a check of the invariants: queries that count rows which must not exist. So
 * every test of the scheduler checks them in the state that it leaves. */
#include "tests/support/service.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "scheduler/content/blobs.h"
#include "scheduler/store/pg_priv.h"
#include "tests/support/check_main.h"

static void open_store(struct service *s, int64_t lease_ms)
{
    struct as_err err = {0};
    struct store_opts opts = {.url = s->url, .max_connections = 8};
    opts.config.lease_ms = s->lease_ms = lease_ms;
    opts.config.heartbeat_ms = lease_ms / 3;
    opts.config.prune_ms = 1;
    ck_ok(store_open(&opts, &s->db, &err), err);
}

static void make_lists(struct service *s)
{
    s->reaper = (struct reaper){.db = s->db};
    s->orders = trial_orders_create(TRIAL_ORDERS_BYTES);
    s->fronts = sweep_fronts_create(SWEEP_FRONTS_BYTES);
    ck_assert(s->orders && s->fronts);
}

static void free_lists(struct service *s)
{
    trial_orders_free(s->orders);
    sweep_fronts_free(s->fronts);
    arena_done(&s->a);
    s->orders = NULL;
    s->fronts = NULL;
}

void service_close(struct service *s)
{
    free_lists(s);
    store_close(s->db);
    if (s->shared)
        pg_fixture_session_end(s->shared);
    s->db = NULL;
    s->shared = NULL;
}

void service_open(struct service *s, int64_t lease_ms)
{
    if (s->shared) /* of a test before */
        service_close(s);
    memset(s, 0, sizeof *s);
    pg_fixture_database(s->url);
    open_store(s, lease_ms);
    make_lists(s);
}

/* Counts from 0, as those of a new store. Connections that were made are counted on: boards of
 * rungs, which the store keeps by the key of their sweep, are good until the next one. */
static void forget(struct store *db)
{
    struct store_counters *c = store_counters(db);
    long connects = atomic_load(&c->connects) + 1;
    *c = (struct store_counters){.connects = connects};
    store_set_pieces(db, NULL);
    store_on_finished(db, NULL, NULL);
    store_on_finishing(db, NULL, NULL);
}

void service_begin(struct service *s, int64_t lease_ms)
{
    if (s->shared && s->lease_ms == lease_ms && pg_fixture_clear(s->shared)) {
        forget(s->db);
    } else {
        service_close(s);
        s->shared = pg_fixture_shared_database(s->url);
        open_store(s, lease_ms);
    }
    make_lists(s);
}

void service_end(struct service *s)
{
    if (!s->shared)
        service_close(s);
    else
        free_lists(s);
}

static struct service *of_case;
static int64_t lease_of_case;

static void begin_of_case(void)
{
    service_begin(of_case, lease_of_case);
}

static void end_of_case(void)
{
    check_invariants(of_case);
    service_end(of_case);
}

static void open_of_case(void)
{
    service_open(of_case, lease_of_case);
}

static void close_of_case(void)
{
    check_invariants(of_case);
    service_close(of_case);
}

int64_t commit_unsynced(struct service *s)
{
    pg_fixture_exec(s->url, "alter system set wal_writer_delay = '10s'");
    pg_fixture_exec(s->url, "select pg_reload_conf()");
    pg_fixture_exec(s->url, "begin; set local synchronous_commit = off; select "
                            "pg_logical_emit_message(true, 'test', ''); commit");
    return pg_fixture_i64(s->url, "select pg_current_wal_insert_lsn() - '0/0'::pg_lsn");
}

void check_synced(struct service *s, int64_t log_end)
{
    ck_assert_int_ge(pg_fixture_i64(s->url, "select pg_current_wal_flush_lsn() - '0/0'::pg_lsn"),
                     log_end);
}

static TCase *make_case(Suite *suite, const char *name, struct service *s, int64_t lease_ms,
                        SFun setup, SFun teardown)
{
    TCase *c = tcase_create(name);
    assert(of_case == NULL || (of_case == s && lease_of_case == lease_ms));
    of_case = s;
    lease_of_case = lease_ms;
    pg_fixture_start();
    tcase_add_checked_fixture(c, setup, teardown);
    suite_add_tcase(suite, c);
    return c;
}

TCase *service_case(Suite *suite, const char *name, struct service *s, int64_t lease_ms)
{
    return make_case(suite, name, s, lease_ms, begin_of_case, end_of_case);
}

TCase *service_case_alone(Suite *suite, const char *name, struct service *s, int64_t lease_ms)
{
    return make_case(suite, name, s, lease_ms, open_of_case, close_of_case);
}

static const char *create_sweep(struct service *s, const char *text)
{
    struct as_err err = {0};
    struct sweep_row row;
    json_t *doc = json_of(text);
    ck_ok(sweep_create(s->db, &s->a, doc, NULL, &row, &err), err);
    json_decref(doc);
    return row.id;
}

const char *make_sweep(struct service *s, const char *name, const char *limits, const char *more)
{
    char text[2000];
    snprintf(text, sizeof text,
             "{'name': '%s', 'metric': {'name': 'loss', 'goal': 'minimize'}, 'parameters': {'x': "
             "{'type': 'float', 'min': 0, 'max': 1}}, 'search': {'method': 'random', 'seed': 7}, "
             "'limits': {%s}, 'trial': {'command': ['true', '${x}']}%s}",
             name, limits, more);
    return create_sweep(s, text);
}

const char *make_grid(struct service *s, const char *name, int n, const char *limits)
{
    char text[2000];
    snprintf(text, sizeof text,
             "{'name': '%s', 'metric': {'name': 'loss', 'goal': 'minimize'}, 'parameters': {'i': "
             "{'type': 'int', 'min': 1, 'max': %d, 'step': 1}}, 'search': {'method': 'grid'}, "
             "'limits': {%s}, 'trial': {'command': ['true']}}",
             name, n, limits);
    return create_sweep(s, text);
}

const char *make_learner(struct service *s, const char *name, const char *limits, const char *more)
{
    char text[2000];
    snprintf(text, sizeof text,
             "{'name': '%s', 'metric': {'name': 'loss', 'goal': 'minimize'}, 'parameters': {'x': "
             "{'type': 'float', 'min': 0, 'max': 1}, 'y': {'type': 'float', 'min': 0, 'max': 1}}, "
             "'search': {'method': 'gp', 'seed': 7}, 'limits': {%s}%s}",
             name, limits, more);
    return create_sweep(s, text);
}

int64_t make_runner(struct service *s, const char *name, int64_t slots)
{
    struct as_err err = {0};
    struct registration r;
    struct runner_register req = {.name = name, .slots = slots};
    ck_ok(runner_register(s->db, &s->a, &req, &r, &err), err);
    return r.epoch;
}

as_status heartbeat(struct service *s, const char *runner, int64_t epoch,
                    const struct attempt_ref *attempts, size_t n, struct directive_list *ret,
                    struct as_err *err)
{
    struct heartbeat beat = {.epoch = epoch, .attempts = attempts, .n = n};
    return runner_heartbeat(s->db, &s->a, &(struct runner_id){runner, epoch, NULL}, &beat, ret,
                            err);
}

struct claim_list claim(struct service *s, const char *runner, int64_t epoch, int64_t max)
{
    static atomic_int counter;
    struct as_err err = {0};
    struct claim_list list;
    char id[40];
    snprintf(id, sizeof id, "claim-%d", atomic_fetch_add(&counter, 1));
    struct claim_request req = {
        .runner = runner, .epoch = epoch, .claim_id = id, .max_trials = max};
    ck_ok(claim_trials(s->db, NULL, &s->a, &req, &list, &err), err);
    return list;
}

struct claimed_row claim_one(struct service *s, const char *runner, int64_t epoch)
{
    struct claim_list list = claim(s, runner, epoch, 1);
    ck_assert_uint_eq(list.n, 1);
    return list.rows[0];
}

struct suggestion_list ask(struct service *s, const char *sweep, const char *client, int64_t n)
{
    struct as_err err = {0};
    struct suggestion_list list;
    struct ask_request req = {.sweep = sweep,
                              .client = client,
                              .count = n,
                              .lease_ms = ASK_LEASE_DEFAULT_MS,
                              .is_last = true};
    ck_ok(ask_trials(s->db, NULL, &s->a, &req, &list, &err), err);
    return list;
}

struct suggestion_row ask_one(struct service *s, const char *sweep, const char *client)
{
    struct suggestion_list list = ask(s, sweep, client, 1);
    ck_assert_uint_eq(list.n, 1);
    return list.rows[0];
}

struct trial_row tell(struct service *s, const char *sweep, int64_t number, const char *client,
                      double loss)
{
    struct as_err err = {0};
    struct trial_row row;
    const struct ask_ref ref = {.sweep = sweep, .number = number, .client = client};
    const struct measurement m = {-1, "loss", loss};
    const struct completion c = {.outcome = OUTCOME_COMPLETED, .metrics = &m, .n_metrics = 1};
    ck_ok(ask_complete(s->db, &s->a, &ref, &c, &row, &err), err);
    return row;
}

struct attempt_ref ref_of(const struct claimed_row *c)
{
    return (struct attempt_ref){.sweep = c->sweep, .number = c->number, .attempt = c->attempt};
}

void measure(struct service *s, struct attempt_ref ref, const char *metric, int64_t step, double v)
{
    struct as_err err = {0};
    struct measurement m = {.step = step, .metric = metric, .value = v};
    int64_t n = 0;
    ck_ok(attempt_measure(s->db, &ref, NULL, &m, 1, &n, &err), err);
}

struct trial_row end(struct service *s, struct attempt_ref ref, attempt_outcome outcome)
{
    struct as_err err = {0};
    struct trial_row row;
    struct completion c = {.outcome = outcome};
    ck_ok(attempt_complete(s->db, &s->a, &ref, NULL, &c, &row, &err), err);
    return row;
}

struct trial_row finish(struct service *s, struct attempt_ref ref, double loss)
{
    measure(s, ref, "loss", 1, loss);
    return end(s, ref, OUTCOME_COMPLETED);
}

struct sweep_row sweep_of_id(struct service *s, const char *id)
{
    struct as_err err = {0};
    struct sweep_row row;
    ck_ok(sweep_get(s->db, &s->a, id, &row, &err), err);
    return row;
}

struct trial_row trial_of(struct service *s, const char *sweep, int64_t number)
{
    struct as_err err = {0};
    struct trial_detail d;
    ck_ok(trial_get(s->db, &s->a, sweep, number, &d, &err), err);
    return d.trial;
}

void put_bytes(struct service *s, const char *bytes, size_t len, char ret_sha256[SHA256_HEX_SIZE])
{
    struct as_err err = {0};
    struct blob_put *p = NULL;
    bool created;
    ck_ok(sha256_of(bytes, len, ret_sha256, &err), err);
    ck_ok(blob_put_create(ret_sha256, &p, &err), err);
    ck_ok(blob_put_add(p, bytes, len, &err), err);
    ck_ok(blob_put_commit(s->db, p, &created, &err), err);
    blob_put_free(p);
}

struct reaper_report reap(struct service *s)
{
    struct reaper_report r;
    struct as_err err = {0};
    ck_ok(reaper_tick(&s->reaper, &r, &err), err);
    return r;
}

void put_blob(struct service *s, const char *text, char ret_sha256[SHA256_HEX_SIZE])
{
    put_bytes(s, text, strlen(text), ret_sha256);
}

/* Was this limit of a sweep changed? It may be below what was there before. */
#define CHANGED(limit)                                                                             \
    "exists (select from sweep_change c where c.sweep_key = key and c.changes -> '" limit          \
    "' is not null)"

static const struct {
    const char *what, *sql; /* counts the rows that violate it */
} invariants[] = {
    {"the counters of a sweep are those of its trials",
     "select count(*) from sweep s cross join lateral (select count(*) as n, count(*) filter "
     "(where state = 'queued') as q, count(*) filter (where state = 'running') as r, count(*) "
     "filter (where state = 'paused') as u, count(*) filter (where state = 'completed') as c, "
     "count(*) filter (where state = 'pruned') as p, count(*) filter (where state = 'failed') as "
     "f, count(*) filter (where state = 'cancelled') as x, coalesce(sum(jsonb_array_length("
     "retries)), 0) as a from trial where sweep_key = s.key) t where (n_total, n_queued, "
     "n_running, n_paused, n_completed, n_pruned, n_failed, n_cancelled, n_retried) <> (t.n, t.q, "
     "t.r, t.u, t.c, t.p, t.f, t.x, t.a)"},
    {"a sweep has one row of counts, which knows whether it lives",
     "select count(*) from sweep_base b where (select count(*) from sweep_count c where "
     "c.sweep_key = b.key and c.is_running = (b.state = 'running') and c.is_live = (b.state in "
     "('running', 'paused'))) <> 1"},
    {"what runs on a runner is in the range that its claims read",
     "select count(*) from trial t join runner r on r.name = t.runner where t.state = 'running' "
     "and t.begun < r.begun_from"},
    {"trials and attempts go with their sweep",
     "select (select count(*) from trial t where not exists (select from sweep s where s.key = "
     "t.sweep_key)) + (select count(*) from attempt a where not exists (select from trial t where "
     "t.sweep_key = a.sweep_key and t.number = a.number))"},
    {"the best trials are found by what they completed with",
     "select count(*) from trial where result is distinct from case when state = 'completed' and "
     "feasible then value end"},
    {"trials are numbered without holes",
     "select count(*) from sweep s where n_total > 0 and (select max(number) + 1 from trial "
     "where sweep_key = s.key) <> n_total"},
    {"no more trials than planned", "select count(*) from sweep where n_total > planned"},
    {"no more run than may", "select count(*) from sweep where n_running > max_concurrent "
                             "and not " CHANGED("max_concurrent_trials")},
    {"no more steps than may be", "select count(*) from sweep where steps_left(key) < 0 and not "
                                  "" CHANGED("max_steps")},
    {"a running trial has one open attempt, its latest",
     "select count(*) from trial t where state = 'running' and not exists (select from attempt "
     "a where a.sweep_key = t.sweep_key and a.number = t.number and a.attempt = t.attempt and "
     "a.ended_at is null and a.runner is not distinct from t.runner and a.client is not "
     "distinct "
     "from t.client)"},
    {"an open attempt is the latest of a running trial",
     "select count(*) from attempt a join trial t using (sweep_key, number) where a.ended_at "
     "is null and (t.state <> 'running' or t.attempt <> a.attempt)"},
    {"attempts are numbered from 1 without holes",
     "select count(*) from trial t where t.attempt <> (select count(*) from attempt a where "
     "a.sweep_key = t.sweep_key and a.number = t.number)"},
    {"one completed attempt for each completed trial",
     "select count(*) from trial t where t.state = 'completed' and (t.origin <> 'known')::int "
     "<> "
     "(select count(*) from attempt a where a.sweep_key = t.sweep_key and a.number = t.number "
     "and outcome = case when t.timed_out then 'timeout' else 'completed' end)"},
    {"the method's suggestions are numbered without holes",
     "select count(*) from sweep s cross join lateral (select count(suggestion_index) as n, "
     "count(distinct suggestion_index) as d, coalesce(max(suggestion_index) + 1, 0) as m from "
     "trial where sweep_key = s.key) t where (t.n, t.d, t.m) <> (n_suggested, n_suggested, "
     "n_suggested)"},
    {"ends are numbered without holes",
     "select count(*) from sweep s cross join lateral (select count(seq) as n, "
     "count(distinct seq) as d, coalesce(max(seq), 0) as m from (select finish_seq as seq from "
     "trial where sweep_key = s.key and finish_seq is not null union all select "
     "unnest(array[(e ->> 'finish_seq')::bigint, (e ->> 'retry_seq')::bigint]) from trial, "
     "jsonb_array_elements(retries) e where sweep_key = s.key union all select unnest(array[seq, "
     "promoted_seq]) from rung_result where sweep_key = s.key) o) t where (t.n, t.d, t.m) <> "
     "(s.finish_seq, s.finish_seq, s.finish_seq)"},
    {"rung results and promotions are counted, and steps that were spent",
     "select count(*) from sweep s cross join lateral (select count(*) as n, count(promoted_seq) "
     "as "
     "p from rung_result where sweep_key = s.key) r where (n_rung_results, n_promoted, "
     "steps_spent) <> (r.n, r.p, (select coalesce(sum(spent), 0) from trial where sweep_key = "
     "s.key))"},
    {"only a trial that was told to pause is paused, and its result waits",
     "select count(*) from trial t where state = 'paused' and (decision is distinct from 'pause' "
     "or "
     "not exists (select from rung_result r where r.sweep_key = t.sweep_key and r.number = "
     "t.number and r.rung = t.rung - 1 and r.decision = 'pause' and r.promoted_seq is null))"},
    {"a decision to prune stands",
     "select count(*) from trial where decision = 'prune' and state not in ('running', 'pruned', "
     "'cancelled')"},
    {"nothing comes after the decision to prune",
     "select count(*) from rung_result a join rung_result b using (sweep_key, number) where "
     "a.decision = 'prune' and b.rung > a.rung"},
    {"a trial goes past a pause by a promotion, or when it is tried again",
     "select count(*) from rung_result a join rung_result b using (sweep_key, number) join trial t "
     "using (sweep_key, number) where a.decision = 'pause' and b.rung > a.rung and (a.promoted_seq "
     "is null or b.seq < a.promoted_seq) and t.retries is null"},
    {"nobody waits in a sweep that has ended", "select count(*) from trial t join sweep s on s.key "
                                               "= t.sweep_key where t.state = 'paused' and "
                                               "s.state not in ('running', 'paused')"},
    {"what runs on has a pending ensemble",
     "select count(*) from sweep s join ensemble e on e.sweep_key = s.key where s.state in "
     "('running', 'paused') and e.state <> 'pending'"},
    {"no suggestion knows what was not there", "select count(*) from trial t join sweep s on "
                                               "s.key = t.sweep_key where seen > s.finish_seq"},
    {"a later suggestion knows no less",
     "select count(*) from trial a join trial b using (sweep_key) where a.number < b.number "
     "and a.seen > b.seen"},
    {"known results use no budget",
     "select count(*) from sweep s where n_known <> (select count(*) from trial where "
     "sweep_key = s.key and origin = 'known') or n_known_failed <> (select count(*) from trial "
     "where sweep_key = s.key and origin = 'known' and state = 'failed')"},
    {"runners get no trial of a sweep without `trial`",
     "select count(*) from attempt a join sweep s on s.key = a.sweep_key where not "
     "for_runners and runner is not null"},
    {"the mark is there when something was suggested",
     "select count(*) from sweep where learns and (n_suggested > 0) <> (search_mark <> 0)"},
    {"the running trials of a group have one sweep, one shape, one runner",
     "select count(*) from (select group_id from trial where state = 'running' and group_id is "
     "not null group by group_id having count(distinct (sweep_key, shape, runner)) > 1) g"},
    {"a group has no more members than its sweep lets share",
     "select count(*) from (select t.group_id from trial t join sweep s on s.key = t.sweep_key "
     "where t.state = 'running' and t.group_id is not null group by t.group_id, s.max_group "
     "having count(*) > s.max_group) g"},
    {"the group of a trial is that of its latest attempt",
     "select count(*) from trial t join attempt a on a.sweep_key = t.sweep_key and a.number = "
     "t.number and a.attempt = t.attempt where a.group_id is distinct from t.group_id"},
    {"what crashed or was lost runs alone",
     "select count(*) from attempt a join attempt b on b.sweep_key = a.sweep_key and b.number "
     "= a.number and b.attempt = a.attempt - 1 where a.group_id is not null and b.outcome is "
     "distinct from 'released'"},
    {"a running trial of a gang has a gang that is not over",
     "select count(*) from trial t where t.state = 'running' and t.gang and not exists (select "
     "from gang g where g.sweep_key = t.sweep_key and g.number = t.number and g.attempt = "
     "t.attempt and g.state <> 'over')"},
    {"a gang that is not over is of a running trial",
     "select count(*) from gang g join trial t using (sweep_key, number) where g.state <> "
     "'over' and (t.state <> 'running' or t.attempt <> g.attempt or not t.gang)"},
    {"nobody holds a seat of a gang that is over",
     "select count(*) from gang_seat q join gang g using (sweep_key, number, attempt) where "
     "g.state = 'over' and q.state in ('seated', 'listening', 'running')"},
    {"a gang has no more ranks than its sweep says",
     "select count(*) from gang g where ranks < (select count(*) from gang_seat q where "
     "q.sweep_key = g.sweep_key and q.number = g.number and q.attempt = g.attempt and q.state "
     "in ('seated', 'listening', 'running'))"},
    {"a gang that runs has at least min_ranks members that live, else it waits",
     "select count(*) from gang g where g.state in ('running', 'waiting') and not g.is_ending "
     "and (g.state = 'running') <> ((select count(*) from gang_seat q where q.sweep_key = "
     "g.sweep_key and q.number = g.number and q.attempt = g.attempt and q.is_member and "
     "(q.state in ('listening', 'running') or q.state = 'ended')) >= g.min_ranks)"},
    {"slots are kept only while a gang gathers",
     "select count(*) from gathering_seat where (select sweep_key from gathering) is null"},
    {"there is one gathering", "select abs(count(*) - 1) from gathering"},
    {"what runs on a runner fits in it",
     "select count(*) from runner r cross join lateral (select coalesce(sum(cpus), 0) as c, "
     "coalesce(sum(memory_bytes), 0) as m from (select distinct on (coalesce(group_id, "
     "concat(sweep_key, '/', number, '/', seat))) cpus, memory_bytes from held_needs where "
     "runner = r.name and number is not null) n) u where r.state = 'live' and r.cpus > 0 and "
     "(u.c > r.cpus or u.m > r.memory_bytes)"},
    {"a trial that needs its machine to itself has it",
     "select count(*) from held_needs x join runner a on a.name = x.runner join held h on "
     "(h.sweep_key, h.number) is distinct from (x.sweep_key, x.number) and (x.group_id is null "
     "or h.group_id is distinct from x.group_id) join runner b on b.name = h.runner where "
     "x.exclusive and (a.name = b.name or a.machine = b.machine)"},
    {"restarts within the budget",
     "select count(*) from trial t join sweep s on s.key = "
     "t.sweep_key where t.restarts > s.max_restarts and not " CHANGED("max_restarts")},
    {"no two trials of a grid are the same",
     "select count(*) from (select sweep_key, params::text from trial t join sweep s on s.key "
     "= t.sweep_key where s.method = 'grid' group by 1, 2 having count(*) > 1) d"},
};

/* On a connection of the store, where there is one. It has read the catalogue by now: on a new
 * connection the statement is planned in five times as long. */
static int64_t first_broken(struct service *s, const char *sql)
{
    struct as_err err = {0};
    int64_t found = -1;
    if (!s->db)
        return pg_fixture_i64(s->url, sql);
    struct tx_run run = tx_run_start(s->db, TX_READ, &err);
    while (tx_run_again(&run)) {
        run.status = conn_exec(run.tx->conn, "set local statement_timeout = 0", &err);
        if (run.status != AS_OK)
            continue;
        PGresult *r = PQexec(run.tx->conn->pg, sql);
        ck_assert_msg(PQresultStatus(r) == PGRES_TUPLES_OK, "%s", PQresultErrorMessage(r));
        run.status = as_parse_i64(PQgetvalue(r, 0, 0), &found, &err);
        PQclear(r);
    }
    ck_ok(run.status, err);
    return found;
}

/* One statement for all: each has a part of what one costs. */
void check_invariants(struct service *s)
{
    struct str sql = {0};
    str_puts(&sql, "select coalesce(min(i), -1) from (values ");
    for (size_t i = 0; i < AS_ARRAY_LEN(invariants); i++)
        str_printf(&sql, "%s(%zu, (%s))", i > 0 ? ", " : "", i, invariants[i].sql);
    str_puts(&sql, ") as broken(i, n) where n <> 0");
    ck_assert(!sql.failed);
    int64_t i = first_broken(s, sql.s);
    ck_assert_msg(i < 0, "broken: %s", invariants[i < 0 ? 0 : i].what);
    str_done(&sql);
}
