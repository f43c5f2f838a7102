/* The buffers of a network, and the parameters and state of its members. network_pass.c has the
 * passes, network_args.c the places of tensors.
 *
 * A network owns arenas of parameters and gradients, one buffer for each value and each gradient
 * slot of its plan, and one workspace, which the operations of a pass share. network_bytes() uses
 * the same functions for sizes as network_create(), so the figure that decides how many members fit
 * is exact.
 *
 * Start values are drawn for a member's own shape and then spread into the padded one. The draws
 * therefore do not depend on the members beside it. */
#include "model/network/network.h"

#include <stdlib.h>
#include <string.h>

#include "model/plan/pad.h"
#include "data/random_purpose.h"
#include "model/network/network_priv.h"

#define MOST_ROWS_TRIED ((size_t)512)

/* ---- buffers ---- */

static void free_values(const struct network *net, struct network_value *values)
{
    for (size_t i = 0; values && i < net->plan->n_nodes; i++) {
        buf_free(values[i].y);
        buf_free(values[i].z);
        buf_free(values[i].kept);
    }
    free(values);
}

void network_free(struct network *net)
{
    if (!net)
        return;
    for (size_t i = 0; i < net->n_sets; i++)
        free_values(net, net->sets[i]);
    for (size_t i = 0; net->gradients && i < net->plan->n_slots; i++)
        buf_free(net->gradients[i]);
    free(net->sets);
    free(net->gradients);
    buf_free(net->params);
    buf_free(net->grads);
    buf_free(net->state);
    buf_free(net->work);
    free(net);
}

/* The number of elements of each buffer of a node, for one member. */
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
        const struct attention_args a = network_attention_sizes(n, 1, rows);
        return backend_attention_work(be, &a);
    }
    if (n->op != NET_CONV)
        return 0;
    const struct conv_args a = network_conv_sizes(n, 1, rows);
    return backend_conv_work(be, &a);
}

/* The largest workspace of any pass of up to max_rows rows. How a kernel cuts a batch depends on
 * its size, so a smaller batch may need more than a larger one; from some hundred rows on, the
 * largest batch needs most. */
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

size_t network_bytes(struct backend *be, const struct net_plan *plan, size_t slots, size_t max_rows)
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

static as_status create_buffer(struct network *net, buf_kind kind, size_t per_member,
                               struct buf **ret, struct as_err *err)
{
    size_t n;
    if (per_member == 0)
        return AS_OK;
    if (__builtin_mul_overflow(net->slots, per_member, &n))
        return as_fail(err, AS_E_TOO_LARGE, "the model is too large");
    return buf_create(net->be, kind, n, ret, err);
}

/* Another set of values, which is in use from now on. */
static as_status create_values(struct network *net, struct as_err *err)
{
    struct network_value **sets = realloc(net->sets, (net->n_sets + 1) * sizeof *sets);
    as_status st = AS_OK;
    if (!sets)
        return as_fail_nomem(err);
    net->sets = sets;
    net->values = sets[net->n_sets++] = as_calloc(net->plan->n_nodes, sizeof *net->values);
    if (!net->values)
        return as_fail_nomem(err);
    for (size_t i = 0; i < net->plan->n_nodes; i++) {
        const struct net_node *n = network_node(net, i);
        struct sizes s = sizes_of(n, net->max_rows);
        st = create_buffer(net, BUF_F32, s.y, &net->values[i].y, err);
        if (st != AS_OK)
            return st;
        st = create_buffer(net, BUF_F32, s.z, &net->values[i].z, err);
        if (st != AS_OK)
            return st;
        st = create_buffer(net, n->op == NET_POOL_MAX ? BUF_I32 : BUF_F32, s.kept,
                           &net->values[i].kept, err);
        if (st != AS_OK)
            return st;
    }
    return AS_OK;
}

/* The buffers of the backward pass. */
static as_status create_gradients(struct network *net, struct as_err *err)
{
    as_status st = create_buffer(net, BUF_F32, net->plan->n_params, &net->grads, err);
    for (size_t i = 0; st == AS_OK && i < net->plan->n_slots; i++)
        st = create_buffer(net, BUF_F32, net->plan->slots[i] * net->max_rows, &net->gradients[i],
                           err);
    return st;
}

as_status network_create_forward(struct backend *be, const struct net_plan *plan, size_t slots,
                                 size_t max_rows, struct network **ret, struct as_err *err)
{
    AS_AUTO(network_freep) struct network *net = as_calloc(1, sizeof *net);
    if (!net)
        return as_fail_nomem(err);
    *net = (struct network){.be = be, .plan = plan, .slots = slots, .max_rows = max_rows};
    net->gradients = as_calloc(plan->n_slots, sizeof(struct buf *));
    net->work_len = work_len(be, plan, max_rows);
    if (!net->gradients)
        return as_fail_nomem(err);
    as_status st = create_buffer(net, BUF_F32, plan->n_params, &net->params, err);
    if (st != AS_OK)
        return st;
    st = create_buffer(net, BUF_F32, plan->n_state, &net->state, err);
    if (st != AS_OK)
        return st;
    st = create_buffer(net, BUF_F32, net->work_len, &net->work, err);
    if (st != AS_OK)
        return st;
    st = create_values(net, err);
    if (st != AS_OK)
        return st;
    *ret = as_steal(net);
    return AS_OK;
}

as_status network_create(struct backend *be, const struct net_plan *plan, size_t slots,
                         size_t max_rows, struct network **ret, struct as_err *err)
{
    AS_AUTO(network_freep) struct network *net = NULL;
    as_status st = network_create_forward(be, plan, slots, max_rows, &net, err);
    if (st != AS_OK)
        return st;
    st = create_gradients(net, err);
    if (st != AS_OK)
        return st;
    *ret = as_steal(net);
    return AS_OK;
}

/* ---- several passes at once ---- */

as_status network_keep(struct network *net, size_t sets, struct as_err *err)
{
    as_status st = AS_OK;
    while (st == AS_OK && net->n_sets < sets)
        st = create_values(net, err);
    network_use(net, 0);
    return st;
}

void network_use(struct network *net, size_t set)
{
    net->values = net->sets[set];
}

struct tensor network_result(struct network *net, const struct network_pass *pass)
{
    const struct network_run r = {.net = net, .first = 0, .n = 1, .pass = pass};
    return network_value_at(&r, net->plan->n_nodes - 1);
}

struct tensor network_output_gradient(struct network *net)
{
    const struct network_run r = {.net = net, .first = 0, .n = 1};
    return network_slot_at(&r, net->plan->nodes[net->plan->n_nodes - 1].grad.dy);
}

struct tensor network_input_gradient(struct network *net)
{
    const struct network_run r = {.net = net, .first = 0, .n = 1};
    return network_slot_at(&r, net->plan->input_slot);
}

/* ---- members ---- */

struct buf *network_params(const struct network *net)
{
    return net->params;
}

struct buf *network_gradients(const struct network *net)
{
    return net->grads;
}

struct buf *network_state(const struct network *net)
{
    return net->plan->n_state > 0 ? net->state : NULL;
}

void network_draw(const struct net_tensor *tensors, size_t n, uint64_t seed, float *ret)
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

as_status network_init(struct network *net, size_t slot, const struct net_plan *own, uint64_t seed,
                       struct as_err *err)
{
    AS_AUTO(as_freep) float *values = as_calloc(own->n_params, sizeof *values);
    AS_AUTO(as_freep) float *state = as_calloc(own->n_state, sizeof *state);
    if (!values || !state)
        return as_fail(err, AS_E_NOMEM, "out of memory for %zu parameters", own->n_params);
    network_draw(own->tensors, own->n_tensors, seed, values);
    network_draw(own->states, own->n_states, seed, state);
    as_status st = network_write(net, net->params, slot, own, values, err);
    return st < 0 ? st : network_write_state(net, slot, state, err);
}

as_status network_read(const struct network *net, const struct buf *arena, size_t slot,
                       const struct net_plan *own, float *ret, struct as_err *err)
{
    size_t n = net->plan->n_params;
    if (own->n_params == n)
        return buf_download(arena, slot * n, ret, n, err);
    AS_AUTO(as_freep) float *padded = as_calloc(n, sizeof *padded);
    if (!padded)
        return as_fail(err, AS_E_NOMEM, "out of memory for %zu parameters", n);
    as_status st = buf_download(arena, slot * n, padded, n, err);
    if (st != AS_OK)
        return st;
    net_plan_collect(own, net->plan, padded, ret);
    return AS_OK;
}

as_status network_write(const struct network *net, struct buf *arena, size_t slot,
                        const struct net_plan *own, const float *values, struct as_err *err)
{
    size_t n = net->plan->n_params;
    if (own->n_params == n)
        return buf_upload(arena, slot * n, values, n, err);
    AS_AUTO(as_freep) float *padded = as_calloc(n, sizeof *padded);
    if (!padded)
        return as_fail(err, AS_E_NOMEM, "out of memory for %zu parameters", n);
    net_plan_spread(own, net->plan, values, padded);
    return buf_upload(arena, slot * n, padded, n, err);
}

as_status network_read_state(const struct network *net, size_t slot, float *ret, struct as_err *err)
{
    size_t n = net->plan->n_state;
    return n == 0 ? AS_OK : buf_download(net->state, slot * n, ret, n, err);
}

as_status network_write_state(struct network *net, size_t slot, const float *values,
                              struct as_err *err)
{
    size_t n = net->plan->n_state;
    return n == 0 ? AS_OK : buf_upload(net->state, slot * n, values, n, err);
}

struct tensor network_outputs(const struct network *net, size_t first)
{
    size_t last = net->plan->n_nodes - 1;
    size_t member = net_shape_elements(net->plan->nodes[last].out) * net->max_rows;
    return tensor_at(net->values[last].y, first * member, member);
}
