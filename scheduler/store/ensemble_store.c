/* Tables ensemble and ensemble_asked.
 *
 * A row of `ensemble` belongs to each sweep, and is computed when the sweep is finishing. A row of
 * `ensemble_asked` is a request of a user. Both are computed by whichever server leases the row, so
 * a server that dies costs no more than the lease. A request is known by its text and by the ends
 * of its sweeps (finish_seq): asked again it is the same row, unless a sweep ran on in between. */
#include "scheduler/store/ensemble_store.h"

#include "scheduler/store/sql_columns_priv.h"
#include "scheduler/store/pg_priv.h"
#include "scheduler/store/sets_priv.h"
#include "scheduler/store/values_priv.h"

enum {
    ENSEMBLE_GET,
    ENSEMBLE_TAKE,
    ENSEMBLE_CANDIDATES,
    ENSEMBLE_PUT,
    ENSEMBLE_RESET,
    ENSEMBLE_SOURCES,
    ENSEMBLE_ASKED_FIND,
    ENSEMBLE_ASK,
    ENSEMBLE_ASKED_GET,
    ENSEMBLE_ASKED_LIST,
    ENSEMBLE_ASKED_TAKE,
    ENSEMBLE_ASKED_PUT
};

/* A list of trials that is no list, or names none, is that of an earlier version: it is empty. */
#define STACK                                                                                      \
    "(select json_agg(json_build_array(u.name, f.size))::text from sweep_base d cross join "       \
    "lateral json_array_elements_text(case when json_typeof(d.document #> '{trial,train,stack}') " \
    "= 'array' then d.document #> '{trial,train,stack}' end) u (name) join sweep_base o on o.id "  \
    "= split_part(u.name, '/', 1) join trial_file f on f.sweep_key = o.key and f.number = case "   \
    "when u.name ~ '^[^/]+/[0-9]{1,9}$' then split_part(u.name, '/', 2)::bigint end and f.kind = " \
    "'artifact' and f.path = 'model.safetensors' where d.id = c.sweep)"

#define CANDIDATE_FIELDS(FIRST, NEXT)                                                              \
    FIRST(text, sweep, "sweep")                                                                    \
    NEXT(i64, number, "number")                                                                    \
    NEXT(f64, value, "value")                                                                      \
    NEXT(text, params, "params")                                                                   \
    NEXT(text, predictions, "predictions")                                                         \
    NEXT(text, targets, "targets")                                                                 \
    NEXT(text, weights, "weights")                                                                 \
    NEXT(text, buckets, "buckets")                                                                 \
    NEXT(i64, predictions_size, "predictions_size")                                                \
    NEXT(i64, targets_size, "targets_size")                                                        \
    NEXT(text, test_predictions, "test_predictions")                                               \
    NEXT(text, test_targets, "test_targets")                                                       \
    NEXT(text, test_weights, "test_weights")                                                       \
    NEXT(text, test_buckets, "test_buckets")                                                       \
    NEXT(i64, model_size, "model_size")                                                            \
    NEXT(text, stack, STACK)
COLUMNS_WHOLE_ROW(struct ensemble_candidate, CANDIDATE_FIELDS)
COLUMNS_READER(candidate, struct ensemble_candidate, CANDIDATE_FIELDS)
#define CANDIDATE_COLUMNS COLUMNS_SQL(CANDIDATE_FIELDS)

#define SOURCE_FIELDS(FIRST, NEXT)                                                                 \
    FIRST(bool, found, "s.key is not null")                                                        \
    NEXT(i64, key, "s.key")                                                                        \
    NEXT(text, id, "u.id")                                                                         \
    NEXT(sweep_state, state, "coalesce(s.state, 'failed')")                                        \
    NEXT(text, metric, "s.metric")                                                                 \
    NEXT(bool, maximize, "s.goal = 'maximize'")                                                    \
    NEXT(bool, is_trainers, "s.max_group is not null")                                             \
    NEXT(i64, seed, "s.seed")                                                                      \
    NEXT(i64, finish_seq, "s.finish_seq")                                                          \
    NEXT(bool, same_rows,                                                                          \
         "exists (select from c where c.sweep = s.id and (targets, weights) = " COMMON ")")
/* The targets and weights that most candidates have. */
#define COMMON                                                                                     \
    "(select targets, weights from c group by targets, weights order by count(*) desc, targets, "  \
    "weights limit 1)"
COLUMNS_WHOLE_ROW(struct ensemble_source, SOURCE_FIELDS)
COLUMNS_READER(source, struct ensemble_source, SOURCE_FIELDS)
#define SOURCE_COLUMNS COLUMNS_SQL(SOURCE_FIELDS)

#define ASKED_FIELDS_WITH(FIRST, NEXT, RESULT)                                                     \
    FIRST(i64, key, "e.key")                                                                       \
    NEXT(i64, number, "e.number")                                                                  \
    NEXT(text, sweep, "s.id")                                                                      \
    NEXT(text, request, "e.request")                                                               \
    NEXT(text, ends, "e.ends")                                                                     \
    NEXT(text, state, "e.state")                                                                   \
    NEXT(text, result, RESULT)                                                                     \
    NEXT(i64, created_ms, SQL_MS("e.created_at"))
#define ASKED_FIELDS(FIRST, NEXT) ASKED_FIELDS_WITH(FIRST, NEXT, "e.result")
COLUMNS_WHOLE_ROW(struct ensemble_asked, ASKED_FIELDS)
COLUMNS_READER(asked, struct ensemble_asked, ASKED_FIELDS)
#define ASKED_COLUMNS COLUMNS_SQL(ASKED_FIELDS)
/* In a list: without members and biases, which may be long. */
#define LISTED_FIELDS(FIRST, NEXT)                                                                 \
    ASKED_FIELDS_WITH(FIRST, NEXT, "e.result::jsonb - 'members' - 'combine'")
#define LISTED_COLUMNS COLUMNS_SQL(LISTED_FIELDS)

/* `join` the artifact of the trial t with a path, as f. */
#define ARTIFACT(join, f, path)                                                                    \
    join " trial_file " f " on " f ".sweep_key = t.sweep_key and " f ".number = t.number and " f   \
         ".kind = 'artifact' and " f ".path = '" path "' "
#define HELD_FILES                                                                                 \
    ARTIFACT("join", "p", "predictions.npy")                                                       \
    ARTIFACT("join", "g", "targets.npy")                                                           \
    ARTIFACT("left join", "w", "weights.npy")                                                      \
    ARTIFACT("left join", "b", "buckets.json") ARTIFACT("left join", "m", "model.safetensors")
#define TEST_FILES                                                                                 \
    ARTIFACT("left join", "tp", "test_predictions.npy")                                            \
    ARTIFACT("left join", "tg", "test_targets.npy")                                                \
    ARTIFACT("left join", "tw", "test_weights.npy") ARTIFACT("left join", "tb", "test_buckets.json")

/* Completed trials with predictions and targets, of the sweeps whose ids are $1. */
#define CANDIDATES                                                                                 \
    "with c as (select s.id as sweep, array_position($1::text[], s.id) as place, t.number, "       \
    "t.value, t.params, p.sha256 as predictions, p.size as predictions_size, g.sha256 as "         \
    "targets, g.size as targets_size, coalesce(w.sha256, '') as weights, coalesce(b.sha256, '') "  \
    "as buckets, tp.sha256 as test_predictions, tg.sha256 as test_targets, coalesce(tw.sha256, "   \
    "'') as test_weights, coalesce(tb.sha256, '') as test_buckets, coalesce(m.size, 0) as "        \
    "model_size "                                                                                  \
    "from sweep s join trial t on t.sweep_key = s.key " HELD_FILES TEST_FILES                      \
    "where s.id = any($1::text[]) and t.result is not null) "

static const struct stmt stmts[] = {
    [ENSEMBLE_GET] = {"ensemble_get",
                      "select e.result, s.state from sweep_base s join ensemble e on "
                      "e.sweep_key = s.key where s.id = $1"},
    [ENSEMBLE_TAKE] =
        {"ensemble_take",
         "update ensemble set lease_until = now() + $1 * interval '1 ms' where "
         "sweep_key = (select e.sweep_key from ensemble e join sweep_base s on s.key = "
         "e.sweep_key where s.state = 'finishing' and e.state = 'pending' and "
         "(e.lease_until is null or e.lease_until < now()) order by e.sweep_key limit "
         "1 for update of e skip locked) returning sweep_key"},
    [ENSEMBLE_CANDIDATES] = {"ensemble_candidates",
                             CANDIDATES "select " CANDIDATE_COLUMNS
                                        " from c where (targets, weights) = " COMMON
                                        " order by value * $2::int, place, number limit $3"},
    [ENSEMBLE_PUT] = {"ensemble_put", "update ensemble set state = $2, result = $3, lease_until = "
                                      "null where sweep_key = $1 and state = 'pending'"},
    [ENSEMBLE_RESET] = {"ensemble_reset", "update ensemble set state = 'pending', result = null, "
                                          "lease_until = null where sweep_key = $1"},
    [ENSEMBLE_SOURCES] = {"ensemble_sources",
                          CANDIDATES "select " SOURCE_COLUMNS
                                     " from unnest($1::text[]) with ordinality as u(id, place) "
                                     "left join sweep s on s.id = u.id order by u.place"},
    [ENSEMBLE_ASKED_FIND] = {"ensemble_asked_find",
                             "select number from ensemble_asked where sweep_key = $1 and request = "
                             "$2 and ends = $3"},
    [ENSEMBLE_ASK] =
        {"ensemble_ask",
         "insert into ensemble_asked (sweep_key, request, ends, number) select $1, $2, "
         "$3, coalesce(max(number), 0) + 1 from ensemble_asked where sweep_key = $1 "
         "having coalesce(max(number), 0) < $4 returning number"},
    [ENSEMBLE_ASKED_GET] = {"ensemble_asked_get",
                            "select " ASKED_COLUMNS
                            " from ensemble_asked e join sweep_base s on s.key "
                            "= e.sweep_key where s.id = $1 and e.number = $2"},
    [ENSEMBLE_ASKED_LIST] = {"ensemble_asked_list",
                             "select " LISTED_COLUMNS " from ensemble_asked e join sweep_base s on "
                             "s.key = e.sweep_key where s.id = $1 order by e.number desc"},
    [ENSEMBLE_ASKED_TAKE] =
        {"ensemble_asked_take",
         "update ensemble_asked e set lease_until = now() + $1 * interval '1 ms' from sweep_base s "
         "where "
         "s.key = e.sweep_key and e.key = (select key from ensemble_asked where state = 'pending' "
         "and (lease_until is null or lease_until < now()) order by key limit 1 for update skip "
         "locked) returning " ASKED_COLUMNS},
    [ENSEMBLE_ASKED_PUT] = {"ensemble_asked_put",
                            "update ensemble_asked set state = $2, result = $3, lease_until = null "
                            "where key = $1 and state = 'pending'"},
};
const struct stmt_set ensemble_stmts = {"ensemble", stmts, AS_ARRAY_LEN(stmts)};

as_status store_ensemble_get(struct tx *t, struct arena *a, const char *sweep, const char **ret,
                             sweep_state *ret_state, struct as_err *err)
{
    RESULT_AUTO r = {0};
    as_status st = tx_query(t, &stmts[ENSEMBLE_GET], ARGS(arg_str(sweep)), &r, err);
    if (st != AS_OK)
        return st;
    if (r.rows == 0)
        return as_fail(err, AS_E_NOT_FOUND, "there is no sweep '%.80s'", sweep);
    struct reader rd;
    reader_init(&rd, &r, 0, a);
    *ret = read_str(&rd);
    st = sweep_state_parse(read_view(&rd), ret_state, err);
    return st == AS_OK ? reader_check(&rd, err) : st;
}

as_status store_ensemble_take(struct tx *t, int64_t lease_ms, int64_t *ret_key, struct as_err *err)
{
    RESULT_AUTO r = {0};
    as_status st = tx_query(t, &stmts[ENSEMBLE_TAKE], ARGS(arg_i64(lease_ms)), &r, err);
    *ret_key = 0;
    if (st != AS_OK || r.rows == 0)
        return st;
    *ret_key = result_i64(&r, 0, 0);
    return AS_OK;
}

as_status store_ensemble_candidates(struct tx *t, struct arena *a, const char *const *sweeps,
                                    size_t n_sweeps, bool maximize, int64_t limit,
                                    struct ensemble_candidate **ret, size_t *ret_n,
                                    struct as_err *err)
{
    AS_AUTO(str_done) struct str ids = {0};
    RESULT_AUTO r = {0};
    as_status st = array_of_names(&ids, sweeps, n_sweeps, err);
    if (st == AS_OK)
        st = tx_query(t, &stmts[ENSEMBLE_CANDIDATES],
                      ARGS(arg_str(ids.s), arg_i64(maximize ? -1 : 1), arg_i64(limit)), &r, err);
    if (st != AS_OK)
        return st;
    if ((st = read_candidate_rows(&r, r.rows, a, ret, err)) != AS_OK)
        return st;
    *ret_n = (size_t)r.rows;
    return AS_OK;
}

as_status store_ensemble_put(struct tx *t, int64_t key, const char *state, const char *json,
                             struct as_err *err)
{
    int n = 0;
    as_status st = tx_exec(t, &stmts[ENSEMBLE_PUT],
                           ARGS(arg_i64(key), arg_str(state), arg_str(json)), &n, err);
    if (st == AS_OK && n == 0)
        return as_fail(err, AS_E_CONFLICT, "the ensemble was computed already");
    return st;
}

as_status store_ensemble_reset(struct tx *t, int64_t key, struct as_err *err)
{
    return tx_exec(t, &stmts[ENSEMBLE_RESET], ARGS(arg_i64(key)), NULL, err);
}

/* ---- asked for after the end ---- */

as_status store_ensemble_sources(struct tx *t, struct arena *a, const char *const *sweeps, size_t n,
                                 struct ensemble_source **ret, struct as_err *err)
{
    AS_AUTO(str_done) struct str ids = {0};
    RESULT_AUTO r = {0};
    as_status st = array_of_names(&ids, sweeps, n, err);
    if (st == AS_OK)
        st = tx_query(t, &stmts[ENSEMBLE_SOURCES], ARGS(arg_str(ids.s)), &r, err);
    return st == AS_OK ? read_source_rows(&r, r.rows, a, ret, err) : st;
}

as_status store_ensemble_ask(struct tx *t, int64_t sweep_key, const char *request, const char *ends,
                             int64_t limit, int64_t *ret_number, bool *ret_created,
                             struct as_err *err)
{
    RESULT_AUTO found = {0};
    RESULT_AUTO added = {0};
    as_status st = tx_query(t, &stmts[ENSEMBLE_ASKED_FIND],
                            ARGS(arg_i64(sweep_key), arg_str(request), arg_str(ends)), &found, err);
    if (st != AS_OK)
        return st;
    *ret_created = found.rows == 0;
    if (found.rows > 0) {
        *ret_number = result_i64(&found, 0, 0);
        return AS_OK;
    }
    st = tx_query(t, &stmts[ENSEMBLE_ASK],
                  ARGS(arg_i64(sweep_key), arg_str(request), arg_str(ends), arg_i64(limit)), &added,
                  err);
    if (st != AS_OK)
        return st;
    if (added.rows == 0)
        return as_fail(err, AS_E_CONFLICT, "the sweep has %lld ensembles, and no more are kept",
                       (long long)limit);
    *ret_number = result_i64(&added, 0, 0);
    return AS_OK;
}

as_status store_ensemble_asked_get(struct tx *t, struct arena *a, const char *sweep, int64_t number,
                                   struct ensemble_asked *ret, struct as_err *err)
{
    RESULT_AUTO r = {0};
    as_status st =
        tx_query(t, &stmts[ENSEMBLE_ASKED_GET], ARGS(arg_str(sweep), arg_i64(number)), &r, err);
    if (st != AS_OK)
        return st;
    if (r.rows == 0)
        return as_fail(err, AS_E_NOT_FOUND, "there is no ensemble %lld of a sweep '%.80s'",
                       (long long)number, sweep);
    return read_asked_row(&r, 0, a, ret, err);
}

as_status store_ensemble_asked_list(struct tx *t, struct arena *a, const char *sweep,
                                    struct ensemble_asked **ret, size_t *ret_n, struct as_err *err)
{
    RESULT_AUTO r = {0};
    as_status st = tx_query(t, &stmts[ENSEMBLE_ASKED_LIST], ARGS(arg_str(sweep)), &r, err);
    if (st == AS_OK)
        st = read_asked_rows(&r, r.rows, a, ret, err);
    *ret_n = st == AS_OK ? (size_t)r.rows : 0;
    return st;
}

as_status store_ensemble_asked_take(struct tx *t, struct arena *a, int64_t lease_ms,
                                    struct ensemble_asked *ret, struct as_err *err)
{
    RESULT_AUTO r = {0};
    as_status st = tx_query(t, &stmts[ENSEMBLE_ASKED_TAKE], ARGS(arg_i64(lease_ms)), &r, err);
    *ret = (struct ensemble_asked){0};
    return st == AS_OK && r.rows > 0 ? read_asked_row(&r, 0, a, ret, err) : st;
}

as_status store_ensemble_asked_put(struct tx *t, int64_t key, const char *state, const char *json,
                                   bool *ret_done, struct as_err *err)
{
    int n = 0;
    as_status st = tx_exec(t, &stmts[ENSEMBLE_ASKED_PUT],
                           ARGS(arg_i64(key), arg_str(state), arg_str(json)), &n, err);
    *ret_done = st == AS_OK && n > 0;
    return st;
}
