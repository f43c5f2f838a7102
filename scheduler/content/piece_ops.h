/* What a kind of blob store does (piece_store.h), and where one is. */
#ifndef ASSAY_SCHEDULER_CONTENT_PIECE_OPS_H
#define ASSAY_SCHEDULER_CONTENT_PIECE_OPS_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

/* How one kind does it. `self` is what its open function made; sha256 is valid. */
struct piece_ops {
    /* Durable when it returns AS_OK. AS_E_IO: full, or not writable. AS_E_UNAVAILABLE.
     * AS_E_DENIED. */
    as_status (*put)(void *self, const char *sha256, const void *bytes, size_t len,
                     struct as_err *err);
    /* Read a piece whole, at most `size` bytes. AS_E_NOT_FOUND, AS_E_TOO_LARGE, AS_E_IO,
     * AS_E_UNAVAILABLE, AS_E_DENIED. */
    as_status (*get)(void *self, const char *sha256, void *buf, size_t size, size_t *ret_len,
                     struct as_err *err);
    /* AS_OK if there is none. */
    as_status (*remove)(void *self, const char *sha256, struct as_err *err);
    /* Remove drafts that no upload can still write: older than keep_ms. May be NULL. */
    as_status (*tidy)(void *self, int64_t keep_ms, struct as_err *err);
    void (*close)(void *self); /* frees self */
};

struct piece_place {
    const char *where;    /* a folder, or s3://bucket/prefix */
    const char *endpoint; /* S3: http(s)://host[:port]; NULL: AWS, by AWS_REGION */
};

#endif
