/* Temporary files in $TMPDIR (or /tmp), readable and writable by this user only, closed on exec. */
#ifndef ASSAY_BASE_TEMP_FILE_H
#define ASSAY_BASE_TEMP_FILE_H

#include <stddef.h>

#include "base/status.h"

#define TEMP_FILE_PATH 256 /* bytes of a path, with its end */

/* A new file, empty, open for reading and writing.
 *   path     [size] its path; the caller unlinks it. "" on failure
 *   ret_fd   owned by the caller; untouched on failure
 * AS_E_IO: the folder cannot be written, or its path does not fit. */
AS_MUST_CHECK as_status temp_file_create(char *path, size_t size, int *ret_fd, struct as_err *err);

/* The same without a name: it is gone when ret_fd is closed. */
AS_MUST_CHECK as_status temp_file_open(int *ret_fd, struct as_err *err);

#endif
