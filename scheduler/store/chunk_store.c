/* Table measurement_chunk: the points of trials.
 *
 * A chunk has up to CHUNK_POINTS_MAX points of a series, which is one metric of one attempt. The
 * chunks of a series do not overlap, so the last one that begins at a step or before it is the only
 * one that can hold it. Points that come after all of their series, as most do, go to the end of
 * its last chunk, or begin one: one statement for the points of many trials. Points that exist, and
 * those that come late, are merged with the chunks of their range, which are then cut again; a
 * point that exists stays, so a repeat is safe however it is cut.
 *
 * Nobody else writes these chunks meanwhile: the caller holds the rows of the trials. */
#include "scheduler/store/chunk_store_priv.h"

#include <assert.h>

#include "scheduler/store/pg_priv.h"
#include "scheduler/store/sets_priv.h"
#include "scheduler/store/sql_columns_priv.h"

enum { CHUNK_ADD, CHUNK_STORED, CHUNK_DROP, CHUNK_PUT };

/* A stored point of one of the series that a statement was given, and where its chunk begins. */
struct stored_point {
    int64_t series, first_step;
    struct series_point point;
};
#define STORED_FIELDS(FIRST, NEXT)                                                                 \
    FIRST(i64, series, "u.place - 1")                                                              \
    NEXT(i64, first_step, "c.first_step")                                                          \
    NEXT(i64, point.step, "p.step")                                                                \
    NEXT(f64, point.value, "p.value")                                                              \
    NEXT(bool, point.has_time, "p.at is not null")                                                 \
    NEXT(i64, point.recorded, "p.at")
COLUMNS_READER(stored, struct stored_point, STORED_FIELDS)
#define STORED_COLUMNS COLUMNS_SQL(STORED_FIELDS)

/* Chunk c is of the series of row u. */
#define OF_SERIES                                                                                  \
    "c.sweep_key = u.sweep_key and c.number = u.number and c.metric = u.metric and c.attempt = "   \
    "u.attempt"
#define JOINED_CHUNK                                                                               \
    SQL_JOINED("c.sweep_key", "u.sweep_key")                                                       \
    " and " SQL_JOINED_NEXT("c.number", "u.number") " and " SQL_JOINED_NEXT(                       \
        "c.metric",                                                                                \
        "u.metric") " and " SQL_JOINED_NEXT("c.attempt",                                           \
                                            "u.attempt") " and " SQL_JOINED_NEXT("c.first_step",   \
                                                                                 "u.first_step")
#define LAST_STEP "c.steps[cardinality(c.steps)]"
#define NOW_US "(select (extract(epoch from now()) * 1000000)::bigint)"

/* A part of a series: $1 to $4 name the series, $5 is its first new step, and the part has the
 * points from $6 to $7 of $8, the steps, and $9, the values. */
#define PARTS                                                                                      \
    "unnest($1::bigint[], $2::int[], $3::int[], $4::text[], $5::bigint[], $6::int[], $7::int[]) "  \
    "with ordinality as u(sweep_key, number, attempt, metric, first, low, high, place)"
#define PART_STEPS "($8::bigint[])[u.low:u.high]"
#define PART_VALUES "($9::float8[])[u.low:u.high]"
#define PART_POINTS "u.high - u.low + 1"
#define PART_BEGINS "($8::bigint[])[u.low]"
/* Its points come after all that are stored. They fit into the last chunk: only the first part of a
 * series is asked, for the others do not know how full it leaves the chunk. */
#define PART_IS_LATER "u.first > u.last_step"
#define PART_FITS "u.held + " PART_POINTS " <= 64 and " PART_BEGINS " = u.first"
#define CHUNK_COLUMNS "sweep_key, number, metric, attempt, first_step, steps, measured, recorded"
static_assert(CHUNK_POINTS_MAX == 64, "the constraint and PART_FITS have this number");

static const struct stmt stmts[] = {
    /* The parts that it leaves: those of series with a step that is stored, or is before one. */
    [CHUNK_ADD] =
        {"chunk_add",
         "with u as materialized (select u.*, l.* from " PARTS " left join lateral (select "
         "c.first_step, " LAST_STEP " as last_step, cardinality(c.steps) as held from "
         "measurement_chunk c where " OF_SERIES " order by c.first_step desc limit 1) l on true), "
         "grown as (update measurement_chunk c set steps = c.steps || " PART_STEPS
         ", measured = c.measured || " PART_VALUES ", recorded = c.recorded || array_fill(" NOW_US
         ", array[" PART_POINTS "]) from u "
         "where " JOINED_CHUNK " and " PART_IS_LATER " and " PART_FITS
         "), begun as (insert into measurement_chunk (" CHUNK_COLUMNS ") select u.sweep_key, "
         "u.number, u.metric, u.attempt, " PART_BEGINS ", " PART_STEPS ", " PART_VALUES
         ", array_fill(" NOW_US ", array[" PART_POINTS "]) from u where u.last_step is null or "
         "(" PART_IS_LATER " and not (" PART_FITS "))) select u.place - 1 from u where not "
         "(" PART_IS_LATER ")"},
    /* $5, $6: the first and the last new step of a series. */
    [CHUNK_STORED] =
        {"chunk_stored",
         "select " STORED_COLUMNS " from unnest($1::bigint[], $2::int[], $3::int[], $4::text[], "
         "$5::bigint[], $6::bigint[]) with ordinality as u(sweep_key, number, attempt, metric, "
         "first, last, place) cross join lateral (select c.* from measurement_chunk c "
         "where " OF_SERIES " and c.first_step <= u.last and c.first_step >= coalesce((select "
         "max(c.first_step) from measurement_chunk c where " OF_SERIES
         " and c.first_step <= u.first), 0) offset 0) c cross join lateral unnest(c.steps, "
         "c.measured, c.recorded) as p(step, value, at) order by u.place, p.step"},
    [CHUNK_DROP] = {"chunk_drop",
                    "delete from measurement_chunk c using unnest($1::bigint[], $2::int[], "
                    "$3::int[], $4::text[], $5::bigint[]) as u(sweep_key, number, attempt, "
                    "metric, first_step) where " JOINED_CHUNK},
    /* $10: the times of the points; null: now; -1: none. */
    [CHUNK_PUT] =
        {"chunk_put",
         "insert into measurement_chunk (" CHUNK_COLUMNS ") select u.sweep_key, u.number, "
         "u.metric, u.attempt, " PART_BEGINS ", " PART_STEPS ", " PART_VALUES ", t.recorded "
         "from " PARTS " cross join lateral (select array_agg(nullif(coalesce(p.at, " NOW_US
         "), -1) order by p.place) as recorded from unnest(($10::bigint[])[u.low:u.high]) with "
         "ordinality as p(at, place)) t"},
};
const struct stmt_set chunk_stmts = {"chunk", stmts, AS_ARRAY_LEN(stmts)};

/* The names of a series, as the first four arrays of every statement here. */
static void put_series(struct arrays *x, const struct point_series *s)
{
    array_i64(&x->c[0], s->sweep_key);
    array_i64(&x->c[1], s->number);
    array_i64(&x->c[2], s->attempt);
    array_str(&x->c[3], s->metric);
}

/* The arrays of PARTS, then the points and their times. */
enum { PART_FIRST = 4, PART_LOW, PART_HIGH, POINT_STEPS, POINT_VALUES, POINT_TIMES };

/* Cut a series into parts, and add them. *n: the points that stand in the arrays. */
static void put_parts(struct arrays *x, const struct point_series *s, size_t *n)
{
    for (size_t i = 0; i < s->n; i += CHUNK_POINTS_MAX) {
        size_t part = s->n - i < CHUNK_POINTS_MAX ? s->n - i : CHUNK_POINTS_MAX;
        put_series(x, s);
        array_i64(&x->c[PART_FIRST], s->points[0].step);
        array_i64(&x->c[PART_LOW], (int64_t)(*n + i + 1)); /* PostgreSQL counts from 1 */
        array_i64(&x->c[PART_HIGH], (int64_t)(*n + i + part));
    }
    for (size_t i = 0; i < s->n; i++) {
        const struct series_point *p = &s->points[i];
        array_i64(&x->c[POINT_STEPS], p->step);
        array_f64(&x->c[POINT_VALUES], p->value);
    }
    *n += s->n;
}

static void put_times(struct arrays *x, const struct point_series *s)
{
    for (size_t i = 0; i < s->n; i++)
        array_i64_or_null(&x->c[POINT_TIMES], s->points[i].is_stored,
                          s->points[i].has_time ? s->points[i].recorded : -1);
}

static size_t parts_of(const struct point_series *s)
{
    return (s->n + CHUNK_POINTS_MAX - 1) / CHUNK_POINTS_MAX;
}

/* Add the series whose points come after all that are stored. ret_met[i]: series i is not one of
 * them, and is left. */
static as_status add_later(struct tx *t, struct arena *a, const struct point_series_list *l,
                           bool *ret_met, size_t *ret_n_met, struct as_err *err)
{
    ARRAYS_AUTO x = {0};
    RESULT_AUTO r = {0};
    size_t n_parts = 0, n_points = 0, k = 0;
    for (size_t i = 0; i < l->n; i++)
        n_parts += parts_of(&l->rows[i]);
    size_t *series = arena_alloc(a, n_parts + 1, sizeof *series); /* of a part */
    arrays_open(&x);
    if (!series)
        return as_fail_nomem(err);
    for (size_t i = 0; i < l->n; i++) {
        for (size_t part = 0; part < parts_of(&l->rows[i]); part++)
            series[k++] = i;
        put_parts(&x, &l->rows[i], &n_points);
    }
    as_status st = arrays_close(&x, err);
    if (st == AS_OK)
        st = tx_query(t, &stmts[CHUNK_ADD],
                      ARGS(arg_array(&x, 0), arg_array(&x, 1), arg_array(&x, 2), arg_array(&x, 3),
                           arg_array(&x, PART_FIRST), arg_array(&x, PART_LOW),
                           arg_array(&x, PART_HIGH), arg_array(&x, POINT_STEPS),
                           arg_array(&x, POINT_VALUES)),
                      &r, err);
    for (int i = 0; i < r.rows && st == AS_OK; i++) {
        bool *met = &ret_met[series[result_i64(&r, i, 0)]];
        *ret_n_met += !*met;
        *met = true;
    }
    return st;
}

/* Read the chunks that the new points of these series may fall into. */
static as_status read_range(struct tx *t, struct arena *a, const struct point_series *rows,
                            size_t n, struct stored_point **ret, size_t *ret_n, struct as_err *err)
{
    ARRAYS_AUTO x = {0};
    RESULT_AUTO r = {0};
    arrays_open(&x);
    for (size_t i = 0; i < n; i++) {
        put_series(&x, &rows[i]);
        array_i64(&x.c[4], rows[i].points[0].step);
        array_i64(&x.c[5], rows[i].points[rows[i].n - 1].step);
    }
    as_status st = arrays_close(&x, err);
    if (st == AS_OK)
        st = tx_query(t, &stmts[CHUNK_STORED],
                      ARGS(arg_array(&x, 0), arg_array(&x, 1), arg_array(&x, 2), arg_array(&x, 3),
                           arg_array(&x, 4), arg_array(&x, 5)),
                      &r, err);
    if (st == AS_OK)
        st = read_stored_rows(&r, r.rows, a, ret, err);
    *ret_n = st == AS_OK ? (size_t)r.rows : 0;
    return st;
}

/* Remove the chunks of a series that these points are in. They stand in the order of steps. */
static void drop_chunks(struct arrays *x, const struct point_series *s,
                        const struct stored_point *stored, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (i > 0 && stored[i].first_step == stored[i - 1].first_step)
            continue;
        put_series(x, s);
        array_i64(&x->c[4], stored[i].first_step);
    }
}

static as_status write_again(struct tx *t, struct arrays *drop, struct arrays *put,
                             struct as_err *err)
{
    as_status st = arrays_close(drop, err);
    if (st == AS_OK)
        st = arrays_close(put, err);
    if (st == AS_OK)
        st = tx_exec(t, &stmts[CHUNK_DROP],
                     ARGS(arg_array(drop, 0), arg_array(drop, 1), arg_array(drop, 2),
                          arg_array(drop, 3), arg_array(drop, 4)),
                     NULL, err);
    if (st == AS_OK)
        st = tx_exec(t, &stmts[CHUNK_PUT],
                     ARGS(arg_array(put, 0), arg_array(put, 1), arg_array(put, 2),
                          arg_array(put, 3), arg_array(put, PART_FIRST), arg_array(put, PART_LOW),
                          arg_array(put, PART_HIGH), arg_array(put, POINT_STEPS),
                          arg_array(put, POINT_VALUES), arg_array(put, POINT_TIMES)),
                     NULL, err);
    return st;
}

/* Merge these series with what is stored in their range, and write what changed. */
static as_status add_merged(struct tx *t, struct arena *a, struct point_series *rows, size_t n,
                            struct as_err *err)
{
    ARRAYS_AUTO drop = {0};
    ARRAYS_AUTO put = {0};
    struct stored_point *stored = NULL;
    size_t n_stored = 0, n_points = 0, at = 0;
    arrays_open(&drop);
    arrays_open(&put);
    as_status st = read_range(t, a, rows, n, &stored, &n_stored, err);
    struct series_point *points = arena_alloc(a, n_stored + 1, sizeof *points);
    if (!points)
        return st != AS_OK ? st : as_fail_nomem(err);
    for (size_t i = 0; i < n && st == AS_OK; i++) {
        const size_t first = at;
        size_t added = 0;
        for (; at < n_stored && stored[at].series == (int64_t)i; at++)
            points[at] = stored[at].point;
        st = point_series_merge(a, &rows[i], points + first, at - first, &added, err);
        if (st == AS_OK && added > 0) {
            drop_chunks(&drop, &rows[i], stored + first, at - first);
            put_parts(&put, &rows[i], &n_points);
            put_times(&put, &rows[i]);
        }
    }
    return st == AS_OK && n_points > 0 ? write_again(t, &drop, &put, err) : st;
}

as_status chunks_add(struct tx *t, struct arena *a, struct point_series_list *l, struct as_err *err)
{
    bool *met = arena_alloc(a, l->n + 1, sizeof *met);
    struct point_series *rows = arena_alloc(a, l->n + 1, sizeof *rows);
    size_t n_met = 0, k = 0;
    if (!met || !rows)
        return as_fail_nomem(err);
    as_status st = l->n > 0 ? add_later(t, a, l, met, &n_met, err) : AS_OK;
    if (st != AS_OK || n_met == 0)
        return st;
    for (size_t i = 0; i < l->n; i++)
        if (met[i])
            rows[k++] = l->rows[i];
    st = add_merged(t, a, rows, n_met, err);
    for (size_t i = 0, m = 0; i < l->n && st == AS_OK; i++)
        if (met[i])
            l->rows[i] = rows[m++];
    return st;
}
