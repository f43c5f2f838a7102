/* Shared by the parts of the record of preprocessing: for this folder alone. */
#ifndef ASSAY_DATA_PREPROCESS_RECORD_PRIV_H
#define ASSAY_DATA_PREPROCESS_RECORD_PRIV_H

#include "base/json.h"
#include "data/preprocess/preprocess.h"

/* Read the fields `mean` and `scale`, lists of n numbers each, up to `max`. */
AS_MUST_CHECK as_status record_read_moments(struct json_fields *f, size_t n, double least_scale,
                                            double max, double *mean, double *scale,
                                            struct as_err *err);

/* record_target.c: the field `target` of a regression. New reference; NULL when memory is out. */
json_t *record_target_new(const struct preprocess *p);
AS_MUST_CHECK as_status record_target_read(struct json_fields *parent,
                                           const struct dataset_info *info, struct preprocess *p,
                                           struct as_err *err);

#endif
