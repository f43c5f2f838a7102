#include "model/network/outputs.h"

#include <math.h>

#include "data/preprocess/target_unit.h"

static void softmax_row(float *row, size_t outputs)
{
    float top = row[0];
    double sum = 0;
    for (size_t o = 1; o < outputs; o++)
        top = row[o] > top ? row[o] : top;
    for (size_t o = 0; o < outputs; o++)
        sum += exp((double)row[o] - (double)top);
    for (size_t o = 0; o < outputs; o++)
        row[o] = (float)(exp((double)row[o] - (double)top) / sum);
}

void outputs_to_probabilities(float *z, size_t rows, size_t outputs, train_loss loss)
{
    for (size_t i = 0; loss == TRAIN_BCE && i < rows * outputs; i++)
        z[i] = (float)(1 / (1 + exp(-(double)z[i])));
    for (size_t r = 0; loss == TRAIN_CROSS_ENTROPY && r < rows; r++)
        softmax_row(z + r * outputs, outputs);
}

void outputs_to_own_unit(float *v, size_t rows, const struct preprocess *fit)
{
    for (size_t i = 0; i < rows * fit->n_targets; i++)
        v[i] = (float)target_unit_back(fit, i % fit->n_targets, (double)v[i]);
}

void outputs_to_both_classes(float *v, size_t rows)
{
    for (size_t i = rows; i-- > 0;) { /* backwards: a pair overwrites values with larger indices */
        float p = v[i];
        v[2 * i] = 1 - p;
        v[2 * i + 1] = p;
    }
}

void outputs_to_predictions(float *v, size_t rows, size_t outputs, size_t columns, train_loss loss,
                            const struct preprocess *fit)
{
    outputs_to_probabilities(v, rows, outputs, loss);
    if (fit->n_targets > 0)
        outputs_to_own_unit(v, rows, fit);
    if (outputs < columns) /* one output for two classes: add the other column */
        outputs_to_both_classes(v, rows);
}
