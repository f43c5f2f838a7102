/* Statements that begin trials: read the queue, begin queued trials, insert suggestions.
 *
 * A claim may begin many trials of a sweep at once. One statement writes the rows of the trials,
 * their attempts and their events, so that a claim costs the same number of round trips for any
 * number of trials. The trials arrive as one array for each column.
 *
 * The queue is read without locks: a transaction that changes the state of a trial holds the
 * sweep's row, and so does the caller. A statement that begins fewer trials than it was given is a
 * conflict. */
#include "scheduler/store/assignment_store.h"

#include "scheduler/store/sql_columns_priv.h"
#include "scheduler/store/pg_priv.h"
#include "scheduler/store/sets_priv.h"

enum { ASSIGNMENT_QUEUE, ASSIGNMENT_BEGIN, ASSIGNMENT_ADD, ASSIGNMENT_GROUP };

/* The owner is no runner and no client. */
#define IS_GANG "($3::text is null and $5::text is null)"

/* The statement's end, after the rows of `begun` (number, state, attempt, group_id): insert
 * attempts for the running ones, and an event for each row. $1 the sweep's key, $2 its id, $3 to $6
 * the owner, $7 the first place among the transaction's events, $8 and $9 what the owner must
 * show. */
#define ATTEMPTS_AND_EVENTS                                                                        \
    ", attempts as (insert into attempt (sweep_key, number, attempt, runner, epoch, claim_id, "    \
    "client, group_id, secret, token, gang, walls) select $1, number, attempt, $3, $4, $6, $5, "   \
    "group_id, $8, "                                                                               \
    "$9, " IS_GANG ", (select walls from runner where name = $3)"                                  \
    " from begun where state = 'running'), events as (insert into event (id, type, sweep_key, "    \
    "sweep, number, "                                                                              \
    "state, "                                                                                      \
    "attempt, runner) select (pg_current_xact_id()::text::bigint << 20) + $7 + row_number() over " \
    "(order by number) - 1, 'trial.changed', $1, $2, number, state, nullif(attempt, 0), case "     \
    "when state = 'running' then $3 end from begun) select count(*) from begun"

#define QUEUED_FIELDS(FIRST, NEXT)                                                                 \
    FIRST(i64, number, "t.number")                                                                 \
    NEXT(i64, attempt, "t.attempt")                                                                \
    NEXT(text, shape, "t.shape")                                                                   \
    NEXT(i64, bytes_per_member, "t.bytes_per_member")                                              \
    NEXT(bool, may_share, "t.attempt = 0 or coalesce(x.outcome in ('released', 'paused'), false)") \
    NEXT(bool, is_ahead, "t.attempt = 0 and t.origin = 'suggested'")
COLUMNS_WHOLE_ROW(struct queued_trial, QUEUED_FIELDS)
COLUMNS_READER(queued, struct queued_trial, QUEUED_FIELDS)
#define QUEUED_COLUMNS COLUMNS_SQL(QUEUED_FIELDS)

#define GROUP_FIELDS(FIRST, NEXT)                                                                  \
    FIRST(i64, sweep_key, "t.sweep_key")                                                           \
    NEXT(text, shape, "t.shape")                                                                   \
    NEXT(i64, bytes_per_member, "t.bytes_per_member")                                              \
    NEXT(i64, running,                                                                             \
         "(select count(*) from trial r where r.group_id = $1 and r.runner = $2 and r.state = "    \
         "'running')")
COLUMNS_WHOLE_ROW(struct group_head, GROUP_FIELDS)
COLUMNS_READER(group, struct group_head, GROUP_FIELDS)
#define GROUP_COLUMNS COLUMNS_SQL(GROUP_FIELDS)

static const struct stmt stmts[] = {
    [ASSIGNMENT_QUEUE] =
        {"assignment_queue",
         "select " QUEUED_COLUMNS " from trial t left join attempt x on x.sweep_key = "
         "t.sweep_key and x.number = t.number and x.attempt = t.attempt where t.sweep_key = $1 and "
         "t.state = 'queued' order by t.number limit $2"},
    /* The WHERE repeats that the trial is queued; run_for() compares the count with the list. */
    [ASSIGNMENT_BEGIN] =
        {"assignment_begin",
         "with l as (select * from unnest($10::int[], $11::text[]) as l(number, group_id)), begun "
         "as "
         "(update trial t set " SQL_OWN_VALUES
         "state = 'running', attempt = t.attempt + 1, decision = null, runner = $3, epoch = $4, "
         "client = $5, gang = " IS_GANG ", group_id = nullif(l.group_id, ''), claimed_at = now(), "
         "begun = nextval('trial_begun'), started_at = "
         "coalesce(t.started_at, now()), missing = 0, reason = null from l where t.sweep_key = $1 "
         "and " SQL_JOINED_NEXT(
             "t.number",
             "l.number") " and t.state = 'queued' returning t.number, t.state, t.attempt, "
                         "t.group_id)" ATTEMPTS_AND_EVENTS},
    [ASSIGNMENT_ADD] =
        {"assignment_add",
         "with l as (select * from unnest($10::int[], $11::text[], $12::text[], $13::bigint[], "
         "$14::int[], $15::bigint[], $16::text[], $17::bigint[], $18::text[], $19::bool[]) as "
         "l(number, params, suggestion, seed, place, seen, shape, bytes, group_id, runs)), begun "
         "as (insert into trial (sweep_key, number, state, attempt, params, suggestion, seed, "
         "origin, suggestion_index, seen, shape, bytes_per_member, group_id, runner, epoch, "
         "client, gang, claimed_at, started_at) select $1, number, case when runs then 'running' "
         "else "
         "'queued' end, runs::int, params::json, suggestion::json, seed, 'suggested', place, "
         "nullif(seen, -1), nullif(shape, ''), nullif(bytes, 0), nullif(group_id, ''), case when "
         "runs then $3 end, case when runs then $4::bigint end, case when runs then $5 end, runs "
         "and " IS_GANG ", case "
         "when runs then now() end, case when runs then now() end from l order by number "
         "returning number, state, attempt, group_id)" ATTEMPTS_AND_EVENTS},
    [ASSIGNMENT_GROUP] = {"assignment_group",
                          "select " GROUP_COLUMNS " from trial t where t.group_id "
                          "= $1 and t.runner = $2 limit 1"},
};
const struct stmt_set assignment_stmts = {"assignment", stmts, AS_ARRAY_LEN(stmts)};

as_status store_assignment_queue(struct tx *t, struct arena *a, int64_t sweep_key, int64_t limit,
                                 struct queued_trial **ret, size_t *ret_n, struct as_err *err)
{
    RESULT_AUTO r = {0};
    as_status st =
        tx_query(t, &stmts[ASSIGNMENT_QUEUE], ARGS(arg_i64(sweep_key), arg_i64(limit)), &r, err);
    if (st != AS_OK)
        return st;
    if ((st = read_queued_rows(&r, r.rows, a, ret, err)) != AS_OK)
        return st;
    *ret_n = (size_t)r.rows;
    return AS_OK;
}

/* Reserve places for n events in this transaction; *ret_first is the first. */
static as_status reserve_events(struct tx *t, size_t n, int64_t *ret_first, struct as_err *err)
{
    if (t->events + (int64_t)n >= TX_EVENTS_MAX)
        return as_fail(err, AS_E_INTERNAL, "too many events in one transaction");
    *ret_first = t->events;
    t->events += (int64_t)n;
    return AS_OK;
}

/* The arguments $1 to $9 of ATTEMPTS_AND_EVENTS. */
#define ARG_ATTEMPTS_AND_EVENTS(s, owner, first_event)                                             \
    arg_i64((s)->key), arg_str((s)->id), arg_str((owner)->runner),                                 \
        arg_i64_or_null((owner)->runner != NULL, (owner)->epoch), arg_str((owner)->client),        \
        arg_str((owner)->claim_id), arg_i64(first_event), arg_str((owner)->secret),                \
        arg_str((owner)->token)

static as_status run_for(struct tx *t, int which, const struct args *a, size_t n,
                         struct as_err *err)
{
    RESULT_AUTO r = {0};
    as_status st = tx_query(t, &stmts[which], a, &r, err);
    if (st != AS_OK)
        return st;
    int64_t done = result_i64(&r, 0, 0);
    if (done != (int64_t)n)
        return as_fail(err, AS_E_CONFLICT, "%lld of %zu trials could begin", (long long)done, n);
    return AS_OK;
}

static const char *or_empty(const char *s)
{
    return s ? s : "";
}

as_status store_assignment_begin(struct tx *t, const struct sweep_head *s,
                                 const struct owner *owner, const struct begun_trial *rows,
                                 size_t n, struct as_err *err)
{
    ARRAYS_AUTO x = {0};
    int64_t first = 0;
    arrays_open(&x);
    for (size_t i = 0; i < n; i++) {
        array_i64(&x.c[0], rows[i].number);
        array_str(&x.c[1], or_empty(rows[i].group));
    }
    as_status st = reserve_events(t, n, &first, err);
    if (st != AS_OK)
        return st;
    if ((st = arrays_close(&x, err)) != AS_OK)
        return st;
    return run_for(
        t, ASSIGNMENT_BEGIN,
        ARGS(ARG_ATTEMPTS_AND_EVENTS(s, owner, first), arg_array(&x, 0), arg_array(&x, 1)), n, err);
}

as_status store_assignment_add(struct tx *t, const struct sweep_head *s, const struct owner *owner,
                               const struct made_trial *rows, size_t n, struct as_err *err)
{
    ARRAYS_AUTO x = {0};
    int64_t first = 0;
    arrays_open(&x);
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
    as_status st = reserve_events(t, n, &first, err);
    if (st != AS_OK)
        return st;
    if ((st = arrays_close(&x, err)) != AS_OK)
        return st;
    return run_for(t, ASSIGNMENT_ADD,
                   ARGS(ARG_ATTEMPTS_AND_EVENTS(s, owner, first), arg_array(&x, 0),
                        arg_array(&x, 1), arg_array(&x, 2), arg_array(&x, 3), arg_array(&x, 4),
                        arg_array(&x, 5), arg_array(&x, 6), arg_array(&x, 7), arg_array(&x, 8),
                        arg_array(&x, 9)),
                   n, err);
}

as_status store_assignment_group(struct tx *t, struct arena *a, const char *group,
                                 const char *runner, struct group_head *ret, struct as_err *err)
{
    RESULT_AUTO r = {0};
    as_status st =
        tx_query(t, &stmts[ASSIGNMENT_GROUP], ARGS(arg_str(group), arg_str(runner)), &r, err);
    *ret = (struct group_head){0};
    if (st != AS_OK || r.rows == 0)
        return st;
    return read_group_row(&r, 0, a, ret, err);
}
