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
    if (!p->terms || !p->inputs || !p->sum)
        return as_fail_nomem(err);
    if (model_file_combine(p->file)->kind != MODEL_BY)
        return AS_OK;
    p->of_row = as_calloc(p->max_rows, sizeof *p->of_row);
    p->raw = as_calloc(p->max_rows, p->info->n_features * sizeof *p->raw);
    p->part = as_calloc(p->max_rows, p->n_outputs * sizeof *p->part);
    return p->of_row && p->raw && p->part ? AS_OK : as_fail_nomem(err);
}

static void combine(const struct predictor *p, const struct combine_rule *rule,
                    const struct combine_term *terms, size_t n, size_t rows, float *ret)
{
    combine_predictions(rule, terms, n, NULL, rows, p->sum);
    for (size_t i = 0; i < rows * p->n_outputs; i++)
        ret[i] = (float)p->sum[i];
}

/* A weighted mean, or a sum of boosting. It may be written over the predictions of the first
 * member. */
void predictor_combine_input(const struct predictor *p, size_t input, size_t rows, float *ret)
{
    size_t first = 0, n = model_file_input(p->file, input, &first);
    bool is_sum = model_file_combine(p->file)->sums[input];
    const struct combine_rule rule = {.outputs = p->n_outputs,
                                      .of_logs = is_sum && p->info->task == DATASET_CLASSIFICATION,
                                      .is_sum = is_sum};
    for (size_t i = 0; i < n; i++)
        p->terms[i] = (struct combine_term){predictor_values(p, first + i),
                                            model_file_member(p->file, first + i)->weight};
    if (n > 1 || is_sum)
        combine(p, &rule, p->terms, n, rows, ret);
    else if (ret != p->terms[0].predictions)
        memcpy(ret, p->terms[0].predictions, rows * p->n_outputs * sizeof *ret);
}

void predictor_calibrate(const struct predictor *p, size_t rows, float *ret)
{
    const struct combine_calibration *c = &model_file_combine(p->file)->calibration;
    if (c->slope == 0)
        return;
    for (size_t i = 0; i < rows * p->n_outputs; i++)
        p->sum[i] = (double)ret[i];
    combine_calibrate(c, p->n_outputs, rows, p->sum);
    for (size_t i = 0; i < rows * p->n_outputs; i++)
        ret[i] = (float)p->sum[i];
}

void predictor_combine(const struct predictor *p, size_t rows, float *ret)
{
    const struct model_combine *c = model_file_combine(p->file);
    const struct combine_rule rule = {
        .outputs = p->n_outputs, .biases = c->biases, .of_logs = c->of_logs};
    if (!c->weights) { /* the one input is all */
        predictor_combine_input(p, 0, rows, ret);
        return;
    }
    for (size_t k = 0; k < c->n_inputs; k++) {
        size_t first = 0;
        (void)model_file_input(p->file, k, &first);
        predictor_combine_input(p, k, rows, predictor_values(p, first));
        p->inputs[k] = (struct combine_term){predictor_values(p, first), c->weights[k]};
    }
    combine(p, &rule, p->inputs, c->n_inputs, rows, ret);
}
