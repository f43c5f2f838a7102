/* The bytes of a whole file, for reading, that nobody can change or cut short while they are used.
 *
 * They are copied once, by the kernel, into a file in memory without a name, and mapped. A mapping
 * of the file itself would end the program (SIGBUS) when another one writes a shorter file in its
 * place, and bytes that were checked could change. A copy in memory from malloc is as safe; it
 * costs six times the processor time, which goes into its pages (decision 1002). */
#ifndef ASSAY_BASE_FILE_IMAGE_H
#define ASSAY_BASE_FILE_IMAGE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/mem.h"
#include "base/status.h"

struct file_image {
    char *at; /* never written; on a multiple of 8 bytes */
    size_t len;
    bool is_mapped; /* else from malloc */
};

/* Where the file is none of a disk, or the system has no such memory, it is read instead.
 *   ret  owned by the caller, free with file_image_done(); untouched on failure
 * Errors as file_read(). */
AS_MUST_CHECK as_status file_image_read(const char *path, size_t max_bytes, struct file_image *ret,
                                        struct as_err *err);

/* A file in memory (memfd_create) that this process alone has, and that nobody writes any more.
 * Takes fd, also on failure. AS_E_INVAL: it is empty; AS_E_TOO_LARGE; AS_E_NOMEM. */
AS_MUST_CHECK as_status file_image_map(int fd, size_t max_bytes, struct file_image *ret,
                                       struct as_err *err);

void file_image_done(struct file_image *i); /* a zeroed one is fine */

#endif
