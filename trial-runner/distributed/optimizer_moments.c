/* Divided moments. A rank uses at most two slices. All values in one place (`whole`) exist only at
 * the start, after a checkpoint was read, and on rank 0 while one is written.
 *
 * A world can be over at any point of a meeting, and a rank does not know how far the others have
 * come. So a rank gives nothing away before it knows that all of them have their new slices: the
 * barrier at the end of a meeting. If the barrier fails, others may be through with it and have
 * only the new slices, or may not have got theirs: this rank keeps both, until a later meeting is
 * complete. For the same reason the moments behind a step whose end this rank missed are computed
 * beside the old ones: the only rank that has the new parameters may be lost before this one gets
 * them, and the step is then repeated. */
#include "trial-runner/distributed/optimizer_moments.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK 65536 /* parameters that are updated at once */
#define MAX_HELD 2

enum { TAG_PARAMS = 32, TAG_COUNTS, TAG_CLAIMS, TAG_MOVE, TAG_MOVED, TAG_GATHER };

/* A run of parameters, and their moments. */
struct held {
    int64_t step; /* the position that the moments are about */
    size_t first, end;
    float *moment[2]; /* [end - first] each; the second may be NULL */
};

struct moments {
    struct replica *replica;
    size_t kinds; /* 1 or 2 moments */
    size_t copies;
    struct held held[MAX_HELD]; /* what steps use: the slices of the last complete meeting */
    size_t n_held;
    struct held *kept; /* beside it, until a meeting is complete; it has room for max_kept */
    size_t n_kept, max_kept;
    bool all;        /* `whole` has the values of `step`; nothing is held apart */
    bool gathered;   /* `whole` was filled for a checkpoint */
    float *whole[2]; /* [n_params]: memory is used only while they have values */
    int64_t step;    /* the position that `whole` is about */
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
    free_held(m->kept, m->n_kept);
    free(m->kept);
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
    for (size_t i = 0; i < m->n_kept; i++)
        n += m->kept[i].end - m->kept[i].first;
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

/* The moments of a slice behind the step. The replica still has the old parameters. */
static as_status advance_held(const struct moments *m, struct held *h, struct as_err *err)
{
    const struct replica *r = m->replica;
    for (size_t at = h->first; at < h->end;) {
        size_t n = block_at(at, h->end), from = at - h->first;
        as_status st = r->ops->params_get(r->self, at, n, m->block[0], err);
        if (st == AS_OK)
            st = update_block(m, h->step, at, n, m->block[0], h->moment[0] + from,
                              m->kinds > 1 ? h->moment[1] + from : NULL, err);
        if (st < 0)
            return st;
        at += n;
    }
    h->step++;
    return AS_OK;
}

/* This rank has all new parameters. */
static as_status new_moments(struct moments *m, struct as_err *err)
{
    as_status st = AS_OK;
    for (size_t i = 0; st == AS_OK && i < m->n_held; i++)
        st = advance_held(m, &m->held[i], err);
    m->pending = -1;
    return st;
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
    return st < 0 ? st : new_moments(m, err);
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
    for (size_t i = 0; st == AS_OK && i < m->n_held; i++)
        m->held[i].step = r->ops->step(r->self); /* a frozen model's moments do not change */
    return st;
}

/* ---- what a rank holds ---- */

/* Room for more in `kept`: who has got new slices must be able to keep them. */
static as_status reserve(struct moments *m, size_t more, struct as_err *err)
{
    size_t n = m->n_kept + more;
    as_status st = n > m->max_kept ? as_grow(&m->kept, n, sizeof *m->kept, err) : AS_OK;
    if (st == AS_OK && n > m->max_kept)
        m->max_kept = n;
    return st;
}

static as_status alloc_held(const struct moments *m, struct held *h, struct as_err *err)
{
    for (size_t k = 0; k < m->kinds; k++)
        if (!(h->moment[k] = as_calloc(h->end - h->first, sizeof(float)))) {
            free_held(h, 1);
            return as_fail_nomem(err);
        }
    return AS_OK;
}

/* Slice i of all that are about a position, whatever they are kept for; NULL: there are fewer. */
static const struct held *held_at(const struct moments *m, int64_t step, size_t i)
{
    for (size_t k = 0; k < m->n_held; k++)
        if (m->held[k].step == step && i-- == 0)
            return &m->held[k];
    for (size_t k = 0; k < m->n_kept; k++)
        if (m->kept[k].step == step && i-- == 0)
            return &m->kept[k];
    return NULL;
}

static void drop_kept(struct moments *m, size_t which)
{
    free_held(&m->kept[which], 1);
    m->kept[which] = m->kept[--m->n_kept];
}

/* Are all of its values in other slices, too? */
static bool is_spare(const struct moments *m, const struct held *h)
{
    for (size_t at = h->first, end = at; at < h->end; at = end) {
        const struct held *o;
        for (size_t i = 0; (o = held_at(m, h->step, i)); i++)
            if (o != h && o->first <= at && at < o->end && o->end > end)
                end = o->end;
        if (end == at)
            return false;
    }
    return true;
}

/* Takes n slices, for which there is room. What others cover is given back, so each value is there
 * at most twice beside what steps use. */
static void keep(struct moments *m, const struct held *h, size_t n)
{
    for (size_t i = 0; i < n; i++)
        m->kept[m->n_kept++] = h[i];
    for (size_t i = m->n_kept; i-- > 0;)
        if (is_spare(m, &m->kept[i]))
            drop_kept(m, i);
}

/* The replica is at this position now, and never goes back. What is about the next one, which no
 * rank has any more, can be computed again. */
static void forget_others(struct moments *m, int64_t step)
{
    for (size_t i = m->n_kept; i-- > 0;)
        if (m->kept[i].step != step)
            drop_kept(m, i);
    if (m->n_held > 0 && m->held[0].step != step) {
        free_held(m->held, m->n_held);
        m->n_held = 0;
    }
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

/* What ranks have of the moments at one position. */
struct claim {
    uint64_t first, end;
};

struct claims {
    struct claim *of; /* [ranks, each] */
    size_t each;      /* the most that a rank has; others' rows end with empty ones */
    int32_t n;
};

static void list_own(const struct moments *m, int64_t step, struct claim *ret)
{
    const struct held *h;
    if (m->all && m->step == step)
        *ret++ = (struct claim){0, m->replica->n_params};
    for (size_t i = 0; (h = held_at(m, step, i)); i++)
        ret[i] = (struct claim){h->first, h->end};
}

/* ret->of: the caller's. */
static as_status exchange_claims(const struct moments *m, struct coll *c, int64_t step,
                                 struct claims *ret, struct as_err *err)
{
    int32_t n = coll_size(c), own = coll_rank(c);
    AS_AUTO(as_freep) uint64_t *counts = as_calloc((size_t)n, sizeof *counts);
    AS_AUTO(as_freep) struct claim *of = NULL;
    size_t each = 1;
    if (!counts)
        return as_fail_nomem(err);
    counts[own] = m->all && m->step == step;
    for (size_t i = 0; held_at(m, step, i); i++)
        counts[own]++;
    as_status st = coll_allgather(c, (struct coll_id){.tag = TAG_COUNTS, .what = "moments"}, counts,
                                  (size_t)n, sizeof *counts, err);
    for (int32_t r = 0; st == AS_OK && r < n; r++)
        each = counts[r] > each ? (size_t)counts[r] : each;
    if (st < 0 || !(of = as_calloc((size_t)n * each, sizeof *of)))
        return st < 0 ? st : as_fail_nomem(err);
    list_own(m, step, of + (size_t)own * each);
    st = coll_allgather(c, (struct coll_id){.tag = TAG_CLAIMS, .what = "moments"}, of,
                        (size_t)n * each, sizeof *of, err);
    if (st == AS_OK)
        *ret = (struct claims){.of = as_steal(of), .each = each, .n = n};
    return st;
}

/* How far from `at` on a slice of the rank reaches; `at`: not at all. */
static size_t claimed_to(const struct claims *l, int32_t rank, size_t at)
{
    const struct claim *c = l->of + (size_t)rank * l->each;
    size_t end = at;
    for (size_t i = 0; i < l->each; i++)
        if (c[i].first <= at && at < c[i].end && c[i].end > end)
            end = (size_t)c[i].end;
    return end;
}

/* The rank that gives values from `at` on, and how far: the receiver itself if it has them. */
static int32_t giver_of(const struct claims *l, int32_t to, size_t at, size_t *ret_end)
{
    if ((*ret_end = claimed_to(l, to, at)) > at)
        return to;
    for (int32_t r = 0; r < l->n; r++)
        if ((*ret_end = claimed_to(l, r, at)) > at)
            return r;
    return -1;
}

static float *values_at(const struct moments *m, int64_t step, size_t kind, size_t at, size_t end)
{
    const struct held *h;
    if (m->all && m->step == step)
        return m->whole[kind] + at;
    for (size_t i = 0; (h = held_at(m, step, i)); i++)
        if (h->first <= at && end <= h->end)
            return h->moment[kind] + (at - h->first);
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
            memcpy(into, values_at(m, to->step, k, at, end), bytes);
        else if (giver != taker && giver == own)
            st = coll_send(c, id, taker, values_at(m, to->step, k, at, end), bytes, err);
        else if (giver != taker && taker == own)
            st = coll_receive(c, id, giver, into, bytes, err);
    }
    return st;
}

/* All ranks go through all moves in one order; each does its own. `mine` are this rank's slices. */
static as_status move_all(const struct moments *m, struct coll *c, const struct claims *claims,
                          const struct held *mine, struct as_err *err)
{
    int32_t n = coll_size(c);
    for (int32_t r = 0; r < n; r++) {
        struct held needs[MAX_HELD];
        size_t n_needs = list_needs(m, n, r, needs);
        for (size_t i = 0; i < n_needs; i++)
            for (size_t at = needs[i].first, end; at < needs[i].end; at = end) {
                int32_t giver = giver_of(claims, r, at, &end);
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

/* `mine` [MAX_HELD]: this rank's slices in this world, n of them; none after a failure. */
static as_status get_slices(const struct moments *m, struct coll *c, int64_t step,
                            struct held *mine, size_t *ret_n, struct as_err *err)
{
    struct claims claims = {0};
    size_t n = list_needs(m, coll_size(c), coll_rank(c), mine);
    as_status st = exchange_claims(m, c, step, &claims, err);
    for (size_t i = 0; st == AS_OK && i < n; i++) {
        mine[i].step = step;
        st = alloc_held(m, &mine[i], err);
    }
    if (st == AS_OK)
        st = move_all(m, c, &claims, mine, err);
    free(claims.of);
    if (st < 0)
        free_held(mine, n);
    else
        *ret_n = n;
    return st;
}

static as_status redivide(struct moments *m, struct coll *c, int64_t step, struct as_err *err)
{
    struct held mine[MAX_HELD] = {0};
    size_t n = 0;
    as_status st;
    if ((st = reserve(m, MAX_HELD, err)) < 0 || (st = get_slices(m, c, step, mine, &n, err)) < 0)
        return st;
    st = coll_barrier(c, (struct coll_id){.tag = TAG_MOVED, .what = "moments"}, err);
    if (st < 0) {
        keep(m, mine, n);
        return st;
    }
    free_held(m->held, m->n_held);
    free_held(m->kept, m->n_kept);
    memcpy(m->held, mine, sizeof mine);
    m->n_held = n;
    m->n_kept = 0;
    m->pending = -1;
    if (m->all)
        drop_whole(m);
    (void)printf("moments: %zu bytes of %zu on this rank\n", moments_bytes(m),
                 m->replica->n_params * m->kinds * sizeof(float));
    return AS_OK;
}

/* The others have all parameters of the step whose end this rank missed: its slices behind that
 * step, beside those of before it. */
static as_status catch_moments_up(struct moments *m, struct as_err *err)
{
    as_status st = reserve(m, m->n_held, err);
    for (size_t i = 0; st == AS_OK && i < m->n_held; i++) {
        struct held h = {.step = m->pending, .first = m->held[i].first, .end = m->held[i].end};
        if ((st = alloc_held(m, &h, err)) < 0)
            return st;
        for (size_t k = 0; k < m->kinds; k++)
            memcpy(h.moment[k], m->held[i].moment[k], (h.end - h.first) * sizeof(float));
        st = advance_held(m, &h, err);
        m->kept[m->n_kept++] = h;
    }
    return st;
}

as_status moments_meet(struct moments *m, struct meeting *meeting, struct as_err *err)
{
    struct replica *r = m->replica;
    int64_t ahead = 0, own = r->ops->step(r->self);
    for (int32_t k = 0; k < coll_size(meeting->coll); k++)
        ahead = meeting->steps[k] > ahead ? meeting->steps[k] : ahead;
    as_status st = AS_OK;
    if (m->pending == own && ahead == own + 1 && !held_at(m, ahead, 0))
        st = catch_moments_up(m, err);
    if (st < 0 || (st = meeting_catch_up(meeting, err)) < 0)
        return st;
    forget_others(m, ahead);
    return redivide(m, meeting->coll, ahead, err);
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
