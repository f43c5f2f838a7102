/* assay fit: how many bytes the models of trials and of ensembles have, before any is composed. */
#ifndef ASSAY_CLI_COMMANDS_FIT_SIZES_H
#define ASSAY_CLI_COMMANDS_FIT_SIZES_H

#include <jansson.h>
#include <stdint.h>

#include "base/status.h"
#include "cli/commands/fit_trained.h"
#include "cli/session/session.h"

/* Each trial is asked for once. */
struct fit_sizes {
    const struct session *s;
    const struct fit_trained *of;
    json_t *known; /* of trials by SWEEP/NUMBER; NULL: none yet. Owned */
};

void fit_sizes_done(struct fit_sizes *c);

/* The bytes of a trial's model; 0: it left none.
 *   trial  as ensembles name theirs: {"number", "sweep"}; without "sweep" it is of the first one */
AS_MUST_CHECK as_status fit_size_of_trial(struct fit_sizes *c, const json_t *trial, int64_t *ret,
                                          struct as_err *err);

/* The sum of its members, less what they share: trials of a further layer have the first one in
 * their files. */
AS_MUST_CHECK as_status fit_size_of_ensemble(struct fit_sizes *c, const json_t *ensemble,
                                             int64_t *ret, struct as_err *err);

#endif
