/* The training on all rows that follows the folds of a trial (`validation.refit`, folds.h). */
#ifndef ASSAY_TRIAL_RUNNER_TRAIN_REFIT_H
#define ASSAY_TRIAL_RUNNER_TRAIN_REFIT_H

#include <jansson.h>

#include "base/status.h"

/* The document of that training: `train` without the rules that end a training by held-out rows, of
 * which it has none. In their place it is as long as the folds were on average.
 *   train      as of a trial with folds; borrowed
 *   best_step  after which the folds' models were best, the mean; NaN: no rule ended them, and the
 *              length stays
 *   ret        owned by the caller
 * AS_E_INVAL: `train` is no such document; AS_E_NOMEM. */
AS_MUST_CHECK as_status refit_document(const json_t *train, double best_step, json_t **ret,
                                       struct as_err *err);

#endif
