/* What a data set says about naive Bayes. */
#ifndef ASSAY_MODEL_TREES_BAYES_SHAPE_H
#define ASSAY_MODEL_TREES_BAYES_SHAPE_H

#include "data/dataset.h"
#include "model/naive-bayes/naive_bayes.h"

/* The inputs of tree_inputs.h.
 *   ret        its `kinds` is *ret_kinds
 *   ret_kinds  owned by the caller
 * AS_E_NOMEM. */
AS_MUST_CHECK as_status bayes_shape_of(const struct dataset_info *info, struct bayes_shape *ret,
                                       uint32_t **ret_kinds, struct as_err *err);

#endif
