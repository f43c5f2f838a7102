/* Drawing a configuration without looking at results: random and Sobol.
 *
 * Pure in its inputs: (space, kind, seed, index) fix the answer, in any order of calls, on any
 * server. All randomness is Philox keyed by the sweep's seed, with the counter's high word `index
 * << 8 | purpose` (search/problem/random_stream.h). Not promised: equal last bits of a value on a
 * log scale between versions of the C library's exp and log.
 *
 * A configuration that the space does not allow is drawn again, keyed by (index, number of the
 * draw): random draws from a later place of the same stream, Sobol takes the same point of another
 * scrambling. Spaces without constraints draw once. A space is *narrow* if SAMPLER_CHECK_DRAWS
 * random draws, the same for every sweep, find nothing that is allowed. There a configuration is
 * drawn from the list of all if the space is finite, and else by a walk (feasible.h).
 *
 * Parameters with a prior are drawn from it in 10 of 11 + index draws (search/prior/prior_dist.h).
 *
 * The index counts the method's own suggestions from 0, without holes: index t of a Sobol sweep is
 * point t (sobol.h). */
#ifndef ASSAY_SEARCH_SAMPLING_SAMPLER_H
#define ASSAY_SEARCH_SAMPLING_SAMPLER_H

#include <stdint.h>

#include "base/status.h"
#include "search/problem/method.h"
#include "search/space/config.h"
#include "search/space/space.h"

#define SAMPLER_MAX_DRAWS 100000
#define SAMPLER_CHECK_DRAWS 1000

typedef enum sampler_kind { SAMPLER_RANDOM, SAMPLER_SOBOL } sampler_kind;

/* The configuration of that index.
 *   ret_config   owned by the caller, config_free()
 *   ret_redraws  how many draws were not allowed; may be NULL
 * AS_E_UNSUPPORTED  no allowed configuration was found; pointer and message name the constraint
 * AS_E_NOMEM
 * O(parameters) for each draw. Safe from any thread. */
AS_MUST_CHECK as_status sampler_draw(const struct space *s, sampler_kind kind, uint64_t seed,
                                     uint64_t index, struct config **ret_config,
                                     uint64_t *ret_redraws, struct as_err *err);

/* Does a search of this space find allowed configurations? The answer is the same for every seed.
 * Returns at once if there are no constraints. AS_E_UNSUPPORTED as above; AS_E_NOMEM. */
AS_MUST_CHECK as_status sampler_check(const struct space *s, struct as_err *err);

/* Is the space narrow? AS_E_NOMEM. */
AS_MUST_CHECK as_status sampler_is_narrow(const struct space *s, bool *ret, struct as_err *err);

/* `check` and `sample` of methods without a list: sampler_check(), and Sobol point 0. */
AS_MUST_CHECK as_status sampler_method_check(const struct search_spec *spec, struct as_err *err);
AS_MUST_CHECK as_status sampler_method_sample(const struct search_spec *spec, struct config **ret,
                                              struct as_err *err);

/* The methods `random` and `sobol`. Their reasons: {"method": "random"} and {"method": "sobol",
 * "point": 5}; with "redraws": n when n draws were not allowed. */
extern const struct search_method search_random, search_sobol;

#endif
