/* What the models of candidates take, for an ensemble whose members fit a number of bytes
 * together. */
#ifndef ASSAY_SCHEDULER_LIFECYCLE_ENSEMBLE_SIZES_H
#define ASSAY_SCHEDULER_LIFECYCLE_ENSEMBLE_SIZES_H

#include "scheduler/lifecycle/ensemble_data.h"
#include "search/ensemble/ensemble_input.h"

struct ensemble_sizes {
    struct ensemble_bytes of; /* of the candidates that were taken; views of what follows */
    int64_t *own, *parts;     /* owned */
    bool *has;                /* owned */
};

/* A trial of a further layer has the models that it sees in its file, and an ensemble has each of
 * them once: they are parts. Where those see others themselves, these count again in each, so what
 * is said of several further layers is too much and never too little.
 *   ret  zeroed by the caller, who calls ensemble_sizes_done() in any case
 * AS_E_NOMEM. */
AS_MUST_CHECK as_status ensemble_sizes_read(const struct ensemble_data *d, int64_t max_bytes,
                                            struct ensemble_sizes *ret, struct as_err *err);
void ensemble_sizes_done(struct ensemble_sizes *s);

#endif
