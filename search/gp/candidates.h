/* Raw points for an acquisition: Sobol points over the region, and moves of the best trials. */
#ifndef ASSAY_SEARCH_GP_CANDIDATES_H
#define ASSAY_SEARCH_GP_CANDIDATES_H

#include <stddef.h>
#include <stdint.h>

#include "search/gp/branch.h"
#include "search/regression/training_set.h"

/* Raw candidates of a suggestion: from the whole space, and from moves of the best trials. More
 * starts of the search that follows did not help (bench/notes/gp-tuning.md: 16 instead of 4). */
#define CANDIDATES_GLOBAL 256
#define CANDIDATES_LOCAL 64
#define CANDIDATES_TOP 5 /* local candidates are moves of this many trials */
#define CANDIDATES_MAX (CANDIDATES_GLOBAL + CANDIDATES_LOCAL)

/* Where candidates may lie: in a box around a trial, and in a branch. */
struct gp_region {
    const double *lower, *upper; /* [enc->n] places of numeric parameters; NULL: everywhere */
    const double *centre;        /* [enc->n]; NULL: everywhere */
    const struct branch *branch; /* NULL: all */
};

/* Fill ret_points (CANDIDATES_MAX x enc->n, snapped) with allowed, untried points, global ones
 * first. *ret_n is their number, *ret_global the number of global ones. There may be none. Around a
 * centre in many dimensions, global points keep the centre's value in most parameters (TuRBO's mask
 * of 20 / d). `number` is the suggestion's number and keys the draws. O(points x (d + trials)).
 * In a narrow space (sampler.h) both kinds come from walks over what the constraints allow.
 * AS_E_NOMEM. */
AS_MUST_CHECK as_status gp_candidates(const struct training_set *s, const struct gp_region *region,
                                      uint64_t number, double *ret_points, size_t *ret_n,
                                      size_t *ret_global, struct as_err *err);

/* Trial indices, best first: feasible ones by cost (several objectives: those on the front first),
 * then completed ones by how far they are from feasible. At most `max`; returns how many. Trials at
 * rungs are not among them; candidates of gp_candidates() may start from these too. */
size_t gp_candidates_top(const struct training_set *s, size_t max, size_t *ret);

#endif
