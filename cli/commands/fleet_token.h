/* The token that the runners of a fleet show. */
#ifndef ASSAY_CLI_COMMANDS_FLEET_TOKEN_H
#define ASSAY_CLI_COMMANDS_FLEET_TOKEN_H

#include "cli/session/session.h"

/* The file with the token of a runner: `given`, which nobody else may read, or one in the folder of
 * the fleet, which is created with a new token of the server if it is not there (that needs an
 * admin's). Absolute; owned by the caller. AS_E_DENIED, AS_E_NOT_FOUND; the errors of the request.
 * Not promised: that the server takes the token (fleet_token_ensure). */
AS_MUST_CHECK as_status fleet_token_file(const struct session *s, const char *fleet,
                                         const char *given, char **ret, struct as_err *err);

/* fleet_token_file(), and its text (fleet_token_read) in *ret_token, owned by the caller. A token
 * in the folder of the fleet that the server refuses is replaced by a new one; another
 * file's is AS_E_DENIED. */
AS_MUST_CHECK as_status fleet_token_ensure(const struct session *s, const char *fleet,
                                           const char *given, char **ret_file, char **ret_token,
                                           struct as_err *err);

/* Does the server refuse the token: it was revoked, or its time is over? False also when the
 * server cannot be asked. */
bool fleet_token_is_refused(const struct session *s, const char *token);

/* Its text, without a line end; owned by the caller. AS_E_INVAL: it has characters that no token
 * has. */
AS_MUST_CHECK as_status fleet_token_read(const char *path, char **ret, struct as_err *err);

#endif
