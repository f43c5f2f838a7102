/* Figures for Prometheus. No label names a sweep, a trial or a runner: their number has no bound.
 */
#include "scheduler/metrics.h"

#include "scheduler/store/metrics_store.h"

static void head(struct str *b, const char *name, const char *type, const char *help)
{
    str_printf(b, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void counter(struct str *b, const char *name, const char *help, long v)
{
    head(b, name, "counter", help);
    str_printf(b, "%s %ld\n", name, v);
}

static void gauge(struct str *b, const char *name, const char *help, long v)
{
    head(b, name, "gauge", help);
    str_printf(b, "%s %ld\n", name, v);
}

static void write_process(struct store *db, struct str *b)
{
    struct store_counters *c = store_counters(db);
    struct store_pool pool;
    store_pool_get(db, &pool);
    counter(b, "assay_trials_claimed_total", "Trials handed to runners.",
            atomic_load(&c->trials_claimed));
    counter(b, "assay_attempts_ended_total", "Ends of attempts accepted from runners.",
            atomic_load(&c->trials_completed));
    counter(b, "assay_attempts_lost_total", "Attempts declared lost.",
            atomic_load(&c->attempts_lost));
    counter(b, "assay_stale_writes_rejected_total", "Writes of attempts that were not current.",
            atomic_load(&c->stale_rejected));
    counter(b, "assay_late_completions_accepted_total",
            "Results that arrived after their lease, with the attempt still current.",
            atomic_load(&c->late_accepted));
    counter(b, "assay_measurements_total", "Measurements recorded.", atomic_load(&c->measurements));
    counter(b, "assay_pg_transaction_retries_total", "Transactions run again.",
            atomic_load(&c->tx_retries));
    counter(b, "assay_pg_connects_total", "Database connections made.", atomic_load(&c->connects));
    gauge(b, "assay_pg_pool_open", "Database connections open.", pool.open);
    gauge(b, "assay_pg_pool_in_use", "Database connections in use.", pool.in_use);
    gauge(b, "assay_pg_pool_max", "Database connections allowed.", pool.max);
}

struct figures {
    struct arena *a;
    struct metric_count *counts;
    size_t n_counts;
    struct metric_dead *dead;
    size_t n_dead;
};

static as_status tx_figures(struct tx *t, void *p, struct as_err *err)
{
    struct figures *f = p;
    as_status st = store_metrics_counts(t, f->a, &f->counts, &f->n_counts, err);
    return st == AS_OK ? store_metrics_dead(t, f->a, &f->dead, &f->n_dead, err) : st;
}

static void write_counts(const struct figures *f, const char *table, const char *name,
                         const char *help, struct str *b)
{
    head(b, name, "gauge", help);
    for (size_t i = 0; i < f->n_counts; i++) {
        const struct metric_count *c = &f->counts[i];
        if (as_streq(c->table, table))
            str_printf(b, "%s{state=\"%s\"} %lld\n", name, c->state, (long long)c->n);
    }
}

as_status metrics_write(struct store *db, struct str *ret, struct as_err *err)
{
    AS_AUTO(arena_done) struct arena a = {0};
    struct figures f = {.a = &a};
    struct as_err away = {0};
    as_status st = store_run(db, TX_READ, tx_figures, &f, &away);
    if (st == AS_E_NOMEM)
        return as_fail(err, st, "%s", away.msg);
    gauge(ret, "assay_database_up", "Whether the database answers.", st == AS_OK);
    write_process(db, ret);
    if (st == AS_OK) {
        write_counts(&f, "sweep", "assay_sweeps", "Sweeps by state.", ret);
        write_counts(&f, "trial", "assay_trials", "Trials by state.", ret);
        write_counts(&f, "runner", "assay_runners", "Runners by state.", ret);
        head(ret, "assay_pg_dead_tuples", "gauge", "Dead rows of the hot tables, estimated.");
        for (size_t i = 0; i < f.n_dead; i++)
            str_printf(ret, "assay_pg_dead_tuples{table=\"%s\"} %lld\n", f.dead[i].table,
                       (long long)f.dead[i].n);
    }
    return str_check(ret, err);
}
