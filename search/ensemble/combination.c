/* What a combination predicts: by weights or by buckets with the formulas of model/combine/, then
 * calibrated. Models are made of the same formulas, so they predict what was measured. */
#include <math.h>
#include <string.h>

#include "model/combine/combine.h"
#include "search/ensemble/selection_priv.h"

as_status combination_init(struct combination *c, const struct ensemble_input *in,
                           struct as_err *err)
{
    c->counts = as_calloc(in->candidates, sizeof *c->counts);
    c->weights = as_calloc(in->candidates, sizeof *c->weights);
    c->biases = as_calloc(in->truth.outputs, sizeof *c->biases);
    c->of_bucket = as_calloc(in->n_buckets + 1, sizeof *c->of_bucket);
    c->class_weights = as_calloc(in->truth.outputs, sizeof *c->class_weights);
    if (!c->counts || !c->weights || !c->biases || !c->of_bucket || !c->class_weights)
        return as_fail_nomem(err);
    combination_clear(c, in);
    return AS_OK;
}

void combination_done(struct combination *c)
{
    free(c->counts);
    free(c->weights);
    free(c->biases);
    free(c->of_bucket);
    free(c->class_weights);
}

void combination_clear(struct combination *c, const struct ensemble_input *in)
{
    memset(c->counts, 0, in->candidates * sizeof *c->counts);
    memset(c->weights, 0, in->candidates * sizeof *c->weights);
    memset(c->biases, 0, in->truth.outputs * sizeof *c->biases);
    memset(c->of_bucket, 0, (in->n_buckets + 1) * sizeof *c->of_bucket);
    c->is_linear = c->is_by_bucket = false;
    c->calibration = (struct combine_calibration){0};
    c->penalty = c->threshold = NAN;
    c->n_class_weights = 0;
}

void combination_average(struct combination *c, const struct ensemble_input *in)
{
    double total = 0;
    for (size_t j = 0; j < in->candidates; j++)
        total += c->counts[j];
    for (size_t j = 0; j < in->candidates; j++)
        c->weights[j] = (double)c->counts[j] / total;
}

size_t combination_members(const unsigned *counts, const double *weights, size_t candidates,
                           size_t *ret)
{
    size_t n = 0;
    for (size_t j = 0; j < candidates; j++) {
        size_t at = n;
        if (counts[j] == 0)
            continue;
        for (; at > 0 && weights[ret[at - 1]] < weights[j]; at--)
            ret[at] = ret[at - 1];
        ret[at] = j;
        n++;
    }
    return n;
}

/* Each row by the model of its bucket. */
static void predict_by_bucket(const struct combination *k, const struct ensemble_input *in,
                              struct row_list l, double *ret)
{
    size_t C = in->truth.outputs;
    for (size_t i = 0; i < l.n; i++) {
        size_t row = l.rows ? l.rows[i] : i;
        size_t bucket = in->buckets ? in->buckets[row] : in->n_buckets;
        const float *p = in->predictions[k->of_bucket[bucket]] + row * C;
        for (size_t c = 0; c < C; c++)
            ret[i * C + c] = (double)p[c];
    }
}

static void predict_by_weights(const struct combination *k, const struct ensemble_input *in,
                               struct row_list l, double *ret)
{
    const struct combine_rule rule = {.outputs = in->truth.outputs,
                                      .biases = k->is_linear ? k->biases : NULL,
                                      .of_logs = in->truth.classes != NULL};
    size_t members[ENSEMBLE_MAX_CANDIDATES];
    struct combine_term terms[ENSEMBLE_MAX_CANDIDATES];
    size_t n = combination_members(k->counts, k->weights, in->candidates, members);
    for (size_t i = 0; i < n; i++)
        terms[i] = (struct combine_term){in->predictions[members[i]], k->weights[members[i]]};
    combine_predictions(&rule, terms, n, l.rows, l.n, ret);
}

void combination_predict(const struct combination *k, const struct ensemble_input *in,
                         struct row_list l, double *ret)
{
    if (k->is_by_bucket)
        predict_by_bucket(k, in, l, ret);
    else
        predict_by_weights(k, in, l, ret);
    if (k->calibration.slope != 0)
        combine_calibrate(&k->calibration, in->truth.outputs, l.n, ret);
}

/* The class whose probability, as a model gives it, times its weight is the highest. */
static void decide_by_weights(const struct combination *c, double *p)
{
    size_t C = c->n_class_weights, best = 0;
    for (size_t k = 1; k < C; k++)
        if ((double)(float)p[k] * c->class_weights[k] >
            (double)(float)p[best] * c->class_weights[best])
            best = k;
    for (size_t k = 0; k < C; k++)
        p[k] = k == best;
}

void combination_decide(const struct combination *c, size_t n, double *p)
{
    for (size_t i = 0; i < n && c->n_class_weights > 0; i++)
        decide_by_weights(c, p + i * c->n_class_weights);
    for (size_t i = 0; i < n && !isnan(c->threshold); i++) {
        bool second = (double)(float)p[i * 2 + 1] > c->threshold;
        p[i * 2] = !second;
        p[i * 2 + 1] = second;
    }
}
