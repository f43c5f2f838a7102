/* What the runner of a trial is told about forks (early_stopping: pbt). Pure. */
#ifndef ASSAY_SCHEDULER_ASSIGN_KEEPING_H
#define ASSAY_SCHEDULER_ASSIGN_KEEPING_H

#include <jansson.h>

#include "base/arena.h"
#include "scheduler/rows/claimed_row.h"

/* Set keep_every, keep_until and may_differ by the sweep's stored document; 0 and NULL where
 * nothing is forked. AS_E_INTERNAL: it cannot be read. AS_E_NOMEM. */
AS_MUST_CHECK as_status keeping_fill(struct arena *a, const json_t *document,
                                     struct claimed_row *row, struct as_err *err);

#endif
