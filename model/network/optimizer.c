/* The optimizers of a network's members.
 *
 * The members of a range may have different optimizers. What differs is data on the device: kind,
 * rates and hyperparameters are tensors with one element for each slot, and one kernel call updates
 * all members. `hyper` has one row for each hyperparameter, because the kernel takes a tensor for
 * each.
 *
 * A step adds the gradients of a micro-batch, clips them, updates the parameters and updates their
 * average. The host omits parts that no member of the range needs. Whether the batch of a member is
 * complete is in the step table: with the kind -1 its weights do not change. */
#include "model/network/optimizer.h"

#include "model/network/network_priv.h"

enum { HYPER_DECAY, HYPER_MOMENTUM, HYPER_BETA1, HYPER_BETA2, HYPER_EPS, N_HYPER };

_Static_assert((int)TRAIN_SGD == (int)OPT_SGD && (int)TRAIN_ADAM == (int)OPT_ADAM &&
                   (int)TRAIN_ADAMW == (int)OPT_ADAMW && (int)TRAIN_RMSPROP == (int)OPT_RMSPROP &&
                   (int)TRAIN_LAMB == (int)OPT_LAMB && (int)TRAIN_LION == (int)OPT_LION &&
                   (int)TRAIN_ADAGRAD == (int)OPT_ADAGRAD,
               "the document's kinds are the kernel's");

struct optimizer_needs optimizer_needs_of(const struct train_spec *spec)
{
    const struct train_optimizer_spec *o = &spec->optimizer;
    bool none = o->kind == TRAIN_SGD || o->kind == TRAIN_LION || o->kind == TRAIN_LBFGS;
    return (struct optimizer_needs){.second = !none,
                                    .norms = o->kind == TRAIN_LAMB,
                                    .accumulate = spec->batch_size > spec->micro_batch,
                                    .average = o->ema > 0,
                                    .clip = o->clip_norm > 0};
}

struct optimizer_needs optimizer_needs_both(struct optimizer_needs a, struct optimizer_needs b)
{
    return (struct optimizer_needs){
        a.second || b.second,   a.norms || b.norms, a.accumulate || b.accumulate,
        a.average || b.average, a.clip || b.clip,   a.divided || b.divided};
}

void optimizer_free(struct optimizer *o)
{
    if (!o)
        return;
    buf_free(o->m1);
    buf_free(o->m2);
    buf_free(o->sum);
    buf_free(o->average);
    buf_free(o->norms);
    buf_free(o->step);
    buf_free(o->active);
    buf_free(o->hyper);
    buf_free(o->nesterov);
    buf_free(o->sq_norm);
    buf_free(o->finite);
    free(o->segments);
    free(o);
}

static as_status create_arenas(struct optimizer *o, struct optimizer_needs needs,
                               struct as_err *err)
{
    struct backend *be = o->network->be;
    size_t n = o->slots * o->n_params; /* no overflow: the network's arena has this size */
    as_status st = needs.divided ? AS_OK : buf_create(be, BUF_F32, n, &o->m1, err);
    if (st != AS_OK)
        return st;
    if (needs.second && !needs.divided)
        st = buf_create(be, BUF_F32, n, &o->m2, err);
    if (st != AS_OK)
        return st;
    if (needs.accumulate)
        st = buf_create(be, BUF_F32, n, &o->sum, err);
    if (st != AS_OK)
        return st;
    if (needs.average)
        st = buf_create(be, BUF_F32, n, &o->average, err);
    if (st != AS_OK)
        return st;
    if (needs.norms)
        st = buf_create(be, BUF_F32, o->slots * 2 * (o->network->plan->n_tensors + 1), &o->norms,
                        err);
    return st;
}

static as_status create_numbers(struct optimizer *o, struct as_err *err)
{
    struct backend *be = o->network->be;
    as_status st = buf_create(be, BUF_I32, o->slots, &o->step, err);
    if (st != AS_OK)
        return st;
    st = buf_create(be, BUF_I32, o->slots, &o->active, err);
    if (st != AS_OK)
        return st;
    st = buf_create(be, BUF_F32, N_HYPER * o->slots, &o->hyper, err);
    if (st != AS_OK)
        return st;
    st = buf_create(be, BUF_I32, o->slots, &o->nesterov, err);
    if (st != AS_OK)
        return st;
    st = buf_create(be, BUF_F32, o->slots, &o->sq_norm, err);
    if (st != AS_OK)
        return st;
    return buf_create(be, BUF_I32, o->slots, &o->finite, err);
}

as_status optimizer_create(struct network *network, struct optimizer_needs needs,
                           struct optimizer **ret, struct as_err *err)
{
    const struct net_plan *plan = network->plan;
    AS_AUTO(optimizer_freep) struct optimizer *o = as_calloc(1, sizeof *o);
    if (!o)
        return as_fail_nomem(err);
    *o =
        (struct optimizer){.network = network, .slots = network->slots, .n_params = plan->n_params};
    o->segments = as_calloc(plan->n_tensors, sizeof *o->segments);
    if (!o->segments)
        return as_fail_nomem(err);
    for (size_t i = 0; i < plan->n_tensors; i++)
        o->segments[i] = plan->tensors[i].offset;
    as_status st = create_arenas(o, needs, err);
    if (st != AS_OK)
        return st;
    st = create_numbers(o, err);
    if (st != AS_OK)
        return st;
    *ret = as_steal(o);
    return AS_OK;
}

size_t optimizer_bytes(const struct net_plan *plan, struct optimizer_needs needs)
{
    size_t moments = needs.divided ? 0 : 1 + (size_t)needs.second;
    size_t arenas = moments + (size_t)needs.accumulate + (size_t)needs.average;
    size_t norms = needs.norms ? 2 * (plan->n_tensors + 1) : 0;
    return (arenas * plan->n_params + norms + N_HYPER + 5) * 4;
}

static as_status clear_slot(struct buf *b, size_t slot, size_t n, struct as_err *err)
{
    return b ? buf_fill_f32(b, slot * n, n, 0, err) : AS_OK;
}

as_status optimizer_join(struct optimizer *o, size_t slot, const struct train_spec *spec,
                         struct as_err *err)
{
    const struct train_optimizer_spec *s = &spec->optimizer;
    const float values[N_HYPER] = {
        [HYPER_DECAY] = (float)s->weight_decay,
        [HYPER_MOMENTUM] = (float)s->momentum,
        [HYPER_BETA1] = (float)s->beta1,
        [HYPER_BETA2] = (float)s->beta2,
        [HYPER_EPS] = (float)s->eps,
    };
    size_t n = o->n_params;
    as_status st = clear_slot(o->m1, slot, n, err);
    if (st != AS_OK)
        return st;
    st = clear_slot(o->m2, slot, n, err);
    if (st != AS_OK)
        return st;
    if (o->average)
        st = buf_copy(o->average, slot * n, o->network->params, slot * n, n, err);
    if (st != AS_OK)
        return st;
    st = buf_fill_i32(o->step, slot, 1, 0, err);
    if (st != AS_OK)
        return st;
    st = buf_fill_i32(o->active, slot, 1, 1, err);
    if (st != AS_OK)
        return st;
    st = buf_fill_i32(o->nesterov, slot, 1, s->nesterov, err);
    if (st != AS_OK)
        return st;
    for (size_t i = 0; i < N_HYPER; i++) {
        st = buf_fill_f32(o->hyper, i * o->slots + slot, 1, values[i], err);
        if (st != AS_OK)
            return st;
    }
    return AS_OK;
}

/* ---- a step ---- */

/* A buffer [slots, n] as a tensor from slot `first` on; absent if there is no buffer. */
static struct tensor tensor_of_slots(struct buf *b, size_t n, size_t first)
{
    return b ? tensor_at(b, first * n, n) : tensor_none();
}

static struct tensor hyper_of_slots(const struct optimizer *o, size_t which, size_t first)
{
    return tensor_at(o->hyper, which * o->slots + first, 1);
}

static as_status accumulate_gradients(struct optimizer *o, struct backend *lane, size_t first,
                                      size_t n, const struct micro_step *step, struct as_err *err)
{
    struct grad_accumulate_args a = {.members = n,
                                     .n = o->n_params,
                                     .grads =
                                         tensor_of_slots(o->network->grads, o->n_params, first),
                                     .sum = tensor_of_slots(o->sum, o->n_params, first),
                                     .scale = tensor_from(step->scale, first),
                                     .first = tensor_from(step->first, first)};
    return backend_grad_accumulate(lane, &a, err);
}

static as_status clip_gradients(struct optimizer *o, struct backend *lane, size_t first, size_t n,
                                struct tensor grads, struct tensor max_norm, struct as_err *err)
{
    struct grad_stats_args stats = {.members = n,
                                    .n = o->n_params,
                                    .grads = grads,
                                    .sq_norm = tensor_of_slots(o->sq_norm, 1, first),
                                    .finite = tensor_of_slots(o->finite, 1, first),
                                    .active = tensor_of_slots(o->active, 1, first)};
    struct grad_clip_args a = {.members = n,
                               .n = o->n_params,
                               .grads = grads,
                               .sq_norm = stats.sq_norm,
                               .max_norm = max_norm};
    as_status st = backend_grad_stats(lane, &stats, err);
    if (st != AS_OK)
        return st;
    return backend_grad_clip(lane, &a, err);
}

static as_status update_params(struct optimizer *o, struct backend *lane, size_t first, size_t n,
                               struct tensor grads, const struct micro_step *step, bool norms,
                               struct as_err *err)
{
    struct tensor work = tensor_of_slots(o->norms, 2 * (o->network->plan->n_tensors + 1), first);
    struct opt_args a = {
        .members = n,
        .n = o->n_params,
        .kind = tensor_from(step->kind, first),
        .params = tensor_of_slots(o->network->params, o->n_params, first),
        .grads = grads,
        .m1 = tensor_of_slots(o->m1, o->n_params, first),
        .m2 = tensor_of_slots(o->m2, o->n_params, first),
        .lr = tensor_from(step->lr, first),
        .weight_decay = hyper_of_slots(o, HYPER_DECAY, first),
        .momentum = hyper_of_slots(o, HYPER_MOMENTUM, first),
        .nesterov = tensor_of_slots(o->nesterov, 1, first),
        .beta1 = hyper_of_slots(o, HYPER_BETA1, first),
        .beta2 = hyper_of_slots(o, HYPER_BETA2, first),
        .eps = hyper_of_slots(o, HYPER_EPS, first),
        .active = tensor_of_slots(o->active, 1, first),
        .step = tensor_of_slots(o->step, 1, first),
        .segments = o->segments,
        .n_segments = o->network->plan->n_tensors,
        /* without it a device launches nothing for LAMB: two kernels for each tensor */
        .work = norms ? work : tensor_none()};
    return backend_optimize(lane, &a, err);
}

/* Where the gradient of a whole batch is. */
static struct tensor batch_gradients(const struct optimizer *o, struct optimizer_needs needs,
                                     size_t first)
{
    return tensor_of_slots(needs.accumulate ? o->sum : o->network->grads, o->n_params, first);
}

static as_status average_weights(struct optimizer *o, struct backend *lane, size_t first, size_t n,
                                 struct tensor decay, struct as_err *err)
{
    struct ema_args a = {.members = n,
                         .n = o->n_params,
                         .params = tensor_of_slots(o->network->params, o->n_params, first),
                         .average = tensor_of_slots(o->average, o->n_params, first),
                         .decay = decay,
                         .active = tensor_of_slots(o->active, 1, first)};
    return backend_ema(lane, &a, err);
}

as_status optimizer_apply(struct optimizer *o, struct backend *lane, size_t first, size_t n,
                          const struct micro_step *step, struct optimizer_needs needs,
                          struct as_err *err)
{
    struct tensor grads = batch_gradients(o, needs, first);
    as_status st = AS_OK;
    if (needs.clip)
        st = clip_gradients(o, lane, first, n, grads, tensor_from(step->max_norm, first), err);
    if (st != AS_OK)
        return st;
    st = update_params(o, lane, first, n, grads, step, needs.norms, err);
    if (st != AS_OK || !needs.average)
        return st;
    return average_weights(o, lane, first, n, tensor_from(step->decay, first), err);
}

as_status optimizer_clip(struct optimizer *o, struct backend *lane, size_t slot,
                         struct optimizer_needs needs, struct tensor max_norm, struct as_err *err)
{
    return clip_gradients(o, lane, slot, 1, batch_gradients(o, needs, slot), max_norm, err);
}

as_status optimizer_average(struct optimizer *o, struct backend *lane, size_t slot,
                            struct tensor decay, struct as_err *err)
{
    return o->average ? average_weights(o, lane, slot, 1, decay, err) : AS_OK;
}

as_status optimizer_step(struct optimizer *o, struct backend *lane, size_t first, size_t n,
                         const struct micro_step *step, struct optimizer_needs needs, bool due,
                         struct as_err *err)
{
    as_status st = AS_OK;
    if (needs.accumulate)
        st = accumulate_gradients(o, lane, first, n, step, err);
    if (st != AS_OK || !due)
        return st;
    return optimizer_apply(o, lane, first, n, step, needs, err);
}
