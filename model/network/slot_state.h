/* The training state of a member, in its own shape. It depends neither on the slot nor on the
 * members beside it. */
#ifndef ASSAY_MODEL_NETWORK_SLOT_STATE_H
#define ASSAY_MODEL_NETWORK_SLOT_STATE_H

#include <stddef.h>
#include <stdint.h>

#include "model/network/loss.h"
#include "model/network/network.h"
#include "model/network/optimizer.h"

/* A member's place in the buffers that members share. A view, valid as long as they exist. */
struct slot {
    struct network *network;
    struct optimizer *optimizer;
    struct losses *losses;
    size_t index;
    const struct net_plan *own;   /* the member's own plan: it fits the network's */
    struct optimizer_needs needs; /* what this member alone needs */
};

struct slot_state {
    float *params;     /* [n_params]; owned, as all arrays here */
    float *moment1;    /* [n_params]; NULL when moments are elsewhere (needs.divided) */
    float *moment2;    /* the same; also NULL when its optimizer has none */
    float *average;    /* [n_params]: of weights; NULL when there is none */
    float *statistics; /* [n_state]: of batch normalisation; NULL when there is none */
    int32_t steps;     /* number of the optimizer's steps */
    int32_t active;    /* 0: frozen, because a gradient was not finite */
    float loss_sum;    /* over the rows of the epoch so far */
};

/* One array of a state; the names are those of a checkpoint's tensors. */
struct slot_part {
    const char *name;
    float *values; /* NULL: this member has none */
    size_t n;
};

#define SLOT_PARTS 5

/* List the arrays of a state of the slot's member, always in the same order. ret: SLOT_PARTS views
 * of s. */
void slot_state_parts(const struct slot *slot, const struct slot_state *s,
                      struct slot_part ret[SLOT_PARTS]);

void slot_state_done(struct slot_state *s); /* a zeroed one is fine */

/* Free all arrays but the weights. */
void slot_state_keep_weights(struct slot_state *s);

/* Room for the state of the slot's member, all 0. ret is owned by the caller: slot_state_done().
 * AS_E_NOMEM. */
AS_MUST_CHECK as_status slot_state_create(const struct slot *slot, struct slot_state *ret,
                                          struct as_err *err);

/* Copy the state out of the slot. ret is owned by the caller: slot_state_done(). AS_E_NOMEM. */
AS_MUST_CHECK as_status slot_state_get(const struct slot *slot, struct slot_state *ret,
                                       struct as_err *err);

/* The same into arrays that are there; those that are NULL are left out. */
AS_MUST_CHECK as_status slot_state_read(const struct slot *slot, struct slot_state *s,
                                        struct as_err *err);

/* Copy a state into the slot of a member with the same shape and needs. Arrays that are
 * NULL are left out. */
AS_MUST_CHECK as_status slot_state_put(const struct slot *slot, const struct slot_state *s,
                                       struct as_err *err);

#endif
