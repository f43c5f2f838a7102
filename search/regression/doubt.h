/* Results that stand apart from all others (apart.h), and whether they are faults of the
 * measurement.
 *
 * A very good one is in doubt until its configuration was measured again. If the second value
 * stands apart, too, the first is true. If it does not, the first one counts as none, and so do all
 * others that stand at least half as far apart and were not confirmed. Very bad ones that come
 * anywhere, and not in one region, count as none; in one region they say where not to go. */
#ifndef ASSAY_SEARCH_REGRESSION_DOUBT_H
#define ASSAY_SEARCH_REGRESSION_DOUBT_H

#include "base/status.h"
#include "search/regression/training_set.h"

/* Mark trials of `s` as failed that count as none, and set s->in_doubt. Once for a set, when each
 * trial has its result. One objective and no early stopping; nothing is in doubt where the document
 * says that values are exact. O(n log n), and O(k n d) for k values that stand apart. AS_E_NOMEM. */
AS_MUST_CHECK as_status doubt_judge(struct training_set *s, struct as_err *err);

#endif
