/* Figures for Prometheus. No label names a sweep, a trial or a runner: their number has no bound.
 */
#include "scheduler/services/service_metrics.h"

#include "base/prometheus.h"
#include "scheduler/services/demand.h"
#include "scheduler/sweep/seat_state.h"
#include "scheduler/sweep/trial_state.h"
#include "scheduler/store/blob_store.h"
#include "scheduler/store/metrics_store.h"

#define KINDS_WRITTEN 32 /* a bound for the lines of one family */

static void write_process(struct store *db, struct str *b)
{
    struct store_counters *c = store_counters(db);
    struct store_pool pool;
    store_pool_get(db, &pool);
    prometheus_counter(b, "assay_trials_claimed_total", "Trials handed to runners.",
                       atomic_load(&c->trials_claimed));
    prometheus_counter(b, "assay_attempts_ended_total", "Ends of attempts accepted from runners.",
                       atomic_load(&c->trials_completed));
    prometheus_counter(b, "assay_attempts_lost_total", "Attempts declared lost.",
                       atomic_load(&c->attempts_lost));
    prometheus_counter(b, "assay_ranks_lost_total", "Ranks of gangs declared lost.",
                       atomic_load(&c->ranks_lost));
    prometheus_counter(b, "assay_stale_writes_rejected_total",
                       "Writes of attempts that were not current.",
                       atomic_load(&c->stale_rejected));
    prometheus_counter(b, "assay_late_completions_accepted_total",
                       "Results that arrived after their lease, with the attempt still current.",
                       atomic_load(&c->late_accepted));
    prometheus_counter(b, "assay_measurements_total", "Measurements recorded.",
                       atomic_load(&c->measurements));
    prometheus_counter(b, "assay_pg_transaction_retries_total", "Transactions run again.",
                       atomic_load(&c->tx_retries));
    prometheus_counter(b, "assay_pg_connects_total", "Database connections made.",
                       atomic_load(&c->connects));
    prometheus_gauge(b, "assay_pg_pool_open", "Database connections open.", pool.open);
    prometheus_gauge(b, "assay_pg_pool_in_use", "Database connections in use.", pool.in_use);
    prometheus_gauge(b, "assay_pg_pool_max", "Database connections allowed.", pool.max);
}

struct figures {
    struct metric_count *counts;
    size_t n_counts;
    struct metric_dead *dead;
    size_t n_dead;
    struct blob_sums content;
    struct demand demand;
};

static as_status read_figures(struct tx *t, struct arena *a, struct figures *f, struct as_err *err)
{
    as_status st = store_metrics_counts(t, a, &f->counts, &f->n_counts, err);
    if (st != AS_OK)
        return st;
    st = store_blob_sums(t, &f->content, err);
    if (st == AS_OK)
        st = demand_read(t, a, &f->demand, err);
    if (st != AS_OK)
        return st;
    return store_metrics_dead(t, a, &f->dead, &f->n_dead, err);
}

static int64_t count_of(const struct figures *f, const char *table, const char *state)
{
    for (size_t i = 0; i < f->n_counts; i++)
        if (as_streq(f->counts[i].table, table) && as_streq(f->counts[i].state, state))
            return f->counts[i].n;
    return 0; /* this table has no row in that state */
}

/* One line of a family of gauges. */
static void write_state(const struct figures *f, const char *table, const char *name,
                        const char *state, struct str *b)
{
    str_printf(b, "%s{state=\"%s\"} %lld\n", name, state, (long long)count_of(f, table, state));
}

/* Every state has a line, also if its count is 0: an alert cannot compare a missing line. */
static void write_counts(const struct figures *f, struct str *b)
{
    static const char *const runner_states[] = {"live", "lost", "left"};
    prometheus_head(b, "assay_sweeps", "gauge", "Sweeps by state.");
    for (int i = 0; i < SWEEP_STATES; i++)
        write_state(f, "sweep", "assay_sweeps", sweep_state_format((sweep_state)i), b);
    prometheus_head(b, "assay_trials", "gauge", "Trials by state.");
    for (int i = 0; i < TRIAL_STATES; i++)
        write_state(f, "trial", "assay_trials", trial_state_format((trial_state)i), b);
    prometheus_head(b, "assay_runners", "gauge", "Runners by state.");
    for (size_t i = 0; i < AS_ARRAY_LEN(runner_states); i++)
        write_state(f, "runner", "assay_runners", runner_states[i], b);
    prometheus_head(b, "assay_gangs", "gauge", "Trials of several ranks that run, by state.");
    for (int i = 0; i < GANG_OVER; i++)
        write_state(f, "gang", "assay_gangs", gang_state_format((gang_state)i), b);
    prometheus_gauge(b, "assay_gathering_seats",
                     "Slots that are kept free for the gang that gathers.",
                     (long)count_of(f, "gathering", "seat"));
}

/* Needs are labels, so autoscalers can ask for the kind that their machines have. */
static void write_demand(const struct demand *d, struct str *b)
{
    int64_t waits_ms = d->since_ms ? d->now_ms - d->since_ms : 0;
    prometheus_gauge(b, "assay_demand_slots", "Slots that wait for runners.", (long)d->slots);
    prometheus_head(b, "assay_demand_seconds", "gauge", "How long the longest of them has waited.");
    str_printf(b, "assay_demand_seconds %.3f\n", waits_ms > 0 ? (double)waits_ms / 1000 : 0.0);
    prometheus_head(b, "assay_demand_kind_slots", "gauge",
                    "Slots that wait for runners, by what each needs.");
    for (size_t i = 0; i < d->n && i < KINDS_WRITTEN; i++) {
        const struct demand_kind *k = &d->kinds[i];
        str_printf(b,
                   "assay_demand_kind_slots{gpus=\"%lld\",cpus=\"%lld\",memory_bytes=\"%lld\","
                   "ranks=\"%lld\",exclusive=\"%s\"} %lld\n",
                   (long long)k->gpus, (long long)k->cpus, (long long)k->memory_bytes,
                   (long long)k->ranks, k->is_exclusive ? "true" : "false", (long long)k->slots);
    }
}

static void write_content(const struct blob_sums *s, struct str *b)
{
    prometheus_gauge(b, "assay_content_pieces", "Distinct pieces of content that are stored.",
                     (long)s->blobs);
    prometheus_head(b, "assay_content_bytes", "gauge", "Content that is stored, by place.");
    str_printf(b, "assay_content_bytes{place=\"database\"} %lld\n", (long long)s->rows_bytes);
    str_printf(b, "assay_content_bytes{place=\"store\"} %lld\n", (long long)s->store_bytes);
    prometheus_gauge(b, "assay_content_unused_bytes",
                     "Content that nothing refers to, which will be removed.",
                     (long)s->unused_bytes);
    prometheus_gauge(
        b, "assay_content_table_bytes",
        "What the tables of content take on PostgreSQL's disk, with space to be reused.",
        (long)s->table_bytes);
}

as_status metrics_write(struct store *db, struct str *ret, struct as_err *err)
{
    AS_AUTO(arena_done) struct arena a = {0};
    struct figures f = {0};
    struct as_err away = {0};
    struct tx_run run = tx_run_start(db, TX_READ, &away);
    while (tx_run_again(&run))
        run.status = read_figures(run.tx, &a, &f, &away);
    if (run.status == AS_E_NOMEM)
        return as_fail(err, AS_E_NOMEM, "%s", away.msg);
    prometheus_gauge(ret, "assay_database_up", "Whether the database answers.",
                     run.status == AS_OK);
    write_process(db, ret);
    if (run.status != AS_OK)
        return str_check(ret, err);
    write_counts(&f, ret);
    write_demand(&f.demand, ret);
    write_content(&f.content, ret);
    prometheus_head(ret, "assay_pg_dead_tuples", "gauge",
                    "Dead rows of the hot tables, estimated.");
    for (size_t i = 0; i < f.n_dead; i++)
        str_printf(ret, "assay_pg_dead_tuples{table=\"%s\"} %lld\n", f.dead[i].table,
                   (long long)f.dead[i].n);
    return str_check(ret, err);
}
