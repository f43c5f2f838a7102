/* Tables dataset and dataset_file. */
#include "scheduler/store/dataset_store.h"

#include "scheduler/store/pg_priv.h"
#include "scheduler/store/sets_priv.h"

enum {
    DATASET_ADD,
    DATASET_ADD_FILE,
    DATASET_GET,
    DATASET_KEEP,
    DATASET_LIST,
    DATASET_EXPECTED,
    DATASET_OF_SWEEP,
    DATASET_LOCK,
    DATASET_USER,
    DATASET_DELETE
};

/* The files as arrays in the order of their roles: features, table, targets. */
#define DATASET_COLUMNS                                                                            \
    "d.name, d.format, d.task, d.input, d.target, d.n_rows, d.n_features, d.n_outputs, "           \
    "d.classes, d.options, d.image, d.columns, d.sha256, d.description, " SQL_MS(                  \
        "d.created_at") ", f1.role, f1.sha256, f1.size, f2.role, "                                 \
                        "f2.sha256, f2.size"

/* A table alone, or features and targets. */
#define DATASET_FROM                                                                               \
    " from dataset d join dataset_file f1 on f1.dataset = d.name and f1.role in ('table', "        \
    "'features') left join dataset_file f2 on f2.dataset = d.name and f2.role = 'targets' "

static const struct stmt stmts[] = {
    [DATASET_ADD] = {"dataset_add",
                     "insert into dataset (name, format, task, input, target, n_rows, n_features, "
                     "n_outputs, classes, options, image, columns, sha256, description) values "
                     "($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14) on conflict "
                     "(name) do nothing"},
    [DATASET_ADD_FILE] = {"dataset_add_file",
                          "insert into dataset_file (dataset, role, sha256, size) values ($1, $2, "
                          "$3, $4)"},
    [DATASET_GET] = {"dataset_get", "select " DATASET_COLUMNS DATASET_FROM "where d.name = $1"},
    [DATASET_KEEP] = {"dataset_keep", "select " DATASET_COLUMNS DATASET_FROM
                                      "where d.name = $1 for key share of d"},
    [DATASET_LIST] = {"dataset_list", "select " DATASET_COLUMNS DATASET_FROM
                                      "where d.name > $1 order by d.name limit $2"},
    [DATASET_EXPECTED] =
        {"dataset_expected",
         "select sha256, n_rows, n_features from sweep_dataset where sweep_key = $1 "
         "and dataset = $2 and sha256 <> $3"},
    [DATASET_OF_SWEEP] = {"dataset_of_sweep", "select " DATASET_COLUMNS DATASET_FROM
                                              "join sweep_dataset u on u.dataset "
                                              "= d.name where u.sweep_key = $1 order by d.name"},
    [DATASET_LOCK] = {"dataset_lock", "select name from dataset where name = $1 for update"},
    [DATASET_USER] = {"dataset_user",
                      "select s.id from sweep_dataset u join sweep s on s.key = u.sweep_key where "
                      "u.dataset = $1 and s.state in ('running', 'paused', 'finishing') order by "
                      "s.key limit 1"},
    [DATASET_DELETE] = {"dataset_delete", "delete from dataset where name = $1"},
};
const struct stmt_set dataset_stmts = {"dataset", stmts, AS_ARRAY_LEN(stmts)};

static as_status add_file(struct tx *t, const char *dataset, const struct dataset_file_row *f,
                          struct as_err *err)
{
    return tx_exec(t, &stmts[DATASET_ADD_FILE],
                   ARGS(arg_str(dataset), arg_str(f->role), arg_str(f->sha256), arg_i64(f->size)),
                   NULL, err);
}

as_status store_dataset_add(struct tx *t, const struct dataset_row *d, bool *ret_created,
                            struct as_err *err)
{
    int n = 0;
    as_status st = tx_exec(t, &stmts[DATASET_ADD],
                           ARGS(arg_str(d->name), arg_str(d->format), arg_str(d->task),
                                arg_str(d->input), arg_str(d->target), arg_i64(d->n_rows),
                                arg_i64(d->n_features), arg_i64(d->n_outputs), arg_str(d->classes),
                                arg_str(d->options), arg_str(d->image), arg_str(d->columns),
                                arg_str(d->sha256), arg_str(d->description)),
                           &n, err);
    *ret_created = n > 0;
    for (size_t i = 0; i < d->n_files && st == AS_OK && n > 0; i++)
        st = add_file(t, d->name, &d->files[i], err);
    return st;
}

static as_status read_dataset(struct reader *rd, struct dataset_row *d, struct as_err *err)
{
    *d = (struct dataset_row){0};
    d->name = read_str(rd);
    d->format = read_str(rd);
    d->task = read_str(rd);
    d->input = read_str(rd);
    d->target = read_str(rd);
    d->n_rows = read_i64(rd);
    d->n_features = read_i64(rd);
    d->n_outputs = read_i64(rd);
    d->classes = read_str(rd);
    d->options = read_str(rd);
    d->image = read_str(rd);
    d->columns = read_str(rd);
    d->sha256 = read_str(rd);
    d->description = read_str(rd);
    d->created_ms = read_i64(rd);
    for (int i = 0; i < 2 && !read_null(rd); i++) {
        struct dataset_file_row *f = &d->files[d->n_files++];
        f->role = read_str(rd);
        f->sha256 = read_str(rd);
        f->size = read_i64(rd);
    }
    return reader_check(rd, err);
}

as_status store_dataset_get(struct tx *t, struct arena *a, const char *name, bool keep,
                            struct dataset_row *ret, struct as_err *err)
{
    RESULT_AUTO r = {0};
    as_status st =
        tx_query(t, &stmts[keep ? DATASET_KEEP : DATASET_GET], ARGS(arg_str(name)), &r, err);
    if (st != AS_OK)
        return st;
    if (r.rows == 0)
        return as_fail(err, AS_E_NOT_FOUND, "there is no data set '%.63s'", name);
    struct reader rd;
    reader_init(&rd, &r, 0, a);
    return read_dataset(&rd, ret, err);
}

static as_status read_datasets(const struct result *r, struct arena *a, int n,
                               struct dataset_row **ret, struct as_err *err)
{
    struct dataset_row *rows = arena_alloc(a, (size_t)n + 1, sizeof *rows);
    if (!rows)
        return as_fail(err, AS_E_NOMEM, "out of memory");
    as_status st = AS_OK;
    for (int i = 0; i < n && st == AS_OK; i++) {
        struct reader rd;
        reader_init(&rd, r, i, a);
        st = read_dataset(&rd, &rows[i], err);
    }
    *ret = rows;
    return st;
}

as_status store_dataset_of_sweep(struct tx *t, struct arena *a, int64_t sweep_key,
                                 struct dataset_row **ret, size_t *ret_n, struct as_err *err)
{
    RESULT_AUTO r = {0};
    as_status st = tx_query(t, &stmts[DATASET_OF_SWEEP], ARGS(arg_i64(sweep_key)), &r, err);
    if (st != AS_OK)
        return st;
    *ret_n = (size_t)r.rows;
    return read_datasets(&r, a, r.rows, ret, err);
}

as_status store_dataset_list(struct tx *t, struct arena *a, const char *after, int64_t size,
                             struct dataset_row **ret, size_t *ret_n, bool *ret_more,
                             struct as_err *err)
{
    RESULT_AUTO r = {0};
    as_status st =
        tx_query(t, &stmts[DATASET_LIST], ARGS(arg_str(after), arg_i64(size + 1)), &r, err);
    if (st != AS_OK)
        return st;
    int n = r.rows > size ? (int)size : r.rows;
    *ret_n = (size_t)n;
    *ret_more = r.rows > n;
    return read_datasets(&r, a, n, ret, err);
}

as_status store_dataset_expected(struct tx *t, struct arena *a, int64_t sweep_key,
                                 struct dataset_row *d, struct as_err *err)
{
    RESULT_AUTO r = {0};
    as_status st =
        tx_query(t, &stmts[DATASET_EXPECTED],
                 ARGS(arg_i64(sweep_key), arg_str(d->name), arg_str(d->sha256)), &r, err);
    if (st != AS_OK || r.rows == 0)
        return st;
    struct reader rd;
    reader_init(&rd, &r, 0, a);
    d->expected_sha256 = read_str(&rd);
    d->expected_rows = read_i64(&rd);
    d->expected_features = read_i64(&rd);
    return reader_check(&rd, err);
}

as_status store_dataset_lock(struct tx *t, const char *name, struct as_err *err)
{
    RESULT_AUTO r = {0};
    as_status st = tx_query(t, &stmts[DATASET_LOCK], ARGS(arg_str(name)), &r, err);
    if (st == AS_OK && r.rows == 0)
        return as_fail(err, AS_E_NOT_FOUND, "there is no data set '%.63s'", name);
    return st;
}

as_status store_dataset_user(struct tx *t, struct arena *a, const char *name, const char **ret,
                             struct as_err *err)
{
    RESULT_AUTO r = {0};
    as_status st = tx_query(t, &stmts[DATASET_USER], ARGS(arg_str(name)), &r, err);
    *ret = NULL;
    if (st != AS_OK || r.rows == 0)
        return st;
    struct reader rd;
    reader_init(&rd, &r, 0, a);
    *ret = read_str(&rd);
    return reader_check(&rd, err);
}

as_status store_dataset_delete(struct tx *t, const char *name, struct as_err *err)
{
    return tx_exec(t, &stmts[DATASET_DELETE], ARGS(arg_str(name)), NULL, err);
}
