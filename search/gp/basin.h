/* Basins beside that of the best trial, which the sweep has seen and hardly knows.
 *
 * The head of a basin is a trial that no better one is near to. A sweep that crowds in one basin
 * descends in the others, the one with the best head first, until so many trials lie near a head
 * that its basin is known. After M. Preuss, "Niching the CMA-ES via nearest-better clustering",
 * GECCO 2010 (workshop), whose heads are the trials that are far from their nearest better one. */
#ifndef ASSAY_SEARCH_GP_BASIN_H
#define ASSAY_SEARCH_GP_BASIN_H

#include <stdbool.h>
#include <stddef.h>

#include "search/regression/training_set.h"

/* The best head, without the best trial, of a basin that is not known yet; a trial's index. Pending
 * and failed trials count as near, and are no heads. False: there is none, or no parameter is
 * continuous, so that a box may have no room. One objective.
 * O(d (n + 256)) for each of the 256 best trials at most. */
bool basin_choose(const struct training_set *s, size_t *ret_head);

/* Where a head's basin is searched: lower and upper are [enc->n] places of numeric parameters. */
void basin_box(const struct training_set *s, size_t head, double *lower, double *upper);

#endif
