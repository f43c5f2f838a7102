/* Trials that ended and are tried again because a user asks for it.
 *
 * A retried trial keeps its number, its parameters and its seed, and goes back into the queue with
 * all its restarts. The search sees the earlier end until the retry, and a running trial from then
 * on; both have a place in the order of ends, so that the sweep can be replayed. A sweep that has
 * ended runs on.
 *
 * Every function: AS_E_NOT_FOUND if there is no such sweep or trial. AS_E_CONFLICT: the trial is in
 * another state, or was added with its result; or the sweep has ended, and its limits (or a user
 * who cancelled it) keep it from running on. AS_E_UNAVAILABLE, AS_E_NOMEM. Rows live in `a`.
 * `by`: the id of the user's token; NULL: none. */
#ifndef ASSAY_SCHEDULER_SERVICES_TRIAL_RETRY_H
#define ASSAY_SCHEDULER_SERVICES_TRIAL_RETRY_H

#include "base/arena.h"
#include "base/status.h"
#include "scheduler/rows/sweep_row.h"
#include "scheduler/rows/trial_row.h"
#include "scheduler/store/store.h"

#define RETRY_MAX 10000 /* trials of one request */

/* Retry one trial that failed or was cancelled. */
AS_MUST_CHECK as_status trial_retry(struct store *db, struct arena *a, const char *sweep,
                                    int64_t number, const char *by, struct trial_row *ret,
                                    struct as_err *err);

struct retry_request {
    trial_state state; /* FAILED or CANCELLED: all trials in this state, at most RETRY_MAX */
};

struct retried {
    int64_t *numbers; /* ascending */
    size_t n;
    struct sweep_row sweep; /* as it is now */
};

/* Retry all trials in one state, or none. No such trial: nothing happens. */
AS_MUST_CHECK as_status trials_retry(struct store *db, struct arena *a, const char *sweep,
                                     const struct retry_request *req, const char *by,
                                     struct retried *ret, struct as_err *err);

#endif
