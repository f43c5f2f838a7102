/* The table of functions of batch_ops.h over PostgreSQL: a fixed number of statements for a batch
 * of any size. */
#ifndef ASSAY_SCHEDULER_STORE_BATCH_STORE_H
#define ASSAY_SCHEDULER_STORE_BATCH_STORE_H

#include "scheduler/store/batch_ops.h"

/* Their ctx is a struct store. */
extern const struct batch_ops batch_store_ops;

#endif
