/* How many slots wait now, of which kind, and for how long (demand_plan.h). */
#ifndef ASSAY_SCHEDULER_SERVICES_DEMAND_H
#define ASSAY_SCHEDULER_SERVICES_DEMAND_H

#include "scheduler/services/demand_plan.h"
#include "scheduler/store/store.h"
#include "scheduler/store/tx.h"

/* It follows from rows alone, so every server answers the same. Reads what all live runners
 * hold. AS_E_UNAVAILABLE. */
AS_MUST_CHECK as_status demand_read(struct tx *t, struct arena *a, struct demand *ret,
                                    struct as_err *err);

/* The same in a transaction of its own. */
AS_MUST_CHECK as_status demand_now(struct store *db, struct arena *a, struct demand *ret,
                                   struct as_err *err);

#endif
