/* The metric by which the ensemble of a sweep is chosen. */
#ifndef ASSAY_SCHEDULER_LIFECYCLE_ENSEMBLE_METRIC_H
#define ASSAY_SCHEDULER_LIFECYCLE_ENSEMBLE_METRIC_H

#include <stdbool.h>
#include <stddef.h>

#include "search/score.h"
#include "base/status.h"

/* The metric of the sweep, and the trials that left predictions. All borrowed. */
struct ensemble_metric_input {
    const char *name;  /* of the sweep's metric */
    const char *asked; /* score_format() of the metric that is asked for; NULL: the sweep's */
    bool is_trainers;  /* the built-in trainer reports it, so its name has a known meaning */
    bool maximize;
    struct score_truth truth;
    size_t n;
    const float *const *predictions; /* [n], each rows x outputs, finite */
    const double *values;            /* [n]: what the trials reported */
};

struct ensemble_metric {
    score_metric metric;
    bool is_sweeps;              /* it is the sweep's metric */
    char reason[AS_ERR_MSG_MAX]; /* why it was chosen; "" if the trainer's name says so */
};

/* Is this a name of score_format()? Then *ret is the metric. */
bool ensemble_metric_parse(const char *name, score_metric *ret);

/* Choose the metric:
 *   - the one that is asked for, if any;
 *   - of the built-in trainer: what its name means;
 *   - else the metric of predictions whose values are those that all trials reported. A name says
 *     nothing: a program may report any quantity under any name;
 *   - else, because the sweep's metric cannot be computed from predictions: error for classes, rmse
 *     for numbers (of the trainer's val_loss: log_loss, mse).
 * ret->reason says which of them, in words. AS_E_INVAL: a class out of range; what is asked for is
 * no metric, or one of classes where predictions are numbers, or the reverse. AS_E_NOMEM. */
AS_MUST_CHECK as_status ensemble_metric_choose(const struct ensemble_metric_input *in,
                                               struct ensemble_metric *ret, struct as_err *err);

#endif
