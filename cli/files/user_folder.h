/* Folders for the files of a user, by the XDG base directory specification. */
#ifndef ASSAY_CLI_FILES_USER_FOLDER_H
#define ASSAY_CLI_FILES_USER_FOLDER_H

#include "base/status.h"

/* The path of assay's folder: $VARIABLE/assay when the variable is an absolute path, else
 * HOME/below_home/assay. It need not exist.
 *   variable    such as "XDG_STATE_HOME"; borrowed
 *   below_home  such as ".local/state"; borrowed
 *   ret         owned by the caller
 * AS_E_NOT_FOUND: there is no home folder; AS_E_NOMEM. */
AS_MUST_CHECK as_status user_folder_find(const char *variable, const char *below_home, char **ret,
                                         struct as_err *err);

#endif
