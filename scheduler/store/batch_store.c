/* What a batch reads and writes, in statements on sets.
 *
 * Rows are locked in the documented order: clients, sweeps by key, trials, gangs. A statement first
 * finds all members by the names that they carry, without locks; what it read may change until the
 * locks are held, so whatever a decision needs beyond names and secrets is read again with or after
 * the lock.
 *
 * A row that another transaction holds is skipped, so a batch never waits in a queue behind one
 * sweep. A patient batch waits. */
#include "scheduler/store/batch_store.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/number.h"
#include "scheduler/store/batch_claims_priv.h"
#include "scheduler/store/fork_store.h"
#include "scheduler/store/gang_store.h"
#include "scheduler/store/pg_priv.h"
#include "scheduler/store/rung_board_store.h"
#include "scheduler/store/sql_rungs_priv.h"
#include "scheduler/store/sets_priv.h"
#include "scheduler/store/sweep_store.h"
#include "scheduler/store/trial_row_store.h"
#include "scheduler/store/trial_store_priv.h"

enum { BATCH_FIND, BATCH_FIND_PLAIN, BATCH_EXTEND, BATCH_FACTS };

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
    /* $4: is the latest step wanted? Not of an attempt whose end was reported before. */
    [BATCH_FACTS] =
        {"batch_facts",
         "select u.place - 1, h.* from unnest($1::bigint[], $2::bigint[], $3::bigint[], "
         "$4::int[]) with ordinality as u(key, number, attempt, wants, place) cross join lateral "
         "(select x.reported, t.metrics, case when u.wants = 1 and x.reported is null then (select "
         "max(c.steps[cardinality(c.steps)]) from measurement_chunk c where c.sweep_key = u.key "
         "and c.number = u.number and c.attempt = u.attempt) end from trial t left join attempt x "
         "on x.sweep_key = t.sweep_key and x.number = t.number and x.attempt = u.attempt where "
         "t.sweep_key = u.key and t.number = u.number limit 1) h"},
};
const struct stmt_set batch_stmts = {"batch", stmts, AS_ARRAY_LEN(stmts)};

/* ---- read ---- */

/* A batch while it is read. */
struct reading {
    struct tx *t;
    struct arena *a;
    const struct batch_ask *asks;
    struct batch_fact *facts;
    size_t n;
    bool is_patient;
    size_t *of;    /* of each member: the first one that names the same attempt as it does */
    size_t *order; /* places of members */
};

/* May the rows of member i still be read? */
static bool is_open(const struct reading *b, size_t i)
{
    return b->facts[i].has_sweep && b->facts[i].has_trial && !b->facts[i].is_busy;
}

static as_status read_found(struct reading *b, const struct result *r, int row, size_t i,
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
    const struct reading *b = arg;
    size_t i = *(const size_t *)pa, k = *(const size_t *)pb;
    int by = compare_asks(&b->asks[i], &b->asks[k]);
    return by ? by : as_compare_i64((int64_t)i, (int64_t)k);
}

/* Find the members that name the same: a report and the end of its attempt. */
static as_status share_names(struct reading *b, struct as_err *err)
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

static as_status find_members(struct reading *b, struct as_err *err)
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

static as_status extend_clients(struct reading *b, struct as_err *err)
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
static as_status order_members(struct reading *b, struct as_err *err)
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

/* May it reach a rung? The final values of an end have their steps only later. */
static bool is_near(const struct reading *b, size_t i)
{
    const struct batch_ask *m = &b->asks[i];
    const struct rung_near *near = &b->facts[i].holder.near;
    if (!m->ends)
        return rung_is_near(near, m->points, m->n_points);
    return near->step > 0 && (m->n_points > 0 || rung_is_past(near));
}

/* Is the row of its sweep locked? */
static bool needs_sweep(const struct reading *b, size_t i)
{
    return is_open(b, i) && (b->asks[i].ends || is_near(b, i));
}

static as_status lock_sweeps(struct reading *b, struct as_err *err)
{
    int64_t *keys = arena_alloc(b->a, b->n + 1, sizeof *keys);
    struct sweep_locked **rows = arena_alloc(b->a, b->n + 1, sizeof(struct sweep_locked *));
    size_t n = 0, k = 0;
    if (!keys || !rows)
        return as_fail_nomem(err);
    for (size_t j = 0; j < b->n; j++) {
        size_t i = b->order[j];
        int64_t key = b->facts[i].holder.sweep_key;
        if (needs_sweep(b, i) && (n == 0 || keys[n - 1] != key))
            keys[n++] = key;
    }
    if (n == 0)
        return AS_OK;
    as_status st = store_sweep_lock_many(b->t, b->a, keys, n, b->is_patient, rows, err);
    for (size_t j = 0; j < b->n && st == AS_OK; j++) {
        struct batch_fact *f = &b->facts[b->order[j]];
        if (!needs_sweep(b, b->order[j]))
            continue;
        while (keys[k] != f->holder.sweep_key)
            k++;
        f->sweep = rows[k];
        f->is_busy = !rows[k];
    }
    return st;
}

/* Members as the keys of BATCH_FACTS. */
struct picked {
    struct arrays x;
    size_t *of; /* places of the members */
    size_t n;
};

static as_status pick(struct reading *b, bool (*wants)(const struct reading *b, size_t i),
                      struct picked *ret, struct as_err *err)
{
    ret->of = arena_alloc(b->a, b->n + 1, sizeof *ret->of);
    if (!ret->of)
        return as_fail_nomem(err);
    arrays_open(&ret->x);
    for (size_t i = 0; i < b->n; i++) {
        if (!is_open(b, i) || !wants(b, i))
            continue;
        array_i64(&ret->x.c[0], b->facts[i].holder.sweep_key);
        array_i64(&ret->x.c[1], b->asks[i].ref.number);
        array_i64(&ret->x.c[2], b->facts[i].attempt);
        array_i64(&ret->x.c[3], b->asks[i].wants_step);
        ret->of[ret->n++] = i;
    }
    return arrays_close(&ret->x, err);
}

static void picked_done(struct picked *p)
{
    arrays_done(&p->x);
}

static as_status send_facts(struct reading *b, bool (*wants)(const struct reading *b, size_t i),
                            struct picked *of, struct result *ret, struct as_err *err)
{
    as_status st = pick(b, wants, of, err);
    if (st != AS_OK || of->n == 0)
        return st;
    return tx_send(b->t, &stmts[BATCH_FACTS],
                   ARGS(arg_array(&of->x, 0), arg_array(&of->x, 1), arg_array(&of->x, 2),
                        arg_array(&of->x, 3)),
                   ret, err);
}

static as_status take_facts(struct reading *b, const struct picked *of, const struct result *r,
                            struct as_err *err)
{
    as_status st = AS_OK;
    for (int k = 0; k < r->rows && st == AS_OK; k++) {
        struct reader rd;
        reader_init(&rd, r, k, b->a);
        struct batch_fact *f = &b->facts[of->of[read_i64(&rd)]];
        f->reported = read_str(&rd);
        f->metrics = read_str(&rd);
        f->latest_step = read_null(&rd) ? -1 : read_i64(&rd);
        st = reader_check(&rd, err);
    }
    return st;
}

static bool is_end(const struct reading *b, size_t i)
{
    return b->asks[i].ends;
}

/* The facts of ends are asked with the locks, in one round trip: each statement sees what was
 * committed when it begins, so they are read with the rows locked. */
static as_status lock_trials(struct reading *b, struct as_err *err)
{
    struct trial_key *keys = arena_alloc(b->a, b->n + 1, sizeof *keys);
    struct trial_head *heads = arena_alloc(b->a, b->n + 1, sizeof *heads);
    bool *locked = arena_alloc(b->a, b->n + 1, sizeof *locked);
    size_t *of = arena_alloc(b->a, b->n + 1, sizeof *of); /* the key of each member */
    AS_AUTO(picked_done) struct picked ends = {0};
    RESULT_AUTO trials = {0}, facts = {0};
    size_t n = 0;
    if (!keys || !heads || !locked || !of)
        return as_fail_nomem(err);
    for (size_t j = 0; j < b->n; j++) {
        size_t i = b->order[j];
        const struct trial_key key = {b->facts[i].holder.sweep_key, b->asks[i].ref.number};
        of[i] = SIZE_MAX;
        if (!is_open(b, i))
            continue;
        if (n == 0 || keys[n - 1].sweep_key != key.sweep_key || keys[n - 1].number != key.number)
            keys[n++] = key;
        of[i] = n - 1;
    }
    if (n == 0)
        return AS_OK;
    as_status st = trial_lock_send(b->t, keys, n, b->is_patient, &trials, err);
    if (st == AS_OK)
        st = send_facts(b, is_end, &ends, &facts, err);
    if (st == AS_OK)
        st = tx_wait(b->t, err);
    if (st == AS_OK)
        st = trial_lock_read(&trials, b->a, n, heads, locked, err);
    for (size_t i = 0; i < b->n && st == AS_OK; i++) {
        if (of[i] == SIZE_MAX)
            continue;
        b->facts[i].is_busy = !locked[of[i]];
        if (locked[of[i]])
            b->facts[i].trial = heads[of[i]];
    }
    return st == AS_OK ? take_facts(b, &ends, &facts, err) : st;
}

/* The boards of the sweeps in which a rung may be reached. */
static as_status open_boards(struct reading *b, struct as_err *err)
{
    struct rung_opening *list = arena_alloc(b->a, b->n + 1, sizeof *list);
    struct sweep_locked **of = arena_alloc(b->a, b->n + 1, sizeof(struct sweep_locked *));
    size_t n = 0;
    if (!list || !of)
        return as_fail_nomem(err);
    for (size_t j = 0; j < b->n; j++) { /* in the order of sweeps */
        struct batch_fact *f = &b->facts[b->order[j]];
        if (!is_open(b, b->order[j]) || !f->sweep || !is_near(b, b->order[j]) ||
            (n > 0 && of[n - 1] == f->sweep))
            continue;
        of[n] = f->sweep;
        list[n++] = (struct rung_opening){.sweep_key = f->sweep->head.key,
                                          .finish_seq = f->sweep->head.finish_seq,
                                          .limits_steps = f->sweep->head.limits_steps};
    }
    as_status st = n > 0 ? store_rung_open(b->t, b->a, list, n, err) : AS_OK;
    for (size_t k = 0; k < n && st == AS_OK; k++)
        of[k]->board = list[k].board;
    return st;
}

static as_status read_stored(struct reading *b, struct as_err *err)
{
    struct rung_points *list = arena_alloc(b->a, b->n + 1, sizeof *list);
    size_t *of = arena_alloc(b->a, b->n + 1, sizeof *of);
    size_t n = 0;
    if (!list || !of)
        return as_fail_nomem(err);
    for (size_t i = 0; i < b->n; i++) {
        const struct batch_fact *f = &b->facts[i];
        bool ends = b->asks[i].ends;
        bool looks = ends ? rung_is_past(&f->holder.near) : is_near(b, i);
        if (!is_open(b, i) || !f->sweep || !looks)
            continue;
        of[n] = i;
        list[n++] = (struct rung_points){.board = f->sweep->board,
                                         .sweep_key = f->holder.sweep_key,
                                         .number = b->asks[i].ref.number,
                                         .rung = f->trial.at.rung,
                                         .points = b->asks[i].points,
                                         .n = ends ? 0 : b->asks[i].n_points,
                                         .every = ends};
    }
    as_status st = n > 0 ? store_rung_stored(b->t, b->a, list, n, err) : AS_OK;
    for (size_t k = 0; k < n && st == AS_OK; k++) {
        b->facts[of[k]].stored = list[k].stored;
        b->facts[of[k]].n_stored = list[k].n_stored;
    }
    return st;
}

static as_status share_gangs(struct reading *b, struct as_err *err)
{
    struct gang_fence *fences = arena_alloc(b->a, b->n + 1, sizeof *fences);
    size_t *of = arena_alloc(b->a, b->n + 1, sizeof *of);
    size_t n = 0;
    if (!fences || !of)
        return as_fail_nomem(err);
    for (size_t j = 0; j < b->n; j++) {
        size_t i = b->order[j];
        const struct trial_head *x = &b->facts[i].trial;
        if (!is_open(b, i) || !x->gang || x->state != TRIAL_RUNNING)
            continue;
        of[n] = i;
        fences[n++].key = (struct gang_key){x->sweep_key, x->number, x->attempt};
    }
    if (n == 0)
        return AS_OK;
    as_status st = store_gang_fence_many(b->t, fences, n, b->is_patient, err);
    for (size_t k = 0; k < n && st == AS_OK; k++) {
        struct batch_fact *f = &b->facts[of[k]];
        f->is_busy = !fences[k].is_held;
        f->epoch = fences[k].epoch;
        f->leader = fences[k].leader;
    }
    return st;
}

/* What was reported of a trial that waits again is only known to be needed when its row is read. */
static bool is_queued_report(const struct reading *b, size_t i)
{
    return !b->asks[i].ends && b->facts[i].trial.state == TRIAL_QUEUED;
}

static as_status read_queued(struct reading *b, struct as_err *err)
{
    AS_AUTO(picked_done) struct picked of = {0};
    RESULT_AUTO r = {0};
    as_status st = send_facts(b, is_queued_report, &of, &r, err);
    if (st == AS_OK && of.n > 0)
        st = tx_wait(b->t, err);
    return st == AS_OK ? take_facts(b, &of, &r, err) : st;
}

/* The values of ends that were reported before, against what is recorded. */
static as_status compare_repeats(struct reading *b, struct as_err *err)
{
    struct trial_points *sets = arena_alloc(b->a, b->n + 1, sizeof *sets);
    struct measured_other *others = arena_alloc(b->a, b->n + 1, sizeof *others);
    size_t *of = arena_alloc(b->a, b->n + 1, sizeof *of);
    size_t n = 0;
    if (!sets || !others || !of)
        return as_fail_nomem(err);
    for (size_t i = 0; i < b->n; i++) {
        const struct batch_fact *f = &b->facts[i];
        if (!is_open(b, i) || !f->reported || !b->asks[i].ends || b->asks[i].n_points == 0)
            continue;
        of[n] = i;
        sets[n++] = (struct trial_points){.sweep_key = f->holder.sweep_key,
                                          .number = b->asks[i].ref.number,
                                          .attempt = f->attempt,
                                          .points = b->asks[i].points,
                                          .n = b->asks[i].n_points};
    }
    if (n == 0)
        return AS_OK;
    as_status st = store_measurement_other_many(b->t, sets, n, others, err);
    for (size_t k = 0; k < n && st == AS_OK; k++)
        b->facts[of[k]].other = others[k];
    return st;
}

static as_status read_batch(struct tx *t, struct arena *a, const struct batch_ask *asks, size_t n,
                            bool is_patient, struct batch_fact *ret, struct as_err *err)
{
    struct reading b = {
        .t = t, .a = a, .asks = asks, .facts = ret, .n = n, .is_patient = is_patient};
    static as_status (*const steps[])(struct reading * b, struct as_err * err) = {
        share_names, find_members, order_members,   extend_clients, lock_sweeps, lock_trials,
        share_gangs, read_queued,  compare_repeats, open_boards,    read_stored,
    };
    as_status st = AS_OK;
    for (size_t k = 0; k < AS_ARRAY_LEN(steps) && st == AS_OK; k++)
        st = steps[k](&b, err);
    return st;
}

/* ---- write ---- */

/* The events of a batch, in the order of their writing. */
struct events {
    struct event_new *list;
    size_t n;
};

static as_status write_records(struct tx *t, struct arena *a, struct batch_changes *c,
                               struct events *events, struct as_err *err)
{
    struct trial_points *points = arena_alloc(a, c->n_records + 1, sizeof *points);
    struct trial_notes *notes = arena_alloc(a, c->n_records + 1, sizeof *notes);
    size_t n_points = 0, n_notes = 0, k = 0;
    if (!points || !notes)
        return as_fail_nomem(err);
    for (size_t i = 0; i < c->n_records; i++) {
        if (c->records[i].points.n > 0)
            points[n_points++] = c->records[i].points;
        if (c->records[i].notes.n > 0)
            notes[n_notes++] = c->records[i].notes;
    }
    as_status st = n_notes > 0 ? store_note_put_many(t, notes, n_notes, err) : AS_OK;
    if (st == AS_OK && n_points > 0)
        st = store_measurement_add_many(t, points, n_points, err);
    for (size_t i = 0; i < c->n_records && st == AS_OK; i++) {
        struct batch_record *r = &c->records[i];
        if (r->points.n == 0)
            continue;
        r->points.ret = points[k++].ret;
        if (r->points.keeps_row) {
            r->points.ret.has_value = r->has_value;
            r->points.ret.value = r->value;
        }
        if (!r->is_report || r->points.ret.recorded == 0)
            continue;
        events->list[events->n++] = (struct event_new){.type = "trial.measured",
                                                       .sweep_key = r->points.sweep_key,
                                                       .sweep = r->sweep,
                                                       .has_number = true,
                                                       .number = r->points.number,
                                                       .state = trial_state_format(r->state),
                                                       .attempt = r->points.attempt,
                                                       .has_value = r->points.ret.has_value,
                                                       .value = r->points.ret.value};
    }
    return st;
}

/* May the batch count its ends itself? Nothing else of it changes what sweeps count. */
static bool counts_its_ends(const struct batch_changes *c)
{
    const struct rung_changes *r = &c->rungs;
    bool is_plain = r->n_results == 0 && r->n_forks == 0 && r->n_promotions == 0;
    for (size_t i = 0; i < c->n_ends && is_plain; i++)
        is_plain = c->ends[i].is_plain;
    return is_plain;
}

static as_status write_ends(struct tx *t, struct arena *a, const struct batch_changes *c,
                            struct events *events, struct as_err *err)
{
    struct trial_moved *trials = arena_alloc(a, c->n_ends + 1, sizeof *trials);
    struct attempt_ended *attempts = arena_alloc(a, c->n_ends + 1, sizeof *attempts);
    if (!trials || !attempts)
        return as_fail_nomem(err);
    for (size_t i = 0; i < c->n_ends; i++) {
        const struct trial_moved *m = &c->ends[i].trial;
        trials[i] = *m;
        attempts[i] =
            (struct attempt_ended){m->sweep_key, m->number, m->move.attempt, c->ends[i].attempt};
        events->list[events->n++] = c->ends[i].event;
    }
    as_status st = counts_its_ends(c) ? store_trial_move_counted(t, a, trials, c->n_ends, err)
                                      : store_trial_move_many(t, trials, c->n_ends, err);
    return st == AS_OK ? store_attempt_end_many(t, attempts, c->n_ends, err) : st;
}

static as_status read_rows(struct tx *t, struct arena *a, struct batch_changes *c,
                           struct as_err *err)
{
    struct trial_key *keys = arena_alloc(a, c->n_rows + 1, sizeof *keys);
    struct arena **arenas = arena_alloc(a, c->n_rows + 1, sizeof(struct arena *));
    struct trial_row *rows = arena_alloc(a, c->n_rows + 1, sizeof *rows);
    if (!keys || !arenas || !rows)
        return as_fail_nomem(err);
    for (size_t i = 0; i < c->n_rows; i++) {
        keys[i] = c->rows[i].key;
        arenas[i] = c->rows[i].arena;
    }
    as_status st = store_trial_get_many(t, keys, c->n_rows, arenas, rows, err);
    for (size_t i = 0; i < c->n_rows && st == AS_OK; i++)
        c->rows[i].row = rows[i];
    return st;
}

static as_status write_batch(struct tx *t, struct arena *a, struct batch_changes *c,
                             struct as_err *err)
{
    const struct rung_changes *rungs = &c->rungs;
    size_t most =
        c->n_records + c->n_ends + rungs->n_results + rungs->n_forks + rungs->n_promotions;
    struct events events = {.list = arena_alloc(a, most + 1, sizeof *events.list)};
    if (!events.list)
        return as_fail_nomem(err);
    as_status st = c->n_records > 0 ? write_records(t, a, c, &events, err) : AS_OK;
    if (st == AS_OK)
        st = store_rung_add_many(t, rungs->results, rungs->n_results, events.list, &events.n, err);
    if (st == AS_OK)
        st = store_fork_add_many(t, a, rungs->forks, rungs->n_forks, events.list, &events.n, err);
    if (st == AS_OK && c->n_ends > 0)
        st = write_ends(t, a, c, &events, err);
    if (st == AS_OK)
        st = store_rung_promote_many(t, rungs->promotions, rungs->n_promotions, events.list,
                                     &events.n, err);
    if (st == AS_OK && events.n > 0)
        st = store_event_add_many(t, events.list, events.n, err);
    return st == AS_OK && c->n_rows > 0 ? read_rows(t, a, c, err) : st;
}

/* ---- the table ---- */

static as_status run_batch(void *ctx, batch_body *body, void *arg, struct batch_end_of_run *ret,
                           struct as_err *err)
{
    struct store *db = ctx;
    struct tx_run run = tx_run_start(db, TX_BATCH, err);
    while (tx_run_again(&run)) {
        run.status = body(arg, run.tx, err);
        ret->sent_ns = clock_mono_ns();
    }
    ret->is_away = run.is_away;
    return run.status;
}

static as_status sync_batches(void *ctx, int64_t sent_ns, struct as_err *err)
{
    struct store *db = ctx;
    return store_sync(db, sent_ns, err);
}

const struct batch_ops batch_store_ops = {.run = run_batch,
                                          .read = read_batch,
                                          .write = write_batch,
                                          .look = batch_look,
                                          .take = batch_take,
                                          .documents = store_sweep_documents,
                                          .begin = batch_begin,
                                          .sync = sync_batches};
