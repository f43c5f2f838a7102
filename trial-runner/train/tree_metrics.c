/* Trees have no device: predictions are on the host, and losses and metrics are computed there with
 * the formulas of networks. Rows without weights take one logarithm for 32 rows (decision 2007).
 * Sums are in double in the order of the rows, so that a report does not depend on the number of
 * threads. */
#include "trial-runner/train/tree_metrics.h"

#include <float.h>
#include <math.h>

#include "data/preprocess/target_unit.h"
#include "model/network/outputs.h"

/* ---- the loss ---- */

as_status tree_row_weights(const struct lockstep_setup *s, const struct member *m,
                           const int32_t *rows, size_t n, float **ret, struct as_err *err)
{
    const struct train_data *d = s->data;
    const struct train_spec *spec = &m->spec;
    bool by_class = d->set.labels && (spec->balanced || spec->n_class_weights > 0);
    *ret = NULL;
    if (!by_class && !d->weights)
        return AS_OK;
    AS_AUTO(as_freep) float *w = as_calloc(n, sizeof *w);
    if (!w)
        return as_fail(err, AS_E_NOMEM, "out of memory for the weights of %zu rows", n);
    for (size_t i = 0; i < n; i++) {
        w[i] = d->weights ? d->weights[rows[i]] : 1;
        if (!by_class)
            continue;
        size_t c = (size_t)d->set.labels[rows[i]];
        double all = (double)d->n_train, mine = (double)d->class_rows[c];
        double balanced = mine > 0 ? all / ((double)d->set.n_outputs * mine) : 0;
        w[i] *= (float)(spec->balanced ? balanced : spec->class_weights[c]);
    }
    *ret = as_steal(w);
    return AS_OK;
}

static double at_least_epsilon(double p)
{
    double least = (double)FLT_EPSILON;
    return p < least ? least : p; /* not fmax(): NaN stays */
}

static double surprise(double p)
{
    return -log(at_least_epsilon(p));
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

/* The sum of surprise() over the true classes of rows without weights, by the logarithm of a
 * product instead of a logarithm for each row: a logarithm takes as long as 20 products. FACTORS
 * numbers of at least 2^-23 have a product that is a normal double. It is rounded FACTORS times,
 * as a sum is. */
static double sum_of_surprises(const struct lockstep_setup *s, const float *values,
                               const int32_t *rows, size_t n)
{
    enum { FACTORS = 32 };
    const int32_t *labels = s->data->set.labels;
    size_t columns = evaluate_columns(s);
    double sum = 0;
    for (size_t at = 0; at < n; at += FACTORS) {
        size_t end = n - at < FACTORS ? n : at + FACTORS;
        double product = 1;
        for (size_t i = at; i < end; i++)
            product *= at_least_epsilon((double)values[i * columns + (size_t)labels[rows[i]]]);
        sum -= log(product);
    }
    return sum;
}

double tree_loss(const struct lockstep_setup *s, const struct member *m, const float *values,
                 const int32_t *rows, size_t n, const float *weights)
{
    size_t columns = evaluate_columns(s);
    double sum = 0, all = 0;
    if (s->data->set.labels && !weights)
        return n > 0 ? sum_of_surprises(s, values, rows, n) / (double)n : 0;
    for (size_t i = 0; i < n; i++) {
        double w = weights ? (double)weights[i] : 1;
        sum += w > 0 ? w * row_loss(s, m, values + i * columns, (size_t)rows[i]) : 0;
        all += w;
    }
    return all > 0 ? sum / all * (s->data->set.labels ? 1 : loss_unit(s)) : 0;
}

/* ---- metrics ---- */

as_status tree_evaluate(const struct lockstep_setup *s, const struct member *m, float *values,
                        const float *weights, struct evaluation *ret, struct as_err *err)
{
    const struct train_data *d = s->data;
    struct evaluation e;
    const int32_t *labels = d->val_labels;
    evaluation_clear(&e);
    e.loss = tree_loss(s, m, values, d->val_rows, d->n_val, weights);
    if (!labels)
        outputs_to_own_unit(values, d->n_val, &d->fit);
    const struct metric_input in = {.n = d->n_val,
                                    .outputs = labels ? d->set.n_outputs : d->n_targets,
                                    .labels = labels,
                                    .targets = d->val_targets,
                                    .predicted = values,
                                    .weights = d->val_weights};
    as_status st = evaluation_measure(m, &in, &e, err);
    if (st == AS_OK)
        *ret = e;
    return st;
}

/* Values [n, evaluate_columns()] in the targets' own unit as they are trained: standardised, of
 * probabilities a copy. Owned by the caller. */
static as_status as_trained(const struct lockstep_setup *s, const float *values, size_t n,
                            float **ret, struct as_err *err)
{
    const struct train_data *d = s->data;
    size_t columns = evaluate_columns(s);
    float *z = as_calloc(n * columns, sizeof *z);
    if (!z)
        return as_fail(err, AS_E_NOMEM, "out of memory for %zu predictions", n * columns);
    for (size_t i = 0; i < n * columns; i++) {
        double v = (double)values[i];
        z[i] = d->set.labels ? values[i] : (float)target_unit_forward(&d->fit, i % columns, v);
    }
    *ret = z;
    return AS_OK;
}

as_status tree_loss_own(const struct lockstep_setup *s, const struct member *m, const float *values,
                        const int32_t *rows, size_t n, const float *weights, double *ret,
                        struct as_err *err)
{
    AS_AUTO(as_freep) float *z = NULL;
    as_status st = as_trained(s, values, n, &z, err);
    if (st == AS_OK)
        *ret = tree_loss(s, m, z, rows, n, weights);
    return st;
}

as_status tree_evaluate_own(const struct lockstep_setup *s, const struct member *m,
                            const float *values, const float *weights, struct evaluation *ret,
                            struct as_err *err)
{
    AS_AUTO(as_freep) float *z = NULL;
    as_status st = as_trained(s, values, s->data->n_val, &z, err);
    return st == AS_OK ? tree_evaluate(s, m, z, weights, ret, err) : st;
}
