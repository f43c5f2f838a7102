/* Table measurement_chunk. Private to this folder. */
#ifndef ASSAY_SCHEDULER_STORE_CHUNK_STORE_PRIV_H
#define ASSAY_SCHEDULER_STORE_CHUNK_STORE_PRIV_H

#include "scheduler/store/point_series_priv.h"
#include "scheduler/store/tx.h"

/* Add the points that are not stored. A series of *l that had stored points in its range has these
 * too afterwards, marked with `is_stored`. The caller holds the rows of the trials. At most four
 * statements. */
AS_MUST_CHECK as_status chunks_add(struct tx *t, struct arena *a, struct point_series_list *l,
                                   struct as_err *err);

#endif
