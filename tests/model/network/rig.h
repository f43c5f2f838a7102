/* A network of any kind with five rows of random data, for `slots` members. */
#ifndef ASSAY_TESTS_MODEL_NETWORK_RIG_H
#define ASSAY_TESTS_MODEL_NETWORK_RIG_H

#include "model/network/network.h"
#include "model/plan/plan.h"

/* Data sets of three classes; tokens of a vocabulary of 11. */
extern const struct net_data rig_table, rig_images, rig_text;

struct rig_kind {
    const char *name, *rest; /* rest: the fields of `train` besides data set, epochs, batch_size */
    const struct net_data *data;
    bool smooth; /* no kinks: differences are exact */
};
#define RIG_KINDS 13
#define RIG_RESNET 11 /* its index: it has state */
extern const struct rig_kind rig_kinds[RIG_KINDS];

struct rig {
    struct backend *be;
    struct net_plan *plan;
    struct network *network;
    struct network_pass pass;
    size_t slots, classes, loss_rows;
    struct buf *x, *codes, *labels, *rate, *seed, *step, *row_loss, *row_class, *correct, *loss;
};

/* The plan of a training document with the fields `rest`; owned by the caller. */
struct net_plan *rig_plan(const char *rest, const struct net_data *data);

/* Takes the plan. Slot k trains under seed first_seed + k. */
void rig_open(struct rig *r, const char *backend, struct net_plan *plan,
              const struct net_data *data, size_t slots, int32_t first_seed);
void rig_close(struct rig *r);

struct buf *rig_buf(struct rig *r, buf_kind kind, size_t n); /* owned by the caller */

/* One pass forward and back of members first .. first + n - 1 on `lane`: their gradients. */
as_status rig_train(struct rig *r, struct backend *lane, size_t first, size_t n, struct as_err *e);
/* The loss of member k now. */
double rig_loss(struct rig *r, size_t k);
/* An arena's member in the shape of `own`; owned by the caller. */
float *rig_read(const struct rig *r, const struct buf *arena, size_t slot,
                const struct net_plan *own);

#endif
