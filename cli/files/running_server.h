/* The notes that running `assay up` leave so that other commands of their user find them:
 * $XDG_STATE_HOME/assay/up/PID.json (~/.local/state/assay/up/PID.json), mode 0600, {"url",
 * "token_file", "pid", "start", "since"}. The newest counts; when it ends, the one before counts
 * again. */
#ifndef ASSAY_CLI_FILES_RUNNING_SERVER_H
#define ASSAY_CLI_FILES_RUNNING_SERVER_H

#include <stdint.h>

#include "base/status.h"

struct running_server {
    char *url; /* both owned */
    char *token_file;
};

/* The newest note whose process still runs, of the server at `url` (without a slash at its end)
 * unless that is NULL; those of processes that were killed are removed. AS_E_NOT_FOUND when there
 * is none; AS_E_NOMEM. */
AS_MUST_CHECK as_status running_server_read(const char *url, struct running_server *ret,
                                            struct as_err *err);
void running_server_done(struct running_server *s);

AS_MUST_CHECK as_status running_server_write(const char *url, const char *token_file,
                                             struct as_err *err);

/* Take the note of this process away. */
void running_server_remove(void);

#endif
