/* A trial that somebody asked for, and what its sweep wants to be told of it. */
#ifndef ASSAY_CLI_COMMANDS_TOLD_TRIAL_H
#define ASSAY_CLI_COMMANDS_TOLD_TRIAL_H

#include <jansson.h>

#include "base/status.h"
#include "cli/session/request.h"

struct told_trial {
    struct trial_ref ref;
    json_t *sweep, *trial; /* owned */
    const char *client;    /* for whom to speak: a view of `named` or of trial */
};
void told_trial_done(struct told_trial *h);

/* Read "SWEEP NUMBER" or "SWEEP/NUMBER" from the front of n arguments; *ret_used says how many it
 * took. AS_E_INVAL says what was expected. */
AS_MUST_CHECK as_status told_trial_parse_args(int n, char **args, struct trial_ref *ret,
                                              int *ret_used, struct as_err *err);

/* Fetch the trial and its sweep, and find out who holds it: `named` (--client, ASSAY_CLIENT; NULL:
 * none), or else the client that the server names when it is a default name of this user on this
 * machine (client_name.h). AS_E_CONFLICT when it is somebody else's, or a runner's, or nobody's. */
AS_MUST_CHECK as_status told_trial_find(struct client *c, const struct trial_ref *ref,
                                        const char *named, struct told_trial *ret,
                                        struct as_err *err);

/* Does `metrics`, with what the trial reported before, hold every objective and every constrained
 * metric of the sweep? A completion without one fails the trial for good, and a name is soon
 * mistyped: AS_E_INVAL names the one that is missing, and what was found. */
AS_MUST_CHECK as_status told_trial_check_metrics(const json_t *sweep, const json_t *trial,
                                                 const json_t *metrics, struct as_err *err);

#endif
