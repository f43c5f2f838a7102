/* Ask and tell: clients that run trials themselves.
 *
 * A client is a name of its own choosing, within a sweep; it is no runner and has no slots. What it
 * asked for runs as an attempt like any other: limits hold, the attempt's number is the fence. Its
 * lease is for all that it holds in the sweep: asking, measurements and heartbeats extend it; when
 * it ends, its trials go back to the queue, a restart burnt (scheduler/lifecycle/reaper.h). An end
 * that arrives later still counts while no other attempt has begun. Every operation may be
 * repeated.
 *
 * Every function: AS_E_NOT_FOUND (no such sweep or trial), AS_E_UNAVAILABLE, AS_E_NOMEM. */
#ifndef ASSAY_SCHEDULER_ASSIGN_ASKS_H
#define ASSAY_SCHEDULER_ASSIGN_ASKS_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/status.h"
#include "scheduler/lifecycle/attempts.h"
#include "scheduler/rows/series_row.h"
#include "scheduler/rows/trial_row.h"
#include "scheduler/store/store.h"
#include "scheduler/suggester/suggester.h"

#define ASK_MAX_COUNT 64
#define ASK_LEASE_MIN_MS 1000
#define ASK_LEASE_MAX_MS (INT64_C(7) * 86400 * 1000)
#define ASK_LEASE_DEFAULT_MS 600000

struct ask_request {
    const char *sweep;  /* id */
    const char *client; /* 1..64 characters */
    int64_t count;      /* 1..ASK_MAX_COUNT */
    int64_t lease_ms;   /* ASK_LEASE_MIN_MS..ASK_LEASE_MAX_MS */
    int64_t arrived_ns; /* as in claims.h: the same each time the request is tried again; 0: now */
    bool is_last;       /* it will not be tried again: hand out what there is */
};

/* A trial handed to a client that runs it itself. */
struct suggestion_row {
    int64_t number, attempt, seed;
    const char *params;    /* JSON */
    const char **inactive; /* names of parameters that are not active here */
    size_t n_inactive;
    trial_origin origin;
    const char *reason; /* JSON: trial_row.suggestion */
    int64_t lease_until_ms;
};

struct suggestion_list {
    struct suggestion_row *rows; /* by number */
    size_t n;
    sweep_state state; /* of the sweep */
    bool done;         /* the sweep is over: there will be no more */
    bool is_preparing; /* not all of them could be had because suggestions are being computed */
    int64_t sweep_key; /* what asks_pending() wants to know */
};

/* Hand out up to `count` trials: first those that the client holds unfinished, then what is queued,
 * then new suggestions. Never waits: rows may be fewer than asked for, or none. While suggestions
 * are being computed (is_preparing) nothing new is handed out until all of them are there or
 * `is_last`: a batch comes whole. Any sweep may be asked, also one that runners work on.
 * AS_E_INVAL with the pointer of the field: client, count, lease_ms. What went wrong with computing
 * a suggestion is an error here (AS_E_NOMEM, AS_E_UNSUPPORTED, …). `sg` NULL: computed here, cold.
 */
AS_MUST_CHECK as_status ask_trials(struct store *db, struct suggester *sg, struct arena *a,
                                   const struct ask_request *req, struct suggestion_list *ret,
                                   struct as_err *err);

/* Which of these sweeps (keys from suggestion_list, each once) are worth another try of an ask that
 * waits: there is something to hand out, or the sweep has ended or was deleted. One cheap query
 * without locks. ret_worth: n booleans. `sg` may be NULL. AS_E_UNAVAILABLE. */
AS_MUST_CHECK as_status asks_pending(struct store *db, struct suggester *sg, const int64_t *sweeps,
                                     size_t n, bool *ret_worth, struct as_err *err);

/* What a client tells about. */
struct ask_ref {
    const char *sweep; /* id */
    int64_t number;
    const char *client;
    int64_t attempt; /* that it holds; 0: the latest that it has held of this trial */
};

/* As attempt_measure(); extends the client's lease. AS_E_STALE: the client does not hold it. */
AS_MUST_CHECK as_status ask_measure(struct store *db, const struct ask_ref *ref,
                                    const struct measurement *points, size_t n,
                                    int64_t *ret_recorded, struct as_err *err);

/* Extend the client's lease on all that it holds in the sweep: by lease_ms, or 0: as when it asked.
 * AS_E_STALE: it does not hold this trial (its lease ended, or the trial did: the message says).
 * AS_E_INVAL: lease_ms. */
AS_MUST_CHECK as_status ask_heartbeat(struct store *db, const struct ask_ref *ref, int64_t lease_ms,
                                      int64_t *ret_lease_until_ms, struct as_err *err);

/* As attempt_complete(), with the final metrics. AS_E_INVAL with /outcome: only OUTCOME_COMPLETED,
 * OUTCOME_FAILED and OUTCOME_RELEASED (back into the queue, no restart burnt) are a client's. */
AS_MUST_CHECK as_status ask_complete(struct store *db, struct arena *a, const struct ask_ref *ref,
                                     const struct completion *c, struct trial_row *ret,
                                     struct as_err *err);

#endif
