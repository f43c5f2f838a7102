/* `begin` of batch_ops.h, over PostgreSQL. Private to this folder. */
#ifndef ASSAY_SCHEDULER_STORE_BATCH_BEGIN_PRIV_H
#define ASSAY_SCHEDULER_STORE_BATCH_BEGIN_PRIV_H

#include "scheduler/store/batch_ops.h"

AS_MUST_CHECK as_status batch_begin(struct tx *t, struct arena *a, const struct batch_claims *c,
                                    struct as_err *err);

#endif
