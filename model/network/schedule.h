/* The learning rate as a pure function of the step. */
#ifndef ASSAY_MODEL_NETWORK_SCHEDULE_H
#define ASSAY_MODEL_NETWORK_SCHEDULE_H

#include <stdint.h>

#include "model/document/train_spec.h"

/* The rate of step 0 <= step < epochs * steps_per_epoch.
 *   constant   lr, after a linear rise over warmup_epochs: lr * (step + 1) / warm-up steps
 *   step       the same rise, else lr * gamma^k after k spans of step_epochs, counted from step 0
 *              (the form of torch's StepLR)
 *   cosine     the same rise, then min_lr + (lr - min_lr) (1 + cos(pi t)) / 2, t from 0 towards 1
 *              over the rest (Loshchilov and Hutter 2017).
 *              With cycles the epochs are cut into so many parts, and each is such a fall: the rate
 *              begins anew at lr
 *   one_cycle  half a cosine from lr / 25 up to lr over pct_start of the steps, half a cosine down
 *   to
 *              min_lr at the last step (Smith and Topin 2018; the form of torch's OneCycleLR) */
double schedule_lr(const struct train_spec *spec, int64_t step, int64_t steps_per_epoch);

#endif
