/* Blobs as temporary files. */
#ifndef ASSAY_SCHEDULER_SPOOL_PRIV_H
#define ASSAY_SCHEDULER_SPOOL_PRIV_H

#include "base/status.h"
#include "base/temp_file.h"
#include "scheduler/store/store.h"

/* A blob in a file with a name, for what reads files. */
struct spool_file {
    char path[TEMP_FILE_PATH]; /* "" when there is none */
};
/* AS_E_NOT_FOUND, AS_E_IO, AS_E_UNAVAILABLE. spool_file_done() removes it. */
AS_MUST_CHECK as_status spool_blob(struct store *db, const char *sha256, struct spool_file *ret,
                                   struct as_err *err);
void spool_file_done(struct spool_file *f);

#endif
