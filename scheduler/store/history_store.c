/* The history of a sweep, for its search: two reads of tables that others write. */
#include "scheduler/store/history_store.h"

#include "scheduler/store/pg_priv.h"
#include "scheduler/store/sets_priv.h"
#include "scheduler/store/values_priv.h"

enum { HISTORY_HEAD, HISTORY_TRIALS, HISTORY_VALUES };

#define VALUES                                                                                     \
    "case when state = 'completed' then (select array_agg((metrics ->> u.name)::float8 order by "  \
    "u.place) from unnest($5::text[]) with ordinality as u(name, place)) end"
#define COLUMNS "number, state, origin = 'suggested', finish_seq, params, " VALUES

static const struct stmt stmts[] = {
    [HISTORY_HEAD] = {"history_head",
                      "select state, n_total, n_suggested, planned, finish_seq, search_mark, "
                      "search_state, case when $2 then document end from sweep where key = $1"},
    [HISTORY_TRIALS] = {"history_trials",
                        "select " COLUMNS " from trial where sweep_key = $1 and number >= $2 and "
                        "number < $4 union all select " COLUMNS " from trial where sweep_key = $1 "
                        "and finish_seq > $3 and number < $2 order by 1"},
    [HISTORY_VALUES] = {"history_values",
                        "select number, (select array_agg((metrics ->> u.name)::float8 order by "
                        "u.place) from unnest($2::text[]) with ordinality as u(name, place)) from "
                        "trial where sweep_key = $1 and state = 'completed' and feasible order by "
                        "number"},
};
const struct stmt_set history_stmts = {"history", stmts, AS_ARRAY_LEN(stmts)};

as_status store_history_head(struct tx *t, struct arena *a, int64_t sweep_key, bool with_document,
                             struct history_head *ret, struct as_err *err)
{
    RESULT_AUTO r = {0};
    as_status st = tx_query(t, &stmts[HISTORY_HEAD],
                            ARGS(arg_i64(sweep_key), arg_bool(with_document)), &r, err);
    if (st != AS_OK)
        return st;
    if (r.rows == 0)
        return as_fail(err, AS_E_NOT_FOUND, "the sweep was deleted");
    struct reader rd;
    reader_init(&rd, &r, 0, a);
    st = sweep_state_parse(read_view(&rd), &ret->state, err);
    ret->total = read_i64(&rd);
    ret->suggested = read_i64(&rd);
    ret->planned = read_i64(&rd);
    ret->finish_seq = read_i64(&rd);
    ret->search_mark = read_i64(&rd);
    ret->search_state = read_str(&rd);
    ret->document = read_str(&rd);
    return st == AS_OK ? reader_check(&rd, err) : st;
}

static as_status read_row(struct reader *rd, struct arena *a, size_t n_metrics,
                          struct history_trial *ret, struct as_err *err)
{
    ret->number = read_i64(rd);
    as_status st = trial_state_parse(read_view(rd), &ret->state, err);
    ret->is_suggested = read_bool(rd);
    ret->finish_seq = read_i64(rd);
    ret->params = read_str(rd);
    ret->values = arena_alloc(a, n_metrics + 1, sizeof *ret->values);
    if (!ret->values)
        return as_fail(err, AS_E_NOMEM, "out of memory");
    if (st == AS_OK)
        st = read_values(rd, n_metrics, ret->values, NULL, err);
    return st == AS_OK ? reader_check(rd, err) : st;
}

as_status store_history_trials(struct tx *t, struct arena *a, int64_t sweep_key, int64_t known,
                               int64_t seq, int64_t total, const char *const *metrics,
                               size_t n_metrics, struct history_trial **ret, size_t *ret_n,
                               struct as_err *err)
{
    AS_AUTO(str_done) struct str names = {0};
    as_status st = array_of_names(&names, metrics, n_metrics, err);
    if (st != AS_OK)
        return st;
    RESULT_AUTO r = {0};
    st = tx_query(t, &stmts[HISTORY_TRIALS],
                  ARGS(arg_i64(sweep_key), arg_i64(known), arg_i64(seq), arg_i64(total),
                       arg_str(str_cstr(&names))),
                  &r, err);
    if (st != AS_OK)
        return st;
    struct history_trial *rows = arena_alloc(a, (size_t)r.rows + 1, sizeof *rows);
    if (!rows)
        return as_fail(err, AS_E_NOMEM, "out of memory");
    for (int i = 0; i < r.rows && st == AS_OK; i++) {
        struct reader rd;
        reader_init(&rd, &r, i, a);
        st = read_row(&rd, a, n_metrics, &rows[i], err);
    }
    *ret = rows;
    *ret_n = (size_t)r.rows;
    return st;
}

as_status store_history_values(struct tx *t, struct arena *a, int64_t sweep_key,
                               const char *const *metrics, size_t n_metrics, int64_t **ret_numbers,
                               double **ret_values, size_t *ret_n, struct as_err *err)
{
    AS_AUTO(str_done) struct str names = {0};
    as_status st = array_of_names(&names, metrics, n_metrics, err);
    if (st != AS_OK)
        return st;
    RESULT_AUTO r = {0};
    st = tx_query(t, &stmts[HISTORY_VALUES], ARGS(arg_i64(sweep_key), arg_str(str_cstr(&names))),
                  &r, err);
    if (st != AS_OK)
        return st;
    int64_t *numbers = arena_alloc(a, (size_t)r.rows + 1, sizeof *numbers);
    double *values = arena_alloc(a, (size_t)r.rows * n_metrics + 1, sizeof *values);
    if (!numbers || !values)
        return as_fail(err, AS_E_NOMEM, "out of memory");
    for (int i = 0; i < r.rows && st == AS_OK; i++) {
        struct reader rd;
        reader_init(&rd, &r, i, NULL);
        numbers[i] = read_i64(&rd);
        st = read_values(&rd, n_metrics, values + (size_t)i * n_metrics, NULL, err);
    }
    *ret_numbers = numbers;
    *ret_values = values;
    *ret_n = (size_t)r.rows;
    return st;
}
