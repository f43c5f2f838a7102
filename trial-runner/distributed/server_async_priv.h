/* A parameter server without a common step: what its files share (server_async.c says how it
 * works). Private to this folder. */
#ifndef ASSAY_TRIAL_RUNNER_DISTRIBUTED_SERVER_ASYNC_PRIV_H
#define ASSAY_TRIAL_RUNNER_DISTRIBUTED_SERVER_ASYNC_PRIV_H

#include "trial-runner/distributed/residuals.h"
#include "trial-runner/distributed/shard_tree.h"
#include "trial-runner/distributed/slice_service.h"
#include "trial-runner/distributed/strategy.h"
#include "trial-runner/distributed/sum_service.h"

/* Tags of the operations, and the numbers behind a vector that a group's first rank sends. */
enum { TAG_BEGIN = 1, TAG_END, TAG_RECORDS, TAG_PULLED, TAG_VALUES, TAG_DONE, TAG_OVER };
enum { WORK_HIGH, WORK_LOW, N_WORK };

struct async {
    struct replica *replica;
    struct slice_updater *updater; /* created when first needed */
    int64_t slices_wanted, groups_wanted, warm_start;
    size_t n_weights;        /* parameters and statistics */
    struct slot_state state; /* of the phase's begin; its moments are those of `values` */
    struct slice_values values;
    float **partials;                        /* [max_shards] */
    float *sum, *node;                       /* [n_numbers + N_WORK] */
    uint8_t *message;                        /* for a group's exchange */
    struct push_form form, holder, of_group; /* to the server; its service's; inside a group */
    struct residuals kept;                   /* zeroed without error feedback */
    struct shard_run *runs; /* by rank: of the residuals, the groups' first ranks have them */

    /* For the phase, also after its world has ended: */
    int64_t at, n;    /* its position and batches */
    double *losses;   /* [n]: at its begin */
    double *own;      /* [n]: of the batches that this rank has brought to the server */
    int64_t *pulled;  /* [n_slices]: updates that the copy of each slice has seen here */
    uint32_t begun;   /* epoch of the world in which it began; 0: no phase is open */
    uint32_t resumes; /* the world in which `values` and `losses` were put together; 0: none */

    /* For the current world: */
    uint32_t epoch;
    struct coll *coll;
    int32_t rank, n_ranks, n_groups, group, group_first, group_n;
    uint32_t n_slices;
    struct mailbox *box;
    struct slice_service *slices;
    struct sum_service *sums; /* of the group */
    uint64_t round;
};

/* The weights, statistics, moments and counters of the replica, into `values` and `state`. */
AS_MUST_CHECK as_status async_read_state(struct async *a, struct as_err *err);
/* The replica gets the weights and statistics; with `moments` the moments and counters too. */
AS_MUST_CHECK as_status async_write_state(struct async *a, bool moments, struct as_err *err);

/* Is this rank the first of its group, which talks to the server? */
bool async_leads_group(const struct async *a);
/* Whose the residuals are in a world. */
void async_spread_residuals(struct async *a, const struct coll *c);

/* Inside a group (server_async_subgroup.c). AS_E_UNAVAILABLE: the world has ended. */

/* out [n_numbers + N_WORK] = the sum over the nodes of all ranks of the group, in the order of the
 * tree over `total` shards; each rank adds a slice of it. `run` is this rank's shards, `share`
 * their part of the batch's rows. */
AS_MUST_CHECK as_status async_exchange(struct async *a, uint32_t total, struct shard_run run,
                                       float share, const struct shard_node *nodes, size_t n_nodes,
                                       float *out, struct as_err *err);
/* The first rank of the group says which batch comes next (-1: none), with the weights. */
AS_MUST_CHECK as_status async_share_work(struct async *a, int64_t *batch, struct as_err *err);

/* Between worlds (server_async_meet.c). */

/* All ranks get slice k of n_slices of the values from `root`, with its moments if asked. */
AS_MUST_CHECK as_status async_spread_slice(struct async *a, struct coll *c, int32_t root,
                                           uint32_t k, uint32_t n_slices, bool moments,
                                           struct as_err *err);
/* strategy_ops.meet: all ranks get the whole state of the phase whose world has ended, if one
 * has. */
AS_MUST_CHECK as_status async_meet(void *self, struct meeting *m, struct as_err *err);

#endif
