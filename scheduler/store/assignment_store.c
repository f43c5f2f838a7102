#include "scheduler/store/assignment_store.h"

#include "scheduler/store/pg_priv.h"
#include "scheduler/store/sets_priv.h"

enum { HANDOUT_QUEUE, HANDOUT_BEGIN, HANDOUT_ADD, HANDOUT_GROUP };

/* What follows the rows of `begun`, (number, state, attempt, group_id): attempts of those that run,
 * and an event for each. $1 the sweep's key, $2 its id, $3 to $6 the holder, $7 the first place
 * among the transaction's events. */
#define HELD_AND_TOLD                                                                              \
    ", held as (insert into attempt (sweep_key, number, attempt, runner, epoch, claim_id, "        \
    "client, group_id) select $1, number, attempt, $3, $4, $6, $5, group_id from begun where "     \
    "state = 'running'), told as (insert into event (id, type, sweep_key, sweep, number, state, "  \
    "attempt, runner) select (pg_current_xact_id()::text::bigint << 20) + $7 + row_number() over " \
    "(order by number) - 1, 'trial.changed', $1, $2, number, state, nullif(attempt, 0), case "     \
    "when state = 'running' then $3 end from begun) select count(*) from begun"

static const struct stmt stmts[] = {
    [HANDOUT_QUEUE] =
        {"assignment_queue",
         "select t.number, t.attempt, t.shape, t.bytes_per_member, t.attempt = 0 or coalesce("
         "x.outcome = 'released', false) from trial t left join attempt x on x.sweep_key = "
         "t.sweep_key and x.number = t.number and x.attempt = t.attempt where t.sweep_key = $1 and "
         "t.state = 'queued' order by t.number limit $2"},
    [HANDOUT_BEGIN] =
        {"assignment_begin",
         "with l as (select * from unnest($8::int[], $9::text[]) as l(number, group_id)), begun as "
         "(update trial t set state = 'running', attempt = t.attempt + 1, runner = $3, epoch = $4, "
         "client = $5, group_id = nullif(l.group_id, ''), claimed_at = now(), started_at = "
         "coalesce(t.started_at, now()), missing = 0, reason = null from l where t.sweep_key = $1 "
         "and t.number = l.number and t.state = 'queued' returning t.number, t.state, t.attempt, "
         "t.group_id)" HELD_AND_TOLD},
    [HANDOUT_ADD] =
        {"assignment_add",
         "with l as (select * from unnest($8::int[], $9::text[], $10::text[], $11::bigint[], "
         "$12::int[], $13::bigint[], $14::text[], $15::bigint[], $16::text[], $17::bool[]) as "
         "l(number, params, suggestion, seed, place, seen, shape, bytes, group_id, runs)), begun "
         "as (insert into trial (sweep_key, number, state, attempt, params, suggestion, seed, "
         "origin, suggestion_index, seen, shape, bytes_per_member, group_id, runner, epoch, "
         "client, claimed_at, started_at) select $1, number, case when runs then 'running' else "
         "'queued' end, runs::int, params::json, suggestion::json, seed, 'suggested', place, "
         "nullif(seen, -1), nullif(shape, ''), nullif(bytes, 0), nullif(group_id, ''), case when "
         "runs then $3 end, case when runs then $4::bigint end, case when runs then $5 end, case "
         "when runs then now() end, case when runs then now() end from l order by number "
         "returning number, state, attempt, group_id)" HELD_AND_TOLD},
    [HANDOUT_GROUP] =
        {"assignment_group",
         "select t.sweep_key, t.shape, t.bytes_per_member, (select count(*) from trial r where "
         "r.group_id = $1 and r.runner = $2 and r.state = 'running') from trial t where t.group_id "
         "= $1 and t.runner = $2 limit 1"},
};
const struct stmt_set assignment_stmts = {"assignment", stmts, AS_ARRAY_LEN(stmts)};

as_status store_assignment_queue(struct tx *t, struct arena *a, int64_t sweep_key, int64_t limit,
                                 struct queued_trial **ret, size_t *ret_n, struct as_err *err)
{
    struct args args = {0};
    args_i64(&args, sweep_key);
    args_i64(&args, limit);
    RESULT_AUTO r = {0};
    as_status st = tx_query(t, &stmts[HANDOUT_QUEUE], &args, &r, err);
    if (st != AS_OK)
        return st;
    struct queued_trial *rows = arena_alloc(a, (size_t)r.rows + 1, sizeof *rows);
    if (!rows)
        return as_fail(err, AS_E_NOMEM, "out of memory");
    for (int i = 0; i < r.rows && st == AS_OK; i++) {
        struct reader rd;
        reader_init(&rd, &r, i, a);
        rows[i].number = read_i64(&rd);
        rows[i].attempt = read_i64(&rd);
        rows[i].shape = read_str(&rd);
        rows[i].bytes_per_member = read_i64(&rd);
        rows[i].may_share = read_bool(&rd);
        st = reader_check(&rd, err);
    }
    *ret = rows;
    *ret_n = (size_t)r.rows;
    return st;
}

/* The arguments of HELD_AND_TOLD, with places for n events. */
static as_status args_assignment(struct args *a, struct tx *t, const struct sweep_head *s,
                                 const struct owner *h, size_t n, struct as_err *err)
{
    if (t->events + (int64_t)n >= TX_EVENTS_MAX)
        return as_fail(err, AS_E_INTERNAL, "too many events in one transaction");
    args_i64(a, s->key);
    args_str(a, s->id);
    args_str(a, h->runner);
    args_i64_or_null(a, h->runner != NULL, h->epoch);
    args_str(a, h->client);
    args_str(a, h->claim_id);
    args_i64(a, t->events);
    t->events += (int64_t)n;
    return AS_OK;
}

static as_status run_for(struct tx *t, int which, const struct args *a, size_t n,
                         struct as_err *err)
{
    RESULT_AUTO r = {0};
    as_status st = tx_query(t, &stmts[which], a, &r, err);
    if (st != AS_OK)
        return st;
    struct reader rd;
    reader_init(&rd, &r, 0, NULL);
    int64_t done = read_i64(&rd);
    if (done != (int64_t)n)
        return as_fail(err, AS_E_CONFLICT, "%lld of %zu trials could begin", (long long)done, n);
    return AS_OK;
}

struct columns {
    struct str c[10];
};

static void columns_open(struct columns *x)
{
    for (size_t i = 0; i < AS_ARRAY_LEN(x->c); i++)
        array_open(&x->c[i]);
}

static void columns_done(struct columns *x)
{
    for (size_t i = 0; i < AS_ARRAY_LEN(x->c); i++)
        str_done(&x->c[i]);
}

/* The first k columns become the next arguments. */
static as_status args_columns(struct args *a, struct columns *x, size_t k, struct as_err *err)
{
    for (size_t i = 0; i < k; i++) {
        array_close(&x->c[i]);
        as_status st = str_check(&x->c[i], err);
        if (st != AS_OK)
            return st;
        args_str(a, str_cstr(&x->c[i]));
    }
    return AS_OK;
}

static const char *or_empty(const char *s)
{
    return s ? s : "";
}

as_status store_assignment_begin(struct tx *t, const struct sweep_head *s,
                                 const struct owner *holder, const struct begun_trial *rows,
                                 size_t n, struct as_err *err)
{
    AS_AUTO(columns_done) struct columns x = {0};
    struct args a = {0};
    columns_open(&x);
    for (size_t i = 0; i < n; i++) {
        array_i64(&x.c[0], rows[i].number);
        array_str(&x.c[1], or_empty(rows[i].group));
    }
    as_status st = args_assignment(&a, t, s, holder, n, err);
    if (st == AS_OK)
        st = args_columns(&a, &x, 2, err);
    return st == AS_OK ? run_for(t, HANDOUT_BEGIN, &a, n, err) : st;
}

as_status store_assignment_add(struct tx *t, const struct sweep_head *s, const struct owner *holder,
                               const struct made_trial *rows, size_t n, struct as_err *err)
{
    AS_AUTO(columns_done) struct columns x = {0};
    struct args a = {0};
    columns_open(&x);
    for (size_t i = 0; i < n; i++) {
        const struct made_trial *m = &rows[i];
        array_i64(&x.c[0], m->number);
        array_str(&x.c[1], m->params);
        array_str(&x.c[2], m->suggestion);
        array_i64(&x.c[3], m->seed);
        array_i64(&x.c[4], m->index);
        array_i64(&x.c[5], m->seen);
        array_str(&x.c[6], or_empty(m->shape));
        array_i64(&x.c[7], m->bytes_per_member);
        array_str(&x.c[8], or_empty(m->group));
        array_str(&x.c[9], m->runs ? "t" : "f");
    }
    as_status st = args_assignment(&a, t, s, holder, n, err);
    if (st == AS_OK)
        st = args_columns(&a, &x, AS_ARRAY_LEN(x.c), err);
    return st == AS_OK ? run_for(t, HANDOUT_ADD, &a, n, err) : st;
}

as_status store_assignment_group(struct tx *t, struct arena *a, const char *group,
                                 const char *runner, struct group_head *ret, struct as_err *err)
{
    struct args args = {0};
    args_str(&args, group);
    args_str(&args, runner);
    RESULT_AUTO r = {0};
    as_status st = tx_query(t, &stmts[HANDOUT_GROUP], &args, &r, err);
    *ret = (struct group_head){0};
    if (st != AS_OK || r.rows == 0)
        return st;
    struct reader rd;
    reader_init(&rd, &r, 0, a);
    ret->sweep_key = read_i64(&rd);
    ret->shape = read_str(&rd);
    ret->bytes_per_member = read_i64(&rd);
    ret->running = read_i64(&rd);
    return reader_check(&rd, err);
}
