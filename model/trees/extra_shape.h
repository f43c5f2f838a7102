/* What a data set says about extra trees. */
#ifndef ASSAY_MODEL_TREES_EXTRA_SHAPE_H
#define ASSAY_MODEL_TREES_EXTRA_SHAPE_H

#include "data/dataset.h"
#include "model/extra-trees/extra_forest.h"

/* The inputs of tree_inputs.h.
 *   outputs    that a forest stores: tree_outputs.raw
 *   ret        its `codes` is *ret_codes
 *   ret_codes  owned by the caller
 * AS_E_NOMEM. */
AS_MUST_CHECK as_status extra_shape_of(const struct dataset_info *info, size_t outputs,
                                       struct extra_shape *ret, uint32_t **ret_codes,
                                       struct as_err *err);

#endif
