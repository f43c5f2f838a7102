/* What the files about sweeps share. Private to this folder. */
#ifndef ASSAY_SCHEDULER_STORE_SWEEP_STORE_PRIV_H
#define ASSAY_SCHEDULER_STORE_SWEEP_STORE_PRIV_H

#include "scheduler/store/pg_priv.h"

/* Run a statement with the key of a sweep as its argument, which returns one row. AS_E_NOT_FOUND:
 * it returned none, so the sweep was deleted. */
AS_MUST_CHECK as_status sweep_query(struct tx *t, const struct stmt *s, int64_t key,
                                    struct result *ret, struct as_err *err);

#endif
