/* The token that the runners of a fleet show. */
#ifndef ASSAY_CLI_COMMANDS_FLEET_TOKEN_H
#define ASSAY_CLI_COMMANDS_FLEET_TOKEN_H

#include "cli/session/session.h"

/* The file with the token of a runner: `given`, which nobody else may read, or one in the folder of
 * the fleet, which is created with a new token of the server if it is not there (that needs an
 * admin's). Absolute; owned by the caller. AS_E_DENIED, AS_E_NOT_FOUND; the errors of the request.
 */
AS_MUST_CHECK as_status fleet_token_file(const struct session *s, const char *fleet,
                                         const char *given, char **ret, struct as_err *err);

/* Its text, without a line end; owned by the caller. AS_E_INVAL: it has characters that no token
 * has. */
AS_MUST_CHECK as_status fleet_token_read(const char *path, char **ret, struct as_err *err);

#endif
