/* A lockstep: members that step together, with everything that they have on the device.
 *
 * On the host each member has a lockstep of its own: its weights and activations stay in the cache
 * while it does many steps, locksteps run side by side in lanes (backend_for_each), and nothing is
 * padded. On a device that is fast only when asked for much at once, one lockstep holds all members
 * of the group and each operation works on all of them.
 *
 * Members lie in slots [0, n). Those in [0, n_main) are at the same micro-step of their epochs; one
 * that was resumed inside an epoch lies behind them and first runs to that epoch's end by itself.
 * Bits do not depend on the lockstep, the slot, or who else is there. */
#ifndef ASSAY_TRIAL_RUNNER_TRAIN_LOCKSTEP_H
#define ASSAY_TRIAL_RUNNER_TRAIN_LOCKSTEP_H

#include <stdbool.h>
#include <stddef.h>

#include "base/mem.h"
#include "model/network/batches.h"
#include "model/network/loss.h"
#include "trial-runner/train/member.h"
#include "model/network/network.h"
#include "model/network/optimizer.h"
#include "model/network/graph_cache.h"
#include "model/network/slot_state.h"
#include "model/network/step_table.h"

/* What all locksteps of a process share; borrowed. */
struct lockstep_setup {
    struct backend *be;
    const struct job *job;
    const struct train_data *data;
    struct device_data *device;
    train_loss loss; /* not AUTO */
};

/* What a member's settings ask of a step: told once, when it gets its slot. */
struct lockstep_traits {
    struct optimizer_needs needs;
    struct loss_use use;
    bool dropout;
};

struct lockstep {
    const struct lockstep_setup *setup;
    struct net_plan *plan; /* that every member fits into; owned */
    size_t slots, n, n_main;
    size_t max_rows;                /* of a pass: a micro-batch, or a batch of rows held out */
    struct member **member;         /* [slots], borrowed */
    struct lockstep_traits *traits; /* [slots] */
    struct network *network;
    struct optimizer *optimizer;
    struct batches *batches;
    struct step_table *step_table;
    struct losses *losses;
    struct buf *seed;                /* [slots, 2] I32 */
    struct buf *rate;                /* [slots]: of dropout */
    struct buf *pad, *flip, *cutout; /* [slots]: augmentation */
    int64_t used_ns;                 /* for how long it has run: who has run least goes first */
    struct graph_cache graphs;       /* steps that the back end has recorded */
};

/* A lockstep of `slots` for members of m's signature. With one slot it has just what m needs; with
 * more, what any of that signature may need. AS_E_NOMEM (also: of the device), AS_E_TOO_LARGE. */
AS_MUST_CHECK as_status lockstep_create(const struct lockstep_setup *setup, const struct member *m,
                                        size_t slots, struct lockstep **ret, struct as_err *err);
void lockstep_free(struct lockstep *ls); /* the members are the caller's */
AS_DEFINE_FREEP(struct lockstep, lockstep_free)

/* Bytes on the device of one slot of such a lockstep: known before it is made. */
size_t lockstep_slot_bytes(const struct lockstep_setup *setup, const struct member *m,
                           size_t slots);

/* Has it room, and does m's shape fit into it? */
bool lockstep_takes(const struct lockstep *ls, const struct member *m);

/* May members join now? Only at the end of an epoch of those that step together. */
bool lockstep_is_open(const struct lockstep *ls);

/* Put m in slot ls->n: start values from its seed, position 0. A checkpoint may be read into it
 * then (checkpoint.h); lockstep_settle() after that. AS_E_NOMEM. */
AS_MUST_CHECK as_status lockstep_join(struct lockstep *ls, struct member *m, struct as_err *err);

/* Those that joined at the start of an epoch step together with the others from now on. */
void lockstep_settle(struct lockstep *ls);

/* Take the member out of its slot; the last one moves into the hole. */
AS_MUST_CHECK as_status lockstep_leave(struct lockstep *ls, size_t slot, struct as_err *err);

/* The place of the member in slot `index`; views of ls. */
struct slot lockstep_slot(const struct lockstep *ls, size_t index);

/* Set the tables of a slot for its member's epoch. */
AS_MUST_CHECK as_status lockstep_begin_epoch(struct lockstep *ls, size_t slot, struct as_err *err);

/* Micro-step `at` of the epoch of slots [first, first + n). Positions are not moved. */
AS_MUST_CHECK as_status lockstep_step(struct lockstep *ls, struct backend *lane, size_t first,
                                      size_t n, size_t at, struct as_err *err);

/* Freeze a member: its weights do not move any more. */
AS_MUST_CHECK as_status lockstep_freeze(struct lockstep *ls, size_t slot, struct as_err *err);

#endif
