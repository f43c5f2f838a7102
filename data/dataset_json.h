/* The record of a data set as JSON: in the database and in jobs. */
#ifndef ASSAY_DATA_DATASET_JSON_H
#define ASSAY_DATA_DATASET_JSON_H

#include <jansson.h>

#include "data/dataset.h"
#include "base/status.h"

/* {format, task, target?, rows, features, outputs, classes?, input, options?, image?: {height,
 * width, channels}, columns?: as in columns_json.h}. New reference, NULL when memory is out. */
json_t *dataset_info_to_json(const struct dataset_info *info);

/* The options that differ from the default. New reference; NULL when memory is out. */
json_t *dataset_options_to_json(const struct dataset_options *o);

/* Read {channels_first?, raw?, vocab?, x?, y?, positive?, separator?, decimal?, comment?, select?,
 * drop?, text?, buckets?}. *ret, zeroed before, is owned by the caller, on failure too
 * (dataset_options_done). AS_E_INVAL, AS_E_NOMEM. */
AS_MUST_CHECK as_status dataset_options_from_json(const json_t *obj, const char *pointer,
                                                  struct dataset_options *ret, struct as_err *err);

/* Read what dataset_info_to_json writes. Records from before 2026-11-21 have no `input`: they are
 * tables of numbers. Other fields of the object are ignored (a Dataset of the API has more).
 * `pointer` is that of the object, for messages. AS_E_INVAL; also if the data set changed under its
 * name, that is, its field `expected` {sha256, rows, features} differs from its own. AS_E_NOMEM. */
AS_MUST_CHECK as_status dataset_info_from_json(const json_t *obj, const char *pointer,
                                               struct dataset_info *ret, struct as_err *err);

#endif
