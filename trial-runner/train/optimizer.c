#include "trial-runner/train/optimizer.h"

enum { HYPER_DECAY, HYPER_FIRST, HYPER_SECOND, HYPER_EPS, N_HYPER };

void optimizer_free(struct optimizer *o)
{
    if (!o)
        return;
    buf_free(o->moment1);
    buf_free(o->moment2);
    buf_free(o->step);
    buf_free(o->active);
    buf_free(o->hyper);
    buf_free(o->nesterov);
    buf_free(o->kinds);
    free(o);
}

static as_status create_buffers(struct optimizer *o, struct as_err *err)
{
    size_t n = o->members * o->n_params; /* no overflow: the model's arena has this size */
    as_status st = buf_create(o->be, BUF_F32, n, &o->moment1, err);
    if (st == AS_OK && o->kind == TRAIN_ADAMW)
        st = buf_create(o->be, BUF_F32, n, &o->moment2, err);
    if (st == AS_OK)
        st = buf_create(o->be, BUF_I32, o->members, &o->step, err);
    if (st == AS_OK)
        st = buf_create(o->be, BUF_I32, o->members, &o->active, err);
    if (st == AS_OK)
        st = buf_fill_i32(o->active, 0, o->members, 1, err);
    if (st == AS_OK)
        st = buf_create(o->be, BUF_F32, N_HYPER * o->members, &o->hyper, err);
    if (st == AS_OK)
        st = buf_create(o->be, BUF_I32, o->members, &o->nesterov, err);
    if (st == AS_OK)
        st = buf_create(o->be, BUF_I32, o->members, &o->kinds, err);
    if (st == AS_OK)
        st = buf_fill_i32(o->kinds, 0, o->members, o->kind == TRAIN_SGD ? OPT_SGD : OPT_ADAMW, err);
    return st;
}

static as_status upload_hyper(struct optimizer *o, size_t k, const struct train_optimizer_spec *s,
                              struct as_err *err)
{
    bool sgd = o->kind == TRAIN_SGD;
    float values[N_HYPER] = {
        [HYPER_DECAY] = (float)s->weight_decay,
        [HYPER_FIRST] = (float)(sgd ? s->momentum : s->beta1),
        [HYPER_SECOND] = (float)s->beta2,
        [HYPER_EPS] = (float)s->eps,
    };
    as_status st = AS_OK;
    for (size_t i = 0; st == AS_OK && i < N_HYPER; i++)
        st = buf_upload(o->hyper, i * o->members + k, &values[i], 1, err);
    return st < 0 ? st : buf_fill_i32(o->nesterov, k, 1, s->nesterov, err);
}

as_status optimizer_create(struct backend *be, const struct train_spec *const *specs,
                           size_t members, size_t n_params, struct optimizer **ret,
                           struct as_err *err)
{
    AS_AUTO(optimizer_freep) struct optimizer *o = as_calloc(1, sizeof *o);
    if (!o)
        return as_fail(err, AS_E_NOMEM, "out of memory");
    *o = (struct optimizer){
        .be = be, .kind = specs[0]->optimizer.kind, .members = members, .n_params = n_params};
    as_status st = create_buffers(o, err);
    for (size_t k = 0; st == AS_OK && k < members; k++)
        st = upload_hyper(o, k, &specs[k]->optimizer, err);
    if (st == AS_OK)
        *ret = as_steal(o);
    return st;
}

static struct tensor hyper(const struct optimizer *o, size_t which)
{
    return tensor_at(o->hyper, which * o->members, 1);
}

as_status optimizer_step(struct optimizer *o, struct buf *params, struct buf *grads,
                         struct tensor lr, struct as_err *err)
{
    size_t n = o->n_params;
    bool sgd = o->kind == TRAIN_SGD;
    struct opt_args a = {.members = o->members,
                         .n = n,
                         .kind = tensor_at(o->kinds, 0, 1),
                         .params = tensor_at(params, 0, n),
                         .grads = tensor_at(grads, 0, n),
                         .m1 = tensor_at(o->moment1, 0, n),
                         .m2 = sgd ? tensor_none() : tensor_at(o->moment2, 0, n),
                         .lr = lr,
                         .weight_decay = hyper(o, HYPER_DECAY),
                         .momentum = sgd ? hyper(o, HYPER_FIRST) : tensor_none(),
                         .nesterov = tensor_at(o->nesterov, 0, 1),
                         .beta1 = hyper(o, HYPER_FIRST),
                         .beta2 = hyper(o, HYPER_SECOND),
                         .eps = hyper(o, HYPER_EPS),
                         .active = tensor_at(o->active, 0, 1),
                         .step = tensor_at(o->step, 0, 1)};
    return backend_optimize(o->be, &a, err);
}
