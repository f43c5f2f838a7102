/* The trials that a runner holds, compared with the attempts that it lists. */
#include "scheduler/store/trial_held_store.h"

#include "scheduler/store/pg_priv.h"
#include "scheduler/store/refs_priv.h"
#include "scheduler/store/sets_priv.h"
#include "scheduler/store/trial_store_priv.h"

enum { TRIAL_HELD, TRIAL_RESUME, TRIAL_NOT_CURRENT, TRIAL_MISSING };

/* Does the runner $1 hold the listed attempt? */
#define IS_HELD "coalesce(t.attempt = l.attempt and t.state = 'running' and t.runner = $1, false)"

static const struct stmt stmts[] = {
    [TRIAL_HELD] = {"trial_held", "select " TRIAL_HEAD_COLUMNS
                                  " from trial t join sweep_base s on s.key = t.sweep_key where "
                                  "t.runner = $1 and t.state = 'running' and not exists "
                                  "(select from " LISTED
                                  " where l.id = s.id and l.number = t.number and l.attempt = "
                                  "t.attempt) order by "
                                  "t.sweep_key, t.number"},
    [TRIAL_RESUME] = {"trial_resume",
                      "update trial t set epoch = $5, missing = 0 from " LISTED ", sweep s where "
                      "s.id = l.id and t.sweep_key = s.key and t.number = l.number and t.attempt = "
                      "l.attempt and t.runner = $1 and t.state = 'running'"},
    [TRIAL_NOT_CURRENT] =
        {"trial_not_current",
         "select l.place - 1, t.state, t.attempt, t.attempt = l.attempt, " IS_HELD
         ", t.decision, t.reason from "
         "unnest($2::text[], $3::int[], $4::int[]) with ordinality as l(id, "
         "number, attempt, place) left join sweep_base s on s.id = l.id left join "
         "trial t on t.sweep_key = s.key and t.number = l.number where not " IS_HELD
         " or t.decision is not null order by l.place"},
    /* A statement that updated every running trial would write a row for each trial and
     * heartbeat. So only trials that are missing, or were missing in the heartbeat before, are
     * updated. The CTE is materialized so that the list is compared once. */
    [TRIAL_MISSING] =
        {"trial_missing",
         "with held as materialized (select t.sweep_key, t.number, exists (select "
         "from " LISTED " where l.id = s.id and l.number = t.number and l.attempt = "
         "t.attempt) as listed from trial t join sweep_base s on s.key = t.sweep_key where "
         "t.runner = $1 and t.state = 'running') update trial t set missing = case "
         "when h.listed then 0 else t.missing + 1 end from held h where t.sweep_key = "
         "h.sweep_key and t.number = h.number and t.runner = $1 and t.state = "
         "'running' and (not h.listed or t.missing > 0) returning " TRIAL_HEAD_COLUMNS
         ", t.missing >= 2 and t.claimed_at < now() - $5 * interval '1 ms'"},
};
const struct stmt_set trial_held_stmts = {"trial_held", stmts, AS_ARRAY_LEN(stmts)};

as_status store_trial_held(struct tx *t, struct arena *a, const char *runner,
                           const struct attempt_ref *but, size_t n, struct trial_list_heads *ret,
                           struct as_err *err)
{
    AS_AUTO(refs_done) struct refs c = {0};
    as_status st = refs_format(&c, but, n, err);
    if (st != AS_OK)
        return st;
    RESULT_AUTO r = {0};
    st = tx_query(t, &stmts[TRIAL_HELD], ARGS(arg_str(runner), ARG_REFS(&c)), &r, err);
    return st == AS_OK ? trial_heads_read(&r, a, ret, err) : st;
}

as_status store_trial_resume(struct tx *t, const char *runner, int64_t epoch,
                             const struct attempt_ref *refs, size_t n, struct as_err *err)
{
    AS_AUTO(refs_done) struct refs c = {0};
    as_status st = refs_format(&c, refs, n, err);
    if (st != AS_OK)
        return st;
    return tx_exec(t, &stmts[TRIAL_RESUME], ARGS(arg_str(runner), ARG_REFS(&c), arg_i64(epoch)),
                   NULL, err);
}

static as_status read_directive(struct reader *rd, struct arena *a, const struct attempt_ref *refs,
                                struct directive_row *ret, struct as_err *err)
{
    ret->ref = refs[read_i64(rd)];
    bool exists = !read_null(rd);
    const char *state = read_view(rd);
    int64_t attempt = read_i64(rd);
    bool same = read_bool(rd), is_held = read_bool(rd);
    trial_decision decision;
    column_decision(rd, &decision);
    if (is_held) {
        ret->action = decision == DECIDED_PRUNE ? DIRECTIVE_PRUNE : DIRECTIVE_PAUSE;
        ret->reason = read_str(rd);
        return reader_check(rd, err);
    }
    if (!exists)
        ret->reason = "there is no such trial";
    else if (!same)
        ret->reason = arena_printf(a, "attempt %lld is the current one", (long long)attempt);
    else if (as_streq(state, "running"))
        ret->reason = "it runs on another runner";
    else
        ret->reason = arena_printf(a, "the trial is %s", state);
    return ret->reason ? AS_OK : as_fail_nomem(err);
}

as_status store_trial_not_current(struct tx *t, struct arena *a, const char *runner,
                                  const struct attempt_ref *refs, size_t n,
                                  struct directive_list *ret, struct as_err *err)
{
    AS_AUTO(refs_done) struct refs c = {0};
    as_status st = refs_format(&c, refs, n, err);
    if (st != AS_OK)
        return st;
    RESULT_AUTO r = {0};
    st = tx_query(t, &stmts[TRIAL_NOT_CURRENT], ARGS(arg_str(runner), ARG_REFS(&c)), &r, err);
    if (st != AS_OK)
        return st;
    struct directive_row *rows = arena_alloc(a, (size_t)r.rows + 1, sizeof *rows);
    if (!rows)
        return as_fail_nomem(err);
    for (int i = 0; i < r.rows; i++) {
        struct reader rd;
        reader_init(&rd, &r, i, a);
        if ((st = read_directive(&rd, a, refs, &rows[i], err)) != AS_OK)
            return st;
    }
    *ret = (struct directive_list){rows, (size_t)r.rows};
    return AS_OK;
}

/* The last column says which of the rows are returned. */
static as_status read_missing(const struct result *r, struct arena *a, struct trial_list_heads *ret,
                              struct as_err *err)
{
    struct trial_head *rows = arena_alloc(a, (size_t)r->rows + 1, sizeof *rows);
    if (!rows)
        return as_fail_nomem(err);
    size_t n = 0;
    for (int i = 0; i < r->rows; i++) {
        struct reader rd;
        reader_init(&rd, r, i, a);
        read_trial_head(&rd, &rows[n]);
        as_status st = reader_check(&rd, err);
        if (st != AS_OK)
            return st;
        if (read_bool(&rd))
            n++;
    }
    *ret = (struct trial_list_heads){rows, n};
    return AS_OK;
}

as_status store_trial_missing(struct tx *t, struct arena *a, const char *runner,
                              const struct attempt_ref *listed, size_t n, int64_t lease_ms,
                              struct trial_list_heads *ret, struct as_err *err)
{
    AS_AUTO(refs_done) struct refs c = {0};
    as_status st = refs_format(&c, listed, n, err);
    if (st != AS_OK)
        return st;
    RESULT_AUTO r = {0};
    st = tx_query(t, &stmts[TRIAL_MISSING], ARGS(arg_str(runner), ARG_REFS(&c), arg_i64(lease_ms)),
                  &r, err);
    return st == AS_OK ? read_missing(&r, a, ret, err) : st;
}
