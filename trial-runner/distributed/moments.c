/* Divided moments. A rank holds at most two slices. All values in one place (`whole`) exist only at
 * the start, after a checkpoint was read, and on rank 0 while one is written. */
#include "trial-runner/distributed/moments.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK 65536 /* parameters that are updated at once */
#define MAX_HELD 2

enum { TAG_PARAMS = 32, TAG_CLAIMS, TAG_MOVE, TAG_GATHER };

/* A run of parameters, and their moments. */
struct held {
    size_t first, end;
    float *moment[2]; /* [end - first] each; the second may be NULL */
};

struct moments {
    struct replica *replica;
    size_t kinds; /* 1 or 2 moments */
    size_t copies;
    struct held held[MAX_HELD];
    size_t n_held;
    bool all;        /* `whole` has the values; nothing is held apart */
    bool gathered;   /* `whole` was filled for a checkpoint */
    float *whole[2]; /* [n_params]: memory is used only while they have values */
    int64_t step;    /* the position that the values are about */
    int64_t pending; /* this rank has sent its parameters of this step; -1: of none */
    const float *grads;
    struct backend *lane;
    float *block[3]; /* [BLOCK] each: parameters and moments */
};

static void free_held(struct held *h, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        free(h[i].moment[0]);
        free(h[i].moment[1]);
        h[i] = (struct held){0};
    }
}

void moments_free(struct moments *m)
{
    if (!m)
        return;
    free_held(m->held, m->n_held);
    for (size_t i = 0; i < 2; i++)
        free(m->whole[i]);
    for (size_t i = 0; i < 3; i++)
        free(m->block[i]);
    free(m);
}

as_status moments_create(const struct strategy_setup *setup, struct moments **ret,
                         struct as_err *err)
{
    AS_AUTO(moments_freep) struct moments *m = as_calloc(1, sizeof *m);
    if (!m)
        return as_fail_nomem(err);
    struct replica *r = setup->replica;
    *m = (struct moments){.replica = r,
                          .kinds = r->has_moment2 ? 2 : 1,
                          .copies = (size_t)setup->spec->distributed.state_copies,
                          .all = true,
                          .pending = -1};
    for (size_t i = 0; i < m->kinds; i++)
        if (!(m->whole[i] = as_calloc(r->n_params, sizeof(float))))
            return as_fail_nomem(err);
    for (size_t i = 0; i < 3; i++)
        if (!(m->block[i] = as_calloc(BLOCK, sizeof(float))))
            return as_fail_nomem(err);
    *ret = as_steal(m);
    return AS_OK;
}

size_t moments_bytes(const struct moments *m)
{
    size_t n = 0;
    for (size_t i = 0; i < m->n_held; i++)
        n += m->held[i].end - m->held[i].first;
    return n * m->kinds * sizeof(float);
}

/* Gives the memory of values that are held apart back: large arrays that were never written take
 * none. If none is left for new ones, the old ones stay. */
static void drop_whole(struct moments *m)
{
    for (size_t i = 0; i < m->kinds; i++) {
        float *fresh = as_calloc(m->replica->n_params, sizeof *fresh);
        if (!fresh)
            continue;
        free(m->whole[i]);
        m->whole[i] = fresh;
    }
    m->all = m->gathered = false;
}

/* ---- a step ---- */

static as_status update_block(const struct moments *m, int64_t step, size_t first, size_t n,
                              float *params, float *m1, float *m2, struct as_err *err)
{
    const struct replica *r = m->replica;
    struct replica_slice s = {.first = first,
                              .n = n,
                              .params = params,
                              .grads = m->grads + first,
                              .moment1 = m1,
                              .moment2 = m2};
    return r->ops->update_slice(r->self, m->lane, step, (int32_t)step, &s, err);
}

static size_t block_at(size_t first, size_t end)
{
    return end - first < BLOCK ? end - first : BLOCK;
}

/* params = the new ones of this rank's slice. The moments stay. */
static as_status new_params(const struct moments *m, int64_t step, float *params,
                            struct as_err *err)
{
    const struct held *h = &m->held[0];
    for (size_t at = h->first; at < h->end;) {
        size_t n = block_at(at, h->end);
        for (size_t i = 0; i < m->kinds; i++)
            memcpy(m->block[1 + i], h->moment[i] + (at - h->first), n * sizeof(float));
        as_status st = update_block(m, step, at, n, params + at, m->block[1],
                                    m->kinds > 1 ? m->block[2] : NULL, err);
        if (st < 0)
            return st;
        at += n;
    }
    return AS_OK;
}

/* All ranks have the new parameters, but the replica still has the old ones. */
static as_status new_moments(struct moments *m, int64_t step, struct as_err *err)
{
    const struct replica *r = m->replica;
    for (size_t k = 0; k < m->n_held; k++) {
        const struct held *h = &m->held[k];
        for (size_t at = h->first; at < h->end;) {
            size_t n = block_at(at, h->end), from = at - h->first;
            as_status st = r->ops->params_get(r->self, at, n, m->block[0], err);
            if (st == AS_OK)
                st = update_block(m, step, at, n, m->block[0], h->moment[0] + from,
                                  m->kinds > 1 ? h->moment[1] + from : NULL, err);
            if (st < 0)
                return st;
            at += n;
        }
    }
    m->step = step + 1;
    m->pending = -1;
    return AS_OK;
}

struct divided_step {
    struct moments *m;
    struct coll *c;
};

static as_status step_divided(void *arg, const float *grads, float *params, struct as_err *err)
{
    struct divided_step *d = arg;
    struct moments *m = d->m;
    int64_t step = m->replica->ops->step(m->replica->self);
    struct coll_id id = {.step = (uint64_t)step, .tag = TAG_PARAMS, .what = "parameters"};
    m->grads = grads;
    as_status st = new_params(m, step, params, err);
    if (st < 0)
        return st;
    m->pending = step;
    st = coll_allgather(d->c, id, params, m->replica->n_params, sizeof *params, err);
    return st < 0 ? st : new_moments(m, step, err);
}

as_status moments_update(struct moments *m, struct coll *c, struct backend *lane, float *sum,
                         struct as_err *err)
{
    struct divided_step d = {.m = m, .c = c};
    const struct replica *r = m->replica;
    m->lane = lane;
    if (m->gathered)
        drop_whole(m);
    as_status st = r->ops->update_with(r->self, lane, sum, step_divided, &d, err);
    if (st == AS_OK)
        m->step = r->ops->step(r->self); /* also of a frozen model, whose moments do not change */
    return st;
}

/* ---- meeting ---- */

/* The slices that a rank shall hold: its own, and a copy of the next one's. */
static size_t list_needs(const struct moments *m, int32_t size, int32_t rank,
                         struct held ret[MAX_HELD])
{
    size_t n = m->copies > 1 && size > 1 ? 2 : 1;
    for (size_t i = 0; i < n; i++) {
        ret[i] = (struct held){0};
        coll_slice(m->replica->n_params, size, (rank + (int32_t)i) % size, &ret[i].first,
                   &ret[i].end);
    }
    return n;
}

/* What a rank has, as the others see it. */
struct claim {
    uint64_t first[MAX_HELD], end[MAX_HELD];
};

static struct claim claim_of(const struct moments *m, int64_t step)
{
    struct claim c = {0};
    if (m->step != step)
        return c;
    if (m->all)
        c.end[0] = m->replica->n_params;
    for (size_t i = 0; !m->all && i < m->n_held; i++) {
        c.first[i] = m->held[i].first;
        c.end[i] = m->held[i].end;
    }
    return c;
}

/* How far from `at` on the claim reaches; `at`: not at all. */
static size_t claimed_to(const struct claim *c, size_t at)
{
    size_t end = at;
    for (size_t i = 0; i < MAX_HELD; i++)
        if (c->first[i] <= at && at < c->end[i] && c->end[i] > end)
            end = (size_t)c->end[i];
    return end;
}

/* The rank that gives values from `at` on, and how far: the receiver itself if it has them. */
static int32_t giver_of(const struct claim *claims, int32_t n, int32_t to, size_t at,
                        size_t *ret_end)
{
    if ((*ret_end = claimed_to(&claims[to], at)) > at)
        return to;
    for (int32_t r = 0; r < n; r++)
        if ((*ret_end = claimed_to(&claims[r], at)) > at)
            return r;
    return -1;
}

static float *values_at(const struct moments *m, size_t kind, size_t at, size_t end)
{
    if (m->all)
        return m->whole[kind] + at;
    for (size_t i = 0; i < m->n_held; i++)
        if (m->held[i].first <= at && end <= m->held[i].end)
            return m->held[i].moment[kind] + (at - m->held[i].first);
    return NULL; /* not reached: what was claimed is there */
}

/* Values [at, end) go from one rank to another's `to`. */
static as_status move(const struct moments *m, struct coll *c, int32_t giver, int32_t taker,
                      size_t at, size_t end, const struct held *to, struct as_err *err)
{
    struct coll_id id = {.step = at, .tag = TAG_MOVE, .what = "moments"};
    size_t bytes = (end - at) * sizeof(float);
    int32_t own = coll_rank(c);
    as_status st = AS_OK;
    for (size_t k = 0; st == AS_OK && k < m->kinds; k++) {
        float *into = taker == own ? to->moment[k] + (at - to->first) : NULL;
        if (giver == taker && taker == own)
            memcpy(into, values_at(m, k, at, end), bytes);
        else if (giver != taker && giver == own)
            st = coll_send(c, id, taker, values_at(m, k, at, end), bytes, err);
        else if (giver != taker && taker == own)
            st = coll_receive(c, id, giver, into, bytes, err);
    }
    return st;
}

/* All ranks go through all moves in one order; each does its own. `mine` are this rank's slices. */
static as_status move_all(const struct moments *m, struct coll *c, const struct claim *claims,
                          const struct held *mine, struct as_err *err)
{
    int32_t n = coll_size(c);
    for (int32_t r = 0; r < n; r++) {
        struct held needs[MAX_HELD];
        size_t n_needs = list_needs(m, n, r, needs);
        for (size_t i = 0; i < n_needs; i++)
            for (size_t at = needs[i].first, end; at < needs[i].end; at = end) {
                int32_t giver = giver_of(claims, n, r, at, &end);
                if (giver < 0)
                    return as_fail(err, AS_E_STALE,
                                   "the moments of parameter %zu were lost with their ranks", at);
                end = end < needs[i].end ? end : needs[i].end;
                as_status st = move(m, c, giver, r, at, end, &mine[i], err);
                if (st < 0)
                    return st;
            }
    }
    return AS_OK;
}

static as_status redivide(struct moments *m, struct coll *c, int64_t step, struct as_err *err)
{
    int32_t n = coll_size(c), own = coll_rank(c);
    struct held mine[MAX_HELD] = {0};
    AS_AUTO(as_freep) struct claim *claims = as_calloc((size_t)n, sizeof *claims);
    if (!claims)
        return as_fail_nomem(err);
    claims[own] = claim_of(m, step);
    size_t n_mine = list_needs(m, n, own, mine);
    as_status st = coll_allgather(c, (struct coll_id){.tag = TAG_CLAIMS, .what = "moments"}, claims,
                                  (size_t)n, sizeof *claims, err);
    for (size_t i = 0; st == AS_OK && i < n_mine; i++)
        for (size_t k = 0; st == AS_OK && k < m->kinds; k++)
            if (!(mine[i].moment[k] = as_calloc(mine[i].end - mine[i].first, sizeof(float))))
                st = as_fail_nomem(err);
    if (st == AS_OK)
        st = move_all(m, c, claims, mine, err);
    if (st < 0) {
        free_held(mine, n_mine);
        return st;
    }
    free_held(m->held, m->n_held);
    memcpy(m->held, mine, sizeof mine);
    m->n_held = n_mine;
    m->step = step;
    if (m->all)
        drop_whole(m);
    (void)printf("moments: %zu bytes of %zu on this rank\n", moments_bytes(m),
                 m->replica->n_params * m->kinds * sizeof(float));
    return AS_OK;
}

as_status moments_meet(struct moments *m, struct meeting *meeting, struct as_err *err)
{
    struct replica *r = m->replica;
    int64_t ahead = 0;
    for (int32_t k = 0; k < coll_size(meeting->coll); k++)
        ahead = meeting->steps[k] > ahead ? meeting->steps[k] : ahead;
    /* The others have all parameters of the step whose end this rank missed. */
    if (m->pending >= 0 && m->pending == m->step && ahead == m->pending + 1) {
        as_status st = new_moments(m, m->pending, err);
        if (st < 0)
            return st;
    }
    as_status st = meeting_catch_up(meeting, err);
    if (st < 0)
        return st;
    return redivide(m, meeting->coll, r->ops->step(r->self), err);
}

/* ---- checkpoints ---- */

size_t moments_parts(struct moments *m, struct strategy_part *ret)
{
    static const char *const names[] = {"moment1", "moment2"};
    for (size_t i = 0; i < m->kinds; i++)
        ret[i] = (struct strategy_part){
            .name = names[i], .values = m->whole[i], .n = m->replica->n_params, .spread = true};
    return m->kinds;
}

void moments_restored(struct moments *m, bool from_checkpoint)
{
    if (!from_checkpoint)
        return;
    m->all = true;
    m->step = m->replica->ops->step(m->replica->self);
    m->pending = -1;
}

as_status moments_gather(struct moments *m, struct coll *c, struct as_err *err)
{
    int32_t own = coll_rank(c);
    as_status st = AS_OK;
    m->gathered = own == 0; /* `all` stays false: rank 0 goes on with its slices */
    for (int32_t r = 0; st == AS_OK && r < coll_size(c); r++) {
        size_t first, end;
        coll_slice(m->replica->n_params, coll_size(c), r, &first, &end);
        struct coll_id id = {.step = (uint64_t)r, .tag = TAG_GATHER, .what = "moments"};
        size_t bytes = (end - first) * sizeof(float);
        for (size_t k = 0; st == AS_OK && k < m->kinds; k++) {
            if (own == r && r == 0)
                memcpy(m->whole[k] + first, m->held[0].moment[k], bytes);
            else if (own == r)
                st = coll_send(c, id, 0, m->held[0].moment[k], bytes, err);
            else if (own == 0)
                st = coll_receive(c, id, r, m->whole[k] + first, bytes, err);
        }
    }
    return st;
}
