/* Tables trial and event, read for the table of a sweep. */
#include "scheduler/store/table_store.h"

#include "base/str.h"
#include "scheduler/store/pg_priv.h"
#include "scheduler/store/sets_priv.h"
#include "scheduler/store/sql_columns_priv.h"

enum { TABLE_HEAD, TABLE_ROWS, TABLE_ROWS_OF, TABLE_CHANGES, TABLE_COVERED };

#define HEAD_FIELDS(FIRST, NEXT)                                                                   \
    FIRST(i64, n_trials, "s.n_total")                                                              \
    NEXT(i64, horizon, "x.id")                                                                     \
    NEXT(i64, last_event,                                                                          \
         "(select max(e.id) from event e where e.sweep_key = s.key and e.id <= "                   \
         "x.id)")                                                                                  \
    NEXT(text, document, "case when $2 then s.document end")
COLUMNS_WHOLE_ROW(struct table_head, HEAD_FIELDS)
COLUMNS_READER(head, struct table_head, HEAD_FIELDS)
#define HEAD_COLUMNS COLUMNS_SQL(HEAD_FIELDS)

#define ROW_FIELDS(FIRST, NEXT)                                                                    \
    FIRST(i64, number, "number")                                                                   \
    NEXT(trial_state, state, "state")                                                              \
    NEXT(text, origin, "origin")                                                                   \
    NEXT(i64, attempt, "attempt")                                                                  \
    NEXT(i64, restarts, "restarts")                                                                \
    NEXT(text, params, "params")                                                                   \
    NEXT(text, metrics, "metrics")                                                                 \
    NEXT(bool, has_value, "value is not null")                                                     \
    NEXT(bool, has_step, "step is not null")                                                       \
    NEXT(f64, value, "value")                                                                      \
    NEXT(i64, step, "step")                                                                        \
    NEXT(bool, infeasible, "feasible is false")                                                    \
    NEXT(i64, rungs, "rung")                                                                       \
    NEXT(text, decision, "decision")                                                               \
    NEXT(text, runner, "runner")                                                                   \
    NEXT(text, client, "client")                                                                   \
    NEXT(text, group, "group_id")                                                                  \
    NEXT(text, reason, "reason")                                                                   \
    NEXT(i64, created_ms, SQL_MS("created_at"))                                                    \
    NEXT(i64, started_ms, SQL_MS("started_at"))                                                    \
    NEXT(i64, finished_ms, SQL_MS("finished_at"))
COLUMNS_WHOLE_ROW(struct table_row, ROW_FIELDS)
COLUMNS_READER(row, struct table_row, ROW_FIELDS)
#define ROW_COLUMNS COLUMNS_SQL(ROW_FIELDS)

#define CHANGE_FIELDS(FIRST, NEXT)                                                                 \
    FIRST(i64, number, "number")                                                                   \
    NEXT(i64, event, "max(id)")
COLUMNS_WHOLE_ROW(struct table_change, CHANGE_FIELDS)
COLUMNS_READER(change, struct table_change, CHANGE_FIELDS)
#define CHANGE_COLUMNS COLUMNS_SQL(CHANGE_FIELDS)

static const struct stmt stmts[] = {
    [TABLE_HEAD] = {"table_head", "select " HEAD_COLUMNS " from sweep s, (select "
                                  "(pg_snapshot_xmin(pg_current_snapshot())::text::bigint << 20) "
                                  "- 1 as id) x where s.key = $1"},
    [TABLE_ROWS] = {"table_rows", "select " ROW_COLUMNS " from trial where sweep_key = $1 and "
                                  "number >= $2 and number < $3 order by number"},
    [TABLE_ROWS_OF] = {"table_rows_of", "select " ROW_COLUMNS " from trial where sweep_key = $1 "
                                        "and number = any ($2::int[]) order by number"},
    [TABLE_CHANGES] = {"table_changes",
                       "select " CHANGE_COLUMNS " from event where sweep_key = $1 and id > $2 and "
                       "id <= $3 and number is not null group by number order by number"},
    [TABLE_COVERED] = {"table_covered",
                       "select time > clock_timestamp() - $2 * interval '1 ms' from event where "
                       "id <= $1 order by id desc limit 1"},
};
const struct stmt_set table_stmts = {"table", stmts, AS_ARRAY_LEN(stmts)};

as_status store_table_head(struct tx *t, struct arena *a, int64_t sweep_key, bool with_document,
                           struct table_head *ret, struct as_err *err)
{
    RESULT_AUTO r = {0};
    as_status st =
        tx_query(t, &stmts[TABLE_HEAD], ARGS(arg_i64(sweep_key), arg_bool(with_document)), &r, err);
    if (st != AS_OK)
        return st;
    if (r.rows == 0)
        return as_fail(err, AS_E_NOT_FOUND, "the sweep was deleted");
    return read_head_row(&r, 0, a, ret, err);
}

static as_status read_all(const struct result *r, struct arena *a, struct table_row **ret,
                          size_t *ret_n, struct as_err *err)
{
    as_status st = read_row_rows(r, r->rows, a, ret, err);
    if (st == AS_OK)
        *ret_n = (size_t)r->rows;
    return st;
}

as_status store_table_rows(struct tx *t, struct arena *a, int64_t sweep_key, int64_t from,
                           int64_t to, struct table_row **ret, size_t *ret_n, struct as_err *err)
{
    RESULT_AUTO r = {0};
    as_status st = tx_query(t, &stmts[TABLE_ROWS],
                            ARGS(arg_i64(sweep_key), arg_i64(from), arg_i64(to)), &r, err);
    return st == AS_OK ? read_all(&r, a, ret, ret_n, err) : st;
}

as_status store_table_rows_of(struct tx *t, struct arena *a, int64_t sweep_key,
                              const struct table_change *changes, size_t n, struct table_row **ret,
                              size_t *ret_n, struct as_err *err)
{
    AS_AUTO(str_done) struct str numbers = {0};
    array_open(&numbers);
    for (size_t i = 0; i < n; i++)
        array_i64(&numbers, changes[i].number);
    array_close(&numbers);
    as_status st = str_check(&numbers, err);
    if (st != AS_OK)
        return st;
    RESULT_AUTO r = {0};
    st = tx_query(t, &stmts[TABLE_ROWS_OF], ARGS(arg_i64(sweep_key), arg_str(str_cstr(&numbers))),
                  &r, err);
    return st == AS_OK ? read_all(&r, a, ret, ret_n, err) : st;
}

as_status store_table_changes(struct tx *t, struct arena *a, int64_t sweep_key, int64_t after,
                              int64_t up_to, struct table_change **ret, size_t *ret_n,
                              struct as_err *err)
{
    RESULT_AUTO r = {0};
    as_status st = tx_query(t, &stmts[TABLE_CHANGES],
                            ARGS(arg_i64(sweep_key), arg_i64(after), arg_i64(up_to)), &r, err);
    if (st == AS_OK)
        st = read_change_rows(&r, r.rows, a, ret, err);
    if (st == AS_OK)
        *ret_n = (size_t)r.rows;
    return st;
}

as_status store_table_covered(struct tx *t, int64_t event, int64_t max_ms, bool *ret,
                              struct as_err *err)
{
    RESULT_AUTO r = {0};
    as_status st =
        tx_query(t, &stmts[TABLE_COVERED], ARGS(arg_i64(event), arg_i64(max_ms)), &r, err);
    if (st != AS_OK)
        return st;
    struct reader rd;
    reader_init(&rd, &r, 0, NULL);
    *ret = r.rows > 0 && read_bool(&rd);
    return AS_OK;
}
