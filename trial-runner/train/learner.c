/* A member as a replica. Each function of the table leaves the member's slot consistent: between
 * two calls it is a state that a checkpoint may have, because a strategy may stop at any call when
 * a rank is lost. */
#include "trial-runner/train/learner.h"

#include <stdlib.h>
#include <string.h>

#include "model/network/schedule.h"
#include "model/network/slice_update.h"
#include "trial-runner/train/learner_blocks.h"
#include "trial-runner/train/learner_device.h"
#include "trial-runner/train/learner_product.h"

struct learner {
    struct replica replica;
    struct lockstep *ls;
    struct replica_tensor *tensors;
    float *statistics;           /* [2, n_state]: those of before a gradient, and after it */
    struct slice_update *slices; /* created when first needed, as the following */
    float *gradient;             /* [n_params]: of a shard, where it cannot be read in place */
    float *params;               /* [n_params]: after a step that was made elsewhere */
    struct buf *number;          /* [1] */
    struct learner_product product;
    struct learner_device *device; /* NULL: on the host, or padded */
    struct learner_blocks *blocks; /* NULL: the whole network is here */
};

static struct member *member_of(const struct learner *l)
{
    return l->ls->member[0];
}

int64_t learner_step(const struct member *m)
{
    size_t per_batch = m->layout.per_batch;
    return m->epoch * m->layout.steps_per_epoch + (int64_t)((m->at + per_batch - 1) / per_batch);
}

/* The micro-step where the batch begins. */
static size_t batch_start(const struct member *m, int64_t ahead)
{
    return m->at + (size_t)ahead * m->layout.per_batch;
}

static uint32_t shards_of(const struct member *m, int64_t ahead)
{
    size_t at = batch_start(m, ahead), most = m->layout.per_batch;
    if (m->epoch >= m->spec.epochs || at >= m->layout.micro_steps)
        return 0;
    size_t left = m->layout.micro_steps - at;
    return (uint32_t)(left < most ? left : most);
}

static int64_t replica_step(const void *self)
{
    return learner_step(member_of(self));
}

static uint32_t replica_shards(const void *self, int64_t ahead)
{
    return shards_of(member_of(self), ahead);
}

static float replica_share(const void *self, int64_t ahead, uint32_t shard)
{
    const struct member *m = member_of(self);
    return (float)epoch_layout_share(&m->layout, batch_start(m, ahead) + shard);
}

static uint32_t replica_rows(const void *self, int64_t ahead, uint32_t shard)
{
    const struct member *m = member_of(self);
    return (uint32_t)epoch_layout_rows(&m->layout, batch_start(m, ahead) + shard);
}

static double replica_rate(const void *self, int64_t step)
{
    const struct member *m = member_of(self);
    return schedule_lr(&m->spec, step, m->layout.steps_per_epoch);
}

static as_status replica_hold(void *self, uint32_t first, uint32_t count, uint32_t also,
                              struct as_err *err)
{
    struct lockstep *ls = ((struct learner *)self)->ls;
    struct partitions *p = ls->setup->partitions;
    bool moved = false;
    as_status st = p ? partitions_hold(p, first, count, also, &moved, err) : AS_OK;
    return st == AS_OK && moved ? lockstep_rows_moved(ls, 0, err) : st;
}

/* ---- gradients ---- */

/* A gradient on its way from the network to who takes it, tensor by tensor, or as factors. */
struct giving {
    const float *gradient; /* the network's, on the host */
    const struct replica_sink *sink;
    size_t n; /* numbers that were given */
};

static as_status give_tensor(void *arg, size_t first, size_t n, struct as_err *err)
{
    struct giving *g = arg;
    (void)err;
    g->n += n;
    g->sink->take(g->sink->arg, first, g->gradient + first, n);
    return AS_OK;
}

/* Whoever wants the factors computes the product. */
static as_status give_factors(void *arg, size_t first, const struct linear_args *a,
                              struct tensor dy, bool *ret_taken, struct as_err *err)
{
    const struct giving *g = arg;
    float *left = NULL, *right = NULL;
    *ret_taken = g->sink->factors(g->sink->arg, first, a->batch, &left, &right);
    if (!*ret_taken)
        return AS_OK;
    as_status st = buf_download(a->x.buf, a->x.offset, left, a->batch * a->in, err);
    return st < 0 ? st : buf_download(dy.buf, dy.offset, right, a->batch * a->out, err);
}

/* The gradient from a device: if it is wanted early, in pieces that leave while others are
 * computed. */
static as_status give_from_device(struct learner *l, struct backend *lane, size_t micro,
                                  const struct replica_sink *sink, struct as_err *err)
{
    const float *values = NULL;
    struct giving g = {.sink = sink};
    struct grads_watch factors = {.on_factors = give_factors, .arg = &g};
    if (sink->early)
        return learner_device_give(l->device, lane, micro, sink->take, sink->arg, err);
    as_status st = lockstep_gradients(l->ls, lane, 0, micro, sink->factors ? &factors : NULL, err);
    if (st < 0 || (st = learner_device_read(l->device, &values, err)) < 0)
        return st;
    sink->take(sink->arg, 0, values, l->replica.n_params);
    return AS_OK;
}

/* The whole gradient, which lies with padding. */
static as_status give_read(struct learner *l, const struct replica_sink *sink, struct as_err *err)
{
    struct lockstep *ls = l->ls;
    size_t n = l->replica.n_params;
    if (!l->gradient && !(l->gradient = as_calloc(n, sizeof *l->gradient)))
        return as_fail_nomem(err);
    as_status st = network_read(ls->network, network_gradients(ls->network), 0, member_of(l)->plan,
                                l->gradient, err);
    if (st == AS_OK)
        sink->take(sink->arg, 0, l->gradient, n);
    return st;
}

/* The gradient's numbers for the parameters. They are given while the backward pass runs, if
 * somebody wants them early and can read them then. */
static as_status give_params(struct learner *l, struct backend *lane, size_t micro,
                             const struct replica_sink *sink, struct as_err *err)
{
    struct lockstep *ls = l->ls;
    if (l->device)
        return give_from_device(l, lane, micro, sink, err);
    size_t n = l->replica.n_params;
    bool whole = n == ls->plan->n_params;
    struct giving g = {.gradient = whole ? buf_host(network_gradients(ls->network)) : NULL,
                       .sink = sink};
    bool early = g.gradient && sink->early;
    struct grads_watch watch = {.on_grads = early ? give_tensor : NULL,
                                .on_factors = sink->factors ? give_factors : NULL,
                                .arg = &g};
    bool watches = watch.on_grads || watch.on_factors;
    as_status st = lockstep_gradients(ls, lane, 0, micro, watches ? &watch : NULL, err);
    if (st < 0)
        return st;
    if (!g.gradient)
        return give_read(l, sink, err);
    if (!early)
        return give_tensor(&g, 0, n, err);
    return g.n == n ? AS_OK
                    : as_fail(err, AS_E_INTERNAL, "%zu of %zu gradients were reported", g.n, n);
}

static as_status give_all(struct learner *l, struct backend *lane, size_t micro,
                          const struct replica_sink *sink, struct as_err *err)
{
    struct lockstep *ls = l->ls;
    struct buf *loss = ls->losses->train.loss;
    size_t n = l->replica.n_params, n_state = l->replica.n_state;
    float *now = l->statistics + n_state, sum = 0;
    as_status st;
    if ((st = loss_sums_clear(&ls->losses->train, 0, 1, err)) < 0 ||
        (st = give_params(l, lane, micro, sink, err)) < 0 ||
        (st = network_read_state(ls->network, 0, now, err)) < 0 ||
        (st = buf_download(loss, 0, &sum, 1, err)) < 0)
        return st;
    if (n_state > 0)
        sink->take(sink->arg, n, now, n_state);
    sink->take(sink->arg, n + n_state, &sum, 1);
    return AS_OK;
}

/* Each shard begins with the statistics of before the step, and its loss is summed by itself; so
 * both are put back. */
static as_status replica_gradient_taken(void *self, struct backend *lane, int64_t ahead,
                                        uint32_t shard, const struct replica_sink *sink,
                                        struct as_err *err)
{
    struct learner *l = self;
    struct lockstep *ls = l->ls;
    struct buf *loss = ls->losses->train.loss;
    float loss_before = 0;
    size_t micro = batch_start(member_of(l), ahead) + shard;
    as_status st;
    if ((st = network_read_state(ls->network, 0, l->statistics, err)) < 0 ||
        (st = buf_download(loss, 0, &loss_before, 1, err)) < 0 ||
        (st = give_all(l, lane, micro, sink, err)) < 0 ||
        (st = network_write_state(ls->network, 0, l->statistics, err)) < 0)
        return st;
    return buf_upload(loss, 0, &loss_before, 1, err);
}

static void copy_numbers(void *arg, size_t first, const float *values, size_t n)
{
    memcpy((float *)arg + first, values, n * sizeof *values);
}

static as_status replica_gradient(void *self, struct backend *lane, int64_t ahead, uint32_t shard,
                                  float *to, struct as_err *err)
{
    const struct replica_sink sink = {.take = copy_numbers, .arg = to};
    return replica_gradient_taken(self, lane, ahead, shard, &sink, err);
}

static as_status replica_product(void *self, struct backend *lane, size_t index, size_t pairs,
                                 const float *left, const float *right, const float **ret,
                                 struct as_err *err)
{
    struct learner *l = self;
    const struct outer_product p = {.rows = l->tensors[index].rows,
                                    .cols = l->tensors[index].cols,
                                    .pairs = pairs,
                                    .left = left,
                                    .right = right};
    return learner_product_run(&l->product, lane, &p, ret, err);
}

static as_status replica_gradient_on_device(void *self, struct backend *lane, int64_t ahead,
                                            uint32_t shard, struct buf *to, struct as_err *err)
{
    struct learner *l = self;
    if (!l->device)
        return as_fail(err, AS_E_UNSUPPORTED, "this replica's numbers are not whole on a device");
    return learner_device_gradient(l->device, lane, batch_start(member_of(l), ahead) + shard,
                                   replica_share(self, ahead, shard), to, err);
}

/* ---- steps ---- */

/* Where the optimizer expects the gradient of a batch. */
static struct buf *batch_gradient(const struct lockstep *ls)
{
    return ls->traits[0].needs.accumulate ? ls->optimizer->sum : network_gradients(ls->network);
}

/* The step, when the gradient is where it expects it. `behind`: statistics and loss. */
static as_status update_with_gradient(struct learner *l, struct backend *lane, const float *behind,
                                      struct as_err *err)
{
    struct lockstep *ls = l->ls;
    struct member *m = member_of(l);
    uint32_t shards = shards_of(m, 0);
    float loss = 0;
    as_status st = buf_download(ls->losses->train.loss, 0, &loss, 1, err);
    if (st < 0)
        return st;
    loss += behind[l->replica.n_state];
    if ((st = network_write_state(ls->network, 0, behind, err)) < 0 ||
        (st = buf_upload(ls->losses->train.loss, 0, &loss, 1, err)) < 0 ||
        (st = lockstep_update(ls, lane, 0, m->at + shards - 1, err)) < 0)
        return st;
    m->at += shards;
    return AS_OK;
}

static as_status replica_update(void *self, struct backend *lane, const float *sum,
                                struct as_err *err)
{
    struct learner *l = self;
    struct lockstep *ls = l->ls;
    as_status st = network_write(ls->network, batch_gradient(ls), 0, member_of(l)->plan, sum, err);
    return st < 0 ? st : update_with_gradient(l, lane, sum + l->replica.n_params, err);
}

static as_status replica_update_on_device(void *self, struct backend *lane, const struct buf *sum,
                                          const float *behind, struct as_err *err)
{
    struct learner *l = self;
    as_status st = buf_copy(batch_gradient(l->ls), 0, sum, 0, l->replica.n_params, err);
    return st < 0 ? st : update_with_gradient(l, lane, behind, err);
}

static as_status replica_params_get(void *self, size_t first, size_t n, float *ret,
                                    struct as_err *err)
{
    struct learner *l = self;
    return buf_download(network_params(l->ls->network), first, ret, n, err);
}

/* Clips `sum`, as the optimizer would. *ret_active: the model is not frozen. */
static as_status clip_sum(struct learner *l, struct backend *lane, float *sum, bool *ret_active,
                          struct as_err *err)
{
    struct lockstep *ls = l->ls;
    const struct member *m = member_of(l);
    struct optimizer_needs needs = ls->traits[0].needs;
    struct buf *gradient = batch_gradient(ls);
    float max_norm = (float)m->spec.optimizer.clip_norm;
    int32_t active = 1;
    as_status st;
    if (needs.clip && ((st = network_write(ls->network, gradient, 0, m->plan, sum, err)) < 0 ||
                       (st = buf_upload(l->number, 0, &max_norm, 1, err)) < 0 ||
                       (st = optimizer_clip(ls->optimizer, lane, 0, needs,
                                            tensor_at(l->number, 0, 1), err)) < 0 ||
                       (st = backend_sync(lane, err)) < 0 ||
                       (st = network_read(ls->network, gradient, 0, m->plan, sum, err)) < 0))
        return st;
    st = buf_download(ls->optimizer->active, 0, &active, 1, err);
    *ret_active = active != 0;
    return st;
}

/* Weights, statistics, loss and counters after a step. */
static as_status put_step(struct learner *l, struct backend *lane, const float *params,
                          const float *sum, bool active, struct as_err *err)
{
    struct lockstep *ls = l->ls;
    const struct replica *r = &l->replica;
    const struct member *m = member_of(l);
    float loss = 0, decay = (float)m->spec.optimizer.ema;
    int32_t steps = 0;
    as_status st;
    if ((st = buf_download(ls->losses->train.loss, 0, &loss, 1, err)) < 0 ||
        (st = buf_download(ls->optimizer->step, 0, &steps, 1, err)) < 0)
        return st;
    loss += sum[r->n_params + r->n_state];
    steps += active;
    if ((st = network_write(ls->network, network_params(ls->network), 0, m->plan, params, err)) <
            0 ||
        (st = network_write_state(ls->network, 0, sum + r->n_params, err)) < 0 ||
        (st = buf_upload(ls->losses->train.loss, 0, &loss, 1, err)) < 0 ||
        (st = buf_upload(ls->optimizer->step, 0, &steps, 1, err)) < 0 ||
        (st = buf_upload(l->number, 0, &decay, 1, err)) < 0 ||
        (st = optimizer_average(ls->optimizer, lane, 0, tensor_at(l->number, 0, 1), err)) < 0)
        return st;
    return backend_sync(lane, err); /* the number is used again */
}

static as_status replica_update_with(void *self, struct backend *lane, float *sum,
                                     as_status (*step)(void *arg, const float *grads, float *params,
                                                       struct as_err *err),
                                     void *arg, struct as_err *err)
{
    struct learner *l = self;
    struct member *m = member_of(l);
    size_t n = l->replica.n_params;
    uint32_t shards = shards_of(m, 0);
    bool active = true;
    as_status st;
    if (!l->params && !(l->params = as_calloc(n, sizeof *l->params)))
        return as_fail_nomem(err);
    if (!l->number && (st = buf_create(l->ls->setup->be, BUF_F32, 1, &l->number, err)) < 0)
        return st;
    if ((st = clip_sum(l, lane, sum, &active, err)) < 0 ||
        (st = replica_params_get(l, 0, n, l->params, err)) < 0)
        return st;
    if (active && (st = step(arg, sum, l->params, err)) < 0)
        return st;
    if ((st = put_step(l, lane, l->params, sum, active, err)) < 0)
        return st;
    m->at += shards;
    return AS_OK;
}

static as_status replica_local_step(void *self, struct backend *lane, int64_t ahead, uint32_t shard,
                                    struct as_err *err)
{
    struct learner *l = self;
    struct lockstep *ls = l->ls;
    const struct member *m = member_of(l);
    struct buf *from = network_gradients(ls->network), *to = batch_gradient(ls);
    size_t start = batch_start(m, ahead);
    as_status st = lockstep_gradients(ls, lane, 0, start + shard, NULL, err);
    if (st == AS_OK && from != to)
        st = buf_copy(to, 0, from, 0, ls->plan->n_params, err);
    if (st < 0)
        return st;
    return lockstep_update(ls, lane, 0, start + shards_of(m, ahead) - 1, err);
}

static void replica_advance(void *self, int64_t steps)
{
    struct member *m = member_of(self);
    size_t at = batch_start(m, steps);
    m->at = at < m->layout.micro_steps ? at : m->layout.micro_steps;
}

static as_status replica_update_slice(void *self, struct backend *lane, int64_t step,
                                      int32_t steps_done, const struct replica_slice *s,
                                      struct as_err *err)
{
    struct learner *l = self;
    const struct member *m = member_of(l);
    float lr = (float)schedule_lr(&m->spec, step, m->layout.steps_per_epoch);
    as_status st =
        l->slices ? AS_OK : slice_update_create(l->ls->optimizer, &m->spec, &l->slices, err);
    if (st < 0)
        return st;
    return slice_update_run(l->slices, lane, lr, steps_done, s->n, s->params, s->grads, s->moment1,
                            s->moment2, err);
}

/* ---- slices, in another thread ---- */

struct own_updater {
    struct slice_updater updater; /* first */
    struct backend *be;           /* of its own: a back end is for one thread */
    struct slice_update *slices;
    const struct train_spec *spec; /* the member's */
    int64_t steps_per_epoch;
};

static as_status own_update(struct slice_updater *u, int64_t step, int32_t steps_done,
                            const struct replica_slice *s, struct as_err *err)
{
    struct own_updater *o = (struct own_updater *)u;
    float lr = (float)schedule_lr(o->spec, step, o->steps_per_epoch);
    return slice_update_run(o->slices, o->be, lr, steps_done, s->n, s->params, s->grads, s->moment1,
                            s->moment2, err);
}

static void own_updater_free(struct slice_updater *u)
{
    struct own_updater *o = (struct own_updater *)u;
    if (!o)
        return;
    slice_update_free(o->slices);
    backend_free(o->be);
    free(o);
}

static as_status replica_updater_new(void *self, struct backend *lane, struct slice_updater **ret,
                                     struct as_err *err)
{
    const struct member *m = member_of(self);
    const char *name = as_streq(backend_name(lane), "reference") ? "reference" : "cpu";
    struct own_updater *o = as_calloc(1, sizeof *o);
    if (!o)
        return as_fail_nomem(err);
    o->updater = (struct slice_updater){own_update, own_updater_free};
    o->spec = &m->spec;
    o->steps_per_epoch = m->layout.steps_per_epoch;
    as_status st = backend_open(name, NULL, &o->be, err);
    if (st == AS_OK)
        st = slice_update_create_on(o->be, o->spec, &o->slices, err);
    if (st == AS_OK)
        *ret = &o->updater;
    else
        own_updater_free(&o->updater);
    return st;
}

/* ---- the whole state ---- */

static as_status replica_state_new(void *self, struct slot_state *ret, struct as_err *err)
{
    struct slot place = lockstep_slot(((struct learner *)self)->ls, 0);
    return slot_state_create(&place, ret, err);
}

static as_status replica_state_get(void *self, struct slot_state *s, struct as_err *err)
{
    struct slot place = lockstep_slot(((struct learner *)self)->ls, 0);
    return slot_state_read(&place, s, err);
}

static as_status replica_state_put(void *self, const struct slot_state *s, struct as_err *err)
{
    struct slot place = lockstep_slot(((struct learner *)self)->ls, 0);
    return slot_state_put(&place, s, err);
}

static const struct replica_ops replica_ops = {
    .step = replica_step,
    .shards = replica_shards,
    .share = replica_share,
    .rate = replica_rate,
    .rows = replica_rows,
    .hold = replica_hold,
    .gradient = replica_gradient,
    .product = replica_product,
    .gradient_on_device = replica_gradient_on_device,
    .gradient_taken = replica_gradient_taken,
    .update = replica_update,
    .update_on_device = replica_update_on_device,
    .update_with = replica_update_with,
    .params_get = replica_params_get,
    .local_step = replica_local_step,
    .advance = replica_advance,
    .state_new = replica_state_new,
    .state_get = replica_state_get,
    .state_put = replica_state_put,
    .update_slice = replica_update_slice,
    .updater_new = replica_updater_new,
};

/* ---- life ---- */

void learner_free(struct learner *l)
{
    if (!l)
        return;
    learner_device_free(l->device);
    learner_blocks_free(l->blocks);
    learner_product_done(&l->product);
    free(l->tensors);
    free(l->statistics);
    free(l->gradient);
    slice_update_free(l->slices);
    free(l->params);
    buf_free(l->number);
    free(l);
}

/* A tensor with several dimensions is a matrix: its first dimension by the others. */
static struct replica_tensor tensor_of(const struct net_tensor *t)
{
    struct replica_tensor r = {.first = t->offset, .rows = t->count, .cols = 1};
    if (t->n_dims >= 2 && t->dims[0] > 0) {
        r.rows = t->dims[0];
        r.cols = t->count / t->dims[0];
    }
    return r;
}

/* A linear layer has one pair of factors for each place of a row (a token, or the row itself). With
 * padding, and with privacy, whose gradient is clipped and has noise, there are none. */
static void find_factors(struct learner *l, const struct member *m)
{
    const struct net_plan *plan = m->plan;
    for (size_t i = 1; i < plan->n_nodes && plan->n_params == l->ls->plan->n_params; i++) {
        const struct net_node *n = &plan->nodes[i];
        if (n->op == NET_LINEAR && !m->spec.privacy.given)
            l->tensors[n->weight].pairs = n->out.height * n->out.width;
    }
}

as_status learner_create(struct lockstep *ls, struct learner **ret, struct as_err *err)
{
    const struct member *m = ls->member[0];
    const struct net_plan *plan = m->plan;
    AS_AUTO(learner_freep) struct learner *l = as_calloc(1, sizeof *l);
    if (!l)
        return as_fail_nomem(err);
    l->ls = ls;
    l->tensors = as_calloc(plan->n_tensors, sizeof *l->tensors);
    l->statistics = as_calloc(2 * plan->n_state, sizeof *l->statistics);
    if (!l->tensors || !l->statistics)
        return as_fail_nomem(err);
    for (size_t i = 0; i < plan->n_tensors; i++)
        l->tensors[i] = tensor_of(&plan->tensors[i]);
    find_factors(l, m);
    l->replica = (struct replica){.ops = &replica_ops,
                                  .self = l,
                                  .n_params = plan->n_params,
                                  .n_state = plan->n_state,
                                  .n_numbers = plan->n_params + plan->n_state + 1,
                                  .max_shards = (uint32_t)m->layout.per_batch,
                                  .has_moment2 = ls->traits[0].needs.second,
                                  .tensors = l->tensors,
                                  .n_tensors = plan->n_tensors};
    as_status st = m->divides_layers ? learner_blocks_create(ls, &l->blocks, err)
                                     : learner_device_create(ls, &l->device, err);
    if (st < 0)
        return st;
    l->replica.blocks = l->blocks ? learner_blocks_replica(l->blocks) : NULL;
    *ret = as_steal(l);
    return AS_OK;
}

struct replica *learner_replica(struct learner *l)
{
    return &l->replica;
}

bool learner_is_on_device(const struct learner *l)
{
    return l->device != NULL;
}
