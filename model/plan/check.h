/* Checks a train document against the data set that it names. */
#ifndef ASSAY_MODEL_PLAN_CHECK_H
#define ASSAY_MODEL_PLAN_CHECK_H

#include "data/dataset.h"
#include "model/document/train_spec.h"
#include "base/status.h"

/* Check that loss and kind suit the task, that the columns that the document names exist and leave
 * inputs, that the split leaves rows on both sides, and that the model fits the data and has at
 * most TRAIN_MAX_PARAMETERS. AS_E_INVAL with the pointer below `pointer`; AS_E_TOO_LARGE. */
AS_MUST_CHECK as_status train_spec_check(const struct train_spec *spec,
                                         const struct dataset_info *data, const char *pointer,
                                         struct as_err *err);

#endif
