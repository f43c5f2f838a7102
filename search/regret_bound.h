/* An upper bound of what a sweep can still gain.
 *
 * The model says within which bounds the noise-free value of a configuration lies, with high
 * probability: mu - b sigma to mu + b sigma. The best of the trials is at most
 *   min over completed feasible trials of (mu + b sigma),
 * the best of the space at least
 *   min over all configurations of (mu - b sigma),
 * and the difference bounds the regret of the trials (A. Makarova et al., "Automatic termination
 * for hyperparameter optimization", AutoML 2022, eq. 3; for a metric to be minimised). b^2 is
 *   2/5 ln(d t^2 pi^2 / (6 * 0.1))
 * for t completed trials in d parameters (N. Srinivas et al., 2010, divided by 5 as there). Bounds
 * of outcomes and failures are not in the minimum over the space, which makes the bound larger, and
 * so keeps it one.
 *
 * It is as good as the model: with few trials this may be too certain. */
#ifndef ASSAY_SEARCH_REGRET_BOUND_H
#define ASSAY_SEARCH_REGRET_BOUND_H

#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"
#include "search/problem/problem.h"

/* Of so many completed trials, and one more for each parameter, a bound says something. */
#define REGRET_BOUND_TRIALS 10

/* The counts of completed trials after which a running sweep's bound is computed and kept: 4, 5, …,
 * then each larger by a sixteenth, so that there are 29 up to 32 trials, 89 up to 1,000 and 127 up
 * to 10,000. Returns the smallest of them above n. */
size_t regret_bound_next(size_t n);
/* The largest of them up to n; 0: there is none. */
size_t regret_bound_latest(size_t n);
/* A sweep that has no limit of its bound may leave some of them out when more trials than this have
 * completed: those that are due already, because its trials complete faster than its bounds are
 * computed. The next one it has is of this count or above. */
#define REGRET_BOUND_EACH 32
/* Of the counts at which bounds were kept, may `count` follow `before`? 0: none was before it. */
bool regret_bound_follows(size_t before, size_t count);

struct regret_bound {
    bool is_known;  /* false: several objectives, or no model; the rest is 0 */
    bool is_enough; /* REGRET_BOUND_TRIALS */
    double bound;   /* >= 0, in the metric's unit */
    double
        relative; /* the share of it in what the trials span: median - best; INFINITY if nothing */
};

/* spec and history are borrowed; pending trials are not used, trials at rungs are where the model
 * takes them. A pure function: draws are keyed by the seed and the number of trials. O(n^3) for n
 * <= 640 rows, as a fit.
 *   ret  untouched on failure
 * AS_E_NOMEM. A model that cannot be fitted is no error (is_known). */
AS_MUST_CHECK as_status regret_bound_compute(const struct search_spec *spec,
                                             const struct history *history,
                                             struct regret_bound *ret, struct as_err *err);

#endif
