/* The life of a trial and of a sweep: one table of (state, event) -> (new state, reason) for each.
 *
 * Pure: a service looks up what an event means, and the store performs it as one guarded statement
 * whose WHERE repeats the old state. The store decides whether an event is current (attempt,
 * lease); the table does not. */
#ifndef ASSAY_SCHEDULER_SWEEP_TRIAL_STATE_H
#define ASSAY_SCHEDULER_SWEEP_TRIAL_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

typedef enum trial_state {
    TRIAL_QUEUED,
    TRIAL_RUNNING,
    TRIAL_PAUSED,
    TRIAL_COMPLETED,
    TRIAL_PRUNED,
    TRIAL_FAILED,
    TRIAL_CANCELLED
} trial_state;
#define TRIAL_STATES 7

typedef enum trial_event {
    TRIAL_EV_CLAIM,    /* a runner took it: a new attempt begins */
    TRIAL_EV_COMPLETE, /* exit 0, reported by the current attempt */
    TRIAL_EV_FAIL,     /* an exit that must not be retried, or a metric that is missing or not
                          finite */
    TRIAL_EV_LOSE,     /* the lease ran out, the runner is gone, or exit 75: uses a restart */
    TRIAL_EV_RELEASE,  /* the runner drains and returns it: uses no restart */
    TRIAL_EV_CANCEL,   /* by a user, or because its sweep ends */
    TRIAL_EV_PRUNE,    /* early stopping */
    TRIAL_EV_PAUSE,    /* at a rung, or preempted; its checkpoint stays */
    TRIAL_EV_RESUME,   /* from pause, back into the queue */
    TRIAL_EV_TIMEOUT,  /* ran longer than limits.trial_timeout */
    TRIAL_EV_KEEP,     /* ran longer than limits.trial_timeout, and its values count */
    TRIAL_EV_RETRY     /* a user wants a trial that failed or was cancelled tried again; it gets
                          its restarts back */
} trial_event;
#define TRIAL_EVENTS 12

typedef enum sweep_state {
    SWEEP_RUNNING,
    SWEEP_PAUSED,    /* hands out no trials; running trials go on */
    SWEEP_FINISHING, /* no trial is live any more; the ensemble is being computed */
    SWEEP_COMPLETED,
    SWEEP_FAILED,
    SWEEP_CANCELLED
} sweep_state;
#define SWEEP_STATES 6

typedef enum sweep_event {
    SWEEP_EV_PAUSE,
    SWEEP_EV_RESUME,
    SWEEP_EV_CANCEL,  /* by a user; its trials are cancelled with it */
    SWEEP_EV_EXHAUST, /* every trial that the limits or the grid allow has ended */
    SWEEP_EV_TIMEOUT, /* limits.wall_time is over; running trials are cancelled */
    SWEEP_EV_TARGET,  /* a trial has reached limits.target; running trials are cancelled */
    SWEEP_EV_SETTLE,  /* what may be left to gain is within limits.stop_when; the same */
    SWEEP_EV_FINISH,  /* the ensemble is complete, or none is wanted */
    SWEEP_EV_FAIL,    /* more than max_failed_trials failed, or no trial completed */
    SWEEP_EV_REOPEN   /* limits or retried trials leave it work after its end: it runs on */
} sweep_event;
#define SWEEP_EVENTS 10

struct trial_step {
    trial_state to;
    bool burns_restart; /* adds one to the trial's restarts */
    const char *reason; /* a sentence for the event log; static */
};

struct sweep_step {
    sweep_state to;
    const char *reason; /* static */
};

/* What the event does to a trial in that state. The trial has used `restarts` of its `max_restarts`
 * (limits.max_restarts); TRIAL_EV_LOSE without a restart left fails the trial. AS_E_CONFLICT: the
 * state does not allow the event; the message names both. */
AS_MUST_CHECK as_status trial_step(trial_state from, trial_event ev, int64_t restarts,
                                   int64_t max_restarts, struct trial_step *ret,
                                   struct as_err *err);
AS_MUST_CHECK as_status sweep_step(sweep_state from, sweep_event ev, struct sweep_step *ret,
                                   struct as_err *err);

/* Has it ended? Only people lead out of such a state: TRIAL_EV_RETRY, SWEEP_EV_REOPEN. */
bool trial_state_is_final(trial_state s);
bool sweep_state_is_final(sweep_state s);

/* The words of the API and the database: "queued", "running", … Never NULL. The parsers: AS_E_INVAL
 * lists the words. */
const char *trial_state_format(trial_state s);
const char *sweep_state_format(sweep_state s);
const char *trial_event_format(trial_event e);
const char *sweep_event_format(sweep_event e);
AS_MUST_CHECK as_status trial_state_parse(const char *name, trial_state *ret, struct as_err *err);
AS_MUST_CHECK as_status sweep_state_parse(const char *name, sweep_state *ret, struct as_err *err);

#endif
