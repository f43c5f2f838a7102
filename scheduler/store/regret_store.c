/* Table regret_check.
 *
 * Rows of scheduled counts are only inserted, in the order of their counts: the count that is due
 * stands in the sweep's row, and the statement that inserts a row moves it on. So of two servers
 * that computed the same bound one keeps it, and the other finds that it is kept.
 *
 * A row between two counts is inserted if none of so many trials is there, and goes when a later
 * row comes. The sweep's row is locked by a statement of its own before: a statement that waits for
 * the row reads the other tables as they were before it waited, without the row that another server
 * has written meanwhile. */
#include "scheduler/store/regret_store.h"

#include <math.h>

#include "scheduler/store/pg_priv.h"
#include "scheduler/store/refs_priv.h"
#include "scheduler/store/sets_priv.h"
#include "scheduler/store/sql_regret_priv.h"

enum {
    REGRET_DUE,
    REGRET_ENDED,
    REGRET_OPEN,
    REGRET_CLOSE,
    REGRET_NEXT,
    REGRET_LOCK,
    REGRET_LOCK_EACH,
    REGRET_ADD,
    REGRET_LIST,
    REGRET_LATEST
};

#define CHECK_FIELDS(FIRST, NEXT) SQL_REGRET_FIELDS(FIRST, NEXT, )
COLUMNS_WHOLE_ROW(struct regret_check, CHECK_FIELDS)
COLUMNS_READER(check, struct regret_check, CHECK_FIELDS)

#define LATEST_FIELDS(FIRST, NEXT)                                                                 \
    SQL_REGRET_FIELDS(FIRST, NEXT, check.)                                                         \
    NEXT(f64, stop_regret, "coalesce(s.stop_regret, 'NaN')")                                       \
    NEXT(f64, stop_relative, "coalesce(s.stop_relative, 'NaN')")
COLUMNS_WHOLE_ROW(struct regret_latest, LATEST_FIELDS)
COLUMNS_READER(latest, struct regret_latest, LATEST_FIELDS)

#define MAY_END "(coalesce(stop_regret, stop_relative) is not null)"
#define LIVES "state in ('running', 'paused', 'finishing')"
/* So many completed trials are in a bound. Reads one entry of an index. */
#define BOUNDED "coalesce((select max(completed) from regret_check where sweep_key = s.key), 0)"
/* Nothing is left to compute; $1: with fewer completed trials there is no bound. */
#define IS_OVER                                                                                    \
    "(s.regret_due is null or s.n_completed < least(s.regret_due, $1) or s.n_completed "           \
    "<= " BOUNDED ")"
#define DUE_COLUMNS                                                                                \
    "s.key, s.n_completed, coalesce(s.n_completed < s.regret_due, false), " MAY_END ", "

static const struct stmt stmts[] = {
    /* Of each sweep that lives it reads one row of sweep_count and one entry of regret_check. */
    [REGRET_DUE] = {"regret_due",
                    "select " DUE_COLUMNS "false from sweep s where s." LIVES
                    " and s.regret_due is not null and s.n_completed >= least(s.regret_due, $1) "
                    "and s.n_completed > " BOUNDED " order by " MAY_END
                    " desc, s.n_completed::float8 / s.regret_due desc, s.key "
                    "limit $2"},
    [REGRET_ENDED] = {"regret_ended", "select " DUE_COLUMNS IS_OVER
                                      " from sweep s where s.regret_open and not s." LIVES
                                      " order by s.key limit $2"},
    [REGRET_OPEN] = {"regret_open",
                     "update sweep_base set regret_open = true where key = $1 and not regret_open"},
    [REGRET_CLOSE] = {"regret_close",
                      "update sweep_base b set regret_open = false where key = any ($2::bigint[]) "
                      "and not " LIVES
                      " and exists (select from sweep s where s.key = b.key and " IS_OVER ")"},
    [REGRET_NEXT] = {"regret_next",
                     "select regret_due, n_completed, " MAY_END " from sweep where key = $1"},
    [REGRET_LOCK] = {"regret_lock", "select from sweep_base where key = $1 for no key update"},
    [REGRET_LOCK_EACH] = {"regret_lock_each", "select from sweep_base where key = any "
                                              "($1::bigint[]) order by key for no key update"},
    [REGRET_ADD] =
        {"regret_add",
         "with due as (update sweep_base set regret_due = $7 where key = $1 and regret_due = "
         "$2 and not exists (select from regret_check where sweep_key = $1 and completed >= $12) "
         "returning key, id, state, " MAY_END " as may_end), gone as (delete from regret_check "
         "where sweep_key in (select key from due) and not scheduled), kept as (insert into "
         "regret_check (sweep_key, completed, seq, bound, relative, enough, best, best_mean, "
         "best_deviation, best_noise, scheduled) select key, $12, $3, $4, $5, $6, $8, $9, $10, "
         "$11, $7 > $2 from due) select may_end, id, state from due"},
    [REGRET_LIST] = {"regret_list",
                     "select " COLUMNS_SQL(CHECK_FIELDS) " from regret_check r where "
                                                         "sweep_key = $1 order by completed"},
    [REGRET_LATEST] = {"regret_latest",
                       "select " COLUMNS_SQL(
                           LATEST_FIELDS) " from sweep s cross join lateral " SQL_REGRET_SCHEDULED
                                          " where s.key = $1"},
};
const struct stmt_set regret_stmts = {"regret", stmts, AS_ARRAY_LEN(stmts)};

static as_status read_due(struct tx *t, struct arena *a, const struct stmt *stmt, int64_t first,
                          struct regret_due **ret, size_t *ret_n, struct as_err *err)
{
    RESULT_AUTO r = {0};
    as_status st = tx_query(t, stmt, ARGS(arg_i64(first), arg_i64(REGRET_DUE_MAX)), &r, err);
    struct regret_due *rows = arena_alloc(a, (size_t)r.rows + 1, sizeof *rows);
    if (st == AS_OK && !rows)
        st = as_fail_nomem(err);
    for (int i = 0; i < r.rows && st == AS_OK; i++) {
        struct reader rd;
        reader_init(&rd, &r, i, NULL);
        rows[i].key = read_i64(&rd);
        rows[i].completed = read_i64(&rd);
        rows[i].is_between = read_bool(&rd);
        rows[i].may_end = read_bool(&rd);
        rows[i].is_over = read_bool(&rd);
        rows[i].has_ended = stmt == &stmts[REGRET_ENDED];
        st = reader_check(&rd, err);
    }
    if (st != AS_OK)
        return st;
    *ret = rows;
    *ret_n = (size_t)r.rows;
    return AS_OK;
}

as_status store_regret_due(struct tx *t, struct arena *a, int64_t first, struct regret_due **ret,
                           size_t *ret_n, struct as_err *err)
{
    return read_due(t, a, &stmts[REGRET_DUE], first, ret, ret_n, err);
}

as_status store_regret_ended(struct tx *t, struct arena *a, int64_t first, struct regret_due **ret,
                             size_t *ret_n, struct as_err *err)
{
    return read_due(t, a, &stmts[REGRET_ENDED], first, ret, ret_n, err);
}

as_status store_regret_open(struct tx *t, int64_t sweep_key, struct as_err *err)
{
    return tx_exec(t, &stmts[REGRET_OPEN], ARGS(arg_i64(sweep_key)), NULL, err);
}

/* The next statements see what those who held the rows have written. */
static as_status lock_sweeps(struct tx *t, const struct stmt *stmt, struct arg which,
                             struct as_err *err)
{
    RESULT_AUTO r = {0};
    return tx_query(t, stmt, ARGS(which), &r, err);
}

as_status store_regret_close(struct tx *t, int64_t first, const int64_t *keys, size_t n,
                             struct as_err *err)
{
    ARRAYS_AUTO x = {0};
    arrays_open(&x);
    for (size_t i = 0; i < n; i++)
        array_i64(&x.c[0], keys[i]);
    as_status st = arrays_close(&x, err);
    if (st == AS_OK)
        st = lock_sweeps(t, &stmts[REGRET_LOCK_EACH], arg_array(&x, 0), err);
    if (st != AS_OK)
        return st;
    return tx_exec(t, &stmts[REGRET_CLOSE], ARGS(arg_i64(first), arg_array(&x, 0)), NULL, err);
}

as_status store_regret_next(struct tx *t, int64_t sweep_key, struct regret_next *ret,
                            struct as_err *err)
{
    RESULT_AUTO r = {0};
    struct reader rd;
    as_status st = tx_query(t, &stmts[REGRET_NEXT], ARGS(arg_i64(sweep_key)), &r, err);
    if (st != AS_OK)
        return st;
    if (r.rows == 0)
        return as_fail(err, AS_E_NOT_FOUND, "the sweep was deleted");
    reader_init(&rd, &r, 0, NULL);
    ret->due = read_i64(&rd);
    ret->completed = read_i64(&rd);
    ret->may_end = read_bool(&rd);
    return reader_check(&rd, err);
}

as_status store_regret_add(struct tx *t, struct arena *a, int64_t sweep_key, int64_t due,
                           const struct regret_check *x, int64_t next, struct regret_added *ret,
                           struct as_err *err)
{
    RESULT_AUTO r = {0};
    struct reader rd;
    as_status st = lock_sweeps(t, &stmts[REGRET_LOCK], arg_i64(sweep_key), err);
    if (st != AS_OK)
        return st;
    st = tx_query(t, &stmts[REGRET_ADD],
                  ARGS(arg_i64(sweep_key), arg_i64(due), arg_i64(x->seq),
                       arg_f64_or_null(!isnan(x->bound), x->bound),
                       arg_f64_or_null(!isnan(x->relative), x->relative), arg_bool(x->enough),
                       arg_i64(next), arg_i64_or_null(x->has_best, x->best),
                       arg_f64_or_null(x->has_best, x->best_mean),
                       arg_f64_or_null(x->has_best, x->best_deviation),
                       arg_f64_or_null(x->has_best, x->best_noise), arg_i64(x->completed)),
                  &r, err);
    *ret = (struct regret_added){.is_kept = r.rows > 0};
    if (st != AS_OK || r.rows == 0)
        return st;
    reader_init(&rd, &r, 0, a);
    ret->may_end = read_bool(&rd);
    ret->sweep = read_str(&rd);
    ret->state = read_str(&rd);
    return reader_check(&rd, err);
}

as_status store_regret_list(struct tx *t, struct arena *a, int64_t sweep_key,
                            struct regret_check_list *ret, struct as_err *err)
{
    RESULT_AUTO r = {0};
    as_status st = tx_query(t, &stmts[REGRET_LIST], ARGS(arg_i64(sweep_key)), &r, err);
    if (st != AS_OK)
        return st;
    ret->n = (size_t)r.rows;
    return read_check_rows(&r, r.rows, a, &ret->rows, err);
}

as_status store_regret_latest(struct tx *t, int64_t sweep_key, struct regret_latest *ret,
                              struct as_err *err)
{
    RESULT_AUTO r = {0};
    as_status st = tx_query(t, &stmts[REGRET_LATEST], ARGS(arg_i64(sweep_key)), &r, err);
    if (st != AS_OK)
        return st;
    if (r.rows == 0)
        return as_fail(err, AS_E_NOT_FOUND, "the sweep has no bound of what is left to gain");
    return read_latest_row(&r, 0, NULL, ret, err);
}
