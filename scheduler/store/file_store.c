/* Table trial_file. Paths of what is kept begin with its step, those of output with its attempt. */
#include "scheduler/store/file_store.h"

#include <stdio.h>

#include "scheduler/store/sql_columns_priv.h"
#include "scheduler/store/pg_priv.h"
#include "scheduler/store/sets_priv.h"

enum { FILE_LIST, FILE_MISSING, FILE_CLEAR, FILE_ADD, FILE_DECIDED, FILE_DROP_KEPT };

#define KEPT "kept" /* the kind */

#define FILE_FIELDS(FIRST, NEXT)                                                                   \
    FIRST(text, path, "path")                                                                      \
    NEXT(i64, size, "size")                                                                        \
    NEXT(text, sha256, "sha256")
COLUMNS_WHOLE_ROW(struct file_row, FILE_FIELDS)
COLUMNS_READER(file, struct file_row, FILE_FIELDS)
#define FILE_COLUMNS COLUMNS_SQL(FILE_FIELDS)

static const struct stmt stmts[] = {
    [FILE_LIST] = {"file_list", "select " FILE_COLUMNS " from trial_file where sweep_key = $1 and "
                                "number = $2 and kind = $3 order by path"},
    [FILE_MISSING] = {"file_missing",
                      "select f.place - 1 from unnest($1::text[], $2::bigint[]) with ordinality as "
                      "f(sha256, size, place) left join blob b on b.sha256 = f.sha256 and b.size = "
                      "f.size where b.sha256 is null order by f.place limit 1"},
    [FILE_CLEAR] = {"file_clear",
                    "delete from trial_file where sweep_key = $1 and number = $2 and kind = $3 and "
                    "starts_with(path, $4)"},
    [FILE_ADD] = {"file_add",
                  "insert into trial_file (sweep_key, number, kind, path, size, sha256) select $1, "
                  "$2, $3, $4 || f.path, f.size, f.sha256 from unnest($5::text[], $6::bigint[], "
                  "$7::text[]) as f(path, size, sha256)"},
    [FILE_DECIDED] = {"file_decided", "select true from rung_result where sweep_key = $1 and "
                                      "number = $2 and step = $3 limit 1"},
    [FILE_DROP_KEPT] = {"file_drop_kept",
                        "delete from trial_file where sweep_key = $1 and kind = 'kept'"},
};
const struct stmt_set file_stmts = {"file", stmts, AS_ARRAY_LEN(stmts)};

as_status store_file_list(struct tx *t, struct arena *a, int64_t sweep_key, int64_t number,
                          const char *kind, struct file_list *ret, struct as_err *err)
{
    RESULT_AUTO r = {0};
    as_status st = tx_query(t, &stmts[FILE_LIST],
                            ARGS(arg_i64(sweep_key), arg_i64(number), arg_str(kind)), &r, err);
    if (st != AS_OK)
        return st;
    if ((st = read_file_rows(&r, r.rows, a, &ret->rows, err)) != AS_OK)
        return st;
    ret->n = (size_t)r.rows;
    return st;
}

struct columns {
    struct str paths, sizes, digests;
};

static void columns_done(struct columns *c)
{
    str_done(&c->paths);
    str_done(&c->sizes);
    str_done(&c->digests);
}

static as_status columns_fill(struct columns *c, const struct file_row *files, size_t n,
                              struct as_err *err)
{
    array_open(&c->paths);
    array_open(&c->sizes);
    array_open(&c->digests);
    for (size_t i = 0; i < n; i++) {
        array_str(&c->paths, files[i].path);
        array_i64(&c->sizes, files[i].size);
        array_str(&c->digests, files[i].sha256);
    }
    array_close(&c->paths);
    array_close(&c->sizes);
    array_close(&c->digests);
    if (c->paths.failed || c->sizes.failed || c->digests.failed)
        return as_fail_nomem(err);
    return AS_OK;
}

static as_status find_missing(struct tx *t, const struct columns *c, int64_t *ret,
                              struct as_err *err)
{
    RESULT_AUTO r = {0};
    as_status st =
        tx_query(t, &stmts[FILE_MISSING],
                 ARGS(arg_str(str_cstr(&c->digests)), arg_str(str_cstr(&c->sizes))), &r, err);
    *ret = -1;
    if (st != AS_OK || r.rows == 0)
        return st;
    *ret = result_i64(&r, 0, 0);
    return AS_OK;
}

/* A set of files that is replaced: those of a kind whose paths begin with `prefix`, which the paths
 * of `files` lack. */
struct replaced_set {
    int64_t sweep_key, number;
    const char *kind, *prefix;
    const struct file_row *files;
    size_t n;
};

static as_status replace(struct tx *t, const struct replaced_set *s, int64_t *ret_missing,
                         struct as_err *err)
{
    AS_AUTO(columns_done) struct columns c = {0};
    as_status st = columns_fill(&c, s->files, s->n, err);
    if (st != AS_OK)
        return st;
    st = find_missing(t, &c, ret_missing, err);
    if (st != AS_OK || *ret_missing >= 0)
        return st;
    st = tx_exec(
        t, &stmts[FILE_CLEAR],
        ARGS(arg_i64(s->sweep_key), arg_i64(s->number), arg_str(s->kind), arg_str(s->prefix)), NULL,
        err);
    if (st != AS_OK || s->n == 0)
        return st;
    return tx_exec(t, &stmts[FILE_ADD],
                   ARGS(arg_i64(s->sweep_key), arg_i64(s->number), arg_str(s->kind),
                        arg_str(s->prefix), arg_str(str_cstr(&c.paths)),
                        arg_str(str_cstr(&c.sizes)), arg_str(str_cstr(&c.digests))),
                   NULL, err);
}

as_status store_file_replace(struct tx *t, int64_t sweep_key, int64_t number, const char *kind,
                             const struct file_row *files, size_t n, int64_t *ret_missing,
                             struct as_err *err)
{
    const struct replaced_set s = {sweep_key, number, kind, "", files, n};
    return replace(t, &s, ret_missing, err);
}

as_status store_file_keep(struct tx *t, int64_t sweep_key, int64_t number, int64_t step,
                          const struct file_row *files, size_t n, int64_t *ret_missing,
                          struct as_err *err)
{
    RESULT_AUTO r = {0};
    char prefix[24];
    const struct replaced_set s = {sweep_key, number, KEPT, prefix, files, n};
    (void)snprintf(prefix, sizeof prefix, "%lld/", (long long)step);
    *ret_missing = -1;
    as_status st = tx_query(t, &stmts[FILE_DECIDED],
                            ARGS(arg_i64(sweep_key), arg_i64(number), arg_i64(step)), &r, err);
    if (st != AS_OK || r.rows > 0)
        return st;
    return replace(t, &s, ret_missing, err);
}

as_status store_file_put_log(struct tx *t, int64_t sweep_key, int64_t number, int64_t attempt,
                             int64_t seat, const struct file_row *files, size_t n,
                             int64_t *ret_missing, struct as_err *err)
{
    char prefix[64];
    const struct replaced_set s = {sweep_key, number, "log", prefix, files, n};
    int at = snprintf(prefix, sizeof prefix, "attempt-%lld/", (long long)attempt);
    if (seat >= 0)
        (void)snprintf(prefix + at, sizeof prefix - (size_t)at, "seat-%lld/", (long long)seat);
    return replace(t, &s, ret_missing, err);
}

as_status store_file_drop_kept(struct tx *t, int64_t sweep_key, struct as_err *err)
{
    return tx_exec(t, &stmts[FILE_DROP_KEPT], ARGS(arg_i64(sweep_key)), NULL, err);
}
