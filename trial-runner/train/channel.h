/* The trainer's end of the socket to the runner: the lines of control.h over file descriptor 0. */
#ifndef ASSAY_TRIAL_RUNNER_TRAIN_CHANNEL_H
#define ASSAY_TRIAL_RUNNER_TRAIN_CHANNEL_H

#include <pthread.h>
#include <stdbool.h>

#include "trial-runner/protocol/control.h"

struct channel {
    int fd;               /* borrowed; -1: there is no runner, and events are discarded */
    bool gone;            /* the runner closed its end */
    pthread_mutex_t lock; /* for writing: locksteps send "started" from their own threads */
    struct control_lines in;
};

/* Use fd if it is a socket; else the channel has no runner. channel_done() frees. */
void channel_init(struct channel *c, int fd);
void channel_done(struct channel *c);

/* Send an event. A runner that is gone is not an error here: channel_read notices it and sets
 * `gone`. Any thread may call it. */
void channel_send(struct channel *c, const struct control_event *e);

/* Write a line of one member, with or without its newline: to the runner, for that member's log
 * alone, or, without a runner, to stderr (a warning or an error) or stdout. Lines of the whole
 * process go to stdout and stderr directly; the runner marks them in the log of every member. `c`
 * may be NULL: no runner. Any thread may call it. */
void channel_log(struct channel *c, const char *id, bool is_error, const char *text);

/* Wait at most timeout_ms for bytes, then read all that have come. AS_E_TOO_LARGE: a line without
 * an end; the channel then treats the runner as gone. AS_E_NOMEM. */
AS_MUST_CHECK as_status channel_read(struct channel *c, int timeout_ms, struct as_err *err);

/* Get the next request that channel_read has read. AS_OK: *ret is owned by the caller
 * (control_request_done()). AS_E_NOT_FOUND: there is none. AS_E_INVAL: the line is not a request;
 * the next call continues after it. */
AS_MUST_CHECK as_status channel_next(struct channel *c, struct control_request *ret,
                                     struct as_err *err);

#endif
