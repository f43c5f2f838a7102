/* Reads and writes the arenas of one slot through network_read() and network_write(), which leave
 * out the padding. Arrays that the member does not need (a second moment, an average, moments that
 * ranks divide) are absent, and their absence is part of the state's form. slot_state_parts() gives
 * the names under which a checkpoint stores them. */
#include "model/network/slot_state.h"

#include <stdlib.h>

void slot_state_parts(const struct slot *slot, const struct slot_state *s,
                      struct slot_part ret[SLOT_PARTS])
{
    size_t n = slot->own->n_params;
    ret[0] = (struct slot_part){"params", s->params, n};
    ret[1] = (struct slot_part){"moment1", s->moment1, n};
    ret[2] = (struct slot_part){"moment2", s->moment2, n};
    ret[3] = (struct slot_part){"average", s->average, n};
    ret[4] = (struct slot_part){"statistics", s->statistics, slot->own->n_state};
}

void slot_state_keep_weights(struct slot_state *s)
{
    free(s->moment1);
    free(s->moment2);
    free(s->average);
    free(s->statistics);
    s->moment1 = s->moment2 = s->average = s->statistics = NULL;
}

void slot_state_done(struct slot_state *s)
{
    slot_state_keep_weights(s);
    free(s->params);
    *s = (struct slot_state){0};
}

static bool alloc_values(float **ret, size_t n, bool wanted)
{
    if (wanted)
        *ret = as_calloc(n, sizeof **ret);
    return !wanted || *ret;
}

as_status slot_state_create(const struct slot *slot, struct slot_state *ret, struct as_err *err)
{
    size_t n = slot->own->n_params, statistics = slot->own->n_state;
    struct slot_state s = {0};
    if (alloc_values(&s.params, n, true) && alloc_values(&s.moment1, n, !slot->needs.divided) &&
        alloc_values(&s.moment2, n, slot->needs.second && !slot->needs.divided) &&
        alloc_values(&s.average, n, slot->needs.average) &&
        alloc_values(&s.statistics, statistics, statistics > 0)) {
        *ret = s;
        return AS_OK;
    }
    slot_state_done(&s);
    return as_fail(err, AS_E_NOMEM, "out of memory for %zu parameters", n);
}

/* An array of a state, and the arena on the device that has the same numbers. */
struct arena {
    struct buf *on_device;
    float *values; /* NULL: the member has none */
};

#define N_ARENAS 4

static void list_arenas(const struct slot *slot, const struct slot_state *s,
                        struct arena ret[N_ARENAS])
{
    const struct optimizer *o = slot->optimizer;
    ret[0] = (struct arena){network_params(slot->network), s->params};
    ret[1] = (struct arena){o->m1, s->moment1};
    ret[2] = (struct arena){o->m2, s->moment2};
    ret[3] = (struct arena){o->average, s->average};
}

/* From the device, or (`reads` false) to it. */
static as_status move_arenas(const struct slot *slot, const struct slot_state *s, bool reads,
                             struct as_err *err)
{
    struct network *net = slot->network;
    struct arena arenas[N_ARENAS];
    list_arenas(slot, s, arenas);
    for (size_t i = 0; i < N_ARENAS; i++) {
        const struct arena *a = &arenas[i];
        if (!a->values)
            continue;
        as_status st =
            reads ? network_read(net, a->on_device, slot->index, slot->own, a->values, err)
                  : network_write(net, a->on_device, slot->index, slot->own, a->values, err);
        if (st != AS_OK)
            return st;
    }
    if (!s->statistics)
        return AS_OK;
    return reads ? network_read_state(net, slot->index, s->statistics, err)
                 : network_write_state(net, slot->index, s->statistics, err);
}

static as_status get_numbers(const struct slot *slot, struct slot_state *s, struct as_err *err)
{
    as_status st = buf_download(slot->optimizer->step, slot->index, &s->steps, 1, err);
    if (st != AS_OK)
        return st;
    st = buf_download(slot->optimizer->active, slot->index, &s->active, 1, err);
    if (st != AS_OK)
        return st;
    return buf_download(slot->losses->train.loss, slot->index, &s->loss_sum, 1, err);
}

as_status slot_state_read(const struct slot *slot, struct slot_state *s, struct as_err *err)
{
    as_status st = move_arenas(slot, s, true, err);
    return st != AS_OK ? st : get_numbers(slot, s, err);
}

as_status slot_state_get(const struct slot *slot, struct slot_state *ret, struct as_err *err)
{
    AS_AUTO(slot_state_done) struct slot_state s = {0};
    as_status st = slot_state_create(slot, &s, err);
    if (st != AS_OK)
        return st;
    st = slot_state_read(slot, &s, err);
    if (st != AS_OK)
        return st;
    *ret = s;
    s = (struct slot_state){0};
    return AS_OK;
}

as_status slot_state_put(const struct slot *slot, const struct slot_state *s, struct as_err *err)
{
    as_status st = move_arenas(slot, s, false, err);
    if (st != AS_OK)
        return st;
    st = buf_upload(slot->optimizer->step, slot->index, &s->steps, 1, err);
    if (st != AS_OK)
        return st;
    st = buf_upload(slot->optimizer->active, slot->index, &s->active, 1, err);
    if (st != AS_OK)
        return st;
    return buf_upload(slot->losses->train.loss, slot->index, &s->loss_sum, 1, err);
}
