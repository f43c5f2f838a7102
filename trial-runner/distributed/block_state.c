/* A piece is the state of one block at one step. Pieces are moved in an order that all ranks know:
 * block by block, first to the rank that computes it, then to the one with its copy. Who gives is
 * the first rank that has it, as all know from a table of claims. */
#include "trial-runner/distributed/block_state.h"

#include <stdlib.h>
#include <string.h>

enum { TAG_CLAIMS = 16, TAG_MOVE, TAG_MOVED, TAG_GATHER };
enum { ARRAYS = 4 }; /* weights, two moments, statistics */

struct piece {
    size_t block;
    int64_t step;
    float *values[ARRAYS]; /* NULL: it has none */
};

struct block_states {
    struct replica *replica;
    const struct replica_blocks *blocks;
    struct piece *pieces; /* [most] */
    size_t n, most;
    int64_t whole_step; /* at which the replica has the whole state; -1: it has not */
    bool fresh;         /* nothing is known yet but the start values, at step 0 */
};

/* ---- places ---- */

void block_places_own(const struct block_places *p, int32_t rank, size_t *ret_first,
                      size_t *ret_end)
{
    bool has = (size_t)rank < p->stages;
    *ret_first = has ? p->bounds[rank] : 0;
    *ret_end = has ? p->bounds[rank + 1] : 0;
}

void block_places_copies(const struct block_places *p, int32_t rank, size_t *ret_first,
                         size_t *ret_end)
{
    size_t before = ((size_t)rank + p->stages - 1) % p->stages;
    bool has = p->copied && (size_t)rank < p->stages;
    *ret_first = has ? p->bounds[before] : 0;
    *ret_end = has ? p->bounds[before + 1] : 0;
}

static size_t stage_of(const struct block_places *p, size_t block)
{
    size_t s = 0;
    while (p->bounds[s + 1] <= block)
        s++;
    return s;
}

static bool has_place(const struct block_places *p, int32_t rank, size_t block)
{
    size_t first, end;
    block_places_own(p, rank, &first, &end);
    if (first <= block && block < end)
        return true;
    block_places_copies(p, rank, &first, &end);
    return first <= block && block < end;
}

size_t block_sums_length(const struct replica_blocks *b, size_t first, size_t end)
{
    size_t n = 0;
    for (size_t i = first; i < end; i++)
        n += b->of[i].n + b->of[i].n_state;
    return n;
}

/* ---- pieces ---- */

static void free_piece(struct piece *p)
{
    for (size_t a = 0; a < ARRAYS; a++)
        free(p->values[a]);
    *p = (struct piece){0};
}

void block_states_free(struct block_states *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < s->n; i++)
        free_piece(&s->pieces[i]);
    free(s->pieces);
    free(s);
}

as_status block_states_create(struct replica *replica, struct block_states **ret,
                              struct as_err *err)
{
    AS_AUTO(block_states_freep) struct block_states *s = as_calloc(1, sizeof *s);
    if (!s)
        return as_fail_nomem(err);
    *s = (struct block_states){.replica = replica,
                               .blocks = replica->blocks,
                               .most = 2 * replica->blocks->n,
                               .whole_step = -1,
                               .fresh = true};
    s->pieces = as_calloc(s->most, sizeof *s->pieces);
    if (!s->pieces)
        return as_fail_nomem(err);
    *ret = as_steal(s);
    return AS_OK;
}

static size_t length_of(const struct block_states *s, size_t block, size_t array)
{
    const struct replica_block *b = &s->blocks->of[block];
    return array == 3 ? b->n_state : array == 2 && !s->replica->has_moment2 ? 0 : b->n;
}

static struct piece *find(const struct block_states *s, size_t block, int64_t step)
{
    for (size_t i = 0; i < s->n; i++)
        if (s->pieces[i].block == block && s->pieces[i].step == step)
            return &s->pieces[i];
    return NULL;
}

static as_status create_piece(const struct block_states *s, size_t block, int64_t step,
                              struct piece *ret, struct as_err *err)
{
    struct piece p = {.block = block, .step = step};
    for (size_t a = 0; a < ARRAYS; a++) {
        size_t n = length_of(s, block, a);
        if (n > 0 && !(p.values[a] = as_calloc(n, sizeof(float)))) {
            free_piece(&p);
            return as_fail_nomem(err);
        }
    }
    *ret = p;
    return AS_OK;
}

/* There is room: pieces here are of one step when others come, and of different blocks. */
static void keep_piece(struct block_states *s, const struct piece *p)
{
    s->pieces[s->n++] = *p;
}

/* All but those of that step which have a place here (NULL: all have). */
static void forget(struct block_states *s, const struct block_places *places, int32_t rank,
                   int64_t step)
{
    size_t n = 0;
    for (size_t i = 0; i < s->n; i++) {
        struct piece *p = &s->pieces[i];
        if (p->step == step && (!places || has_place(places, rank, p->block)))
            s->pieces[n++] = *p;
        else
            free_piece(p);
    }
    s->n = n;
}

size_t block_states_bytes(const struct block_states *s)
{
    size_t n = 0;
    for (size_t i = 0; i < s->n; i++)
        for (size_t a = 0; a < ARRAYS; a++)
            n += length_of(s, s->pieces[i].block, a);
    return n * sizeof(float);
}

void block_states_restored(struct block_states *s)
{
    const struct replica *r = s->replica;
    s->whole_step = r->ops->step(r->self);
    s->fresh = false;
    forget(s, NULL, 0, -1);
}

/* ---- steps ---- */

static as_status scaled(const float *values, size_t n, float scale, float **ret, struct as_err *err)
{
    float *to = as_calloc(n, sizeof *to);
    if (!to)
        return as_fail_nomem(err);
    for (size_t i = 0; i < n; i++)
        to[i] = values[i] * scale;
    *ret = to;
    return AS_OK;
}

static as_status update(struct block_states *s, struct backend *lane, int64_t step, struct piece *p,
                        const float *gradient, float scale, int32_t steps_done, struct as_err *err)
{
    const struct replica *r = s->replica;
    const struct replica_block *b = &s->blocks->of[p->block];
    AS_AUTO(as_freep) float *own = NULL;
    as_status st = scale == 1 ? AS_OK : scaled(gradient, b->n, scale, &own, err);
    const struct replica_slice slice = {.first = b->first,
                                        .n = b->n,
                                        .params = p->values[0],
                                        .grads = own ? own : gradient,
                                        .moment1 = p->values[1],
                                        .moment2 = p->values[2]};
    return st < 0 ? st : r->ops->update_slice(r->self, lane, step, steps_done, &slice, err);
}

as_status block_states_apply(struct block_states *s, struct backend *lane, int64_t step,
                             const struct block_sums *sums, float scale, bool active,
                             struct as_err *err)
{
    const struct replica_block *of = s->blocks->of;
    struct replica_numbers now;
    as_status st = s->blocks->ops->numbers(s->blocks->self, &now, err);
    if (st < 0 || sums->first == sums->end)
        return st;
    size_t n = of[sums->end - 1].first + of[sums->end - 1].n - of[sums->first].first;
    for (size_t i = sums->first; i < sums->end; i++) {
        struct piece *p = find(s, i, step);
        size_t at = of[i].first - of[sums->first].first;
        size_t state = n + of[i].first_state - of[sums->first].first_state;
        if (!p)
            return as_fail(err, AS_E_INTERNAL, "block %zu is not here at step %lld", i,
                           (long long)step);
        if (active && (st = update(s, lane, step, p, sums->values + at, scale, now.steps, err)) < 0)
            return st;
        if (of[i].n_state > 0)
            memcpy(p->values[3], sums->values + state, of[i].n_state * sizeof(float));
        p->step = step + 1;
    }
    return AS_OK;
}

as_status block_states_put(const struct block_states *s, size_t first, size_t end,
                           struct as_err *err)
{
    int64_t step = s->replica->ops->step(s->replica->self);
    as_status st = AS_OK;
    for (size_t i = first; st == AS_OK && i < end; i++) {
        const struct piece *p = find(s, i, step);
        st = p ? s->blocks->ops->put(s->blocks->self, i, p->values[0], p->values[3], err)
               : as_fail(err, AS_E_INTERNAL, "block %zu is not here", i);
    }
    return st;
}

/* ---- moving ---- */

/* Of a whole state, the values of a block. */
static const float *whole_at(const struct block_states *s, const struct slot_state *whole,
                             size_t block, size_t array)
{
    const struct replica_block *b = &s->blocks->of[block];
    const float *of[ARRAYS] = {whole->params, whole->moment1, whole->moment2, whole->statistics};
    return of[array] + (array == 3 ? b->first_state : b->first);
}

/* From what this rank has whole, or from the start values. */
static as_status make_piece(struct block_states *s, size_t block, int64_t step, struct as_err *err)
{
    struct slot_state *whole = NULL;
    struct piece p;
    as_status st = s->blocks->ops->whole(s->blocks->self, false, &whole, err);
    if (st < 0 || (st = create_piece(s, block, step, &p, err)) < 0)
        return st;
    if (s->fresh)
        s->blocks->ops->draw(s->blocks->self, block, p.values[0], p.values[3]);
    for (size_t a = 0; !s->fresh && a < ARRAYS; a++)
        if (p.values[a])
            memcpy(p.values[a], whole_at(s, whole, block, a),
                   length_of(s, block, a) * sizeof(float));
    keep_piece(s, &p);
    return AS_OK;
}

static bool can_make(const struct block_states *s, int64_t step)
{
    return (s->fresh && step == 0) || s->whole_step == step;
}

/* claims [ranks, blocks]: 1 where a rank has a block. */
static as_status exchange_claims(const struct block_states *s, struct coll *c, int64_t step,
                                 uint8_t **ret, struct as_err *err)
{
    size_t n = s->blocks->n;
    uint8_t *claims = as_calloc((size_t)coll_size(c), n);
    if (!claims)
        return as_fail_nomem(err);
    for (size_t i = 0; i < n; i++)
        claims[(size_t)coll_rank(c) * n + i] = can_make(s, step) || find(s, i, step);
    as_status st = coll_allgather(c, (struct coll_id){.tag = TAG_CLAIMS, .what = "blocks"}, claims,
                                  (size_t)coll_size(c), n, err);
    if (st == AS_OK)
        *ret = claims;
    else
        free(claims);
    return st;
}

static as_status send_piece(struct block_states *s, struct coll *c, size_t block, int32_t to,
                            int64_t step, struct as_err *err)
{
    struct coll_id id = {.step = block, .tag = TAG_MOVE, .what = "a block"};
    as_status st = find(s, block, step) ? AS_OK : make_piece(s, block, step, err);
    const struct piece *p = st < 0 ? NULL : find(s, block, step);
    for (size_t a = 0; st == AS_OK && a < ARRAYS; a++)
        if (p->values[a])
            st = coll_send(c, id, to, p->values[a], length_of(s, block, a) * sizeof(float), err);
    return st;
}

static as_status receive_piece(struct block_states *s, struct coll *c, size_t block, int32_t from,
                               int64_t step, struct as_err *err)
{
    struct coll_id id = {.step = block, .tag = TAG_MOVE, .what = "a block"};
    struct piece p = {0};
    as_status st = create_piece(s, block, step, &p, err);
    for (size_t a = 0; st == AS_OK && a < ARRAYS; a++)
        if (p.values[a])
            st =
                coll_receive(c, id, from, p.values[a], length_of(s, block, a) * sizeof(float), err);
    if (st == AS_OK)
        keep_piece(s, &p);
    else
        free_piece(&p);
    return st;
}

/* The block goes to a rank that has a place for it. */
static as_status move_block(struct block_states *s, struct coll *c, const uint8_t *claims,
                            size_t block, int32_t to, int64_t step, struct as_err *err)
{
    size_t n = s->blocks->n;
    int32_t from = 0, own = coll_rank(c);
    if (claims[(size_t)to * n + block])
        return own == to && !find(s, block, step) ? make_piece(s, block, step, err) : AS_OK;
    while (from < coll_size(c) && !claims[(size_t)from * n + block])
        from++;
    if (from == coll_size(c))
        return as_fail(err, AS_E_STALE, "block %zu of the model was lost with its ranks", block);
    if (own == from)
        return send_piece(s, c, block, to, step, err);
    return own == to ? receive_piece(s, c, block, from, step, err) : AS_OK;
}

static as_status move_all(struct block_states *s, struct coll *c, const struct block_places *p,
                          const uint8_t *claims, int64_t step, struct as_err *err)
{
    as_status st = AS_OK;
    for (size_t i = 0; st == AS_OK && i < s->blocks->n; i++) {
        size_t stage = stage_of(p, i);
        st = move_block(s, c, claims, i, (int32_t)stage, step, err);
        if (st == AS_OK && p->copied)
            st = move_block(s, c, claims, i, (int32_t)((stage + 1) % p->stages), step, err);
    }
    return st;
}

as_status block_states_move(struct block_states *s, struct coll *c,
                            const struct block_places *places, struct as_err *err)
{
    int64_t step = s->replica->ops->step(s->replica->self);
    AS_AUTO(as_freep) uint8_t *claims = NULL;
    as_status st;
    forget(s, NULL, 0, step);
    if ((st = exchange_claims(s, c, step, &claims, err)) < 0 ||
        (st = move_all(s, c, places, claims, step, err)) < 0 ||
        (st = coll_barrier(c, (struct coll_id){.tag = TAG_MOVED, .what = "blocks"}, err)) < 0)
        return st;
    forget(s, places, coll_rank(c), step);
    s->fresh = false;
    s->whole_step = -1;
    s->blocks->ops->whole_drop(s->blocks->self);
    return AS_OK;
}

/* ---- the whole state ---- */

static as_status gather_block(const struct block_states *s, struct coll *c, size_t block,
                              int32_t from, const struct slot_state *whole, struct as_err *err)
{
    struct coll_id id = {.step = block, .tag = TAG_GATHER, .what = "a block"};
    int32_t own = coll_rank(c);
    const struct piece *p = find(s, block, s->replica->ops->step(s->replica->self));
    as_status st = AS_OK;
    if (own == from && !p)
        return as_fail(err, AS_E_INTERNAL, "block %zu is not here", block);
    for (size_t a = 0; st == AS_OK && a < ARRAYS; a++) {
        size_t bytes = length_of(s, block, a) * sizeof(float);
        float *to = own == 0 && bytes > 0 ? (float *)whole_at(s, whole, block, a) : NULL;
        if (bytes == 0)
            continue;
        if (own == 0 && from == 0)
            memcpy(to, p->values[a], bytes);
        else if (own == from)
            st = coll_send(c, id, 0, p->values[a], bytes, err);
        else if (own == 0)
            st = coll_receive(c, id, from, to, bytes, err);
    }
    return st;
}

as_status block_states_gather(const struct block_states *s, struct coll *c,
                              const struct block_places *places, struct as_err *err)
{
    struct slot_state *whole = NULL;
    as_status st =
        coll_rank(c) == 0 ? s->blocks->ops->whole(s->blocks->self, true, &whole, err) : AS_OK;
    for (size_t i = 0; st == AS_OK && i < s->blocks->n; i++)
        st = gather_block(s, c, i, (int32_t)stage_of(places, i), whole, err);
    if (st < 0 && coll_rank(c) == 0)
        s->blocks->ops->whole_drop(s->blocks->self);
    return st;
}
