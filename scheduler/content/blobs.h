/* Content under its SHA-256, in the database or in the server's blob store (piece_store.h).
 *
 * An upload is written to an unlinked temporary file and hashed, so that no transaction waits for a
 * client. Content that does not match its digest never reaches the database. Content above 4 MiB is
 * stored as parts of 4 MiB, which are content too. Content that nothing refers to is removed
 * (content_gc.h). */
#ifndef ASSAY_SCHEDULER_CONTENT_BLOBS_H
#define ASSAY_SCHEDULER_CONTENT_BLOBS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/mem.h"
#include "base/status.h"
#include "scheduler/store/store.h"

#define BLOB_CHUNK_BYTES ((size_t)1 << 20)

struct blob_put;

/* Begin an upload. `sha256` is copied. AS_E_INVAL: not 64 lower-case hexadecimal digits. AS_E_IO:
 * no temporary file. AS_E_NOMEM. Does not touch the database. Owned by the caller. */
AS_MUST_CHECK as_status blob_put_create(const char *sha256, struct blob_put **ret,
                                        struct as_err *err);
/* Add the next bytes, borrowed. AS_E_IO: the disk is full. */
AS_MUST_CHECK as_status blob_put_add(struct blob_put *p, const void *bytes, size_t len,
                                     struct as_err *err);
/* Store the content. Only blob_put_free() may follow. *ret_created is false if it was stored
 * already. AS_E_INVAL: the bytes have another digest. AS_E_IO, AS_E_UNAVAILABLE. */
AS_MUST_CHECK as_status blob_put_commit(struct store *db, struct blob_put *p, bool *ret_created,
                                        struct as_err *err);
void blob_put_free(struct blob_put *p); /* abandons an upload that was not committed */
AS_DEFINE_FREEP(struct blob_put, blob_put_free)

/* Content that its client cuts into parts of 4 MiB (the last one may be shorter). */
struct blob_parts {
    int64_t size;
    const char *const *sha256; /* of the parts, in their order */
    size_t n;
    int64_t *missing; /* set by blob_put_parts(): the places of parts that are not stored; in the
                         arena */
    size_t n_missing;
};

/* Store content whose parts are stored, or say which of them must be uploaded first (p->n_missing >
 * 0: then nothing was stored). Reads all parts to check the digest of the whole. *ret_created is
 * false if it was stored already. AS_E_INVAL with pointer: the sizes or digests are wrong.
 * AS_E_INVAL: the parts have another digest. AS_E_IO, AS_E_UNAVAILABLE. */
AS_MUST_CHECK as_status blob_put_parts(struct store *db, struct arena *a, const char *sha256,
                                       struct blob_parts *p, bool *ret_created, struct as_err *err);

/* The size of a blob. AS_E_NOT_FOUND. AS_E_INVAL: not a digest. AS_E_UNAVAILABLE. */
AS_MUST_CHECK as_status blob_stat(struct store *db, const char *sha256, int64_t *ret_size,
                                  struct as_err *err);

/* Read up to `size` bytes from `offset`. A read never crosses a multiple of BLOB_CHUNK_BYTES, so
 * call again for the rest. *ret_len is 0 at the end. One round trip each. AS_E_NOT_FOUND,
 * AS_E_UNAVAILABLE. AS_E_IO: the content is missing or altered in the blob store; the message names
 * its digest. */
AS_MUST_CHECK as_status blob_read(struct store *db, const char *sha256, int64_t offset, void *buf,
                                  size_t size, size_t *ret_len, struct as_err *err);

/* Write the whole blob to a descriptor. AS_E_NOT_FOUND, AS_E_IO, AS_E_UNAVAILABLE. */
AS_MUST_CHECK as_status blob_copy_to(struct store *db, const char *sha256, int fd,
                                     struct as_err *err);

#endif
