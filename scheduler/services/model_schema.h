/* What a model takes and gives, as the API says it. Pure. */
#ifndef ASSAY_SCHEDULER_SERVICES_MODEL_SCHEMA_H
#define ASSAY_SCHEDULER_SERVICES_MODEL_SCHEMA_H

#include <jansson.h>

#include "data/dataset.h"

/* One entry for each column of a table, in the order of the file, without the targets:
 *   {name, kind: "number", "category", "date" or "text", values?, missing: its training data had
 *   missing values}
 * or one entry for all of it: {name: "features", kind: "numbers", size}, {name: "image", kind:
 * "image", shape: [height, width, channels]}, {name: "tokens", kind: "tokens", size: vocabulary}.
 * New reference, NULL when memory is out. */
json_t *model_inputs_json(const struct dataset_info *info);

/* {target?, classes: [name, …], positive?: the last of two}, {targets: [name, …]}, or {size:
 * vocabulary}. New reference, NULL when memory is out. */
json_t *model_outputs_json(const struct dataset_info *info);

#endif
