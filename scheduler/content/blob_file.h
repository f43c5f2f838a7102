/* Temporary files in $TMPDIR (or /tmp), readable by this user only. */
#ifndef ASSAY_SCHEDULER_BLOB_FILE_H
#define ASSAY_SCHEDULER_BLOB_FILE_H

#include "base/status.h"
#include "scheduler/store/store.h"

/* A file without a name, open for reading and writing. AS_E_IO. */
AS_MUST_CHECK as_status spool_open(int *ret_fd, struct as_err *err);

/* A blob in a file with a name, for what reads files. */
struct spool_file {
    char path[256]; /* "" when there is none */
};
/* AS_E_NOT_FOUND, AS_E_IO, AS_E_UNAVAILABLE. spool_file_done() removes it. */
AS_MUST_CHECK as_status spool_blob(struct store *db, const char *sha256, struct spool_file *ret,
                                   struct as_err *err);
void spool_file_done(struct spool_file *f);

#endif
