#include "model/network/slot_state.h"

#include <stdlib.h>

void state_done(struct state *s)
{
    free(s->params);
    free(s->moment1);
    free(s->moment2);
    free(s->average);
    free(s->statistics);
    *s = (struct state){0};
}

static bool make(float **ret, size_t n, bool wanted)
{
    if (wanted)
        *ret = as_calloc(n, sizeof **ret);
    return !wanted || *ret;
}

as_status state_create(const struct member *m, struct state *ret, struct as_err *err)
{
    struct optimizer_needs needs = optimizer_needs_of(&m->spec);
    size_t n = m->plan->n_params;
    struct state s = {0};
    if (make(&s.params, n, true) && make(&s.moment1, n, true) &&
        make(&s.moment2, n, needs.second) && make(&s.average, n, needs.average) &&
        make(&s.statistics, m->plan->n_state, m->plan->n_state > 0)) {
        *ret = s;
        return AS_OK;
    }
    state_done(&s);
    return as_fail(err, AS_E_NOMEM, "out of memory for %zu parameters", n);
}

static as_status get(struct cell *c, struct buf *arena, size_t slot, float *ret, struct as_err *err)
{
    return ret ? model_read(c->model, arena, slot, c->member[slot]->plan, ret, err) : AS_OK;
}

as_status state_get(struct cell *c, size_t slot, struct state *ret, struct as_err *err)
{
    struct optimizer *o = c->optimizer;
    AS_AUTO(state_done) struct state s = {0};
    as_status st = state_create(c->member[slot], &s, err);
    if (st == AS_OK)
        st = get(c, c->model->params, slot, s.params, err);
    if (st == AS_OK)
        st = get(c, o->m1, slot, s.moment1, err);
    if (st == AS_OK)
        st = get(c, o->m2, slot, s.moment2, err);
    if (st == AS_OK)
        st = get(c, o->average, slot, s.average, err);
    if (st == AS_OK && s.statistics)
        st = model_read_state(c->model, slot, s.statistics, err);
    if (st == AS_OK)
        st = buf_download(o->step, slot, &s.steps, 1, err);
    if (st == AS_OK)
        st = buf_download(o->active, slot, &s.active, 1, err);
    if (st == AS_OK)
        st = buf_download(c->losses->train.loss, slot, &s.loss_sum, 1, err);
    if (st != AS_OK)
        return st;
    *ret = s;
    s = (struct state){0};
    return AS_OK;
}

static as_status put(struct cell *c, struct buf *arena, size_t slot, const float *values,
                     struct as_err *err)
{
    return values ? model_write(c->model, arena, slot, c->member[slot]->plan, values, err) : AS_OK;
}

as_status state_put(struct cell *c, size_t slot, const struct state *s, struct as_err *err)
{
    struct optimizer *o = c->optimizer;
    as_status st = put(c, c->model->params, slot, s->params, err);
    if (st == AS_OK)
        st = put(c, o->m1, slot, s->moment1, err);
    if (st == AS_OK)
        st = put(c, o->m2, slot, s->moment2, err);
    if (st == AS_OK)
        st = put(c, o->average, slot, s->average, err);
    if (st == AS_OK && s->statistics)
        st = model_write_state(c->model, slot, s->statistics, err);
    if (st == AS_OK)
        st = buf_upload(o->step, slot, &s->steps, 1, err);
    if (st == AS_OK)
        st = buf_upload(o->active, slot, &s->active, 1, err);
    if (st == AS_OK)
        st = buf_upload(c->losses->train.loss, slot, &s->loss_sum, 1, err);
    return st;
}
