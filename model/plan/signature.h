/* The shape signature: which trials may train side by side. */
#ifndef ASSAY_MODEL_PLAN_SIGNATURE_H
#define ASSAY_MODEL_PLAN_SIGNATURE_H

#include "base/str.h"
#include "model/document/train_spec.h"
#include "model/plan/net_data.h"

/* Append the signature to `out`; the caller checks it with str_check(). `spec` must fit the data
 * (train_spec_check). Trials of one data set with equal signatures may train together: their
 * tensors have equal shapes (mlp widths: the same bucket), and they agree in micro-batch, loss,
 * precision, split, standardisation, activation, and in whether they have augmentation, an average
 * of weights and class weights. Optimizer, schedule, rates, seeds, epochs and batch size may
 * differ. Models of trees that share the data are alike in all other ways; the server gives them no
 * group, because each of them uses every thread. */
void net_signature(const struct train_spec *spec, const struct net_data *data, struct str *out);

#endif
