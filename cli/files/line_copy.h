/* Lines of a file, copied as they are, up to places that another reader of it has found. */
#ifndef ASSAY_CLI_FILES_LINE_COPY_H
#define ASSAY_CLI_FILES_LINE_COPY_H

#include <stddef.h>
#include <stdio.h>

#include "base/status.h"

struct line_copy {
    const char *path; /* borrowed */
    FILE *in;
    char *line; /* of getline() */
    size_t cap, line_no;
};

/* Open the file. `purpose` ends the message about one that is packed: "so that it can be cut".
 * AS_E_IO; AS_E_UNSUPPORTED: it is packed. line_copy_done() is needed after a failure, too. */
AS_MUST_CHECK as_status line_copy_open(struct line_copy *c, const char *path, const char *purpose,
                                       struct as_err *err);
void line_copy_done(struct line_copy *c);

/* Copy the lines before line `end` (0: all that are left) to each of n files. AS_E_IO. */
AS_MUST_CHECK as_status line_copy_until(struct line_copy *c, size_t end, FILE *const *out, size_t n,
                                        struct as_err *err);

/* A stream of its own that writes to fd, to be closed by fclose(); NULL: there is none. */
FILE *line_copy_stream(int fd);

#endif
