/* Expected improvement of the hypervolume, in logarithms, with gradients.
 *
 * All objectives are minimised in the models' units and predicted by independent normal
 * distributions. The region that is not yet dominated, up to the reference point, is cut into
 * disjoint boxes [l, u]. With H(a) = E max(0, a - y), and H(-infinity) = 0,
 *
 *   EHVI = sum over boxes of  prod over objectives of  H_k(u_k) - H_k(l_k)
 *
 * is exact for any number of objectives (M. Emmerich, K. Yang, A. Deutz, "Infill criteria for
 * multiobjective Bayesian optimization", 2020). The boxes come from sweeps: two objectives leave
 * n + 1 strips; along a third the strips open and close, at most 2n + 1 boxes (K. Yang et al.,
 * "Efficient computation of expected hypervolume improvement using box decomposition algorithms",
 * J. Global Optim. 75, 2019); along a fourth those boxes do. All sums are computed as logarithms,
 * so that value and gradient are useful even where the improvement underflows (S. Ament et al.,
 * "Unexpected improvements to expected improvement", NeurIPS 2023). */
#ifndef ASSAY_SEARCH_GP_EHVI_H
#define ASSAY_SEARCH_GP_EHVI_H

#include <stddef.h>

#include "base/mem.h"
#include "base/status.h"

/* A front with more points than this is thinned, so that a value stays cheap. */
#define GP_EHVI_MAX_FRONT 512 /* two and three objectives */
#define GP_EHVI_MAX_FRONT_4 128

struct gp_ehvi;

/* Prepare the boxes of n observed points. Points that are dominated, or not strictly better than
 * the reference in every objective, are skipped. A front larger than GP_EHVI_MAX_FRONT is thinned
 * to that many points that lie far apart, including the best of each objective. Improvement between
 * neighbours is then overestimated by less than their distance.
 *   costs      n x m, row-major, minimised; borrowed
 *   reference  [m], for instance gp_pareto_reference of the same costs; borrowed
 *   ret        owned by the caller, gp_ehvi_free()
 * AS_E_INVAL   m is not 2..4, or an input is not finite
 * AS_E_NOMEM */
AS_MUST_CHECK as_status gp_ehvi_create(const double *costs, size_t n, size_t m,
                                       const double *reference, struct gp_ehvi **ret,
                                       struct as_err *err);
void gp_ehvi_free(struct gp_ehvi *e);
AS_DEFINE_FREEP(struct gp_ehvi, gp_ehvi_free)

size_t gp_ehvi_front(const struct gp_ehvi *e); /* points that the boxes stand on */
size_t gp_ehvi_boxes(const struct gp_ehvi *e);
size_t gp_ehvi_objectives(const struct gp_ehvi *e);

/* ln EHVI at a point whose objectives are normal with means mu [m] and deviations sigma [m] > 0.
 *   dmu, dsigma  [m]: the derivatives of the logarithm; both NULL when not wanted
 * Finite for finite input. Allocates nothing; uses scratch space in `e`, so one thread at a time
 * (distinct ones may use distinct objects). O(boxes) exponentials. */
double gp_ehvi_log(struct gp_ehvi *e, const double *mu, const double *sigma, double *dmu,
                   double *dsigma);

#endif
