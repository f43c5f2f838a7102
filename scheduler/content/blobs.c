/* Content: written to a temporary file and hashed, then stored in one transaction.
 *
 * The upload happens outside of any transaction, so that no connection waits for a slow client. One
 * transaction stores all pieces, so that no reader sees a part of the content. A read is one short
 * transaction for each piece, so that a slow reader holds no connection either. */
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
#include "scheduler/store/blob_store.h"
#include "scheduler/store/tx.h"

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
static as_status read_spool(int fd, char *buf, size_t want, int64_t offset, struct as_err *err)
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

/* `buf` has BLOB_CHUNK_BYTES. */
static as_status add_content(struct tx *t, const struct blob_put *p, char *buf, bool *ret_created,
                             struct as_err *err)
{
    as_status st = store_blob_add(t, p->sha256, p->size, ret_created, err);
    if (st != AS_OK || !*ret_created)
        return st;
    for (int64_t at = 0; at < p->size; at += (int64_t)BLOB_CHUNK_BYTES) {
        size_t len = BLOB_CHUNK_BYTES;
        if (p->size - at < (int64_t)len)
            len = (size_t)(p->size - at);
        st = read_spool(p->fd, buf, len, at, err);
        if (st != AS_OK)
            return st;
        st = store_blob_add_chunk(t, p->sha256, at / (int64_t)BLOB_CHUNK_BYTES, buf, len, err);
        if (st != AS_OK)
            return st;
    }
    return AS_OK;
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
    AS_AUTO(as_freep) char *buf = as_calloc(BLOB_CHUNK_BYTES, 1);
    if (!buf)
        return as_fail_nomem(err);
    bool created = false;
    struct tx_run run = tx_run_start(db, TX_WRITE, err);
    while (tx_run_again(&run))
        run.status = add_content(run.tx, p, buf, &created, err);
    if (run.status == AS_OK)
        *ret_created = created;
    return run.status;
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
    if (!sha256_hex_valid(sha256))
        return bad_digest(sha256, err);
    if (offset < 0)
        return as_fail(err, AS_E_INVAL, "offset is %lld, expected 0 or more", (long long)offset);
    size_t left = (size_t)(chunk - offset % chunk), len = 0;
    struct tx_run run = tx_run_start(db, TX_READ, err);
    while (tx_run_again(&run))
        run.status = store_blob_read(run.tx, sha256, offset / chunk, offset % chunk, buf,
                                     size < left ? size : left, &len, err);
    if (run.status == AS_OK)
        *ret_len = len;
    return run.status;
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
