/* Tables blob and blob_chunk. */
#ifndef ASSAY_SCHEDULER_STORE_BLOB_STORE_H
#define ASSAY_SCHEDULER_STORE_BLOB_STORE_H

#include "scheduler/store/tx.h"

/* *ret_created is false if it exists; then it is touched now. */
AS_MUST_CHECK as_status store_blob_add(struct tx *t, const char *sha256, int64_t size,
                                       bool *ret_created, struct as_err *err);
AS_MUST_CHECK as_status store_blob_add_chunk(struct tx *t, const char *sha256, int64_t seq,
                                             const void *bytes, size_t len, struct as_err *err);

/* Touch it: it is not removed for another keep time. AS_E_NOT_FOUND. */
AS_MUST_CHECK as_status store_blob_stat(struct tx *t, const char *sha256, int64_t *ret_size,
                                        struct as_err *err);

/* Read at most `size` bytes from `offset` within chunk `seq`. *ret_len is 0 past the end.
 * AS_E_NOT_FOUND: no such blob. */
AS_MUST_CHECK as_status store_blob_read(struct tx *t, const char *sha256, int64_t seq,
                                        int64_t offset, void *buf, size_t size, size_t *ret_len,
                                        struct as_err *err);

/* Remove some blobs to which nothing refers and which were not touched for keep_ms. */
AS_MUST_CHECK as_status store_blob_prune(struct tx *t, int64_t keep_ms, int64_t *ret_removed,
                                         struct as_err *err);

#endif
