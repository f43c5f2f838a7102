/* The time at which the job of a runner ends, and how long before it the runner begins to leave.
 * Pure. */
#ifndef ASSAY_TRIAL_RUNNER_PROCESS_TIME_LIMIT_H
#define ASSAY_TRIAL_RUNNER_PROCESS_TIME_LIMIT_H

#include <stdint.h>

#include "base/status.h"

/* Milliseconds from now until a time: a duration from now ("230m"), a time in UTC
 * ("2026-11-27T23:00:00Z"), or Unix seconds after "@" ("@1795820400", as Slurm has it). A time
 * that has passed is 0. Times are read against now_wall_ms once: a clock that is set later changes
 * nothing. AS_E_INVAL: it is none of them. */
AS_MUST_CHECK as_status time_limit_parse(const char *text, int64_t now_wall_ms,
                                         int64_t *ret_left_ms, struct as_err *err);

#define TIME_LIMIT_DELIVERY_MS 15000 /* for what trials leave, and for the runner's own end */

/* How long before its end a runner that has whole_ms in all begins to leave: the longest grace
 * period of its trials, and time to deliver what they leave. At most half of whole_ms, so that a
 * short job also does some work. */
int64_t time_limit_notice_ms(int64_t whole_ms, int64_t grace_ms);

#endif
