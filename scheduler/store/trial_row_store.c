/* What the API shows of trials: one, several, and pages of them.
 *
 * The lists by number have a statement for each direction, and one more for trials of a state. */
#include "scheduler/store/trial_row_store.h"

#include "scheduler/store/page_fill_priv.h"
#include "scheduler/store/pg_priv.h"
#include "scheduler/store/sets_priv.h"
#include "scheduler/store/sql_columns_priv.h"
#include "scheduler/store/sql_ran_priv.h"
#include "scheduler/store/sql_rungs_priv.h"
#include "scheduler/store/trial_store_priv.h"

enum {
    TRIAL_GET,
    TRIAL_GET_MANY,
    TRIAL_LIST_UP,
    TRIAL_LIST_DOWN,
    TRIAL_LIST_OPEN_UP,
    TRIAL_LIST_OPEN_DOWN,
    TRIAL_BEST_MIN,
    TRIAL_BEST_MAX,
    TRIAL_REASON,
};

static void column_origin(struct reader *rd, trial_origin *ret)
{
    *ret = (trial_origin)word_place(trial_origin_words, read_view(rd));
}

#define TRIAL_FIELDS(FIRST, NEXT)                                                                  \
    FIRST(text, sweep, "s.id")                                                                     \
    NEXT(i64, number, "t.number")                                                                  \
    NEXT(trial_state, state, "t.state")                                                            \
    NEXT(origin, origin, "t.origin")                                                               \
    NEXT(i64, attempt, "t.attempt")                                                                \
    NEXT(i64, restarts, "t.restarts")                                                              \
    NEXT(text, params, "t.params")                                                                 \
    NEXT(i64, seed, "t.seed")                                                                      \
    NEXT(bool, has_value, "t.value is not null")                                                   \
    NEXT(f64, value, "t.value")                                                                    \
    NEXT(bool, has_step, "t.step is not null")                                                     \
    NEXT(i64, step, "t.step")                                                                      \
    NEXT(text, metrics, "t.metrics")                                                               \
    NEXT(text, suggestion, "t.suggestion")                                                         \
    NEXT(bool, is_fork, "t.parent is not null")                                                    \
    NEXT(i64, parent, "t.parent")                                                                  \
    NEXT(i64, fork_step, "t.fork_step")                                                            \
    NEXT(bool, has_index, "t.suggestion_index is not null")                                        \
    NEXT(i64, index, "t.suggestion_index")                                                         \
    NEXT(bool, has_seen, "t.seen is not null")                                                     \
    NEXT(i64, seen, "t.seen")                                                                      \
    NEXT(i64, finish_seq, "t.finish_seq")                                                          \
    NEXT(text, retries, "t.retries")                                                               \
    NEXT(text, rungs, SQL_RUNGS("t"))                                                              \
    NEXT(bool, has_feasible, "t.feasible is not null")                                             \
    NEXT(bool, feasible, "t.feasible")                                                             \
    NEXT(bool, timed_out, "t.timed_out")                                                           \
    NEXT(text, shape, "t.shape")                                                                   \
    NEXT(text, group, "t.group_id")                                                                \
    NEXT(text, runner, "t.runner")                                                                 \
    NEXT(text, client, "t.client")                                                                 \
    NEXT(text, reason, "t.reason")                                                                 \
    NEXT(text, tags, "array_to_json(coalesce(t.tags, '{}'))")                                      \
    NEXT(i64, created_ms, SQL_MS("t.created_at"))                                                  \
    NEXT(i64, started_ms, SQL_MS("t.started_at"))                                                  \
    NEXT(i64, finished_ms, SQL_MS("t.finished_at"))                                                \
    NEXT(i64, ended_ran_ms, "coalesce(" SQL_RAN_MS("t") ", -1)")                                   \
    NEXT(i64, running_since_ms, "case when t.state = 'running' then " SQL_MS("t.claimed_at") " end")
COLUMNS_WHOLE_ROW(struct trial_row, TRIAL_FIELDS)
COLUMNS_READER(trial, struct trial_row, TRIAL_FIELDS)
#define TRIAL_COLUMNS COLUMNS_SQL(TRIAL_FIELDS)

#define TRIAL_FROM " from trial t join sweep_base s on s.key = t.sweep_key "

/* The trials of a list by number. Those of a state that is not the common one, completed, are found
 * by the index trial_open, which needs the second condition in the text of the statement. */
#define LIST_UP(in_state)                                                                          \
    "select " TRIAL_COLUMNS ", true, t.number" TRIAL_FROM "where t.sweep_key = $1 and " in_state   \
    " and ($5::text is null or t.group_id = $5) and t.number > $3 order by t.number limit $4"
#define LIST_DOWN(in_state)                                                                        \
    "select " TRIAL_COLUMNS ", true, t.number" TRIAL_FROM "where t.sweep_key = $1 and " in_state   \
    " and ($5::text is null or t.group_id = $5) and t.number < $3 order by t.number desc limit $4"

static const struct stmt stmts[] = {
    [TRIAL_GET] = {"trial_get",
                   "select " TRIAL_COLUMNS TRIAL_FROM "where t.sweep_key = $1 and t.number = $2"},
    [TRIAL_GET_MANY] = {"trial_get_many",
                        EACH_TRIAL("select " TRIAL_COLUMNS TRIAL_FROM
                                   "where t.sweep_key = u.key and t.number = u.number limit 1")},
    [TRIAL_LIST_UP] = {"trial_list_up", LIST_UP("($2::text is null or t.state = $2)")},
    [TRIAL_LIST_DOWN] = {"trial_list_down", LIST_DOWN("($2::text is null or t.state = $2)")},
    [TRIAL_LIST_OPEN_UP] = {"trial_list_open_up",
                            LIST_UP("t.state = $2 and t.state <> 'completed'")},
    [TRIAL_LIST_OPEN_DOWN] = {"trial_list_open_down",
                              LIST_DOWN("t.state = $2 and t.state <> 'completed'")},
    [TRIAL_BEST_MIN] = {"trial_best_min",
                        "select " TRIAL_COLUMNS ", true, t.value" TRIAL_FROM
                        "where t.sweep_key = $1 and t.result is not null and "
                        "(not $3::boolean or (t.result, t.number) > ($4::float8, $5::int)) "
                        "order by t.result, t.number limit $2"},
    [TRIAL_BEST_MAX] = {"trial_best_max",
                        "select " TRIAL_COLUMNS ", true, t.value" TRIAL_FROM
                        "where t.sweep_key = $1 and t.result is not null and "
                        "(not $3::boolean or t.result < $4::float8 or (t.result = $4::float8 and "
                        "t.number > $5::int)) order by t.result desc, t.number limit $2"},
    /* among the newest trials, so that a sweep without a model costs no more; where nothing was
     * learned, nobody has to read the reason */
    [TRIAL_REASON] = {"trial_reason",
                      "select case when n.suggestion->'no_effect' is not null then "
                      "n.suggestion end from (select number, origin, suggestion from trial "
                      "where sweep_key = $1 order by number desc limit $2) n where n.origin = "
                      "'suggested' and n.suggestion->>'phase' = 'model' and "
                      "n.suggestion->>'acquisition' <> 'spread' order by n.number desc limit 1"},
};
const struct stmt_set trial_row_stmts = {"trial_row", stmts, AS_ARRAY_LEN(stmts)};

as_status store_trial_get_many(struct tx *t, const struct trial_key *keys, size_t n,
                               struct arena *const *arenas, struct trial_row *ret,
                               struct as_err *err)
{
    ARRAYS_AUTO x = {0};
    RESULT_AUTO r = {0};
    as_status st = trial_keys_format(&x, keys, n, err);
    if (st == AS_OK)
        st = tx_query(t, &stmts[TRIAL_GET_MANY], ARGS(arg_array(&x, 0), arg_array(&x, 1)), &r, err);
    if (st == AS_OK && (size_t)r.rows != n)
        return as_fail(err, AS_E_NOT_FOUND, "%d of %zu trials are there", r.rows, n);
    for (int i = 0; i < r.rows && st == AS_OK; i++) {
        struct reader rd;
        size_t place = (size_t)result_i64(&r, i, 0);
        reader_init(&rd, &r, i, arenas[place]);
        rd.col = 1;
        read_trial(&rd, &ret[place]);
        st = reader_check(&rd, err);
    }
    return st;
}

as_status store_trial_get(struct tx *t, struct arena *a, int64_t sweep_key, int64_t number,
                          struct trial_row *ret, struct as_err *err)
{
    RESULT_AUTO r = {0};
    as_status st =
        tx_query(t, &stmts[TRIAL_GET], ARGS(arg_i64(sweep_key), arg_i64(number)), &r, err);
    if (st != AS_OK)
        return st;
    if (r.rows == 0)
        return as_fail(err, AS_E_NOT_FOUND, "the sweep has no trial %lld", (long long)number);
    return read_trial_row(&r, 0, a, ret, err);
}

/* The place of a trial, from the two columns after the trial's. */
static struct trial_place read_place(const struct result *r, int i, const struct trial_row *row)
{
    struct reader rd;
    reader_init(&rd, r, i, NULL);
    rd.col = COLUMNS_COUNT(TRIAL_FIELDS);
    struct trial_place p = {.set = true, .has_key = read_bool(&rd)};
    p.key = read_f64(&rd);
    p.number = row->number;
    return p;
}

/* Add the trials of `r` that belong to the page, and move *at behind the last of them. */
static as_status take_trials(struct page_fill *f, const struct result *r, int64_t ask,
                             struct arena *a, struct trial_page *page, struct trial_place *at,
                             struct as_err *err)
{
    int take = page_fill_take(f, r, ask);
    for (int i = 0; i < take; i++) {
        struct trial_row *row = &page->rows[page->n++];
        as_status st = read_trial_row(r, i, a, row, err);
        if (st != AS_OK)
            return st;
        *at = read_place(r, i, row);
    }
    return AS_OK;
}

static as_status query_list(struct tx *t, int64_t sweep_key, const struct trial_query *q,
                            const struct trial_place *after, int64_t limit, struct result *ret,
                            struct as_err *err)
{
    const char *state = q->state ? trial_state_format(*q->state) : NULL;
    int64_t number = after->set ? after->number : q->descending ? INT32_MAX : -1;
    bool is_open = q->state && *q->state != TRIAL_COMPLETED;
    int up = is_open ? TRIAL_LIST_OPEN_UP : TRIAL_LIST_UP;
    int down = is_open ? TRIAL_LIST_OPEN_DOWN : TRIAL_LIST_DOWN;
    return tx_query(t, &stmts[q->descending ? down : up],
                    ARGS(arg_i64(sweep_key), arg_str(state), arg_i64(number), arg_i64(limit),
                         arg_str(q->group)),
                    ret, err);
}

as_status store_trial_list(struct tx *t, struct arena *a, int64_t sweep_key,
                           const struct trial_query *q, const struct trial_place *after,
                           struct trial_page *ret, struct trial_place *ret_next, struct as_err *err)
{
    struct page_fill f = page_fill_start(q->page.size);
    struct trial_page page = {.rows = arena_alloc(a, (size_t)q->page.size, sizeof *page.rows)};
    struct trial_place at = *after;
    if (!page.rows)
        return as_fail_nomem(err);
    for (int64_t ask; (ask = page_fill_next(&f)) > 0;) {
        RESULT_AUTO r = {0};
        as_status st = query_list(t, sweep_key, q, &at, ask + 1, &r, err);
        if (st == AS_OK)
            st = take_trials(&f, &r, ask, a, &page, &at, err);
        if (st != AS_OK)
            return st;
    }
    at.set = f.has_more;
    *ret = page;
    *ret_next = at;
    return AS_OK;
}

as_status store_trial_best(struct tx *t, struct arena *a, int64_t sweep_key, bool maximize,
                           int64_t top, const struct trial_place *after, struct trial_page *ret,
                           struct trial_place *ret_next, struct as_err *err)
{
    struct page_fill f = page_fill_start(top);
    struct trial_page page = {.rows = arena_alloc(a, (size_t)top, sizeof *page.rows)};
    struct trial_place at = *after;
    if (!page.rows)
        return as_fail_nomem(err);
    for (int64_t ask; (ask = page_fill_next(&f)) > 0;) {
        RESULT_AUTO r = {0};
        as_status st = tx_query(t, &stmts[maximize ? TRIAL_BEST_MAX : TRIAL_BEST_MIN],
                                ARGS(arg_i64(sweep_key), arg_i64(ask + 1), arg_bool(at.set),
                                     arg_f64(at.key), arg_i64(at.number)),
                                &r, err);
        if (st == AS_OK)
            st = take_trials(&f, &r, ask, a, &page, &at, err);
        if (st != AS_OK)
            return st;
    }
    at.set = f.has_more;
    *ret = page;
    *ret_next = at;
    return AS_OK;
}

as_status store_trial_newest_reason(struct tx *t, struct arena *a, int64_t sweep_key,
                                    const char **ret, struct as_err *err)
{
    RESULT_AUTO r = {0};
    as_status st =
        tx_query(t, &stmts[TRIAL_REASON], ARGS(arg_i64(sweep_key), arg_i64(REASON_AMONG)), &r, err);
    *ret = NULL;
    if (st != AS_OK || r.rows == 0)
        return st;
    struct reader rd;
    reader_init(&rd, &r, 0, a);
    *ret = read_str(&rd);
    return reader_check(&rd, err);
}
