/* The history of a sweep, for its search: reads of tables that other files write. What has changed
 * since the last read is found by number (new trials) and by the order of ends and retries, so a
 * search of thousands of trials reads the new ones alone. The document is read only when the caller
 * has none. */
#include "scheduler/store/history_store.h"

#include <string.h>

#include "scheduler/store/sql_columns_priv.h"
#include "scheduler/store/pg_priv.h"
#include "scheduler/store/sets_priv.h"
#include "scheduler/store/sql_rungs_priv.h"
#include "scheduler/store/values_priv.h"

enum { HISTORY_HEAD, HISTORY_TRIALS, HISTORY_SAMPLE, HISTORY_VALUES };

#define VALUES                                                                                     \
    "case when state = 'completed' then (select array_agg((metrics ->> u.name)::float8 order by "  \
    "u.place) from unnest($5::text[]) with ordinality as u(name, place)) end"
/* The value of the metric at a place of $2; null past its end. Through an unnested list, as in
 * VALUES, reading them took about twice as long (bench/RESULTS.md). */
#define VALUE(place) "(metrics ->> ($2::text[])[" place "])::float8"
/* The columns of the values follow; their number varies. */
#define TRIAL_FIELDS(FIRST, NEXT)                                                                  \
    FIRST(i64, number, "number")                                                                   \
    NEXT(trial_state, state, "state")                                                              \
    NEXT(bool, is_suggested, "origin = 'suggested'")                                               \
    NEXT(i64, finish_seq, "finish_seq")                                                            \
    NEXT(text, retries, "retries")                                                                 \
    NEXT(text, rungs, SQL_RUNGS("trial"))                                                          \
    NEXT(text, params, "params")
COLUMNS_READER(trial, struct history_trial, TRIAL_FIELDS)
#define TRIAL_COLUMNS COLUMNS_SQL(TRIAL_FIELDS)

#define HEAD_FIELDS(FIRST, NEXT)                                                                   \
    FIRST(sweep_state, state, "state")                                                             \
    NEXT(i64, total, "n_total")                                                                    \
    NEXT(i64, suggested, "n_suggested")                                                            \
    NEXT(i64, planned, "planned")                                                                  \
    NEXT(i64, finish_seq, "finish_seq")                                                            \
    NEXT(i64, search_mark, "search_mark")                                                          \
    NEXT(text, search_state, "search_state")                                                       \
    NEXT(text, document, "case when $2 then document end")
COLUMNS_WHOLE_ROW(struct history_head, HEAD_FIELDS)
COLUMNS_READER(head, struct history_head, HEAD_FIELDS)
#define HEAD_COLUMNS COLUMNS_SQL(HEAD_FIELDS)

static const struct stmt stmts[] = {
    [HISTORY_HEAD] = {"history_head", "select " HEAD_COLUMNS " from sweep where key = $1"},
    [HISTORY_TRIALS] = {"history_trials",
                        "select " TRIAL_COLUMNS ", " VALUES
                        " from trial where sweep_key = $1 and number >= $2 and "
                        "number < $4 union all select " TRIAL_COLUMNS ", " VALUES
                        " from trial where sweep_key = $1 "
                        "and finish_seq > $3 and number < $2 union all select " TRIAL_COLUMNS
                        ", " VALUES " from trial where sweep_key = $1 and retry_seq > $3 and "
                        "finish_seq is null and number < $2 union all select " TRIAL_COLUMNS
                        ", " VALUES " from trial where sweep_key = $1 and number < $2 and number "
                        "in (select number from rung_result where sweep_key = $1 and seq > $3 "
                        "union select number from rung_result where sweep_key = $1 and "
                        "promoted_seq > $3) order by 1"},
    [HISTORY_SAMPLE] = {"history_sample", "select " TRIAL_COLUMNS ", " VALUES
                                          " from trial where sweep_key = $1 and number >= $2 and "
                                          "number < $3 and number % $4 = 0 order by number"},
    [HISTORY_VALUES] =
        {"history_values",
         "select number, array[" VALUE("1") ", " VALUE("2") ", " VALUE("3") ", " VALUE(
             "4") "] from trial where sweep_key = $1 and finish_seq > $3 and "
                  "finish_seq <= $4 and state = 'completed' and feasible"},
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
    return read_head_row(&r, 0, a, ret, err);
}

static as_status read_row(struct reader *rd, struct arena *a, size_t n_metrics,
                          struct history_trial *ret, struct as_err *err)
{
    read_trial(rd, ret);
    as_status st = reader_check(rd, err);
    if (st != AS_OK)
        return st;
    ret->values = arena_alloc(a, n_metrics + 1, sizeof *ret->values);
    if (!ret->values)
        return as_fail_nomem(err);
    return read_values(rd, n_metrics, ret->values, NULL, err);
}

static as_status read_trials(const struct result *r, struct arena *a, size_t n_metrics,
                             struct history_trial **ret, size_t *ret_n, struct as_err *err)
{
    struct history_trial *rows = arena_alloc(a, (size_t)r->rows + 1, sizeof *rows);
    if (!rows)
        return as_fail_nomem(err);
    for (int i = 0; i < r->rows; i++) {
        struct reader rd;
        reader_init(&rd, r, i, a);
        as_status st = read_row(&rd, a, n_metrics, &rows[i], err);
        if (st != AS_OK)
            return st;
    }
    *ret = rows;
    *ret_n = (size_t)r->rows;
    return AS_OK;
}

as_status store_history_trials(struct tx *t, struct arena *a, int64_t sweep_key, int64_t known,
                               int64_t seq, int64_t total, const char *const *metrics,
                               size_t n_metrics, struct history_trial **ret, size_t *ret_n,
                               struct as_err *err)
{
    AS_AUTO(str_done) struct str names = {0};
    if (total - known > HISTORY_PART)
        return as_fail(err, AS_E_INTERNAL, "a statement reads at most %d trials", HISTORY_PART);
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
    return read_trials(&r, a, n_metrics, ret, ret_n, err);
}

as_status store_history_sample(struct tx *t, struct arena *a, int64_t sweep_key, int64_t from,
                               int64_t to, int64_t every, const char *const *metrics,
                               size_t n_metrics, struct history_trial **ret, size_t *ret_n,
                               struct as_err *err)
{
    AS_AUTO(str_done) struct str names = {0};
    if (to - from > HISTORY_PART)
        return as_fail(err, AS_E_INTERNAL, "a statement reads at most %d trials", HISTORY_PART);
    as_status st = array_of_names(&names, metrics, n_metrics, err);
    if (st != AS_OK)
        return st;
    RESULT_AUTO r = {0};
    st = tx_query(t, &stmts[HISTORY_SAMPLE],
                  ARGS(arg_i64(sweep_key), arg_i64(from), arg_i64(to), arg_i64(every),
                       arg_str(str_cstr(&names))),
                  &r, err);
    return st == AS_OK ? read_trials(&r, a, n_metrics, ret, ret_n, err) : st;
}

as_status store_history_values(struct tx *t, struct arena *a, int64_t sweep_key, int64_t after,
                               int64_t to, const char *const *metrics, size_t n_metrics,
                               int64_t **ret_numbers, double **ret_values, size_t *ret_n,
                               struct as_err *err)
{
    AS_AUTO(str_done) struct str names = {0};
    if (to - after > HISTORY_PART || n_metrics > HISTORY_VALUES_MAX)
        return as_fail(err, AS_E_INTERNAL, "a statement reads at most %d values of %d trials",
                       HISTORY_VALUES_MAX, HISTORY_PART);
    as_status st = array_of_names(&names, metrics, n_metrics, err);
    if (st != AS_OK)
        return st;
    RESULT_AUTO r = {0};
    st = tx_query(t, &stmts[HISTORY_VALUES],
                  ARGS(arg_i64(sweep_key), arg_str(str_cstr(&names)), arg_i64(after), arg_i64(to)),
                  &r, err);
    if (st != AS_OK)
        return st;
    int64_t *numbers = arena_alloc(a, (size_t)r.rows + 1, sizeof *numbers);
    double *values = arena_alloc(a, (size_t)r.rows * n_metrics + 1, sizeof *values);
    if (!numbers || !values)
        return as_fail_nomem(err);
    for (int i = 0; i < r.rows; i++) {
        struct reader rd;
        double all[HISTORY_VALUES_MAX];
        reader_init(&rd, &r, i, NULL);
        numbers[i] = read_i64(&rd);
        st = read_values(&rd, HISTORY_VALUES_MAX, all, NULL, err);
        if (st != AS_OK)
            return st;
        memcpy(values + (size_t)i * n_metrics, all, n_metrics * sizeof *values);
    }
    *ret_numbers = numbers;
    *ret_values = values;
    *ret_n = (size_t)r.rows;
    return AS_OK;
}
