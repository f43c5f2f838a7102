/* Training that goes on with other values (forks of early_stopping: pbt): in which fields of
 * `trial.train` the document of a checkpoint may differ from that of the training that goes on from
 * it. Rates, regularisation and augmentation may; what a checkpoint holds (shapes, the optimizer's
 * kind), what its position counts (batches, epochs) and what it learns (data, loss) may not. */
#ifndef ASSAY_MODEL_DOCUMENT_TRAIN_VARY_H
#define ASSAY_MODEL_DOCUMENT_TRAIN_VARY_H

#include <jansson.h>
#include <stdbool.h>

#include "base/status.h"

/* May the field with this JSON pointer below `train` differ, such as "/optimizer/lr"? */
bool train_may_vary(const char *pointer);

/* A copy of the document without the fields of these pointers, a list: what two documents have in
 * common that differ in them alone. New reference. AS_E_INVAL: one of them may not vary, or is no
 * text; AS_E_NOMEM. */
AS_MUST_CHECK as_status train_without(const json_t *train, const json_t *pointers, json_t **ret,
                                      struct as_err *err);

#endif
