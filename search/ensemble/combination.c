#include <math.h>
#include <string.h>

#include "search/ensemble/selection_priv.h"

as_status combination_init(struct combination *c, const struct ensemble_input *in,
                           struct as_err *err)
{
    c->counts = as_calloc(in->candidates, sizeof *c->counts);
    c->weights = as_calloc(in->candidates, sizeof *c->weights);
    c->biases = as_calloc(in->truth.outputs, sizeof *c->biases);
    if (!c->counts || !c->weights || !c->biases)
        return as_fail_nomem(err);
    combination_clear(c, in);
    return AS_OK;
}

void combination_done(struct combination *c)
{
    free(c->counts);
    free(c->weights);
    free(c->biases);
}

void combination_clear(struct combination *c, const struct ensemble_input *in)
{
    memset(c->counts, 0, in->candidates * sizeof *c->counts);
    memset(c->weights, 0, in->candidates * sizeof *c->weights);
    memset(c->biases, 0, in->truth.outputs * sizeof *c->biases);
    c->is_linear = false;
    c->penalty = NAN;
}

void combination_average(struct combination *c, const struct ensemble_input *in)
{
    double total = 0;
    for (size_t j = 0; j < in->candidates; j++)
        total += c->counts[j];
    for (size_t j = 0; j < in->candidates; j++)
        c->weights[j] = (double)c->counts[j] / total;
}

/* p[C] = softmax(p + biases). */
static void softmax(double *p, const double *biases, size_t C)
{
    double most = -INFINITY, sum = 0;
    for (size_t c = 0; c < C; c++) {
        p[c] += biases[c];
        most = p[c] > most ? p[c] : most;
    }
    for (size_t c = 0; c < C; c++)
        sum += p[c] = exp(p[c] - most);
    for (size_t c = 0; c < C; c++)
        p[c] /= sum;
}

void combination_predict(const struct combination *k, const struct ensemble_input *in,
                         struct row_list l, double *ret)
{
    size_t C = in->truth.outputs;
    bool classes = in->truth.classes != NULL;
    memset(ret, 0, l.n * C * sizeof *ret);
    for (size_t j = 0; j < in->candidates; j++) {
        const float *p = in->predictions[j];
        double w = k->weights[j];
        if (k->counts[j] == 0)
            continue;
        for (size_t i = 0; i < l.n; i++)
            for (size_t c = 0; c < C; c++) {
                double v = (double)p[(l.rows ? l.rows[i] : i) * C + c];
                bool log_of = k->is_linear && classes;
                ret[i * C + c] += w * (log_of ? log(fmin(fmax(v, MIN_PROBABILITY), 1)) : v);
            }
    }
    for (size_t i = 0; k->is_linear && i < l.n; i++) {
        if (classes)
            softmax(ret + i * C, k->biases, C);
        for (size_t c = 0; !classes && c < C; c++)
            ret[i * C + c] += k->biases[c];
    }
}
