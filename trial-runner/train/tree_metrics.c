#include "trial-runner/train/tree_metrics.h"

#include <float.h>
#include <math.h>

#include "model/network/metrics.h"
#include "model/network/outputs.h"

/* ---- the loss ---- */

as_status tree_row_weights(const struct lockstep_setup *s, const struct member *m,
                           const int32_t *rows, size_t n, float **ret, struct as_err *err)
{
    const struct train_data *d = s->data;
    const struct train_spec *spec = &m->spec;
    *ret = NULL;
    if (!d->set.labels || (!spec->balanced && spec->n_class_weights == 0))
        return AS_OK;
    AS_AUTO(as_freep) float *w = as_calloc(n, sizeof *w);
    if (!w)
        return as_fail(err, AS_E_NOMEM, "out of memory for the weights of %zu rows", n);
    for (size_t i = 0; i < n; i++) {
        size_t c = (size_t)d->set.labels[rows[i]];
        double all = (double)d->n_train, mine = (double)d->class_rows[c];
        double balanced = mine > 0 ? all / ((double)d->set.n_outputs * mine) : 0;
        w[i] = (float)(spec->balanced ? balanced : spec->class_weights[c]);
    }
    *ret = as_steal(w);
    return AS_OK;
}

static double surprise(double p)
{
    double least = (double)FLT_EPSILON;
    return isnan(p) ? p : -log(p < least ? least : p); /* not fmax(): NaN stays */
}

static double number_loss(const struct lockstep_setup *s, const struct member *m, double z,
                          double y)
{
    double e = z - y, size = fabs(e), delta = m->spec.huber_delta;
    if (s->loss == TRAIN_BCE)
        return y * surprise(z) + (1 - y) * surprise(1 - z);
    if (s->loss == TRAIN_HUBER)
        return size <= delta ? e * e / 2 : delta * (size - delta / 2);
    return e * e;
}

static double row_loss(const struct lockstep_setup *s, const struct member *m, const float *values,
                       size_t row)
{
    const struct dataset *set = &s->data->set;
    if (set->labels)
        return surprise((double)values[set->labels[row]]);
    size_t n = s->data->n_targets;
    double sum = 0;
    for (size_t t = 0; t < n; t++)
        sum += number_loss(s, m, (double)values[t], (double)set->targets[row * n + t]);
    return sum / (double)n;
}

double tree_loss(const struct lockstep_setup *s, const struct member *m, const float *values,
                 const int32_t *rows, size_t n, const float *weights)
{
    size_t columns = evaluate_columns(s);
    double sum = 0, all = 0;
    for (size_t i = 0; i < n; i++) {
        double w = weights ? (double)weights[i] : 1;
        sum += w > 0 ? w * row_loss(s, m, values + i * columns, (size_t)rows[i]) : 0;
        all += w;
    }
    return all > 0 ? sum / all * (s->data->set.labels ? 1 : loss_unit(s)) : 0;
}

/* ---- metrics of classes ---- */

static size_t best_class(const float *p, size_t n)
{
    size_t best = 0;
    for (size_t c = 1; c < n; c++)
        best = p[c] > p[best] ? c : best;
    return best;
}

/* Fewer than five classes are more probable. */
static bool is_in_top5(const float *p, size_t n, size_t label)
{
    size_t above = 0;
    for (size_t c = 0; c < n; c++)
        above += p[c] > p[label];
    return above < 5;
}

static as_status class_metrics(const struct lockstep_setup *s, const struct member *m,
                               const float *p, struct evaluation *e, struct as_err *err)
{
    const struct train_data *d = s->data;
    size_t n = d->n_val, classes = d->set.n_outputs, correct = 0, top5 = 0;
    AS_AUTO(as_freep) int32_t *labels = as_calloc(n, sizeof *labels);
    AS_AUTO(as_freep) int32_t *predicted = as_calloc(n, sizeof *predicted);
    if (!labels || !predicted)
        return as_fail(err, AS_E_NOMEM, "out of memory for %zu labels", n);
    double log_loss = 0;
    for (size_t i = 0; i < n; i++) {
        const float *row = p + i * classes;
        labels[i] = d->set.labels[d->val_rows[i]];
        predicted[i] = (int32_t)best_class(row, classes);
        correct += predicted[i] == labels[i];
        top5 += is_in_top5(row, classes, (size_t)labels[i]);
        log_loss += surprise((double)row[labels[i]]);
    }
    e->accuracy = (double)correct / (double)n;
    e->error = (double)(n - correct) / (double)n;
    if (train_spec_wants(&m->spec, "val_top5"))
        e->top5 = (double)top5 / (double)n;
    if (train_spec_wants(&m->spec, "val_log_loss"))
        e->log_loss = log_loss / (double)n;
    as_status st = AS_OK;
    if (train_spec_wants(&m->spec, "val_f1"))
        st = metric_f1(predicted, labels, n, classes, &e->f1, err);
    if (st == AS_OK && train_spec_wants(&m->spec, "val_auc"))
        st = metric_auc_classes(p, classes, labels, n, &e->auc, err);
    return st;
}

/* ---- all of them ---- */

as_status tree_evaluate(const struct lockstep_setup *s, const struct member *m, float *values,
                        const float *weights, struct evaluation *ret, struct as_err *err)
{
    const struct train_data *d = s->data;
    struct evaluation e = {NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN};
    e.loss = tree_loss(s, m, values, d->val_rows, d->n_val, weights);
    as_status st = AS_OK;
    if (d->set.labels) {
        st = class_metrics(s, m, values, &e, err);
    } else {
        outputs_to_own_unit(values, d->n_val, d->n_targets, d->fit.target_mean,
                            d->fit.target_scale);
        struct metric_errors x = metric_errors(values, d->val_targets, d->n_val, d->n_targets);
        e.rmse = x.rmse;
        e.mae = x.mae;
        e.r2 = x.r2;
    }
    if (st == AS_OK)
        *ret = e;
    return st;
}
