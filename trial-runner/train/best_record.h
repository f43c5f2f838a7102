/* The best report of a member so far, and the weights that it was made with (best.h). */
#ifndef ASSAY_TRIAL_RUNNER_TRAIN_BEST_RECORD_H
#define ASSAY_TRIAL_RUNNER_TRAIN_BEST_RECORD_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "base/str.h"

struct best {
    int64_t epoch;  /* whose report it is, from 1; 0: there is none yet */
    int64_t since;  /* reports after it */
    double value;   /* of the metric */
    float *weights; /* [n_params]: the average where there is one; owned; NULL before the first */
    float *statistics; /* [n_state]; NULL without; owned */
    struct str line;   /* the report, as it was written */
};

void best_done(struct best *b); /* a zeroed one is fine */

/* Room for a copy of so many parameters and statistics, unless it is there. AS_E_NOMEM. */
AS_MUST_CHECK as_status best_alloc(struct best *b, size_t n_params, size_t n_state,
                                   struct as_err *err);

#endif
