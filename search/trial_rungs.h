/* The rung results of a trial, and what a suggestion saw of them.
 *
 * Rung results and promotions share the order of ends and retries (trial_past.h), so a suggestion
 * that knew the order up to `seen` saw of a trial that had not ended the latest result up to there.
 * The trial was stopped there (paused or pruned) unless it was to go on, or its promotion was seen
 * too. The service and a replay both ask here. */
#ifndef ASSAY_SEARCH_TRIAL_RUNGS_H
#define ASSAY_SEARCH_TRIAL_RUNGS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "search/problem/problem.h"

/* Give `o` the rungs that were seen (a view of `rungs`), and a pending trial that waits at one the
 * state OBSERVED_PARTIAL.
 *   rungs  in ascending order of seq; n may be 0 */
void trial_rungs_view(const struct trial_rung *rungs, size_t n, int64_t seen,
                      struct observation *o);

/* Read the field `rungs` of a Trial of the API: null or a list.
 *   metric        the objective of `value`, for a result without `values`
 *   pointer       of the field, for errors
 *   ret           owned by the caller (free); NULL when there is none
 * AS_E_INVAL, AS_E_NOMEM. */
AS_MUST_CHECK as_status trial_rungs_read(const json_t *rungs, size_t n_objectives, size_t metric,
                                         const char *pointer, struct trial_rung **ret,
                                         size_t *ret_n, struct as_err *err);

#endif
