/* A file (mode 0600) with a token that this server accepts. Programs on the same machine read it,
 * so that no person has to copy a token. */
#ifndef ASSAY_API_SERVER_TOKEN_FILE_H
#define ASSAY_API_SERVER_TOKEN_FILE_H

#include "base/status.h"
#include "scheduler/rows/token_row.h"
#include "scheduler/store/store.h"

/* Ensure that `path` has a valid token with this role. A valid token stays. A token that the
 * database does not know (a new database) is imported. Otherwise a new token replaces the file.
 * AS_E_UNAVAILABLE; AS_E_IO; AS_E_DENIED: other users may read the file. */
AS_MUST_CHECK as_status token_file_ensure(struct store *db, const char *path, token_role role,
                                          struct as_err *err);

#endif
