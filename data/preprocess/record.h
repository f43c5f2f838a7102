/* What preprocessing learnt from the training rows, as JSON. It is stored with a model.
 *   {input, standardize, training_rows, validation_rows, bins?,
 *    columns?: [{column, kind: "numeric", input, mean, scale, missing?, indicator?, median?,
 *                edges?} or
 *               {column, kind: "date", part, and the rest as for "numeric"} or
 *               {column, kind: "text", input, buckets} or
 *               {column, kind: "categorical", input or code, values, other, missing?}],
 *    image?: {height, width, channels, mean, scale}, text?: {context, vocab, training_tokens},
 *    target?: {mean, scale, transform?, quantiles?: a list for each target}}
 * Numeric columns, dates (an item for each part) and texts come first, then categorical columns,
 * each in the order of the file. The inputs of a text begin at `input`, and mean 0 and scale 1 are
 * theirs. `input` and `indicator` are indices of inputs. For a categorical column, `other` and
 * `missing` are slots; for a numeric column, `missing` is the fill, and `median` that of one that
 * lacks no value (absent in records from before 2026-11-28). A value that no training row
 * has is null. `bins` is there if numbers were cut (piecewise.h): then such a column has `edges`,
 * the edges of its bins, mean 0 and scale 1, and its `bins` inputs begin at `input`. */
#ifndef ASSAY_DATA_PREPROCESS_RECORD_H
#define ASSAY_DATA_PREPROCESS_RECORD_H

#include <jansson.h>

#include "data/preprocess/preprocess.h"
#include "base/status.h"

/* New reference; NULL when memory is out. `info` is the one that p was made for. */
json_t *preprocess_to_json(const struct preprocess *p, const struct dataset_info *info);

/* Read what preprocess_to_json() wrote for `info`. Rows that are encoded with the result have the
 * same bits as with the original. Every field must be there and agree with `info`.
 *   pointer  of obj, for messages
 *   ret      owned by the caller, untouched on failure
 * AS_E_INVAL with the field, what was found and what was expected; AS_E_NOMEM. */
AS_MUST_CHECK as_status preprocess_from_json(const json_t *obj, const char *pointer,
                                             const struct dataset_info *info,
                                             struct preprocess *ret, struct as_err *err);

#endif
