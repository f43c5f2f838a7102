#include "model/network/network.h"

#include <string.h>

#include "model/plan/pad.h"
#include "data/draw.h"
#include "model/network/network_priv.h"

#define MOST_ROWS_TRIED ((size_t)512)

/* ---- buffers ---- */

void model_free(struct model *m)
{
    if (!m)
        return;
    for (size_t i = 0; m->values && i < m->plan->n_nodes; i++) {
        buf_free(m->values[i].y);
        buf_free(m->values[i].z);
        buf_free(m->values[i].kept);
    }
    for (size_t i = 0; m->gradients && i < m->plan->n_slots; i++)
        buf_free(m->gradients[i]);
    free(m->values);
    free(m->gradients);
    buf_free(m->params);
    buf_free(m->grads);
    buf_free(m->state);
    buf_free(m->work);
    free(m);
}

/* Elements per member of a node's buffers. */
struct sizes {
    size_t y, z, kept;
};

static struct sizes sizes_of(const struct net_node *n, size_t rows)
{
    size_t value = net_shape_elements(n->out) * rows;
    bool own = n->op != NET_INPUT && !n->in_place;
    return (struct sizes){own ? value : 0, n->keeps_z ? value : 0,
                          n->kept_row * rows + n->kept_member};
}

static size_t work_of(struct backend *be, const struct net_node *n, size_t rows)
{
    if (n->op == NET_ATTENTION) {
        const struct attention_args a = {.members = 1,
                                         .batch = rows,
                                         .heads = n->heads,
                                         .seq = n->in.width,
                                         .head_dim = n->out.channels / n->heads};
        return backend_attention_work(be, &a);
    }
    if (n->op != NET_CONV)
        return 0;
    const struct conv_args a = {.members = 1,
                                .batch = rows,
                                .height = n->in.height,
                                .width = n->in.width,
                                .channels = n->in.channels,
                                .out = n->out.channels,
                                .kernel_h = n->kernel_h,
                                .kernel_w = n->kernel_w,
                                .stride = n->stride,
                                .pad = n->pad,
                                .groups = n->groups};
    return backend_conv_work(be, &a);
}

/* The most that any pass of up to max_rows rows needs: how a batch is cut depends on its size, so
 * the largest need not be the one that needs most. Past some hundred rows it is. */
static size_t work_len(struct backend *be, const struct net_plan *plan, size_t max_rows)
{
    size_t most = 0, tried = max_rows < MOST_ROWS_TRIED ? max_rows : MOST_ROWS_TRIED;
    for (size_t i = 0; i < plan->n_nodes; i++) {
        const struct net_node *n = &plan->nodes[i];
        if (n->op != NET_CONV && n->op != NET_ATTENTION)
            continue;
        for (size_t rows = 1; rows <= tried + 1; rows++) {
            size_t work = work_of(be, n, rows <= tried ? rows : max_rows);
            most = work > most ? work : most;
        }
    }
    return most;
}

size_t model_bytes(struct backend *be, const struct net_plan *plan, size_t slots, size_t max_rows)
{
    size_t member = 2 * plan->n_params + plan->n_state + work_len(be, plan, max_rows);
    for (size_t i = 0; i < plan->n_nodes; i++) {
        struct sizes s = sizes_of(&plan->nodes[i], max_rows);
        member += s.y + s.z + s.kept;
    }
    for (size_t i = 0; i < plan->n_slots; i++)
        member += plan->slots[i] * max_rows;
    return 4 * slots * member;
}

static as_status create(struct model *m, buf_kind kind, size_t per_member, struct buf **ret,
                        struct as_err *err)
{
    size_t n;
    if (per_member == 0)
        return AS_OK;
    if (__builtin_mul_overflow(m->slots, per_member, &n))
        return as_fail(err, AS_E_TOO_LARGE, "the model is too large");
    return buf_create(m->be, kind, n, ret, err);
}

static as_status create_values(struct model *m, struct as_err *err)
{
    as_status st = AS_OK;
    for (size_t i = 0; st == AS_OK && i < m->plan->n_nodes; i++) {
        const struct net_node *n = model_node(m, i);
        struct sizes s = sizes_of(n, m->max_rows);
        st = create(m, BUF_F32, s.y, &m->values[i].y, err);
        if (st == AS_OK)
            st = create(m, BUF_F32, s.z, &m->values[i].z, err);
        if (st == AS_OK)
            st = create(m, n->op == NET_POOL_MAX ? BUF_I32 : BUF_F32, s.kept, &m->values[i].kept,
                        err);
    }
    for (size_t i = 0; st == AS_OK && i < m->plan->n_slots; i++)
        st = create(m, BUF_F32, m->plan->slots[i] * m->max_rows, &m->gradients[i], err);
    return st;
}

as_status model_create(struct backend *be, const struct net_plan *plan, size_t slots,
                       size_t max_rows, struct model **ret, struct as_err *err)
{
    AS_AUTO(model_freep) struct model *m = as_calloc(1, sizeof *m);
    if (!m)
        return as_fail(err, AS_E_NOMEM, "out of memory");
    *m = (struct model){.be = be, .plan = plan, .slots = slots, .max_rows = max_rows};
    m->values = as_calloc(plan->n_nodes, sizeof *m->values);
    m->gradients = as_calloc(plan->n_slots, sizeof(struct buf *));
    m->work_len = work_len(be, plan, max_rows);
    if (!m->values || !m->gradients)
        return as_fail(err, AS_E_NOMEM, "out of memory");
    as_status st = create(m, BUF_F32, plan->n_params, &m->params, err);
    if (st == AS_OK)
        st = create(m, BUF_F32, plan->n_params, &m->grads, err);
    if (st == AS_OK)
        st = create(m, BUF_F32, plan->n_state, &m->state, err);
    if (st == AS_OK)
        st = create(m, BUF_F32, m->work_len, &m->work, err);
    if (st == AS_OK)
        st = create_values(m, err);
    if (st == AS_OK)
        *ret = as_steal(m);
    return st;
}

/* ---- members ---- */

static void start_values(const struct net_tensor *tensors, size_t n, uint64_t seed, float *ret)
{
    for (size_t i = 0; i < n; i++) {
        const struct net_tensor *t = &tensors[i];
        struct rng r = draw_stream(seed, DRAW_INIT, t->stream);
        double normal[64] = {0};
        for (size_t j = 0; j < t->count; j++) {
            if (t->init == NET_INIT_NORMAL && j % 64 == 0)
                rng_normals(&r, normal, t->count - j < 64 ? t->count - j : 64);
            ret[t->offset + j] = t->init == NET_INIT_NORMAL
                                     ? (float)(t->deviation * normal[j % 64])
                                     : (t->init == NET_INIT_ONE ? 1.0f : 0.0f);
        }
    }
}

as_status model_init(struct model *m, size_t slot, const struct net_plan *own, uint64_t seed,
                     struct as_err *err)
{
    AS_AUTO(as_freep) float *values = as_calloc(own->n_params, sizeof *values);
    AS_AUTO(as_freep) float *state = as_calloc(own->n_state, sizeof *state);
    if (!values || !state)
        return as_fail(err, AS_E_NOMEM, "out of memory for %zu parameters", own->n_params);
    start_values(own->tensors, own->n_tensors, seed, values);
    start_values(own->states, own->n_states, seed, state);
    as_status st = model_write(m, m->params, slot, own, values, err);
    return st < 0 ? st : model_write_state(m, slot, state, err);
}

as_status model_read(const struct model *m, const struct buf *arena, size_t slot,
                     const struct net_plan *own, float *ret, struct as_err *err)
{
    size_t n = m->plan->n_params;
    if (own->n_params == n)
        return buf_download(arena, slot * n, ret, n, err);
    AS_AUTO(as_freep) float *padded = as_calloc(n, sizeof *padded);
    if (!padded)
        return as_fail(err, AS_E_NOMEM, "out of memory for %zu parameters", n);
    as_status st = buf_download(arena, slot * n, padded, n, err);
    if (st == AS_OK)
        net_plan_collect(own, m->plan, padded, ret);
    return st;
}

as_status model_write(const struct model *m, struct buf *arena, size_t slot,
                      const struct net_plan *own, const float *values, struct as_err *err)
{
    size_t n = m->plan->n_params;
    if (own->n_params == n)
        return buf_upload(arena, slot * n, values, n, err);
    AS_AUTO(as_freep) float *padded = as_calloc(n, sizeof *padded);
    if (!padded)
        return as_fail(err, AS_E_NOMEM, "out of memory for %zu parameters", n);
    net_plan_spread(own, m->plan, values, padded);
    return buf_upload(arena, slot * n, padded, n, err);
}

as_status model_read_state(const struct model *m, size_t slot, float *ret, struct as_err *err)
{
    size_t n = m->plan->n_state;
    return n == 0 ? AS_OK : buf_download(m->state, slot * n, ret, n, err);
}

as_status model_write_state(struct model *m, size_t slot, const float *values, struct as_err *err)
{
    size_t n = m->plan->n_state;
    return n == 0 ? AS_OK : buf_upload(m->state, slot * n, values, n, err);
}

as_status model_move(struct model *m, size_t from, size_t to, struct as_err *err)
{
    size_t n = m->plan->n_params, s = m->plan->n_state;
    if (from == to)
        return AS_OK;
    as_status st = buf_copy(m->params, to * n, m->params, from * n, n, err);
    return st < 0 || s == 0 ? st : buf_copy(m->state, to * s, m->state, from * s, s, err);
}

struct tensor model_outputs(const struct model *m)
{
    size_t last = m->plan->n_nodes - 1;
    return tensor_at(m->values[last].y, 0,
                     net_shape_elements(m->plan->nodes[last].out) * m->max_rows);
}
