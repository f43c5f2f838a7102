/* How skewed a target of numbers is, and whether its logarithm is less so. Numbers such as incomes,
 * counts and prices have a long tail to the right, which a few rows of large errors dominate; a
 * model of their logarithm (target.transform of docs/sweep.md) does not see that tail.
 *
 * The skewness is m3 / m2^1.5, the third and second central moments; the sums are updated row by
 * row (P. Pébay, "Formulas for robust, one-pass parallel computation of covariances and
 * arbitrary-order statistical moments", Sandia report SAND2008-6212, 2008, with one value). */
#ifndef ASSAY_DATA_SKEWNESS_H
#define ASSAY_DATA_SKEWNESS_H

#include <stddef.h>

#include "data/dataset.h"

struct skewness_sums {
    double n, mean, m2, m3;
};

/* Zeroed, it has seen no value. */
struct skewness {
    struct skewness_sums own, log,
        log1p; /* of values above 0, and of those that are not below it */
};

void skewness_add(struct skewness *s, double value);

/* Of all values; 0: there are fewer than 3, or all are equal. */
double skewness_of(const struct skewness_sums *sums);

/* The transformation that a search should try beside the target as it is: TARGET_LOG or
 * TARGET_LOG1P, whichever leaves less skewness, if the skewness is above 1, no value is below 0,
 * and at most half of the skewness is left; else TARGET_AS_IS.
 *   ret_left  the skewness that is left */
target_transform skewness_transform(const struct skewness *s, double *ret_left);

#endif
