/* Leases first, then what the runners list: of the others nothing is recorded, because they show
 * an epoch or a secret that is not current. A runner is plain when as many attempts as it lists are
 * its own, current and without a decision, and it holds as many. */
#include "scheduler/store/beat_store.h"

#include <string.h>

#include "scheduler/store/pg_priv.h"
#include "scheduler/store/said_sql_priv.h"
#include "scheduler/store/sets_priv.h"

enum { BEATS_EXTEND, BEATS_HELD, BEATS_SAY };

static const struct stmt stmts[] = {
    [BEATS_EXTEND] =
        {"beats_extend",
         "with l as materialized (select h.name, u.place from unnest($1::text[], $2::bigint[], "
         "$3::text[]) with ordinality as u(name, epoch, secret, place) cross join lateral (select "
         "r.name from runner r where r.name = u.name and r.epoch = u.epoch and (r.secret is null "
         "or r.secret = u.secret) and r.state = 'live' for no key update skip locked) h) update "
         "runner r set seen_at = clock_timestamp(), expires_at = clock_timestamp() + $4 * interval "
         "'1 ms' from l where " SQL_JOINED(
             "r.name", "l.name") " returning l.place - 1, r.draining, (select true from gang_seat "
                                 "q where q.runner = r.name and q.state in ('seated', "
                                 "'listening', 'running') limit 1), (select count(*) from trial t "
                                 "where t.runner = r.name and t.begun >= r.begun_from and t.state "
                                 "= 'running')"},
    [BEATS_HELD] =
        {"beats_held",
         "select u.asker, count(*) from unnest($1::int[], $2::text[], $3::text[], $4::int[], "
         "$5::int[]) as u(asker, runner, id, number, attempt) cross join lateral (select key from "
         "sweep_base where id = u.id limit 1) s cross join lateral (select 1 from trial t where "
         "t.sweep_key = s.key and t.number = u.number and t.attempt = u.attempt and t.state = "
         "'running' and t.runner = u.runner and t.decision is null and t.missing = 0 limit 1) t "
         "group by u.asker"},
    [BEATS_SAY] = {"beats_say",
                   "update attempt x set " SAID_SET " from (select u.*, s.key as sweep_key from "
                   "unnest($1::text[], $2::text[], $3::int[], $4::int[], $5::text[], $6::bigint[]) "
                   "as u(runner, id, number, attempt, phase, ran_ms) cross join lateral (select "
                   "key from sweep_base where id = u.id limit 1) s) l where " SQL_JOINED_ATTEMPT(
                       "x", "l") " and x.runner = l.runner and " SAID_IS_NEWS},
};
const struct stmt_set beat_stmts = {"beat", stmts, AS_ARRAY_LEN(stmts)};

/* A set of heartbeats while it is handled. */
struct beating {
    struct tx *t;
    const struct beat_ask *asks;
    size_t n;
    struct beat_fact *facts;
    int64_t *held; /* by ask: attempts that it holds; -1: its lease was not extended, or it holds
                      ranks */
};

/* The place of an ask in a row, which the statement was given. */
static as_status read_place(struct reader *rd, const struct beating *b, size_t *ret,
                            struct as_err *err)
{
    int64_t place = read_i64(rd);
    if (place < 0 || (size_t)place >= b->n)
        return as_fail(err, AS_E_INTERNAL, "heartbeat %lld of %zu", (long long)place, b->n);
    *ret = (size_t)place;
    return AS_OK;
}

static as_status extend(struct beating *b, struct as_err *err)
{
    ARRAYS_AUTO x = {0};
    RESULT_AUTO r = {0};
    arrays_open(&x);
    for (size_t i = 0; i < b->n; i++) {
        array_str(&x.c[0], b->asks[i].id.name);
        array_i64(&x.c[1], b->asks[i].id.epoch);
        array_str(&x.c[2], b->asks[i].id.secret);
    }
    as_status st = arrays_close(&x, err);
    if (st == AS_OK)
        st = tx_query(b->t, &stmts[BEATS_EXTEND],
                      ARGS(arg_array(&x, 0), arg_array(&x, 1), arg_array(&x, 2),
                           arg_i64(store_config(tx_store(b->t))->lease_ms)),
                      &r, err);
    for (int i = 0; i < r.rows && st == AS_OK; i++) {
        struct reader rd;
        size_t place = 0;
        reader_init(&rd, &r, i, NULL);
        st = read_place(&rd, b, &place, err);
        b->facts[place].is_draining = read_bool(&rd);
        bool has_seats = read_bool(&rd);
        b->held[place] = has_seats ? -1 : read_i64(&rd);
    }
    return st;
}

/* Count what the runners list and hold. */
static as_status count_listed(const struct beating *b, int64_t *listed, struct as_err *err)
{
    ARRAYS_AUTO x = {0};
    RESULT_AUTO r = {0};
    size_t n = 0;
    arrays_open(&x);
    for (size_t i = 0; i < b->n; i++) {
        for (size_t k = 0; k < b->asks[i].n && b->held[i] >= 0; k++, n++) {
            const struct attempt_ref *ref = &b->asks[i].attempts[k];
            array_i64(&x.c[0], (int64_t)i);
            array_str(&x.c[1], b->asks[i].id.name);
            array_str(&x.c[2], ref->sweep);
            array_i64(&x.c[3], ref->number);
            array_i64(&x.c[4], ref->attempt);
        }
    }
    as_status st = arrays_close(&x, err);
    if (st == AS_OK && n > 0)
        st = tx_query(b->t, &stmts[BEATS_HELD],
                      ARGS(arg_array(&x, 0), arg_array(&x, 1), arg_array(&x, 2), arg_array(&x, 3),
                           arg_array(&x, 4)),
                      &r, err);
    for (int i = 0; i < r.rows && st == AS_OK; i++) {
        struct reader rd;
        size_t place = 0;
        reader_init(&rd, &r, i, NULL);
        st = read_place(&rd, b, &place, err);
        listed[place] = read_i64(&rd);
    }
    return st;
}

static as_status say(const struct beating *b, struct as_err *err)
{
    ARRAYS_AUTO x = {0};
    size_t n = 0;
    arrays_open(&x);
    for (size_t i = 0; i < b->n; i++) {
        for (size_t k = 0; k < b->asks[i].n_said && b->held[i] >= 0; k++, n++) {
            const struct attempt_said *said = &b->asks[i].said[k];
            array_str(&x.c[0], b->asks[i].id.name);
            array_str(&x.c[1], said->ref.sweep);
            array_i64(&x.c[2], said->ref.number);
            array_i64(&x.c[3], said->ref.attempt);
            array_str(&x.c[4], run_phase_words[said->phase]);
            array_i64(&x.c[5], said->ran_ms);
        }
    }
    as_status st = arrays_close(&x, err);
    if (st != AS_OK || n == 0)
        return st;
    return tx_exec(b->t, &stmts[BEATS_SAY],
                   ARGS(arg_array(&x, 0), arg_array(&x, 1), arg_array(&x, 2), arg_array(&x, 3),
                        arg_array(&x, 4), arg_array(&x, 5)),
                   NULL, err);
}

static as_status beat(struct beating *b, int64_t *listed, struct as_err *err)
{
    as_status st = extend(b, err);
    if (st == AS_OK)
        st = say(b, err);
    if (st == AS_OK)
        st = count_listed(b, listed, err);
    for (size_t i = 0; i < b->n && st == AS_OK; i++)
        b->facts[i].is_plain = b->held[i] == listed[i] && (size_t)listed[i] == b->asks[i].n;
    return st;
}

as_status store_beat_many(struct tx *t, const struct beat_ask *asks, size_t n,
                          struct beat_fact *facts, struct as_err *err)
{
    AS_AUTO(as_freep) int64_t *held = as_calloc(n, sizeof *held);
    AS_AUTO(as_freep) int64_t *listed = as_calloc(n, sizeof *listed);
    if (!held || !listed)
        return as_fail_nomem(err);
    for (size_t i = 0; i < n; i++) {
        held[i] = -1;
        facts[i] = (struct beat_fact){0};
    }
    struct beating b = {.t = t, .asks = asks, .n = n, .facts = facts, .held = held};
    return beat(&b, listed, err);
}
