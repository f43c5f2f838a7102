/* A network's optimizer kernel run with one member over a slice: the same kernel and
 * hyperparameters give the same bits as a whole update. The hyperparameters stay on the device; a
 * call uploads the rate, the number of steps and the slice. Room grows to the largest slice and
 * stays. */
#include "model/network/slice_update.h"

#include <stdlib.h>

#include "model/network/network_priv.h"

/* The hyperparameters of one member, and room for a slice. */
struct slice_update {
    struct backend *be;
    bool second;
    struct buf *numbers; /* [6] F32: rate, weight decay, momentum, beta1, beta2, eps */
    struct buf *words;   /* [3] I32: kind, nesterov, steps done */
    size_t room;         /* elements of the following */
    struct buf *params, *grads, *m1, *m2;
};

enum { RATE, DECAY, MOMENTUM, BETA1, BETA2, EPS, N_NUMBERS };
enum { KIND, NESTEROV, STEPS, N_WORDS };

static void free_room(struct slice_update *u)
{
    buf_free(u->params);
    buf_free(u->grads);
    buf_free(u->m1);
    buf_free(u->m2);
    u->params = u->grads = u->m1 = u->m2 = NULL;
    u->room = 0;
}

void slice_update_free(struct slice_update *u)
{
    if (!u)
        return;
    free_room(u);
    buf_free(u->numbers);
    buf_free(u->words);
    free(u);
}

as_status slice_update_create_on(struct backend *be, const struct train_spec *spec,
                                 struct slice_update **ret, struct as_err *err)
{
    const struct train_optimizer_spec *s = &spec->optimizer;
    const float numbers[N_NUMBERS] = {[DECAY] = (float)s->weight_decay,
                                      [MOMENTUM] = (float)s->momentum,
                                      [BETA1] = (float)s->beta1,
                                      [BETA2] = (float)s->beta2,
                                      [EPS] = (float)s->eps};
    const int32_t words[N_WORDS] = {[KIND] = (int32_t)s->kind, [NESTEROV] = s->nesterov};
    if (s->kind == TRAIN_LAMB)
        return as_fail(err, AS_E_UNSUPPORTED,
                       "/train/optimizer/kind: lamb needs the norms of whole tensors, and cannot "
                       "update slices");
    AS_AUTO(slice_update_freep) struct slice_update *u = as_calloc(1, sizeof *u);
    if (!u)
        return as_fail_nomem(err);
    *u = (struct slice_update){.be = be, .second = optimizer_needs_of(spec).second};
    as_status st;
    if ((st = buf_create(u->be, BUF_F32, N_NUMBERS, &u->numbers, err)) < 0 ||
        (st = buf_create(u->be, BUF_I32, N_WORDS, &u->words, err)) < 0 ||
        (st = buf_upload(u->numbers, 0, numbers, N_NUMBERS, err)) < 0 ||
        (st = buf_upload(u->words, 0, words, N_WORDS, err)) < 0)
        return st;
    *ret = as_steal(u);
    return AS_OK;
}

as_status slice_update_create(const struct optimizer *o, const struct train_spec *spec,
                              struct slice_update **ret, struct as_err *err)
{
    return slice_update_create_on(o->network->be, spec, ret, err);
}

static as_status make_room(struct slice_update *u, size_t n, struct as_err *err)
{
    as_status st;
    if (n <= u->room)
        return AS_OK;
    free_room(u);
    if ((st = buf_create(u->be, BUF_F32, n, &u->params, err)) < 0 ||
        (st = buf_create(u->be, BUF_F32, n, &u->grads, err)) < 0 ||
        (st = buf_create(u->be, BUF_F32, n, &u->m1, err)) < 0 ||
        (u->second && (st = buf_create(u->be, BUF_F32, n, &u->m2, err)) < 0))
        return st;
    u->room = n;
    return AS_OK;
}

static as_status run_kernel(struct slice_update *u, struct backend *lane, size_t n,
                            struct as_err *err)
{
    struct opt_args a = {.members = 1,
                         .n = n,
                         .kind = tensor_at(u->words, KIND, 1),
                         .params = tensor_at(u->params, 0, n),
                         .grads = tensor_at(u->grads, 0, n),
                         .m1 = tensor_at(u->m1, 0, n),
                         .m2 = u->m2 ? tensor_at(u->m2, 0, n) : tensor_none(),
                         .lr = tensor_at(u->numbers, RATE, 1),
                         .weight_decay = tensor_at(u->numbers, DECAY, 1),
                         .momentum = tensor_at(u->numbers, MOMENTUM, 1),
                         .nesterov = tensor_at(u->words, NESTEROV, 1),
                         .beta1 = tensor_at(u->numbers, BETA1, 1),
                         .beta2 = tensor_at(u->numbers, BETA2, 1),
                         .eps = tensor_at(u->numbers, EPS, 1),
                         .step = tensor_at(u->words, STEPS, 1)};
    return backend_optimize(lane, &a, err);
}

as_status slice_update_run(struct slice_update *u, struct backend *lane, float lr,
                           int32_t steps_done, size_t n, float *params, const float *grads,
                           float *m1, float *m2, struct as_err *err)
{
    as_status st;
    if (n == 0)
        return AS_OK;
    if ((st = make_room(u, n, err)) < 0 || (st = buf_upload(u->numbers, RATE, &lr, 1, err)) < 0 ||
        (st = buf_upload(u->words, STEPS, &steps_done, 1, err)) < 0 ||
        (st = buf_upload(u->params, 0, params, n, err)) < 0 ||
        (st = buf_upload(u->grads, 0, grads, n, err)) < 0 ||
        (st = buf_upload(u->m1, 0, m1, n, err)) < 0 ||
        (u->m2 && (st = buf_upload(u->m2, 0, m2, n, err)) < 0) ||
        (st = run_kernel(u, lane, n, err)) < 0 || (st = backend_sync(lane, err)) < 0 ||
        (st = buf_download(u->params, 0, params, n, err)) < 0 ||
        (st = buf_download(u->m1, 0, m1, n, err)) < 0)
        return st;
    return u->m2 ? buf_download(u->m2, 0, m2, n, err) : AS_OK;
}
