/* The life of a rank's seat, and the rules by which a gang's world changes.
 *
 * Pure, as trial_state.h: the caller loads a gang and its seats, asks what an event means, and
 * performs it in guarded statements. */
#ifndef ASSAY_SCHEDULER_SWEEP_SEAT_STATE_H
#define ASSAY_SCHEDULER_SWEEP_SEAT_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

typedef enum seat_state {
    SEAT_SEATED,    /* its runner holds it, or will be told of it; the process starts */
    SEAT_LISTENING, /* it listens for the other ranks */
    SEAT_RUNNING,   /* it was connected to all members of an epoch */
    SEAT_LEFT,      /* it went without a fault: released, or done */
    SEAT_LOST,      /* it died, or cannot be heard */
    SEAT_ENDED      /* it completed in a gang that is not elastic, or its attempt ended */
} seat_state;
#define SEAT_STATES 6

typedef enum seat_event {
    SEAT_EV_LISTEN, /* its process listens */
    SEAT_EV_JOIN,   /* it is connected to all members of the current epoch */
    SEAT_EV_LEAVE,
    SEAT_EV_LOSE,
    SEAT_EV_END
} seat_event;
#define SEAT_EVENTS 5

/* What the event makes of a seat in that state. AS_E_CONFLICT: the state does not allow it; the
 * message names both. */
AS_MUST_CHECK as_status seat_step(seat_state from, seat_event ev, seat_state *ret,
                                  struct as_err *err);

/* Does its runner still hold it? */
bool seat_state_is_live(seat_state s);

typedef enum gang_state {
    GANG_GATHERING, /* epoch 0: the ranks start */
    GANG_RUNNING,
    GANG_WAITING, /* fewer than min_ranks live: nobody trains */
    GANG_OVER     /* the attempt has ended */
} gang_state;
#define GANG_STATES 4

/* The words of the API and the database. Never NULL. The parsers: AS_E_INVAL. */
const char *seat_state_format(seat_state s);
const char *seat_event_format(seat_event e);
const char *gang_state_format(gang_state s);
AS_MUST_CHECK as_status seat_state_parse(const char *name, seat_state *ret, struct as_err *err);
AS_MUST_CHECK as_status gang_state_parse(const char *name, gang_state *ret, struct as_err *err);

/* A gang after its seats have changed. */
struct gang_standing {
    int64_t ranks, min_ranks;
    bool elastic;
    int64_t epoch;       /* the current one */
    int64_t live;        /* seats that runners hold */
    int64_t listening;   /* of them: those that listen or run */
    int64_t joined;      /* of them: those that were connected to the others */
    bool has_joined;     /* some rank was, in this attempt: there is state that may be lost */
    int64_t members;     /* members of the epoch that still live */
    int64_t gone;        /* members of the epoch that do not live any more */
    int64_t completed;   /* members that completed in a gang that is not elastic */
    int64_t lost;        /* seats that were lost or left: also those that were no members */
    int64_t idle_deaths; /* ranks lost in a row without a step in between */
    int64_t max_restarts;
};

typedef enum gang_verdict {
    GANG_GOES_ON,    /* nothing to do */
    GANG_NEW_EPOCH,  /* the world changes: members are all that listen or run */
    GANG_COMPLETES,  /* every rank has completed */
    GANG_IS_LOST,    /* no rank lives that was connected, or a gang that is not elastic has lost
                        one */
    GANG_KEEPS_DYING /* too many ranks were lost without a step in between */
} gang_verdict;

/* What follows. */
gang_verdict gang_verdict_of(const struct gang_standing *s);

/* Ranks lost in a row, without a step, that a gang survives. */
int64_t gang_deaths_max(int64_t ranks, int64_t max_restarts);

/* For how long a runner that has lost so many ranks of a gang, without a step in between, gets none
 * of its seats: 2 s, doubling to 60 s. 0 for none. */
int64_t gang_pause_ms(int64_t losses);

#endif
