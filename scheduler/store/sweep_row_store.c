/* What the API shows of sweeps: one, and pages of them.
 *
 * A row is that of the view sweep, with its best trial, the latest bound of what is left to gain,
 * and a note where no live runner could hold a trial. */
#include "scheduler/store/sweep_row_store.h"

#include "scheduler/store/has_work_priv.h"
#include "scheduler/store/page_fill_priv.h"
#include "scheduler/store/pg_priv.h"
#include "scheduler/store/sets_priv.h"
#include "scheduler/store/sql_columns_priv.h"
#include "scheduler/store/sql_counts_priv.h"
#include "scheduler/store/sql_regret_priv.h"
#include "scheduler/store/sweep_store_priv.h"

enum { SWEEP_GET, SWEEP_LIST };

/* The best trial by its value, of which only the branch of the sweep's goal is executed, the latest
 * bound of what is left to gain, and the best trial by a model that was kept with it. */
#define SWEEP_FROM                                                                                 \
    " from sweep s left join lateral ((select number, value, params from trial where sweep_key = " \
    "s.key and result is not null and s.goal = 'minimize' order by result, number limit 1) union " \
    "all (select number, value, params from trial where sweep_key = s.key and result is not null " \
    "and s.goal = 'maximize' order by result desc, number limit 1)) b on true left join "          \
    "lateral " SQL_REGRET_LATEST                                                                   \
    " on true left join lateral (select number, value, params from trial where sweep_key = s.key " \
    "and number = r.best and result is not null) m on true "

/* Why no live runner is large enough for a trial of the sweep s; null if one is, or if none is
 * asked for. Without any live runner there is nothing to compare with. */
#define LIVE_RUNNER "r.state = 'live' and r.expires_at > clock_timestamp()"
#define LARGEST(what) "(select max(" what ") from runner r where " LIVE_RUNNER ")"
#define USABLE_GPUS "json_array_length(r.gpus) - json_array_length(r.gpu_faults)"
#define TOO_LARGE(need, what, unit)                                                                \
    "when " need " > " LARGEST(what) " then format('no runner has %s " unit                        \
                                     " (largest: %s)', " need ", " LARGEST(what) ") "
#define COULD_HOLD "seats_of_runners(s.gpus, s.cpus, s.memory_bytes)"
/* One condition on each line. */
/* clang-format off */
#define SWEEP_NOTE                                                                                 \
    "case when s.state = 'running' and s.for_runners "                                             \
    "and exists (select from runner r where " LIVE_RUNNER ") then "                                \
    "case when greatest(s.gpus, s.cpus, s.memory_bytes) > 0 "                                      \
    "and not exists (select from runner r where " LIVE_RUNNER " and r.cpus >= s.cpus "             \
    "and r.memory_bytes >= s.memory_bytes and " USABLE_GPUS " >= s.gpus) "                         \
    "then case " TOO_LARGE("s.cpus", "r.cpus", "cpus")                                             \
    TOO_LARGE("s.memory_bytes", "r.memory_bytes", "bytes of memory")                               \
    TOO_LARGE("s.gpus", USABLE_GPUS, "GPUs")                                                       \
    "else format('no runner has %s cpus, %s bytes of memory and %s GPUs together', s.cpus, "       \
    "s.memory_bytes, s.gpus) end "                                                                 \
    "when s.gang and s.ranks > 1 and s.n_running = 0 "                                             \
    "and " COULD_HOLD " < " RANKS_LEAST_OF("s.") " "                                                \
    "then format('a trial has %s ranks, and the runners have slots for %s', "                      \
    RANKS_LEAST_OF("s.") ", "                                                                       \
    COULD_HOLD ") end end"
/* clang-format on */

#define SWEEP_FIELDS_WITH(FIRST, NEXT, DOCUMENT, REMARKS)                                          \
    FIRST(text, id, "s.id")                                                                        \
    NEXT(text, name, "s.name")                                                                     \
    NEXT(sweep_state, state, "s.state")                                                            \
    NEXT(text, reason, "s.reason")                                                                 \
    NEXT(text, document, DOCUMENT)                                                                 \
    NEXT(text, objectives, "s.objectives")                                                         \
    NEXT(text, outcomes, "s.outcomes")                                                             \
    NEXT(text, metric, "s.metric")                                                                 \
    NEXT(bool, maximize, "s.goal = 'maximize'")                                                    \
    NEXT(text, method, "s.method")                                                                 \
    NEXT(i64, seed, "s.seed")                                                                      \
    NEXT(i64, planned, "s.planned")                                                                \
    NEXT(i64, known, "s.n_known")                                                                  \
    NEXT(bool, for_runners, "s.for_runners")                                                       \
    NEXT(text, tags, "array_to_json(s.tags)")                                                      \
    NEXT(text, remarks, REMARKS)                                                                   \
    NEXT(i64, priority, "s.priority")                                                              \
    NEXT(text, note, SWEEP_NOTE)                                                                   \
    SQL_COUNT_FIELDS(NEXT)                                                                         \
    NEXT(bool, has_best, "b.number is not null")                                                   \
    NEXT(i64, best_number, "coalesce(m.number, b.number)")                                         \
    NEXT(f64, best_value, "coalesce(m.value, b.value)")                                            \
    NEXT(text, best_params, "coalesce(m.params, b.params)")                                        \
    NEXT(bool, best_is_by_model, "m.number is not null")                                           \
    NEXT(i64, told_number, "b.number")                                                             \
    NEXT(f64, told_value, "b.value")                                                               \
    NEXT(bool, has_regret, "r.completed is not null")                                              \
    SQL_REGRET_NEXT_FIELDS(NEXT, regret.)                                                          \
    NEXT(i64, created_ms, SQL_MS("s.created_at"))                                                  \
    NEXT(i64, started_ms, SQL_MS("s.started_at"))                                                  \
    NEXT(i64, finished_ms, SQL_MS("s.finished_at"))
#define SWEEP_FIELDS(FIRST, NEXT) SWEEP_FIELDS_WITH(FIRST, NEXT, "s.document", "s.remarks")
COLUMNS_WHOLE_ROW(struct sweep_row, SWEEP_FIELDS)
COLUMNS_READER(sweep, struct sweep_row, SWEEP_FIELDS)
#define SWEEP_COLUMNS COLUMNS_SQL(SWEEP_FIELDS)
/* In a list: $4 says whether documents are wanted. */
#define LISTED_FIELDS(FIRST, NEXT)                                                                 \
    SWEEP_FIELDS_WITH(FIRST, NEXT, "case when $4::boolean then s.document end",                    \
                      "case when $4::boolean then s.remarks end")
#define LISTED_COLUMNS COLUMNS_SQL(LISTED_FIELDS)

static const struct stmt stmts[] = {
    [SWEEP_GET] = {"sweep_get", "select " SWEEP_COLUMNS SWEEP_FROM "where s.key = $1"},
    /* Tags are texts, and a filter compares whole ones: `key=value` is a habit without a meaning
     * here. They are a column with an index, because documents may have a megabyte each. */
    [SWEEP_LIST] =
        {"sweep_list",
         "select " LISTED_COLUMNS ", s.key" SWEEP_FROM
         "where ($1::text is null or s.state = $1) and ($2::bigint = 0 or s.key < $2) "
         "and ($5::text is null or s.tags @> array[$5]) and ($6::text is null or s.key in "
         "(select u.sweep_key from sweep_dataset u where u.dataset = $6)) order by "
         "s.key desc limit $3"},
};
const struct stmt_set sweep_row_stmts = {"sweep_row", stmts, AS_ARRAY_LEN(stmts)};

as_status store_sweep_get(struct tx *t, struct arena *a, int64_t key, struct sweep_row *ret,
                          struct as_err *err)
{
    RESULT_AUTO r = {0};
    as_status st = sweep_query(t, &stmts[SWEEP_GET], key, &r, err);
    return st == AS_OK ? read_sweep_row(&r, 0, a, ret, err) : st;
}

as_status store_sweep_list(struct tx *t, struct arena *a, const struct sweep_list_query *q,
                           struct sweep_row **ret, size_t *ret_n, int64_t *ret_next,
                           struct as_err *err)
{
    struct sweep_row *rows = arena_alloc(a, (size_t)q->size, sizeof *rows);
    struct page_fill f = page_fill_start(q->size);
    int64_t before = q->before;
    size_t n = 0;
    if (!rows)
        return as_fail_nomem(err);
    for (int64_t ask; (ask = page_fill_next(&f)) > 0;) {
        RESULT_AUTO r = {0};
        as_status st =
            tx_query(t, &stmts[SWEEP_LIST],
                     ARGS(arg_str(q->state), arg_i64(before), arg_i64(ask + 1),
                          arg_bool(q->with_documents), arg_str(q->tag), arg_str(q->dataset)),
                     &r, err);
        if (st != AS_OK)
            return st;
        int take = page_fill_take(&f, &r, ask);
        for (int i = 0; i < take; i++) {
            if ((st = read_sweep_row(&r, i, a, &rows[n++], err)) != AS_OK)
                return st;
            before = result_i64(&r, i, COLUMNS_COUNT(SWEEP_FIELDS));
        }
    }
    *ret = rows;
    *ret_n = n;
    *ret_next = f.has_more ? before : 0;
    return AS_OK;
}
