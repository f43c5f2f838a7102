/* From the predictions of members to those of the model, with the formulas of model/combine/. */
#include <string.h>

#include "model/combine/combine.h"
#include "model/predict/predictor_priv.h"

float *predictor_values(const struct predictor *p, size_t member)
{
    return p->values + member * p->max_rows * p->n_outputs;
}

as_status predictor_combine_init(struct predictor *p, struct as_err *err)
{
    size_t n = model_file_n_members(p->file);
    p->terms = as_calloc(n, sizeof *p->terms);
    p->inputs = as_calloc(n, sizeof *p->inputs);
    p->sum = as_calloc(p->max_rows, p->n_outputs * sizeof *p->sum);
    return p->terms && p->inputs && p->sum ? AS_OK : as_fail_nomem(err);
}

static void combine(const struct predictor *p, const struct combine_rule *rule,
                    const struct combine_term *terms, size_t n, size_t rows, float *ret)
{
    combine_predictions(rule, terms, n, NULL, rows, p->sum);
    for (size_t i = 0; i < rows * p->n_outputs; i++)
        ret[i] = (float)p->sum[i];
}

/* The weighted mean of n members, which may be written over the first of them. */
static void mean_of(const struct predictor *p, size_t first, size_t n, size_t rows, float *ret)
{
    const struct combine_rule mean = {.outputs = p->n_outputs};
    for (size_t i = 0; i < n; i++)
        p->terms[i] = (struct combine_term){predictor_values(p, first + i),
                                            model_file_member(p->file, first + i)->weight};
    if (n > 1)
        combine(p, &mean, p->terms, n, rows, ret);
    else if (ret != p->terms[0].predictions)
        memcpy(ret, p->terms[0].predictions, rows * p->n_outputs * sizeof *ret);
}

void predictor_combine(const struct predictor *p, size_t rows, float *ret)
{
    const struct model_combine *c = model_file_combine(p->file);
    const struct combine_rule rule = {.outputs = p->n_outputs,
                                      .biases = c->biases,
                                      .of_logs = c->of_logs,
                                      .is_sum = c->kind == MODEL_SUM};
    size_t n = model_file_n_members(p->file), end = 0;
    if (c->kind == MODEL_MEAN) {
        mean_of(p, 0, n, rows, ret);
        return;
    }
    if (c->kind == MODEL_SUM) {
        for (size_t i = 0; i < n; i++)
            p->terms[i] = (struct combine_term){predictor_values(p, i),
                                                model_file_member(p->file, i)->weight};
        combine(p, &rule, p->terms, n, rows, ret);
        return;
    }
    for (size_t k = 0; k < c->n_inputs; k++) {
        size_t first = end;
        while (end < n && model_file_member(p->file, end)->input == k)
            end++;
        mean_of(p, first, end - first, rows, predictor_values(p, first));
        p->inputs[k] = (struct combine_term){predictor_values(p, first), c->weights[k]};
    }
    combine(p, &rule, p->inputs, c->n_inputs, rows, ret);
}
