/* Padding of hidden widths: buckets, plans that cover others, numbers from one shape to another.
 *
 * A padded plan is a copy of a plan with other widths; shapes and offsets are computed again, and
 * net_plan_finish() assigns gradient slots for the new shapes. Two plans can share one network if
 * they are equal in everything but hidden widths (same_but_widths).
 *
 * A tensor is padded at the end of each row and behind the last row, so copying goes row by row. */
#include "model/plan/pad.h"

#include <string.h>

#include "base/mem.h"
#include "model/plan/plan_grad.h"

size_t net_width_bucket(size_t w)
{
    size_t top = 1;
    while (top < w)
        top = top > 1 && top + top / 2 >= w ? top + top / 2 : 2 * top;
    return top;
}

static as_status clone_plan(const struct net_plan *p, struct net_plan **ret, struct as_err *err)
{
    AS_AUTO(net_plan_freep) struct net_plan *c = as_calloc(1, sizeof *c);
    if (!c)
        return as_fail_nomem(err);
    *c = *p;
    c->slots = NULL;
    c->n_slots = 0;
    c->nodes = as_calloc(p->n_nodes, sizeof *c->nodes);
    c->tensors = as_calloc(p->n_tensors, sizeof *c->tensors);
    c->states = as_calloc(p->n_states, sizeof *c->states);
    if (!c->nodes || !c->tensors || !c->states)
        return as_fail_nomem(err);
    memcpy(c->nodes, p->nodes, p->n_nodes * sizeof *c->nodes);
    memcpy(c->tensors, p->tensors, p->n_tensors * sizeof *c->tensors);
    if (p->n_states > 0)
        memcpy(c->states, p->states, p->n_states * sizeof *c->states);
    *ret = as_steal(c);
    return AS_OK;
}

/* Set the hidden widths of p. Only an mlp without batch normalisation has n_hidden > 0; its nodes
 * are the input, perhaps categories, linear layers, and perhaps dropout. */
static void set_widths(struct net_plan *p, const size_t *hidden)
{
    size_t layer = 0, offset = 0, width = 0;
    for (size_t i = 0; i < p->n_nodes; i++) {
        struct net_node *n = &p->nodes[i];
        if (n->op == NET_DROPOUT)
            n->in.channels = n->out.channels = width;
        if (n->op != NET_LINEAR)
            continue;
        if (layer > 0)
            n->in.channels = width;
        if (layer < p->n_hidden)
            n->out.channels = hidden[layer];
        width = n->out.channels;
        p->tensors[n->weight].dims[0] = n->in.channels;
        p->tensors[n->weight].dims[1] = width;
        p->tensors[n->bias].dims[0] = width;
        layer++;
    }
    for (size_t i = 0; i < p->n_tensors; i++) {
        struct net_tensor *t = &p->tensors[i];
        t->offset = offset;
        t->count = t->n_dims == 2 ? t->dims[0] * t->dims[1] : t->dims[0];
        offset += t->count;
    }
    for (size_t i = 0; i < p->n_hidden; i++)
        p->hidden[i] = hidden[i];
    p->n_params = offset;
}

static as_status resize_plan(const struct net_plan *p, const size_t *hidden, struct net_plan **ret,
                             struct as_err *err)
{
    AS_AUTO(net_plan_freep) struct net_plan *c = NULL;
    as_status st = clone_plan(p, &c, err);
    if (st != AS_OK)
        return st;
    if (p->n_hidden > 0)
        set_widths(c, hidden);
    st = net_plan_finish(c, err);
    if (st != AS_OK)
        return st;
    *ret = as_steal(c);
    return AS_OK;
}

static bool same_node(const struct net_node *a, const struct net_node *b)
{
    return a->op == b->op && a->from == b->from && a->with == b->with && a->act == b->act &&
           a->kernel_h == b->kernel_h && a->kernel_w == b->kernel_w && a->stride == b->stride &&
           a->pad == b->pad && a->groups == b->groups && a->heads == b->heads &&
           a->weight == b->weight && a->bias == b->bias;
}

static bool same_shape(struct net_shape a, struct net_shape b)
{
    return a.height == b.height && a.width == b.width && a.channels == b.channels;
}

/* Are the plans equal except for the widths that may be padded? */
static bool same_but_widths(const struct net_plan *a, const struct net_plan *b)
{
    if (a->input != b->input || a->n_nodes != b->n_nodes || a->n_tensors != b->n_tensors ||
        a->n_hidden != b->n_hidden || a->n_state != b->n_state || a->outputs != b->outputs ||
        a->tokens != b->tokens)
        return false;
    for (size_t i = 0; i < a->n_nodes; i++) {
        const struct net_node *x = &a->nodes[i], *y = &b->nodes[i];
        if (!same_node(x, y))
            return false;
        bool wide = x->op == NET_LINEAR || x->op == NET_DROPOUT;
        bool hidden = a->n_hidden > 0 && wide && i + 1 < a->n_nodes;
        if (!hidden && !same_shape(x->out, y->out))
            return false;
    }
    return true;
}

as_status net_plan_merge(const struct net_plan *a, const struct net_plan *b, struct net_plan **ret,
                         struct as_err *err)
{
    size_t hidden[TRAIN_MAX_LAYERS] = {0};
    if (!same_but_widths(a, b))
        return as_fail(err, AS_E_INVAL,
                       "the models differ in more than the widths of hidden layers");
    for (size_t i = 0; i < a->n_hidden; i++)
        hidden[i] = a->hidden[i] > b->hidden[i] ? a->hidden[i] : b->hidden[i];
    as_status st = resize_plan(a, hidden, ret, err);
    if (st != AS_OK)
        return st;
    if (b->max_rows > (*ret)->max_rows)
        (*ret)->max_rows = b->max_rows;
    if (b->buffer_rows > (*ret)->buffer_rows)
        (*ret)->buffer_rows = b->buffer_rows;
    return AS_OK;
}

as_status net_plan_widest(const struct net_plan *p, struct net_plan **ret, struct as_err *err)
{
    size_t hidden[TRAIN_MAX_LAYERS] = {0};
    for (size_t i = 0; i < p->n_hidden; i++)
        hidden[i] = net_width_bucket(p->hidden[i]);
    return resize_plan(p, hidden, ret, err);
}

bool net_plan_fits(const struct net_plan *own, const struct net_plan *padded)
{
    if (!same_but_widths(own, padded))
        return false;
    for (size_t i = 0; i < own->n_hidden; i++)
        if (own->hidden[i] > padded->hidden[i])
            return false;
    return true;
}

/* The rows of a tensor as a matrix, whose columns are the last dimension. */
static size_t tensor_rows(const struct net_tensor *t)
{
    return t->count / t->dims[t->n_dims - 1];
}

void net_plan_spread(const struct net_plan *own, const struct net_plan *padded, const float *src,
                     float *dst)
{
    memset(dst, 0, padded->n_params * sizeof *dst);
    for (size_t i = 0; i < own->n_tensors; i++) {
        const struct net_tensor *a = &own->tensors[i], *b = &padded->tensors[i];
        size_t width = a->dims[a->n_dims - 1], to = b->dims[b->n_dims - 1];
        for (size_t r = 0; r < tensor_rows(a); r++)
            memcpy(dst + b->offset + r * to, src + a->offset + r * width, width * sizeof *dst);
    }
}

void net_plan_collect(const struct net_plan *own, const struct net_plan *padded, const float *src,
                      float *dst)
{
    for (size_t i = 0; i < own->n_tensors; i++) {
        const struct net_tensor *a = &own->tensors[i], *b = &padded->tensors[i];
        size_t width = a->dims[a->n_dims - 1], from = b->dims[b->n_dims - 1];
        for (size_t r = 0; r < tensor_rows(a); r++)
            memcpy(dst + a->offset + r * width, src + b->offset + r * from, width * sizeof *dst);
    }
}
