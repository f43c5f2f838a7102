/* The user of the trials of `assay up`, when it runs as root. */
#ifndef ASSAY_CLI_UP_TRIAL_USER_H
#define ASSAY_CLI_UP_TRIAL_USER_H

#include "base/status.h"
#include "cli/up/spawn.h"

struct trial_user {
    struct system_user user; /* an empty name: the user who runs `assay up` */
    char home[1024];         /* "" in that case */
};

/* Choose the user that runners and trials run as, and say so when it is root.
 *   given    the name of --trial-user; NULL: the user who called sudo, if there is one and it can
 *            enter `data` and the current folder and run `program`; else who runs this program
 *   data     the data folder; absolute
 *   program  assay-runner; absolute
 * AS_E_NOT_FOUND: there is no such user. AS_E_DENIED: this is not root, or the given user cannot
 * enter a folder or run the program; the message names it. */
AS_MUST_CHECK as_status trial_user_choose(const char *given, const char *data, const char *program,
                                          struct trial_user *ret, struct as_err *err);

/* The folder for the work of that user's runners: `data` itself, or a folder in it that only that
 * user may enter. *ret is owned by the caller. AS_E_DENIED, AS_E_IO, AS_E_NOMEM. */
AS_MUST_CHECK as_status trial_user_folder(const struct trial_user *u, const char *data, char **ret,
                                          struct as_err *err);

#endif
