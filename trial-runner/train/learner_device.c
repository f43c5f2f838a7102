/* A gradient that leaves early: each tensor is copied out as soon as the operations that make it
 * have been called, on the stream of copies, behind them and beside what comes after. The host
 * calls the operations of a pass much faster than the device does them; so most pieces are given
 * away when all was called, one after another as they come, while the device is still at the first
 * layers. Whoever takes a piece may begin to send it (distributed/buckets.h).
 *
 * Such a pass is called operation by operation, and not as a recorded graph: a graph would tell
 * nobody how far it is. */
#include "trial-runner/train/learner_device.h"

#include <stdlib.h>

struct learner_device {
    struct lockstep *ls; /* gone before this is freed */
    struct backend *be;
    size_t n_params, n_state;
    struct buf *share, *begins; /* [1]: the scale, and I32 1: the old values do not count */
    struct buf *before;         /* [n_state + 1]: statistics and loss of before a shard */
    float *landed;              /* [n_params], page-locked; when first needed */
    struct piece *pieces;       /* [most_pieces] */
    size_t most_pieces;
};

/* Part of a gradient on its way. */
struct piece {
    size_t first, n;
    uint64_t copy;
};

void learner_device_free(struct learner_device *d)
{
    if (!d)
        return;
    buf_free(d->share);
    buf_free(d->begins);
    buf_free(d->before);
    backend_host_free(d->be, d->landed);
    free(d->pieces);
    free(d);
}

static as_status make_buffers(struct learner_device *d, struct as_err *err)
{
    struct backend *be = d->be;
    as_status st;
    if ((st = buf_create(be, BUF_F32, 1, &d->share, err)) < 0 ||
        (st = buf_create(be, BUF_I32, 1, &d->begins, err)) < 0 ||
        (st = buf_fill_i32(d->begins, 0, 1, 1, err)) < 0)
        return st;
    return buf_create(be, BUF_F32, d->n_state + 1, &d->before, err);
}

as_status learner_device_create(struct lockstep *ls, struct learner_device **ret,
                                struct as_err *err)
{
    const struct net_plan *own = ls->member[0]->plan;
    size_t free_bytes, total_bytes;
    as_status st = backend_memory(ls->setup->be, &free_bytes, &total_bytes, err);
    *ret = NULL;
    if (st < 0 || total_bytes == 0 || own->n_params != ls->plan->n_params)
        return st;
    AS_AUTO(learner_device_freep) struct learner_device *d = as_calloc(1, sizeof *d);
    if (!d)
        return as_fail_nomem(err);
    *d = (struct learner_device){.ls = ls,
                                 .be = ls->setup->be,
                                 .n_params = own->n_params,
                                 .n_state = own->n_state,
                                 .most_pieces = own->n_tensors};
    d->pieces = as_calloc(d->most_pieces, sizeof *d->pieces);
    if (!d->pieces)
        return as_fail_nomem(err);
    if ((st = make_buffers(d, err)) == AS_OK)
        *ret = as_steal(d);
    return st;
}

/* ---- on the device ---- */

/* to [n] at `at` = share x from [n]. */
static as_status scale_into(struct learner_device *d, struct backend *lane, struct buf *from,
                            size_t n, struct buf *to, size_t at, struct as_err *err)
{
    struct grad_accumulate_args a = {.members = 1,
                                     .n = n,
                                     .grads = tensor_at(from, 0, n),
                                     .sum = tensor_at(to, at, n),
                                     .scale = tensor_at(d->share, 0, 1),
                                     .first = tensor_at(d->begins, 0, 1)};
    return n == 0 ? AS_OK : backend_grad_accumulate(lane, &a, err);
}

/* Each shard begins with the statistics of before the step, and its loss is summed by itself. */
static as_status keep(struct learner_device *d, struct as_err *err)
{
    struct buf *state = network_state(d->ls->network), *loss = d->ls->losses->train.loss;
    as_status st = buf_copy(d->before, d->n_state, loss, 0, 1, err);
    return st < 0 || !state ? st : buf_copy(d->before, 0, state, 0, d->n_state, err);
}

static as_status put_back(struct learner_device *d, struct as_err *err)
{
    struct buf *state = network_state(d->ls->network), *loss = d->ls->losses->train.loss;
    as_status st = buf_copy(loss, 0, d->before, d->n_state, 1, err);
    return st < 0 || !state ? st : buf_copy(state, 0, d->before, 0, d->n_state, err);
}

as_status learner_device_gradient(struct learner_device *d, struct backend *lane, size_t micro,
                                  float share, struct buf *to, struct as_err *err)
{
    struct lockstep *ls = d->ls;
    struct network *net = ls->network;
    struct buf *loss = ls->losses->train.loss;
    size_t n = d->n_params;
    as_status st;
    if ((st = keep(d, err)) < 0 || (st = loss_sums_clear(&ls->losses->train, 0, 1, err)) < 0 ||
        (st = lockstep_gradients(ls, lane, 0, micro, NULL, err)) < 0 ||
        (st = buf_fill_f32(d->share, 0, 1, share, err)) < 0 ||
        (st = scale_into(d, lane, network_gradients(net), n, to, 0, err)) < 0 ||
        (st = scale_into(d, lane, network_state(net), d->n_state, to, n, err)) < 0 ||
        (st = buf_copy(to, n + d->n_state, loss, 0, 1, err)) < 0)
        return st;
    return put_back(d, err);
}

/* ---- to the host ---- */

static as_status need_landed(struct learner_device *d, struct as_err *err)
{
    void *p = NULL;
    if (d->landed)
        return AS_OK;
    as_status st = backend_host_alloc(d->be, d->n_params, &p, err);
    d->landed = p;
    return st;
}

/* Pieces that leave, in order; those before `given` have been taken. */
struct leaving {
    struct learner_device *d;
    size_t n, given, n_params;
    void (*take)(void *arg, size_t first, const float *values, size_t n);
    void *arg;
};

/* Gives away what has come; with `wait`, all. */
static as_status give_landed(struct leaving *l, bool wait, struct as_err *err)
{
    struct learner_device *d = l->d;
    while (l->given < l->n) {
        const struct piece *p = &d->pieces[l->given];
        bool there = false;
        as_status st = backend_copied(d->be, p->copy, wait, &there, err);
        if (st < 0 || !there)
            return st;
        l->given++;
        l->take(l->arg, p->first, d->landed + p->first, p->n);
    }
    return AS_OK;
}

static as_status leave(void *arg, size_t first, size_t n, struct as_err *err)
{
    struct leaving *l = arg;
    struct learner_device *d = l->d;
    if (l->n == d->most_pieces)
        return as_fail(err, AS_E_INTERNAL, "more than %zu gradients were reported", l->n);
    struct piece *p = &d->pieces[l->n];
    *p = (struct piece){.first = first, .n = n};
    as_status st = buf_download_begin(network_gradients(d->ls->network), first, d->landed + first,
                                      n, &p->copy, err);
    if (st < 0)
        return st;
    l->n++;
    l->n_params += n;
    return give_landed(l, false, err);
}

as_status learner_device_give(struct learner_device *d, struct backend *lane, size_t micro,
                              void (*take)(void *arg, size_t first, const float *values, size_t n),
                              void *arg, struct as_err *err)
{
    struct leaving l = {.d = d, .take = take, .arg = arg};
    struct grads_watch tensors = {.on_grads = leave, .arg = &l};
    as_status st = need_landed(d, err);
    if (st < 0 || (st = lockstep_gradients(d->ls, lane, 0, micro, &tensors, err)) < 0 ||
        (st = give_landed(&l, true, err)) < 0)
        return st;
    return l.n_params == d->n_params
               ? AS_OK
               : as_fail(err, AS_E_INTERNAL, "%zu of %zu gradients were reported", l.n_params,
                         d->n_params);
}

as_status learner_device_read(struct learner_device *d, const float **ret, struct as_err *err)
{
    uint64_t copy = 0;
    bool there = false;
    as_status st = need_landed(d, err);
    if (st < 0 ||
        (st = buf_download_begin(network_gradients(d->ls->network), 0, d->landed, d->n_params,
                                 &copy, err)) < 0 ||
        (st = backend_copied(d->be, copy, true, &there, err)) < 0)
        return st;
    *ret = d->landed;
    return AS_OK;
}
