/* Tables blob and blob_chunk. */
#include "scheduler/store/blob_store.h"

#include <string.h>

#include "scheduler/store/pg_priv.h"
#include "scheduler/store/sets_priv.h"

enum { BLOB_ADD, BLOB_TOUCH, BLOB_ADD_CHUNK, BLOB_STAT, BLOB_READ, BLOB_PRUNE };

static const struct stmt stmts[] = {
    [BLOB_ADD] = {"blob_add",
                  "insert into blob (sha256, size) values ($1, $2) on conflict (sha256) "
                  "do nothing"},
    [BLOB_TOUCH] = {"blob_touch", "update blob set touched_at = now() where sha256 = $1 and "
                                  "touched_at < now() - interval '10 min'"},
    [BLOB_ADD_CHUNK] = {"blob_add_chunk",
                        "insert into blob_chunk (sha256, seq, content) values ($1, $2, $3)"},
    [BLOB_STAT] = {"blob_stat", "select size from blob where sha256 = $1"},
    [BLOB_READ] = {"blob_read",
                   "select substring(c.content from $3::int for $4::int) from blob b left join "
                   "blob_chunk c on c.sha256 = b.sha256 and c.seq = $2 where b.sha256 = $1"},
    [BLOB_PRUNE] =
        {"blob_prune",
         "delete from blob where sha256 in (select sha256 from blob b where touched_at "
         "< now() - $1 * interval '1 ms' and not exists (select from trial_file f where "
         "f.sha256 = b.sha256) and not exists (select from dataset_file d where d.sha256 "
         "= b.sha256) order by touched_at limit 20 for update skip locked)"},
};
const struct stmt_set blob_stmts = {"blob", stmts, AS_ARRAY_LEN(stmts)};

static as_status touch_blob(struct tx *t, const char *sha256, struct as_err *err)
{
    return tx_exec(t, &stmts[BLOB_TOUCH], ARGS(arg_str(sha256)), NULL, err);
}

as_status store_blob_add(struct tx *t, const char *sha256, int64_t size, bool *ret_created,
                         struct as_err *err)
{
    int n = 0;
    as_status st = tx_exec(t, &stmts[BLOB_ADD], ARGS(arg_str(sha256), arg_i64(size)), &n, err);
    if (st != AS_OK)
        return st;
    if (n == 0 && (st = touch_blob(t, sha256, err)) != AS_OK)
        return st;
    *ret_created = n > 0;
    return AS_OK;
}

as_status store_blob_add_chunk(struct tx *t, const char *sha256, int64_t seq, const void *bytes,
                               size_t len, struct as_err *err)
{
    return tx_exec(t, &stmts[BLOB_ADD_CHUNK],
                   ARGS(arg_str(sha256), arg_i64(seq), arg_bytes(bytes, len)), NULL, err);
}

as_status store_blob_stat(struct tx *t, const char *sha256, int64_t *ret_size, struct as_err *err)
{
    RESULT_AUTO r = {0};
    as_status st = tx_query(t, &stmts[BLOB_STAT], ARGS(arg_str(sha256)), &r, err);
    if (st != AS_OK)
        return st;
    if (r.rows == 0)
        return as_fail(err, AS_E_NOT_FOUND, "no content %.64s is stored", sha256);
    *ret_size = result_i64(&r, 0, 0);
    return touch_blob(t, sha256, err);
}

as_status store_blob_read(struct tx *t, const char *sha256, int64_t seq, int64_t offset, void *buf,
                          size_t size, size_t *ret_len, struct as_err *err)
{
    RESULT_AUTO r = {0};
    as_status st = tx_query_binary(
        t, &stmts[BLOB_READ],
        ARGS(arg_str(sha256), arg_i64(seq), arg_i64(offset + 1), arg_i64((int64_t)size)), &r, err);
    if (st != AS_OK)
        return st;
    if (r.rows == 0)
        return as_fail(err, AS_E_NOT_FOUND, "no content %.64s is stored", sha256);
    size_t len = (size_t)PQgetlength(r.pg, 0, 0);
    if (len > size)
        return as_fail(err, AS_E_INTERNAL, "the database sent %zu bytes for %zu", len, size);
    memcpy(buf, PQgetvalue(r.pg, 0, 0), len);
    *ret_len = len;
    return AS_OK;
}

as_status store_blob_prune(struct tx *t, int64_t keep_ms, int64_t *ret_removed, struct as_err *err)
{
    int n = 0;
    as_status st = tx_exec(t, &stmts[BLOB_PRUNE], ARGS(arg_i64(keep_ms)), &n, err);
    if (st == AS_OK)
        *ret_removed = n;
    return st;
}
