/* Tables on the device with everything that changes from micro-step to micro-step of an epoch. So
 * nothing in a step comes from the host, and a step can be recorded once and run many times. */
#ifndef ASSAY_MODEL_NETWORK_STEP_TABLE_H
#define ASSAY_MODEL_NETWORK_STEP_TABLE_H

#include <stddef.h>

#include "base/mem.h"
#include "kernels/ops.h"
#include "model/network/epoch_layout.h"

struct step_table {
    size_t slots, n_steps; /* micro-steps of an epoch */
    struct buf *rates;     /* [slots, n_steps, 4] F32 */
    struct buf *marks;     /* [slots, n_steps, 4] I32 */
    struct buf *at;        /* [slots] I32: the next micro-step */
    struct buf *steps;     /* [n_steps] I32: 0, 1, 2, … */
    struct buf *rate;      /* [slots, 4]: the rates of the current micro-step */
    struct buf *mark;      /* [slots, 4]: its marks */
    float *rate_rows;      /* [n_steps, 4], workspace */
    int32_t *mark_rows;    /* [n_steps, 4], workspace */
};

/* The numbers of one micro-step, as tensors [slots] that begin at slot 0. While a member's batch is
 * not complete, its weights do not change: kind is -1, max_norm 0, decay 1. */
struct micro_step {
    struct tensor lr;
    struct tensor scale;    /* share of this micro-batch in its batch, by rows */
    struct tensor max_norm; /* of the gradient; 0: not clipped */
    struct tensor decay;    /* of the average of weights */
    struct tensor at;       /* I32: the micro-step of the epoch */
    struct tensor first;    /* I32: the micro-batch begins a batch */
    struct tensor kind;     /* I32: optim_kind, or -1 */
    struct tensor count; /* I32: the member's micro-steps before this one, modulo 2^32: the key of
                          * dropout and augmentation */
};

/* AS_E_NOMEM, AS_E_TOO_LARGE. */
AS_MUST_CHECK as_status step_table_create(struct backend *be, size_t slots, size_t n_steps,
                                          struct step_table **ret, struct as_err *err);
void step_table_free(struct step_table *t);
AS_DEFINE_FREEP(struct step_table, step_table_free)

size_t step_table_bytes(size_t n_steps); /* of one slot */

/* Fill the tables of a slot for epoch `epoch` of a member; `at` is the next micro-step.
 * layout->micro_steps is n_steps. */
AS_MUST_CHECK as_status step_table_fill(struct step_table *t, size_t slot,
                                        const struct train_spec *spec,
                                        const struct epoch_layout *layout, int64_t epoch, size_t at,
                                        struct as_err *err);

/* Go to micro-step `at` of the slot's epoch, whose tables are filled. */
AS_MUST_CHECK as_status step_table_seek(struct step_table *t, size_t slot, size_t at,
                                        struct as_err *err);

/* Advance slots [first, first + n) to their next micro-step: its numbers are in the tensors of
 * step_table_now() until the next call. */
AS_MUST_CHECK as_status step_table_take(struct step_table *t, struct backend *lane, size_t first,
                                        size_t n, struct as_err *err);
struct micro_step step_table_now(const struct step_table *t);

#endif
