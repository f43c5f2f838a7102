/* A blob as a temporary file with a name, for readers that need a file. */
#ifndef ASSAY_SCHEDULER_CONTENT_BLOB_FILE_H
#define ASSAY_SCHEDULER_CONTENT_BLOB_FILE_H

#include "base/status.h"
#include "scheduler/store/store.h"

struct blob_file {
    char path[256]; /* "" if there is none */
};

/* Copy it out of the database. On failure there is no file. AS_E_NOT_FOUND, AS_E_IO,
 * AS_E_UNAVAILABLE. */
AS_MUST_CHECK as_status blob_file_init(struct store *db, const char *sha256, struct blob_file *ret,
                                       struct as_err *err);
void blob_file_done(struct blob_file *f); /* removes the file if there is one */

#endif
