/* The note that `assay up` leaves so that other commands on this machine find it:
 * $XDG_STATE_HOME/assay/current.json (~/.local/state/assay/current.json), mode 0600,
 * {"url", "token_file", "pid", "data"}. The newest `assay up` wins. */
#ifndef ASSAY_CLI_CURRENT_H
#define ASSAY_CLI_CURRENT_H

#include <stdint.h>

#include "base/status.h"

struct current {
    char *url; /* all owned */
    char *token_file;
    int64_t pid;
};

/* AS_E_NOT_FOUND when there is none, or nobody left it that still runs. AS_E_INVAL; AS_E_IO. */
AS_MUST_CHECK as_status current_read(struct current *ret, struct as_err *err);
void current_done(struct current *c);

AS_MUST_CHECK as_status current_write(const char *url, const char *token_file, struct as_err *err);

/* Take the note away if this process left it. */
void current_remove(void);

/* A folder of the XDG base directory specification: the variable when it is an absolute path, else
 * the home folder and `below_home`, and then "/assay". Owned by the caller. AS_E_NOT_FOUND without
 * a home. */
AS_MUST_CHECK as_status current_folder(const char *variable, const char *below_home, char **ret,
                                       struct as_err *err);

#endif
