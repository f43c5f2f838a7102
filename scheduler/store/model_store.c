/* Tables model, model_version and model_alias.
 *
 * The row of a model is its lock and its counter: a version takes the number after `newest`, and a
 * model that was deleted keeps its row, so that a reference such as digits@3 never means two
 * things. A version refers to its content by a foreign key (a blob that is used is not removed) and
 * to no sweep: what it says about its origin is text of its own. */
#include "scheduler/store/model_store.h"

#include "scheduler/store/sql_columns_priv.h"
#include "scheduler/store/page_fill_priv.h"
#include "scheduler/store/pg_priv.h"
#include "scheduler/store/sets_priv.h"

enum {
    MODEL_MAKE,
    MODEL_LOCK,
    MODEL_CHANGED,
    MODEL_GET,
    MODEL_LIST,
    MODEL_CLEAR_ALIASES,
    MODEL_CLEAR_VERSIONS,
    MODEL_GONE,
    MODEL_VERSION_ADD,
    MODEL_VERSION_OF,
    MODEL_VERSION_GET,
    MODEL_VERSION_LIST,
    MODEL_VERSION_LEARNED,
    MODEL_VERSION_DELETE,
    MODEL_DEFAULT,
    MODEL_ALIAS_GET,
    MODEL_ALIAS_SET,
    MODEL_ALIAS_DELETE,
    MODEL_DATASET
};

#define SQL_DEFAULT                                                                                \
    "coalesce((select c.version from model_alias c where c.model = m.name and c.alias = "          \
    "'champion'), (select max(n.version) from model_version n where n.model = m.name))"

#define MODEL_FIELDS(FIRST, NEXT)                                                                  \
    FIRST(text, name, "m.name")                                                                    \
    NEXT(i64, versions, "(select count(*) from model_version v where v.model = m.name)")           \
    NEXT(i64, default_version, SQL_DEFAULT)                                                        \
    NEXT(text, aliases,                                                                            \
         "(select coalesce(json_object_agg(a.alias, a.version order by a.alias), '{}') from "      \
         "model_alias a where a.model = m.name)")                                                  \
    NEXT(i64, created_ms, SQL_MS("m.created_at"))                                                  \
    NEXT(i64, changed_ms, SQL_MS("m.changed_at"))
COLUMNS_WHOLE_ROW(struct model_row, MODEL_FIELDS)
COLUMNS_READER(model, struct model_row, MODEL_FIELDS)
#define MODEL_COLUMNS COLUMNS_SQL(MODEL_FIELDS)

/* LONG(sql): the columns that a list leaves out. */
#define VERSION_FIELDS_WITH(FIRST, NEXT, LONG)                                                     \
    FIRST(text, model, "v.model")                                                                  \
    NEXT(i64, version, "v.version")                                                                \
    NEXT(text, sha256, "v.sha256")                                                                 \
    NEXT(i64, size, "v.size")                                                                      \
    NEXT(text, kind, "v.kind")                                                                     \
    NEXT(text, task, "v.task")                                                                     \
    NEXT(text, input, "v.input")                                                                   \
    NEXT(text, inputs, LONG("v.inputs"))                                                           \
    NEXT(text, outputs, LONG("v.outputs"))                                                         \
    NEXT(text, members, LONG("v.members"))                                                         \
    NEXT(text, metrics, "v.metrics")                                                               \
    NEXT(text, measured_on, "v.measured_on")                                                       \
    NEXT(text, lineage, LONG("v.lineage"))                                                         \
    NEXT(text, sweep, "v.lineage ->> 'sweep'")                                                     \
    NEXT(text, sweep_id, "v.lineage ->> 'sweep_id'")                                               \
    NEXT(text, trials,                                                                             \
         "(select coalesce(json_agg(e.member -> 'trial' order by e.place), '[]') from "            \
         "json_array_elements(v.members) with ordinality as e(member, place) where e.member ->> "  \
         "'sweep' is null)")                                                                       \
    NEXT(text, aliases,                                                                            \
         "(select coalesce(json_agg(a.alias order by a.alias), '[]') from model_alias a where "    \
         "a.model = v.model and a.version = v.version)")                                           \
    NEXT(text, created_by, "v.created_by")                                                         \
    NEXT(i64, created_ms, SQL_MS("v.created_at"))
#define WHOLE(sql) sql
#define LEFT_OUT(sql) "null"
#define VERSION_FIELDS(FIRST, NEXT) VERSION_FIELDS_WITH(FIRST, NEXT, WHOLE)
COLUMNS_WHOLE_ROW(struct model_version_row, VERSION_FIELDS)
COLUMNS_READER(version, struct model_version_row, VERSION_FIELDS)
#define VERSION_COLUMNS COLUMNS_SQL(VERSION_FIELDS)
#define LISTED_FIELDS(FIRST, NEXT) VERSION_FIELDS_WITH(FIRST, NEXT, LEFT_OUT)
#define LISTED_COLUMNS COLUMNS_SQL(LISTED_FIELDS)

static const struct stmt stmts[] = {
    [MODEL_MAKE] = {"model_make", "insert into model (name) values ($1) on conflict (name) do "
                                  "update set deleted_at = null, created_at = now(), changed_at = "
                                  "now() where model.deleted_at is not null"},
    [MODEL_LOCK] = {"model_lock",
                    "select newest from model where name = $1 and deleted_at is null for update"},
    [MODEL_CHANGED] = {"model_changed", "update model set newest = greatest(newest, $2::int), "
                                        "changed_at = now() where name = $1"},
    [MODEL_GET] = {"model_get", "select " MODEL_COLUMNS " from model m where m.name = $1 and "
                                "m.deleted_at is null"},
    [MODEL_LIST] = {"model_list", "select " MODEL_COLUMNS " from model m where m.name > $1 and "
                                  "m.deleted_at is null order by m.name limit $2"},
    [MODEL_CLEAR_ALIASES] = {"model_clear_aliases", "delete from model_alias where model = $1"},
    [MODEL_CLEAR_VERSIONS] = {"model_clear_versions", "delete from model_version where model = $1"},
    [MODEL_GONE] = {"model_gone", "update model set deleted_at = now() where name = $1"},
    [MODEL_VERSION_ADD] = {"model_version_add",
                           "insert into model_version (model, version, sha256, size, kind, task, "
                           "input, inputs, outputs, members, metrics, measured_on, lineage, "
                           "created_by) values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, "
                           "$13, $14)"},
    [MODEL_VERSION_OF] = {"model_version_of",
                          "select version from model_version where model = $1 and sha256 = $2"},
    [MODEL_VERSION_GET] = {"model_version_get",
                           "select " VERSION_COLUMNS " from model_version v where v.model = $1 and "
                           "v.version = $2"},
    [MODEL_VERSION_LIST] = {"model_version_list",
                            "select " LISTED_COLUMNS " from model_version v where v.model = $1 and "
                            "v.version < $2 order by v.version desc limit $3"},
    [MODEL_VERSION_LEARNED] = {"model_version_learned",
                               "select " LISTED_COLUMNS " from model_version v where v.lineage -> "
                               "'dataset' ->> 'name' = $1 and (v.model > $2 or (v.model = $2 and "
                               "v.version < $3)) order by v.model, v.version desc limit $4"},
    [MODEL_VERSION_DELETE] = {"model_version_delete",
                              "delete from model_version where model = $1 and version = $2"},
    [MODEL_DEFAULT] = {"model_default", "select " SQL_DEFAULT " from model m where m.name = $1"},
    [MODEL_ALIAS_GET] = {"model_alias_get",
                         "select version from model_alias where model = $1 and alias = $2"},
    [MODEL_ALIAS_SET] = {"model_alias_set",
                         "insert into model_alias (model, alias, version) values ($1, $2, $3) on "
                         "conflict (model, alias) do update set version = excluded.version, "
                         "changed_at = now()"},
    [MODEL_ALIAS_DELETE] = {"model_alias_delete",
                            "delete from model_alias where model = $1 and alias = $2"},
    [MODEL_DATASET] = {"model_dataset",
                       "select sha256 from sweep_dataset where sweep_key = $1 and dataset = $2"},
};
const struct stmt_set model_stmts = {"model", stmts, AS_ARRAY_LEN(stmts)};

static as_status no_model(const char *name, struct as_err *err)
{
    return as_fail(err, AS_E_NOT_FOUND, "there is no model '%.64s'", name);
}

static as_status no_version(const char *model, int64_t version, struct as_err *err)
{
    return as_fail(err, AS_E_NOT_FOUND, "the model '%.64s' has no version %lld", model,
                   (long long)version);
}

/* ---- models ---- */

as_status store_model_lock(struct tx *t, const char *name, bool make, int64_t *ret_newest,
                           struct as_err *err)
{
    RESULT_AUTO r = {0};
    as_status st = make ? tx_exec(t, &stmts[MODEL_MAKE], ARGS(arg_str(name)), NULL, err) : AS_OK;
    if (st == AS_OK)
        st = tx_query(t, &stmts[MODEL_LOCK], ARGS(arg_str(name)), &r, err);
    if (st != AS_OK)
        return st;
    if (r.rows == 0)
        return no_model(name, err);
    *ret_newest = result_i64(&r, 0, 0);
    return AS_OK;
}

as_status store_model_changed(struct tx *t, const char *name, int64_t version, struct as_err *err)
{
    return tx_exec(t, &stmts[MODEL_CHANGED], ARGS(arg_str(name), arg_i64(version)), NULL, err);
}

as_status store_model_get(struct tx *t, struct arena *a, const char *name, struct model_row *ret,
                          struct as_err *err)
{
    RESULT_AUTO r = {0};
    as_status st = tx_query(t, &stmts[MODEL_GET], ARGS(arg_str(name)), &r, err);
    if (st != AS_OK)
        return st;
    return r.rows == 0 ? no_model(name, err) : read_model_row(&r, 0, a, ret, err);
}

as_status store_model_list(struct tx *t, struct arena *a, const char *after, int64_t size,
                           struct model_page *ret, bool *ret_more, struct as_err *err)
{
    struct page_fill f = page_fill_start(size);
    struct model_row *rows = arena_alloc(a, (size_t)size, sizeof *rows);
    size_t n = 0;
    if (!rows)
        return as_fail_nomem(err);
    for (int64_t ask; (ask = page_fill_next(&f)) > 0;) {
        RESULT_AUTO r = {0};
        as_status st =
            tx_query(t, &stmts[MODEL_LIST], ARGS(arg_str(after), arg_i64(ask + 1)), &r, err);
        if (st != AS_OK)
            return st;
        int take = page_fill_take(&f, &r, ask);
        for (int i = 0; i < take; i++, n++) {
            if ((st = read_model_row(&r, i, a, &rows[n], err)) != AS_OK)
                return st;
            after = rows[n].name;
        }
    }
    *ret = (struct model_page){.rows = rows, .n = n};
    *ret_more = f.has_more;
    return AS_OK;
}

as_status store_model_delete(struct tx *t, const char *name, struct as_err *err)
{
    static const int steps[] = {MODEL_CLEAR_ALIASES, MODEL_CLEAR_VERSIONS, MODEL_GONE};
    as_status st = AS_OK;
    for (size_t i = 0; i < AS_ARRAY_LEN(steps) && st == AS_OK; i++)
        st = tx_exec(t, &stmts[steps[i]], ARGS(arg_str(name)), NULL, err);
    return st;
}

/* ---- versions ---- */

as_status store_model_version_add(struct tx *t, const struct model_version_row *v,
                                  struct as_err *err)
{
    return tx_exec(t, &stmts[MODEL_VERSION_ADD],
                   ARGS(arg_str(v->model), arg_i64(v->version), arg_str(v->sha256),
                        arg_i64(v->size), arg_str(v->kind), arg_str(v->task), arg_str(v->input),
                        arg_str(v->inputs), arg_str(v->outputs), arg_str(v->members),
                        arg_str(v->metrics), arg_str(v->measured_on), arg_str(v->lineage),
                        arg_str(v->created_by)),
                   NULL, err);
}

as_status store_model_version_of(struct tx *t, const char *model, const char *sha256, int64_t *ret,
                                 struct as_err *err)
{
    RESULT_AUTO r = {0};
    as_status st =
        tx_query(t, &stmts[MODEL_VERSION_OF], ARGS(arg_str(model), arg_str(sha256)), &r, err);
    if (st == AS_OK)
        *ret = r.rows ? result_i64(&r, 0, 0) : 0;
    return st;
}

as_status store_model_version_get(struct tx *t, struct arena *a, const char *model, int64_t version,
                                  struct model_version_row *ret, struct as_err *err)
{
    RESULT_AUTO r = {0};
    as_status st =
        tx_query(t, &stmts[MODEL_VERSION_GET], ARGS(arg_str(model), arg_i64(version)), &r, err);
    if (st != AS_OK)
        return st;
    return r.rows == 0 ? no_version(model, version, err) : read_version_row(&r, 0, a, ret, err);
}

as_status store_model_version_list(struct tx *t, struct arena *a, const char *model, int64_t before,
                                   int64_t size, struct model_version_page *ret, bool *ret_more,
                                   struct as_err *err)
{
    struct page_fill f = page_fill_start(size);
    struct model_version_row *rows = arena_alloc(a, (size_t)size, sizeof *rows);
    size_t n = 0;
    before = before ? before : INT32_MAX;
    if (!rows)
        return as_fail_nomem(err);
    for (int64_t ask; (ask = page_fill_next(&f)) > 0;) {
        RESULT_AUTO r = {0};
        as_status st = tx_query(t, &stmts[MODEL_VERSION_LIST],
                                ARGS(arg_str(model), arg_i64(before), arg_i64(ask + 1)), &r, err);
        if (st != AS_OK)
            return st;
        int take = page_fill_take(&f, &r, ask);
        for (int i = 0; i < take; i++, n++) {
            if ((st = read_version_row(&r, i, a, &rows[n], err)) != AS_OK)
                return st;
            before = rows[n].version;
        }
    }
    *ret = (struct model_version_page){.rows = rows, .n = n};
    *ret_more = f.has_more;
    return AS_OK;
}

as_status store_model_version_learned(struct tx *t, struct arena *a, const char *dataset,
                                      const char *model, int64_t before, int64_t size,
                                      struct model_version_page *ret, bool *ret_more,
                                      struct as_err *err)
{
    struct page_fill f = page_fill_start(size);
    struct model_version_row *rows = arena_alloc(a, (size_t)size, sizeof *rows);
    size_t n = 0;
    if (!rows)
        return as_fail_nomem(err);
    for (int64_t ask; (ask = page_fill_next(&f)) > 0;) {
        RESULT_AUTO r = {0};
        as_status st = tx_query(
            t, &stmts[MODEL_VERSION_LEARNED],
            ARGS(arg_str(dataset), arg_str(model), arg_i64(before), arg_i64(ask + 1)), &r, err);
        if (st != AS_OK)
            return st;
        int take = page_fill_take(&f, &r, ask);
        for (int i = 0; i < take; i++, n++) {
            if ((st = read_version_row(&r, i, a, &rows[n], err)) != AS_OK)
                return st;
            model = rows[n].model;
            before = rows[n].version;
        }
    }
    *ret = (struct model_version_page){.rows = rows, .n = n};
    *ret_more = f.has_more;
    return AS_OK;
}

as_status store_model_version_delete(struct tx *t, const char *model, int64_t version,
                                     struct as_err *err)
{
    int n = 0;
    as_status st =
        tx_exec(t, &stmts[MODEL_VERSION_DELETE], ARGS(arg_str(model), arg_i64(version)), &n, err);
    return st == AS_OK && n == 0 ? no_version(model, version, err) : st;
}

/* ---- aliases ---- */

as_status store_model_alias_get(struct tx *t, const char *model, const char *alias, int64_t *ret,
                                struct as_err *err)
{
    RESULT_AUTO r = {0};
    bool is_default = as_streq(alias, "default");
    as_status st = is_default ? tx_query(t, &stmts[MODEL_DEFAULT], ARGS(arg_str(model)), &r, err)
                              : tx_query(t, &stmts[MODEL_ALIAS_GET],
                                         ARGS(arg_str(model), arg_str(alias)), &r, err);
    if (st != AS_OK)
        return st;
    int64_t version = r.rows ? result_i64(&r, 0, 0) : 0;
    if (version == 0 && is_default)
        return as_fail(err, AS_E_NOT_FOUND, "the model '%.64s' has no version", model);
    if (version == 0)
        return as_fail(err, AS_E_NOT_FOUND, "the model '%.64s' has no alias '%.64s'", model, alias);
    *ret = version;
    return AS_OK;
}

as_status store_model_alias_set(struct tx *t, const char *model, const char *alias, int64_t version,
                                struct as_err *err)
{
    as_status st = tx_exec(t, &stmts[MODEL_ALIAS_SET],
                           ARGS(arg_str(model), arg_str(alias), arg_i64(version)), NULL, err);
    return st == AS_E_NOT_FOUND ? no_version(model, version, err) : st;
}

as_status store_model_alias_delete(struct tx *t, const char *model, const char *alias,
                                   struct as_err *err)
{
    int n = 0;
    as_status st =
        tx_exec(t, &stmts[MODEL_ALIAS_DELETE], ARGS(arg_str(model), arg_str(alias)), &n, err);
    if (st == AS_OK && n == 0)
        return as_fail(err, AS_E_NOT_FOUND, "the model '%.64s' has no alias '%.64s'", model, alias);
    return st;
}

as_status store_model_dataset(struct tx *t, struct arena *a, int64_t sweep_key, const char *dataset,
                              const char **ret, struct as_err *err)
{
    RESULT_AUTO r = {0};
    as_status st =
        tx_query(t, &stmts[MODEL_DATASET], ARGS(arg_i64(sweep_key), arg_str(dataset)), &r, err);
    *ret = NULL;
    if (st != AS_OK || r.rows == 0)
        return st;
    struct reader rd;
    reader_init(&rd, &r, 0, a);
    *ret = read_str(&rd);
    return reader_check(&rd, err);
}
