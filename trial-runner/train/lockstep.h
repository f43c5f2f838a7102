/* A lockstep: members that step together, and everything that they have on the device.
 *
 * On the host each member has a lockstep of its own. Its weights and activations stay in the cache
 * over many steps, locksteps run side by side in lanes (backend_for_each), and nothing is padded. A
 * device is fast only on large operations. There one lockstep holds all members of the group, and
 * each operation works on all of them.
 *
 * Members lie in slots [0, n). Those in [0, n_main) are at the same micro-step of their epochs. A
 * member that was resumed inside an epoch lies after them and first runs alone to the end of that
 * epoch. A member's results do not depend, in any bit, on the lockstep, the slot or other
 * members. */
#ifndef ASSAY_TRIAL_RUNNER_TRAIN_LOCKSTEP_H
#define ASSAY_TRIAL_RUNNER_TRAIN_LOCKSTEP_H

#include <stdbool.h>
#include <stddef.h>

#include "base/mem.h"
#include "model/network/batches.h"
#include "model/network/loss.h"
#include "trial-runner/train/member.h"
#include "model/plan/plan_cut.h"
#include "model/network/network.h"
#include "model/network/optimizer.h"
#include "model/network/graph_cache.h"
#include "model/network/slot_state.h"
#include "model/network/step_table.h"
#include "trial-runner/train/partitions.h"
#include "trial-runner/train/private_rows.h"
#include "trial-runner/distributed/strategy.h"

/* What all locksteps of a process share. Everything is borrowed. */
struct lockstep_setup {
    struct backend *be;
    const struct job *job;
    const struct dataset_info *info; /* of the columns that are inputs (row_roles.h) */
    const struct train_data *data;
    struct device_data *device;
    train_loss loss;               /* not AUTO */
    size_t threads;                /* that may compute on the host */
    struct partitions *partitions; /* of which this rank holds some; NULL: it has all rows */
};

/* What a member's settings need in a step. Set once, when the member gets its slot. */
struct lockstep_traits {
    struct optimizer_needs needs;
    struct loss_use use;
    bool dropout;
};

struct lockstep {
    const struct lockstep_setup *setup;
    struct net_plan *plan; /* every member fits into it; owned */
    size_t slots, n, n_main;
    size_t max_rows;                /* of a pass: a micro-batch, or a batch of held-out rows */
    struct member **member;         /* [slots], borrowed */
    struct lockstep_traits *traits; /* [slots] */
    struct network *network;
    struct optimizer *optimizer;
    struct batches *batches;
    struct step_table *step_table;
    struct losses *losses;
    struct private_rows *private_rows; /* NULL: the members have no `privacy` */
    struct buf *seed;                  /* [slots, 2] I32 */
    struct buf *rate;                  /* [slots]: dropout rates */
    struct buf *pad, *flip, *cutout;   /* [slots]: augmentation */
    int64_t used_ns;                   /* time that it has run: the least goes first in a round */
    struct graph_cache graphs;         /* steps that the back end has recorded */
    const struct strategy *strategy; /* of the member, if it is a rank of a large trial; borrowed */
    /* With member->divides_layers the network has a part of the layers, or none that counts; what
     * it has belongs to the strategy. Then the member's state is here when it is needed as a whole:
     * as a checkpoint gave it, or gathered for one. Owned; NULL: it is not here. */
    struct slot_state *whole;
    bool has_all; /* with divides_layers: the network has all layers, to predict */
};

/* Has the slot's network no more than a part of the layers? */
static inline bool lockstep_is_cut(const struct lockstep *ls)
{
    return ls->n > 0 && ls->member[0]->divides_layers && !ls->has_all;
}

/* Create a lockstep of `slots` slots for members of m's signature. With one slot it holds just what
 * m needs; with more, what any member of that signature may need. AS_E_NOMEM (also device memory),
 * AS_E_TOO_LARGE. */
AS_MUST_CHECK as_status lockstep_create(const struct lockstep_setup *setup, const struct member *m,
                                        size_t slots, struct lockstep **ret, struct as_err *err);
void lockstep_free(struct lockstep *ls); /* the members are the caller's */
AS_DEFINE_FREEP(struct lockstep, lockstep_free)

/* Returns the bytes on the device of one slot of such a lockstep, before it is created. */
size_t lockstep_slot_bytes(const struct lockstep_setup *setup, const struct member *m,
                           size_t slots);

/* Is there a free slot, and does m's shape fit? */
bool lockstep_takes(const struct lockstep *ls, const struct member *m);

/* May members join now? Only between two epochs of the members that step together. */
bool lockstep_is_open(const struct lockstep *ls);

/* Put m into slot ls->n, with start values from its seed, at position 0. The caller may then
 * restore a checkpoint (checkpoint.h) and must call lockstep_settle() after that. AS_E_NOMEM. */
AS_MUST_CHECK as_status lockstep_join(struct lockstep *ls, struct member *m, struct as_err *err);

/* Let the members that are at the start of an epoch step together with the others from now on. */
void lockstep_settle(struct lockstep *ls);

/* Take the member out of its slot. The last member moves into the free slot. */
AS_MUST_CHECK as_status lockstep_leave(struct lockstep *ls, size_t slot, struct as_err *err);

/* Returns the buffers of the member in slot `index`, as views of ls. */
struct slot lockstep_slot(const struct lockstep *ls, size_t index);

/* Set the tables of a slot for its member's epoch. */
AS_MUST_CHECK as_status lockstep_begin_epoch(struct lockstep *ls, size_t slot, struct as_err *err);

/* The rows of the data have other places on the device (partitions.h): set those of a slot. */
AS_MUST_CHECK as_status lockstep_rows_moved(struct lockstep *ls, size_t slot, struct as_err *err);

/* Do micro-step `at` of the epoch for slots [first, first + n). The members' positions stay. */
AS_MUST_CHECK as_status lockstep_step(struct lockstep *ls, struct backend *lane, size_t first,
                                      size_t n, size_t at, struct as_err *err);

/* The halves of a step, for one slot, whose micro-batches other processes compute too:
 *   lockstep_gradients  the gradient of micro-step `at`, in network_gradients(); its loss is added
 *                       to losses->train; the statistics of batch normalisation advance
 *   lockstep_update     the weights, at the end of the batch whose last micro-step is `at`, from
 *                       the gradient of the batch (optimizer_apply() says where it is) */
struct grads_watch { /* as those of network_pass; on_factors never with `privacy` */
    as_status (*on_grads)(void *arg, size_t first, size_t n, struct as_err *err);
    as_status (*on_factors)(void *arg, size_t first, const struct linear_args *a, struct tensor dy,
                            bool *ret_taken, struct as_err *err);
    void *arg;
};
/* `watch` may be NULL. With it, the calls are made one by one and not as a recording. */
AS_MUST_CHECK as_status lockstep_gradients(struct lockstep *ls, struct backend *lane, size_t slot,
                                           size_t at, const struct grads_watch *watch,
                                           struct as_err *err);
AS_MUST_CHECK as_status lockstep_update(struct lockstep *ls, struct backend *lane, size_t slot,
                                        size_t at, struct as_err *err);

/* ---- parts of a network: the only member of a lockstep, with divides_layers ---- */

/* The network has the layers of `part` from now on, with room for the values of `sets` passes; its
 * parameters are not set. NULL: all layers, to predict. AS_E_NOMEM, AS_E_TOO_LARGE. */
AS_MUST_CHECK as_status lockstep_hold(struct lockstep *ls, const struct net_part *part, size_t sets,
                                      struct as_err *err);
/* ls->whole = arrays for all layers, and the numbers of the slot. AS_E_NOMEM. */
AS_MUST_CHECK as_status lockstep_make_whole(struct lockstep *ls, struct as_err *err);
void lockstep_drop_whole(struct lockstep *ls);

/* The member's state; with divides_layers the numbers alone, without arrays. */
AS_MUST_CHECK as_status lockstep_state_new(const struct lockstep *ls, struct slot_state *ret,
                                           struct as_err *err);
AS_MUST_CHECK as_status lockstep_state_get(const struct lockstep *ls, struct slot_state *ret,
                                           struct as_err *err);

/* The passes of micro-step `at` through what the network has, in the set of values in use.
 *   x        what comes from the layers before; NULL: the batch's rows
 *   is_last  the loss follows: it is added to losses->train, and its gradient is where the backward
 *            pass begins (network_outputs())
 *   ret      the value of the last layer */
AS_MUST_CHECK as_status lockstep_forward(struct lockstep *ls, struct backend *lane, size_t at,
                                         struct buf *x, bool is_last, struct tensor *ret,
                                         struct as_err *err);
AS_MUST_CHECK as_status lockstep_backward(struct lockstep *ls, struct backend *lane, size_t at,
                                          struct buf *x, struct as_err *err);

/* Freeze a member: further steps do not change its weights. */
AS_MUST_CHECK as_status lockstep_freeze(struct lockstep *ls, size_t slot, struct as_err *err);

#endif
