/* Table trial. Every change of state is one statement whose WHERE holds the state and the attempt.
 */
#include "scheduler/store/trial_store.h"

#include "scheduler/store/pg_priv.h"
#include "scheduler/store/refs_priv.h"
#include "scheduler/store/sets_priv.h"
#include "scheduler/store/values_priv.h"

enum {
    TRIAL_ADD,
    TRIAL_HEAD,
    TRIAL_LOCK,
    TRIAL_MOVE,
    TRIAL_GET,
    TRIAL_LIST_UP,
    TRIAL_LIST_DOWN,
    TRIAL_LIST_SORTED,
    TRIAL_BEST_MIN,
    TRIAL_BEST_MAX,
    TRIAL_LIVE,
    TRIAL_OF_CLIENT,
    TRIAL_HELD,
    TRIAL_OVERDUE,
    TRIAL_RESUME,
    TRIAL_NOT_CURRENT,
    TRIAL_MISSING,
    TRIAL_MEASURED
};

#define HEAD_COLUMNS                                                                               \
    "t.sweep_key, t.number, t.state, t.attempt, t.restarts, t.value is not null, t.value, "        \
    "t.runner, t.client, t.epoch"

#define TRIAL_COLUMNS                                                                              \
    "s.id, t.number, t.state, t.origin, t.attempt, t.restarts, t.params, t.seed, t.value is not "  \
    "null, t.value, t.step is not null, t.step, t.metrics, t.suggestion, t.suggestion_index is "   \
    "not null, t.suggestion_index, t.seen is not null, t.seen, t.finish_seq, t.feasible is not "   \
    "null, t.feasible, t.shape, t.group_id, t.runner, t.client, t.reason, " SQL_MS(                \
        "t.created_at") ", " SQL_MS("t.started_at") ", " SQL_MS("t.finished_at")

#define TRIAL_FROM " from trial t join sweep s on s.key = t.sweep_key "

/* $3: which sort, $4: 1 ascending, -1 descending. NaN counts as no value. */
#define SORT_KEY                                                                                   \
    "(case $3::int when 1 then nullif(t.value, 'NaN') when 2 then extract(epoch from "             \
    "t.started_at)::float8 when 3 then extract(epoch from t.finished_at)::float8 else "            \
    "extract(epoch from t.finished_at - t.started_at)::float8 end * $4::int)"

static const struct stmt stmts[] = {
    [TRIAL_ADD] = {"trial_add",
                   "insert into trial (sweep_key, number, state, params, suggestion, seed, origin, "
                   "shape, bytes_per_member) values ($1, $2, 'queued', $3, $4, $5, $6, $7, $8)"},
    [TRIAL_HEAD] = {"trial_head",
                    "select " HEAD_COLUMNS " from trial t where sweep_key = $1 and number = $2"},
    [TRIAL_LOCK] = {"trial_lock",
                    "select " HEAD_COLUMNS " from trial t where sweep_key = $1 and number = $2 "
                    "for no key update"},
    [TRIAL_MOVE] = {"trial_move",
                    "update trial set state = $5, restarts = restarts + $6::boolean::int, reason = "
                    "$7, missing = 0, finished_at = case when $8 then clock_timestamp() end, "
                    "finish_seq = case when $8 then (select s.finish_seq + 1 from sweep s where "
                    "s.key = $1) end, feasible = $9 where sweep_key = $1 and number = $2 and state "
                    "= $3 and attempt = $4"},
    [TRIAL_GET] = {"trial_get",
                   "select " TRIAL_COLUMNS TRIAL_FROM "where t.sweep_key = $1 and t.number = $2"},
    [TRIAL_LIST_UP] = {"trial_list_up",
                       "select " TRIAL_COLUMNS ", true, t.number" TRIAL_FROM
                       "where t.sweep_key = $1 and ($2::text is null or t.state = $2) and "
                       "($5::text is null or t.group_id = $5) and t.number > $3 order by t.number "
                       "limit $4"},
    [TRIAL_LIST_DOWN] = {"trial_list_down",
                         "select " TRIAL_COLUMNS ", true, t.number" TRIAL_FROM
                         "where t.sweep_key = $1 and ($2::text is null or t.state = $2) and "
                         "($5::text is null or t.group_id = $5) and t.number < $3 order by "
                         "t.number desc limit $4"},
    [TRIAL_LIST_SORTED] =
        {"trial_list_sorted",
         "select " TRIAL_COLUMNS ", " SORT_KEY " is not null, " SORT_KEY TRIAL_FROM
         "where t.sweep_key = $1 and ($2::text is null or t.state = "
         "$2) and ($10::text is null or t.group_id = $10) and (not $5::boolean or (" SORT_KEY
         " is null, coalesce(" SORT_KEY
         ", 0), t.number) > (not $6::boolean, $7::float8, $8::int)) order by " SORT_KEY
         " is null, " SORT_KEY ", t.number limit $9"},
    [TRIAL_BEST_MIN] = {"trial_best_min",
                        "select " TRIAL_COLUMNS TRIAL_FROM "where t.sweep_key = $1 and t.state = "
                        "'completed' and t.feasible order by t.value, t.number limit $2"},
    [TRIAL_BEST_MAX] = {"trial_best_max",
                        "select " TRIAL_COLUMNS TRIAL_FROM "where t.sweep_key = $1 and t.state = "
                        "'completed' and t.feasible order by t.value desc, t.number limit $2"},
    [TRIAL_LIVE] = {"trial_live",
                    "select " HEAD_COLUMNS " from trial t where sweep_key = $1 and state in "
                    "('queued', 'running', 'paused') order by number"},
    [TRIAL_OF_CLIENT] = {"trial_of_client",
                         "select " HEAD_COLUMNS " from trial t where sweep_key = $1 and client = "
                         "$2 and state = 'running' order by number limit $3"},
    [TRIAL_HELD] =
        {"trial_held",
         "select " HEAD_COLUMNS " from trial t join sweep s on s.key = t.sweep_key where "
         "t.runner = $1 and t.state = 'running' and not exists (select from " LISTED
         " where l.id = s.id and l.number = t.number and l.attempt = t.attempt) order by "
         "t.sweep_key, t.number"},
    [TRIAL_OVERDUE] = {"trial_overdue",
                       "select " HEAD_COLUMNS " from trial t join sweep s on s.key = t.sweep_key "
                       "where t.state = 'running' and s.state in ('running', 'paused') and "
                       "s.trial_timeout_ms is not null and t.claimed_at < now() - "
                       "(s.trial_timeout_ms + s.grace_ms + $1) * interval '1 ms' order by "
                       "t.sweep_key, t.number limit 1000"},
    [TRIAL_RESUME] = {"trial_resume",
                      "update trial t set epoch = $5, missing = 0 from " LISTED ", sweep s where "
                      "s.id = l.id and t.sweep_key = s.key and t.number = l.number and t.attempt = "
                      "l.attempt and t.runner = $1 and t.state = 'running'"},
    [TRIAL_NOT_CURRENT] = {"trial_not_current",
                           "select l.place - 1, t.state, t.attempt, t.attempt = l.attempt from "
                           "unnest($2::text[], $3::int[], $4::int[]) with ordinality as l(id, "
                           "number, attempt, place) left join sweep s on s.id = l.id left join "
                           "trial t on t.sweep_key = s.key and t.number = l.number where not "
                           "coalesce(t.attempt = l.attempt and t.state = 'running' and t.runner = "
                           "$1, false) order by l.place"},
    [TRIAL_MISSING] =
        {"trial_missing",
         "with held as materialized (select t.sweep_key, t.number, exists (select "
         "from " LISTED " where l.id = s.id and l.number = t.number and l.attempt = "
         "t.attempt) as listed from trial t join sweep s on s.key = t.sweep_key where "
         "t.runner = $1 and t.state = 'running') update trial t set missing = case "
         "when h.listed then 0 else t.missing + 1 end from held h where t.sweep_key = "
         "h.sweep_key and t.number = h.number and t.runner = $1 and t.state = "
         "'running' and (not h.listed or t.missing > 0) returning " HEAD_COLUMNS
         ", t.missing >= 2 and t.claimed_at < now() - $5 * interval '1 ms'"},
    [TRIAL_MEASURED] = {"trial_measured",
                        "select (select array_agg((t.metrics ->> u.name)::float8 order by u.place) "
                        "from unnest($3::text[]) with ordinality as u(name, place)) from trial t "
                        "where t.sweep_key = $1 and t.number = $2"},
};
const struct stmt_set trial_stmts = {"trial", stmts, AS_ARRAY_LEN(stmts)};

as_status store_trial_add(struct tx *t, const struct trial_new *n, struct as_err *err)
{
    struct args a = {0};
    args_i64(&a, n->sweep_key);
    args_i64(&a, n->number);
    args_str(&a, n->params);
    args_str(&a, n->suggestion);
    args_i64(&a, n->seed);
    args_str(&a, trial_origin_words[n->origin]);
    args_str(&a, n->shape);
    args_i64_or_null(&a, n->shape != NULL, n->bytes_per_member);
    return tx_exec(t, &stmts[TRIAL_ADD], &a, NULL, err);
}

static as_status read_head(struct reader *rd, struct trial_head *h, struct as_err *err)
{
    h->sweep_key = read_i64(rd);
    h->number = read_i64(rd);
    as_status st = trial_state_parse(read_view(rd), &h->state, err);
    h->attempt = read_i64(rd);
    h->restarts = read_i64(rd);
    h->has_value = read_bool(rd);
    h->value = read_f64(rd);
    h->runner = read_str(rd);
    h->client = read_str(rd);
    h->epoch = read_i64(rd);
    return st == AS_OK ? reader_check(rd, err) : st;
}

static as_status read_heads(const struct result *r, struct arena *a, struct trial_list_heads *ret,
                            struct as_err *err)
{
    struct trial_head *rows = arena_alloc(a, (size_t)r->rows + 1, sizeof *rows);
    if (!rows)
        return as_fail(err, AS_E_NOMEM, "out of memory");
    as_status st = AS_OK;
    for (int i = 0; i < r->rows && st == AS_OK; i++) {
        struct reader rd;
        reader_init(&rd, r, i, a);
        st = read_head(&rd, &rows[i], err);
    }
    *ret = (struct trial_list_heads){rows, (size_t)r->rows};
    return st;
}

static as_status query_head(struct tx *t, int which, struct arena *a, int64_t sweep_key,
                            int64_t number, struct trial_head *ret, struct as_err *err)
{
    struct args args = {0};
    args_i64(&args, sweep_key);
    args_i64(&args, number);
    RESULT_AUTO r = {0};
    as_status st = tx_query(t, &stmts[which], &args, &r, err);
    if (st != AS_OK)
        return st;
    if (r.rows == 0)
        return as_fail(err, AS_E_NOT_FOUND, "the sweep has no trial %lld", (long long)number);
    struct reader rd;
    reader_init(&rd, &r, 0, a);
    return read_head(&rd, ret, err);
}

as_status store_trial_head(struct tx *t, struct arena *a, int64_t sweep_key, int64_t number,
                           struct trial_head *ret, struct as_err *err)
{
    return query_head(t, TRIAL_HEAD, a, sweep_key, number, ret, err);
}

as_status store_trial_lock(struct tx *t, struct arena *a, int64_t sweep_key, int64_t number,
                           struct trial_head *ret, struct as_err *err)
{
    return query_head(t, TRIAL_LOCK, a, sweep_key, number, ret, err);
}

as_status store_trial_move(struct tx *t, int64_t sweep_key, int64_t number,
                           const struct trial_move *m, struct as_err *err)
{
    struct args a = {0};
    args_i64(&a, sweep_key);
    args_i64(&a, number);
    args_str(&a, trial_state_format(m->from));
    args_i64(&a, m->attempt);
    args_str(&a, trial_state_format(m->to));
    args_bool(&a, m->burns_restart);
    args_str(&a, m->reason);
    args_bool(&a, trial_state_is_final(m->to));
    args_str(&a, m->to != TRIAL_COMPLETED ? NULL : m->feasible ? "t" : "f");
    int n = 0;
    as_status st = tx_exec(t, &stmts[TRIAL_MOVE], &a, &n, err);
    if (st == AS_OK && n == 0)
        return as_fail(err, AS_E_CONFLICT, "trial %lld is no longer %s at attempt %lld",
                       (long long)number, trial_state_format(m->from), (long long)m->attempt);
    if (st == AS_OK && trial_state_is_final(m->to) && m->attempt > 0)
        tx_finished(t, sweep_key);
    return st;
}

static trial_origin read_origin(struct reader *rd)
{
    const char *word = read_view(rd);
    trial_origin o = ORIGIN_SUGGESTED; /* the table's check knows no other words */
    while (trial_origin_words[o] && !as_streq(trial_origin_words[o], word))
        o++;
    return o;
}

static as_status read_trial(struct reader *rd, struct trial_row *x, struct as_err *err)
{
    x->sweep = read_str(rd);
    x->number = read_i64(rd);
    as_status st = trial_state_parse(read_view(rd), &x->state, err);
    x->origin = read_origin(rd);
    x->attempt = read_i64(rd);
    x->restarts = read_i64(rd);
    x->params = read_str(rd);
    x->seed = read_i64(rd);
    x->has_value = read_bool(rd);
    x->value = read_f64(rd);
    x->has_step = read_bool(rd);
    x->step = read_i64(rd);
    x->metrics = read_str(rd);
    x->suggestion = read_str(rd);
    x->has_index = read_bool(rd);
    x->index = read_i64(rd);
    x->has_seen = read_bool(rd);
    x->seen = read_i64(rd);
    x->finish_seq = read_i64(rd);
    x->has_feasible = read_bool(rd);
    x->feasible = read_bool(rd);
    x->shape = read_str(rd);
    x->group = read_str(rd);
    x->runner = read_str(rd);
    x->client = read_str(rd);
    x->reason = read_str(rd);
    x->created_ms = read_i64(rd);
    x->started_ms = read_i64(rd);
    x->finished_ms = read_i64(rd);
    return st == AS_OK ? reader_check(rd, err) : st;
}

as_status store_trial_get(struct tx *t, struct arena *a, int64_t sweep_key, int64_t number,
                          struct trial_row *ret, struct as_err *err)
{
    struct args args = {0};
    args_i64(&args, sweep_key);
    args_i64(&args, number);
    RESULT_AUTO r = {0};
    as_status st = tx_query(t, &stmts[TRIAL_GET], &args, &r, err);
    if (st != AS_OK)
        return st;
    if (r.rows == 0)
        return as_fail(err, AS_E_NOT_FOUND, "the sweep has no trial %lld", (long long)number);
    struct reader rd;
    reader_init(&rd, &r, 0, a);
    return read_trial(&rd, ret, err);
}

/* At most `size` trials of a result; after each one's columns stand those of its place. */
static as_status read_page(const struct result *r, struct arena *a, int64_t size, bool with_place,
                           struct trial_page *ret, struct trial_place *ret_next, struct as_err *err)
{
    int n = r->rows > size ? (int)size : r->rows;
    struct trial_row *rows = arena_alloc(a, (size_t)n + 1, sizeof *rows);
    if (!rows)
        return as_fail(err, AS_E_NOMEM, "out of memory");
    struct trial_place last = {0};
    as_status st = AS_OK;
    for (int i = 0; i < n && st == AS_OK; i++) {
        struct reader rd;
        reader_init(&rd, r, i, a);
        st = read_trial(&rd, &rows[i], err);
        if (!with_place || st != AS_OK)
            continue;
        last.has_key = read_bool(&rd);
        last.key = read_f64(&rd);
        last.number = rows[i].number;
    }
    *ret = (struct trial_page){.rows = rows, .n = (size_t)n};
    last.set = r->rows > n;
    if (ret_next)
        *ret_next = last;
    return st;
}

as_status store_trial_list(struct tx *t, struct arena *a, int64_t sweep_key,
                           const struct trial_query *q, const struct trial_place *after,
                           struct trial_page *ret, struct trial_place *ret_next, struct as_err *err)
{
    struct args args = {0};
    int which = TRIAL_LIST_SORTED;
    args_i64(&args, sweep_key);
    args_str(&args, q->state ? trial_state_format(*q->state) : NULL);
    if (q->sort == TRIAL_BY_NUMBER) {
        which = q->descending ? TRIAL_LIST_DOWN : TRIAL_LIST_UP;
        args_i64(&args, after->set ? after->number : q->descending ? INT32_MAX : -1);
    } else {
        args_i64(&args, q->sort);
        args_i64(&args, q->descending ? -1 : 1);
        args_bool(&args, after->set);
        args_bool(&args, after->has_key);
        args_f64(&args, after->key);
        args_i64(&args, after->number);
    }
    args_i64(&args, q->page.size + 1);
    args_str(&args, q->group);
    RESULT_AUTO r = {0};
    as_status st = tx_query(t, &stmts[which], &args, &r, err);
    return st == AS_OK ? read_page(&r, a, q->page.size, true, ret, ret_next, err) : st;
}

as_status store_trial_best(struct tx *t, struct arena *a, int64_t sweep_key, bool maximize,
                           int64_t top, struct trial_page *ret, struct as_err *err)
{
    struct args args = {0};
    args_i64(&args, sweep_key);
    args_i64(&args, top);
    RESULT_AUTO r = {0};
    as_status st = tx_query(t, &stmts[maximize ? TRIAL_BEST_MAX : TRIAL_BEST_MIN], &args, &r, err);
    return st == AS_OK ? read_page(&r, a, top, false, ret, NULL, err) : st;
}

as_status store_trial_live(struct tx *t, struct arena *a, int64_t sweep_key,
                           struct trial_list_heads *ret, struct as_err *err)
{
    struct args args = {0};
    args_i64(&args, sweep_key);
    RESULT_AUTO r = {0};
    as_status st = tx_query(t, &stmts[TRIAL_LIVE], &args, &r, err);
    return st == AS_OK ? read_heads(&r, a, ret, err) : st;
}

as_status store_trial_of_client(struct tx *t, struct arena *a, int64_t sweep_key,
                                const char *client, int64_t limit, struct trial_list_heads *ret,
                                struct as_err *err)
{
    struct args args = {0};
    args_i64(&args, sweep_key);
    args_str(&args, client);
    args_i64(&args, limit);
    RESULT_AUTO r = {0};
    as_status st = tx_query(t, &stmts[TRIAL_OF_CLIENT], &args, &r, err);
    return st == AS_OK ? read_heads(&r, a, ret, err) : st;
}

as_status store_trial_held(struct tx *t, struct arena *a, const char *runner,
                           const struct attempt_ref *but, size_t n, struct trial_list_heads *ret,
                           struct as_err *err)
{
    AS_AUTO(refs_done) struct refs c = {0};
    struct args args = {0};
    args_str(&args, runner);
    as_status st = args_refs(&args, &c, but, n, err);
    if (st != AS_OK)
        return st;
    RESULT_AUTO r = {0};
    st = tx_query(t, &stmts[TRIAL_HELD], &args, &r, err);
    return st == AS_OK ? read_heads(&r, a, ret, err) : st;
}

as_status store_trial_overdue(struct tx *t, struct arena *a, int64_t slack_ms,
                              struct trial_list_heads *ret, struct as_err *err)
{
    struct args args = {0};
    args_i64(&args, slack_ms);
    RESULT_AUTO r = {0};
    as_status st = tx_query(t, &stmts[TRIAL_OVERDUE], &args, &r, err);
    return st == AS_OK ? read_heads(&r, a, ret, err) : st;
}

as_status store_trial_resume(struct tx *t, const char *runner, int64_t epoch,
                             const struct attempt_ref *refs, size_t n, struct as_err *err)
{
    AS_AUTO(refs_done) struct refs c = {0};
    struct args args = {0};
    args_str(&args, runner);
    as_status st = args_refs(&args, &c, refs, n, err);
    args_i64(&args, epoch);
    return st == AS_OK ? tx_exec(t, &stmts[TRIAL_RESUME], &args, NULL, err) : st;
}

static as_status read_directive(struct reader *rd, struct arena *a, const struct attempt_ref *refs,
                                struct directive_row *ret, struct as_err *err)
{
    ret->ref = refs[read_i64(rd)];
    bool exists = !read_null(rd);
    const char *state = read_view(rd);
    int64_t attempt = read_i64(rd);
    bool same = read_bool(rd);
    if (!exists)
        ret->reason = "there is no such trial";
    else if (!same)
        ret->reason = arena_printf(a, "attempt %lld is the current one", (long long)attempt);
    else if (as_streq(state, "running"))
        ret->reason = "it runs on another runner";
    else
        ret->reason = arena_printf(a, "the trial is %s", state);
    return ret->reason ? AS_OK : as_fail(err, AS_E_NOMEM, "out of memory");
}

as_status store_trial_not_current(struct tx *t, struct arena *a, const char *runner,
                                  const struct attempt_ref *refs, size_t n,
                                  struct directive_list *ret, struct as_err *err)
{
    AS_AUTO(refs_done) struct refs c = {0};
    struct args args = {0};
    args_str(&args, runner);
    as_status st = args_refs(&args, &c, refs, n, err);
    if (st != AS_OK)
        return st;
    RESULT_AUTO r = {0};
    st = tx_query(t, &stmts[TRIAL_NOT_CURRENT], &args, &r, err);
    if (st != AS_OK)
        return st;
    struct directive_row *rows = arena_alloc(a, (size_t)r.rows + 1, sizeof *rows);
    if (!rows)
        return as_fail(err, AS_E_NOMEM, "out of memory");
    for (int i = 0; i < r.rows && st == AS_OK; i++) {
        struct reader rd;
        reader_init(&rd, &r, i, a);
        st = read_directive(&rd, a, refs, &rows[i], err);
    }
    *ret = (struct directive_list){rows, (size_t)r.rows};
    return st;
}

/* The last column says which of the rows are handed out. */
static as_status read_missing(const struct result *r, struct arena *a, struct trial_list_heads *ret,
                              struct as_err *err)
{
    struct trial_head *rows = arena_alloc(a, (size_t)r->rows + 1, sizeof *rows);
    if (!rows)
        return as_fail(err, AS_E_NOMEM, "out of memory");
    size_t n = 0;
    for (int i = 0; i < r->rows; i++) {
        struct reader rd;
        reader_init(&rd, r, i, a);
        as_status st = read_head(&rd, &rows[n], err);
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
    struct args args = {0};
    args_str(&args, runner);
    as_status st = args_refs(&args, &c, listed, n, err);
    if (st != AS_OK)
        return st;
    args_i64(&args, lease_ms);
    RESULT_AUTO r = {0};
    st = tx_query(t, &stmts[TRIAL_MISSING], &args, &r, err);
    return st == AS_OK ? read_missing(&r, a, ret, err) : st;
}

as_status store_trial_measured(struct tx *t, int64_t sweep_key, int64_t number,
                               const char *const *metrics, size_t n, double *ret, bool *ret_has,
                               struct as_err *err)
{
    AS_AUTO(str_done) struct str names = {0};
    struct args args = {0};
    as_status st = array_of_names(&names, metrics, n, err);
    if (st != AS_OK)
        return st;
    args_i64(&args, sweep_key);
    args_i64(&args, number);
    args_str(&args, str_cstr(&names));
    RESULT_AUTO r = {0};
    st = tx_query(t, &stmts[TRIAL_MEASURED], &args, &r, err);
    if (st != AS_OK)
        return st;
    if (r.rows == 0)
        return as_fail(err, AS_E_NOT_FOUND, "the sweep has no trial %lld", (long long)number);
    struct reader rd;
    reader_init(&rd, &r, 0, NULL);
    return read_values(&rd, n, ret, ret_has, err);
}
