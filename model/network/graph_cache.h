/* A step that is asked for again and again, recorded on the device once and launched in one go from
 * then on: all that changes from step to step lies in buffers (turns.h), so a record stays right as
 * long as its key is the same. Where the back end records nothing, the calls are made each time. */
#ifndef ASSAY_TRIAL_RUNNER_TRAIN_REPLAY_H
#define ASSAY_TRIAL_RUNNER_TRAIN_REPLAY_H

#include <stdbool.h>
#include <stddef.h>

#include "kernels/backend.h"

#define REPLAY_RECORDS 8

/* All of a step that is told by host values. */
struct replay_key {
    size_t first, n, rows; /* slots; rows of the batch */
    unsigned flags;        /* what the members need between them */
};

struct replay_record {
    struct replay_key key;
    size_t seen;     /* how often it was asked for; 0: a free place */
    struct graph *g; /* NULL: not recorded yet */
};

/* {0} is empty. */
struct replay {
    struct replay_record records[REPLAY_RECORDS];
    size_t next; /* the place that the next new key takes */
    bool off;    /* the back end records nothing */
};

/* Before the back end and the buffers that the calls use. */
void replay_done(struct replay *r);

/* Do what calls(arg) does. The first time of a key the calls are made (so that the device loads
 * what it needs), the second time they are recorded and launched, then the record is launched.
 * `calls` must do the same operations with the same host values whenever the key is the same, and
 * move nothing between host and device. */
AS_MUST_CHECK as_status replay_step(struct replay *r, struct backend *be, struct replay_key key,
                                    as_status (*calls)(void *arg, struct as_err *err), void *arg,
                                    struct as_err *err);

#endif
