/* Ask and tell: clients that run trials themselves.
 *
 * A client chooses its own name, within a sweep. While it has a lease, the name belongs to the
 * token that it asked with, and what it got may only be told with that token. It is no runner and
 * has no slots. A trial that it
 * gets runs as an attempt like any other: limits hold, and the attempt's number is the fence. A
 * client has one lease for all that it holds in the sweep. Asking, measurements and heartbeats
 * extend the lease. When it ends, the trials go back to the queue and use a restart
 * (scheduler/lifecycle/reaper.h). A late end still counts while no other attempt has begun. Every
 * operation may be repeated.
 *
 * Every function: AS_E_NOT_FOUND (no such sweep or trial), AS_E_UNAVAILABLE, AS_E_NOMEM. */
#ifndef ASSAY_SCHEDULER_ASSIGN_ASKS_H
#define ASSAY_SCHEDULER_ASSIGN_ASKS_H

#include <jansson.h>
#include <stdbool.h>

#include "base/arena.h"
#include "base/status.h"
#include "scheduler/lifecycle/attempts.h"
#include "scheduler/rows/series_row.h"
#include "scheduler/rows/trial_row.h"
#include "scheduler/store/store.h"
#include "scheduler/store/trial_store.h"
#include "scheduler/suggester/suggester.h"

#define ASK_MAX_COUNT 64
#define ASK_LEASE_MIN_MS 1000
#define ASK_LEASE_MAX_MS (INT64_C(7) * 86400 * 1000)
#define ASK_LEASE_DEFAULT_MS 600000

#define CLIENT_NAME_MAX 64

/* Check the name of a client. A client may be any program, so its name has only characters that
 * pass through logs, URLs and shells unchanged: 1 to CLIENT_NAME_MAX letters, digits and . _ : @ -,
 * a letter or digit first. AS_E_INVAL at /client. */
AS_MUST_CHECK as_status ask_check_client(const char *name, struct as_err *err);

struct ask_request {
    const char *sweep;  /* id */
    const char *client; /* as ask_check_client() has it */
    const char *token;  /* id of the token that asks; NULL: the client is bound to none */
    int64_t count;      /* 1..ASK_MAX_COUNT */
    int64_t lease_ms;   /* ASK_LEASE_MIN_MS..ASK_LEASE_MAX_MS */
    int64_t arrived_ns; /* see claims.h: the same each time the request is tried again; 0: now */
    bool is_last;       /* it will not be tried again: hand out what there is */
    json_t *params;     /* of a trial that the client begins itself: trial_begin()
                           (services/trials.h) reads them; NULL: none, see ask_trials() */
};

/* A trial handed to a client that runs it itself. */
struct suggestion_row {
    int64_t number, attempt, seed;
    const char *params;    /* JSON */
    const char **inactive; /* names of parameters that are inactive in this trial */
    size_t n_inactive;
    trial_origin origin;
    const char *reason; /* JSON: trial_row.suggestion */
    int64_t lease_until_ms;
};

struct suggestion_list {
    struct suggestion_row *rows; /* in the order of numbers */
    size_t n;
    sweep_state state; /* of the sweep */
    bool done;         /* the sweep is over: it has no more trials */
    bool is_preparing; /* rows are missing because suggestions are being computed */
    int64_t sweep_key; /* the argument of asks_pending() */
};

/* Hand out up to `count` trials: first unfinished trials that the client holds, then queued trials,
 * then new suggestions. Never waits: there may be fewer rows than `count`, or none. While
 * suggestions are being computed (is_preparing), nothing new is handed out until all of them are
 * ready or `is_last` is set: a batch comes whole. Any sweep may be asked, also one that runners
 * work on. AS_E_INVAL with the pointer of the field: client, count, lease_ms. AS_E_CONFLICT with
 * /client: a client that asked with another token has the name. A failure to compute
 * a suggestion is an error here (AS_E_NOMEM, AS_E_UNSUPPORTED, …). `sg` NULL: suggestions are
 * computed here, from a cold start. */
AS_MUST_CHECK as_status ask_trials(struct store *db, struct suggester *sg, struct arena *a,
                                   const struct ask_request *req, struct suggestion_list *ret,
                                   struct as_err *err);

/* For which of these sweeps (keys from suggestion_list, each once) another try of a waiting ask is
 * worth it: the sweep has something to hand out, has ended, or was deleted. One cheap query without
 * locks. ret_worth: n booleans. `sg` may be NULL. AS_E_UNAVAILABLE. */
AS_MUST_CHECK as_status asks_pending(struct store *db, struct suggester *sg, const int64_t *sweeps,
                                     size_t n, bool *ret_worth, struct as_err *err);

/* The trial that a client reports on. */
struct ask_ref {
    const char *sweep; /* id */
    int64_t number;
    const char *client;
    int64_t attempt;   /* that it holds; 0: its latest attempt of this trial */
    const char *token; /* id of the token that tells; NULL: any may (an administrator's) */
};

/* Which attempt does it mean? Pure.
 *   x            the trial
 *   latest       the client's latest attempt of it, 0: none, as store_attempt_of_client()
 *   must_run     the client must hold it now
 * AS_E_STALE, AS_E_DENIED. */
AS_MUST_CHECK as_status ask_check_held(const struct ask_ref *ref, const struct trial_head *x,
                                       int64_t latest, bool is_anothers, bool must_run,
                                       int64_t *ret_attempt, struct as_err *err);
/* The rule of ask_complete() for the outcome. Pure. */
AS_MUST_CHECK as_status ask_check_outcome(const struct completion *c, struct as_err *err);

/* As attempt_record(); extends the client's lease. AS_E_STALE: the client does not hold it. Here
 * and below AS_E_DENIED: it asked for the trial with another token. */
AS_MUST_CHECK as_status ask_measure(struct store *db, struct arena *a, const struct ask_ref *ref,
                                    const struct measurement *points, size_t n,
                                    struct attempt_recorded *ret, struct as_err *err);

/* Extend the client's lease on all that it holds in the sweep: by lease_ms, or, if 0, by the time
 * of its ask. AS_E_STALE: it does not hold this trial; the message says whether its lease or the
 * trial ended. AS_E_INVAL: lease_ms. */
AS_MUST_CHECK as_status ask_heartbeat(struct store *db, const struct ask_ref *ref, int64_t lease_ms,
                                      int64_t *ret_lease_until_ms, struct as_err *err);

/* As attempt_complete(), with the final metrics. AS_E_INVAL with /outcome: a client may only use
 * OUTCOME_COMPLETED, OUTCOME_FAILED, OUTCOME_RELEASED (back into the queue, uses no restart),
 * OUTCOME_PRUNED (by a directive or its own rule) and OUTCOME_PAUSED. */
AS_MUST_CHECK as_status ask_complete(struct store *db, struct arena *a, const struct ask_ref *ref,
                                     const struct completion *c, struct trial_row *ret,
                                     struct as_err *err);

#endif
