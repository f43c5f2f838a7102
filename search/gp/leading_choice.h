/* The choice whose values differ most from each other, in a space that declares nothing.
 *
 * Where parameters mean something under one value of a choice alone, one model of all trials takes
 * long to sort them out, and the value that looks best untuned gets nearly all trials. The warped
 * model says which choice it is: the correlation that it sees between two values of the choice,
 * all else equal, is small. Each of its values is then tuned for its own sake (branch.h), with up
 * to 20 numbers half of the time by a model of its own trials (value_suggest.c). */
#ifndef ASSAY_SEARCH_GP_LEADING_CHOICE_H
#define ASSAY_SEARCH_GP_LEADING_CHOICE_H

#include <jansson.h>
#include <stddef.h>

#include "search/regression/training_set.h"

/* The choice matters to the model: it sees so large a distance between two of its values. */
#define CHOICE_MATTERS 0.15

/* 1 less the correlation that the model sees between two values of a choice, all else equal; of one
 * with an order (value_order.h), between the first and the last. 0: the parameter is no choice, or
 * there is no theta.
 *   theta  as below */
double choice_distance(const struct encoding *e, size_t j, const json_t *theta);

/* The parameter, or TRAINING_SET_NONE: no choice stands out, or the space is not one where it
 * would help (decision 4036).
 *   theta  borrowed: hyperparameters of the last fit of the warped model, as its state has them;
 *          anything else counts as none
 * O(d^2). */
size_t leading_choice(const struct training_set *s, const json_t *theta);

#endif
