/* Tree-structured Parzen estimators: the method `tpe`.
 *
 * The trials are cut into the best ones, at most TPE_GOOD_MOST, and the others. Each part is a
 * mixture of kernels, one around each trial, and one that is flat. The suggestion is, of
 * TPE_CANDIDATES draws from the mixture of the best, the one where that mixture is largest in
 * proportion to that of the others, which is where expected improvement is largest (J. Bergstra et
 * al., "Algorithms for hyper-parameter optimization", 2011).
 *
 * A kernel is a product over the parameters, so that what goes together stays together
 * ("multivariate": S. Falkner et al., "BOHB", 2018; S. Watanabe, "Tree-structured Parzen estimator:
 * understanding its algorithm components", 2023). A parameter that is not active in a kernel's
 * trial is flat in it; only the parameters that are active in a draw count in its density. Trials
 * that failed or are under way are among the others, so that what runs is not suggested twice. */
#ifndef ASSAY_SEARCH_TPE_TPE_H
#define ASSAY_SEARCH_TPE_TPE_H

#include "search/problem/method.h"

#define TPE_GOOD_MOST 25
#define TPE_CANDIDATES 48

/* The reason: {"method": "tpe", "observed", "pending", "failed", "phase": "initial" (with "point")
 * or "search", "good": trials of the first mixture, "value": the logarithm of the ratio}. */
extern const struct search_method search_tpe;

#endif
