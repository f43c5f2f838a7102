/* `look` of batch_ops.h, over PostgreSQL. Private to this folder. */
#ifndef ASSAY_SCHEDULER_STORE_BATCH_LOOK_PRIV_H
#define ASSAY_SCHEDULER_STORE_BATCH_LOOK_PRIV_H

#include "scheduler/store/batch_ops.h"

AS_MUST_CHECK as_status batch_look(struct tx *t, struct arena *a,
                                   const struct batch_claimer *claimers, size_t n,
                                   struct batch_runner *ret, struct batch_turns *ret_turns,
                                   struct as_err *err);

#endif
