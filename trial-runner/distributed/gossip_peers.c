/* What the ranks of gossip send to each other: halves of their weights with their models, and the
 * question how far a peer has come (gossip.c says why).
 *
 * Requests arrive in the mailbox's thread, which puts models in a list under the lock; the rank's
 * own thread takes them in. A question is held back until this rank has come so far: then it sends
 * a request to itself, so that the mailbox's thread answers. */
#include "trial-runner/distributed/gossip_priv.h"

#include <stdlib.h>
#include <string.h>

#include "trial-runner/distributed/push_sum.h"

#define UNREAD_MAX 16 /* models that wait for this rank; beyond it says no */

enum {
    GIVE = 1,
    ASK = 2,  /* the mail's step: answered, with the step of the rank, when it has come so far */
    NUDGE = 3 /* of a rank to itself: it has come further */
};

/* Begins a message; the weights and statistics follow. */
struct given {
    double weight;
};

/* ---- models on their way ---- */

static struct parcel *parcel_new(const struct gossip *g, double weight)
{
    struct parcel *p = as_calloc(1, sizeof *p + g->n_weights * sizeof(float));
    if (p) {
        p->weight = weight;
        p->model = (float *)(void *)(p + 1);
    }
    return p;
}

void gossip_free_parcels(struct parcel *p)
{
    while (p) {
        struct parcel *next = p->next;
        free(p->call.answer);
        free(p);
        p = next;
    }
}

/* ---- the mailbox ---- */

/* Answers a rank that has asked; NULL: nobody. */
static void answer_step(struct mailbox *b, struct mail *m, int64_t reached)
{
    struct mail_part part = {&reached, sizeof reached};
    if (m)
        mailbox_answer(b, m, AS_OK, &part, 1);
}

static void on_ask(struct gossip *g, struct mailbox *b, struct mail *m)
{
    (void)pthread_mutex_lock(&g->lock);
    int64_t reached = g->reached;
    struct mail *before = g->asked[m->from]; /* it asks once at a time: an older one is void */
    bool waits = (int64_t)m->step > reached;
    g->asked[m->from] = waits ? m : NULL;
    (void)pthread_mutex_unlock(&g->lock);
    answer_step(b, before, reached);
    if (!waits)
        answer_step(b, m, reached);
}

static void on_nudge(struct gossip *g, struct mailbox *b, struct mail *m)
{
    for (int32_t r = 0; r < g->n_ranks; r++) {
        struct mail *ready = NULL;
        (void)pthread_mutex_lock(&g->lock);
        int64_t reached = g->reached;
        if (g->asked[r] && (int64_t)g->asked[r]->step <= reached) {
            ready = g->asked[r];
            g->asked[r] = NULL;
        }
        (void)pthread_mutex_unlock(&g->lock);
        answer_step(b, ready, reached);
    }
    mailbox_answer(b, m, AS_OK, NULL, 0);
}

/* Who is lost waits no more. */
static void on_lost(void *arg, struct mailbox *b, int32_t rank)
{
    struct gossip *g = arg;
    (void)pthread_mutex_lock(&g->lock);
    struct mail *m = g->asked[rank];
    g->asked[rank] = NULL;
    (void)pthread_mutex_unlock(&g->lock);
    if (m)
        mailbox_answer(b, m, AS_E_UNAVAILABLE, NULL, 0);
}

static void on_give(struct gossip *g, struct mailbox *b, struct mail *m)
{
    struct given head;
    bool sound = m->n == sizeof head + g->n_weights * sizeof(float);
    if (sound) {
        memcpy(&head, m->bytes, sizeof head);
        sound = head.weight > 0 && head.weight < 1e9;
    }
    struct parcel *p = sound ? parcel_new(g, head.weight) : NULL;
    as_status st = p ? AS_OK : sound ? AS_E_NOMEM : AS_E_INVAL;
    if (p) {
        memcpy(p->model, m->bytes + sizeof head, g->n_weights * sizeof(float));
        (void)pthread_mutex_lock(&g->lock);
        if (g->unread < UNREAD_MAX) {
            p->next = g->in;
            g->in = p;
            g->unread++;
        } else {
            st = AS_E_EXHAUSTED;
        }
        (void)pthread_mutex_unlock(&g->lock);
    }
    if (st != AS_OK)
        free(p);
    mailbox_answer(b, m, st, NULL, 0);
}

static void on_request(void *arg, struct mailbox *b, struct mail *m)
{
    if (m->kind == GIVE)
        on_give(arg, b, m);
    else if (m->kind == ASK)
        on_ask(arg, b, m);
    else if (m->kind == NUDGE)
        on_nudge(arg, b, m);
    else
        mailbox_answer(b, m, AS_E_INVAL, NULL, 0);
}

as_status gossip_set_reached(struct gossip *g, int64_t step, struct as_err *err)
{
    bool wanted = false;
    (void)pthread_mutex_lock(&g->lock);
    g->reached = step;
    for (int32_t r = 0; r < g->n_ranks; r++)
        wanted = wanted || (g->asked[r] && (int64_t)g->asked[r]->step <= step);
    (void)pthread_mutex_unlock(&g->lock);
    struct mail_call call = {.to = g->rank, .kind = NUDGE, .step = (uint64_t)step};
    if (!wanted)
        return AS_OK;
    mailbox_begin(g->box, &call);
    as_status st = mailbox_finish(g->box, &call, err);
    free(call.answer);
    return st;
}

/* Waits until the peer has done `step` steps, or is lost. AS_E_UNAVAILABLE: the epoch is over. */
static as_status await_peer(struct gossip *g, struct coll *c, int32_t to, int64_t step,
                            struct as_err *err)
{
    struct mail_call call = {.to = to, .kind = ASK, .step = (uint64_t)step};
    if (g->known[to] >= step)
        return AS_OK;
    mailbox_begin(g->box, &call);
    as_status st = mailbox_finish(g->box, &call, err);
    if (st == AS_OK && call.answer_n == sizeof g->known[to])
        memcpy(&g->known[to], call.answer, sizeof g->known[to]);
    free(call.answer);
    return st == AS_E_UNAVAILABLE && !coll_is_over(c) ? AS_OK : st;
}

/* ---- the model ---- */

/* A view of the state with weights and statistics alone, in g->model. */
static struct slot_state model_of(const struct gossip *g)
{
    struct slot_state s = g->state;
    s.params = g->model;
    s.statistics = g->replica->n_state ? g->model + g->replica->n_params : NULL;
    s.moment1 = s.moment2 = s.average = NULL;
    return s;
}

as_status gossip_read_model(struct gossip *g, struct as_err *err)
{
    struct slot_state s = model_of(g);
    as_status st = g->replica->ops->state_get(g->replica->self, &s, err);
    g->state.steps = s.steps;
    g->state.active = s.active;
    g->state.loss_sum = s.loss_sum;
    return st;
}

as_status gossip_write_model(struct gossip *g, struct as_err *err)
{
    struct slot_state s = model_of(g);
    return g->replica->ops->state_put(g->replica->self, &s, err);
}

bool gossip_settle_out(struct gossip *g, bool wait)
{
    bool changed = false;
    for (struct parcel **at = &g->out; *at;) {
        struct parcel *p = *at;
        if (!wait && !mailbox_is_done(g->box, &p->call)) {
            at = &p->next;
            continue;
        }
        if (mailbox_finish(g->box, &p->call, NULL) < 0) {
            push_sum_take(g->model, &g->weight, p->model, p->weight, g->n_weights);
            changed = true;
        }
        *at = p->next;
        p->next = NULL;
        gossip_free_parcels(p);
    }
    return changed;
}

bool gossip_take_in(struct gossip *g)
{
    (void)pthread_mutex_lock(&g->lock);
    struct parcel *in = g->in;
    g->in = NULL;
    g->unread = 0;
    (void)pthread_mutex_unlock(&g->lock);
    for (struct parcel *p = in; p; p = p->next)
        push_sum_take(g->model, &g->weight, p->model, p->weight, g->n_weights);
    gossip_free_parcels(in);
    return in != NULL;
}

as_status gossip_give(struct gossip *g, struct coll *c, int64_t step, uint32_t index,
                      struct as_err *err)
{
    int32_t to = push_sum_peer(g->seed, (uint64_t)step, index, g->rank, g->n_ranks);
    as_status st = await_peer(g, c, to, step + 1 - g->staleness, err);
    if (st < 0)
        return st;
    for (const struct parcel *p = g->out; p; p = p->next)
        if (p->call.to == to)
            return AS_OK;
    if (mailbox_has_lost(g->box, to))
        return AS_OK;
    struct parcel *p = parcel_new(g, 0);
    if (!p)
        return as_fail_nomem(err);
    memcpy(p->model, g->model, g->n_weights * sizeof(float));
    p->weight = push_sum_give(&g->weight);
    p->call = (struct mail_call){
        .to = to,
        .kind = GIVE,
        .step = (uint64_t)step,
        .parts = {{&p->weight, sizeof p->weight}, {p->model, g->n_weights * sizeof(float)}}};
    p->next = g->out;
    g->out = p;
    mailbox_begin(g->box, &p->call);
    return AS_OK;
}

as_status gossip_leave(struct gossip *g, struct as_err *err)
{
    as_status st = AS_OK;
    if (!g->box)
        return st;
    st = gossip_read_model(g, err);
    struct parcel *out = g->out;
    mailbox_free(as_steal(g->box)); /* ends all calls */
    g->out = NULL;
    for (struct parcel *p = out; p; p = p->next)
        if (p->call.status < 0)
            push_sum_take(g->model, &g->weight, p->model, p->weight, g->n_weights);
    (void)gossip_take_in(g);
    gossip_free_parcels(out);
    g->epoch = 0;
    return st < 0 ? st : gossip_write_model(g, err);
}

as_status gossip_join(struct gossip *g, struct coll *c, struct as_err *err)
{
    struct mailbox_opts opts = {.max_bytes = sizeof(struct given) + g->n_weights * sizeof(float),
                                .on_request = on_request,
                                .on_lost = on_lost,
                                .arg = g};
    as_status st = gossip_leave(g, err);
    if (st < 0)
        return st;
    g->rank = coll_rank(c);
    g->n_ranks = coll_size(c);
    g->reached = g->replica->ops->step(g->replica->self);
    free(g->known);
    free(g->asked);
    g->known = as_calloc((size_t)g->n_ranks, sizeof *g->known);
    g->asked = as_calloc((size_t)g->n_ranks, sizeof *g->asked);
    if (!g->known || !g->asked)
        return as_fail_nomem(err);
    st = mailbox_create(c, &opts, &g->box, err);
    g->epoch = coll_world(c)->epoch;
    return st;
}
