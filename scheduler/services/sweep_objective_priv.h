/* The sweep, and the objective of it, that a request names, for what is computed from its results.
 * Private to this folder. */
#ifndef ASSAY_SCHEDULER_SERVICES_SWEEP_OBJECTIVE_PRIV_H
#define ASSAY_SCHEDULER_SERVICES_SWEEP_OBJECTIVE_PRIV_H

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/status.h"
#include "scheduler/store/history_store.h"
#include "scheduler/store/store.h"
#include "scheduler/sweep/sweep_doc.h"

/* The most trials that importance and surfaces are computed from (decision 5024). */
#define OBJECTIVE_TRIALS_MAX 100000

/* Find the sweep with that id: its key, and its document and where it stands. AS_E_NOT_FOUND. */
AS_MUST_CHECK as_status sweep_head_find(struct store *db, struct arena *a, const char *id,
                                        int64_t *ret_key, struct history_head *ret,
                                        struct as_err *err);

struct sweep_objective_place {
    int64_t key;        /* of the sweep */
    int64_t finish_seq; /* where the sweep stands */
    size_t objective;   /* its index in the document */
    const char *metric; /* its name, in the arena */
};

/* Find the objective of that name (NULL: the first) in the sweep with that id.
 *   ret_doc  owned by the caller; NULL: it is not needed
 * AS_E_NOT_FOUND. AS_E_INVAL: no such objective. */
AS_MUST_CHECK as_status sweep_objective_find(struct store *db, struct arena *a, const char *id,
                                             const char *metric, struct sweep_doc **ret_doc,
                                             struct sweep_objective_place *ret, struct as_err *err);

#endif
