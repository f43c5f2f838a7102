/* Named servers of a user: $XDG_CONFIG_HOME/assay/config (~/.config/assay/config), YAML:
 *
 *   profiles:
 *     lab: {url: https://assay.example, token_file: ~/lab.token}
 *
 * A profile names the file of a token and never a token. In token_file, ~/ is the home folder, and
 * a relative path begins at the folder of the configuration. */
#ifndef ASSAY_CLI_FILES_PROFILES_H
#define ASSAY_CLI_FILES_PROFILES_H

#include <jansson.h>

#include "base/status.h"

struct profile {
    char *url;        /* without a slash at its end; both owned */
    char *token_file; /* absolute; NULL: none */
};

void profile_done(struct profile *p);

/* Read the profile `name`. AS_E_NOT_FOUND: there is no such profile, and the message names those
 * that exist; AS_E_INVAL: "FILE:LINE:COLUMN: …"; AS_E_IO. */
AS_MUST_CHECK as_status profiles_read(const char *name, struct profile *ret, struct as_err *err);

/* The names of all profiles: an array of texts, owned by the caller; empty without a configuration.
 * The errors of profiles_read(). */
AS_MUST_CHECK as_status profiles_names(json_t **ret, struct as_err *err);

/* Find a profile in a configuration that was read. `folder` and `home` (NULL: none) are for
 * token_file. All profiles are checked. AS_E_INVAL with the pointer of the field;
 * AS_E_NOT_FOUND. */
AS_MUST_CHECK as_status profiles_find(const json_t *config, const char *name, const char *folder,
                                      const char *home, struct profile *ret, struct as_err *err);

#endif
