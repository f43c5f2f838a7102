/* Table measurement.
 *
 * Points are inserted as three arrays in one statement, and points that exist are ignored, so that
 * a repeated batch is safe. After each batch the latest values in the trial's row are computed
 * again from the table, not from the batch. Two batches in either order therefore give the same
 * row. */
#include "scheduler/store/measurement_store.h"

#include "scheduler/store/sql_columns_priv.h"
#include "scheduler/store/pg_priv.h"
#include "scheduler/store/sets_priv.h"

enum {
    MEASUREMENT_ADD,
    MEASUREMENT_LATEST,
    MEASUREMENT_STEP,
    MEASUREMENT_OTHER,
    MEASUREMENT_SERIES
};

#define MEASURED_FIELDS(FIRST, NEXT)                                                               \
    FIRST(bool, has_value, "t.value is not null")                                                  \
    NEXT(f64, value, "t.value")
COLUMNS_READER(measured, struct measured, MEASURED_FIELDS)
#define MEASURED_COLUMNS COLUMNS_SQL(MEASURED_FIELDS)

#define OTHER_FIELDS(FIRST, NEXT)                                                                  \
    FIRST(i64, place, "p.place - 1")                                                               \
    NEXT(bool, has_value, "m.value is not null")                                                   \
    NEXT(f64, value, "m.value")
COLUMNS_WHOLE_ROW(struct measured_other, OTHER_FIELDS)
COLUMNS_READER(other, struct measured_other, OTHER_FIELDS)
#define OTHER_COLUMNS COLUMNS_SQL(OTHER_FIELDS)

/* The latest value of a metric is that of the latest attempt that reported it, at its highest step.
 * JSON has no NaN, so such values are stored as text. */
static const struct stmt stmts[] = {
    [MEASUREMENT_ADD] =
        {"measurement_add",
         "insert into measurement (sweep_key, number, attempt, step, metric, value) "
         "select $1, $2, $3, p.step, p.metric, p.value from unnest($4::bigint[], "
         "$5::text[], $6::float8[]) as p(step, metric, value) on conflict do "
         "nothing"},
    [MEASUREMENT_LATEST] =
        {"measurement_latest",
         "with latest as (select n.metric, l.value, l.step from (select distinct metric from "
         "unnest($3::text[]) as u(metric)) n cross join lateral (select value, step from "
         "measurement where sweep_key = $1 and number = $2 and metric = n.metric order by attempt "
         "desc, step desc limit 1) l) update trial t set metrics = t.metrics || (select "
         "jsonb_object_agg(metric, case when value in ('NaN', 'Infinity', '-Infinity') then "
         "to_jsonb(value::text) else to_jsonb(value) end) from latest), step = (select max(step) "
         "from latest), value = coalesce((select l.value from latest l where l.metric = s.metric), "
         "t.value) from sweep s where s.key = t.sweep_key and t.sweep_key = $1 and t.number = $2 "
         "returning " MEASURED_COLUMNS},
    [MEASUREMENT_STEP] = {"measurement_step",
                          "select coalesce(max(step), -1) from measurement where sweep_key = $1 "
                          "and number = $2 and attempt = $3"},
    /* NaN equals NaN in PostgreSQL. */
    [MEASUREMENT_OTHER] = {"measurement_other",
                           "select " OTHER_COLUMNS " from unnest($4::bigint[], $5::text[], "
                           "$6::float8[]) with ordinality as p(step, metric, value, place) left "
                           "join lateral (select value from measurement where sweep_key = $1 and "
                           "number = $2 and attempt = $3 and metric = p.metric and (p.step < 0 or "
                           "step = p.step) order by step desc limit 1) m on true where m.value is "
                           "distinct from p.value order by p.place limit 1"},
    [MEASUREMENT_SERIES] = {"measurement_series",
                            "select distinct on (metric, step) metric, step, value from "
                            "measurement where sweep_key = $1 and number = $2 and ($3::text is "
                            "null or metric = $3) and ($4::text is null or (metric, step) > ($4, "
                            "$5::bigint)) order by metric, step, attempt desc limit $6"},
};
const struct stmt_set measurement_stmts = {"measurement", stmts, AS_ARRAY_LEN(stmts)};

struct columns {
    struct str steps, metrics, values;
};

static void columns_done(struct columns *c)
{
    str_done(&c->steps);
    str_done(&c->metrics);
    str_done(&c->values);
}

static as_status columns_fill(struct columns *c, const struct measurement *points, size_t n,
                              struct as_err *err)
{
    array_open(&c->steps);
    array_open(&c->metrics);
    array_open(&c->values);
    for (size_t i = 0; i < n; i++) {
        array_i64(&c->steps, points[i].step);
        array_str(&c->metrics, points[i].metric);
        array_f64(&c->values, points[i].value);
    }
    array_close(&c->steps);
    array_close(&c->metrics);
    array_close(&c->values);
    if (c->steps.failed || c->metrics.failed || c->values.failed)
        return as_fail_nomem(err);
    return AS_OK;
}

static as_status update_latest(struct tx *t, int64_t sweep_key, int64_t number,
                               const struct columns *c, struct measured *ret, struct as_err *err)
{
    RESULT_AUTO r = {0};
    as_status st = tx_query(
        t, &stmts[MEASUREMENT_LATEST],
        ARGS(arg_i64(sweep_key), arg_i64(number), arg_str(str_cstr(&c->metrics))), &r, err);
    if (st != AS_OK)
        return st;
    if (r.rows == 0)
        return as_fail(err, AS_E_INTERNAL, "the trial that was measured is not there");
    return read_measured_row(&r, 0, NULL, ret, err);
}

as_status store_measurement_add(struct tx *t, int64_t sweep_key, int64_t number, int64_t attempt,
                                const struct measurement *points, size_t n, struct measured *ret,
                                struct as_err *err)
{
    AS_AUTO(columns_done) struct columns c = {0};
    as_status st = columns_fill(&c, points, n, err);
    if (st != AS_OK)
        return st;
    int recorded = 0;
    st = tx_exec(t, &stmts[MEASUREMENT_ADD],
                 ARGS(arg_i64(sweep_key), arg_i64(number), arg_i64(attempt),
                      arg_str(str_cstr(&c.steps)), arg_str(str_cstr(&c.metrics)),
                      arg_str(str_cstr(&c.values))),
                 &recorded, err);
    *ret = (struct measured){.recorded = recorded};
    if (st == AS_OK && recorded > 0)
        st = update_latest(t, sweep_key, number, &c, ret, err);
    return st;
}

as_status store_measurement_other(struct tx *t, int64_t sweep_key, int64_t number, int64_t attempt,
                                  const struct measurement *points, size_t n,
                                  struct measured_other *ret, struct as_err *err)
{
    AS_AUTO(columns_done) struct columns c = {0};
    RESULT_AUTO r = {0};
    *ret = (struct measured_other){.place = -1};
    if (n == 0)
        return AS_OK;
    as_status st = columns_fill(&c, points, n, err);
    if (st != AS_OK)
        return st;
    st = tx_query(t, &stmts[MEASUREMENT_OTHER],
                  ARGS(arg_i64(sweep_key), arg_i64(number), arg_i64(attempt),
                       arg_str(str_cstr(&c.steps)), arg_str(str_cstr(&c.metrics)),
                       arg_str(str_cstr(&c.values))),
                  &r, err);
    if (st < 0 || r.rows == 0)
        return st;
    return read_other_row(&r, 0, NULL, ret, err);
}

as_status store_measurement_add_many(struct tx *t, struct trial_points *sets, size_t n,
                                     struct as_err *err)
{
    as_status st = AS_OK;
    for (size_t i = 0; i < n && st == AS_OK; i++)
        st = store_measurement_add(t, sets[i].sweep_key, sets[i].number, sets[i].attempt,
                                   sets[i].points, sets[i].n, &sets[i].ret, err);
    return st;
}

as_status store_measurement_other_many(struct tx *t, const struct trial_points *sets, size_t n,
                                       struct measured_other *ret, struct as_err *err)
{
    as_status st = AS_OK;
    for (size_t i = 0; i < n && st == AS_OK; i++)
        st = store_measurement_other(t, sets[i].sweep_key, sets[i].number, sets[i].attempt,
                                     sets[i].points, sets[i].n, &ret[i], err);
    return st;
}

as_status store_measurement_latest_step(struct tx *t, int64_t sweep_key, int64_t number,
                                        int64_t attempt, int64_t *ret, struct as_err *err)
{
    RESULT_AUTO r = {0};
    as_status st = tx_query(t, &stmts[MEASUREMENT_STEP],
                            ARGS(arg_i64(sweep_key), arg_i64(number), arg_i64(attempt)), &r, err);
    if (st != AS_OK)
        return st;
    *ret = result_i64(&r, 0, 0);
    return AS_OK;
}

/* The rows are sorted by metric: cut them into series. */
static as_status read_series(const struct result *r, size_t n, struct arena *a,
                             struct series_list *ret, struct as_err *err)
{
    size_t n_series = 0;
    struct series_row *rows = NULL;
    size_t cap = 0;
    int64_t *steps = arena_alloc(a, n + 1, sizeof *steps);
    double *values = arena_alloc(a, n + 1, sizeof *values);
    if (!steps || !values)
        return as_fail_nomem(err);
    for (size_t i = 0; i < n; i++) {
        struct reader rd;
        reader_init(&rd, r, (int)i, a);
        const char *metric = read_view(&rd);
        if (n_series == 0 || !as_streq(rows[n_series - 1].metric, metric)) {
            if (n_series == cap) {
                cap = cap ? cap * 2 : 16;
                struct series_row *more = arena_alloc(a, cap, sizeof *more);
                if (!more)
                    return as_fail_nomem(err);
                for (size_t k = 0; k < n_series; k++)
                    more[k] = rows[k];
                rows = more;
            }
            rows[n_series++] = (struct series_row){
                .metric = arena_strdup(a, metric), .steps = steps + i, .values = values + i};
            if (!rows[n_series - 1].metric)
                return as_fail_nomem(err);
        }
        steps[i] = read_i64(&rd);
        values[i] = read_f64(&rd);
        rows[n_series - 1].n++;
    }
    *ret = (struct series_list){.rows = rows, .n = n_series, .has_more = (size_t)r->rows > n};
    return AS_OK;
}

as_status store_measurement_series(struct tx *t, struct arena *a, int64_t sweep_key, int64_t number,
                                   const struct series_query *q, struct series_list *ret,
                                   struct as_err *err)
{
    RESULT_AUTO r = {0};
    as_status st =
        tx_query(t, &stmts[MEASUREMENT_SERIES],
                 ARGS(arg_i64(sweep_key), arg_i64(number), arg_str(q->metric),
                      arg_str(q->after_metric), arg_i64(q->after_step), arg_i64(q->limit + 1)),
                 &r, err);
    size_t n = (size_t)(r.rows > q->limit ? q->limit : r.rows);
    return st == AS_OK ? read_series(&r, n, a, ret, err) : st;
}
