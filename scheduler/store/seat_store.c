/* The seats that a runner holds: what it says about them, and which ones it gets.
 *
 * A heartbeat writes the row of a rank only when something about it has changed. Statements over a
 * list of seats get it as one array for each column. */
#include "scheduler/store/seat_store.h"

#include "scheduler/store/sql_columns_priv.h"
#include "scheduler/store/gang_sql_priv.h"
#include "scheduler/store/sets_priv.h"

enum {
    SEAT_BEAT,
    SEAT_BEAT_STEP,
    SEAT_MISSING,
    SEAT_NOT_CURRENT,
    SEAT_RESUME,
    SEAT_ORPHANS,
    SEAT_HOLDS,
    SEAT_DELIVER,
    SEAT_OFFERS,
    SEAT_ADD
};

/* The seats that a runner lists: $2 to $5. */
#define SEATS_LISTED                                                                               \
    "unnest($2::text[], $3::int[], $4::int[], $5::int[]) as l(id, number, attempt, seat)"
#define IS_LISTED(q)                                                                               \
    "s.id = l.id and " q ".sweep_key = s.key and " q ".number = l.number and " q                   \
    ".attempt = l.attempt and " q ".seat = l.seat"

#define HELD_FIELDS(FIRST, NEXT)                                                                   \
    FIRST(i64, key.sweep_key, "q.sweep_key")                                                       \
    NEXT(i64, key.number, "q.number")                                                              \
    NEXT(i64, key.attempt, "q.attempt")                                                            \
    NEXT(i64, seat, "q.seat")                                                                      \
    NEXT(bool, has_left, "coalesce(r.state = 'left', true)")                                       \
    NEXT(bool, is_due, "true")                                                                     \
    NEXT(text, runner, "q.runner")
COLUMNS_READER(held, struct held_seat, HELD_FIELDS)
#define HELD_COLUMNS COLUMNS_SQL(HELD_FIELDS)

#define OFFER_FIELDS(FIRST, NEXT)                                                                  \
    FIRST(i64, key.sweep_key, "g.sweep_key")                                                       \
    NEXT(i64, key.number, "g.number")                                                              \
    NEXT(i64, key.attempt, "g.attempt")                                                            \
    NEXT(i64, vacant, "g.ranks - live.n")                                                          \
    NEXT(i64, gpus, "s.gpus")
COLUMNS_READER(offer, struct gang_offer, OFFER_FIELDS)
#define OFFER_COLUMNS COLUMNS_SQL(OFFER_FIELDS)

static const struct stmt stmts[] = {
    [SEAT_BEAT] =
        {"seat_beat",
         "update gang_seat q set missing = 0, phase = case when l.phase = '' then q.phase else "
         "l.phase end, ran_ms = case when l.phase in ('', 'preparing') then q.ran_ms else l.ran_ms "
         "end, step = case when l.step < 0 then q.step else greatest(coalesce(q.step, 0), l.step) "
         "end, sent_bytes = greatest(q.sent_bytes, l.sent) from unnest($2::text[], $3::int[], "
         "$4::int[], $5::int[], $6::text[], $7::bigint[], $8::bigint[], $9::bigint[]) as l(id, "
         "number, attempt, seat, phase, ran_ms, step, sent) join sweep_base s on s.id = l.id where "
         "" IS_LISTED("q") " and q.runner = $1 and q.state " LIVE " and (q.missing > 0 or l.step > "
                           "coalesce(q.step, -1) or l.sent > q.sent_bytes or (l.phase <> '' and "
                           "l.phase is distinct "
                           "from q.phase))"},
    /* First the gang, then its seats, as everybody who changes a world. */
    [SEAT_BEAT_STEP] =
        {"seat_beat_step",
         "update gang g set step = m.step, idle_deaths = 0, progressed_at = "
         "clock_timestamp() from (select q.sweep_key, q.number, q.attempt, "
         "max(l.step) as step from unnest($2::text[], $3::int[], $4::int[], "
         "$5::int[], $6::bigint[]) as l(id, number, attempt, seat, step) join sweep_base "
         "s on s.id = l.id join gang_seat q on " IS_LISTED(
             "q") " where q.runner = "
                  "$1 and q.state " LIVE " group by 1, 2, 3) m where " SAME(
                      "m", "g") " and m.step > coalesce(g.step, -1) and g.state <> 'over'"},
    [SEAT_MISSING] =
        {"seat_missing",
         "update gang_seat q set missing = q.missing + 1 where q.runner = $1 and "
         "q.state " LIVE " and not exists (select from " SEATS_LISTED
         " join sweep_base s on s.id = l.id where " IS_LISTED(
             "q") ") returning q.sweep_key, q.number, q.attempt, q.seat, false, q.missing >= 2 "
                  "and q.seated_at < clock_timestamp() - $6 * interval '1 ms', q.runner"},
    /* In an elastic gang early stopping tells the rank that leads. */
    [SEAT_NOT_CURRENT] =
        {"seat_not_current",
         "select l.place - 1, h.is_held, t.decision = 'prune', q.state, q.runner = $1, "
         "coalesce(q.reason, t.reason), t.state from unnest($2::text[], $3::int[], $4::int[], "
         "$5::int[]) with ordinality as l(id, number, attempt, seat, place) left join sweep_base s "
         "on s.id = l.id left join gang_seat q on " IS_LISTED(
             "q") " left join trial t on t.sweep_key = s.key and t.number = l.number cross join "
                  "lateral (select coalesce(q.state " LIVE " and q.runner = $1 and q.epoch = "
                  "(select epoch from runner where name = $1), false) as is_held) h where not "
                  "h.is_held or (t.decision is not null and t.attempt = l.attempt and t.state = "
                  "'running' and (not s.elastic or q.seat = (select min(m.seat) from gang_seat m "
                  "where " SAME("m", "q") " and m.is_member))) order by l.place"},
    [SEAT_RESUME] = {"seat_resume",
                     "update gang_seat q set epoch = $6, missing = 0 from " SEATS_LISTED
                     " join sweep_base s on s.id = l.id where " IS_LISTED(
                         "q") " and q.runner = $1 and q.state " LIVE},
    [SEAT_ORPHANS] = {"seat_orphans",
                      "select " HELD_COLUMNS " from gang_seat q left join runner r on r.name = "
                      "q.runner where q.state " LIVE " and ($1::text is null or q.runner = $1) and "
                      "coalesce(r.state <> 'live' or r.epoch <> q.epoch, true) order by 1, 2, 3, 4 "
                      "limit 1000"},
    [SEAT_HOLDS] = {"seat_holds",
                    "select count(distinct (q.sweep_key, q.number, q.attempt, q.seat)) from "
                    "gang_seat q, " SEATS_LISTED " join sweep_base s on s.id = l.id where "
                    "" IS_LISTED("q") " and q.runner = $1 and q.state " LIVE},
    [SEAT_DELIVER] =
        {"seat_deliver",
         "update gang_seat q set claim_id = $3, missing = 0, seated_at = "
         "clock_timestamp() from (select sweep_key, number, attempt, seat from "
         "gang_seat where runner = $1 and epoch = $2 and state = 'seated' and claim_id "
         "is null order by sweep_key, number, seat limit $4 for no key update) l where "
         "" SAME("q", "l") " and q.seat = l.seat"},
    /* A runner that lost ranks of a gang, without a step since, gets none for a while
     * (gang_pause_ms). */
    [SEAT_OFFERS] =
        {"seat_offers",
         "select " OFFER_COLUMNS " from gang g join sweep_base s on s.key = g.sweep_key cross join "
         "lateral (select count(*) as n from gang_seat q where " SAME(
             "q", "g") " and q.state " LIVE ") live cross join lateral (select count(*) as n, "
                       "max(q.ended_at) as last from gang_seat q "
                       "where " SAME(
                           "q", "g") " and q.runner = $1 and q.state = 'lost' and q.ended_at >= "
                                     "g.progressed_at) lost where g.state <> 'over' and g.elastic "
                                     "and not g.is_ending and "
                                     "live.n < g.ranks and s.gpus <= $2 and (lost.n = 0 or "
                                     "lost.last < clock_timestamp() - "
                                     "least(60, 2 ^ lost.n) * interval '1 s') order by g.state <> "
                                     "'waiting', g.begun_at, g.id "
                                     "limit 16"},
    [SEAT_ADD] =
        {"seat_add",
         "with g as (update gang set next_seat = next_seat + $7::int where " THIS
         " returning next_seat) insert into gang_seat (sweep_key, number, attempt, seat, runner, "
         "epoch, host, secret, claim_id) select $1, $2, $3, g.next_seat - $7::int + i, r.name, "
         "r.epoch, r.host, r.secret, $6 from g, generate_series(0, $7::int - 1) i, runner r where "
         "r.name = $4 and r.epoch = $5"},
};
const struct stmt_set seat_stmts = {"seat", stmts, AS_ARRAY_LEN(stmts)};

/* ---- what runners hold ---- */

static void list_seat(struct arrays *x, const struct seat_ref *ref)
{
    array_str(&x->c[0], ref->attempt.sweep);
    array_i64(&x->c[1], ref->attempt.number);
    array_i64(&x->c[2], ref->attempt.attempt);
    array_i64(&x->c[3], ref->seat);
}

#define ARG_SEATS(x) arg_array(x, 0), arg_array(x, 1), arg_array(x, 2), arg_array(x, 3)

static as_status list_said(struct arrays *x, const struct seat_said *said, size_t n,
                           struct as_err *err)
{
    arrays_open(x);
    for (size_t i = 0; i < n; i++) {
        list_seat(x, &said[i].ref);
        array_str(&x->c[4], said[i].has_phase ? run_phase_words[said[i].phase] : "");
        array_i64(&x->c[5], said[i].ran_ms);
        array_i64(&x->c[6], said[i].has_step ? said[i].step : -1);
        array_i64(&x->c[7], said[i].has_sent ? said[i].sent_bytes : -1);
    }
    return arrays_close(x, err);
}

as_status store_seat_beat(struct tx *t, const char *runner, const struct seat_said *said, size_t n,
                          struct as_err *err)
{
    ARRAYS_AUTO x = {0};
    if (n == 0)
        return AS_OK;
    as_status st = list_said(&x, said, n, err);
    if (st != AS_OK)
        return st;
    st = tx_exec(t, &stmts[SEAT_BEAT_STEP], ARGS(arg_str(runner), ARG_SEATS(&x), arg_array(&x, 6)),
                 NULL, err);
    if (st != AS_OK)
        return st;
    return tx_exec(t, &stmts[SEAT_BEAT],
                   ARGS(arg_str(runner), ARG_SEATS(&x), arg_array(&x, 4), arg_array(&x, 5),
                        arg_array(&x, 6), arg_array(&x, 7)),
                   NULL, err);
}

static as_status read_held_list(const struct result *r, struct arena *a, struct held_seat_list *ret,
                                struct as_err *err)
{
    ret->n = (size_t)r->rows;
    return read_held_rows(r, r->rows, a, &ret->rows, err);
}

as_status store_seat_missing(struct tx *t, struct arena *a, const char *runner,
                             const struct seat_said *listed, size_t n, int64_t lease_ms,
                             struct held_seat_list *ret, struct as_err *err)
{
    ARRAYS_AUTO x = {0};
    RESULT_AUTO r = {0};
    as_status st = list_said(&x, listed, n, err);
    if (st != AS_OK)
        return st;
    st = tx_query(t, &stmts[SEAT_MISSING], ARGS(arg_str(runner), ARG_SEATS(&x), arg_i64(lease_ms)),
                  &r, err);
    return st == AS_OK ? read_held_list(&r, a, ret, err) : st;
}

/* Why a rank must stop. */
static const char *stop_reason(struct reader *rd, struct arena *a, const char *state)
{
    bool is_mine = read_bool(rd);
    const char *reason = read_str(rd), *trial = read_view(rd);
    if (!*state)
        return "the gang has no such rank";
    if (!is_mine)
        return "another runner has this rank";
    if (reason)
        return reason;
    return arena_printf(a, "the rank is %s, and the trial is %s", state, trial);
}

as_status store_seat_not_current(struct tx *t, struct arena *a, const char *runner,
                                 const struct seat_said *listed, size_t n,
                                 struct directive_list *ret, struct as_err *err)
{
    ARRAYS_AUTO x = {0};
    RESULT_AUTO r = {0};
    if (n == 0)
        return AS_OK;
    as_status st = list_said(&x, listed, n, err);
    if (st != AS_OK)
        return st;
    st = tx_query(t, &stmts[SEAT_NOT_CURRENT], ARGS(arg_str(runner), ARG_SEATS(&x)), &r, err);
    if (st != AS_OK || r.rows == 0)
        return st;
    struct directive_row *rows = arena_alloc(a, ret->n + (size_t)r.rows, sizeof *rows);
    if (!rows)
        return as_fail_nomem(err);
    for (size_t i = 0; i < ret->n; i++)
        rows[i] = ret->rows[i];
    for (int i = 0; i < r.rows; i++) {
        struct reader rd;
        reader_init(&rd, &r, i, a);
        const struct seat_ref *ref = &listed[read_i64(&rd)].ref;
        bool is_held = read_bool(&rd), is_pruned = read_bool(&rd);
        const char *state = read_view(&rd);
        rows[ret->n + (size_t)i] = (struct directive_row){.ref = ref->attempt,
                                                          .is_rank = true,
                                                          .seat = ref->seat,
                                                          .reason = stop_reason(&rd, a, state),
                                                          .action = !is_held    ? DIRECTIVE_STOP
                                                                    : is_pruned ? DIRECTIVE_PRUNE
                                                                                : DIRECTIVE_PAUSE};
        if ((st = reader_check(&rd, err)) != AS_OK)
            return st;
    }
    ret->rows = rows;
    ret->n += (size_t)r.rows;
    return AS_OK;
}

as_status store_seat_resume(struct tx *t, const char *runner, int64_t epoch,
                            const struct seat_said *listed, size_t n, struct as_err *err)
{
    ARRAYS_AUTO x = {0};
    if (n == 0)
        return AS_OK;
    as_status st = list_said(&x, listed, n, err);
    if (st != AS_OK)
        return st;
    return tx_exec(t, &stmts[SEAT_RESUME], ARGS(arg_str(runner), ARG_SEATS(&x), arg_i64(epoch)),
                   NULL, err);
}

as_status store_seat_orphans(struct tx *t, struct arena *a, const char *runner,
                             struct held_seat_list *ret, struct as_err *err)
{
    RESULT_AUTO r = {0};
    as_status st = tx_query(t, &stmts[SEAT_ORPHANS], ARGS(arg_str(runner)), &r, err);
    return st == AS_OK ? read_held_list(&r, a, ret, err) : st;
}

as_status store_seat_holds(struct tx *t, const char *runner, const struct seat_ref *refs, size_t n,
                           int64_t *ret, struct as_err *err)
{
    ARRAYS_AUTO x = {0};
    RESULT_AUTO r = {0};
    *ret = 0;
    if (n == 0)
        return AS_OK;
    arrays_open(&x);
    for (size_t i = 0; i < n; i++)
        list_seat(&x, &refs[i]);
    as_status st = arrays_close(&x, err);
    if (st != AS_OK)
        return st;
    st = tx_query(t, &stmts[SEAT_HOLDS], ARGS(arg_str(runner), ARG_SEATS(&x)), &r, err);
    if (st == AS_OK)
        *ret = result_i64(&r, 0, 0);
    return st;
}

/* ---- claims ---- */

as_status store_seat_deliver(struct tx *t, const struct runner_id *id, const char *claim_id,
                             int64_t most, int64_t *ret_n, struct as_err *err)
{
    int n = 0;
    as_status st = tx_exec(
        t, &stmts[SEAT_DELIVER],
        ARGS(arg_str(id->name), arg_i64(id->epoch), arg_str(claim_id), arg_i64(most)), &n, err);
    if (st == AS_OK)
        *ret_n = n;
    return st;
}

as_status store_seat_offers(struct tx *t, struct arena *a, const char *runner, int64_t gpus,
                            struct gang_offer **ret, size_t *ret_n, struct as_err *err)
{
    RESULT_AUTO r = {0};
    as_status st = tx_query(t, &stmts[SEAT_OFFERS], ARGS(arg_str(runner), arg_i64(gpus)), &r, err);
    if (st != AS_OK)
        return st;
    *ret_n = (size_t)r.rows;
    return read_offer_rows(&r, r.rows, a, ret, err);
}

as_status store_seat_add(struct tx *t, const struct gang_key *key, const struct runner_id *id,
                         const char *claim_id, int64_t n, struct as_err *err)
{
    int done = 0;
    as_status st = tx_exec(
        t, &stmts[SEAT_ADD],
        ARGS(ARG_KEY(key), arg_str(id->name), arg_i64(id->epoch), arg_str(claim_id), arg_i64(n)),
        &done, err);
    if (st == AS_OK && done != n)
        return as_fail(err, AS_E_STALE,
                       "epoch %lld of runner '%.63s' is not current: register again",
                       (long long)id->epoch, id->name);
    return st;
}
