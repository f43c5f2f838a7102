/* The parameters of a fork (early_stopping: pbt), from those of its parent. Pure. */
#ifndef ASSAY_SCHEDULER_SWEEP_FORK_PARAMS_H
#define ASSAY_SCHEDULER_SWEEP_FORK_PARAMS_H

#include <jansson.h>
#include <stdint.h>

#include "base/status.h"
#include "scheduler/sweep/sweep_doc.h"

/* A fork, as it was decided. */
struct fork_made {
    int64_t number, parent, replaced, step;
};

/* Its parameters and its reason ({"method": "pbt", "parent", "replaces", "step"}): new references.
 *   params  of the parent, JSON as it is stored
 * AS_E_INTERNAL: they do not fit the document. AS_E_NOMEM. */
AS_MUST_CHECK as_status fork_params(const struct sweep_doc *d, const struct fork_made *f,
                                    const char *params, json_t **ret_params, json_t **ret_reason,
                                    struct as_err *err);

#endif
