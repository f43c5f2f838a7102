/* The view is made anew for each gradient, from the weights of the position: sums that have come
 * since the last one have this rank's part in them, so nothing has to be taken back. */
#include "trial-runner/distributed/own_writes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/* The average and the statistics are never put: the view leaves them as they are. */
static as_status state_create(struct replica *r, struct slot_state *ret, struct as_err *err)
{
    as_status st = r->ops->state_new(r->self, ret, err);
    if (st < 0)
        return st;
    free(ret->average);
    free(ret->statistics);
    ret->average = ret->statistics = NULL;
    return AS_OK;
}

as_status own_writes_init(struct own_writes *ret, const struct train_spec *spec, struct replica *r,
                          struct as_err *err)
{
    *ret = (struct own_writes){0};
    if (spec->optimizer.kind == TRAIN_LAMB || !r->ops->update_slice)
        return AS_OK;
    struct own_writes w = {.replica = r, .clip_norm = spec->optimizer.clip_norm};
    w.grads = as_calloc(r->n_params, sizeof *w.grads);
    as_status st = w.grads ? state_create(r, &w.base, err) : as_fail_nomem(err);
    if (st == AS_OK)
        st = state_create(r, &w.view, err);
    if (st < 0) {
        own_writes_done(&w);
        return st;
    }
    *ret = w;
    return AS_OK;
}

void own_writes_done(struct own_writes *w)
{
    slot_state_done(&w->base);
    slot_state_done(&w->view);
    free(w->grads);
    *w = (struct own_writes){0};
}

as_status own_writes_begin(struct own_writes *w, struct as_err *err)
{
    struct replica *r = w->replica;
    as_status st = r->ops->state_get(r->self, &w->base, err);
    if (st < 0)
        return st;
    const struct slot_state *b = &w->base;
    struct slot_state *v = &w->view;
    memcpy(v->params, b->params, r->n_params * sizeof *v->params);
    if (b->moment1)
        memcpy(v->moment1, b->moment1, r->n_params * sizeof *v->moment1);
    if (b->moment2)
        memcpy(v->moment2, b->moment2, r->n_params * sizeof *v->moment2);
    v->steps = b->steps;
    v->active = b->active;
    v->loss_sum = b->loss_sum;
    return AS_OK;
}

/* The factor that brings a gradient's norm down to the bound. */
static float clip_factor(const struct own_writes *w, const float *gradient)
{
    double sum = 0;
    if (w->clip_norm <= 0)
        return 1;
    for (size_t i = 0; i < w->replica->n_params; i++)
        sum += (double)gradient[i] * (double)gradient[i];
    double norm = sqrt(sum);
    return norm > w->clip_norm ? (float)(w->clip_norm / norm) : 1;
}

as_status own_writes_add(struct own_writes *w, struct backend *lane, int64_t step,
                         const float *gradient, struct as_err *err)
{
    struct replica *r = w->replica;
    float factor = clip_factor(w, gradient);
    for (size_t i = 0; i < r->n_params; i++)
        w->grads[i] = factor * gradient[i];
    const struct replica_slice whole = {.n = r->n_params,
                                        .params = w->view.params,
                                        .grads = w->grads,
                                        .moment1 = w->view.moment1,
                                        .moment2 = r->has_moment2 ? w->view.moment2 : NULL};
    as_status st = r->ops->update_slice(r->self, lane, step, w->view.steps, &whole, err);
    w->view.steps += st == AS_OK;
    return st;
}

/* Only weights are put: a gradient reads nothing else. */
static as_status put_params(struct own_writes *w, const struct slot_state *from, struct as_err *err)
{
    struct slot_state s = w->base;
    s.params = from->params;
    s.moment1 = s.moment2 = NULL;
    return w->replica->ops->state_put(w->replica->self, &s, err);
}

as_status own_writes_put(struct own_writes *w, struct as_err *err)
{
    return put_params(w, &w->view, err);
}

as_status own_writes_end(struct own_writes *w, struct as_err *err)
{
    return put_params(w, &w->base, err);
}
