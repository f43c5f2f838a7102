/* Rows are drawn on the host, from the draws of the micro-step; each is one pass of a batch of one
 * row, which is gathered by its place in the epoch's order. Clipping and summing are operations of
 * the back end, on the slot; the sum comes to the host once, for the noise. A pass moves its place
 * and its key from the host, so a step is not recorded as a graph. */
#include "trial-runner/train/private_rows.h"

#include <math.h>
#include <stdlib.h>

#include "data/random_purpose.h"

void private_rows_free(struct private_rows *p)
{
    if (!p)
        return;
    buf_free(p->sum);
    buf_free(p->place);
    buf_free(p->key);
    buf_free(p->one);
    buf_free(p->clip);
    buf_free(p->not_first);
    free(p);
}

as_status private_rows_create(struct backend *be, struct network *network,
                              struct optimizer *optimizer, struct private_rows **ret,
                              struct as_err *err)
{
    AS_AUTO(private_rows_freep) struct private_rows *p = as_calloc(1, sizeof *p);
    size_t slots = optimizer->slots;
    if (!p)
        return as_fail_nomem(err);
    *p = (struct private_rows){.network = network, .optimizer = optimizer};
    as_status st;
    if ((st = buf_create(be, BUF_F32, slots * optimizer->n_params, &p->sum, err)) < 0 ||
        (st = buf_create(be, BUF_I32, slots, &p->place, err)) < 0 ||
        (st = buf_create(be, BUF_I32, slots, &p->key, err)) < 0 ||
        (st = buf_create(be, BUF_F32, slots, &p->one, err)) < 0 ||
        (st = buf_create(be, BUF_F32, slots, &p->clip, err)) < 0 ||
        (st = buf_create(be, BUF_I32, slots, &p->not_first, err)) < 0)
        return st;
    *ret = as_steal(p);
    return AS_OK;
}

size_t private_rows_bytes(const struct net_plan *plan)
{
    return (plan->n_params + 5) * 4;
}

as_status private_rows_join(struct private_rows *p, size_t slot, const struct train_spec *spec,
                            struct as_err *err)
{
    as_status st = buf_fill_f32(p->one, slot, 1, 1, err);
    if (st < 0 || (st = buf_fill_f32(p->clip, slot, 1, (float)spec->privacy.clip, err)) < 0)
        return st;
    return buf_fill_i32(p->not_first, slot, 1, 0, err);
}

/* ---- which rows, and how much noise ---- */

/* A micro-step in its batch. */
struct part {
    size_t first, end; /* places of the epoch's order that it draws from */
    double q;          /* the chance of each */
    double rows;       /* that it has in the mean, as the layout cuts the batch */
    double share;      /* of the batch's rows */
    uint64_t number;   /* of the micro-step in the training: the key of its draws */
};

static struct part part_of(const struct member *m, size_t at)
{
    const struct epoch_layout *l = &m->layout;
    size_t begin = at / l->per_batch * l->per_batch, left = l->micro_steps - begin;
    size_t parts = left < l->per_batch ? left : l->per_batch, own = at - begin;
    size_t to = begin + parts, n = l->n_train;
    size_t rows_end = to * l->micro_rows < n ? to * l->micro_rows : n;
    double rows = (double)(rows_end - begin * l->micro_rows), share = epoch_layout_share(l, at);
    return (struct part){.first = n * own / parts,
                         .end = n * (own + 1) / parts,
                         .q = rows / (double)n,
                         .rows = rows * share,
                         .share = share,
                         .number = (uint64_t)m->epoch * l->micro_steps + at};
}

/* ---- rows ---- */

/* Adds the clipped gradient of the row at `place` of the order to the sum. */
static as_status add_row(struct private_rows *p, struct backend *lane, size_t slot, size_t place,
                         uint64_t number, const struct micro_step *now, private_pass *pass,
                         void *arg, struct as_err *err)
{
    const struct optimizer_needs in_place = {0};
    size_t n = p->optimizer->n_params;
    struct micro_step row = *now;
    struct grad_accumulate_args a = {.members = 1,
                                     .n = n,
                                     .grads = tensor_at(network_gradients(p->network), slot * n, n),
                                     .sum = tensor_at(p->sum, slot * n, n),
                                     .scale = tensor_at(p->one, slot, 1),
                                     .first = tensor_at(p->not_first, slot, 1)};
    row.at = tensor_at(p->place, 0, 1);
    row.count = tensor_at(p->key, 0, 1);
    int32_t key = (int32_t)(uint32_t)rng_mix(number, place);
    as_status st;
    if ((st = buf_fill_i32(p->place, slot, 1, (int32_t)place, err)) < 0 ||
        (st = buf_fill_i32(p->key, slot, 1, key, err)) < 0 || (st = pass(arg, &row, err)) < 0 ||
        (st = optimizer_clip(p->optimizer, lane, slot, in_place, tensor_at(p->clip, slot, 1),
                             err)) < 0)
        return st;
    return backend_grad_accumulate(lane, &a, err);
}

static as_status add_rows(struct private_rows *p, struct backend *lane, size_t slot,
                          const struct member *m, const struct part *part,
                          const struct micro_step *now, private_pass *pass, void *arg,
                          struct as_err *err)
{
    struct rng draws = draw_stream(m->seed, DRAW_PRIVATE_ROWS, part->number);
    size_t n = p->optimizer->n_params;
    as_status st = buf_fill_f32(p->sum, slot * n, n, 0, err);
    for (size_t place = part->first; st == AS_OK && place < part->end; place++)
        if (rng_uniform(&draws) < part->q)
            st = add_row(p, lane, slot, place, part->number, now, pass, arg, err);
    return st;
}

/* The noise has the member's own shape, so that it does not depend on padding. */
static as_status add_noise(struct private_rows *p, struct backend *lane, size_t slot,
                           const struct member *m, const struct part *part, struct as_err *err)
{
    const struct train_privacy_spec *spec = &m->spec.privacy;
    struct rng draws = draw_stream(m->seed, DRAW_PRIVATE_NOISE, part->number);
    size_t n = m->plan->n_params;
    double deviation = spec->clip * spec->noise * sqrt(part->share);
    AS_AUTO(as_freep) float *values = as_calloc(n, sizeof *values);
    if (!values)
        return as_fail_nomem(err);
    as_status st = backend_sync(lane, err);
    if (st < 0 || (st = network_read(p->network, p->sum, slot, m->plan, values, err)) < 0)
        return st;
    for (size_t i = 0; i < n; i++)
        values[i] = (float)(((double)values[i] + deviation * rng_normal(&draws)) / part->rows);
    return network_write(p->network, network_gradients(p->network), slot, m->plan, values, err);
}

as_status private_rows_gradient(struct private_rows *p, struct backend *lane, size_t slot,
                                const struct member *m, size_t at, const struct micro_step *now,
                                private_pass *pass, void *arg, struct as_err *err)
{
    struct part part = part_of(m, at);
    as_status st = add_rows(p, lane, slot, m, &part, now, pass, arg, err);
    return st < 0 ? st : add_noise(p, lane, slot, m, &part, err);
}
