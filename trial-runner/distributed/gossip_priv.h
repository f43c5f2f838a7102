/* Gossip: what its files share (gossip.c says how it works). Private to this folder. */
#ifndef ASSAY_TRIAL_RUNNER_DISTRIBUTED_GOSSIP_PRIV_H
#define ASSAY_TRIAL_RUNNER_DISTRIBUTED_GOSSIP_PRIV_H

#include <pthread.h>

#include "trial-runner/collective/mailbox.h"
#include "trial-runner/distributed/shard_tree.h"
#include "trial-runner/distributed/strategy.h"

enum { TAG_DRAINED = 1, TAG_MEAN, TAG_SUM, TAG_RECORDS, TAG_WEIGHT };

/* A model that has come, or one that is on its way out. */
struct parcel {
    struct parcel *next;
    double weight;
    struct mail_call call; /* of one that goes out */
    float *model;          /* [n_weights]; behind this struct */
};

struct gossip {
    struct replica *replica;
    uint64_t seed;
    uint32_t peers;
    int64_t staleness;
    size_t n_weights; /* parameters and statistics */
    double weight;
    struct slot_state state; /* room */
    float *model;            /* [n_weights] */
    float *before;           /* [n_params]: the weights before a step */
    float **partials;        /* [max_shards] of n_numbers + STRATEGY_WISHES */
    const void **own;
    float *sum;
    struct shard_run *runs;
    float loss; /* of the epoch, at the last common step */
    bool begun; /* this rank has a model that counts */

    /* For the current world: */
    uint32_t epoch;
    int32_t rank, n_ranks;
    struct mailbox *box;
    struct parcel *out;
    int64_t *known; /* [n_ranks]: steps that each rank has done at least */

    pthread_mutex_t lock; /* guards what follows */
    struct parcel *in;
    uint32_t unread;
    int64_t reached;     /* steps that this rank has done */
    struct mail **asked; /* [n_ranks]: who waits for this rank; NULL: not */
};

/* The gradients of this rank's shards of the batch at the position, as shares of the batch, in
 * g->own; *ret_share is what part of the batch they are. AS_E_NOMEM; what the replica returns. */
AS_MUST_CHECK as_status gossip_compute(struct gossip *g, struct backend *lane, struct shard_run run,
                                       unsigned wishes, float *ret_share, struct as_err *err);

/* ---- what ranks send to each other (gossip_peers.c) ---- */

/* Leave the world: what is on its way out and has not arrived comes back. Nothing in no world. */
AS_MUST_CHECK as_status gossip_leave(struct gossip *g, struct as_err *err);
/* Leave the world before, and be there for the ranks of this one. */
AS_MUST_CHECK as_status gossip_join(struct gossip *g, struct coll *c, struct as_err *err);

/* Weights and statistics from the replica to g->model, and back. */
AS_MUST_CHECK as_status gossip_read_model(struct gossip *g, struct as_err *err);
AS_MUST_CHECK as_status gossip_write_model(struct gossip *g, struct as_err *err);

/* This rank has done so many steps: who waits for that hears of it. */
AS_MUST_CHECK as_status gossip_set_reached(struct gossip *g, int64_t step, struct as_err *err);
/* Give a part of the weight, with g->model, to a random peer, once that has come far enough. To one
 * that has not answered yet nothing is given. AS_E_UNAVAILABLE: the epoch is over. */
AS_MUST_CHECK as_status gossip_give(struct gossip *g, struct coll *c, int64_t step, uint32_t index,
                                    struct as_err *err);
/* Take back into g->model what did not arrive, and forget what did; `wait`: for all of it. Add what
 * has come. Both return whether g->model has changed. */
bool gossip_settle_out(struct gossip *g, bool wait);
bool gossip_take_in(struct gossip *g);
void gossip_free_parcels(struct parcel *p); /* accepts NULL */

/* ---- common steps (gossip_common.c) ---- */

/* Is the step that many ahead of the position a common one? */
bool gossip_is_common(const struct replica *r, int64_t ahead);
/* The common step that a rank comes to from its position; behind the last one, the position. */
int64_t gossip_next_common(const struct replica *r);
/* Do it with all ranks. ret: wishes of any rank, added to. AS_E_UNAVAILABLE: the epoch is over. */
AS_MUST_CHECK as_status gossip_common_step(struct gossip *g, struct coll *c, struct backend *lane,
                                           unsigned wishes, unsigned *ret, struct as_err *err);

#endif
