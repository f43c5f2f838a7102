/* Tables blob, blob_chunk, blob_part and blob_loose.
 *
 * A trigger marks content that lost a reference (released_at), also when a whole sweep is deleted.
 * The mark only says where to look: BLOB_PRUNE checks the references itself, and a foreign key
 * refuses what was referred to meanwhile. BLOB_SETTLE takes the mark from content that is still
 * referred to, so that the index of marks stays empty.
 *
 * One statement removes few blobs, because the chunks of one may be hundreds of megabytes. Removed
 * content of the blob store becomes loose: the file goes after the commit, never before. */
#include "scheduler/store/blob_store.h"

#include <stdio.h>
#include <string.h>

#include "scheduler/store/sql_columns_priv.h"
#include "scheduler/store/pg_priv.h"
#include "scheduler/store/sets_priv.h"
#include "scheduler/store/values_priv.h"

#define CHUNK_BYTES ((int64_t)1 << 20)

enum {
    BLOB_ADD,
    BLOB_TOUCH,
    BLOB_ADD_CHUNK,
    BLOB_ADD_PARTS,
    BLOB_STAT,
    BLOB_PRESENT,
    BLOB_READ,
    BLOB_LOOSE_ADD,
    BLOB_LOOSE_END,
    BLOB_LOOSE_NEXT,
    BLOB_SETTLE,
    BLOB_PRUNE,
    BLOB_SUMS
};

static const char *const place_words[] = {"rows", "parts", "store"};

#define IS_USED                                                                                    \
    "(exists (select from trial_file f where f.sha256 = b.sha256) or exists (select from "         \
    "dataset_file d where d.sha256 = b.sha256) or exists (select from model_version m where "      \
    "m.sha256 = b.sha256) or exists (select from blob_part p where p.part = b.sha256))"

#define SUMS_FIELDS(FIRST, NEXT)                                                                   \
    FIRST(i64, blobs, "count(*) filter (where place <> 'parts')")                                  \
    NEXT(i64, rows_bytes, "coalesce(sum(size) filter (where place = 'rows'), 0)::bigint")          \
    NEXT(i64, store_bytes, "coalesce(sum(size) filter (where place = 'store'), 0)::bigint")        \
    NEXT(i64, unused_bytes,                                                                        \
         "coalesce(sum(size) filter (where place <> 'parts' and not " IS_USED "), 0)::bigint")     \
    NEXT(i64, table_bytes, "pg_total_relation_size('blob_chunk') + pg_total_relation_size('blob')")
COLUMNS_WHOLE_ROW(struct blob_sums, SUMS_FIELDS)
COLUMNS_READER(sums, struct blob_sums, SUMS_FIELDS)
#define SUMS_COLUMNS COLUMNS_SQL(SUMS_FIELDS)

static const struct stmt stmts[] = {
    [BLOB_ADD] = {"blob_add", "insert into blob (sha256, size, place) values ($1, $2, $3) on "
                              "conflict (sha256) do nothing"},
    [BLOB_TOUCH] = {"blob_touch",
                    "update blob set touched_at = now(), released_at = null where sha256 = $1 and "
                    "(touched_at < now() - interval '10 min' or released_at is not null)"},
    [BLOB_ADD_CHUNK] = {"blob_add_chunk",
                        "insert into blob_chunk (sha256, seq, content) values ($1, $2, $3)"},
    [BLOB_ADD_PARTS] = {"blob_add_parts",
                        "insert into blob_part (sha256, seq, part) select $1, l.place - 1, l.part "
                        "from unnest($2::text[]) with ordinality as l(part, place)"},
    [BLOB_STAT] = {"blob_stat", "select size from blob where sha256 = $1"},
    [BLOB_PRESENT] =
        {"blob_present",
         "with there as (select l.place, b.sha256 from unnest($1::text[], $2::bigint[]) with "
         "ordinality as l(sha256, size, place) join blob b on b.sha256 = l.sha256 and b.size = "
         "l.size and b.place <> 'parts'), touched as (update blob set touched_at = now(), "
         "released_at = null where sha256 in (select b.sha256 from blob b where b.sha256 in "
         "(select t.sha256 from there t) and (b.touched_at < now() - interval '10 min' or "
         "b.released_at is not null) order by b.sha256 for no key update)) select place - 1 from "
         "there"},
    /* $2: which part, $3: which chunk of a part, $4: which chunk of the whole */
    [BLOB_READ] = {"blob_read",
                   "select substring(c.content from $5::int for $6::int), coalesce(q.place, "
                   "b.place), coalesce(q.sha256, b.sha256) from blob b left join blob_part p on "
                   "p.sha256 = b.sha256 and p.seq = $2 left join blob q on q.sha256 = p.part left "
                   "join blob_chunk c on c.sha256 = coalesce(q.sha256, b.sha256) and c.seq = case "
                   "when b.place = 'parts' then $3::int else $4::int end where b.sha256 = $1"},
    [BLOB_LOOSE_ADD] = {"blob_loose_add", "insert into blob_loose (sha256) values ($1) on conflict "
                                          "(sha256) do update set since = now()"},
    [BLOB_LOOSE_END] = {"blob_loose_end", "delete from blob_loose where sha256 = $1"},
    [BLOB_LOOSE_NEXT] = {"blob_loose_next",
                         "select sha256, (select count(*) from blob b where b.sha256 = l.sha256 "
                         "and b.place = 'store') from blob_loose l where since < now() - $1 * "
                         "interval '1 ms' order by since limit 1 for update skip locked"},
    [BLOB_SETTLE] = {"blob_settle",
                     "update blob set released_at = null where sha256 in (select "
                     "b.sha256 from blob b where b.released_at is not null and " IS_USED
                     " order by b.sha256 limit 1000 for no key update skip "
                     "locked)"},
    [BLOB_PRUNE] =
        {"blob_prune",
         "with gone as (delete from blob where sha256 in (select b.sha256 from blob b where "
         "(b.touched_at < now() - $1 * interval '1 ms' or b.released_at < now() - $2 * interval "
         "'1 ms') and not " IS_USED " order by b.touched_at limit 20 for update skip locked) "
         "returning sha256, size, place), loose as (insert into blob_loose (sha256, since) select "
         "sha256, '-infinity' from gone where place = 'store' on conflict (sha256) do nothing) "
         "select count(*), coalesce(sum(size) filter (where place <> 'parts'), 0)::bigint from "
         "gone"},
    [BLOB_SUMS] = {"blob_sums", "select " SUMS_COLUMNS " from blob b"},
};
const struct stmt_set blob_stmts = {"blob", stmts, AS_ARRAY_LEN(stmts)};

static as_status touch_blob(struct tx *t, const char *sha256, struct as_err *err)
{
    return tx_exec(t, &stmts[BLOB_TOUCH], ARGS(arg_str(sha256)), NULL, err);
}

as_status store_blob_add(struct tx *t, const char *sha256, int64_t size, blob_place place,
                         bool *ret_created, struct as_err *err)
{
    int n = 0;
    as_status st =
        tx_exec(t, &stmts[BLOB_ADD],
                ARGS(arg_str(sha256), arg_i64(size), arg_str(place_words[place])), &n, err);
    if (st != AS_OK)
        return st;
    if (n == 0 && (st = touch_blob(t, sha256, err)) != AS_OK)
        return st;
    if (n == 0)
        tx_saw(t);
    *ret_created = n > 0;
    return AS_OK;
}

as_status store_blob_add_chunk(struct tx *t, const char *sha256, int64_t seq, const void *bytes,
                               size_t len, struct as_err *err)
{
    return tx_exec(t, &stmts[BLOB_ADD_CHUNK],
                   ARGS(arg_str(sha256), arg_i64(seq), arg_bytes(bytes, len)), NULL, err);
}

as_status store_blob_add_parts(struct tx *t, const char *sha256, const char *const *parts, size_t n,
                               struct as_err *err)
{
    AS_AUTO(str_done) struct str list = {0};
    as_status st = array_of_names(&list, parts, n, err);
    if (st != AS_OK)
        return st;
    return tx_exec(t, &stmts[BLOB_ADD_PARTS], ARGS(arg_str(sha256), arg_str(str_cstr(&list))), NULL,
                   err);
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

as_status store_blob_present(struct tx *t, const char *const *sha256, const int64_t *sizes,
                             size_t n, bool *ret_present, struct as_err *err)
{
    AS_AUTO(str_done) struct str names = {0};
    AS_AUTO(str_done) struct str bytes = {0};
    RESULT_AUTO r = {0};
    as_status st = array_of_names(&names, sha256, n, err);
    array_open(&bytes);
    for (size_t i = 0; i < n; i++)
        array_i64(&bytes, sizes[i]);
    array_close(&bytes);
    if (st == AS_OK)
        st = str_check(&bytes, err);
    if (st == AS_OK)
        st = tx_query(t, &stmts[BLOB_PRESENT],
                      ARGS(arg_str(str_cstr(&names)), arg_str(str_cstr(&bytes))), &r, err);
    if (st != AS_OK)
        return st;
    memset(ret_present, 0, n * sizeof *ret_present);
    for (int i = 0; i < r.rows; i++) {
        int64_t place = result_i64(&r, i, 0);
        if (place >= 0 && place < (int64_t)n)
            ret_present[place] = true;
    }
    return AS_OK;
}

static blob_place place_of(const char *word)
{
    int place = PLACE_ROWS; /* the table's check allows no other words */
    while (place < PLACE_STORE && !as_streq(place_words[place], word))
        place++;
    return (blob_place)place;
}

as_status store_blob_read(struct tx *t, const char *sha256, int64_t offset, void *buf, size_t size,
                          size_t *ret_len, struct blob_byte *ret_at, struct as_err *err)
{
    RESULT_AUTO r = {0};
    const int64_t in_part = offset % PART_BYTES;
    as_status st =
        tx_query_binary(t, &stmts[BLOB_READ],
                        ARGS(arg_str(sha256), arg_i64(offset / PART_BYTES),
                             arg_i64(in_part / CHUNK_BYTES), arg_i64(offset / CHUNK_BYTES),
                             arg_i64(offset % CHUNK_BYTES + 1), arg_i64((int64_t)size)),
                        &r, err);
    if (st != AS_OK)
        return st;
    if (r.rows == 0)
        return as_fail(err, AS_E_NOT_FOUND, "no content %.64s is stored", sha256);
    size_t len = (size_t)PQgetlength(r.pg, 0, 0);
    if (len > size)
        return as_fail(err, AS_E_INTERNAL, "the database sent %zu bytes for %zu", len, size);
    memcpy(buf, PQgetvalue(r.pg, 0, 0), len);
    ret_at->place = place_of(PQgetvalue(r.pg, 0, 1));
    (void)snprintf(ret_at->sha256, sizeof ret_at->sha256, "%s", PQgetvalue(r.pg, 0, 2));
    ret_at->offset = as_streq(ret_at->sha256, sha256) ? offset : in_part;
    *ret_len = len;
    return AS_OK;
}

as_status store_blob_loose_add(struct tx *t, const char *sha256, struct as_err *err)
{
    return tx_exec(t, &stmts[BLOB_LOOSE_ADD], ARGS(arg_str(sha256)), NULL, err);
}

as_status store_blob_loose_end(struct tx *t, const char *sha256, struct as_err *err)
{
    return tx_exec(t, &stmts[BLOB_LOOSE_END], ARGS(arg_str(sha256)), NULL, err);
}

as_status store_blob_loose_next(struct tx *t, int64_t keep_ms, char ret_sha256[SHA256_HEX_SIZE],
                                bool *ret_used, struct as_err *err)
{
    RESULT_AUTO r = {0};
    as_status st = tx_query(t, &stmts[BLOB_LOOSE_NEXT], ARGS(arg_i64(keep_ms)), &r, err);
    ret_sha256[0] = '\0';
    if (st != AS_OK || r.rows == 0)
        return st;
    (void)snprintf(ret_sha256, SHA256_HEX_SIZE, "%s", PQgetvalue(r.pg, 0, 0));
    *ret_used = result_i64(&r, 0, 1) > 0;
    return AS_OK;
}

as_status store_blob_prune(struct tx *t, int64_t keep_ms, int64_t release_ms, int64_t *ret_removed,
                           int64_t *ret_bytes, struct as_err *err)
{
    RESULT_AUTO r = {0};
    as_status st = tx_exec(t, &stmts[BLOB_SETTLE], NULL, NULL, err);
    if (st == AS_OK)
        st = tx_query(t, &stmts[BLOB_PRUNE], ARGS(arg_i64(keep_ms), arg_i64(release_ms)), &r, err);
    if (st != AS_OK)
        return st;
    *ret_removed = result_i64(&r, 0, 0);
    *ret_bytes = result_i64(&r, 0, 1);
    return AS_OK;
}

as_status store_blob_sums(struct tx *t, struct blob_sums *ret, struct as_err *err)
{
    RESULT_AUTO r = {0};
    as_status st = tx_query(t, &stmts[BLOB_SUMS], NULL, &r, err);
    return st == AS_OK ? read_sums_row(&r, 0, NULL, ret, err) : st;
}

as_status store_blob_vacuum(struct tx *t, struct as_err *err)
{
    /* One command each: VACUUM does not run inside a transaction, and several commands are one. */
    static const char *const commands[] = {"set statement_timeout = 0", "vacuum blob_chunk",
                                           "vacuum blob", "reset statement_timeout"};
    for (size_t i = 0; i < AS_ARRAY_LEN(commands); i++) {
        as_status st = conn_exec(t->conn, commands[i], err);
        if (st == AS_OK)
            continue;
        t->conn->broken = true; /* it may have lost its statement_timeout */
        return st;
    }
    return AS_OK;
}
