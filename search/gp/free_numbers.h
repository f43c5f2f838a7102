/* A few numbers that a suggestion may change, in a large space that declares nothing; all others
 * keep the places of a good trial.
 *
 * Where few of thirty numbers matter, a suggestion that changes all of them gains most, as the
 * models see it, by those that hardly matter: their uncertainties and small gains add up, and
 * trials repeat the same places of those that do matter. So some suggestions search a subspace,
 * drawn by the length scales: the shorter that of a number, the more probably it is free. After C.
 * Li et al., "High dimensional Bayesian optimization using dropout", IJCAI 2017, whose draws are
 * uniform. */
#ifndef ASSAY_SEARCH_GP_FREE_NUMBERS_H
#define ASSAY_SEARCH_GP_FREE_NUMBERS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "search/regression/training_set.h"

#define FREE_NUMBERS 3

struct free_numbers {
    size_t n; /* 0: all are free */
    size_t params[FREE_NUMBERS];
};

/* The free numbers of the suggestion of this number; all of them in a space where that does not
 * help, and for half of the suggestions (decision 4040).
 *   theta      borrowed: hyperparameters of the last fit of the smooth model, as its state has
 *              them; where it has none, all numbers are equally probable
 *   in_branch  the suggestion is for a branch, where other numbers may matter: the draw is flatter
 * O(d). */
struct free_numbers free_numbers_draw(const struct training_set *s, const json_t *theta,
                                      uint64_t number, bool in_branch);

/* The region that this leaves around a trial: lower and upper are [enc->n] places of numeric
 * parameters. */
void free_numbers_box(const struct free_numbers *f, const struct training_set *s, size_t centre,
                      double *lower, double *upper);

#endif
