/* The weights of a member at the ends of its last cycles (snapshots.h). */
#ifndef ASSAY_TRIAL_RUNNER_TRAIN_SNAPSHOT_RECORD_H
#define ASSAY_TRIAL_RUNNER_TRAIN_SNAPSHOT_RECORD_H

#include <stddef.h>

#include "base/status.h"
#include "model/document/train_spec.h"

struct snapshots {
    size_t n;                        /* taken so far, oldest first */
    float *values[TRAIN_MAX_CYCLES]; /* [n], each [n_params + n_state]: the average of weights where
                                      * there is one, then the statistics; owned */
};

void snapshots_done(struct snapshots *s); /* a zeroed one is fine */

/* How many of them a training has after so many epochs. */
size_t snapshots_after(const struct train_spec *spec, int64_t epochs);

/* Room for one more, of so many numbers; it counts when the caller raises s->n. AS_E_NOMEM. */
AS_MUST_CHECK as_status snapshots_alloc(struct snapshots *s, size_t n_values, struct as_err *err);

#endif
