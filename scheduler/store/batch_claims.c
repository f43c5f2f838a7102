/* What a batch of claims reads and writes: runners, whose turn it is, queues, and trials that
 * begin, in statements on sets.
 *
 * The rows of the runners are locked first, in the order of names, then the sweeps by key. What a
 * runner holds is read after its row is locked, so no other claim of it can come between.
 *
 * The triggers of `trial` do not count what begins here: CLAIMS_SWEEPS writes counts and turns at
 * once, of sweeps that this transaction has locked. */
#include "scheduler/store/batch_claims_priv.h"

#include <stdlib.h>
#include <string.h>

#include "scheduler/store/has_work_priv.h"
#include "scheduler/store/pg_priv.h"
#include "scheduler/store/sets_priv.h"
#include "scheduler/store/sql_columns_priv.h"
#include "scheduler/store/sql_counts_priv.h"

enum {
    CLAIMS_LOCK,
    CLAIMS_HELD,
    CLAIMS_TURNS,
    CLAIMS_NEWS,
    CLAIMS_QUEUE,
    CLAIMS_FILES,
    CLAIMS_ADD,
    CLAIMS_BEGIN,
    CLAIMS_ATTEMPTS,
    CLAIMS_EXTEND,
    CLAIMS_SWEEPS
};

/* Leases are extended ten times a second at most: each change leaves a version of the row. */
#define IS_DUE "r.seen_at < clock_timestamp() - interval '100 ms'"

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
    [CLAIMS_QUEUE] =
        {"claims_queue",
         "select u.place - 1, h.* from unnest($1::bigint[], $2::bigint[]) with ordinality as "
         "u(key, most, place) cross join lateral (select t.number, t.attempt, t.seed, t.params, "
         "t.parent is not null "
         "from trial t where t.sweep_key = u.key and t.state = 'queued' order by t.number limit "
         "u.most) h"},
    [CLAIMS_FILES] =
        {"claims_files",
         "select u.place - 1, h.* from unnest($1::bigint[], $2::int[]) with ordinality as u(key, "
         "number, place) cross join lateral (select f.path, f.size, f.sha256 from trial_file f "
         "where f.sweep_key = u.key and f.number = u.number and f.kind = 'checkpoint') h order by "
         "u.place, h.path"},
    [CLAIMS_ADD] =
        {"claims_add",
         "insert into trial (sweep_key, number, state, attempt, params, suggestion, seed, origin, "
         "suggestion_index, seen, runner, epoch, claimed_at, started_at) select key, number, "
         "'running', 1, params::json, suggestion::json, seed, 'suggested', place, nullif(seen, "
         "-1), runner, epoch, now(), now() from unnest($1::bigint[], $2::int[], $3::text[], "
         "$4::text[], $5::bigint[], $6::int[], $7::bigint[], $8::text[], $9::bigint[]) as l(key, "
         "number, params, suggestion, seed, place, seen, runner, epoch)"},
    [CLAIMS_BEGIN] =
        {"claims_begin",
         "update trial t set " SQL_OWN_VALUES
         "state = 'running', attempt = l.attempt, decision = null, runner = l.runner, epoch = "
         "l.epoch, client = null, gang = false, group_id = null, claimed_at = now(), begun = "
         "nextval('trial_begun'), started_at = coalesce(t.started_at, now()), missing = 0, reason "
         "= null from unnest($1::bigint[], "
         "$2::int[], $3::int[], $4::text[], $5::bigint[]) as l(key, number, attempt, runner, "
         "epoch) where " SQL_JOINED("t.sweep_key", "l.key") " and " SQL_JOINED_NEXT(
             "t.number", "l.number") " and t.state = 'queued' and t.attempt = l.attempt - 1"},
    [CLAIMS_ATTEMPTS] =
        {"claims_attempts",
         "insert into attempt (sweep_key, number, attempt, runner, epoch, claim_id, secret, walls) "
         "select l.*, (select walls from runner where name = l.runner) from unnest($1::bigint[], "
         "$2::int[], $3::int[], $4::text[], $5::bigint[], $6::text[], $7::text[]) as l(key, "
         "number, attempt, runner, epoch, claim_id, secret)"},
    [CLAIMS_EXTEND] =
        {"claims_extend",
         "update runner r set seen_at = clock_timestamp(), expires_at = clock_timestamp() + $2 * "
         "interval '1 ms', begun_from = coalesce((select t.begun from trial t where t.runner = "
         "r.name and t.state = 'running' and t.begun >= r.begun_from order by t.begun limit 1), "
         "r.begun_from) from unnest($1::text[]) as l(name) where " SQL_JOINED(
             "r.name", "l.name") " and " IS_DUE},
    /* Of each sweep: how many trials began, of these how many were made. Turns without a number
     * count on from those of the sweep, as in trial_counted_inserts(); several sweeps have had
     * theirs in the order of the list. */
    [CLAIMS_SWEEPS] =
        {"claims_sweeps",
         "with f as materialized (select * from unnest($1::bigint[], $2::bigint[], $3::text[], "
         "$4::int[], $5::bigint[], $6::int[], $7::int[]) as f(sweep_key, mark, state, starts, "
         "turns, begun, made)), started as "
         "(update sweep_base s set started_at = now() from f where f.starts = 1 and "
         "" SQL_JOINED("s.key", "f.sweep_key") " and s.started_at is null) " SQL_COUNTS_CHANGE
                                               "n_total = c.n_total + f.made, n_suggested = "
                                               "c.n_suggested + f.made, n_running = c.n_running + "
                                               "f.begun, n_queued = c.n_queued - (f.begun - "
                                               "f.made), "
                                               "search_state = case when f.mark is null then "
                                               "c.search_state else f.state::json end, "
                                               "search_mark = coalesce(f.mark, c.search_mark), "
                                               "turns = coalesce(f.turns, greatest(c.turns, "
                                               "" SQL_MOST_TURNS " - 8) + f.begun), "
                                               "served = nextval('sweep_served') from "
                                               "f" SQL_COUNTS_OF_EACH},
};
const struct stmt_set claims_stmts = {"claims", stmts, AS_ARRAY_LEN(stmts)};

/* ---- look ---- */

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

/* ---- take ---- */

static as_status read_queues(struct tx *t, struct arena *a, struct batch_source *sources, size_t n,
                             struct as_err *err)
{
    ARRAYS_AUTO x = {0};
    RESULT_AUTO r = {0};
    size_t n_wanted = 0;
    arrays_open(&x);
    for (size_t i = 0; i < n; i++) {
        struct batch_source *s = &sources[i];
        int64_t most = s->row && s->row->head.counts.by_state[TRIAL_QUEUED] > 0 ? s->n_wanted : 0;
        s->queue = arena_alloc(a, (size_t)most + 1, sizeof *s->queue);
        if (!s->queue)
            return as_fail_nomem(err);
        n_wanted += (size_t)most;
        array_i64(&x.c[0], s->key);
        array_i64(&x.c[1], most);
    }
    as_status st = arrays_close(&x, err);
    if (st == AS_OK && n_wanted > 0)
        st = tx_query(t, &stmts[CLAIMS_QUEUE], ARGS(arg_array(&x, 0), arg_array(&x, 1)), &r, err);
    for (int i = 0; i < r.rows && st == AS_OK; i++) {
        struct reader rd;
        reader_init(&rd, &r, i, a);
        struct batch_source *s = &sources[read_i64(&rd)];
        struct batch_queued *q = &s->queue[s->n_queue++];
        q->number = read_i64(&rd);
        q->attempt = read_i64(&rd);
        q->seed = read_i64(&rd);
        q->params = read_str(&rd);
        q->is_fork = read_bool(&rd);
        st = reader_check(&rd, err);
    }
    return st;
}

/* The checkpoints of queued trials that ran before, and of forks. */
static as_status read_checkpoints(struct tx *t, struct arena *a, struct batch_queued *const *ran,
                                  const int64_t *keys, size_t n, struct as_err *err)
{
    ARRAYS_AUTO x = {0};
    RESULT_AUTO r = {0};
    arrays_open(&x);
    for (size_t i = 0; i < n; i++) {
        array_i64(&x.c[0], keys[i]);
        array_i64(&x.c[1], ran[i]->number);
    }
    as_status st = arrays_close(&x, err);
    if (st == AS_OK)
        st = tx_query(t, &stmts[CLAIMS_FILES], ARGS(arg_array(&x, 0), arg_array(&x, 1)), &r, err);
    struct file_row *rows = arena_alloc(a, (size_t)r.rows + 1, sizeof *rows);
    if (!rows)
        return as_fail_nomem(err);
    for (int i = 0; i < r.rows && st == AS_OK; i++) {
        struct reader rd;
        reader_init(&rd, &r, i, a);
        struct file_list *files = &ran[read_i64(&rd)]->files;
        if (files->n++ == 0)
            files->rows = &rows[i];
        rows[i].path = read_str(&rd);
        rows[i].size = read_i64(&rd);
        rows[i].sha256 = read_str(&rd);
        st = reader_check(&rd, err);
    }
    return st;
}

static as_status read_files(struct tx *t, struct arena *a, struct batch_source *sources, size_t n,
                            struct as_err *err)
{
    size_t n_queued = 0, n_ran = 0;
    for (size_t i = 0; i < n; i++)
        n_queued += sources[i].n_queue;
    struct batch_queued **ran = arena_alloc(a, n_queued + 1, sizeof(struct batch_queued *));
    int64_t *keys = arena_alloc(a, n_queued + 1, sizeof *keys);
    if (!ran || !keys)
        return as_fail_nomem(err);
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < sources[i].n_queue; k++)
            if (sources[i].queue[k].attempt > 0 || sources[i].queue[k].is_fork) {
                keys[n_ran] = sources[i].key;
                ran[n_ran++] = &sources[i].queue[k];
            }
    return n_ran > 0 ? read_checkpoints(t, a, ran, keys, n_ran, err) : AS_OK;
}

/* What limits.max_steps lets begin. No statement where no sweep has it. */
static as_status read_steps_room(struct tx *t, struct arena *a, struct batch_source *sources,
                                 const int64_t *keys, size_t n, struct as_err *err)
{
    bool has_limit = false;
    for (size_t i = 0; i < n; i++) {
        sources[i].steps_room = INT64_MAX;
        has_limit |= sources[i].row && sources[i].row->head.limits_steps;
    }
    if (!has_limit)
        return AS_OK;
    int64_t *room = arena_alloc(a, n, sizeof *room);
    if (!room)
        return as_fail_nomem(err);
    as_status st = store_sweep_steps_room(t, keys, n, room, err);
    for (size_t i = 0; i < n && st == AS_OK; i++)
        sources[i].steps_room = room[i];
    return st;
}

as_status batch_take(struct tx *t, struct arena *a, struct batch_source *sources, size_t n,
                     bool is_patient, struct as_err *err)
{
    int64_t *keys = arena_alloc(a, n + 1, sizeof *keys);
    struct sweep_locked **rows = arena_alloc(a, n + 1, sizeof(struct sweep_locked *));
    if (!keys || !rows)
        return as_fail_nomem(err);
    for (size_t i = 0; i < n; i++)
        keys[i] = sources[i].key;
    as_status st = store_sweep_lock_many(t, a, keys, n, is_patient, rows, err);
    for (size_t i = 0; i < n && st == AS_OK; i++)
        sources[i].row = rows[i];
    if (st == AS_OK)
        st = read_steps_room(t, a, sources, keys, n, err);
    if (st == AS_OK)
        st = read_queues(t, a, sources, n, err);
    return st == AS_OK ? read_files(t, a, sources, n, err) : st;
}

/* ---- begin ---- */

static as_status add_made(struct tx *t, const struct batch_claims *c, struct as_err *err)
{
    ARRAYS_AUTO x = {0};
    size_t n = 0;
    arrays_open(&x);
    for (size_t i = 0; i < c->n_begun; i++) {
        const struct batch_begun *b = &c->begun[i];
        if (!b->is_made)
            continue;
        array_i64(&x.c[0], b->sweep_key);
        array_i64(&x.c[1], b->made.number);
        array_str(&x.c[2], b->made.params);
        array_str(&x.c[3], b->made.suggestion);
        array_i64(&x.c[4], b->made.seed);
        array_i64(&x.c[5], b->made.index);
        array_i64(&x.c[6], b->made.seen);
        array_str(&x.c[7], b->owner->runner);
        array_i64(&x.c[8], b->owner->epoch);
        n++;
    }
    as_status st = arrays_close(&x, err);
    if (st != AS_OK || n == 0)
        return st;
    return tx_exec(t, &stmts[CLAIMS_ADD],
                   ARGS(arg_array(&x, 0), arg_array(&x, 1), arg_array(&x, 2), arg_array(&x, 3),
                        arg_array(&x, 4), arg_array(&x, 5), arg_array(&x, 6), arg_array(&x, 7),
                        arg_array(&x, 8)),
                   NULL, err);
}

static as_status begin_queued(struct tx *t, const struct batch_claims *c, struct as_err *err)
{
    ARRAYS_AUTO x = {0};
    int n = 0, done = 0;
    arrays_open(&x);
    for (size_t i = 0; i < c->n_begun; i++) {
        const struct batch_begun *b = &c->begun[i];
        if (b->is_made)
            continue;
        array_i64(&x.c[0], b->sweep_key);
        array_i64(&x.c[1], b->made.number);
        array_i64(&x.c[2], b->attempt);
        array_str(&x.c[3], b->owner->runner);
        array_i64(&x.c[4], b->owner->epoch);
        n++;
    }
    as_status st = arrays_close(&x, err);
    if (st != AS_OK || n == 0)
        return st;
    st = tx_exec(t, &stmts[CLAIMS_BEGIN],
                 ARGS(arg_array(&x, 0), arg_array(&x, 1), arg_array(&x, 2), arg_array(&x, 3),
                      arg_array(&x, 4)),
                 &done, err);
    if (st == AS_OK && done != n)
        return as_fail(err, AS_E_CONFLICT, "%d of %d trials could begin", done, n);
    return st;
}

static as_status add_attempts(struct tx *t, struct arena *a, const struct batch_claims *c,
                              struct as_err *err)
{
    ARRAYS_AUTO x = {0};
    struct event_new *events = arena_alloc(a, c->n_begun + 1, sizeof *events);
    if (!events)
        return as_fail_nomem(err);
    arrays_open(&x);
    for (size_t i = 0; i < c->n_begun; i++) {
        const struct batch_begun *b = &c->begun[i];
        array_i64(&x.c[0], b->sweep_key);
        array_i64(&x.c[1], b->made.number);
        array_i64(&x.c[2], b->attempt);
        array_str(&x.c[3], b->owner->runner);
        array_i64(&x.c[4], b->owner->epoch);
        array_str(&x.c[5], b->owner->claim_id);
        array_str(&x.c[6], b->owner->secret);
        events[i] = (struct event_new){.type = "trial.changed",
                                       .sweep_key = b->sweep_key,
                                       .sweep = b->sweep,
                                       .has_number = true,
                                       .number = b->made.number,
                                       .state = trial_state_format(TRIAL_RUNNING),
                                       .attempt = b->attempt,
                                       .runner = b->owner->runner};
    }
    as_status st = arrays_close(&x, err);
    if (st == AS_OK)
        st = tx_exec(t, &stmts[CLAIMS_ATTEMPTS],
                     ARGS(arg_array(&x, 0), arg_array(&x, 1), arg_array(&x, 2), arg_array(&x, 3),
                          arg_array(&x, 4), arg_array(&x, 5), arg_array(&x, 6)),
                     NULL, err);
    return st == AS_OK ? store_event_add_many(t, events, c->n_begun, err) : st;
}

static as_status extend_runners(struct tx *t, const struct batch_claims *c, struct as_err *err)
{
    ARRAYS_AUTO x = {0};
    arrays_open(&x);
    for (size_t i = 0; i < c->n_runners; i++)
        array_str(&x.c[0], c->runners[i]);
    as_status st = arrays_close(&x, err);
    return st != AS_OK
               ? st
               : tx_exec(t, &stmts[CLAIMS_EXTEND],
                         ARGS(arg_array(&x, 0), arg_i64(store_config(tx_store(t))->lease_ms)), NULL,
                         err);
}

/* What changes of a sweep. */
struct sweep_change {
    int64_t key;
    const struct batch_searched *searched; /* NULL: it stays */
    const struct batch_turned *turned;     /* NULL: its turns go on by the trials that begin */
    bool starts;
    int64_t n_begun, n_made; /* trials; those of them that are made */
};

/* The change of this sweep; a new one at the end if it has none. */
static struct sweep_change *change_of(struct sweep_change *list, size_t *n, int64_t key)
{
    for (size_t i = 0; i < *n; i++)
        if (list[i].key == key)
            return &list[i];
    list[*n] = (struct sweep_change){.key = key};
    return &list[(*n)++];
}

static as_status list_changes(struct arena *a, const struct batch_claims *c,
                              struct sweep_change **ret, size_t *ret_n, struct as_err *err)
{
    struct sweep_change *list = arena_alloc(a, c->n_turned + c->n_begun + 1, sizeof *list);
    if (!list)
        return as_fail_nomem(err);
    *ret_n = 0;
    for (size_t i = 0; i < c->n_turned; i++) /* first: in the order of their turns */
        change_of(list, ret_n, c->turned[i].key)->turned = &c->turned[i];
    for (size_t i = 0; i < c->n_begun; i++) {
        struct sweep_change *s = change_of(list, ret_n, c->begun[i].sweep_key);
        s->n_begun++;
        s->n_made += c->begun[i].is_made;
    }
    for (size_t i = 0; i < c->n_searched; i++)
        change_of(list, ret_n, c->searched[i].key)->searched = &c->searched[i];
    for (size_t i = 0; i < c->n_started; i++)
        change_of(list, ret_n, c->started[i])->starts = true;
    *ret = list;
    return AS_OK;
}

static as_status write_sweeps(struct tx *t, struct arena *a, const struct batch_claims *c,
                              struct as_err *err)
{
    struct sweep_change *list = NULL;
    size_t n = 0;
    ARRAYS_AUTO x = {0};
    as_status st = list_changes(a, c, &list, &n, err);
    if (st != AS_OK)
        return st;
    arrays_open(&x);
    for (size_t i = 0; i < n; i++) {
        const struct sweep_change *s = &list[i];
        array_i64(&x.c[0], s->key);
        array_i64_or_null(&x.c[1], s->searched, s->searched ? s->searched->mark : 0);
        array_str(&x.c[2], s->searched ? s->searched->state : NULL);
        array_i64(&x.c[3], s->starts);
        array_i64_or_null(&x.c[4], s->turned, s->turned ? s->turned->turns : 0);
        array_i64(&x.c[5], s->n_begun);
        array_i64(&x.c[6], s->n_made);
    }
    st = arrays_close(&x, err);
    return st != AS_OK ? st
                       : tx_exec(t, &stmts[CLAIMS_SWEEPS],
                                 ARGS(arg_array(&x, 0), arg_array(&x, 1), arg_array(&x, 2),
                                      arg_array(&x, 3), arg_array(&x, 4), arg_array(&x, 5),
                                      arg_array(&x, 6)),
                                 NULL, err);
}

as_status batch_begin(struct tx *t, struct arena *a, const struct batch_claims *c,
                      struct as_err *err)
{
    if (c->n_begun == 0)
        return AS_OK;
    as_status st = add_made(t, c, err);
    if (st == AS_OK)
        st = begin_queued(t, c, err);
    if (st == AS_OK)
        st = add_attempts(t, a, c, err);
    if (st == AS_OK && c->n_runners > 0)
        st = extend_runners(t, c, err); /* reads which of their trials began first */
    return st == AS_OK ? write_sweeps(t, a, c, err) : st;
}
