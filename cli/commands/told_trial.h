/* A trial that was asked for, with its sweep: the subject of `assay tell` and `assay report`. */
#ifndef ASSAY_CLI_COMMANDS_TOLD_TRIAL_H
#define ASSAY_CLI_COMMANDS_TOLD_TRIAL_H

#include <jansson.h>

#include "base/status.h"
#include "cli/session/request.h"

struct told_trial {
    struct trial_ref ref;
    json_t *sweep, *trial; /* owned */
    const char *client;    /* the client that holds it: a view of `named` or of trial */
};
void told_trial_done(struct told_trial *h);

/* Read "SWEEP NUMBER" or "SWEEP/NUMBER" from the front of n arguments; *ret_used is the number of
 * arguments read. AS_E_USAGE: the message names what was expected. */
AS_MUST_CHECK as_status told_trial_parse_args(int n, char **args, struct trial_ref *ret,
                                              int *ret_used, struct as_err *err);

/* Fetch the trial and its sweep, and choose the client: `named` (--client, ASSAY_CLIENT; NULL: not
 * given), or else the holder of the trial if that is a default name of this user on this machine
 * (client_name.h). AS_E_CONFLICT when another client, a runner or nobody holds the trial. */
AS_MUST_CHECK as_status told_trial_find(struct client *c, const struct trial_ref *ref,
                                        const char *named, struct told_trial *ret,
                                        struct as_err *err);

/* Check that `metrics`, together with the metrics that the trial reported before, contains every
 * objective and every constrained metric of the sweep. A completion that lacks one would fail the
 * trial for good. AS_E_INVAL names the missing metric and the given ones. */
AS_MUST_CHECK as_status told_trial_check_metrics(const json_t *sweep, const json_t *trial,
                                                 const json_t *metrics, struct as_err *err);

/* Is the value of the sweep's (first) metric so far from its best one that the search will not
 * count it (docs/search.md)? A sweep without a best trial yet says no. metrics may be NULL.
 *   ret_name  view of the sweep */
bool told_trial_is_absurd(const json_t *sweep, const json_t *metrics, const char **ret_name,
                          double *ret_value, double *ret_best);

#endif
