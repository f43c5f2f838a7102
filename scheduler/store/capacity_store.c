/* How many trials sweeps may hand out now. All of it is decided from the counts in the rows of
 * sweeps, which triggers of the trials maintain: no trial is read. */
#include "scheduler/store/capacity_store.h"

#include "base/str.h"
#include "scheduler/store/sql_columns_priv.h"
#include "scheduler/store/has_work_priv.h"
#include "scheduler/store/pg_priv.h"
#include "scheduler/store/sets_priv.h"

enum { ROOM_PENDING, ROOM_ASKABLE };

/* For one sweep u.key. ROOM_PENDING returns its two kinds of rows with the same columns. */
#define ROOM_FIELDS(FIRST, NEXT)                                                                   \
    FIRST(i64, key, "u.key")                                                                       \
    NEXT(i64, queued, "n_queued")                                                                  \
    NEXT(i64, room, "case when " HAS_WORK_OF("s.") " then " ROOM_OF("s.") " else 0 end")           \
    NEXT(bool, learns, "learns")                                                                   \
    NEXT(bool, has_ended, "coalesce(state not in ('running', 'paused'), true)")
COLUMNS_WHOLE_ROW(struct sweep_capacity, ROOM_FIELDS)
COLUMNS_READER(room, struct sweep_capacity, ROOM_FIELDS)
#define ROOM_COLUMNS COLUMNS_SQL(ROOM_FIELDS)

static const struct stmt stmts[] = {
    /* Sweeps that do not learn are one sum, because any server can draw their trials at once.
     * For the others the caller asks the suggester what is ready, so each has its own row. Sweeps
     * whose trials have ranks are in store_gathering_pending(), except one that learns and whose
     * gang has its seats: it waits for a suggestion. */
    [ROOM_PENDING] = {"room_pending",
                      "select 0::bigint, 0::bigint, coalesce(sum(" ROOM "), 0), false, false from "
                      "sweep where for_runners and not learns and not gang and " HAS_WORK
                      " union all select key, n_queued, " ROOM ", true, false from sweep where "
                      "for_runners and learns and " HAS_WORK " and (not gang or exists (select "
                      "from gathering g where g.sweep_key = sweep.key and (select count(*) from "
                      "gathering_seat) >= " RANKS_NEXT_OF("sweep.") "))"},
    [ROOM_ASKABLE] = {"room_askable",
                      "select " ROOM_COLUMNS " from "
                      "unnest($1::bigint[]) with ordinality as u(key, place) left join sweep s on "
                      "s.key = u.key order by u.place"},
};
const struct stmt_set capacity_stmts = {"room", stmts, AS_ARRAY_LEN(stmts)};

as_status store_capacity_pending(struct tx *t, struct arena *a, struct sweep_capacity **ret,
                                 size_t *ret_n, struct as_err *err)
{
    RESULT_AUTO r = {0};
    as_status st = tx_query(t, &stmts[ROOM_PENDING], NULL, &r, err);
    if (st != AS_OK)
        return st;
    *ret_n = (size_t)r.rows;
    return read_room_rows(&r, r.rows, a, ret, err);
}

as_status store_capacity_askable(struct tx *t, struct arena *a, const int64_t *keys, size_t n,
                                 struct sweep_capacity **ret, struct as_err *err)
{
    AS_AUTO(str_done) struct str list = {0};
    array_open(&list);
    for (size_t i = 0; i < n; i++)
        array_i64(&list, keys[i]);
    array_close(&list);
    as_status st = str_check(&list, err);
    if (st != AS_OK)
        return st;
    RESULT_AUTO r = {0};
    st = tx_query(t, &stmts[ROOM_ASKABLE], ARGS(arg_str(str_cstr(&list))), &r, err);
    if (st != AS_OK)
        return st;
    if ((size_t)r.rows != n)
        return as_fail(err, AS_E_INTERNAL, "%d answers for %zu sweeps", r.rows, n);
    return read_room_rows(&r, r.rows, a, ret, err);
}
