/* Content: spooled and hashed outside of any transaction, then stored in one. */
#include "scheduler/content/blobs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/temp_file.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/str.h"
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
        return as_fail(err, AS_E_NOMEM, "out of memory");
    p->fd = -1;
    snprintf(p->sha256, sizeof p->sha256, "%s", sha256);
    p->hash = sha256_create();
    if (!p->hash)
        return as_fail(err, AS_E_NOMEM, "out of memory");
    as_status st = temp_file_open(&p->fd, err);
    if (st == AS_OK)
        *ret = as_steal(p);
    return st;
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
    if (st == AS_OK)
        st = file_write_all(p->fd, bytes, len, err);
    if (st == AS_OK)
        p->size += (int64_t)len;
    return st;
}

/* Storing. */

struct put_arg {
    const struct blob_put *p;
    char *buf; /* BLOB_CHUNK_BYTES */
    bool created;
};

/* Read a full chunk or what is left at `offset`. */
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

static as_status tx_put(struct tx *t, void *arg_, struct as_err *err)
{
    struct put_arg *arg = arg_;
    const struct blob_put *p = arg->p;
    as_status st = store_blob_add(t, p->sha256, p->size, &arg->created, err);
    if (!arg->created)
        return st;
    for (int64_t at = 0; at < p->size && st == AS_OK; at += (int64_t)BLOB_CHUNK_BYTES) {
        size_t len = BLOB_CHUNK_BYTES;
        if (p->size - at < (int64_t)len)
            len = (size_t)(p->size - at);
        st = read_spool(p->fd, arg->buf, len, at, err);
        if (st == AS_OK)
            st = store_blob_add_chunk(t, p->sha256, at / (int64_t)BLOB_CHUNK_BYTES, arg->buf, len,
                                      err);
    }
    return st;
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
        return as_fail(err, AS_E_NOMEM, "out of memory");
    struct put_arg arg = {.p = p, .buf = buf};
    st = store_run(db, TX_WRITE, tx_put, &arg, err);
    if (st == AS_OK)
        *ret_created = arg.created;
    return st;
}

/* Reading. */

struct read_arg {
    const char *sha256;
    int64_t offset, size;
    void *buf;
    size_t want, len;
};

static as_status tx_stat(struct tx *t, void *p, struct as_err *err)
{
    struct read_arg *arg = p;
    return store_blob_stat(t, arg->sha256, &arg->size, err);
}

as_status blob_stat(struct store *db, const char *sha256, int64_t *ret_size, struct as_err *err)
{
    if (!sha256_hex_valid(sha256))
        return bad_digest(sha256, err);
    struct read_arg arg = {.sha256 = sha256};
    as_status st = store_run(db, TX_SOFT, tx_stat, &arg, err);
    if (st == AS_OK)
        *ret_size = arg.size;
    return st;
}

static as_status tx_read(struct tx *t, void *p, struct as_err *err)
{
    struct read_arg *arg = p;
    int64_t chunk = (int64_t)BLOB_CHUNK_BYTES;
    return store_blob_read(t, arg->sha256, arg->offset / chunk, arg->offset % chunk, arg->buf,
                           arg->want, &arg->len, err);
}

as_status blob_read(struct store *db, const char *sha256, int64_t offset, void *buf, size_t size,
                    size_t *ret_len, struct as_err *err)
{
    int64_t left = (int64_t)BLOB_CHUNK_BYTES - offset % (int64_t)BLOB_CHUNK_BYTES;
    struct read_arg arg = {.sha256 = sha256,
                           .offset = offset,
                           .buf = buf,
                           .want = size < (size_t)left ? size : (size_t)left};
    if (!sha256_hex_valid(sha256))
        return bad_digest(sha256, err);
    if (offset < 0)
        return as_fail(err, AS_E_INVAL, "offset is %lld, expected 0 or more", (long long)offset);
    as_status st = store_run(db, TX_READ, tx_read, &arg, err);
    if (st == AS_OK)
        *ret_len = arg.len;
    return st;
}

as_status blob_copy_to(struct store *db, const char *sha256, int fd, struct as_err *err)
{
    AS_AUTO(as_freep) char *buf = as_calloc(BLOB_CHUNK_BYTES, 1);
    if (!buf)
        return as_fail(err, AS_E_NOMEM, "out of memory");
    as_status st = AS_OK;
    int64_t offset = 0;
    size_t len = 1;
    while (st == AS_OK && len > 0) {
        st = blob_read(db, sha256, offset, buf, BLOB_CHUNK_BYTES, &len, err);
        if (st == AS_OK)
            st = file_write_all(fd, buf, len, err);
        offset += (int64_t)len;
    }
    return st;
}
