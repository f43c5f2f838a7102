/* Tables dataset and dataset_file.
 *
 * A data set has one file (a table) or two (features and targets), and as many of test rows. The
 * statements return the files as columns of the data set's row, in the order of roles, so that one
 * row is one data set. sweep_dataset records the content of a data set when a sweep was created. A
 * claim compares it with the current content, because a name may be removed and registered
 * again. */
#include "scheduler/store/dataset_store.h"

#include "scheduler/store/sql_columns_priv.h"
#include "scheduler/store/page_fill_priv.h"
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
    DATASET_DELETE,
    DATASET_PREVIEW,
    DATASET_KEEP_PREVIEW
};

/* The files in the order of their roles. count_files() computes n_files from them. Another
 * statement reads what a claim expects. */
#define DATASET_FIELDS(FIRST, NEXT)                                                                \
    FIRST(text, name, "d.name")                                                                    \
    NEXT(text, format, "d.format")                                                                 \
    NEXT(text, task, "d.task")                                                                     \
    NEXT(text, input, "d.input")                                                                   \
    NEXT(text, target, "d.target")                                                                 \
    NEXT(i64, n_rows, "d.n_rows")                                                                  \
    NEXT(i64, n_features, "d.n_features")                                                          \
    NEXT(i64, n_outputs, "d.n_outputs")                                                            \
    NEXT(text, classes, "d.classes")                                                               \
    NEXT(text, options, "d.options")                                                               \
    NEXT(text, image, "d.image")                                                                   \
    NEXT(text, columns, "d.columns")                                                               \
    NEXT(text, sha256, "d.sha256")                                                                 \
    NEXT(i64, test_rows, "d.test_rows")                                                            \
    NEXT(text, train_sha256, "d.train_sha256")                                                     \
    NEXT(text, description, "d.description")                                                       \
    NEXT(i64, created_ms, SQL_MS("d.created_at"))                                                  \
    NEXT(text, files[0].role, "f1.role")                                                           \
    NEXT(text, files[0].sha256, "f1.sha256")                                                       \
    NEXT(i64, files[0].size, "f1.size")                                                            \
    NEXT(text, files[1].role, "f2.role")                                                           \
    NEXT(text, files[1].sha256, "f2.sha256")                                                       \
    NEXT(i64, files[1].size, "f2.size")                                                            \
    NEXT(text, files[2].role, "f3.role")                                                           \
    NEXT(text, files[2].sha256, "f3.sha256")                                                       \
    NEXT(i64, files[2].size, "f3.size")                                                            \
    NEXT(text, files[3].role, "f4.role")                                                           \
    NEXT(text, files[3].sha256, "f4.sha256")                                                       \
    NEXT(i64, files[3].size, "f4.size")
COLUMNS_READER(dataset, struct dataset_row, DATASET_FIELDS)
#define DATASET_COLUMNS COLUMNS_SQL(DATASET_FIELDS)

#define EXPECTED_FIELDS(FIRST, NEXT)                                                               \
    FIRST(text, expected_sha256, "sha256")                                                         \
    NEXT(i64, expected_rows, "n_rows")                                                             \
    NEXT(i64, expected_features, "n_features")
COLUMNS_READER(expected, struct dataset_row, EXPECTED_FIELDS)
#define EXPECTED_COLUMNS COLUMNS_SQL(EXPECTED_FIELDS)

/* A table alone, or features and targets; the same of test rows. */
#define DATASET_FROM                                                                               \
    " from dataset d join dataset_file f1 on f1.dataset = d.name and f1.role in ('table', "        \
    "'features') left join dataset_file f2 on f2.dataset = d.name and f2.role = 'targets' "        \
    "left join dataset_file f3 on f3.dataset = d.name and f3.role in ('test', 'test_features') "   \
    "left join dataset_file f4 on f4.dataset = d.name and f4.role = 'test_targets' "

static const struct stmt stmts[] = {
    [DATASET_ADD] =
        {"dataset_add",
         "insert into dataset (name, format, task, input, target, n_rows, n_features, "
         "n_outputs, classes, options, image, columns, sha256, description, "
         "test_rows, train_sha256) values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, "
         "$11, $12, $13, $14, nullif($15::bigint, 0), $16) on conflict (name) do nothing"},
    [DATASET_ADD_FILE] = {"dataset_add_file",
                          "insert into dataset_file (dataset, role, sha256, size) values ($1, $2, "
                          "$3, $4)"},
    [DATASET_GET] = {"dataset_get", "select " DATASET_COLUMNS DATASET_FROM "where d.name = $1"},
    [DATASET_KEEP] = {"dataset_keep", "select " DATASET_COLUMNS DATASET_FROM
                                      "where d.name = $1 for key share of d"},
    [DATASET_LIST] = {"dataset_list", "select " DATASET_COLUMNS DATASET_FROM
                                      "where d.name > $1 order by d.name limit $2"},
    [DATASET_EXPECTED] = {"dataset_expected",
                          "select " EXPECTED_COLUMNS " from sweep_dataset where sweep_key = $1 "
                          "and dataset = $2 and sha256 <> $3"},
    [DATASET_OF_SWEEP] = {"dataset_of_sweep", "select " DATASET_COLUMNS DATASET_FROM
                                              "join sweep_dataset u on u.dataset "
                                              "= d.name where u.sweep_key = $1 order by d.name"},
    [DATASET_LOCK] = {"dataset_lock", "select name from dataset where name = $1 for update"},
    [DATASET_USER] =
        {"dataset_user",
         "select s.id from sweep_dataset u join sweep_base s on s.key = u.sweep_key where "
         "u.dataset = $1 and s.state in ('running', 'paused', 'finishing') order by "
         "s.key limit 1"},
    [DATASET_DELETE] = {"dataset_delete", "delete from dataset where name = $1"},
    [DATASET_PREVIEW] = {"dataset_preview", "select preview from dataset where name = $1"},
    [DATASET_KEEP_PREVIEW] = {"dataset_keep_preview",
                              "update dataset set preview = $3 where name = $1 and sha256 = $2"},
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
    as_status st =
        tx_exec(t, &stmts[DATASET_ADD],
                ARGS(arg_str(d->name), arg_str(d->format), arg_str(d->task), arg_str(d->input),
                     arg_str(d->target), arg_i64(d->n_rows), arg_i64(d->n_features),
                     arg_i64(d->n_outputs), arg_str(d->classes), arg_str(d->options),
                     arg_str(d->image), arg_str(d->columns), arg_str(d->sha256),
                     arg_str(d->description), arg_i64(d->test_rows), arg_str(d->train_sha256)),
                &n, err);
    *ret_created = n > 0;
    if (n == 0)
        tx_saw(t);
    for (size_t i = 0; i < d->n_files && st == AS_OK && n > 0; i++)
        st = add_file(t, d->name, &d->files[i], err);
    return st;
}

/* Close the gaps that the joins leave. */
static void count_files(struct dataset_row *d)
{
    size_t n = 0;
    for (size_t i = 0; i < AS_ARRAY_LEN(d->files); i++)
        if (d->files[i].role)
            d->files[n++] = d->files[i];
    d->n_files = n;
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
    *ret = (struct dataset_row){0};
    if ((st = read_dataset_row(&r, 0, a, ret, err)) == AS_OK)
        count_files(ret);
    return st;
}

static as_status read_datasets(const struct result *r, struct arena *a, int n,
                               struct dataset_row **ret, struct as_err *err)
{
    as_status st = read_dataset_rows(r, n, a, ret, err);
    if (st != AS_OK)
        return st;
    for (int i = 0; i < n; i++)
        count_files(&(*ret)[i]);
    return AS_OK;
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
    struct page_fill f = page_fill_start(size);
    struct dataset_row *rows = arena_alloc(a, (size_t)size, sizeof *rows);
    size_t n = 0;
    if (!rows)
        return as_fail_nomem(err);
    for (int64_t ask; (ask = page_fill_next(&f)) > 0;) {
        RESULT_AUTO r = {0};
        as_status st =
            tx_query(t, &stmts[DATASET_LIST], ARGS(arg_str(after), arg_i64(ask + 1)), &r, err);
        if (st != AS_OK)
            return st;
        int take = page_fill_take(&f, &r, ask);
        for (int i = 0; i < take; i++, n++) {
            if ((st = read_dataset_row(&r, i, a, &rows[n], err)) != AS_OK)
                return st;
            count_files(&rows[n]);
            after = rows[n].name;
        }
    }
    *ret = rows;
    *ret_n = n;
    *ret_more = f.has_more;
    return AS_OK;
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
    return read_expected_row(&r, 0, a, d, err);
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

as_status store_dataset_preview(struct tx *t, struct arena *a, const char *name, const char **ret,
                                struct as_err *err)
{
    RESULT_AUTO r = {0};
    as_status st = tx_query(t, &stmts[DATASET_PREVIEW], ARGS(arg_str(name)), &r, err);
    if (st == AS_OK && r.rows == 0)
        return as_fail(err, AS_E_NOT_FOUND, "there is no data set '%.63s'", name);
    if (st != AS_OK)
        return st;
    struct reader rd;
    reader_init(&rd, &r, 0, a);
    *ret = read_str(&rd);
    return reader_check(&rd, err);
}

as_status store_dataset_keep_preview(struct tx *t, const char *name, const char *sha256,
                                     const char *preview, struct as_err *err)
{
    return tx_exec(t, &stmts[DATASET_KEEP_PREVIEW],
                   ARGS(arg_str(name), arg_str(sha256), arg_str(preview)), NULL, err);
}
