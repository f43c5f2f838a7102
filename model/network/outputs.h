/* From the outputs of a network to the numbers that are reported, stored and served. All functions
 * work in place, row by row, so that equal outputs give equal bits in every program. */
#ifndef ASSAY_MODEL_NETWORK_OUTPUTS_H
#define ASSAY_MODEL_NETWORK_OUTPUTS_H

#include <stddef.h>

#include "data/preprocess/preprocess.h"
#include "model/document/train_spec.h"

/* z [rows, outputs]: logits to probabilities where `loss` is one of classes (cross_entropy: the
 * softmax of a row; bce: the sigmoid of each); other outputs stay. loss is not AUTO. */
void outputs_to_probabilities(float *z, size_t rows, size_t outputs, train_loss loss);

/* v [rows, fit->n_targets]: standardised numbers to the targets' own unit (target_unit.h). */
void outputs_to_own_unit(float *v, size_t rows, const struct preprocess *fit);

/* v has the probability of class 1 of each row [rows], and room for [rows, 2]. Afterwards it has
 * the probabilities of both classes. */
void outputs_to_both_classes(float *v, size_t rows);

/* From the outputs of one member [rows, outputs] to its predictions [rows, columns], in place: v
 * has room for both. The three steps above, as its loss and its preprocessing say. Columns are
 * classes, or targets in their own unit (columns of a regression are fit->n_targets). */
void outputs_to_predictions(float *v, size_t rows, size_t outputs, size_t columns, train_loss loss,
                            const struct preprocess *fit);

#endif
