/* The members of a batch are found by the names that they carry.
 *
 * One statement finds all of them, without locks. What it read may change until the locks are held,
 * so whatever a decision needs beyond names and secrets is read again with or after the lock
 * (batch_read.c). Only the rows of clients are locked here, which come first in the documented
 * order. */
#include "scheduler/store/batch_find_priv.h"

#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "scheduler/store/pg_priv.h"
#include "scheduler/store/sets_priv.h"
#include "scheduler/store/sql_rungs_priv.h"

enum { BATCH_FIND, BATCH_FIND_PLAIN, BATCH_EXTEND };

/* Each table is looked up by its key for each member: a lateral query with a limit cannot be turned
 * into another join. */
#define NAMES_FROM                                                                                 \
    "unnest($1::text[], $2::bigint[], $3::bigint[], $4::text[], $5::text[], $6::bigint[]) with "   \
    "ordinality as u(id, number, attempt, client, token, seat, place) left join lateral "          \
    "(select key, rungs, rungs_late from sweep_base where id = u.id limit 1) s on true left join " \
    "lateral (select number, rung, decision, step from trial where sweep_key = s.key and "         \
    "number = u.number limit 1) t on true"
#define ATTEMPT_FROM(attempt)                                                                      \
    " left join lateral (select attempt, client, secret, gang from attempt where sweep_key = "     \
    "s.key and number = u.number and attempt = " attempt " limit 1) x on true"
#define CLIENT_FROM                                                                                \
    " left join lateral (select coalesce(max(attempt) filter (where is_mine), 0) as latest, "      \
    "count(*) filter (where not is_mine) as others from (select attempt, token is null or "        \
    "u.token is null or token = u.token as is_mine from attempt where sweep_key = s.key and "      \
    "number = u.number and client = u.client and u.client is not null) y) c on true"
#define SEAT_FROM                                                                                  \
    " left join lateral (select seat, secret from gang_seat where x.gang and sweep_key = s.key "   \
    "and number = u.number and attempt = x.attempt and seat = u.seat limit 1) q on true"
#define FIND(latest, others, seat, secret)                                                         \
    "select s.key, t.number is not null, " latest ", " others ", x.attempt is not null, "          \
    "x.client, x.secret, x.gang, " seat ", " secret                                                \
    ", " SQL_RUNG_NEXT("s", "t") ", " SQL_RUNG_AFTER("s", "t") " from " NAMES_FROM

static const struct stmt stmts[] = {
    [BATCH_FIND] = {"batch_find",
                    FIND("coalesce(c.latest, 0)", "coalesce(c.others, 0)", "q.seat is not null",
                         "q.secret")
                        CLIENT_FROM ATTEMPT_FROM("case when u.attempt = 0 then c.latest else "
                                                 "u.attempt end") SEAT_FROM " order by u.place"},
    /* The same where no member is a client's or names a seat. */
    [BATCH_FIND_PLAIN] = {"batch_find_plain", FIND("0", "0", "false", "null::text")
                                                  ATTEMPT_FROM("u.attempt") " order by u.place"},
    /* Whoever holds the row of a client extends its lease, or finds that it has ended. */
    [BATCH_EXTEND] =
        {"batch_extend",
         "with l as materialized (select h.* from (select distinct k.key, k.name from "
         "unnest($1::bigint[], $2::text[]) as k(key, name)) u cross join lateral (select "
         "c.sweep_key, c.name from client c where c.sweep_key = u.key and c.name = u.name for no "
         "key update skip locked) h) update client c set expires_at = clock_timestamp() + "
         "c.lease_ms * interval '1 ms' from l where " SQL_JOINED(
             "c.sweep_key", "l.sweep_key") " and " SQL_JOINED_NEXT("c.name", "l.name")},
};
const struct stmt_set batch_find_stmts = {"batch_find", stmts, AS_ARRAY_LEN(stmts)};

static as_status read_found(struct batch_reading *b, const struct result *r, int row, size_t i,
                            struct as_err *err)
{
    struct batch_fact *f = &b->facts[i];
    struct reader rd;
    reader_init(&rd, r, row, b->a);
    f->has_sweep = !read_null(&rd);
    f->holder.sweep_key = read_i64(&rd);
    f->has_trial = read_bool(&rd);
    f->latest = read_i64(&rd);
    f->is_anothers = read_i64(&rd) > 0 && f->latest == 0;
    f->holder.is_there = read_bool(&rd);
    f->holder.client = read_str(&rd);
    f->holder.secret = read_str(&rd);
    f->holder.gang = read_bool(&rd);
    f->has_seat = read_bool(&rd);
    f->seat_secret = read_str(&rd);
    f->holder.near.step = read_i64(&rd);
    f->holder.near.after = read_i64(&rd);
    f->attempt = b->asks[i].ref.attempt ? b->asks[i].ref.attempt : f->latest;
    f->leader = -1;
    f->latest_step = -1;
    f->other.place = -1;
    return reader_check(&rd, err);
}

static int compare_str(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) : (a != NULL) - (b != NULL);
}

static int64_t seat_of(const struct batch_ask *m)
{
    return m->has_seat ? m->seat : -1;
}

static int compare_asks(const struct batch_ask *x, const struct batch_ask *y)
{
    int by = strcmp(x->ref.sweep, y->ref.sweep);
    by = by ? by : as_compare_i64(x->ref.number, y->ref.number);
    by = by ? by : as_compare_i64(x->ref.attempt, y->ref.attempt);
    by = by ? by : compare_str(x->client, y->client);
    by = by ? by : compare_str(x->token, y->token);
    return by ? by : as_compare_i64(seat_of(x), seat_of(y));
}

/* By what a member names, then by its place. */
static int compare_places(const void *pa, const void *pb, void *arg)
{
    const struct batch_reading *b = arg;
    size_t i = *(const size_t *)pa, k = *(const size_t *)pb;
    int by = compare_asks(&b->asks[i], &b->asks[k]);
    return by ? by : as_compare_i64((int64_t)i, (int64_t)k);
}

/* Find the members that name the same: a report and the end of its attempt. */
static as_status share_names(struct batch_reading *b, struct as_err *err)
{
    size_t *list = arena_alloc(b->a, b->n + 1, sizeof *list);
    b->of = arena_alloc(b->a, b->n + 1, sizeof *b->of);
    if (!list || !b->of)
        return as_fail_nomem(err);
    for (size_t i = 0; i < b->n; i++)
        list[i] = i;
    qsort_r(list, b->n, sizeof *list, compare_places, b);
    for (size_t k = 0; k < b->n; k++) {
        size_t i = list[k];
        bool is_same = k > 0 && compare_asks(&b->asks[list[k - 1]], &b->asks[i]) == 0;
        b->of[i] = is_same ? b->of[list[k - 1]] : i;
    }
    return AS_OK;
}

static as_status find_members(struct batch_reading *b, struct as_err *err)
{
    ARRAYS_AUTO x = {0};
    RESULT_AUTO r = {0};
    bool is_plain = true;
    int row = 0;
    arrays_open(&x);
    for (size_t i = 0; i < b->n; i++) {
        const struct batch_ask *m = &b->asks[i];
        if (b->of[i] != i)
            continue;
        array_str(&x.c[0], m->ref.sweep);
        array_i64(&x.c[1], m->ref.number);
        array_i64(&x.c[2], m->ref.attempt);
        array_str(&x.c[3], m->client);
        array_str(&x.c[4], m->token);
        array_i64(&x.c[5], seat_of(m));
        is_plain = is_plain && !m->client && !m->has_seat;
    }
    as_status st = arrays_close(&x, err);
    if (st == AS_OK)
        st = tx_query(b->t, &stmts[is_plain ? BATCH_FIND_PLAIN : BATCH_FIND],
                      ARGS(arg_array(&x, 0), arg_array(&x, 1), arg_array(&x, 2), arg_array(&x, 3),
                           arg_array(&x, 4), arg_array(&x, 5)),
                      &r, err);
    for (size_t i = 0; i < b->n && st == AS_OK; i++) {
        if (b->of[i] != i) /* it stands before */
            b->facts[i] = b->facts[b->of[i]];
        else if (row == r.rows)
            return as_fail(err, AS_E_INTERNAL, "%d answers for %zu members", r.rows, b->n);
        else
            st = read_found(b, &r, row++, i, err);
    }
    return st;
}

static as_status extend_clients(struct batch_reading *b, struct as_err *err)
{
    ARRAYS_AUTO x = {0};
    size_t n = 0;
    arrays_open(&x);
    for (size_t i = 0; i < b->n; i++) {
        if (!b->asks[i].extends || !b->facts[i].has_sweep)
            continue;
        array_i64(&x.c[0], b->facts[i].holder.sweep_key);
        array_str(&x.c[1], b->asks[i].client);
        n++;
    }
    as_status st = arrays_close(&x, err);
    if (st != AS_OK || n == 0)
        return st;
    return tx_exec(b->t, &stmts[BATCH_EXTEND], ARGS(arg_array(&x, 0), arg_array(&x, 1)), NULL, err);
}

static int compare_members(const void *pa, const void *pb, void *arg)
{
    const struct batch_fact *facts = arg;
    size_t a = *(const size_t *)pa, b = *(const size_t *)pb;
    int by_key = as_compare_i64(facts[a].holder.sweep_key, facts[b].holder.sweep_key);
    return by_key ? by_key : as_compare_i64(facts[a].trial.number, facts[b].trial.number);
}

/* The order in which rows are locked: by sweep, then by number. */
static as_status order_members(struct batch_reading *b, struct as_err *err)
{
    b->order = arena_alloc(b->a, b->n + 1, sizeof *b->order);
    if (!b->order)
        return as_fail_nomem(err);
    for (size_t i = 0; i < b->n; i++) {
        b->order[i] = i;
        b->facts[i].trial.number = b->asks[i].ref.number;
    }
    qsort_r(b->order, b->n, sizeof *b->order, compare_members, b->facts);
    return AS_OK;
}

as_status batch_find(struct batch_reading *b, struct as_err *err)
{
    as_status st = share_names(b, err);
    if (st == AS_OK)
        st = find_members(b, err);
    if (st == AS_OK)
        st = order_members(b, err);
    return st == AS_OK ? extend_clients(b, err) : st;
}
