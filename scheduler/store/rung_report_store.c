/* What early stopping has done in a sweep, for people. */
#include "scheduler/store/rung_report_store.h"

#include "scheduler/store/pg_priv.h"
#include "scheduler/store/sets_priv.h"
#include "scheduler/store/sql_columns_priv.h"

enum { RUNG_ENDED, RUNG_REPORTED, RUNG_STEPS, RUNG_COUNTS };

#define COUNT_FIELDS(FIRST, NEXT)                                                                  \
    FIRST(i64, reached, "count(*)")                                                                \
    NEXT(i64, stopped,                                                                             \
         "count(*) filter (where r.decision = 'prune' or (r.decision = 'pause' and "               \
         "r.promoted_seq is null and t.state = 'pruned' and t.decision = 'pause' and t.rung = "    \
         "r.rung + 1))")                                                                           \
    NEXT(i64, waiting,                                                                             \
         "count(*) filter (where r.decision = 'pause' and r.promoted_seq is null and t.state in "  \
         "('running', 'paused') and t.decision = 'pause')")                                        \
    NEXT(i64, obeyed,                                                                              \
         "count(*) filter (where r.decision <> 'go_on' and x.reported in ('paused', 'pruned') "    \
         "and x.exit_code is distinct from -9)")                                                   \
    NEXT(i64, disobeyed,                                                                           \
         "count(*) filter (where r.decision <> 'go_on' and (x.reported not in ('paused', "         \
         "'pruned') or x.outcome = 'lost' or x.exit_code = -9))")
COLUMNS_WHOLE_ROW(struct rung_count, COUNT_FIELDS)
COLUMNS_READER(count, struct rung_count, COUNT_FIELDS)
#define COUNT_COLUMNS COLUMNS_SQL(COUNT_FIELDS)

static const struct stmt stmts[] = {
    [RUNG_ENDED] = {"rung_ended",
                    "select count(*), count(*) filter (where h.has), count(*) filter (where "
                    "t.state = 'completed'), coalesce(max(t.step) filter (where t.state = "
                    "'completed'), -1) from trial t cross join lateral (select exists (select from "
                    "rung_result r where r.sweep_key = "
                    "t.sweep_key and r.number = t.number) as has) h where t.sweep_key = $1 and "
                    "t.state in ('completed', 'pruned') and t.origin <> 'known'"},
    [RUNG_REPORTED] = {"rung_reported",
                       "select distinct m.step from (select number from trial t where t.sweep_key "
                       "= $1 and t.state in ('completed', 'pruned') and t.origin <> 'known' and "
                       "not exists (select from rung_result r join sweep s on s.key = r.sweep_key "
                       "where r.sweep_key = t.sweep_key and r.number = t.number and r.rung + 1 < "
                       "array_length(s.rungs, 1)) order by t.finish_seq limit 1) f join "
                       "measurement m on m.sweep_key = $1 and m.number = f.number and m.metric = "
                       "$2 order by m.step limit $3"},
    [RUNG_STEPS] = {"rung_steps",
                    "select u.step, s.steps_spent, (select coalesce(sum(greatest(0, "
                    "s.rungs[array_length(s.rungs, 1)] - t.spent)), 0) from trial t where "
                    "t.sweep_key = s.key and t.state = 'pruned' and s.population is null)::bigint, "
                    "s.n_completed from sweep s cross join "
                    "unnest(s.rungs) as u(step) where s.key = $1 order by u.step"},
    [RUNG_COUNTS] = {"rung_counts",
                     "select r.rung, " COUNT_COLUMNS " from rung_result r join trial t on "
                     "t.sweep_key = r.sweep_key and t.number = r.number left join attempt x on "
                     "x.sweep_key = r.sweep_key and x.number = r.number and x.attempt = r.attempt "
                     "where r.sweep_key = $1 group by r.rung order by r.rung"},
};
const struct stmt_set rung_report_stmts = {"rung_report", stmts, AS_ARRAY_LEN(stmts)};

as_status store_rung_ended(struct tx *t, int64_t sweep_key, struct rung_ended *ret,
                           struct as_err *err)
{
    RESULT_AUTO r = {0};
    as_status st = tx_query(t, &stmts[RUNG_ENDED], ARGS(arg_i64(sweep_key)), &r, err);
    if (st != AS_OK)
        return st;
    *ret = (struct rung_ended){.n = result_i64(&r, 0, 0),
                               .n_with_result = result_i64(&r, 0, 1),
                               .n_completed = result_i64(&r, 0, 2),
                               .furthest = result_i64(&r, 0, 3)};
    return AS_OK;
}

as_status store_rung_reported(struct tx *t, struct arena *a, int64_t sweep_key, const char *metric,
                              const int64_t **ret, size_t *ret_n, struct as_err *err)
{
    RESULT_AUTO r = {0};
    as_status st =
        tx_query(t, &stmts[RUNG_REPORTED],
                 ARGS(arg_i64(sweep_key), arg_str(metric), arg_i64(RUNG_STEPS_SHOWN)), &r, err);
    if (st != AS_OK)
        return st;
    int64_t *steps = arena_alloc(a, (size_t)r.rows + 1, sizeof *steps);
    if (!steps)
        return as_fail_nomem(err);
    for (int i = 0; i < r.rows; i++)
        steps[i] = result_i64(&r, i, 0);
    *ret = steps;
    *ret_n = (size_t)r.rows;
    return AS_OK;
}

static as_status read_counts(struct tx *t, struct arena *a, int64_t sweep_key,
                             struct rung_count *counts, size_t n, struct as_err *err)
{
    RESULT_AUTO r = {0};
    as_status st = tx_query(t, &stmts[RUNG_COUNTS], ARGS(arg_i64(sweep_key)), &r, err);
    for (int i = 0; i < r.rows && st == AS_OK; i++) {
        struct reader rd;
        reader_init(&rd, &r, i, a);
        size_t rung = (size_t)read_i64(&rd);
        if (rung < n)
            read_count(&rd, &counts[rung]);
        st = reader_check(&rd, err);
    }
    return st;
}

as_status store_rung_report(struct tx *t, struct arena *a, int64_t sweep_key,
                            struct stopping_report *ret, struct as_err *err)
{
    RESULT_AUTO r = {0};
    *ret = (struct stopping_report){0};
    as_status st = tx_query(t, &stmts[RUNG_STEPS], ARGS(arg_i64(sweep_key)), &r, err);
    if (st != AS_OK || r.rows == 0)
        return st;
    size_t n = (size_t)r.rows;
    int64_t *steps = arena_alloc(a, n, sizeof *steps);
    struct rung_count *counts = arena_alloc(a, n, sizeof *counts);
    if (!steps || !counts)
        return as_fail_nomem(err);
    for (size_t i = 0; i < n; i++) {
        steps[i] = result_i64(&r, (int)i, 0);
        counts[i] = (struct rung_count){0};
    }
    *ret = (struct stopping_report){.is_there = true,
                                    .steps = steps,
                                    .rungs = counts,
                                    .n_rungs = n,
                                    .steps_spent = result_i64(&r, 0, 1),
                                    .steps_saved = result_i64(&r, 0, 2),
                                    .n_completed = result_i64(&r, 0, 3)};
    return read_counts(t, a, sweep_key, counts, n, err);
}
