/* Tables blob, blob_chunk, blob_part and blob_loose.
 *
 * A row of blob has its content in one of three places: in rows of blob_chunk, in parts (other
 * blobs, of PART_BYTES each), or in the server's blob store. A part has no parts. */
#ifndef ASSAY_SCHEDULER_STORE_BLOB_STORE_H
#define ASSAY_SCHEDULER_STORE_BLOB_STORE_H

#include "base/hash.h"
#include "scheduler/store/tx.h"

#define PART_BYTES ((int64_t)4 << 20)

typedef enum blob_place { PLACE_ROWS, PLACE_PARTS, PLACE_STORE } blob_place;

/* *ret_created is false if it exists; then it is touched now. */
AS_MUST_CHECK as_status store_blob_add(struct tx *t, const char *sha256, int64_t size,
                                       blob_place place, bool *ret_created, struct as_err *err);
AS_MUST_CHECK as_status store_blob_add_chunk(struct tx *t, const char *sha256, int64_t seq,
                                             const void *bytes, size_t len, struct as_err *err);
/* The parts of a blob in PLACE_PARTS, in their order. AS_E_NOT_FOUND: one was removed. */
AS_MUST_CHECK as_status store_blob_add_parts(struct tx *t, const char *sha256,
                                             const char *const *parts, size_t n,
                                             struct as_err *err);

/* Touch it: it is not removed for another keep time. AS_E_NOT_FOUND. */
AS_MUST_CHECK as_status store_blob_stat(struct tx *t, const char *sha256, int64_t *ret_size,
                                        struct as_err *err);

/* Which of n digests are stored with these sizes, and are no composed content? Touches them. */
AS_MUST_CHECK as_status store_blob_present(struct tx *t, const char *const *sha256,
                                           const int64_t *sizes, size_t n, bool *ret_present,
                                           struct as_err *err);

/* Where a byte of a blob is. */
struct blob_byte {
    blob_place place;             /* ROWS: it was read; STORE: read it there; PARTS: past the end */
    char sha256[SHA256_HEX_SIZE]; /* the piece that has it: the blob, or a part of it */
    int64_t offset;               /* in that piece */
};
/* Read at most `size` bytes from `offset`, within one multiple of 1 MiB, if they are in rows.
 * *ret_len is 0 past the end. AS_E_NOT_FOUND: no such blob. */
AS_MUST_CHECK as_status store_blob_read(struct tx *t, const char *sha256, int64_t offset, void *buf,
                                        size_t size, size_t *ret_len, struct blob_byte *ret_at,
                                        struct as_err *err);

/* Content that may be in the blob store without a row of blob. `add`: an upload begins. `end`: it
 * is referred to by a row now. */
AS_MUST_CHECK as_status store_blob_loose_add(struct tx *t, const char *sha256, struct as_err *err);
AS_MUST_CHECK as_status store_blob_loose_end(struct tx *t, const char *sha256, struct as_err *err);
/* Lock one that has been loose for keep_ms. ret_sha256 is "" if there is none. *ret_used: a row of
 * blob has it, so that it is to stay. */
AS_MUST_CHECK as_status store_blob_loose_next(struct tx *t, int64_t keep_ms,
                                              char ret_sha256[SHA256_HEX_SIZE], bool *ret_used,
                                              struct as_err *err);

/* Remove some blobs to which nothing refers: those that were not touched for keep_ms, and those
 * that lost a reference release_ms ago. *ret_bytes: of their content, without the content of
 * parts. */
AS_MUST_CHECK as_status store_blob_prune(struct tx *t, int64_t keep_ms, int64_t release_ms,
                                         int64_t *ret_removed, int64_t *ret_bytes,
                                         struct as_err *err);

/* How much is stored. */
struct blob_sums {
    int64_t blobs;        /* distinct pieces of content */
    int64_t rows_bytes;   /* of content in rows */
    int64_t store_bytes;  /* of content in the blob store */
    int64_t unused_bytes; /* of both: nothing refers to it, it will be removed */
    int64_t table_bytes;  /* what the tables of content take on PostgreSQL's disk */
};
AS_MUST_CHECK as_status store_blob_sums(struct tx *t, struct blob_sums *ret, struct as_err *err);

/* VACUUM the tables of content, outside of a transaction (t: TX_READ). PostgreSQL uses the space of
 * removed rows again, and gives what is free at the end of its files back to the file system. */
AS_MUST_CHECK as_status store_blob_vacuum(struct tx *t, struct as_err *err);

#endif
