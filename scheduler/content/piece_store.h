/* The blob store: content outside of the database, in pieces of at most PART_BYTES under their
 * SHA-256.
 *
 * Two kinds: a folder of files, and a bucket of an S3-compatible service. The database keeps the
 * references; a piece without a row there is removed (content_gc.h). So a store needs no list, no
 * locks and no transactions: it puts, gets and removes one piece at a time, and each of them may be
 * repeated. Any thread may call it. */
#ifndef ASSAY_SCHEDULER_CONTENT_PIECE_STORE_H
#define ASSAY_SCHEDULER_CONTENT_PIECE_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/mem.h"
#include "base/status.h"
#include "scheduler/content/piece_ops.h"

struct piece_store;

/* Open the store and check that it can be used: a folder is made, or is empty, or has our marker;
 * of a bucket only the address and the credentials in the environment are checked. AS_E_INVAL:
 * `where`, the endpoint, or credentials that are missing; AS_E_CONFLICT: the folder has other
 * files; AS_E_IO, AS_E_NOMEM. Owned by the caller. */
AS_MUST_CHECK as_status piece_store_open(const struct piece_place *place, struct piece_store **ret,
                                         struct as_err *err);
void piece_store_close(struct piece_store *s);
AS_DEFINE_FREEP(struct piece_store, piece_store_close)

AS_MUST_CHECK as_status piece_store_put(struct piece_store *s, const char *sha256,
                                        const void *bytes, size_t len, struct as_err *err);
/* Read from `offset`; *ret_len is 0 at the end. The digest of the whole piece is checked before any
 * byte of it is returned; pieces that were checked are kept in memory for a while. AS_E_IO: the
 * piece is missing or altered; the message names its digest and its place. AS_E_UNAVAILABLE,
 * AS_E_DENIED. */
AS_MUST_CHECK as_status piece_store_read(struct piece_store *s, const char *sha256, int64_t offset,
                                         void *buf, size_t size, size_t *ret_len,
                                         struct as_err *err);
AS_MUST_CHECK as_status piece_store_remove(struct piece_store *s, const char *sha256,
                                           struct as_err *err);
AS_MUST_CHECK as_status piece_store_tidy(struct piece_store *s, int64_t keep_ms,
                                         struct as_err *err);

#endif
