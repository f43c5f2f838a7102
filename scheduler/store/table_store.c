/* Tables trial, measurement_chunk, attempt, gang_seat and events, read for the tables of a sweep.
 *
 * Points are read by trial, or chunk by chunk for a range of trials, in the order of the primary
 * key of measurement_chunk, so no plan depends on statistics. An attempt 0 stands for the values
 * that a person added with a trial. */
#include "scheduler/store/table_store.h"

#include "base/str.h"
#include "scheduler/store/pg_priv.h"
#include "scheduler/store/point_series_priv.h"
#include "scheduler/store/sets_priv.h"
#include "scheduler/store/sql_columns_priv.h"
#include "scheduler/store/sql_events_priv.h"
#include "scheduler/store/sql_ran_priv.h"
#include "scheduler/store/values_priv.h"

enum {
    TABLE_SWEEP,
    TABLE_HEAD,
    TABLE_ROWS,
    TABLE_ROWS_OF,
    TABLE_CHANGES,
    TABLE_COVERED,
    TABLE_POINTS,
    TABLE_POINTS_IN,
    TABLE_ATTEMPTS,
    TABLE_ATTEMPTS_OF
};

#define HEAD_FIELDS(FIRST, NEXT)                                                                   \
    FIRST(i64, n_trials, "s.n_total")                                                              \
    NEXT(i64, horizon, "x.id")                                                                     \
    NEXT(i64, last_event,                                                                          \
         "greatest((select max(e.id) from event e where e.sweep_key = s.key and e.id <= x.id), "   \
         "(select max(e.id) from event_set e where e.sweep_key = s.key and e.id <= x.id))")        \
    NEXT(text, document, "case when $2 then s.document end")
COLUMNS_WHOLE_ROW(struct table_head, HEAD_FIELDS)
COLUMNS_READER(head, struct table_head, HEAD_FIELDS)
#define HEAD_COLUMNS COLUMNS_SQL(HEAD_FIELDS)

/* As SQL_MS(), in doubles: extract() computes with numeric, a third of the time of a statement that
 * reads all trials. */
#define TABLE_MS(column) "(date_part('epoch', " column ") * 1000)::bigint"

#define ROW_FIELDS(FIRST, NEXT)                                                                    \
    FIRST(i64, number, "number")                                                                   \
    NEXT(trial_state, state, "state")                                                              \
    NEXT(text, origin, "origin")                                                                   \
    NEXT(i64, attempt, "attempt")                                                                  \
    NEXT(i64, restarts, "restarts")                                                                \
    NEXT(text, params, "params")                                                                   \
    NEXT(text, metrics, "metrics")                                                                 \
    NEXT(text, predicted, "suggestion->'predicted'")                                               \
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
    NEXT(text, tags, "array_to_string(tags, ',')")                                                 \
    NEXT(i64, parent, "coalesce(parent, -1)")                                                      \
    NEXT(i64, fork_step, "coalesce(fork_step, -1)")                                                \
    NEXT(i64, created_ms, TABLE_MS("created_at"))                                                  \
    NEXT(i64, started_ms, TABLE_MS("started_at"))                                                  \
    NEXT(i64, finished_ms, TABLE_MS("finished_at"))                                                \
    NEXT(i64, ran_ms, "coalesce(" SQL_RAN_MS("trial") ", -1)")                                     \
    NEXT(i64, running_since_ms, "case when state = 'running' then " TABLE_MS("claimed_at") " end")
COLUMNS_WHOLE_ROW(struct table_row, ROW_FIELDS)
COLUMNS_READER(row, struct table_row, ROW_FIELDS)
#define ROW_COLUMNS COLUMNS_SQL(ROW_FIELDS)

#define CHANGE_FIELDS(FIRST, NEXT)                                                                 \
    FIRST(i64, number, "number")                                                                   \
    NEXT(i64, event, "max(id)")                                                                    \
    NEXT(i64, attempt, "max(attempt)")                                                             \
    NEXT(bool, is_measured_only, "bool_and(type = 'trial.measured')")
COLUMNS_WHOLE_ROW(struct table_change, CHANGE_FIELDS)
COLUMNS_READER(change, struct table_change, CHANGE_FIELDS)
#define CHANGE_COLUMNS COLUMNS_SQL(CHANGE_FIELDS)

#define POINT_FIELDS(FIRST, NEXT)                                                                  \
    FIRST(i64, number, "w.number")                                                                 \
    NEXT(i64, attempt, "p.attempt")                                                                \
    NEXT(i64, step, "p.step")                                                                      \
    NEXT(f64, value, "p.value")                                                                    \
    NEXT(bool, has_seconds, "p.seconds is not null")                                               \
    NEXT(f64, seconds, "p.seconds")
COLUMNS_WHOLE_ROW(struct point_row, POINT_FIELDS)
COLUMNS_READER(point, struct point_row, POINT_FIELDS)
#define POINT_COLUMNS COLUMNS_SQL(POINT_FIELDS)

/* A chunk's arrays follow these columns: steps, values, times. */
struct chunk_head {
    int64_t number, attempt, n;
    bool has_began;
    double began; /* seconds since 1970 */
};
#define CHUNK_FIELDS(FIRST, NEXT)                                                                  \
    FIRST(i64, number, "c.number")                                                                 \
    NEXT(i64, attempt, "c.attempt")                                                                \
    NEXT(i64, n, "cardinality(c.steps)")                                                           \
    NEXT(bool, has_began, "a.started_at is not null")                                              \
    NEXT(f64, began, "date_part('epoch', a.started_at)")
COLUMNS_WHOLE_ROW(struct chunk_head, CHUNK_FIELDS)
COLUMNS_READER(chunk, struct chunk_head, CHUNK_FIELDS)
#define CHUNK_COLUMNS COLUMNS_SQL(CHUNK_FIELDS) ", c.steps, c.measured, c.recorded"

#define TIMELINE_FIELDS(FIRST, NEXT)                                                               \
    FIRST(i64, number, "x.number")                                                                 \
    NEXT(i64, attempt, "x.attempt")                                                                \
    NEXT(i64, seat, "x.seat")                                                                      \
    NEXT(text, runner, "x.runner")                                                                 \
    NEXT(text, client, "x.client")                                                                 \
    NEXT(text, group, "x.group_id")                                                                \
    NEXT(text, outcome, "x.outcome")                                                               \
    NEXT(i64, began_ms, TABLE_MS("x.began_at"))                                                    \
    NEXT(i64, ended_ms, TABLE_MS("x.ended_at"))
COLUMNS_WHOLE_ROW(struct timeline_row, TIMELINE_FIELDS)
COLUMNS_READER(timeline, struct timeline_row, TIMELINE_FIELDS)
/* A seat whose runner said nothing at its end ended as its state says: lost, or left. */
#define TIMELINE_SELECT(numbers)                                                                   \
    "select " COLUMNS_SQL(                                                                         \
        TIMELINE_FIELDS) " from (select number, attempt, -1 as seat, runner, client, group_id, "   \
                         "outcome, started_at as began_at, ended_at from attempt where sweep_key " \
                         "= $1 and " numbers " union all select number, attempt, seat, runner, "   \
                         "null, null, case when ended_at is not null then coalesce(outcome, "      \
                         "state) end, seated_at, ended_at from gang_seat where sweep_key = $1 "    \
                         "and " numbers ") x order by x.number, x.attempt, x.seat"

static const struct stmt stmts[] = {
    [TABLE_SWEEP] = {"table_sweep", "select key, metric from sweep_base where id = $1"},
    [TABLE_HEAD] = {"table_head", "select " HEAD_COLUMNS " from sweep s, (select "
                                  "(pg_snapshot_xmin(pg_current_snapshot())::text::bigint << 20) "
                                  "- 1 as id) x where s.key = $1"},
    [TABLE_ROWS] = {"table_rows", "select " ROW_COLUMNS " from trial where sweep_key = $1 and "
                                  "number >= $2 and number < $3 order by number"},
    [TABLE_ROWS_OF] = {"table_rows_of", "select " ROW_COLUMNS " from trial where sweep_key = $1 "
                                        "and number = any ($2::int[]) order by number"},
    [TABLE_CHANGES] = {"table_changes",
                       "select " CHANGE_COLUMNS
                       " from (select id, type, number, attempt from event "
                       "where sweep_key = $1 and id > $2 and id <= $3 and number is not null union "
                       "all select " SQL_EVENT_ID ", s.type, x.number, x.attempt from event_set "
                       "s" SQL_EVENT_UNPACKED " where s.sweep_key = $1 and s.id > $2 and s.id <= "
                       "$3) e group by number order by number"},
    [TABLE_COVERED] = {"table_covered",
                       "select time > clock_timestamp() - $2 * interval '1 ms' from ((select id, "
                       "time from event where id <= $1 order by id desc limit 1) union all (select "
                       "id, time from event_set where id <= $1 order by id desc limit 1)) e order "
                       "by id desc limit 1"},
    [TABLE_POINTS] =
        {"table_points",
         "select " POINT_COLUMNS " from unnest($3::int[], $4::int[], $5::bigint[]) with ordinality "
         "as w(number, attempt, after, place) cross join lateral (select distinct on (m.step) "
         "c.attempt, m.step, m.value, m.at / 1e6::float8 - date_part('epoch', a.started_at) as "
         "seconds from (select attempt, started_at from attempt where sweep_key = $1 and number = "
         "w.number union all select 0, null) a join measurement_chunk c on c.sweep_key = $1 and "
         "c.number = w.number and c.metric = $2 and c.attempt = a.attempt cross join lateral "
         "unnest(c.steps, c.measured, c.recorded) as m(step, value, at) where "
         "c.steps[cardinality(c.steps)] > w.after and m.step > w.after and (w.attempt < 0 or "
         "a.attempt = w.attempt) order by m.step, c.attempt desc limit $6) p "
         "order by w.place, p.step"},
    [TABLE_POINTS_IN] =
        {"table_points_in",
         "select " CHUNK_COLUMNS
         " from measurement_chunk c left join attempt a on " SQL_JOINED_ATTEMPT(
             "a", "c") " where c.sweep_key = $1 and c.number >= $3 and c.number < $4 and "
                       "c.metric = $2 and (c.attempt = 0 or a.attempt is not null) order by "
                       "c.sweep_key, c.number, c.metric, c.attempt, c.first_step limit $5"},
    [TABLE_ATTEMPTS] = {"table_attempts", TIMELINE_SELECT("number >= $2 and number < $3")},
    [TABLE_ATTEMPTS_OF] = {"table_attempts_of", TIMELINE_SELECT("number = any ($2::int[])")},
};
const struct stmt_set table_stmts = {"table", stmts, AS_ARRAY_LEN(stmts)};

as_status store_table_sweep(struct tx *t, struct arena *a, const char *id, int64_t *ret_key,
                            const char **ret_metric, struct as_err *err)
{
    RESULT_AUTO r = {0};
    as_status st = tx_query(t, &stmts[TABLE_SWEEP], ARGS(arg_str(id)), &r, err);
    if (st != AS_OK)
        return st;
    if (r.rows == 0)
        return as_fail(err, AS_E_NOT_FOUND, "there is no sweep '%.80s'", id);
    struct reader rd;
    reader_init(&rd, &r, 0, a);
    *ret_key = read_i64(&rd);
    *ret_metric = read_str(&rd);
    return reader_check(&rd, err);
}

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

static as_status list_numbers(struct str *b, const struct table_change *changes, size_t n,
                              struct as_err *err)
{
    array_open(b);
    for (size_t i = 0; i < n; i++)
        array_i64(b, changes[i].number);
    array_close(b);
    return str_check(b, err);
}

as_status store_table_rows_of(struct tx *t, struct arena *a, int64_t sweep_key,
                              const struct table_change *changes, size_t n, struct table_row **ret,
                              size_t *ret_n, struct as_err *err)
{
    AS_AUTO(str_done) struct str numbers = {0};
    RESULT_AUTO r = {0};
    as_status st = list_numbers(&numbers, changes, n, err);
    if (st != AS_OK)
        return st;
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

as_status store_table_points(struct tx *t, struct arena *a, int64_t sweep_key, const char *metric,
                             const struct point_want *wants, size_t n, int64_t limit,
                             struct point_row **ret, size_t *ret_n, struct as_err *err)
{
    ARRAYS_AUTO x = {0};
    RESULT_AUTO r = {0};
    arrays_open(&x);
    for (size_t i = 0; i < n; i++) {
        array_i64(&x.c[0], wants[i].number);
        array_i64(&x.c[1], wants[i].attempt);
        array_i64(&x.c[2], wants[i].after);
    }
    as_status st = arrays_close(&x, err);
    if (st == AS_OK)
        st = tx_query(t, &stmts[TABLE_POINTS],
                      ARGS(arg_i64(sweep_key), arg_str(metric), arg_array(&x, 0), arg_array(&x, 1),
                           arg_array(&x, 2), arg_i64(limit)),
                      &r, err);
    if (st == AS_OK)
        st = read_point_rows(&r, r.rows, a, ret, err);
    if (st == AS_OK)
        *ret_n = (size_t)r.rows;
    return st;
}

/* Append the points of a chunk to rows, which have room for them. */
static as_status unpack_chunk(struct reader *rd, const struct chunk_head *c, struct point_row *rows,
                              struct as_err *err)
{
    int64_t steps[CHUNK_POINTS_MAX], recorded[CHUNK_POINTS_MAX];
    double values[CHUNK_POINTS_MAX];
    bool has[CHUNK_POINTS_MAX];
    as_status st = AS_OK;
    size_t n = (size_t)c->n;
    if (c->n < 0 || c->n > CHUNK_POINTS_MAX)
        return as_fail(err, AS_E_INTERNAL, "a chunk of %lld points", (long long)c->n);
    if ((st = read_integers(rd, n, steps, has, err)) != AS_OK ||
        (st = read_values(rd, n, values, NULL, err)) != AS_OK ||
        (st = read_integers(rd, n, recorded, has, err)) != AS_OK)
        return st;
    for (size_t i = 0; i < n; i++)
        rows[i] = (struct point_row){.number = c->number,
                                     .attempt = c->attempt,
                                     .step = steps[i],
                                     .value = values[i],
                                     .has_seconds = has[i] && c->has_began,
                                     .seconds = has[i] ? (double)recorded[i] / 1e6 - c->began : 0};
    return AS_OK;
}

as_status store_table_points_in(struct tx *t, struct arena *a, int64_t sweep_key,
                                const char *metric, const struct point_range *range,
                                struct point_row **ret, size_t *ret_n, int64_t *ret_to,
                                struct as_err *err)
{
    RESULT_AUTO r = {0};
    struct chunk_head c = {0};
    size_t n = 0, n_whole = 0; /* points; those of trials that are whole */
    as_status st = tx_query(t, &stmts[TABLE_POINTS_IN],
                            ARGS(arg_i64(sweep_key), arg_str(metric), arg_i64(range->from),
                                 arg_i64(range->to), arg_i64(range->chunks)),
                            &r, err);
    if (st != AS_OK)
        return st;
    struct point_row *rows = arena_alloc(a, (size_t)r.rows * CHUNK_POINTS_MAX + 1, sizeof *rows);
    if (!rows)
        return as_fail_nomem(err);
    for (int i = 0; i < r.rows; i++, n += (size_t)c.n) {
        struct reader rd;
        int64_t before = c.number;
        reader_init(&rd, &r, i, a);
        read_chunk(&rd, &c);
        if (i > 0 && c.number != before)
            n_whole = n;
        if ((st = unpack_chunk(&rd, &c, rows + n, err)) != AS_OK ||
            (st = reader_check(&rd, err)) != AS_OK)
            return st;
    }
    bool is_cut = r.rows == range->chunks; /* the last trial may have more */
    *ret = rows;
    *ret_n = is_cut ? n_whole : n;
    *ret_to = is_cut ? c.number : range->to;
    return AS_OK;
}

static as_status read_all_timeline(const struct result *r, struct arena *a,
                                   struct timeline_row **ret, size_t *ret_n, struct as_err *err)
{
    as_status st = read_timeline_rows(r, r->rows, a, ret, err);
    if (st == AS_OK)
        *ret_n = (size_t)r->rows;
    return st;
}

as_status store_table_attempts(struct tx *t, struct arena *a, int64_t sweep_key, int64_t from,
                               int64_t to, struct timeline_row **ret, size_t *ret_n,
                               struct as_err *err)
{
    RESULT_AUTO r = {0};
    as_status st = tx_query(t, &stmts[TABLE_ATTEMPTS],
                            ARGS(arg_i64(sweep_key), arg_i64(from), arg_i64(to)), &r, err);
    return st == AS_OK ? read_all_timeline(&r, a, ret, ret_n, err) : st;
}

as_status store_table_attempts_of(struct tx *t, struct arena *a, int64_t sweep_key,
                                  const struct table_change *changes, size_t n,
                                  struct timeline_row **ret, size_t *ret_n, struct as_err *err)
{
    AS_AUTO(str_done) struct str numbers = {0};
    RESULT_AUTO r = {0};
    as_status st = list_numbers(&numbers, changes, n, err);
    if (st == AS_OK)
        st = tx_query(t, &stmts[TABLE_ATTEMPTS_OF],
                      ARGS(arg_i64(sweep_key), arg_str(str_cstr(&numbers))), &r, err);
    return st == AS_OK ? read_all_timeline(&r, a, ret, ret_n, err) : st;
}
