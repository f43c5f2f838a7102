/* What a batch of claims writes, in statements on sets: trials that begin, their attempts and
 * events, the leases of their runners, and counts, turns and searches of their sweeps.
 *
 * The triggers of `trial` do not count what begins here (CLAIMS_NEWS of batch_look.c tells them):
 * CLAIMS_SWEEPS writes counts and turns at once, of sweeps that this transaction has locked. */
#include "scheduler/store/batch_begin_priv.h"

#include "scheduler/store/pg_priv.h"
#include "scheduler/store/runner_sql_priv.h"
#include "scheduler/store/sets_priv.h"
#include "scheduler/store/sql_counts_priv.h"

enum { CLAIMS_ADD, CLAIMS_BEGIN, CLAIMS_ATTEMPTS, CLAIMS_EXTEND, CLAIMS_SWEEPS };

static const struct stmt stmts[] = {
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
const struct stmt_set batch_begin_stmts = {"batch_begin", stmts, AS_ARRAY_LEN(stmts)};

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
