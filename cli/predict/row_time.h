/* How long a model takes for one row. */
#ifndef ASSAY_CLI_PREDICT_ROW_TIME_H
#define ASSAY_CLI_PREDICT_ROW_TIME_H

#include "base/status.h"
#include "model/file/model_file.h"

/* The median of the processor times in which single rows went through the model, one call each, on
 * one core: what other programs do beside it does not count. No other thread may be at work.
 * The rows are zeros: what a row has in it hardly changes how much is computed. Takes a fifth of a
 * second, or one row. Errors of predictor_create() and predictor_run(). */
AS_MUST_CHECK as_status predict_row_time(const struct model_file *f, double *ret_ms,
                                         struct as_err *err);

#endif
