/* Table event. An id is the transaction's number and the event's place in it, so one integer is a
 * cursor (events.h, decision 5001). A reader stays below the oldest open transaction: one that
 * commits late has an id that was not passed over. Old events are removed 5,000 at a time, from the
 * oldest on, so that a removal is short. */
#include "scheduler/store/event_store.h"

#include "scheduler/store/sql_columns_priv.h"
#include "scheduler/store/pg_priv.h"
#include "scheduler/store/sets_priv.h"

enum { EVENT_ADD, EVENT_AFTER, EVENT_AFTER_SWEEP, EVENT_HORIZON, EVENT_PRUNE };

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
    NEXT(text, model, "model")
COLUMNS_WHOLE_ROW(struct event_row, EVENT_FIELDS)
COLUMNS_READER(event, struct event_row, EVENT_FIELDS)
#define EVENT_COLUMNS COLUMNS_SQL(EVENT_FIELDS)

static const struct stmt stmts[] = {
    [EVENT_ADD] = {"event_add",
                   "insert into event (id, type, sweep_key, sweep, number, state, attempt, value, "
                   "reason, runner, epoch, seat, model) select (pg_current_xact_id()::text::bigint "
                   "<< 20) + $1 + e.place - 1, e.type, e.sweep_key, e.sweep, e.number, e.state, "
                   "e.attempt, e.value, e.reason, e.runner, e.epoch, e.seat, e.model from "
                   "unnest($2::text[], $3::bigint[], $4::text[], $5::int[], $6::text[], $7::int[], "
                   "$8::float8[], $9::text[], $10::text[], $11::int[], $12::int[], $13::text[]) "
                   "with ordinality as e(type, sweep_key, sweep, number, state, attempt, value, "
                   "reason, runner, epoch, seat, model, place)"},
    [EVENT_AFTER] = {"event_after", "select " EVENT_COLUMNS " from event where id > $1 and id < $2 "
                                    "order by id limit $3"},
    [EVENT_AFTER_SWEEP] = {"event_after_sweep",
                           "select " EVENT_COLUMNS " from event where id > $1 and id < $2 "
                           "and sweep_key = $4 order by id limit $3"},
    [EVENT_HORIZON] = {"event_horizon",
                       "select pg_snapshot_xmin(pg_current_snapshot())::text::bigint << 20"},
    [EVENT_PRUNE] =
        {"event_prune",
         "delete from event where id in (select id from (select id, time from event "
         "order by id limit 5000) oldest where time < clock_timestamp() - $1 * interval "
         "'1 ms')"},
};
const struct stmt_set event_stmts = {"event", stmts, AS_ARRAY_LEN(stmts)};

/* The fields of many events, one array for each column. */
struct event_columns {
    struct str type, sweep_key, sweep, number, state, attempt, value, reason, runner, epoch, seat,
        model;
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
}

as_status store_event_add_many(struct tx *t, const struct event_new *events, size_t n,
                               struct as_err *err)
{
    AS_AUTO(event_columns_done) struct event_columns c = {0};
    struct str *array = &c.type;
    if (n == 0)
        return AS_OK;
    if ((int64_t)n > TX_EVENTS_MAX - t->events)
        return as_fail(err, AS_E_INTERNAL, "too many events in one transaction");
    for (size_t i = 0; i < EVENT_ARRAYS; i++)
        array_open(&array[i]);
    for (size_t i = 0; i < n; i++)
        put_event(&c, &events[i]);
    for (size_t i = 0; i < EVENT_ARRAYS; i++) {
        array_close(&array[i]);
        if (array[i].failed)
            return as_fail_nomem(err);
    }
    const int64_t first = t->events;
    t->events += (int64_t)n;
    return tx_exec(t, &stmts[EVENT_ADD],
                   ARGS(arg_i64(first), arg_str(str_cstr(&c.type)), arg_str(str_cstr(&c.sweep_key)),
                        arg_str(str_cstr(&c.sweep)), arg_str(str_cstr(&c.number)),
                        arg_str(str_cstr(&c.state)), arg_str(str_cstr(&c.attempt)),
                        arg_str(str_cstr(&c.value)), arg_str(str_cstr(&c.reason)),
                        arg_str(str_cstr(&c.runner)), arg_str(str_cstr(&c.epoch)),
                        arg_str(str_cstr(&c.seat)), arg_str(str_cstr(&c.model))),
                   NULL, err);
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

as_status store_event_prune(struct tx *t, int64_t keep_ms, int64_t *ret_removed, struct as_err *err)
{
    int n = 0;
    as_status st = tx_exec(t, &stmts[EVENT_PRUNE], ARGS(arg_i64(keep_ms)), &n, err);
    if (st == AS_OK)
        *ret_removed = n;
    return st;
}
