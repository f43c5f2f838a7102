/* Table ensemble. */
#include "scheduler/store/ensemble_store.h"

#include "scheduler/store/columns_priv.h"
#include "scheduler/store/pg_priv.h"
#include "scheduler/store/sets_priv.h"

enum { ENSEMBLE_GET, ENSEMBLE_TAKE, ENSEMBLE_CANDIDATES, ENSEMBLE_PUT, ENSEMBLE_RESET };

#define CANDIDATE_FIELDS(FIRST, NEXT)                                                              \
    FIRST(i64, number, "number")                                                                   \
    NEXT(f64, value, "value")                                                                      \
    NEXT(text, params, "params")                                                                   \
    NEXT(text, predictions, "predictions")                                                         \
    NEXT(text, targets, "targets")                                                                 \
    NEXT(i64, predictions_size, "predictions_size")                                                \
    NEXT(i64, targets_size, "targets_size")
COLUMNS_WHOLE_ROW(struct ensemble_candidate, CANDIDATE_FIELDS)
COLUMNS_READER(candidate, struct ensemble_candidate, CANDIDATE_FIELDS)
#define CANDIDATE_COLUMNS COLUMNS_SQL(CANDIDATE_FIELDS)

static const struct stmt stmts[] = {
    [ENSEMBLE_GET] = {"ensemble_get", "select e.result, s.state from sweep s join ensemble e on "
                                      "e.sweep_key = s.key where s.id = $1"},
    [ENSEMBLE_TAKE] =
        {"ensemble_take",
         "update ensemble set lease_until = now() + $1 * interval '1 ms' where "
         "sweep_key = (select e.sweep_key from ensemble e join sweep s on s.key = "
         "e.sweep_key where s.state = 'finishing' and e.state = 'pending' and "
         "(e.lease_until is null or e.lease_until < now()) order by e.sweep_key limit "
         "1 for update of e skip locked) returning sweep_key"},
    [ENSEMBLE_CANDIDATES] =
        {"ensemble_candidates",
         "with c as (select t.number, t.value, t.params, p.sha256 as predictions, p.size as "
         "predictions_size, g.sha256 as targets, g.size as targets_size from trial t join "
         "trial_file p on p.sweep_key = t.sweep_key and p.number = t.number and p.kind = "
         "'artifact' "
         "and p.path = 'predictions.npy' join trial_file g on g.sweep_key = t.sweep_key and "
         "g.number = t.number and g.kind = 'artifact' and g.path = 'targets.npy' where t.sweep_key "
         "= $1 and t.state = 'completed' and t.feasible) select " CANDIDATE_COLUMNS
         " from c where targets = (select targets from c group by "
         "targets order by count(*) desc, targets limit 1) order by value * $2::int, number limit "
         "$3"},
    [ENSEMBLE_PUT] = {"ensemble_put", "update ensemble set state = $2, result = $3, lease_until = "
                                      "null where sweep_key = $1 and state = 'pending'"},
    [ENSEMBLE_RESET] = {"ensemble_reset", "update ensemble set state = 'pending', result = null, "
                                          "lease_until = null where sweep_key = $1"},
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

as_status store_ensemble_candidates(struct tx *t, struct arena *a, int64_t key, bool maximize,
                                    int64_t limit, struct ensemble_candidate **ret, size_t *ret_n,
                                    struct as_err *err)
{
    RESULT_AUTO r = {0};
    as_status st =
        tx_query(t, &stmts[ENSEMBLE_CANDIDATES],
                 ARGS(arg_i64(key), arg_i64(maximize ? -1 : 1), arg_i64(limit)), &r, err);
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
