/* The shape signature: which trials may train side by side in one group. */
#ifndef ASSAY_MODEL_PLAN_SIGNATURE_H
#define ASSAY_MODEL_PLAN_SIGNATURE_H

#include "base/str.h"
#include "model/document/train_spec.h"
#include "model/plan/net_data.h"

/* Trials of one data set with equal signatures may share a group: their tensors have equal shapes
 * (mlp widths: in one bucket), and micro-batch, loss, precision, split, standardisation,
 * activation, and the presence of augmentation and of an average of weights agree. Of an optimizer,
 * a schedule, rates, seeds, epochs and the batch size it says nothing. Appends text to `out`;
 * str_check() it. `spec` must fit the data (train_spec_check). */
void net_signature(const struct train_spec *spec, const struct net_data *data, struct str *out);

#endif
