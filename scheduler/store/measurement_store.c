/* Measurements of trials. Their points are in chunks, which chunk_store.c writes.
 *
 * The latest values in the rows of the trials are computed again from the table, not from the
 * batch. Two batches in either order therefore give the same row.
 *
 * No statement joins two tables in a way that depends on their statistics: a set costs the same on
 * tables that nobody has analysed. */
#include "scheduler/store/measurement_store.h"

#include <stdlib.h>

#include "scheduler/store/pg_priv.h"
#include "scheduler/store/chunk_store_priv.h"
#include "scheduler/store/sets_priv.h"
#include "scheduler/store/sql_columns_priv.h"

enum { MEASUREMENT_LATEST, MEASUREMENT_STEP, MEASUREMENT_OTHER, MEASUREMENT_SERIES };

/* A trial after its points were added. */
struct trial_value {
    int64_t sweep_key, number;
    bool has_value;
    double value;
};
#define VALUE_FIELDS(FIRST, NEXT)                                                                  \
    FIRST(i64, sweep_key, "t.sweep_key")                                                           \
    NEXT(i64, number, "t.number")                                                                  \
    NEXT(bool, has_value, "t.value is not null")                                                   \
    NEXT(f64, value, "t.value")
COLUMNS_WHOLE_ROW(struct trial_value, VALUE_FIELDS)
COLUMNS_READER(value, struct trial_value, VALUE_FIELDS)
#define VALUE_COLUMNS COLUMNS_SQL(VALUE_FIELDS)

struct set_other {
    int64_t set;
    struct measured_other other; /* its place is that among the points of all sets */
};
#define OTHER_FIELDS(FIRST, NEXT)                                                                  \
    FIRST(i64, set, "p.set - 1")                                                                   \
    NEXT(i64, other.place, "p.place - 1")                                                          \
    NEXT(bool, other.has_value, "m.value is not null")                                             \
    NEXT(f64, other.value, "m.value")
COLUMNS_READER(other, struct set_other, OTHER_FIELDS)
#define OTHER_COLUMNS COLUMNS_SQL(OTHER_FIELDS)

#define LAST_STEP "c.steps[cardinality(c.steps)]"

/* $1 to $3: the attempts of the sets; $4 to $7: the points, each with its set. */
#define SET_POINTS                                                                                 \
    "unnest($4::int[], $5::bigint[], $6::text[], $7::float8[]) with ordinality as p(set, step, "   \
    "metric, value, place)"
#define SET_KEY "($1::bigint[])[p.set]"
#define SET_NUMBER "($2::int[])[p.set]"
#define SET_ATTEMPT "($3::int[])[p.set]"

/* The latest value of a metric is that of the latest attempt that reported it, at its highest step.
 * JSON has no NaN, so such values are stored as text. */
static const struct stmt stmts[] = {
    [MEASUREMENT_LATEST] =
        {"measurement_latest",
         "with named as materialized (select distinct " SET_KEY " as sweep_key, " SET_NUMBER
         " as number, p.metric from unnest($3::int[], $4::text[]) as p(set, metric)), latest as "
         "materialized (select n.sweep_key, n.number, jsonb_object_agg(n.metric, case when l.value "
         "in ('NaN', 'Infinity', '-Infinity') then to_jsonb(l.value::text) else to_jsonb(l.value) "
         "end) as metrics, max(l.step) as step, max(l.value) filter (where n.metric = (select "
         "s.metric from sweep_base s where s.key = n.sweep_key)) as value from named n cross join "
         "lateral (select c.measured[cardinality(c.measured)] as value, " LAST_STEP
         " as step from measurement_chunk c where c.sweep_key = n.sweep_key and c.number = "
         "n.number and c.metric = n.metric order by c.attempt desc, c.first_step desc limit 1) l "
         "group by n.sweep_key, n.number) update trial t set metrics = t.metrics || "
         "l.metrics, step = l.step, value = coalesce(l.value, t.value) from latest l "
         "where " SQL_JOINED("t.sweep_key", "l.sweep_key") " and " SQL_JOINED_NEXT(
             "t.number", "l.number") " returning " VALUE_COLUMNS},
    [MEASUREMENT_STEP] = {"measurement_step", "select coalesce(max(" LAST_STEP "), -1) from "
                                              "measurement_chunk c where c.sweep_key = $1 and "
                                              "c.number = $2 and c.attempt = $3"},
    /* NaN equals NaN in PostgreSQL. */
    [MEASUREMENT_OTHER] =
        {"measurement_other",
         "select distinct on (p.set) " OTHER_COLUMNS " from " SET_POINTS
         " left join lateral (select c.measured[case when p.step < 0 then cardinality(c.steps) "
         "else array_position(c.steps, p.step) end] as value from measurement_chunk c where "
         "c.sweep_key = " SET_KEY " and c.number = " SET_NUMBER " and c.attempt = " SET_ATTEMPT
         " and c.metric = p.metric and (p.step < 0 or c.first_step <= p.step) order by "
         "c.first_step desc limit 1) m on true where m.value is distinct from p.value order "
         "by p.set, p.place"},
    [MEASUREMENT_SERIES] =
        {"measurement_series",
         "select distinct on (c.metric, p.step) c.metric, p.step, p.value from measurement_chunk c "
         "cross join lateral unnest(c.steps, c.measured) as p(step, value) where c.sweep_key = $1 "
         "and c.number = $2 and ($3::text is null or c.metric = $3) and ($4::text is null or "
         "c.metric > $4 or (c.metric = $4 and " LAST_STEP " > $5::bigint and p.step > "
         "$5::bigint)) order by c.metric, p.step, c.attempt desc limit $6"},
};
const struct stmt_set measurement_stmts = {"measurement", stmts, AS_ARRAY_LEN(stmts)};

/* The arrays of SET_POINTS. */
enum { SET_KEYS, SET_NUMBERS, SET_ATTEMPTS, POINT_SETS, POINT_STEPS, POINT_METRICS, POINT_VALUES };

static void put_names(struct arrays *x, const struct trial_points *sets, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        array_i64(&x->c[SET_KEYS], sets[i].sweep_key);
        array_i64(&x->c[SET_NUMBERS], sets[i].number);
        array_i64(&x->c[SET_ATTEMPTS], sets[i].attempt);
    }
}

/* The number of a set in a statement is its place, from 1 on, as those of PostgreSQL's arrays. */
static void put_points(struct arrays *x, int64_t set, const struct trial_points *s)
{
    for (size_t i = 0; i < s->n; i++) {
        array_i64(&x->c[POINT_SETS], set);
        array_i64(&x->c[POINT_STEPS], s->points[i].step);
        array_str(&x->c[POINT_METRICS], s->points[i].metric);
        array_f64(&x->c[POINT_VALUES], s->points[i].value);
    }
}

static as_status add_points(struct tx *t, struct trial_points *sets, size_t n, struct as_err *err)
{
    AS_AUTO(arena_done) struct arena a = {0};
    struct point_series_list l;
    as_status st = point_series_of(&a, sets, n, &l, err);
    if (st == AS_OK)
        st = chunks_add(t, &a, &l, err);
    for (size_t i = 0; i < l.n && st == AS_OK; i++)
        for (size_t k = 0; k < l.rows[i].n; k++)
            if (!l.rows[i].points[k].is_stored)
                sets[l.rows[i].points[k].set].ret.recorded++;
    return st;
}

static int value_order(const void *a, const void *b)
{
    const struct trial_value *x = a, *y = b;
    if (x->sweep_key != y->sweep_key)
        return x->sweep_key < y->sweep_key ? -1 : 1;
    return (x->number > y->number) - (x->number < y->number);
}

/* Does the row of its trial change with it? */
static bool changes_row(const struct trial_points *s)
{
    return s->ret.recorded > 0 && !s->keeps_row;
}

/* The metrics of the sets that change a row, each with its set. */
static void put_metrics(struct arrays *x, const struct trial_points *sets, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < sets[i].n && changes_row(&sets[i]); k++) {
            const char *metric = sets[i].points[k].metric;
            if (k > 0 && as_streq(metric, sets[i].points[k - 1].metric))
                continue;
            array_i64(&x->c[POINT_SETS], (int64_t)i + 1);
            array_str(&x->c[POINT_METRICS], metric);
        }
    }
}

static as_status update_latest(struct tx *t, struct trial_points *sets, size_t n,
                               struct as_err *err)
{
    ARRAYS_AUTO x = {0};
    RESULT_AUTO r = {0};
    AS_AUTO(arena_done) struct arena a = {0};
    struct trial_value *values = NULL;
    arrays_open(&x);
    put_names(&x, sets, n);
    put_metrics(&x, sets, n);
    as_status st = arrays_close(&x, err);
    if (st == AS_OK)
        st = tx_query(t, &stmts[MEASUREMENT_LATEST],
                      ARGS(arg_array(&x, SET_KEYS), arg_array(&x, SET_NUMBERS),
                           arg_array(&x, POINT_SETS), arg_array(&x, POINT_METRICS)),
                      &r, err);
    if (st != AS_OK || (st = read_value_rows(&r, r.rows, &a, &values, err)) != AS_OK)
        return st;
    if (r.rows > 1)
        qsort(values, (size_t)r.rows, sizeof *values, value_order);
    for (size_t i = 0; i < n; i++) {
        const struct trial_value key = {.sweep_key = sets[i].sweep_key, .number = sets[i].number};
        if (!changes_row(&sets[i]))
            continue;
        const struct trial_value *v =
            bsearch(&key, values, (size_t)r.rows, sizeof *values, value_order);
        if (!v)
            return as_fail(err, AS_E_INTERNAL, "the trial that was measured is not there");
        sets[i].ret.has_value = v->has_value;
        sets[i].ret.value = v->value;
    }
    return AS_OK;
}

as_status store_measurement_add_many(struct tx *t, struct trial_points *sets, size_t n,
                                     struct as_err *err)
{
    bool has_changes = false;
    for (size_t i = 0; i < n; i++)
        sets[i].ret = (struct measured){0};
    as_status st = add_points(t, sets, n, err);
    if (st != AS_OK)
        return st;
    for (size_t i = 0; i < n; i++)
        has_changes = has_changes || changes_row(&sets[i]);
    return has_changes ? update_latest(t, sets, n, err) : AS_OK;
}

as_status store_measurement_add(struct tx *t, int64_t sweep_key, int64_t number, int64_t attempt,
                                const struct measurement *points, size_t n, struct measured *ret,
                                struct as_err *err)
{
    struct trial_points set = {
        .sweep_key = sweep_key, .number = number, .attempt = attempt, .points = points, .n = n};
    as_status st = store_measurement_add_many(t, &set, 1, err);
    *ret = set.ret;
    return st;
}

as_status store_measurement_other_many(struct tx *t, const struct trial_points *sets, size_t n,
                                       struct measured_other *ret, struct as_err *err)
{
    ARRAYS_AUTO x = {0};
    RESULT_AUTO r = {0};
    size_t n_points = 0;
    arrays_open(&x);
    put_names(&x, sets, n);
    for (size_t i = 0; i < n; i++) {
        ret[i] = (struct measured_other){.place = -1};
        put_points(&x, (int64_t)i + 1, &sets[i]);
        n_points += sets[i].n;
    }
    if (n_points == 0)
        return AS_OK;
    as_status st = arrays_close(&x, err);
    if (st == AS_OK)
        st = tx_query(t, &stmts[MEASUREMENT_OTHER],
                      ARGS(arg_array(&x, SET_KEYS), arg_array(&x, SET_NUMBERS),
                           arg_array(&x, SET_ATTEMPTS), arg_array(&x, POINT_SETS),
                           arg_array(&x, POINT_STEPS), arg_array(&x, POINT_METRICS),
                           arg_array(&x, POINT_VALUES)),
                      &r, err);
    int64_t before = 0; /* points of the sets before `at` */
    size_t at = 0;
    for (int i = 0; i < r.rows && st == AS_OK; i++) {
        struct set_other row = {0}; /* in the order of sets */
        if ((st = read_other_row(&r, i, NULL, &row, err)) != AS_OK)
            return st;
        for (; at < (size_t)row.set && at < n; at++)
            before += (int64_t)sets[at].n;
        ret[at] = row.other;
        ret[at].place -= before;
    }
    return st;
}

as_status store_measurement_other(struct tx *t, int64_t sweep_key, int64_t number, int64_t attempt,
                                  const struct measurement *points, size_t n,
                                  struct measured_other *ret, struct as_err *err)
{
    const struct trial_points set = {
        .sweep_key = sweep_key, .number = number, .attempt = attempt, .points = points, .n = n};
    return store_measurement_other_many(t, &set, 1, ret, err);
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
