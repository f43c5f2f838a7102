/* `take` of batch_ops.h, over PostgreSQL. Private to this folder. */
#ifndef ASSAY_SCHEDULER_STORE_BATCH_TAKE_PRIV_H
#define ASSAY_SCHEDULER_STORE_BATCH_TAKE_PRIV_H

#include "scheduler/store/batch_ops.h"

AS_MUST_CHECK as_status batch_take(struct tx *t, struct arena *a, struct batch_source *sources,
                                   size_t n, bool is_patient, struct as_err *err);

#endif
