/* The earlier ends of a trial that was retried, and what a suggestion saw of such a trial.
 *
 * Ends and retries of a sweep's trials share one order, finish_seq: 1, 2, …. A suggestion saw the
 * ends and retries up to a number of it (`seen`). So what it saw of a trial follows from three
 * things: the trial's latest end, its earlier ends with the retries that took them back, and
 * `seen`. The service and a replay both ask here. */
#ifndef ASSAY_SEARCH_TRIAL_PAST_H
#define ASSAY_SEARCH_TRIAL_PAST_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

/* An end that a retry took back. */
struct past_end {
    int64_t finish_seq, retry_seq; /* finish_seq < retry_seq */
    bool is_cancelled;             /* else it failed */
};

typedef enum trial_view {
    TRIAL_SEEN_PENDING,
    TRIAL_SEEN_ENDED, /* with its latest end */
    TRIAL_SEEN_FAILED,
    TRIAL_SEEN_CANCELLED
} trial_view;

/* What a suggestion saw that knew the order up to `seen`.
 *   ends        in ascending order, n may be 0
 *   finish_seq  of the latest end; 0: the trial has not ended since */
trial_view trial_past_view(const struct past_end *ends, size_t n, int64_t finish_seq, int64_t seen);

/* Read the field `retries` of a Trial of the API: null, or a list of objects with state ("failed"
 * or "cancelled"), finish_seq and retry_seq.
 *   pointer  of the field, for errors
 *   ret      owned by the caller (free); NULL when there is none
 * AS_E_INVAL, AS_E_NOMEM. */
AS_MUST_CHECK as_status trial_past_read(const json_t *retries, const char *pointer,
                                        struct past_end **ret, size_t *ret_n, struct as_err *err);

#endif
