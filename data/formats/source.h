/* Streams of bytes: a file, the unpacked content of a gzip file, or a member of a ZIP archive.
 *
 * A stream is read once, in order, and its memory does not depend on its length: a hostile file
 * unpacks to no more than its reader requests. One thread per stream. */
#ifndef ASSAY_DATA_FORMATS_SOURCE_H
#define ASSAY_DATA_FORMATS_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/mem.h"
#include "base/status.h"

#define SOURCE_SIZE_UNKNOWN UINT64_MAX

struct source;

/* Open a file. With `gzip`, a file that starts with the bytes 1f 8b is unpacked. AS_E_NOT_FOUND,
 * AS_E_IO, AS_E_NOMEM. */
AS_MUST_CHECK as_status source_open(const char *path, bool gzip, struct source **ret,
                                    struct as_err *err);

/* Open member `name` of a ZIP archive, stored or deflated. Its size and checksum are checked at its
 * end. AS_E_INVAL: not a ZIP file, a damaged one, or no such member (the message lists the
 * members); AS_E_UNSUPPORTED: encrypted, another compression, more than 4 GiB; AS_E_NOT_FOUND,
 * AS_E_IO, AS_E_NOMEM. */
AS_MUST_CHECK as_status source_open_zip(const char *path, const char *name, struct source **ret,
                                        struct as_err *err);
void source_free(struct source *s);
AS_DEFINE_FREEP(struct source, source_free)

/* From now on a signal whose handler is installed without SA_RESTART ends the wait for a pipe:
 * AS_E_IO. */
void source_interruptible(struct source *s);

const char *source_path(const struct source *s); /* a view of s */

/* The number of bytes of the whole stream, or SOURCE_SIZE_UNKNOWN (gzip). */
uint64_t source_size(const struct source *s);

/* Read `size` bytes; *ret_len is less only at the end. AS_E_INVAL: the compressed data is damaged
 * or cut short; AS_E_IO. Messages name the file. */
AS_MUST_CHECK as_status source_read(struct source *s, void *buf, size_t size, size_t *ret_len,
                                    struct as_err *err);

/* Read exactly `size` bytes; `what` names them in the message. AS_E_INVAL if the stream ends before
 * that. */
AS_MUST_CHECK as_status source_read_exact(struct source *s, void *buf, size_t size,
                                          const char *what, struct as_err *err);

/* AS_E_INVAL if the stream has more bytes. */
AS_MUST_CHECK as_status source_expect_end(struct source *s, struct as_err *err);

#endif
