/* Lines of a file, copied as they are, up to places that another reader of it has found. A file
 * that is packed with gzip is read unpacked. */
#ifndef ASSAY_CLI_FILES_LINE_COPY_H
#define ASSAY_CLI_FILES_LINE_COPY_H

#include <stddef.h>
#include <stdio.h>

#include "base/status.h"
#include "data/formats/source.h"

struct line_copy {
    struct source *in; /* owned */
    char *bytes;       /* read and not yet copied: from `at` to `end`. Owned */
    size_t at, end, line_no;
};

/* Open the file. Errors of source_open(). line_copy_done() is needed after a failure, too. */
AS_MUST_CHECK as_status line_copy_open(struct line_copy *c, const char *path, struct as_err *err);
void line_copy_done(struct line_copy *c);

/* Copy the lines before line `end` (0: all that are left) to each of n files. AS_E_IO; AS_E_INVAL:
 * what is packed is damaged. */
AS_MUST_CHECK as_status line_copy_until(struct line_copy *c, size_t end, FILE *const *out, size_t n,
                                        struct as_err *err);

/* A stream of its own that writes to fd, to be closed by fclose(); NULL: there is none. */
FILE *line_copy_stream(int fd);

#endif
