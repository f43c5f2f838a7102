/* How the best trials differ from all trials, parameter by parameter.
 *
 * For each parameter the distribution of its values among the best tenth is compared with that
 * among all: Pearson's divergence, integral (p_top / p_all - 1)^2 p_all (S. Watanabe, A. Bansal, F.
 * Hutter, "PED-ANOVA: efficiently quantifying hyperparameter importance in arbitrary subspaces",
 * IJCAI 2023). Real places are smoothed on 50 cells by a normal kernel of Scott's width; choices
 * are counted. It describes the trials, not the space. There is no model and no measure of
 * interactions. A few top trials give a noisy divergence, so the shares are computed from the
 * divergence beyond the average of equally many trials drawn at random. */
#ifndef ASSAY_SEARCH_IMPORTANCE_PED_ANOVA_H
#define ASSAY_SEARCH_IMPORTANCE_PED_ANOVA_H

#include <stddef.h>

#include "base/status.h"
#include "search/space/encoding.h"

/*   points   n x e->n, snapped (encoding.h); borrowed
 *   costs    n finite values, small is good; borrowed
 *   ret      [e->n]: shares that add up to 1; all 0 if the best trials do not differ. For a
 *            conditional parameter only the trials count in which it is active
 * AS_E_NOMEM. O(e->n (n + 50^2) + n log n). */
AS_MUST_CHECK as_status ped_anova(const struct encoding *e, const double *points,
                                  const double *costs, size_t n, double *ret, struct as_err *err);

#endif
