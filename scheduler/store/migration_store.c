/* Table schema_migration. */
#include "scheduler/store/migration_store.h"

#include "scheduler/store/sql_columns_priv.h"
#include "scheduler/store/pg_priv.h"
#include "scheduler/store/sets_priv.h"

enum { MIGRATION_HAS_LEDGER, MIGRATION_LIST, MIGRATION_ADD, MIGRATION_TOUCH, MIGRATION_ROOM };

#define MIGRATION_FIELDS(FIRST, NEXT)                                                              \
    FIRST(i64, version, "version")                                                                 \
    NEXT(text, name, "name")                                                                       \
    NEXT(text, sha256, "sha256")
COLUMNS_WHOLE_ROW(struct migration_applied, MIGRATION_FIELDS)
COLUMNS_READER(migration, struct migration_applied, MIGRATION_FIELDS)
#define MIGRATION_COLUMNS COLUMNS_SQL(MIGRATION_FIELDS)

static const struct stmt stmts[] = {
    [MIGRATION_HAS_LEDGER] = {"migration_has_ledger",
                              "select to_regclass('schema_migration') is not null"},
    [MIGRATION_LIST] = {"migration_list",
                        "select " MIGRATION_COLUMNS " from schema_migration order by version"},
    [MIGRATION_ADD] = {"migration_add",
                       "insert into schema_migration (version, name, sha256) values ($1, $2, $3)"},
    /* a write that changes nothing */
    [MIGRATION_TOUCH] = {"migration_touch",
                         "update schema_migration set applied_at = applied_at where version = 1"},
    /* a function's rows are kept until all are there, in a file past work_mem */
    [MIGRATION_ROOM] = {"migration_room",
                        "select count(*) from unnest(array_fill(repeat('x', 8000), array[512]))"},
};
const struct stmt_set migration_stmts = {"migration", stmts, AS_ARRAY_LEN(stmts)};

/* The lock's number is arbitrary: "assay" in ASCII. This lock may wait longer than others, and a
 * migration may run longer than other statements. */
static const char lock_sql[] =
    "set local lock_timeout = '60s'; set local statement_timeout = '600s';"
    "select pg_advisory_xact_lock(418380734841);"
    "create table if not exists schema_migration (version integer primary key, name text not null, "
    "sha256 text not null, applied_at timestamptz not null default now())";

as_status store_migration_lock(struct tx *t, struct as_err *err)
{
    return conn_exec(t->conn, lock_sql, err);
}

as_status store_migration_list(struct tx *t, struct arena *a, struct migration_applied **ret,
                               size_t *ret_n, struct as_err *err)
{
    RESULT_AUTO has = {0};
    as_status st = tx_query(t, &stmts[MIGRATION_HAS_LEDGER], NULL, &has, err);
    if (st != AS_OK)
        return st;
    struct reader rd;
    reader_init(&rd, &has, 0, a);
    *ret_n = 0;
    if (!read_bool(&rd))
        return AS_OK;
    RESULT_AUTO r = {0};
    st = tx_query(t, &stmts[MIGRATION_LIST], NULL, &r, err);
    if (st != AS_OK)
        return st;
    if ((st = read_migration_rows(&r, r.rows, a, ret, err)) != AS_OK)
        return st;
    *ret_n = (size_t)r.rows;
    return AS_OK;
}

as_status store_migration_touch(struct tx *t, struct as_err *err)
{
    return tx_exec(t, &stmts[MIGRATION_TOUCH], NULL, NULL, err);
}

as_status store_migration_room(struct tx *t, struct as_err *err)
{
    RESULT_AUTO r = {0};
    /* the tablespace of the database, not one that was set aside for temporary files */
    as_status st =
        conn_exec(t->conn, "set local work_mem = '64kB'; set local temp_tablespaces = ''", err);
    if (st == AS_OK)
        st = tx_query(t, &stmts[MIGRATION_ROOM], NULL, &r, err);
    if (t->conn->disk_full)
        return as_err_prefix(err, AS_E_EXHAUSTED, "no room for a file of 4 MiB");
    return t->conn->broken ? st : AS_OK;
}

as_status store_migration_apply(struct tx *t, const struct migration *m, const char *sha256,
                                struct as_err *err)
{
    as_status st = conn_exec(t->conn, m->sql, err);
    if (st != AS_OK)
        return as_err_prefix(err, st, "migration %04d_%s", m->version, m->name);
    return tx_exec(t, &stmts[MIGRATION_ADD],
                   ARGS(arg_i64(m->version), arg_str(m->name), arg_str(sha256)), NULL, err);
}
