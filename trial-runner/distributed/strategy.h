/* How the ranks of a large trial work together: when they exchange, with whom, in which form, how
 * stale. A strategy is one file that fills struct strategy_ops; strategy.c lists them.
 *
 * The trainer (train/shared_step.c) does what all strategies need: it meets the others in a new
 * world, brings ranks that are behind to the others' state, repeats a step in which a rank was
 * lost, writes checkpoints. A strategy does the steps. What it keeps from step to step is in its
 * parts, which go into checkpoints and to ranks that join.
 *
 * To add one: FILE.c with `const struct strategy_ops strategy_NAME`, a row in strategy.c, its
 * fields in model/document/distributed_spec, a test in tests/trial-runner/distributed, a section in
 * docs/distributed.md. */
#ifndef ASSAY_TRIAL_RUNNER_DISTRIBUTED_STRATEGY_H
#define ASSAY_TRIAL_RUNNER_DISTRIBUTED_STRATEGY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/mem.h"
#include "base/status.h"
#include "model/document/train_spec.h"
#include "trial-runner/collective/collective.h"
#include "trial-runner/distributed/device_comm.h"
#include "trial-runner/distributed/replica.h"

/* What a rank asks of all, and what all have agreed on: bits. */
enum {
    STRATEGY_STOP = 1, /* all stop after this step, with a checkpoint */
    STRATEGY_SAVE = 2  /* a checkpoint is due: gather() comes after this step */
};

/* Where a rank's wishes travel with a vector that is summed over all ranks, they are its last
 * numbers: one for each bit, above 0 in the sum if some rank wishes it. to, sum:
 * [STRATEGY_WISHES]. */
enum { STRATEGY_WISHES = 2 };
void strategy_wishes_put(unsigned wishes, float *to);
unsigned strategy_wishes_read(const float *sum);

/* What a strategy is created with; borrowed until it is freed. */
struct strategy_setup {
    const struct train_spec *spec; /* spec->distributed */
    train_loss loss;               /* not AUTO */
    struct replica *replica;
    uint64_t
        seed; /* of the trial, for draws (base/rng.h, data/random_purpose.h); equal on all ranks */
};

/* An array that a strategy keeps; its name and length are the same on every rank, at any time. */
struct strategy_part {
    const char *name; /* static; the tensor in a checkpoint is "strategy.NAME" */
    float *values;
    size_t n;
    bool spread; /* each rank holds some of the values: whole on rank 0 after gather(), and on every
                  * rank after a checkpoint was read; not given to ranks that join, which is then
                  * meet()'s work. false: equal on all ranks */
};
#define STRATEGY_MAX_PARTS 8

/* Ranks have met in a new world. */
struct meeting {
    struct coll *coll;
    const int64_t *steps; /* by rank: the positions at which they came */
    bool moved;           /* set: this rank has got another rank's state */
    /* Vectors may travel from device to device (device_comm.h); NULL: they go through the host.
     * The trainer's; it is there until the next meeting. */
    struct device_comm *devices;
    /* Rank `to` gets the state (replica, position, parts) of rank `from`; all ranks call it in the
     * same order. The others do nothing. Sets moved at `to`. */
    as_status (*transfer)(struct meeting *m, int32_t from, int32_t to, struct as_err *err);
};

/* Ranks that are behind get the state of the first one that is not: the rule of strategies whose
 * ranks are equal. */
AS_MUST_CHECK as_status meeting_catch_up(struct meeting *m, struct as_err *err);

/* This rank computes the shards of a run from now on (replica_ops.hold). AS_E_NOMEM. */
static inline as_status replica_hold_shards(const struct replica *r, struct shard_run run,
                                            struct as_err *err)
{
    return r->ops->hold ? r->ops->hold(r->self, run.first, run.count, UINT32_MAX, err) : AS_OK;
}

/* How far the sums of a step are; see buckets.h. */
struct strategy_progress {
    size_t buckets;     /* of a step; 0: its sum is one */
    size_t begun_early; /* of the last step: begun before its gradient was complete */
    size_t summed;      /* of this step, by now */
};

/* The held-out rows, in batches, for a strategy whose ranks hold parts of the network. */
struct held_pass {
    size_t n; /* batches */
    size_t (*rows)(const void *arg, size_t batch);
    /* A batch through what this rank has of the network: out [rows, out] from in [rows, in]; NULL:
     * of the last part, whose results stay at the caller; of the first. */
    as_status (*forward)(void *arg, struct backend *lane, size_t batch, const float *in, float *out,
                         struct as_err *err);
    void *arg;
    const struct held_result {
        void *values;
        size_t bytes;
    } * results; /* afterwards those of the rank with the last part, on every rank */
    size_t n_results;
};

struct strategy_ops {
    const char *name;

    /* ret: freed with `free`. AS_E_NOMEM; AS_E_UNSUPPORTED naming the field. */
    as_status (*create)(const struct strategy_setup *setup, void **ret, struct as_err *err);
    void (*free)(void *self);

    /* Does the next step, or a block of steps, with the others, and moves the position behind it.
     *   wishes    of this rank
     *   ret       what all ranks have agreed on: equal on all of them, for the same position
     * AS_E_UNAVAILABLE: a rank is lost, or the epoch of the world is over. The replica is then as
     * it was before the call; what was computed may be kept for the next call, if that is about the
     * same position. */
    as_status (*run)(void *self, struct coll *c, struct backend *lane, unsigned wishes,
                     unsigned *ret, struct as_err *err);

    /* For tests and measurements; also during run(), from the replica's functions. NULL:
     * unknown. */
    struct strategy_progress (*progress)(void *self);

    /* A figure of the last step, equal on all ranks, which the reports have as `duality_gap`. NULL:
     * none. */
    double (*figure)(const void *self);

    /* Does it send vectors from device to device where the ranks can (meeting.devices)? It depends
     * on the document alone. NULL: no. */
    bool (*uses_devices)(const void *self);

    /* Lists what is kept, at most STRATEGY_MAX_PARTS; always the same list. NULL: nothing. */
    size_t (*parts)(void *self, struct strategy_part *ret);
    /* The parts have been filled: from a checkpoint (the replica has its position already), or,
     * those that are not spread, from another rank. NULL: nothing is to be done. AS_E_INVAL. */
    as_status (*restored)(void *self, bool from_checkpoint, struct as_err *err);
    /* All ranks together: makes the parts and the replica's state whole on rank 0, for a
     * checkpoint. Called after a step in which STRATEGY_SAVE or STRATEGY_STOP was agreed, and at
     * the end of the training. After AS_E_UNAVAILABLE it is not always called again, so it changes
     * nothing that the next step depends on. NULL: they are whole on every rank at any time. */
    as_status (*gather)(void *self, struct coll *c, struct backend *lane, struct as_err *err);
    /* Is `gather` needed with this document? NULL: yes, if there is one. */
    bool (*gathers)(const void *self);

    /* All ranks together, between two steps. NULL: each rank has the whole network, and needs
     * none of the others. Else the trainer counts it as a position of its own: meeting.steps are
     * twice the positions, and one more when the epoch before is evaluated. */
    as_status (*evaluate)(void *self, struct coll *c, struct backend *lane,
                          const struct held_pass *pass, struct as_err *err);

    /* All ranks of a new world, before the first step in it. NULL: meeting_catch_up().
     * AS_E_UNAVAILABLE: another world follows. */
    as_status (*meet)(void *self, struct meeting *m, struct as_err *err);
};

struct strategy {
    const struct strategy_ops *ops;
    void *self;
};

/* The strategy of setup->spec->distributed. ret: strategy_done(). Errors of ops->create. */
AS_MUST_CHECK as_status strategy_init(struct strategy *ret, const struct strategy_setup *setup,
                                      struct as_err *err);
void strategy_done(struct strategy *s); /* a zeroed one is fine */

/* ops->parts, or none. */
size_t strategy_parts(const struct strategy *s, struct strategy_part ret[STRATEGY_MAX_PARTS]);

/* ---- the strategies, each in a file of its name ---- */

extern const struct strategy_ops strategy_allreduce, strategy_local_sgd, strategy_server,
    strategy_server_async, strategy_server_copies, strategy_gossip, strategy_model_parallel,
    strategy_lbfgs, strategy_cocoa;

#endif
