/* Tables event and event_set. An id is the transaction's number and the event's place in it, so one
 * integer is a cursor (events.h, decision 5001). A reader stays below the oldest open transaction:
 * one that commits late has an id that was not passed over. Old rows are removed 5,000 at a time,
 * from the oldest on, so that a removal is short.
 *
 * Events of trials that are written together go to event_set: one row for those of one sweep and
 * type that follow each other (decision 5017). Within a sweep they keep their order. */
#include "scheduler/store/event_store.h"

#include <stdlib.h>

#include "base/number.h"
#include "scheduler/store/sql_columns_priv.h"
#include "scheduler/store/pg_priv.h"
#include "scheduler/store/sets_priv.h"
#include "scheduler/store/sql_events_priv.h"

#define SET_MAX 32 /* events of a row, which stays short enough to be stored in its page */

enum {
    EVENT_ADD,
    EVENT_ADD_SETS,
    EVENT_AFTER,
    EVENT_AFTER_SWEEP,
    EVENT_HORIZON,
    EVENT_PRUNE,
    EVENT_PRUNE_SETS
};

#define EVENT_FIELDS(FIRST, NEXT)                                                                  \
    FIRST(i64, id, "id")                                                                           \
    NEXT(text, type, "type")                                                                       \
    NEXT(i64, time_ms, SQL_MS("time"))                                                             \
    NEXT(text, sweep, "sweep")                                                                     \
    NEXT(bool, has_number, "number is not null")                                                   \
    NEXT(i64, number, "number")                                                                    \
    NEXT(text, state, "state")                                                                     \
    NEXT(i64, attempt, "attempt")                                                                  \
    NEXT(bool, has_value, "value is not null")                                                     \
    NEXT(f64, value, "value")                                                                      \
    NEXT(text, reason, "reason")                                                                   \
    NEXT(text, runner, "runner")                                                                   \
    NEXT(bool, has_epoch, "epoch is not null")                                                     \
    NEXT(bool, has_seat, "seat is not null")                                                       \
    NEXT(i64, epoch, "epoch")                                                                      \
    NEXT(i64, seat, "seat")                                                                        \
    NEXT(text, model, "model")                                                                     \
    NEXT(text, dataset, "dataset")
COLUMNS_WHOLE_ROW(struct event_row, EVENT_FIELDS)
COLUMNS_READER(event, struct event_row, EVENT_FIELDS)
#define EVENT_COLUMNS COLUMNS_SQL(EVENT_FIELDS)

static const struct stmt stmts[] = {
    [EVENT_ADD] =
        {"event_add",
         "insert into event (id, type, sweep_key, sweep, number, state, attempt, value, "
         "reason, runner, epoch, seat, model, dataset) select (pg_current_xact_id()::text::bigint "
         "<< 20) + $1 + e.place - 1, e.type, e.sweep_key, e.sweep, e.number, e.state, "
         "e.attempt, e.value, e.reason, e.runner, e.epoch, e.seat, e.model, e.dataset from "
         "unnest($2::text[], $3::bigint[], $4::text[], $5::int[], $6::text[], $7::int[], "
         "$8::float8[], $9::text[], $10::text[], $11::int[], $12::int[], $13::text[], $14::text[]) "
         "with ordinality as e(type, sweep_key, sweep, number, state, attempt, value, "
         "reason, runner, epoch, seat, model, dataset, place)"},
    /* The arrays of a row arrive as texts. */
    [EVENT_ADD_SETS] =
        {"event_add_sets",
         "insert into event_set (id, first, type, sweep_key, sweep, number, state, attempt, value, "
         "reason, runner) select t.base + e.last, t.base + e.first, e.type, e.sweep_key, e.sweep, "
         "e.number::int[], e.state::text[], e.attempt::int[], e.value::float8[], e.reason::text[], "
         "e.runner::text[] from (select pg_current_xact_id()::text::bigint << 20 as base) t, "
         "unnest($1::bigint[], $2::bigint[], $3::text[], $4::bigint[], $5::text[], $6::text[], "
         "$7::text[], $8::text[], $9::text[], $10::text[], $11::text[]) as e(first, last, type, "
         "sweep_key, sweep, number, state, attempt, value, reason, runner)"},
    [EVENT_AFTER] = {"event_after",
                     "select " EVENT_COLUMNS " from " SQL_EVENTS_FROM("") " order by "
                                                                          "id limit "
                                                                          "$3"},
    [EVENT_AFTER_SWEEP] = {"event_after_sweep", "select " EVENT_COLUMNS " from " SQL_EVENTS_FROM(
                                                    "and sweep_key = $4") " order by id limit $3"},
    [EVENT_HORIZON] = {"event_horizon",
                       "select pg_snapshot_xmin(pg_current_snapshot())::text::bigint << 20"},
    [EVENT_PRUNE] =
        {"event_prune",
         "with gone as (delete from event where id in (select id from (select id, time from event "
         "order by id limit 5000) oldest where time < clock_timestamp() - $1 * interval '1 ms') "
         "returning id) select count(*) from gone"},
    [EVENT_PRUNE_SETS] =
        {"event_prune_sets",
         "with gone as (delete from event_set where id in (select id from (select id, time from "
         "event_set order by id limit 5000) oldest where time < clock_timestamp() - $1 * interval "
         "'1 ms') returning id - first + 1 as n) select coalesce(sum(n), 0)::bigint from gone"},
};
const struct stmt_set event_stmts = {"event", stmts, AS_ARRAY_LEN(stmts)};

/* The fields of many events, one array for each column. */
struct event_columns {
    struct str type, sweep_key, sweep, number, state, attempt, value, reason, runner, epoch, seat,
        model, dataset;
};
enum { EVENT_ARRAYS = sizeof(struct event_columns) / sizeof(struct str) };

static void event_columns_done(struct event_columns *c)
{
    struct str *array = &c->type;
    for (size_t i = 0; i < EVENT_ARRAYS; i++)
        str_done(&array[i]);
}

static void put_event(struct event_columns *c, const struct event_new *e)
{
    array_str(&c->type, e->type);
    array_i64_or_null(&c->sweep_key, e->sweep_key != 0, e->sweep_key);
    array_str(&c->sweep, e->sweep);
    array_i64_or_null(&c->number, e->has_number, e->number);
    array_str(&c->state, e->state);
    array_i64_or_null(&c->attempt, e->attempt != 0, e->attempt);
    array_f64_or_null(&c->value, e->has_value, e->value);
    array_str(&c->reason, e->reason);
    array_str(&c->runner, e->runner);
    array_i64_or_null(&c->epoch, e->has_epoch, e->epoch);
    array_i64_or_null(&c->seat, e->has_seat, e->seat);
    array_str(&c->model, e->model);
    array_str(&c->dataset, e->dataset);
}

static as_status add_each(struct tx *t, const struct event_new *events, size_t n, int64_t first,
                          struct as_err *err)
{
    AS_AUTO(event_columns_done) struct event_columns c = {0};
    struct str *array = &c.type;
    for (size_t i = 0; i < EVENT_ARRAYS; i++)
        array_open(&array[i]);
    for (size_t i = 0; i < n; i++)
        put_event(&c, &events[i]);
    for (size_t i = 0; i < EVENT_ARRAYS; i++) {
        array_close(&array[i]);
        if (array[i].failed)
            return as_fail_nomem(err);
    }
    return tx_exec(t, &stmts[EVENT_ADD],
                   ARGS(arg_i64(first), arg_str(str_cstr(&c.type)), arg_str(str_cstr(&c.sweep_key)),
                        arg_str(str_cstr(&c.sweep)), arg_str(str_cstr(&c.number)),
                        arg_str(str_cstr(&c.state)), arg_str(str_cstr(&c.attempt)),
                        arg_str(str_cstr(&c.value)), arg_str(str_cstr(&c.reason)),
                        arg_str(str_cstr(&c.runner)), arg_str(str_cstr(&c.epoch)),
                        arg_str(str_cstr(&c.seat)), arg_str(str_cstr(&c.model)),
                        arg_str(str_cstr(&c.dataset))),
                   NULL, err);
}

/* ---- sets ---- */

/* May these be rows of event_set? A single event is cheaper alone. */
static bool are_of_trials(const struct event_new *events, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const struct event_new *e = &events[i];
        if (!e->has_number || e->sweep_key == 0 || e->has_epoch || e->has_seat || e->model ||
            e->dataset)
            return false;
    }
    return n > 1;
}

static int compare_sweeps(const void *pa, const void *pb, void *arg)
{
    const struct event_new *events = arg;
    size_t a = *(const size_t *)pa, b = *(const size_t *)pb;
    int by_sweep = as_compare_i64(events[a].sweep_key, events[b].sweep_key);
    return by_sweep ? by_sweep : as_compare_i64((int64_t)a, (int64_t)b);
}

/* The arrays of one row. */
enum { SET_NUMBER, SET_STATE, SET_ATTEMPT, SET_VALUE, SET_REASON, SET_RUNNER, SET_FIELDS };

static void put_field(struct str *c, int field, const struct event_new *e)
{
    switch (field) {
    case SET_NUMBER:
        array_i64(c, e->number);
        break;
    case SET_STATE:
        array_str(c, e->state);
        break;
    case SET_ATTEMPT:
        array_i64_or_null(c, e->attempt != 0, e->attempt);
        break;
    case SET_VALUE:
        array_f64_or_null(c, e->has_value, e->value);
        break;
    case SET_REASON:
        array_str(c, e->reason);
        break;
    default:
        array_str(c, e->runner);
        break;
    }
}

/* Add a row of the events that order[0..n) names. `row` is used for one array after the other. */
static bool put_set(struct arrays *x, struct str *row, const struct event_new *events,
                    const size_t *order, size_t n, int64_t first)
{
    const struct event_new *e = &events[order[0]];
    array_i64(&x->c[0], first);
    array_i64(&x->c[1], first + (int64_t)n - 1);
    array_str(&x->c[2], e->type);
    array_i64(&x->c[3], e->sweep_key);
    array_str(&x->c[4], e->sweep);
    for (int f = 0; f < SET_FIELDS; f++) {
        array_open(row);
        for (size_t i = 0; i < n; i++)
            put_field(row, f, &events[order[i]]);
        array_close(row);
        if (row->failed)
            return false;
        array_str(&x->c[5 + f], str_cstr(row));
    }
    return true;
}

/* How many of the events from order[0] on share a row. */
static size_t set_length(const struct event_new *events, const size_t *order, size_t n)
{
    const struct event_new *e = &events[order[0]];
    size_t len = 1;
    while (len < n && len < SET_MAX && events[order[len]].sweep_key == e->sweep_key &&
           as_streq(events[order[len]].type, e->type))
        len++;
    return len;
}

static as_status add_sets(struct tx *t, const struct event_new *events, size_t n, int64_t first,
                          struct as_err *err)
{
    ARRAYS_AUTO x = {0};
    AS_AUTO(str_done) struct str row = {0};
    AS_AUTO(as_freep) size_t *order = as_calloc(n, sizeof *order);
    if (!order)
        return as_fail_nomem(err);
    for (size_t i = 0; i < n; i++)
        order[i] = i;
    qsort_r(order, n, sizeof *order, compare_sweeps, (void *)events);
    arrays_open(&x);
    for (size_t i = 0, len; i < n; i += len) {
        len = set_length(events, order + i, n - i);
        if (!put_set(&x, &row, events, order + i, len, first + (int64_t)i))
            return as_fail_nomem(err);
    }
    as_status st = arrays_close(&x, err);
    if (st != AS_OK)
        return st;
    return tx_exec(t, &stmts[EVENT_ADD_SETS],
                   ARGS(arg_array(&x, 0), arg_array(&x, 1), arg_array(&x, 2), arg_array(&x, 3),
                        arg_array(&x, 4), arg_array(&x, 5), arg_array(&x, 6), arg_array(&x, 7),
                        arg_array(&x, 8), arg_array(&x, 9), arg_array(&x, 10)),
                   NULL, err);
}

as_status store_event_add_many(struct tx *t, const struct event_new *events, size_t n,
                               struct as_err *err)
{
    if (n == 0)
        return AS_OK;
    if ((int64_t)n > TX_EVENTS_MAX - t->events)
        return as_fail(err, AS_E_INTERNAL, "too many events in one transaction");
    const int64_t first = t->events;
    t->events += (int64_t)n;
    return are_of_trials(events, n) ? add_sets(t, events, n, first, err)
                                    : add_each(t, events, n, first, err);
}

as_status store_event_add(struct tx *t, const struct event_new *e, struct as_err *err)
{
    return store_event_add_many(t, e, 1, err);
}

as_status store_event_after(struct tx *t, struct arena *a, int64_t sweep_key, int64_t after,
                            int64_t limit, struct event_list *ret, struct as_err *err)
{
    int64_t horizon = 0;
    as_status st = store_event_horizon(t, &horizon, err);
    if (st != AS_OK)
        return st;
    const struct args *args =
        sweep_key ? ARGS(arg_i64(after), arg_i64(horizon + 1), arg_i64(limit), arg_i64(sweep_key))
                  : ARGS(arg_i64(after), arg_i64(horizon + 1), arg_i64(limit));
    RESULT_AUTO r = {0};
    st = tx_query(t, &stmts[sweep_key ? EVENT_AFTER_SWEEP : EVENT_AFTER], args, &r, err);
    if (st != AS_OK)
        return st;
    struct event_row *rows = NULL;
    if ((st = read_event_rows(&r, r.rows, a, &rows, err)) != AS_OK)
        return st;
    int64_t last = r.rows < limit ? horizon : rows[r.rows - 1].id;
    *ret = (struct event_list){
        .rows = rows, .n = (size_t)r.rows, .last_id = last > after ? last : after};
    return AS_OK;
}

as_status store_event_horizon(struct tx *t, int64_t *ret, struct as_err *err)
{
    RESULT_AUTO r = {0};
    as_status st = tx_query(t, &stmts[EVENT_HORIZON], NULL, &r, err);
    if (st != AS_OK)
        return st;
    *ret = result_i64(&r, 0, 0) - 1; /* the oldest open transaction may still write ids from here
                                        on */
    return AS_OK;
}

static as_status prune(struct tx *t, int which, int64_t keep_ms, int64_t *ret, struct as_err *err)
{
    RESULT_AUTO r = {0};
    as_status st = tx_query(t, &stmts[which], ARGS(arg_i64(keep_ms)), &r, err);
    if (st == AS_OK)
        *ret = result_i64(&r, 0, 0);
    return st;
}

as_status store_event_prune(struct tx *t, int64_t keep_ms, int64_t *ret_removed, struct as_err *err)
{
    int64_t each = 0, of_sets = 0;
    as_status st = prune(t, EVENT_PRUNE, keep_ms, &each, err);
    if (st == AS_OK)
        st = prune(t, EVENT_PRUNE_SETS, keep_ms, &of_sets, err);
    if (st == AS_OK)
        *ret_removed = each + of_sets;
    return st;
}
