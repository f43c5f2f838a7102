/* Notes with which the commands of a user find a running `assay up` of this user:
 * $XDG_STATE_HOME/assay/up/PID.json (~/.local/state/assay/up/PID.json), mode 0600, {"url",
 * "token_file", "data", "pid", "start", "since"}. The newest note of a live process is used; when
 * that process ends, the one before it is used again. */
#ifndef ASSAY_CLI_FILES_RUNNING_SERVER_H
#define ASSAY_CLI_FILES_RUNNING_SERVER_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

struct running_server {
    char *url; /* both owned */
    char *token_file;
    size_t n_running; /* how many `assay up` of this user run, among those that count */
};

/* Find the newest note whose process still runs.
 *   url   (without a slash at its end) only a note of that server counts; NULL: of any
 *   data  only a note of the `assay up` with this data folder counts, however the folder is
 *         written; NULL: of any
 * Notes of processes that were killed are removed. AS_E_NOT_FOUND when there is no note;
 * AS_E_NOMEM. */
AS_MUST_CHECK as_status running_server_read(const char *url, const char *data,
                                            struct running_server *ret, struct as_err *err);
void running_server_done(struct running_server *s);

/* Write the note of this process. `data`: the data folder, as realpath() writes it. */
AS_MUST_CHECK as_status running_server_write(const char *url, const char *token_file,
                                             const char *data, struct as_err *err);

/* Remove the note of this process. */
void running_server_remove(void);

#endif
