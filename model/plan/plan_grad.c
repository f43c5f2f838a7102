/* What follows from the shapes of a plan: which values share a buffer, the slots of the gradients,
 * FLOPs.
 *
 * The backward pass goes through the nodes from last to first. If several nodes read a value, its
 * gradient is the sum of their contributions.
 *
 * Slots have reference counts. An operation works in place if no other node needs the content of
 * the slot. So a chain of layers of one width needs two slots, whatever its length. */
#include "model/plan/plan_grad.h"

#include <string.h>

#include "base/mem.h"

/* A node takes at most four slots: the activation's input, the node's input, two sums. */
#define SLOTS_OF_NODE 4

struct slots {
    struct net_plan *p;
    int *refs;    /* [SLOTS_OF_NODE * n_nodes], of which n_slots are used */
    int *holder;  /* [n_nodes]: slot of the gradient with respect to the node's value */
    bool *needed; /* [n_nodes]: does it, or a node that it reads from, have parameters? */
};

static void slots_done(struct slots *s)
{
    free(s->refs);
    free(s->holder);
    free(s->needed);
}

static int new_slot(struct slots *s, size_t elements)
{
    size_t i = s->p->n_slots++;
    s->p->slots[i] = elements;
    s->refs[i] = 1;
    return (int)i;
}

/* Take a free slot with at least so many elements: the smallest that is large enough, else the
 * largest, which grows. */
static int take_slot(struct slots *s, size_t elements)
{
    const size_t *size = s->p->slots;
    int best = NET_NO_SLOT;
    for (int i = 0; i < (int)s->p->n_slots; i++) {
        if (s->refs[i] > 0)
            continue;
        bool fits = size[i] >= elements, best_fits = best >= 0 && size[best] >= elements;
        if (best < 0 || (fits && !best_fits) || (fits && size[i] < size[best]) ||
            (!fits && !best_fits && size[i] > size[best]))
            best = i;
    }
    if (best < 0)
        return new_slot(s, elements);
    s->refs[best] = 1;
    if (s->p->slots[best] < elements)
        s->p->slots[best] = elements;
    return best;
}

static bool has_one_owner(const struct slots *s, int slot)
{
    return slot >= 0 && s->refs[slot] == 1;
}

static void release_slot(struct slots *s, int slot)
{
    if (slot >= 0)
        s->refs[slot]--;
}

/* The slot for a result computed from slot `from`, which this node holds: `from` itself if no other
 * node needs it, else a new one, and `from` is released. */
static int slot_for_result(struct slots *s, int from, size_t elements)
{
    if (has_one_owner(s, from))
        return from;
    int to = take_slot(s, elements);
    release_slot(s, from);
    return to;
}

/* Add the gradient in `dx` to that of the value of `node`: it is the first contribution, or it is
 * added to the old one, in the slot of either that no other node needs, or in a new slot. */
static void add_contribution(struct slots *s, size_t node, int dx, int *ret_old, int *ret_sum)
{
    int old = s->holder[node], sum = dx;
    *ret_old = old;
    if (old == NET_NO_SLOT) { /* the first contribution: the value shares the slot of dx */
        if (dx >= 0)
            s->refs[dx]++;
    } else if (has_one_owner(s, old)) {
        sum = old;
    } else if (has_one_owner(s, dx)) {
        s->refs[dx]++;
        release_slot(s, old);
    } else {
        sum = take_slot(s, net_shape_elements(s->p->nodes[node].out));
        release_slot(s, old);
    }
    s->holder[node] = *ret_sum = sum;
}

static bool has_own_activation(const struct net_node *n)
{
    return n->act != NET_ACT_NONE && n->op != NET_BATCH_NORM;
}

static void plan_node(struct slots *s, size_t i)
{
    struct net_node *n = &s->p->nodes[i];
    bool wanted = s->needed[n->from];
    struct net_grad g = {.dy = s->holder[i],
                         .dx = NET_NO_SLOT,
                         .old = NET_NO_SLOT,
                         .sum = NET_NO_SLOT,
                         .old2 = NET_NO_SLOT,
                         .sum2 = NET_NO_SLOT};
    size_t out = net_shape_elements(n->out);
    g.pre = has_own_activation(n) ? slot_for_result(s, g.dy, out) : g.dy;
    int held = g.pre; /* the slot that this node releases at its end */
    switch (n->op) {
    case NET_BATCH_NORM:
    case NET_LAYER_NORM:
    case NET_DROPOUT:
        held = g.dx = slot_for_result(s, g.pre, out);
        break;
    case NET_ADD:
        g.dx = g.pre;
        break;
    case NET_EMBEDDING:
    case NET_CATEGORIES:
        wanted = false;
        break;
    default:
        if (wanted)
            g.dx = take_slot(s, net_shape_elements(n->in));
        break;
    }
    bool both = n->op == NET_ADD && s->needed[n->with];
    /* a sum contributes one slot to two values: keep it until both contributions are planned */
    if (both && g.dx >= 0)
        s->refs[g.dx]++;
    if (wanted)
        add_contribution(s, n->from, g.dx, &g.old, &g.sum);
    if (both && g.dx >= 0)
        release_slot(s, g.dx);
    if (both)
        add_contribution(s, n->with, g.dx, &g.old2, &g.sum2);
    release_slot(s, held);
    if (g.dx != held)
        release_slot(s, g.dx);
    n->grad = g;
}

/* Then the gradient by it cannot take its place. It is the last node of parts of networks alone: a
 * whole one ends with a linear layer. */
static bool reads_own_value(const struct net_node *n)
{
    return n->act != NET_ACT_NONE || n->op == NET_ATTENTION;
}

static as_status plan_gradients(struct net_plan *p, struct as_err *err)
{
    AS_AUTO(slots_done)
    struct slots s = {.p = p,
                      .refs = as_calloc(SLOTS_OF_NODE * p->n_nodes, sizeof(int)),
                      .holder = as_calloc(p->n_nodes, sizeof(int)),
                      .needed = as_calloc(p->n_nodes, sizeof(bool))};
    free(p->slots);
    p->slots = as_calloc(SLOTS_OF_NODE * p->n_nodes, sizeof *p->slots);
    p->n_slots = 0;
    if (!s.refs || !s.holder || !s.needed || !p->slots)
        return as_fail_nomem(err);
    for (size_t i = 0; i < p->n_nodes; i++) {
        const struct net_node *n = &p->nodes[i];
        bool trains = n->op == NET_LINEAR || n->op == NET_CONV || n->op == NET_BATCH_NORM ||
                      n->op == NET_LAYER_NORM || n->op == NET_EMBEDDING || n->op == NET_CATEGORIES;
        s.holder[i] = NET_NO_SLOT;
        s.needed[i] = n->op == NET_INPUT ? p->wants_dx
                                         : trains || s.needed[n->from] ||
                                               (n->with != NET_NONE && s.needed[n->with]);
    }
    const struct net_node *last = &p->nodes[p->n_nodes - 1];
    s.holder[p->n_nodes - 1] =
        reads_own_value(last) ? take_slot(&s, net_shape_elements(last->out)) : NET_OUTPUT_SLOT;
    for (size_t i = p->n_nodes - 1; i > 0; i--) {
        if (s.needed[i])
            plan_node(&s, i);
        else
            p->nodes[i].grad = (struct net_grad){NET_NO_SLOT, NET_NO_SLOT, NET_NO_SLOT, NET_NO_SLOT,
                                                 NET_NO_SLOT, NET_NO_SLOT, NET_NO_SLOT};
    }
    p->input_slot = s.holder[0]; /* no later node has taken it */
    return AS_OK;
}

/* Dropout may overwrite its input if no other node reads it and the backward pass does not need it
 * unchanged. With relu it does not: the gradient is 0 where the dropped output is 0. With tanh it
 * does, and attention reads its own output again. The last node of a part of a network keeps a
 * buffer: its gradient comes from elsewhere. */
static void plan_in_place(struct net_plan *p)
{
    for (size_t i = 1; i < p->n_nodes; i++) {
        struct net_node *n = &p->nodes[i];
        const struct net_node *source = &p->nodes[n->from];
        size_t readers = 0;
        for (size_t j = 1; j < p->n_nodes; j++)
            readers +=
                (size_t)(p->nodes[j].from == n->from) + (size_t)(p->nodes[j].with == n->from);
        n->in_place = n->op == NET_DROPOUT && i + 1 < p->n_nodes && readers == 1 &&
                      source->op != NET_INPUT && source->op != NET_ATTENTION &&
                      source->act != NET_ACT_TANH;
    }
}

/* The FLOPs of one row: returns those of the forward pass, *ret_back those of the backward pass. */
static double node_flops(const struct net_node *n, double *ret_back)
{
    double out = (double)net_shape_elements(n->out), flops = out;
    bool dx = n->grad.dx != NET_NO_SLOT;
    if (n->op == NET_LINEAR) {
        flops = 2 * out * (double)n->in.channels;
        *ret_back = dx ? 2 * flops : flops;
    } else if (n->op == NET_CONV) {
        size_t patch = n->kernel_h * n->kernel_w * (n->in.channels / n->groups);
        flops = 2 * out * (double)patch;
        *ret_back = dx ? 2 * flops : flops;
    } else if (n->op == NET_ATTENTION) {
        double t = (double)n->in.width; /* T (T + 1) / 2 pairs, a dot product and a sum each */
        flops = 2 * t * (t + 1) * (double)n->out.channels;
        *ret_back = 2 * flops;
    } else if (n->op == NET_POOL_MAX || n->op == NET_POOL_AVG) {
        flops = out * (double)(n->kernel_h * n->kernel_w);
        *ret_back = flops;
    } else {
        *ret_back = n->op == NET_INPUT ? 0 : out;
        flops = *ret_back;
    }
    return flops;
}

double net_node_flops_train(const struct net_node *n)
{
    double back = 0, forward = node_flops(n, &back);
    return forward + back;
}

as_status net_plan_finish(struct net_plan *p, struct as_err *err)
{
    plan_in_place(p);
    as_status st = plan_gradients(p, err);
    if (st != AS_OK)
        return st;
    p->flops_forward = p->flops_train = 0;
    for (size_t i = 0; i < p->n_nodes; i++) {
        double back = 0, forward = node_flops(&p->nodes[i], &back);
        p->flops_forward += forward;
        p->flops_train += forward + back;
    }
    return AS_OK;
}
