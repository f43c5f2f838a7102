/* A file (mode 0600) that holds a token which this server accepts: how programs on the same machine
 * get in without anybody typing anything. */
#ifndef ASSAY_API_SERVER_TOKEN_FILE_H
#define ASSAY_API_SERVER_TOKEN_FILE_H

#include "base/status.h"
#include "scheduler/rows/token_row.h"
#include "scheduler/store/store.h"

/* See to it that the token in `path` is valid and has that role: keep it when it is, make it known
 * to the database when that is new, else replace the file with a new token. AS_E_UNAVAILABLE,
 * AS_E_IO, AS_E_DENIED: others may read the file. */
AS_MUST_CHECK as_status token_file_ensure(struct store *db, const char *path, token_role role,
                                          struct as_err *err);

#endif
