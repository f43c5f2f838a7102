/* The best trial of a sweep whose values are noisy.
 *
 * The lowest of many noisy values is a lucky one: the more trials, the luckier, and where the noise
 * is large a bad configuration looks best. The incumbent is the trial whose *mean* is best by a
 * model of all trials, in which each place has noise of its own (regression/local_noise.h). It is
 * the trial of the best value where no configuration was measured twice with different values, and
 * wherever the noise does not explain that another one is worse. */
#ifndef ASSAY_SEARCH_INCUMBENT_H
#define ASSAY_SEARCH_INCUMBENT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "search/problem/problem.h"

struct incumbent {
    bool is_known;     /* false: several objectives, or no trial is feasible; the rest is 0 */
    uint64_t number;   /* of the trial */
    double value;      /* its value as told */
    bool is_by_model;  /* false: values count as told; the rest is 0 */
    double mean;       /* what the model expects of it without noise, in the metric's unit */
    double deviation;  /* of that mean */
    double noise;      /* the deviation of single values about the mean, at its place */
    uint64_t luckiest; /* the trial of the best value as told */
};

/* spec and history are borrowed; only completed trials take part. A pure function. O(n^3) for n <=
 * 640 rows, as a fit; five fits where there is noise.
 *   ret  untouched on failure
 * AS_E_NOMEM. A model that cannot be fitted is no error: values count as told. */
AS_MUST_CHECK as_status incumbent_find(const struct search_spec *spec,
                                       const struct history *history, struct incumbent *ret,
                                       struct as_err *err);

#endif
