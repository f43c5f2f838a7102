/* What a batch of claims reads first, in one round trip: the runners, what each one holds, and
 * which sweeps have turns.
 *
 * The rows of the runners are locked first, in the order of names. What a runner holds is read
 * after its row is locked, so no other claim of it can come between. */
#include "scheduler/store/batch_look_priv.h"

#include <stdlib.h>
#include <string.h>

#include "scheduler/store/has_work_priv.h"
#include "scheduler/store/pg_priv.h"
#include "scheduler/store/runner_sql_priv.h"
#include "scheduler/store/sets_priv.h"
#include "scheduler/store/sql_columns_priv.h"
#include "scheduler/store/sql_counts_priv.h"

enum { CLAIMS_LOCK, CLAIMS_HELD, CLAIMS_TURNS, CLAIMS_NEWS };

#define TURN_FIELDS(FIRST, NEXT)                                                                   \
    FIRST(i64, key, "s.key")                                                                       \
    NEXT(i64, priority, "s.priority")                                                              \
    NEXT(i64, running, "s.n_running")                                                              \
    NEXT(i64, turns, "s.turns")                                                                    \
    NEXT(i64, served, "s.served")                                                                  \
    NEXT(i64, gpus, "s.gpus")                                                                      \
    NEXT(i64, queued, "s.n_queued")                                                                \
    NEXT(i64, left, "s.planned - s.n_total")                                                       \
    NEXT(i64, max_concurrent, "s.max_concurrent")                                                  \
    NEXT(i64, steps_room,                                                                          \
         "case when s.max_steps is null then 9223372036854775807 else steps_room(s.key) end")      \
    NEXT(i64, grace_ms, "s.grace_ms")                                                              \
    NEXT(bool, is_gang, "s.gang")                                                                  \
    NEXT(bool, has_needs, "s.exclusive or s.cpus > 0 or s.memory_bytes > 0")                       \
    NEXT(bool, has_shapes, "s.max_group is not null")                                              \
    NEXT(bool, learns, "s.learns")                                                                 \
    NEXT(bool, gives_ahead, GIVES_AHEAD_OF("s."))                                                  \
    NEXT(i64, ahead_room, AHEAD_ROOM_OF("s."))
COLUMNS_WHOLE_ROW(struct batch_turn, TURN_FIELDS)
COLUMNS_READER(turn, struct batch_turn, TURN_FIELDS)

static const struct stmt stmts[] = {
    [CLAIMS_LOCK] =
        {"claims_lock",
         "select u.place - 1 from unnest($1::text[]) with ordinality as u(name, place) cross join "
         "lateral (select r.name from runner r where r.name = u.name for no key update of r skip "
         "locked) h"},
    /* $2: the claims, $3: of each the attempts that end, as an array of "sweep/number/attempt". */
    [CLAIMS_HELD] =
        {"claims_held",
         "select u.place - 1, r.epoch, r.state, r.secret, r.slots, json_array_length(r.gpus) - "
         "json_array_length(r.gpu_faults), h.running, h.used, h.ending, r.takes_seats, (select "
         "true "
         "from gang_seat q where q.runner = r.name and q.epoch = r.epoch and q.state = 'seated' "
         "and q.claim_id is null limit 1) is not null, (select true from attempt x where x.runner "
         "= r.name and x.claim_id = u.claim_id limit 1) is not null, " IS_DUE
         " from unnest($1::text[], $2::text[], $3::text[]) with "
         "ordinality as u(name, claim_id, ending, place) cross join lateral (select * from runner "
         "where name = u.name limit 1) r cross join lateral (select count(n.number) as running, "
         "count(*) filter (where n.group_id is null and not n.ends) + count(distinct n.group_id) "
         "filter (where not n.ends) as used, array_agg(n.sweep_key) filter (where n.ends) as "
         "ending from (select d.number, d.sweep_key, d.group_id, d.seat is null and u.ending is "
         "not null and coalesce((select s.id || '/' || d.number || '/' || d.attempt from "
         "sweep_base s where s.key = d.sweep_key limit 1) = any (u.ending::text[]), false) as ends "
         "from held d "
         "where d.runner = r.name) n) h"},
    /* The order of TURN_LIST (turn_store.c), before what single runners change in it. */
    [CLAIMS_TURNS] =
        {"claims_turns",
         "select " COLUMNS_SQL(
             TURN_FIELDS) ", m.turns from sweep s cross join "
                          "(select " SQL_MOST_TURNS
                          " as turns) m where s.for_runners and " HAS_WORK_OF(
                              "s.") " order by s.priority desc, s.n_running, greatest(s.turns, "
                                    "m.turns - 8), s.served, s.key limit $1"},
    /* It also tells the triggers that this transaction counts its trials itself. */
    [CLAIMS_NEWS] = {"claims_news",
                     "select exists (select from runner_wait) or exists (select from sweep where "
                     "exclusive and n_running > 0), exists (select from gathering where sweep_key "
                     "is not null) or exists (select from gang where state <> 'over' and elastic "
                     "and not is_ending), set_config('assay.counted', 'true', true)"},
};
const struct stmt_set batch_look_stmts = {"batch_look", stmts, AS_ARRAY_LEN(stmts)};

/* A claimer that is being read. */
struct claimer_place {
    const struct batch_claimer *claimer;
    size_t place;
};

static int compare_claimers(const void *pa, const void *pb)
{
    const struct claimer_place *a = pa, *b = pb;
    return strcmp(a->claimer->runner, b->claimer->runner);
}

/* What batch_look() asks: sent one after another, answered in one round trip. Each statement sees
 * what was committed when it begins, so what runners hold is read with their rows locked. */
struct look {
    struct claimer_place *order; /* of the locks */
    struct result locked, held, turns, news;
};

static void look_done(struct look *l)
{
    result_done(&l->locked);
    result_done(&l->held);
    result_done(&l->turns);
    result_done(&l->news);
}

/* Lock the rows of the runners, in the order of their names. */
static as_status lock_runners(struct tx *t, struct arena *a, const struct batch_claimer *claimers,
                              size_t n, struct look *ret, struct as_err *err)
{
    struct claimer_place *order = arena_alloc(a, n + 1, sizeof *order);
    ARRAYS_AUTO x = {0};
    if (!order)
        return as_fail_nomem(err);
    for (size_t i = 0; i < n; i++)
        order[i] = (struct claimer_place){&claimers[i], i};
    qsort(order, n, sizeof *order, compare_claimers);
    arrays_open(&x);
    for (size_t i = 0; i < n; i++)
        array_str(&x.c[0], order[i].claimer->runner);
    ret->order = order;
    as_status st = arrays_close(&x, err);
    return st == AS_OK ? tx_send(t, &stmts[CLAIMS_LOCK], ARGS(arg_array(&x, 0)), &ret->locked, err)
                       : st;
}

/* The text of the attempts that end, NULL if there are none; in the arena. */
static as_status format_ending(struct arena *a, const struct batch_claimer *c, const char **ret,
                               struct as_err *err)
{
    AS_AUTO(str_done) struct str list = {0};
    *ret = NULL;
    if (c->n_ending == 0)
        return AS_OK;
    array_open(&list);
    for (size_t i = 0; i < c->n_ending; i++) {
        const struct attempt_ref *e = &c->ending[i];
        const char *name =
            arena_printf(a, "%s/%lld/%lld", e->sweep, (long long)e->number, (long long)e->attempt);
        if (!name)
            return as_fail_nomem(err);
        array_str(&list, name);
    }
    array_close(&list);
    as_status st = str_check(&list, err);
    if (st == AS_OK)
        *ret = arena_strdup(a, str_cstr(&list));
    return st == AS_OK && !*ret ? as_fail_nomem(err) : st;
}

/* The keys of an array, "{12,34}"; "" for null. */
static as_status read_keys(struct arena *a, const char *text, struct batch_runner *ret,
                           struct as_err *err)
{
    size_t n = *text != '\0';
    for (const char *s = text; *s; s++)
        n += *s == ',';
    int64_t *keys = arena_alloc(a, n + 1, sizeof *keys);
    if (!keys)
        return as_fail_nomem(err);
    const char *s = text + (n > 0);
    for (size_t i = 0; i < n; i++) {
        char *end = NULL;
        keys[i] = strtoll(s, &end, 10);
        s = end + 1;
    }
    ret->ending = keys;
    ret->n_ending = n;
    return AS_OK;
}

static as_status read_runner(struct reader *rd, struct arena *a, struct batch_runner *ret,
                             struct as_err *err)
{
    ret->epoch = read_i64(rd);
    ret->state = read_str(rd);
    ret->secret = read_str(rd);
    ret->slots = read_i64(rd);
    ret->gpus = read_i64(rd);
    ret->running = read_i64(rd);
    ret->used = read_i64(rd);
    as_status st = read_keys(a, read_view(rd), ret, err);
    ret->takes_seats = read_bool(rd);
    ret->has_seats = read_bool(rd);
    ret->is_repeated = read_bool(rd);
    ret->is_due = read_bool(rd);
    return st == AS_OK ? reader_check(rd, err) : st;
}

static as_status ask_held(struct tx *t, struct arena *a, const struct batch_claimer *claimers,
                          size_t n, struct result *ret, struct as_err *err)
{
    ARRAYS_AUTO x = {0};
    as_status st = AS_OK;
    arrays_open(&x);
    for (size_t i = 0; i < n && st == AS_OK; i++) {
        const char *ending = NULL;
        st = format_ending(a, &claimers[i], &ending, err);
        array_str(&x.c[0], claimers[i].runner);
        array_str(&x.c[1], claimers[i].claim_id);
        array_str(&x.c[2], ending);
    }
    if (st == AS_OK)
        st = arrays_close(&x, err);
    return st == AS_OK
               ? tx_send(t, &stmts[CLAIMS_HELD],
                         ARGS(arg_array(&x, 0), arg_array(&x, 1), arg_array(&x, 2)), ret, err)
               : st;
}

static as_status read_runners(const struct look *l, struct arena *a, struct batch_runner *ret,
                              struct as_err *err)
{
    as_status st = AS_OK;
    for (int i = 0; i < l->locked.rows; i++)
        ret[l->order[result_i64(&l->locked, i, 0)].place].is_there = true;
    for (int i = 0; i < l->held.rows && st == AS_OK; i++) {
        struct reader rd;
        reader_init(&rd, &l->held, i, a);
        st = read_runner(&rd, a, &ret[read_i64(&rd)], err);
    }
    return st;
}

static as_status read_turns(const struct look *l, struct arena *a, struct batch_turns *ret,
                            struct as_err *err)
{
    const struct result *r = &l->turns;
    struct reader rd;
    reader_init(&rd, &l->news, 0, NULL);
    ret->has_waits = read_bool(&rd);
    ret->has_gangs = read_bool(&rd);
    ret->n = (size_t)r->rows;
    ret->max_turns = r->rows > 0 ? result_i64(r, 0, COLUMNS_COUNT(TURN_FIELDS)) : 0;
    as_status st = reader_check(&rd, err);
    return st == AS_OK ? read_turn_rows(r, r->rows, a, &ret->rows, err) : st;
}

as_status batch_look(struct tx *t, struct arena *a, const struct batch_claimer *claimers, size_t n,
                     struct batch_runner *ret, struct batch_turns *ret_turns, struct as_err *err)
{
    AS_AUTO(look_done) struct look l = {0};
    as_status st = lock_runners(t, a, claimers, n, &l, err);
    if (st == AS_OK)
        st = ask_held(t, a, claimers, n, &l.held, err);
    if (st == AS_OK)
        st = tx_send(t, &stmts[CLAIMS_TURNS], ARGS(arg_i64(BATCH_TURNS_MAX)), &l.turns, err);
    if (st == AS_OK)
        st = tx_send(t, &stmts[CLAIMS_NEWS], NULL, &l.news, err);
    if (st == AS_OK)
        st = tx_wait(t, err);
    if (st == AS_OK)
        st = read_runners(&l, a, ret, err);
    return st == AS_OK ? read_turns(&l, a, ret_turns, err) : st;
}
