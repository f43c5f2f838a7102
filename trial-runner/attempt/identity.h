/* Who this runner is for the server: the secret of its work folder, and clients that show it. */
#ifndef ASSAY_TRIAL_RUNNER_ATTEMPT_IDENTITY_H
#define ASSAY_TRIAL_RUNNER_ATTEMPT_IDENTITY_H

#include "api/client/client.h"
#include "trial-runner/attempt/options.h"

/* Read WORK/secret, or make it: random, 256 bits, mode 0600, on disk before this returns. A runner
 * that starts again on the same folder is the same runner for the server. Call it with the folder's
 * lock held. *ret is owned by the caller. AS_E_DENIED: the file belongs to another user, or others
 * may read it; AS_E_INVAL: it holds no secret; AS_E_IO, AS_E_NOMEM. */
AS_MUST_CHECK as_status identity_load(const char *work, char **ret, struct as_err *err);

/* A client of the runner's server that sends the runner's token, and its secret (o->secret, NULL:
 * none). *ret is owned by the caller. The errors of client_create(). */
AS_MUST_CHECK as_status identity_client(const struct options *o, struct client **ret,
                                        struct as_err *err);

#endif
