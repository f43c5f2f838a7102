/* What trials of one configuration say of the noise. Two values of one configuration that differ
 * are noise, whatever else is known. If all values that were measured twice are equal, they are
 * exact. */
#ifndef ASSAY_SEARCH_REGRESSION_REPEATS_H
#define ASSAY_SEARCH_REGRESSION_REPEATS_H

#include "base/status.h"
#include "search/problem/problem.h"

#include <stddef.h>

typedef enum noise_verdict {
    NOISE_UNKNOWN, /* no configuration was measured twice */
    NOISE_NONE,    /* the document says so, or every repeat gave the same value */
    NOISE_SEEN     /* a repeat gave another one */
} noise_verdict;

struct repeats {
    noise_verdict noise;
    size_t n; /* trials of any state that the method suggested though there was one before */
};

/* Judge by the first objective of trials that completed with a finite value. Values that are equal
 * count if the method suggested the later trial: people may add the results of one measurement
 * twice. O(n (d + log n)). AS_E_NOMEM. */
AS_MUST_CHECK as_status repeats_judge(const struct search_spec *spec,
                                      const struct observation *trials, size_t n,
                                      struct repeats *ret, struct as_err *err);

#endif
