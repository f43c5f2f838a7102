/* Counts over all tables. Trials are summed from their sweeps' counters. */
#include "scheduler/store/metrics_store.h"

#include "scheduler/store/pg_priv.h"
#include "scheduler/store/sets_priv.h"

enum { METRICS_COUNTS, METRICS_DEAD };

static const struct stmt stmts[] = {
    [METRICS_COUNTS] =
        {"metrics_counts",
         "select 'sweep', state, count(*) from sweep group by state union all select 'runner', "
         "state, count(*) from runner group by state union all select 'trial', v.state, "
         "coalesce(sum(v.n), 0) from sweep s cross join lateral (values ('queued', s.n_queued), "
         "('running', s.n_running), ('paused', s.n_paused), ('completed', s.n_completed), "
         "('pruned', s.n_pruned), ('failed', s.n_failed), ('cancelled', s.n_cancelled)) as "
         "v(state, "
         "n) group by v.state order by 1, 2"},
    [METRICS_DEAD] =
        {"metrics_dead",
         "select relname::text, n_dead_tup from pg_stat_user_tables where relname in "
         "('sweep', 'trial', 'attempt', 'runner', 'trial_log', 'measurement', 'event') "
         "order by 1"},
};
const struct stmt_set metrics_stmts = {"metrics", stmts, AS_ARRAY_LEN(stmts)};

as_status store_metrics_counts(struct tx *t, struct arena *a, struct metric_count **ret,
                               size_t *ret_n, struct as_err *err)
{
    RESULT_AUTO r = {0};
    as_status st = tx_query(t, &stmts[METRICS_COUNTS], NULL, &r, err);
    if (st != AS_OK)
        return st;
    struct metric_count *rows = arena_alloc(a, (size_t)r.rows + 1, sizeof *rows);
    if (!rows)
        return as_fail(err, AS_E_NOMEM, "out of memory");
    for (int i = 0; i < r.rows && st == AS_OK; i++) {
        struct reader rd;
        reader_init(&rd, &r, i, a);
        rows[i].table = read_str(&rd);
        rows[i].state = read_str(&rd);
        rows[i].n = read_i64(&rd);
        st = reader_check(&rd, err);
    }
    *ret = rows;
    *ret_n = (size_t)r.rows;
    return st;
}

as_status store_metrics_dead(struct tx *t, struct arena *a, struct metric_dead **ret, size_t *ret_n,
                             struct as_err *err)
{
    RESULT_AUTO r = {0};
    as_status st = tx_query(t, &stmts[METRICS_DEAD], NULL, &r, err);
    if (st != AS_OK)
        return st;
    struct metric_dead *rows = arena_alloc(a, (size_t)r.rows + 1, sizeof *rows);
    if (!rows)
        return as_fail(err, AS_E_NOMEM, "out of memory");
    for (int i = 0; i < r.rows && st == AS_OK; i++) {
        struct reader rd;
        reader_init(&rd, &r, i, a);
        rows[i].table = read_str(&rd);
        rows[i].n = read_i64(&rd);
        st = reader_check(&rd, err);
    }
    *ret = rows;
    *ret_n = (size_t)r.rows;
    return st;
}
