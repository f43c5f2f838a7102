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

void combination_predict(const struct combination *k, const struct ensemble_input *in,
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
