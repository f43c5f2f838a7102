/* The group's end of the socket to the runner: control.h's lines over fd 0. */
#ifndef ASSAY_TRIAL_RUNNER_TRAIN_CHANNEL_H
#define ASSAY_TRIAL_RUNNER_TRAIN_CHANNEL_H

#include <pthread.h>
#include <stdbool.h>

#include "trial-runner/protocol/control.h"

struct channel {
    int fd;               /* -1: nobody is there; events go nowhere. Not owned */
    bool gone;            /* the runner closed its end */
    pthread_mutex_t lock; /* writing: locksteps say "started" from their threads */
    struct control_lines in;
};

/* On fd when that is a socket, else nobody is there. channel_done() frees. */
void channel_init(struct channel *c, int fd);
void channel_done(struct channel *c);

/* Say it. A runner that is gone hears nothing, which is no error: `gone` is seen when reading. Any
 * thread. */
void channel_send(struct channel *c, const struct control_event *e);

/* Take in what has come, after waiting for it for at most timeout_ms. AS_E_TOO_LARGE: a line
 * without an end (the runner counts as gone then). AS_E_NOMEM. */
AS_MUST_CHECK as_status channel_read(struct channel *c, int timeout_ms, struct as_err *err);

/* The next request that was taken in: AS_OK and *ret (control_request_done()), AS_E_NOT_FOUND when
 * there is none, AS_E_INVAL for a line that is none (the next call goes on behind it). */
AS_MUST_CHECK as_status channel_next(struct channel *c, struct control_request *ret,
                                     struct as_err *err);

#endif
