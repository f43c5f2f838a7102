/* `read` of batch_ops.h, over PostgreSQL. Private to this folder. */
#ifndef ASSAY_SCHEDULER_STORE_BATCH_READ_PRIV_H
#define ASSAY_SCHEDULER_STORE_BATCH_READ_PRIV_H

#include "scheduler/store/batch_ops.h"

AS_MUST_CHECK as_status batch_read(struct tx *t, struct arena *a, const struct batch_ask *asks,
                                   size_t n, bool is_patient, struct batch_fact *ret,
                                   struct as_err *err);

#endif
