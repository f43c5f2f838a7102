/* Temporary files in $TMPDIR (or /tmp), readable by this user only. */
#ifndef ASSAY_BASE_TEMP_FILE_H
#define ASSAY_BASE_TEMP_FILE_H

#include <stddef.h>

#include "base/status.h"

/* A new file, open for reading and writing.
 *   path    `size` bytes, usually 256: its name, for the caller to unlink; undefined on failure
 *   ret_fd  closed on exec; owned by the caller
 * AS_E_IO: the file cannot be created, or $TMPDIR is too long. */
AS_MUST_CHECK as_status temp_file_create(char *path, size_t size, int *ret_fd, struct as_err *err);

/* The same without a name: closing it deletes it. */
AS_MUST_CHECK as_status temp_file_open(int *ret_fd, struct as_err *err);

/* AS_E_IO: a temporary file cannot be written, with the reason in errno and the folder. */
as_status temp_file_fail(struct as_err *err);

#endif
