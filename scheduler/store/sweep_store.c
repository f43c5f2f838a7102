/* Sweeps: how they are added, found and deleted, and their documents.
 *
 * `sweep` is a view of sweep_base, which stands still while trials run, and sweep_count, with the
 * counts of trials, which triggers maintain (decision 5020). What needs no counts reads sweep_base.
 *
 * The other files about sweeps: sweep_head_store has locks, and the columns that decisions need,
 * sweep_row_store what the API shows, sweep_change_store what changes of a sweep that exists. */
#include "scheduler/store/sweep_store.h"

#include <math.h>

#include "scheduler/store/pg_priv.h"
#include "scheduler/store/sets_priv.h"
#include "scheduler/store/sql_columns_priv.h"
#include "scheduler/store/sql_counts_priv.h"
#include "scheduler/store/sweep_store_priv.h"

enum {
    SWEEP_ADD,
    SWEEP_ADD_ENSEMBLE,
    SWEEP_ADD_DATASET,
    SWEEP_DATASETS,
    SWEEP_KEY,
    SWEEP_DOCUMENT,
    SWEEP_STANDING,
    SWEEP_DOCUMENTS,
    SWEEP_SEARCH,
    SWEEP_DELETE,
    SWEEP_DELETE_PATIENCE,
    SWEEP_DELETE_POINTS,
    SWEEP_DELETE_EVENTS
};

#define MAKING_FIELDS(FIRST, NEXT)                                                                 \
    FIRST(bool, learns, "learns")                                                                  \
    NEXT(i64, max_group, "max_group")                                                              \
    NEXT(text, document, "case when not learns or max_group is not null then document end")
COLUMNS_WHOLE_ROW(struct sweep_making, MAKING_FIELDS)
COLUMNS_READER(making, struct sweep_making, MAKING_FIELDS)
#define MAKING_COLUMNS COLUMNS_SQL(MAKING_FIELDS)

static const struct stmt stmts[] = {
    [SWEEP_ADD] =
        {"sweep_add",
         "with made as (insert into sweep_base (id, name, document, metric, goal, method, seed, "
         "max_concurrent, max_failed, max_restarts, trial_timeout_ms, wall_time_ms, "
         "grace_ms, gpus, ensemble_size, objectives, outcomes, learns, for_runners, state, "
         "max_group, group_given, ranks, min_ranks, elastic, launch, gang, target, "
         "keeps_timed_out, priority, cpus, memory_bytes, exclusive, ensemble_method, "
         "ensemble_non_negative, rungs, rungs_late, max_steps, rungs_strict, stop_regret, "
         "stop_relative, stop_min_trials, regret_due, population, most, "
         "ensemble_calibrate, ranks_by, least_ranks, shrinks, tags) values "
         "($1, $2, $3, $4, $5, $6, $7, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, "
         "$20, $21, $22, $23, $24, $25, $26, $27, $28, $29, $30, $31, $32, $33, $34, "
         "coalesce($35, 'greedy'), $36, $37, $38, $39, $40, $41, $42, $43, $44, $45, $46, "
         "$47, $48, $49, $50, array(select "
         "json_array_elements_text($3::json "
         "-> 'tags'))) on "
         "conflict (id) do nothing returning key, state) insert into sweep_count (sweep_key, "
         "is_running, is_live, planned, turns) select key, state = 'running', state in ('running', "
         "'paused'), $8, greatest(0, " SQL_MOST_TURNS " - 1) from made returning sweep_key"},
    [SWEEP_ADD_ENSEMBLE] = {"sweep_add_ensemble", "insert into ensemble (sweep_key) values ($1)"},
    [SWEEP_ADD_DATASET] =
        {"sweep_add_dataset",
         "insert into sweep_dataset (sweep_key, dataset, sha256, n_rows, n_features) "
         "select $1, name, sha256, n_rows, n_features from dataset where name = $2 "
         "on conflict do nothing"},
    [SWEEP_DATASETS] = {"sweep_datasets",
                        "select dataset from sweep_dataset where sweep_key = $1 order by dataset"},
    [SWEEP_KEY] = {"sweep_key", "select key from sweep_base where id = $1"},
    [SWEEP_DOCUMENT] = {"sweep_document", "select document from sweep_base where key = $1"},
    [SWEEP_STANDING] = {"sweep_standing", "select state, document from sweep_base where key = $1"},
    [SWEEP_DOCUMENTS] =
        {"sweep_documents",
         "select u.place - 1, h.document from unnest($1::bigint[]) with ordinality as u(key, "
         "place) cross join lateral (select document from sweep_base where key = u.key limit 1) h"},
    [SWEEP_SEARCH] = {"sweep_search", "select " MAKING_COLUMNS " from sweep_base where key = $1"},
    [SWEEP_DELETE] = {"sweep_delete", "delete from sweep_base where key = $1"},
    [SWEEP_DELETE_PATIENCE] = {"sweep_delete_patience",
                               "select set_config('statement_timeout', '300s', true)"},
    [SWEEP_DELETE_POINTS] = {"sweep_delete_points",
                             "delete from measurement_chunk where sweep_key = $1"},
    [SWEEP_DELETE_EVENTS] =
        {"sweep_delete_events",
         "with sets as (delete from event_set where sweep_key = $1) delete from "
         "event where sweep_key = $1"},
};
const struct stmt_set sweep_stmts = {"sweep", stmts, AS_ARRAY_LEN(stmts)};

as_status sweep_query(struct tx *t, const struct stmt *s, int64_t key, struct result *ret,
                      struct as_err *err)
{
    as_status st = tx_query(t, s, ARGS(arg_i64(key)), ret, err);
    if (st != AS_OK)
        return st;
    if (ret->rows == 0)
        return as_fail(err, AS_E_NOT_FOUND, "the sweep was deleted");
    return AS_OK;
}

as_status store_sweep_add(struct tx *t, const struct sweep_new *s, int64_t *ret_key,
                          struct as_err *err)
{
    AS_AUTO(str_done) struct str rungs = {0};
    RESULT_AUTO r = {0};
    array_open(&rungs);
    for (size_t i = 0; i < s->n_rungs; i++)
        array_i64(&rungs, s->rungs[i]);
    array_close(&rungs);
    as_status st = str_check(&rungs, err);
    if (st != AS_OK)
        return st;
    st = tx_query(
        t, &stmts[SWEEP_ADD],
        ARGS(arg_str(s->id), arg_str(s->name), arg_str(s->document), arg_str(s->metric),
             arg_str(s->maximize ? "maximize" : "minimize"), arg_str(s->method), arg_i64(s->seed),
             arg_i64(s->planned), arg_i64_or_null(s->max_concurrent > 0, s->max_concurrent),
             arg_i64_or_null(s->max_failed >= 0, s->max_failed), arg_i64(s->max_restarts),
             arg_i64_or_null(s->trial_timeout_ms > 0, s->trial_timeout_ms),
             arg_i64_or_null(s->wall_time_ms > 0, s->wall_time_ms), arg_i64(s->grace_ms),
             arg_i64(s->gpus), arg_i64(s->ensemble_size), arg_str(s->objectives),
             arg_str(s->outcomes), arg_bool(s->learns), arg_bool(s->for_runners),
             arg_str(sweep_state_format(s->is_paused ? SWEEP_PAUSED : SWEEP_RUNNING)),
             arg_i64_or_null(s->max_group > 0, s->max_group), arg_bool(s->group_given),
             arg_i64(s->ranks), arg_i64(s->min_ranks), arg_bool(s->elastic), arg_str(s->launch),
             arg_bool(s->gang), arg_f64_or_null(!isnan(s->target), s->target),
             arg_bool(s->keeps_timed_out), arg_i64(s->priority), arg_i64(s->cpus),
             arg_i64(s->memory_bytes), arg_bool(s->exclusive), arg_str(s->ensemble_method),
             arg_bool(s->ensemble_non_negative), arg_str(s->n_rungs > 0 ? str_cstr(&rungs) : NULL),
             arg_bool(s->rungs_late), arg_i64_or_null(s->max_steps > 0, s->max_steps),
             arg_bool(s->rungs_strict),
             arg_f64_or_null(!isnan(s->stop_when.regret), s->stop_when.regret),
             arg_f64_or_null(!isnan(s->stop_when.relative), s->stop_when.relative),
             arg_i64(s->stop_when.min_trials), arg_i64_or_null(s->regret_due > 0, s->regret_due),
             arg_i64_or_null(s->population > 0, s->population),
             arg_i64_or_null(s->population > 0, s->most), arg_bool(s->ensemble_calibrate),
             arg_str(s->ranks_by), arg_i64_or_null(s->ranks_by != NULL, s->least_ranks),
             arg_bool(s->shrinks)),
        &r, err);
    if (st != AS_OK || r.rows == 0) {
        *ret_key = 0;
        return st;
    }
    *ret_key = result_i64(&r, 0, 0);
    return tx_exec(t, &stmts[SWEEP_ADD_ENSEMBLE], ARGS(arg_i64(*ret_key)), NULL, err);
}

as_status store_sweep_add_dataset(struct tx *t, int64_t key, const char *dataset,
                                  struct as_err *err)
{
    return tx_exec(t, &stmts[SWEEP_ADD_DATASET], ARGS(arg_i64(key), arg_str(dataset)), NULL, err);
}

as_status store_sweep_datasets(struct tx *t, struct arena *a, int64_t key, const char ***ret,
                               size_t *ret_n, struct as_err *err)
{
    RESULT_AUTO r = {0};
    as_status st = tx_query(t, &stmts[SWEEP_DATASETS], ARGS(arg_i64(key)), &r, err);
    if (st != AS_OK)
        return st;
    const char **names = arena_alloc(a, (size_t)r.rows + 1, sizeof *names);
    if (!names)
        return as_fail_nomem(err);
    for (int i = 0; i < r.rows; i++) {
        struct reader rd;
        reader_init(&rd, &r, i, a);
        names[i] = read_str(&rd);
        if ((st = reader_check(&rd, err)) != AS_OK)
            return st;
    }
    *ret = names;
    *ret_n = (size_t)r.rows;
    return AS_OK;
}

as_status store_sweep_key(struct tx *t, const char *id, int64_t *ret, struct as_err *err)
{
    RESULT_AUTO r = {0};
    as_status st = tx_query(t, &stmts[SWEEP_KEY], ARGS(arg_str(id)), &r, err);
    if (st != AS_OK)
        return st;
    if (r.rows == 0)
        return as_fail(err, AS_E_NOT_FOUND, "there is no sweep '%.80s'", id);
    *ret = result_i64(&r, 0, 0);
    return AS_OK;
}

as_status store_sweep_document(struct tx *t, struct arena *a, int64_t key, const char **ret,
                               struct as_err *err)
{
    RESULT_AUTO r = {0};
    struct reader rd;
    as_status st = sweep_query(t, &stmts[SWEEP_DOCUMENT], key, &r, err);
    if (st != AS_OK)
        return st;
    reader_init(&rd, &r, 0, a);
    *ret = read_str(&rd);
    return reader_check(&rd, err);
}

as_status store_sweep_standing(struct tx *t, struct arena *a, int64_t key, sweep_state *ret_state,
                               const char **ret_document, struct as_err *err)
{
    RESULT_AUTO r = {0};
    struct reader rd;
    as_status st = sweep_query(t, &stmts[SWEEP_STANDING], key, &r, err);
    if (st != AS_OK)
        return st;
    reader_init(&rd, &r, 0, a);
    st = sweep_state_parse(read_view(&rd), ret_state, err);
    *ret_document = read_str(&rd);
    return st == AS_OK ? reader_check(&rd, err) : st;
}

as_status store_sweep_documents(struct tx *t, struct arena *a, const int64_t *keys, size_t n,
                                const char **ret, struct as_err *err)
{
    ARRAYS_AUTO x = {0};
    RESULT_AUTO r = {0};
    arrays_open(&x);
    for (size_t i = 0; i < n; i++) {
        ret[i] = NULL;
        array_i64(&x.c[0], keys[i]);
    }
    as_status st = arrays_close(&x, err);
    if (st == AS_OK)
        st = tx_query(t, &stmts[SWEEP_DOCUMENTS], ARGS(arg_array(&x, 0)), &r, err);
    for (int i = 0; i < r.rows && st == AS_OK; i++) {
        struct reader rd;
        reader_init(&rd, &r, i, a);
        int64_t place = read_i64(&rd);
        ret[place] = read_str(&rd);
        st = reader_check(&rd, err);
    }
    return st;
}

as_status store_sweep_search(struct tx *t, struct arena *a, int64_t key, struct sweep_making *ret,
                             struct as_err *err)
{
    RESULT_AUTO r = {0};
    as_status st = sweep_query(t, &stmts[SWEEP_SEARCH], key, &r, err);
    return st == AS_OK ? read_making_row(&r, 0, a, ret, err) : st;
}

as_status store_sweep_delete(struct tx *t, int64_t key, struct as_err *err)
{
    as_status st = tx_exec(t, &stmts[SWEEP_DELETE_PATIENCE], NULL, NULL, err);
    if (st != AS_OK)
        return st;
    if ((st = tx_exec(t, &stmts[SWEEP_DELETE_POINTS], ARGS(arg_i64(key)), NULL, err)) != AS_OK)
        return st;
    if ((st = tx_exec(t, &stmts[SWEEP_DELETE_EVENTS], ARGS(arg_i64(key)), NULL, err)) != AS_OK)
        return st;
    return tx_exec(t, &stmts[SWEEP_DELETE], ARGS(arg_i64(key)), NULL, err);
}
