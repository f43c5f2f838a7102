/* What sweeps and the shapes of their trials share. */
#ifndef ASSAY_SCHEDULER_SWEEPS_PRIV_H
#define ASSAY_SCHEDULER_SWEEPS_PRIV_H

#include "base/formats/dataset.h"
#include "scheduler/rows.h"

/* What a data set's row says, as the specification wants to know it. ret is zeroed by the caller,
 * who ends it with dataset_info_done(), also on failure. AS_E_INVAL: the row is of a later version.
 */
AS_MUST_CHECK as_status dataset_row_info(const struct dataset_row *row, struct dataset_info *ret,
                                         struct as_err *err);

#endif
