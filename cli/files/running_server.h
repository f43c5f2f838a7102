/* The notes that running `assay up` leave so that other commands of their user find them:
 * $XDG_STATE_HOME/assay/up/PID.json (~/.local/state/assay/up/PID.json), mode 0600, {"url",
 * "token_file", "pid", "start", "since"}. The newest counts; when it ends, the one before counts
 * again. */
#ifndef ASSAY_CLI_CURRENT_H
#define ASSAY_CLI_CURRENT_H

#include <stdint.h>

#include "base/status.h"

struct current {
    char *url; /* both owned */
    char *token_file;
};

/* The newest note whose process still runs, of the server at `url` (without a slash at its end)
 * unless that is NULL; those of processes that were killed are removed. AS_E_NOT_FOUND when there
 * is none; AS_E_NOMEM. */
AS_MUST_CHECK as_status current_read(const char *url, struct current *ret, struct as_err *err);
void current_done(struct current *c);

AS_MUST_CHECK as_status current_write(const char *url, const char *token_file, struct as_err *err);

/* Take the note of this process away. */
void current_remove(void);

/* A folder of the XDG base directory specification: the variable when it is an absolute path, else
 * the home folder and `below_home`, and then "/assay". Owned by the caller. AS_E_NOT_FOUND without
 * a home. */
AS_MUST_CHECK as_status current_folder(const char *variable, const char *below_home, char **ret,
                                       struct as_err *err);

#endif
