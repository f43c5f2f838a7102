/* Layers are found by the names of tensors. A place is a cut if no edge of the graph crosses it but
 * those from the node before it; a layer that does not begin at one (a residual block whose branch
 * begins with a pool) belongs to the layer before it. */
#include "model/plan/plan_cut.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "model/plan/plan_grad.h"

void net_parts_done(struct net_parts *p)
{
    free(p->of);
    *p = (struct net_parts){0};
}

/* ---- layers ---- */

static bool has_params(net_op op)
{
    return op == NET_CATEGORIES || op == NET_LINEAR || op == NET_CONV || op == NET_BATCH_NORM ||
           op == NET_EMBEDDING || op == NET_LAYER_NORM;
}

/* "layers.3.0.weight": layers.3; "head.weight": head. */
static void name_of_layer(const char *tensor, char ret[NET_NAME_MAX])
{
    size_t n = strcspn(tensor, ".");
    if (tensor[n] == '.' && isdigit((unsigned char)tensor[n + 1])) {
        n++;
        n += strcspn(tensor + n, ".");
    }
    (void)snprintf(ret, NET_NAME_MAX, "%.*s", (int)n, tensor);
}

/* Do the nodes from `at` on read nothing from before node at - 1? */
static bool is_cut(const struct net_plan *p, size_t at)
{
    for (size_t i = at; i < p->n_nodes; i++) {
        const struct net_node *n = &p->nodes[i];
        if (n->from + 1 < at || (n->with != NET_NONE && n->with + 1 < at))
            return false;
    }
    return true;
}

static void begin_layer(size_t node, const char *name, struct net_parts *ret)
{
    const struct net_part *before = ret->n > 0 ? &ret->of[ret->n - 1] : NULL;
    struct net_part *l = &ret->of[ret->n++];
    *l = (struct net_part){.first_node = ret->n == 1 ? 1 : node};
    l->first_param = l->end_param = before ? before->end_param : 0;
    l->first_state = l->end_state = before ? before->end_state : 0;
    (void)snprintf(l->name, sizeof l->name, "%s", name);
}

static void add_tensor(const struct net_tensor *t, size_t *end)
{
    size_t to = t->offset + t->count;
    *end = to > *end ? to : *end;
}

static void add_node(const struct net_plan *p, size_t i, struct net_part *l)
{
    const struct net_node *n = &p->nodes[i];
    l->end_node = i + 1;
    l->out = n->out;
    l->flops += net_node_flops_train(n);
    if (!has_params(n->op))
        return;
    add_tensor(&p->tensors[n->weight], &l->end_param);
    if (n->bias != NET_NONE)
        add_tensor(&p->tensors[n->bias], &l->end_param);
    for (size_t k = 0; n->op == NET_BATCH_NORM && k < 2; k++)
        add_tensor(&p->states[n->state + k], &l->end_state);
}

as_status net_plan_layers(const struct net_plan *plan, struct net_parts *ret, struct as_err *err)
{
    struct net_parts found = {.of = as_calloc(plan->n_nodes, sizeof *found.of)};
    char name[NET_NAME_MAX] = "";
    if (!found.of)
        return as_fail_nomem(err);
    for (size_t i = 1; i < plan->n_nodes; i++) {
        const struct net_node *n = &plan->nodes[i];
        if (has_params(n->op))
            name_of_layer(plan->tensors[n->weight].name, name);
        if (has_params(n->op) &&
            (found.n == 0 || (!as_streq(name, found.of[found.n - 1].name) && is_cut(plan, i))))
            begin_layer(i, name, &found);
        if (found.n > 0)
            add_node(plan, i, &found.of[found.n - 1]);
    }
    *ret = found;
    return AS_OK;
}

struct net_part net_part_join(const struct net_part *a, const struct net_part *b)
{
    struct net_part r = *a;
    r.end_node = b->end_node;
    r.end_param = b->end_param;
    r.end_state = b->end_state;
    r.out = b->out;
    r.flops = a->flops + b->flops;
    return r;
}

/* ---- cutting ---- */

/* The tensors of `all` that begin in [first, end), with offsets from `first`. *ret_at: the first of
 * them. */
static as_status cut_tensors(const struct net_tensor *all, size_t n_all, size_t first, size_t end,
                             struct net_tensor **ret, size_t *ret_n, size_t *ret_at,
                             struct as_err *err)
{
    size_t at = 0, n = 0;
    while (at < n_all && all[at].offset < first)
        at++;
    while (at + n < n_all && all[at + n].offset < end)
        n++;
    struct net_tensor *to = as_calloc(n, sizeof *to);
    if (!to)
        return as_fail_nomem(err);
    for (size_t i = 0; i < n; i++) {
        to[i] = all[at + i];
        to[i].offset -= first;
    }
    *ret = to;
    *ret_n = n;
    *ret_at = at;
    return AS_OK;
}

static void lower(size_t *index, size_t by)
{
    if (*index != NET_NONE)
        *index -= by;
}

static void cut_nodes(const struct net_plan *plan, const struct net_part *part, size_t tensor,
                      size_t state, struct net_plan *to)
{
    size_t before = part->first_node - 1; /* becomes node 0 */
    to->nodes[0] = (struct net_node){
        .op = NET_INPUT, .from = NET_NONE, .with = NET_NONE, .out = plan->nodes[before].out};
    for (size_t i = 1; i < to->n_nodes; i++) {
        struct net_node *n = &to->nodes[i];
        *n = plan->nodes[before + i];
        n->from -= before;
        lower(&n->with, before);
        if (has_params(n->op)) {
            n->weight -= tensor;
            lower(&n->bias, tensor);
        }
        if (n->op == NET_BATCH_NORM)
            n->state -= state;
    }
}

as_status net_plan_cut(const struct net_plan *plan, const struct net_part *part,
                       struct net_plan **ret, struct as_err *err)
{
    AS_AUTO(net_plan_freep) struct net_plan *p = as_calloc(1, sizeof *p);
    size_t tensor = 0, state = 0;
    if (!p)
        return as_fail_nomem(err);
    *p = *plan;
    p->tensors = p->states = NULL;
    p->slots = NULL;
    p->n_hidden = 0;
    p->wants_dx = part->first_node > 1;
    p->n_params = part->end_param - part->first_param;
    p->n_state = part->end_state - part->first_state;
    p->n_nodes = part->end_node - part->first_node + 1;
    p->nodes = as_calloc(p->n_nodes, sizeof *p->nodes);
    if (!p->nodes)
        return as_fail_nomem(err);
    as_status st;
    if ((st = cut_tensors(plan->tensors, plan->n_tensors, part->first_param, part->end_param,
                          &p->tensors, &p->n_tensors, &tensor, err)) < 0 ||
        (st = cut_tensors(plan->states, plan->n_states, part->first_state, part->end_state,
                          &p->states, &p->n_states, &state, err)) < 0)
        return st;
    cut_nodes(plan, part, tensor, state, p);
    if ((st = net_plan_finish(p, err)) < 0)
        return st;
    *ret = as_steal(p);
    return AS_OK;
}
