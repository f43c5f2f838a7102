/* The features of a table as JSON: one item for each column of the file.
 *   {name, kind: "numeric", missing}
 *   {name, kind: "categorical", missing, other, values}
 *   {name, kind: "date", missing, since: days since 1970-01-01, cycles: ["week", "month", "hour"]}
 *   {name, kind: "text", missing, buckets} */
#ifndef ASSAY_DATA_COLUMNS_JSON_H
#define ASSAY_DATA_COLUMNS_JSON_H

#include <jansson.h>

#include "data/dataset.h"
#include "base/status.h"

/* New reference; NULL when memory is out. */
json_t *dataset_columns_to_json(const struct dataset_info *info);

/* Set info->columns; the other fields of `info` are there already. `parent` is the pointer of the
 * record. AS_E_INVAL with the pointer of the field; AS_E_NOMEM. */
AS_MUST_CHECK as_status dataset_columns_from_json(const json_t *list, const char *parent,
                                                  struct dataset_info *info, struct as_err *err);

#endif
