/* Content: written to a temporary file and hashed, then stored, in parts of 4 MiB if it is larger.
 *
 * The upload happens outside of any transaction, so that no connection waits for a slow client.
 * Each part is content of its own and is stored in a transaction of its own; the last transaction
 * names them, so that no reader sees a part of the content. A part that is stored already is not
 * stored again, and a client that cuts its content itself does not send it (blob_put_parts). A read
 * is one short transaction for each MiB, so that a slow reader holds no connection either. */
#include "scheduler/content/blobs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/str.h"
#include "base/temp_file.h"
#include "scheduler/content/piece_store.h"
#include "scheduler/store/blob_store.h"
#include "scheduler/store/tx.h"

#define PARTS_OF(size) (((size) + PART_BYTES - 1) / PART_BYTES)

struct blob_put {
    char sha256[SHA256_HEX_SIZE];
    struct sha256 *hash;
    int fd;
    int64_t size;
};

static as_status bad_digest(const char *sha256, struct as_err *err)
{
    return as_fail(err, AS_E_INVAL, "sha256 is '%.64s', expected 64 lower-case hexadecimal digits",
                   sha256);
}

as_status blob_put_create(const char *sha256, struct blob_put **ret, struct as_err *err)
{
    if (!sha256_hex_valid(sha256))
        return bad_digest(sha256, err);
    AS_AUTO(blob_put_freep) struct blob_put *p = as_calloc(1, sizeof *p);
    if (!p)
        return as_fail_nomem(err);
    p->fd = -1;
    snprintf(p->sha256, sizeof p->sha256, "%s", sha256);
    p->hash = sha256_create();
    if (!p->hash)
        return as_fail_nomem(err);
    as_status st = temp_file_open(&p->fd, err);
    if (st != AS_OK)
        return st;
    *ret = as_steal(p);
    return AS_OK;
}

void blob_put_free(struct blob_put *p)
{
    if (!p)
        return;
    sha256_free(p->hash);
    file_closep(&p->fd);
    free(p);
}

as_status blob_put_add(struct blob_put *p, const void *bytes, size_t len, struct as_err *err)
{
    as_status st = sha256_add(p->hash, bytes, len, err);
    if (st != AS_OK)
        return st;
    st = file_write_all(p->fd, bytes, len, err);
    if (st != AS_OK)
        return st;
    p->size += (int64_t)len;
    return AS_OK;
}

/* Store. */

/* Read a full chunk, or the rest at `offset`. */
static as_status read_temp_file(int fd, char *buf, size_t want, int64_t offset, struct as_err *err)
{
    size_t have = 0;
    while (have < want) {
        ssize_t n = pread(fd, buf + have, want - have, offset + (int64_t)have);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return as_fail(err, AS_E_IO, "reading a temporary file: %s",
                           n < 0 ? strerror(errno) : "it is too short");
        have += (size_t)n;
    }
    return AS_OK;
}

/* The rows of one piece, in the caller's transaction. */
static as_status add_rows(struct tx *t, const char *sha256, const char *bytes, size_t size,
                          bool *ret_created, struct as_err *err)
{
    as_status st = store_blob_add(t, sha256, (int64_t)size, PLACE_ROWS, ret_created, err);
    if (st != AS_OK || !*ret_created)
        return st;
    for (size_t at = 0; at < size && st == AS_OK; at += BLOB_CHUNK_BYTES) {
        size_t len = size - at < BLOB_CHUNK_BYTES ? size - at : BLOB_CHUNK_BYTES;
        st =
            store_blob_add_chunk(t, sha256, (int64_t)(at / BLOB_CHUNK_BYTES), bytes + at, len, err);
    }
    return st;
}

static as_status begin_piece(struct tx *t, const char *sha256, bool *ret_there, struct as_err *err)
{
    int64_t size;
    as_status st = store_blob_stat(t, sha256, &size, err);
    *ret_there = st == AS_OK;
    if (*ret_there)
        tx_saw(t);
    return st == AS_E_NOT_FOUND ? store_blob_loose_add(t, sha256, err) : st;
}

static as_status end_piece(struct tx *t, const char *sha256, size_t size, bool *ret_created,
                           struct as_err *err)
{
    as_status st = store_blob_add(t, sha256, (int64_t)size, PLACE_STORE, ret_created, err);
    return st == AS_OK ? store_blob_loose_end(t, sha256, err) : st;
}

/* A piece in the blob store. Before it is put there, a row says that it may be there: whatever
 * stops this server between the two transactions, the piece is found and removed
 * (content_gc.c). */
static as_status put_outside(struct store *db, const char *sha256, const char *bytes, size_t size,
                             bool *ret_created, struct as_err *err)
{
    bool there = false;
    struct tx_run begin = tx_run_start(db, TX_WRITE, err);
    while (tx_run_again(&begin))
        begin.status = begin_piece(begin.tx, sha256, &there, err);
    *ret_created = false;
    if (begin.status != AS_OK || there)
        return begin.status;
    as_status st = piece_store_put(store_pieces(db), sha256, bytes, size, err);
    if (st != AS_OK)
        return st;
    struct tx_run end = tx_run_start(db, TX_WRITE, err);
    while (tx_run_again(&end))
        end.status = end_piece(end.tx, sha256, size, ret_created, err);
    return end.status;
}

/* Store one piece, at most PART_BYTES. */
static as_status put_piece(struct store *db, const char *sha256, const char *bytes, size_t size,
                           bool *ret_created, struct as_err *err)
{
    if (store_pieces(db))
        return put_outside(db, sha256, bytes, size, ret_created, err);
    struct tx_run run = tx_run_start(db, TX_WRITE, err);
    while (tx_run_again(&run))
        run.status = add_rows(run.tx, sha256, bytes, size, ret_created, err);
    return run.status;
}

static as_status add_composed(struct tx *t, const char *sha256, const char *const *parts,
                              int64_t size, bool *ret_created, struct as_err *err)
{
    as_status st = store_blob_add(t, sha256, size, PLACE_PARTS, ret_created, err);
    if (st == AS_OK && *ret_created)
        st = store_blob_add_parts(t, sha256, parts, (size_t)PARTS_OF(size), err);
    if (st == AS_E_NOT_FOUND)
        return as_fail(err, AS_E_UNAVAILABLE, "a part was removed meanwhile; send it again");
    return st;
}

/* The row of content above PART_BYTES, whose parts are stored. */
static as_status compose(struct store *db, const char *sha256, const char *const *parts,
                         int64_t size, bool *ret_created, struct as_err *err)
{
    struct tx_run run = tx_run_start(db, TX_WRITE, err);
    while (tx_run_again(&run))
        run.status = add_composed(run.tx, sha256, parts, size, ret_created, err);
    return run.status;
}

/* Store the parts of a temporary file; their digests are in the arena. `buf` has PART_BYTES. */
static as_status put_parts(struct store *db, struct arena *a, const struct blob_put *p, char *buf,
                           const char **parts, struct as_err *err)
{
    for (int64_t i = 0; i < PARTS_OF(p->size); i++) {
        int64_t at = i * PART_BYTES;
        size_t len = (size_t)(p->size - at < PART_BYTES ? p->size - at : PART_BYTES);
        char *hex = arena_alloc(a, SHA256_HEX_SIZE, 1);
        bool created;
        if (!hex)
            return as_fail_nomem(err);
        as_status st = read_temp_file(p->fd, buf, len, at, err);
        if (st == AS_OK)
            st = sha256_of(buf, len, hex, err);
        if (st == AS_OK)
            st = put_piece(db, hex, buf, len, &created, err);
        if (st != AS_OK)
            return st;
        parts[i] = hex;
    }
    return AS_OK;
}

static as_status put_whole(struct store *db, const struct blob_put *p, bool *ret_created,
                           struct as_err *err)
{
    AS_AUTO(arena_done) struct arena a = {0};
    bool composed = p->size > PART_BYTES;
    size_t room = (size_t)(composed ? PART_BYTES : p->size + 1);
    AS_AUTO(as_freep) char *buf = as_calloc(room, 1);
    const char **parts = arena_alloc(&a, (size_t)PARTS_OF(p->size) + 1, sizeof *parts);
    if (!buf || !parts)
        return as_fail_nomem(err);
    if (composed) {
        as_status st = put_parts(db, &a, p, buf, parts, err);
        return st == AS_OK ? compose(db, p->sha256, parts, p->size, ret_created, err) : st;
    }
    as_status st = read_temp_file(p->fd, buf, (size_t)p->size, 0, err);
    return st == AS_OK ? put_piece(db, p->sha256, buf, (size_t)p->size, ret_created, err) : st;
}

/* Was it uploaded before? Then that is the answer, so it must be on disk. AS_E_NOT_FOUND. */
static as_status find_stored(struct store *db, const char *sha256, struct as_err *err)
{
    struct tx_run run = tx_run_start(db, TX_WRITE, err);
    while (tx_run_again(&run)) {
        int64_t size;
        run.status = store_blob_stat(run.tx, sha256, &size, err);
        tx_saw(run.tx);
    }
    return run.status;
}

as_status blob_put_commit(struct store *db, struct blob_put *p, bool *ret_created,
                          struct as_err *err)
{
    uint8_t digest[SHA256_BYTES];
    char hex[SHA256_HEX_SIZE];
    as_status st = sha256_end(p->hash, digest, err);
    if (st != AS_OK)
        return st;
    hex_format(digest, sizeof digest, hex);
    if (!as_streq(hex, p->sha256))
        return as_fail(err, AS_E_INVAL,
                       "sha256 of the %lld bytes received is %s, expected %s as in the path",
                       (long long)p->size, hex, p->sha256);
    st = find_stored(db, p->sha256, err);
    *ret_created = false;
    return st == AS_E_NOT_FOUND ? put_whole(db, p, ret_created, err) : st;
}

/* Parts that their client has cut itself. */

static as_status parts_check(const char *sha256, const struct blob_parts *p, struct as_err *err)
{
    char at[40];
    if (!sha256_hex_valid(sha256))
        return bad_digest(sha256, err);
    if (p->size <= PART_BYTES)
        return as_fail_at(
            err, AS_E_INVAL, "/size",
            "/size: found %lld, expected more than %lld: smaller content has no parts",
            (long long)p->size, (long long)PART_BYTES);
    if ((int64_t)p->n != PARTS_OF(p->size))
        return as_fail_at(err, AS_E_INVAL, "/parts",
                          "/parts: found %zu digests for %lld bytes, expected %lld, one for each "
                          "%lld bytes",
                          p->n, (long long)p->size, (long long)PARTS_OF(p->size),
                          (long long)PART_BYTES);
    for (size_t i = 0; i < p->n; i++) {
        (void)snprintf(at, sizeof at, "/parts/%zu", i);
        if (!sha256_hex_valid(p->sha256[i]))
            return as_fail_at(err, AS_E_INVAL, at,
                              "%s: found '%.64s', expected 64 lower-case hexadecimal digits", at,
                              p->sha256[i]);
    }
    return AS_OK;
}

/* Read all parts and compare the digest of the whole. */
static as_status check_whole(struct store *db, const char *sha256, const struct blob_parts *p,
                             struct as_err *err)
{
    AS_AUTO(sha256_freep) struct sha256 *hash = sha256_create();
    AS_AUTO(as_freep) char *buf = as_calloc(BLOB_CHUNK_BYTES, 1);
    uint8_t digest[SHA256_BYTES];
    char hex[SHA256_HEX_SIZE];
    as_status st = hash && buf ? AS_OK : as_fail_nomem(err);
    for (size_t i = 0; i < p->n; i++) {
        size_t len = 1;
        for (int64_t at = 0; st == AS_OK && len > 0; at += (int64_t)len) {
            st = blob_read(db, p->sha256[i], at, buf, BLOB_CHUNK_BYTES, &len, err);
            if (st == AS_OK && len > 0)
                st = sha256_add(hash, buf, len, err);
        }
    }
    if (st != AS_OK || (st = sha256_end(hash, digest, err)) != AS_OK)
        return st;
    hex_format(digest, sizeof digest, hex);
    if (as_streq(hex, sha256))
        return AS_OK;
    return as_fail(err, AS_E_INVAL, "sha256 of the parts is %s, expected %s as in the path", hex,
                   sha256);
}

as_status blob_put_parts(struct store *db, struct arena *a, const char *sha256,
                         struct blob_parts *p, bool *ret_created, struct as_err *err)
{
    *ret_created = false;
    p->n_missing = 0;
    as_status st = parts_check(sha256, p, err);
    if (st != AS_OK)
        return st;
    if ((st = find_stored(db, sha256, err)) != AS_E_NOT_FOUND)
        return st;
    int64_t *sizes = arena_alloc(a, p->n, sizeof *sizes);
    bool *present = arena_alloc(a, p->n, sizeof *present);
    p->missing = arena_alloc(a, p->n, sizeof *p->missing);
    if (!sizes || !present || !p->missing)
        return as_fail_nomem(err);
    for (size_t i = 0; i < p->n; i++)
        sizes[i] = i + 1 < p->n ? PART_BYTES : p->size - (int64_t)i * PART_BYTES;
    struct tx_run run = tx_run_start(db, TX_SOFT, err);
    while (tx_run_again(&run))
        run.status = store_blob_present(run.tx, p->sha256, sizes, p->n, present, err);
    if (run.status != AS_OK)
        return run.status;
    for (size_t i = 0; i < p->n; i++)
        if (!present[i])
            p->missing[p->n_missing++] = (int64_t)i;
    if (p->n_missing > 0)
        return AS_OK;
    if ((st = check_whole(db, sha256, p, err)) != AS_OK)
        return st;
    return compose(db, sha256, p->sha256, p->size, ret_created, err);
}

/* Read. */

as_status blob_stat(struct store *db, const char *sha256, int64_t *ret_size, struct as_err *err)
{
    if (!sha256_hex_valid(sha256))
        return bad_digest(sha256, err);
    int64_t size = 0;
    struct tx_run run = tx_run_start(db, TX_SOFT, err);
    while (tx_run_again(&run))
        run.status = store_blob_stat(run.tx, sha256, &size, err);
    if (run.status == AS_OK)
        *ret_size = size;
    return run.status;
}

as_status blob_read(struct store *db, const char *sha256, int64_t offset, void *buf, size_t size,
                    size_t *ret_len, struct as_err *err)
{
    const int64_t chunk = (int64_t)BLOB_CHUNK_BYTES;
    struct blob_byte at = {0};
    if (!sha256_hex_valid(sha256))
        return bad_digest(sha256, err);
    if (offset < 0)
        return as_fail(err, AS_E_INVAL, "offset is %lld, expected 0 or more", (long long)offset);
    size_t left = (size_t)(chunk - offset % chunk), len = 0;
    size_t want = size < left ? size : left;
    struct tx_run run = tx_run_start(db, TX_READ, err);
    while (tx_run_again(&run))
        run.status = store_blob_read(run.tx, sha256, offset, buf, want, &len, &at, err);
    if (run.status != AS_OK)
        return run.status;
    *ret_len = len;
    if (at.place != PLACE_STORE)
        return AS_OK;
    if (!store_pieces(db))
        return as_fail(err, AS_E_IO,
                       "the content %s is in a blob store, and this server has none: start it with "
                       "--blob-store",
                       at.sha256);
    return piece_store_read(store_pieces(db), at.sha256, at.offset, buf, want, ret_len, err);
}

as_status blob_copy_to(struct store *db, const char *sha256, int fd, struct as_err *err)
{
    AS_AUTO(as_freep) char *buf = as_calloc(BLOB_CHUNK_BYTES, 1);
    if (!buf)
        return as_fail_nomem(err);
    size_t len = 1;
    for (int64_t offset = 0; len > 0; offset += (int64_t)len) {
        as_status st = blob_read(db, sha256, offset, buf, BLOB_CHUNK_BYTES, &len, err);
        if (st != AS_OK)
            return st;
        st = file_write_all(fd, buf, len, err);
        if (st != AS_OK)
            return st;
    }
    return AS_OK;
}
