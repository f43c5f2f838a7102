/* By name for the trainer's metrics that predictions determine; otherwise by values: a metric is
 * the sweep's if it has, for every candidate, the value that the trial reported (decision 4014).
 * The first metric that agrees with all is taken; one candidate that differs excludes it. */
#include "scheduler/lifecycle/ensemble_metric.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"

/* Reported values went through decimal text and perhaps float32. */
#define RELATIVE 1e-4
#define ABSOLUTE 1e-6

/* The trainer's metrics that predictions determine. `val_loss` is not here, because it depends on
 * the trial's loss and class weights; it is compared by value. */
static const struct {
    const char *name;
    score_metric metric;
} of_trainer[] = {
    {"val_error", SCORE_ERROR},
    {"val_accuracy", SCORE_ACCURACY},
    {"val_log_loss", SCORE_LOG_LOSS},
    {"val_auc", SCORE_AUC},
    {"val_f1", SCORE_F1},
    {"val_top5", SCORE_TOP5},
    {"val_rmse", SCORE_RMSE},
    {"val_mae", SCORE_MAE},
    {"val_r2", SCORE_R2},
    {"val_balanced_accuracy", SCORE_BALANCED_ACCURACY},
    {"val_average_precision", SCORE_AVERAGE_PRECISION},
    {"val_brier", SCORE_BRIER},
    {"val_mape", SCORE_MAPE},
};

/* The metric of a name of the trainer; false if predictions do not determine it. */
static bool metric_of(const char *name, score_metric *ret)
{
    for (size_t i = 0; i < AS_ARRAY_LEN(of_trainer); i++)
        if (as_streq(of_trainer[i].name, name)) {
            *ret = of_trainer[i].metric;
            return true;
        }
    for (int q = 1; q <= SCORE_PINBALL_MAX && strncmp(name, "val_", 4) == 0; q++)
        if (as_streq(score_format(SCORE_PINBALL(q)), name + 4)) {
            *ret = SCORE_PINBALL(q);
            return true;
        }
    return false;
}

bool ensemble_metric_parse(const char *name, score_metric *ret)
{
    for (int m = 0; m <= SCORE_METRICS + SCORE_PINBALL_MAX; m++)
        if (m != SCORE_METRICS && as_streq(score_format((score_metric)m), name)) {
            *ret = (score_metric)m;
            return true;
        }
    return false;
}

static bool fits(const struct ensemble_metric_input *in, score_metric m)
{
    return score_is_of_classes(m) == (in->truth.classes != NULL) &&
           score_is_maximized(m) == in->maximize;
}

static bool find_by_name(const struct ensemble_metric_input *in, score_metric *ret)
{
    return in->is_trainers && metric_of(in->name, ret) && fits(in, *ret);
}

static as_status check_classes(const struct score_truth *t, struct as_err *err)
{
    for (size_t i = 0; t->classes && i < t->rows; i++)
        if (t->classes[i] < 0 || (uint64_t)t->classes[i] >= t->outputs)
            return as_fail(err, AS_E_INVAL,
                           "row %zu has class %" PRId64 ", expected 0 to %zu (one per output)", i,
                           t->classes[i], t->outputs - 1);
    return AS_OK;
}

/* Do all trials report the metric `m` of their predictions? */
static as_status agrees(const struct ensemble_metric_input *in, score_metric m, double *p,
                        bool *ret, struct as_err *err)
{
    size_t cells = in->truth.rows * in->truth.outputs;
    *ret = true;
    for (size_t k = 0; *ret && k < in->n; k++) {
        double v = NAN, reported = in->values[k];
        for (size_t i = 0; i < cells; i++)
            p[i] = (double)in->predictions[k][i];
        as_status st = score_compute(m, &in->truth, NULL, in->truth.rows, p, 1, &v, NULL, err);
        if (st != AS_OK)
            return st;
        *ret = fabs(v - reported) <= ABSOLUTE + RELATIVE * fabs(reported); /* false for NaN */
    }
    return AS_OK;
}

static as_status find_by_values(const struct ensemble_metric_input *in, bool *ret_found,
                                score_metric *ret, struct as_err *err)
{
    AS_AUTO(as_freep) double *p = as_calloc(in->truth.rows * in->truth.outputs, sizeof *p);
    if (!p)
        return as_fail_nomem(err);
    as_status st = check_classes(&in->truth, err);
    *ret_found = false;
    for (int m = 0; st == AS_OK && !*ret_found && m <= SCORE_METRICS + SCORE_PINBALL_MAX; m++) {
        if (m == SCORE_METRICS)
            continue; /* pinball losses begin at 1 per cent */
        if (fits(in, (score_metric)m))
            st = agrees(in, (score_metric)m, p, ret_found, err);
        *ret = (score_metric)m;
    }
    return st;
}

/* The metric in place of one that predictions do not determine. The trainer's val_loss may differ
 * from these by class weights, by the loss, or where a probability is below 1e-7. */
static score_metric substitute(const struct ensemble_metric_input *in)
{
    if (in->is_trainers && as_streq(in->name, "val_loss"))
        return in->truth.classes ? SCORE_LOG_LOSS : SCORE_MSE;
    return in->truth.classes ? SCORE_ERROR : SCORE_RMSE;
}

static as_status choose_sweeps(const struct ensemble_metric_input *in, struct ensemble_metric *ret,
                               struct as_err *err)
{
    struct ensemble_metric chosen = {.is_sweeps = true};
    bool found = find_by_name(in, &chosen.metric);
    if (found) {
        *ret = chosen;
        return AS_OK;
    }
    as_status st = find_by_values(in, &found, &chosen.metric, err);
    if (st != AS_OK)
        return st;
    if (found) {
        (void)snprintf(chosen.reason, sizeof chosen.reason,
                       "the values of '%.100s' that the trials reported are the %s of their "
                       "predictions",
                       in->name, score_format(chosen.metric));
    } else {
        chosen.metric = substitute(in);
        chosen.is_sweeps = false;
        (void)snprintf(chosen.reason, sizeof chosen.reason,
                       "'%.100s' cannot be computed from predictions.npy and targets.npy, so %s is "
                       "used",
                       in->name, score_format(chosen.metric));
    }
    *ret = chosen;
    return AS_OK;
}

as_status ensemble_metric_choose(const struct ensemble_metric_input *in,
                                 struct ensemble_metric *ret, struct as_err *err)
{
    score_metric asked;
    bool classes = in->truth.classes != NULL;
    as_status st = choose_sweeps(in, ret, err);
    if (st != AS_OK || !in->asked)
        return st;
    if (!ensemble_metric_parse(in->asked, &asked) || score_is_of_classes(asked) != classes)
        return as_fail(err, AS_E_INVAL, "/metric: found %.60s, expected a metric of %s", in->asked,
                       classes ? "classes" : "numbers");
    if (asked == ret->metric)
        return AS_OK;
    *ret = (struct ensemble_metric){.metric = asked};
    (void)snprintf(ret->reason, sizeof ret->reason,
                   "it was asked for; the metric of the sweep is '%.100s'", in->name);
    return AS_OK;
}
