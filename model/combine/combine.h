/* How the predictions of several models become one: the formulas of ensembles. The room that fits
 * an ensemble and the one that predicts with it call this, so what was measured is what is used. */
#ifndef ASSAY_MODEL_COMBINE_COMBINE_H
#define ASSAY_MODEL_COMBINE_COMBINE_H

#include <stdbool.h>
#include <stddef.h>

#define COMBINE_MIN_PROBABILITY 1e-7 /* smaller ones count as this where logarithms are taken */

struct combine_rule {
    size_t outputs;       /* classes, or targets */
    const double *biases; /* [outputs]; NULL: a weighted mean, which has none */
    bool of_logs;         /* with biases or is_sum: classes, by logarithms of probabilities */
    bool is_sum; /* boosting: the first term is a model, the others numbers that are added */
};

/* One of the models that are combined. Borrowed. */
struct combine_term {
    const float *predictions; /* [rows, outputs]: probabilities, or numbers */
    double weight;
};

/* ln(p) for p clipped to [COMBINE_MIN_PROBABILITY, 1]. NaN stays NaN. */
double combine_log(double p);

/* Combine the predictions of n terms.
 *   rows  [n_rows]: rows of the terms' predictions, or NULL for the first n_rows
 *   ret   [n_rows, outputs]:
 *           a mean           sum(weight * prediction)
 *           linear           sum(weight * prediction) + bias
 *           linear, of_logs  softmax over the outputs of sum(weight * ln(prediction)) + bias
 *           is_sum           sum(weight * prediction)
 *           is_sum, of_logs  softmax over the outputs of weight * ln(prediction) of the first term
 *                            + sum(weight * prediction) of the others
 * Everything is computed in double, and terms are added in their order: equal terms in the same
 * order give equal bits. A prediction that is not finite makes its row not finite. Allocates
 * nothing. */
void combine_predictions(const struct combine_rule *rule, const struct combine_term *terms,
                         size_t n, const size_t *rows, size_t n_rows, double *ret);

/* What makes the probabilities of an ensemble as sure as it is right. Of two classes: J. Platt,
 * "Probabilistic outputs for support vector machines", 1999, on logarithms of odds; of more: C.
 * Guo, G. Pleiss, Y. Sun, K. Weinberger, "On calibration of modern neural networks", ICML 2017
 * (temperature). */
#define COMBINE_SLOPE_MIN 0.01
#define COMBINE_SLOPE_MAX 100.0
#define COMBINE_BIAS_MAX 100.0

struct combine_calibration {
    double slope; /* COMBINE_SLOPE_MIN to _MAX; 1 changes nothing */
    double bias;  /* of the second of two classes, up to COMBINE_BIAS_MAX either way; of more 0 */
};

/* Calibrate the probabilities p[n_rows, outputs], outputs >= 2, in place: softmax over the classes
 * of slope * ln(p) + bias. Each is rounded to float32 first, as what a model predicts is. */
void combine_calibrate(const struct combine_calibration *c, size_t outputs, size_t n_rows,
                       double *p);

#endif
