/* A step to the minimum of a quadratic through the best trials.
 *
 * A Gaussian process with a lengthscale for each axis does not model a valley that runs across the
 * axes. A polynomial of second order does, and near its minimum a smooth function is close to one.
 * The coefficients have a normal prior, so fewer trials than coefficients suffice: it is the
 * Gaussian process of the kernel (1 + u'v)^2, u being places relative to the best trial, in units
 * of the spread of the trials that it is fitted to. The noise grows with the distance from the best
 * value, because the function need not be quadratic far from the minimum. The share of the noise is
 * the one that predicts each trial best from all others (C. Rasmussen, C. Williams, "Gaussian
 * processes for machine learning", 2006, sections 2.1.2 and 5.4.2).
 *
 * The same predictions decide whether the step is used: only if their root mean squared error is at
 * most half of the rival's on the same trials, in the rival's unit. The rival is the model that
 * would choose otherwise. */
#ifndef ASSAY_SEARCH_GP_QUADRATIC_H
#define ASSAY_SEARCH_GP_QUADRATIC_H

#include <stdbool.h>

#include "search/regression/training_set.h"
#include "search/gp/surrogate.h"

struct gp_quadratic {
    bool is_found;
    double mean;      /* the predicted cost there */
    double deviation; /* root of the mean squared error of the predictions, in the rival's unit */
    double gain;      /* the best cost so far - mean, above 0 */
};

/* Find where the quadratic is lowest, in the box of its trials widened by half of its size.
 *   s          one objective, no outcomes; borrowed
 *   rival      a model of that objective, conditioned on its completed trials; borrowed
 *   ret_point  s->enc->n places, snapped, allowed and not tried; untouched unless is_found Not
 *              found is not an error. It happens with categories or conditions, failures, too few
 *              trials, a rival that is as good, or almost nothing to gain. O(m^3 + m n^2) for m <=
 *              256 of n trials.
 * AS_E_NOMEM */
AS_MUST_CHECK as_status gp_quadratic_step(const struct training_set *s,
                                          const struct surrogate *rival, double *ret_point,
                                          struct gp_quadratic *ret, struct as_err *err);

#endif
