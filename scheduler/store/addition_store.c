/* Statements that insert added trials: the trials with their events, their measurements, and the
 * idempotency keys of their rows. Each takes one array for a column, so that a thousand trials cost
 * as many round trips as one. */
#include "scheduler/store/addition_store.h"

#include <math.h>

#include "scheduler/rows/trial_row.h"
#include "scheduler/store/pg_priv.h"
#include "scheduler/store/sets_priv.h"
#include "scheduler/store/sweep_change_store.h"

enum { ADDITION_TRIALS, ADDITION_POINTS, ADDITION_FIND, ADDITION_KEYS };

static const struct stmt stmts[] = {
    /* $1 the sweep's key, $2 its id, $3 its finish_seq, $4 the first place among the transaction's
     * events. */
    [ADDITION_TRIALS] =
        {"addition_trials",
         "with l as (select *, state <> 'queued' as is_known from unnest($5::int[], $6::text[], "
         "$7::text[], $8::bigint[], $9::text[], $10::bigint[], $11::text[], $12::float8[], "
         "$13::text[], $14::bool[], $15::text[]) as l(number, state, params, seed, shape, bytes, "
         "reason, value, metrics, feasible, suggestion)), made as (insert into trial (sweep_key, "
         "number, state, params, "
         "suggestion, seed, origin, shape, bytes_per_member, reason, value, step, metrics, "
         "feasible, finished_at, finish_seq) select $1, number, state, params::json, "
         "suggestion::json, seed, "
         "case when is_known then 'known' else 'enqueued' end, nullif(shape, ''), nullif(bytes, "
         "0), nullif(reason, ''), nullif(value, 'NaN'), case when metrics <> '{}' then 0 end, "
         "metrics::jsonb, case when state = 'completed' then feasible end, case when is_known then "
         "clock_timestamp() end, case when is_known then $3 + row_number() over (partition by "
         "is_known order by number) end from l order by number returning number, state, value, "
         "reason), events as (insert into event (id, type, sweep_key, sweep, number, state, value, "
         "reason) select (pg_current_xact_id()::text::bigint << 20) + $4 + row_number() over "
         "(order by number) - 1, 'trial.changed', $1, $2, number, state, value, reason from made) "
         "select count(*) from made"},
    [ADDITION_POINTS] =
        {"addition_points",
         "insert into measurement_chunk (sweep_key, number, attempt, metric, first_step, steps, "
         "measured, recorded) select $1, p.number, 0, p.metric, 0, array[0], array[p.value], "
         "array[(extract(epoch from now()) * 1000000)::bigint] from unnest($2::int[], $3::text[], "
         "$4::float8[]) as p(number, metric, value)"},
    [ADDITION_FIND] =
        {"addition_find",
         "select u.place - 1, coalesce(i.number, -1), i.body_sha256 = u.digest from "
         "unnest($2::text[], $3::text[]) with ordinality as u(key, digest, place) join idempotency "
         "i on i.scope = $1 and i.key = u.key"},
    [ADDITION_KEYS] = {"addition_keys",
                       "insert into idempotency (scope, key, body_sha256, sweep, number) select "
                       "$1, key, digest, $2, number from unnest($3::text[], $4::text[], $5::int[]) "
                       "as u(key, digest, number)"},
};
const struct stmt_set addition_stmts = {"addition", stmts, AS_ARRAY_LEN(stmts)};

static void add_row(struct arrays *x, const struct added_trial *r)
{
    array_i64(&x->c[0], r->number);
    array_str(&x->c[1], trial_state_format(r->state));
    array_str(&x->c[2], r->params);
    array_i64(&x->c[3], r->seed);
    array_str(&x->c[4], r->shape ? r->shape : "");
    array_i64(&x->c[5], r->bytes_per_member);
    array_str(&x->c[6], r->reason ? r->reason : "");
    array_f64(&x->c[7], r->has_value ? r->value : NAN);
    array_str(&x->c[8], r->metrics_json ? r->metrics_json : "{}");
    array_str(&x->c[9], r->feasible ? "t" : "f");
    array_str(&x->c[10], r->suggestion);
}

static as_status insert_trials(struct tx *t, const struct sweep_head *s,
                               const struct added_trial *rows, size_t n, struct as_err *err)
{
    ARRAYS_AUTO x = {0};
    RESULT_AUTO r = {0};
    if (t->events + (int64_t)n >= TX_EVENTS_MAX)
        return as_fail(err, AS_E_INTERNAL, "too many events in one transaction");
    arrays_open(&x);
    for (size_t i = 0; i < n; i++)
        add_row(&x, &rows[i]);
    as_status st = arrays_close(&x, err);
    if (st != AS_OK)
        return st;
    st = tx_query(t, &stmts[ADDITION_TRIALS],
                  ARGS(arg_i64(s->key), arg_str(s->id), arg_i64(s->finish_seq), arg_i64(t->events),
                       arg_array(&x, 0), arg_array(&x, 1), arg_array(&x, 2), arg_array(&x, 3),
                       arg_array(&x, 4), arg_array(&x, 5), arg_array(&x, 6), arg_array(&x, 7),
                       arg_array(&x, 8), arg_array(&x, 9), arg_array(&x, 10)),
                  &r, err);
    t->events += (int64_t)n;
    return st;
}

static as_status insert_points(struct tx *t, int64_t sweep_key, const struct added_trial *rows,
                               size_t n, struct as_err *err)
{
    ARRAYS_AUTO x = {0};
    size_t n_points = 0;
    arrays_open(&x);
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < rows[i].n_points; k++, n_points++) {
            array_i64(&x.c[0], rows[i].number);
            array_str(&x.c[1], rows[i].points[k].metric);
            array_f64(&x.c[2], rows[i].points[k].value);
        }
    }
    as_status st = arrays_close(&x, err);
    if (st != AS_OK || n_points == 0)
        return st;
    return tx_exec(t, &stmts[ADDITION_POINTS],
                   ARGS(arg_i64(sweep_key), arg_array(&x, 0), arg_array(&x, 1), arg_array(&x, 2)),
                   NULL, err);
}

as_status store_addition_insert(struct tx *t, const struct sweep_head *s,
                                const struct added_trial *rows, size_t n, struct as_err *err)
{
    int64_t known = 0;
    for (size_t i = 0; i < n; i++)
        known += rows[i].state != TRIAL_QUEUED;
    as_status st = known > 0 ? store_sweep_known(t, s->key, known, err) : AS_OK;
    if (st != AS_OK)
        return st;
    if ((st = insert_trials(t, s, rows, n, err)) != AS_OK)
        return st;
    return insert_points(t, s->key, rows, n, err);
}

as_status store_addition_find(struct tx *t, const char *scope, const char *const *keys,
                              const char *const *digests, size_t n, int64_t *ret_numbers,
                              bool *ret_same, struct as_err *err)
{
    ARRAYS_AUTO x = {0};
    RESULT_AUTO r = {0};
    arrays_open(&x);
    for (size_t i = 0; i < n; i++) {
        array_str(&x.c[0], keys[i]);
        array_str(&x.c[1], digests[i]);
        ret_numbers[i] = -1;
        ret_same[i] = false;
    }
    as_status st = arrays_close(&x, err);
    if (st != AS_OK)
        return st;
    st = tx_query(t, &stmts[ADDITION_FIND],
                  ARGS(arg_str(scope), arg_array(&x, 0), arg_array(&x, 1)), &r, err);
    for (int i = 0; st == AS_OK && i < r.rows; i++) {
        struct reader rd;
        reader_init(&rd, &r, i, NULL);
        int64_t place = read_i64(&rd);
        ret_numbers[place] = read_i64(&rd);
        ret_same[place] = read_bool(&rd);
    }
    return st;
}

as_status store_addition_keys(struct tx *t, const char *scope, const char *sweep,
                              const char *const *keys, const char *const *digests,
                              const int64_t *numbers, size_t n, struct as_err *err)
{
    ARRAYS_AUTO x = {0};
    arrays_open(&x);
    for (size_t i = 0; i < n; i++) {
        array_str(&x.c[0], keys[i]);
        array_str(&x.c[1], digests[i]);
        array_i64(&x.c[2], numbers[i]);
    }
    as_status st = arrays_close(&x, err);
    if (st != AS_OK)
        return st;
    return tx_exec(
        t, &stmts[ADDITION_KEYS],
        ARGS(arg_str(scope), arg_str(sweep), arg_array(&x, 0), arg_array(&x, 1), arg_array(&x, 2)),
        NULL, err);
}
