/* A step to the minimum of a quadratic through the best trials.
 *
 * A Gaussian process with a lengthscale for each axis does not see that a valley runs across the
 * axes; a polynomial of second order does, and near its minimum a smooth function is one. Its
 * coefficients have a normal prior, so that fewer trials than coefficients do: it is the Gaussian
 * process of the kernel (1 + u'v)^2, u being places relative to the best trial, in units of the
 * spread of the trials that it goes through. Noise grows with the distance from the best value,
 * because what lies far off need not be quadratic; its share is the one whose predictions of each
 * trial from all others are best (C. Rasmussen, C. Williams, "Gaussian processes for machine
 * learning", 2006, sections 2.1.2 and 5.4.2).
 *
 * The same predictions decide whether it is heard: only where their error is at most half of the
 * rival's, the model that would choose otherwise, on the same trials and in the rival's unit. */
#ifndef ASSAY_SEARCH_GP_QUADRATIC_H
#define ASSAY_SEARCH_GP_QUADRATIC_H

#include <stdbool.h>

#include "search/regression/training_set.h"
#include "search/gp/surrogate.h"

struct gp_quadratic {
    bool is_found;
    double mean;      /* of the cost there */
    double deviation; /* root of the mean squared error of the predictions, in the rival's unit */
    double gain;      /* the best cost so far - mean, above 0 */
};

/* Where the quadratic is lowest, in the box of the trials that it goes through and half of its size
 * around it.
 *   s          one objective, no outcomes; borrowed
 *   rival      a model of that objective, conditioned on its completed trials; borrowed
 *   ret_point  s->enc->n places, snapped, allowed and not tried; untouched unless it is found
 * Not found, which is no error: a space with categories or conditions, failures, too few trials, a
 * rival that is as good, next to nothing to gain. O(m^3 + m n^2) for m <= 256 of n trials.
 * AS_E_NOMEM */
AS_MUST_CHECK as_status gp_quadratic_step(const struct training_set *s,
                                          const struct surrogate *rival, double *ret_point,
                                          struct gp_quadratic *ret, struct as_err *err);

#endif
