/* Trials for people: lists, details, series, logs, files, cancel.
 *
 * Every function: AS_E_NOT_FOUND if there is no such sweep or trial, AS_E_UNAVAILABLE when the
 * database is away, AS_E_NOMEM. Rows live in `a`. */
#ifndef ASSAY_SCHEDULER_SERVICES_TRIALS_H
#define ASSAY_SCHEDULER_SERVICES_TRIALS_H

#include <jansson.h>

#include "base/arena.h"
#include "base/status.h"
#include "scheduler/assign/asks.h"
#include "scheduler/lifecycle/idempotency.h"
#include "scheduler/rows/file_row.h"
#include "scheduler/rows/idem_row.h"
#include "scheduler/rows/series_row.h"
#include "scheduler/rows/trial_row.h"
#include "scheduler/rows/usage_row.h"
#include "scheduler/store/store.h"

struct trial_orders;

/* Trials without a value of the sort key come last, in both directions. `orders`: unless they are
 * sorted by number. AS_E_INVAL: the cursor, a cursor of another order, or there is no such
 * parameter to sort by. */
AS_MUST_CHECK as_status trial_list(struct store *db, struct trial_orders *orders, struct arena *a,
                                   const char *sweep, const struct trial_query *q,
                                   struct trial_page *ret, struct as_err *err);

/* The `top` (1..1000) best completed, feasible trials by the first metric, best first, and of the
 * first page what a model expects of the first of them, where values are noisy. next_cursor is NULL
 * unless they pass PAGE_BYTES_MAX: then the page has fewer, and the cursor continues. */
AS_MUST_CHECK as_status trial_best(struct store *db, struct arena *a, const char *sweep,
                                   int64_t top, const char *cursor, struct trial_page *ret,
                                   struct as_err *err);

AS_MUST_CHECK as_status trial_get(struct store *db, struct arena *a, const char *sweep,
                                  int64_t number, struct trial_detail *ret, struct as_err *err);

/* At most SERIES_POINTS_MAX points, by metric and step. `metric` NULL: all metrics. `cursor` NULL:
 * from the first point. AS_E_INVAL: no metric can have that name; the cursor. */
AS_MUST_CHECK as_status trial_series(struct store *db, struct arena *a, const char *sweep,
                                     int64_t number, const char *metric, const char *cursor,
                                     struct series_list *ret, struct as_err *err);

/* `attempt` 0: the latest one with output. AS_E_NOT_FOUND: also if that attempt does not exist. */
AS_MUST_CHECK as_status trial_log(struct store *db, struct arena *a, const char *sweep,
                                  int64_t number, int64_t attempt, struct log_row *ret,
                                  struct as_err *err);

/* What an attempt used of its machine, or each of its ranks. `attempt` 0: the latest one of which
 * there is anything. AS_E_NOT_FOUND: also if that attempt does not exist. */
AS_MUST_CHECK as_status trial_usage(struct store *db, struct arena *a, const char *sweep,
                                    int64_t number, int64_t attempt, struct usage_list *ret,
                                    struct as_err *err);

/* The files of one kind ("artifact", "checkpoint", "log") that a trial stored. */
AS_MUST_CHECK as_status trial_files(struct store *db, struct arena *a, const char *sweep,
                                    int64_t number, const char *kind, struct file_list *ret,
                                    struct as_err *err);

/* Add a trial. body: {"params": {…}, "metrics": {name: number}?, "state": "completed" | "failed"?,
 * "reason": text?}. Without a result it is enqueued: it runs before the next suggestion and counts
 * towards max_trials. With metrics, or as failed, it is a known result: it has ended, informs the
 * search and does not count towards max_trials (planned grows by one).
 *   body  borrowed; checked completely against the sweep's space, its constraints and its metrics
 *   idem  NULL if the request has no key. With a key, one transaction creates the trial and stores
 *         the key: a repeat returns the first trial
 * AS_E_INVAL with the pointer of the field (/params/lr, /metrics/loss). AS_E_CONFLICT: a grid sweep
 * accepts none; the sweep has ended; max_trials leaves no room for another; the key was used with
 * another body. */
AS_MUST_CHECK as_status trial_add(struct store *db, struct arena *a, const char *sweep,
                                  const json_t *body, const struct idem_key *idem,
                                  struct trial_row *ret, struct as_err *err);

/* Enqueue a trial with the parameters req->params, and hand it out to the client, in one step. A
 * client that holds a trial gets that one, so that the request may be repeated. *ret has no rows
 * while the sweep is paused or max_concurrent_trials run: try again. Errors as those of trial_add()
 * (the pointers begin with /params) and of ask_trials(). */
AS_MUST_CHECK as_status trial_begin(struct store *db, struct suggester *sg, struct arena *a,
                                    const struct ask_request *req, struct suggestion_list *ret,
                                    struct as_err *err);

/* What a list of added trials became. */
struct trials_added {
    const char *sweep; /* its id */
    int64_t *numbers;  /* of each row */
    size_t n, n_added; /* n_added: without those whose keys were used before */
};

/* Add many trials, all or none: a list of 1 to 5000 bodies as above, in the order of their numbers.
 * A row may have a `key` besides, then all have one: a row whose key was used with the same row
 * within 24 hours is not added again.
 *   scope  of the keys: the principal and the path
 * Errors: as above, with the pointer of the row (/17/params/lr). */
AS_MUST_CHECK as_status trials_add(struct store *db, struct arena *a, const char *sweep,
                                   const json_t *list, const struct idem_key *idem,
                                   const char *scope, struct trials_added *ret, struct as_err *err);

/* End a trial that is queued or running. It is allowed to cancel a cancelled trial. AS_E_CONFLICT:
 * it ended in another way. */
AS_MUST_CHECK as_status trial_cancel(struct store *db, struct arena *a, const char *sweep,
                                     int64_t number, struct trial_row *ret, struct as_err *err);

#endif
