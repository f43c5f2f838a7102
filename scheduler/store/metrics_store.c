/* Counts over all tables. Trials are summed from their sweeps' counters. */
#include "scheduler/store/metrics_store.h"

#include "scheduler/store/sql_columns_priv.h"
#include "scheduler/store/pg_priv.h"
#include "scheduler/store/sets_priv.h"

enum { METRICS_COUNTS, METRICS_DEAD };

#define DEAD_FIELDS(FIRST, NEXT)                                                                   \
    FIRST(text, table, "relname::text")                                                            \
    NEXT(i64, n, "n_dead_tup")
COLUMNS_WHOLE_ROW(struct metric_dead, DEAD_FIELDS)
COLUMNS_READER(dead, struct metric_dead, DEAD_FIELDS)
#define DEAD_COLUMNS COLUMNS_SQL(DEAD_FIELDS)

/* The rows of sweeps; those of runners and trials follow, in the same column order. */
#define COUNT_FIELDS(FIRST, NEXT)                                                                  \
    FIRST(text, table, "'sweep'")                                                                  \
    NEXT(text, state, "state")                                                                     \
    NEXT(i64, n, "count(*)")
COLUMNS_WHOLE_ROW(struct metric_count, COUNT_FIELDS)
COLUMNS_READER(count, struct metric_count, COUNT_FIELDS)
#define COUNT_COLUMNS COLUMNS_SQL(COUNT_FIELDS)

static const struct stmt stmts[] = {
    [METRICS_COUNTS] =
        {"metrics_counts",
         "select " COUNT_COLUMNS " from sweep_base group by state union all select 'runner', "
         "state, count(*) from runner group by state union all select 'gang', state, count(*) from "
         "gang where state <> 'over' group by state union all select 'gathering', 'seat', count(*) "
         "from gathering_seat union all select 'trial', v.state, "
         "coalesce(sum(v.n), 0) from sweep s cross join lateral (values ('queued', s.n_queued), "
         "('running', s.n_running), ('paused', s.n_paused), ('completed', s.n_completed), "
         "('pruned', s.n_pruned), ('failed', s.n_failed), ('cancelled', s.n_cancelled)) as "
         "v(state, "
         "n) group by v.state order by 1, 2"},
    [METRICS_DEAD] = {"metrics_dead",
                      "select " DEAD_COLUMNS " from pg_stat_user_tables where relname in "
                      "('sweep_base', 'sweep_count', 'trial', 'attempt', 'runner', 'trial_log', "
                      "'measurement_chunk', 'event', "
                      "'event_set', 'gang', 'gang_seat') "
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
    if ((st = read_count_rows(&r, r.rows, a, ret, err)) != AS_OK)
        return st;
    *ret_n = (size_t)r.rows;
    return AS_OK;
}

as_status store_metrics_dead(struct tx *t, struct arena *a, struct metric_dead **ret, size_t *ret_n,
                             struct as_err *err)
{
    RESULT_AUTO r = {0};
    as_status st = tx_query(t, &stmts[METRICS_DEAD], NULL, &r, err);
    if (st != AS_OK)
        return st;
    if ((st = read_dead_rows(&r, r.rows, a, ret, err)) != AS_OK)
        return st;
    *ret_n = (size_t)r.rows;
    return AS_OK;
}
