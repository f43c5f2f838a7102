/* L-BFGS over all rows: `optimizer: {kind: lbfgs}` (DistBelief's Sandblaster: Dean et al. 2012;
 * Nocedal and Wright, algorithms 7.5 and 3.1).
 *
 * A step is an iteration: the batch has all rows. The gradient at the weights is known from the
 * iteration before; the history, of which each rank has its pieces, makes a direction of it
 * (lbfgs_history.h). Along it the ranks try lengths, beginning with `lr`, until the objective has
 * fallen enough (Armijo). Each trial is a pass over all shards, whose gradients and losses are
 * summed in the order of the tree: all ranks see the same numbers and decide alike, and the bits
 * are those of one rank. A slow rank gets fewer shards (portions.h): who computes a shard changes
 * no bit.
 *
 * The objective is the mean loss of the rows and, with weight_decay, half of it times the square of
 * the weights. While a trial is computed the replica has its weights; before anything else happens
 * it has its own back. If no length lowers the objective, the weights stay, and the pairs are
 * forgotten.
 *
 * When a rank is lost, its pieces of the pairs are. The iteration is done again, without pairs. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "trial-runner/distributed/lbfgs_history.h"
#include "trial-runner/distributed/own_sum.h"
#include "trial-runner/distributed/portions.h"

enum { TAG_SUM = 1, TAG_SPEED };

#define ENOUGH 1e-4 /* of the fall that the slope promises (Armijo) */
#define NOISE 1e-6  /* of the objective: sums of float32 are not better */
#define MOST_TRIALS 20

struct lbfgs {
    struct replica *replica;
    double lr, decay;
    size_t n; /* of a sum: the gradient's numbers and the wishes */
    struct own_sum *own;
    int64_t sums;           /* that were begun: no two have shards in common */
    struct shard_run *runs; /* by rank */
    double *seconds;        /* of a shard, by rank: of the last sum */
    double own_seconds;
    struct lbfgs_history history;
    struct slot_state base; /* the weights of the position */
    float *moved;           /* [LBFGS_PIECES x stride]: those of a trial */
    float *now;             /* [n + 1]: the sum at the weights; then 1: of the step before */
    int64_t now_of;         /* the position at which this rank had it; -1: none */
    float *tried;           /* [n]: at those of a trial */
    double *of_s, *of_y;    /* of a direction */
};

/* ---- life ---- */

static void lbfgs_free(void *self)
{
    struct lbfgs *l = self;
    if (!l)
        return;
    own_sum_free(l->own);
    lbfgs_history_done(&l->history);
    slot_state_done(&l->base);
    free(l->runs);
    free(l->seconds);
    free(l->moved);
    free(l->now);
    free(l->tried);
    free(l->of_s);
    free(l->of_y);
    free(l);
}

static inline void lbfgs_freep(struct lbfgs **l)
{
    lbfgs_free(*l);
}

/* A state that has weights alone. */
static as_status create_base(struct lbfgs *l, struct as_err *err)
{
    as_status st = l->replica->ops->state_new(l->replica->self, &l->base, err);
    if (st == AS_OK)
        slot_state_keep_weights(&l->base);
    return st;
}

static as_status lbfgs_create(const struct strategy_setup *setup, void **ret, struct as_err *err)
{
    const struct train_optimizer_spec *o = &setup->spec->optimizer;
    struct replica *r = setup->replica;
    AS_AUTO(lbfgs_freep) struct lbfgs *l = as_calloc(1, sizeof *l);
    if (!l)
        return as_fail_nomem(err);
    *l = (struct lbfgs){.replica = r,
                        .lr = o->lr,
                        .decay = o->weight_decay,
                        .n = r->n_numbers + STRATEGY_WISHES,
                        .now_of = -1};
    as_status st = lbfgs_history_init(&l->history, r->n_params, (uint32_t)o->history, err);
    if (st < 0 || (st = own_sum_create(OWN_TREE, l->n, r->max_shards, &l->own, err)) < 0 ||
        (st = create_base(l, err)) < 0)
        return st;
    l->runs = as_calloc(WORLD_MAX_RANKS, sizeof *l->runs);
    l->seconds = as_calloc(WORLD_MAX_RANKS, sizeof *l->seconds);
    l->moved = as_calloc(LBFGS_PIECES * l->history.stride, sizeof *l->moved);
    l->now = as_calloc(l->n + 1, sizeof *l->now);
    l->tried = as_calloc(l->n, sizeof *l->tried);
    l->of_s = as_calloc((size_t)o->history, sizeof *l->of_s);
    l->of_y = as_calloc((size_t)o->history, sizeof *l->of_y);
    if (!l->runs || !l->seconds || !l->moved || !l->now || !l->tried || !l->of_s || !l->of_y)
        return as_fail_nomem(err);
    *ret = as_steal(l);
    return AS_OK;
}

/* ---- a sum over all shards ---- */

struct taking {
    struct lbfgs *l;
    float share;
};

/* Gradient and statistics count as the shard's share of the batch; the loss is a sum over rows. */
static void take(void *arg, size_t first, const float *values, size_t n)
{
    const struct taking *t = arg;
    const struct replica *r = t->l->replica;
    size_t shares = r->n_params + r->n_state;
    size_t scaled = first >= shares ? 0 : shares - first < n ? shares - first : n;
    own_sum_add(t->l->own, first, values, scaled, t->share);
    own_sum_add(t->l->own, first + scaled, values + scaled, n - scaled, 1);
}

/* Shares the ranks' times, and divides the shards by them. */
static as_status divide(struct lbfgs *l, struct coll *c, int64_t step, uint32_t shards,
                        struct as_err *err)
{
    struct coll_id id = {.step = (uint64_t)step, .tag = TAG_SPEED, .what = "times of shards"};
    l->seconds[coll_rank(c)] = l->own_seconds;
    as_status st = coll_allgather(c, id, l->seconds, (size_t)coll_size(c), sizeof *l->seconds, err);
    if (st == AS_OK)
        portions(l->seconds, coll_size(c), shards, l->runs);
    return st;
}

static as_status compute(struct lbfgs *l, struct backend *lane, struct shard_run run,
                         struct as_err *err)
{
    struct replica *r = l->replica;
    int64_t begun = clock_mono_ns();
    for (uint32_t i = run.first; i < run.first + run.count; i++) {
        struct taking t = {.l = l, .share = r->ops->share(r->self, 0, i)};
        struct replica_sink sink = {.take = take, .arg = &t};
        as_status st = own_sum_open(l->own, i, err);
        if (st < 0 || (st = r->ops->gradient_taken(r->self, lane, 0, i, &sink, err)) < 0)
            return st;
        own_sum_close(l->own);
    }
    if (run.count > 0)
        l->own_seconds = (double)(clock_mono_ns() - begun) / 1e9 / run.count;
    return AS_OK;
}

/* A rank's wishes travel with its first shards; one that has none in this sum says them in
 * another. */
struct wishes {
    unsigned own, agreed;
};

/* ret [n] = the sum at the weights that the replica has now. */
static as_status sum_all(struct lbfgs *l, struct coll *c, struct backend *lane,
                         struct wishes *wishes, float *ret, struct as_err *err)
{
    struct replica *r = l->replica;
    int64_t step = r->ops->step(r->self);
    uint32_t shards = r->ops->shards(r->self, 0);
    float numbers[STRATEGY_WISHES];
    as_status st = divide(l, c, step, shards, err);
    if (st < 0)
        return st;
    struct shard_run run = l->runs[coll_rank(c)];
    own_sum_begin(l->own, l->sums++, shards, run);
    if ((st = compute(l, lane, run, err)) < 0)
        return st;
    strategy_wishes_put(wishes->own, numbers);
    own_sum_put(l->own, r->n_numbers, numbers, STRATEGY_WISHES);
    struct coll_id id = {.step = (uint64_t)step, .tag = TAG_SUM, .what = "gradient"};
    st = coll_tree_sum_merged(c, id, &reduce_f32_sum, l->runs, shards,
                              (const void *const *)own_sum_values(l->own), ret, l->n, err);
    if (st == AS_OK)
        wishes->agreed |= strategy_wishes_read(ret + r->n_numbers);
    return st;
}

/* ---- the objective ---- */

static double rows_of(const struct lbfgs *l)
{
    const struct replica *r = l->replica;
    double rows = 0;
    for (uint32_t i = 0; i < r->ops->shards(r->self, 0); i++)
        rows += r->ops->rows(r->self, 0, i);
    return rows;
}

/* At x, where the sum is `sum`. */
static double objective_of(const struct lbfgs *l, const float *x, const float *sum)
{
    const struct replica *r = l->replica;
    double square = 0;
    for (size_t i = 0; l->decay > 0 && i < r->n_params; i++)
        square += (double)x[i] * (double)x[i];
    return (double)sum[r->n_params + r->n_state] / rows_of(l) + l->decay / 2 * square;
}

static as_status put_params(struct lbfgs *l, float *params, struct as_err *err)
{
    struct slot_state s = l->base;
    s.params = params;
    return l->replica->ops->state_put(l->replica->self, &s, err);
}

/* The sum at `params`, with the decay in its gradient; then the replica has its own weights
 * back. */
static as_status try_at(struct lbfgs *l, struct coll *c, struct backend *lane, float *params,
                        struct wishes *wishes, float *ret, struct as_err *err)
{
    as_status st = put_params(l, params, err);
    if (st == AS_OK)
        st = sum_all(l, c, lane, wishes, ret, err);
    as_status back = put_params(l, l->base.params, st < 0 ? NULL : err);
    if (st < 0 || back < 0)
        return st < 0 ? st : back;
    for (size_t i = 0; l->decay > 0 && i < l->replica->n_params; i++)
        ret[i] += (float)(l->decay * (double)params[i]);
    return AS_OK;
}

/* ---- an iteration ---- */

/* The next length, where a parabola through what is known has its least value; not too near either
 * end. */
static double shorter(double length, double before, double slope, double after)
{
    double bend = after - before - slope * length;
    double best = bend > 0 ? -slope * length * length / (2 * bend) : 0;
    double least = 0.1 * length, most = 0.5 * length;
    return best < least || !isfinite(best) ? least : best > most ? most : best;
}

/* Looks for weights with a lower objective: in l->moved, their sum in l->tried. */
static as_status search(struct lbfgs *l, struct coll *c, struct backend *lane,
                        const struct lbfgs_direction *d, double before, struct wishes *wishes,
                        bool *ret_found, struct as_err *err)
{
    int64_t step = l->replica->ops->step(l->replica->self);
    double length = l->lr;
    if (d->pairs == 0 && d->g_norm > 1) /* nothing is known of the curvature */
        length /= d->g_norm;
    *ret_found = false;
    for (int trial = 0; trial < MOST_TRIALS && !*ret_found; trial++) {
        as_status st =
            lbfgs_move(&l->history, c, step, d, length, l->base.params, l->now, l->moved, err);
        if (st < 0 || (st = try_at(l, c, lane, l->moved, wishes, l->tried, err)) < 0)
            return st;
        double after = objective_of(l, l->moved, l->tried);
        *ret_found = after <= before + ENOUGH * length * d->slope + NOISE * fabs(before);
        length = shorter(length, before, d->slope, after);
    }
    return AS_OK;
}

static as_status take_moved(void *arg, const float *grads, float *params, struct as_err *err)
{
    const struct lbfgs *l = arg;
    (void)grads, (void)err;
    memcpy(params, l->moved, l->replica->n_params * sizeof *params);
    return AS_OK;
}

/* The replica's step, to l->moved, which are perhaps its own weights. */
static as_status advance(struct lbfgs *l, const struct coll *c, struct backend *lane, bool found,
                         struct as_err *err)
{
    struct replica *r = l->replica;
    int64_t next = r->ops->step(r->self) + 1;
    if (!found)
        memcpy(l->moved, l->base.params, r->n_params * sizeof *l->moved);
    as_status st = r->ops->update_with(r->self, lane, l->now, take_moved, l, err);
    if (st < 0)
        return st;
    if (found) {
        lbfgs_remember(&l->history, c, next, l->base.params, l->moved, l->now, l->tried);
        memcpy(l->now, l->tried, l->n * sizeof *l->now);
    } else {
        lbfgs_forget(&l->history, next);
    }
    l->now[l->n] = 1; /* not before: ranks that come at the same position may not have it */
    return AS_OK;
}

static as_status lbfgs_run(void *self, struct coll *c, struct backend *lane, unsigned wishes,
                           unsigned *ret, struct as_err *err)
{
    struct lbfgs *l = self;
    struct replica *r = l->replica;
    struct lbfgs_direction d = {.of_s = l->of_s, .of_y = l->of_y};
    struct wishes said = {.own = wishes};
    bool found = false;
    as_status st = r->ops->state_get(r->self, &l->base, err);
    l->now_of = -1;
    if (st == AS_OK && l->now[l->n] <= 0)
        st = try_at(l, c, lane, l->base.params, &said, l->now, err);
    if (st < 0)
        return st;
    l->now_of = r->ops->step(r->self);
    double before = objective_of(l, l->base.params, l->now);
    if ((st = lbfgs_direct(&l->history, c, r->ops->step(r->self), l->now, &d, err)) < 0 ||
        (st = search(l, c, lane, &d, before, &said, &found, err)) < 0)
        return st;
    *ret = said.agreed;
    return advance(l, c, lane, found, err);
}

/* ---- what is kept ---- */

static size_t lbfgs_strategy_parts(void *self, struct strategy_part *ret)
{
    struct lbfgs *l = self;
    size_t n = lbfgs_parts(&l->history, ret);
    ret[n++] = (struct strategy_part){.name = "lbfgs_sum", .values = l->now, .n = l->n + 1};
    return n;
}

static as_status lbfgs_restored(void *self, bool from_checkpoint, struct as_err *err)
{
    struct lbfgs *l = self;
    (void)err;
    if (from_checkpoint)
        lbfgs_hold_all(&l->history, l->replica->ops->step(l->replica->self));
    return AS_OK;
}

static as_status lbfgs_strategy_gather(void *self, struct coll *c, struct backend *lane,
                                       struct as_err *err)
{
    (void)lane;
    return lbfgs_gather(&((struct lbfgs *)self)->history, c, err);
}

/* Where this rank stood before it got another's state. */
struct standing {
    int64_t step;         /* -1: it knows too little */
    float *weights, *sum; /* owned: the sum at the weights */
};

static void standing_done(struct standing *s)
{
    free(s->weights);
    free(s->sum);
}

static as_status standing_of(struct lbfgs *l, struct standing *ret, struct as_err *err)
{
    const struct replica *r = l->replica;
    int64_t step = r->ops->step(r->self);
    ret->step = -1;
    if (l->history.step != step || (l->now[l->n] <= 0 && l->now_of != step))
        return AS_OK;
    ret->weights = as_calloc(r->n_params, sizeof *ret->weights);
    ret->sum = as_calloc(r->n_params, sizeof *ret->sum);
    if (!ret->weights || !ret->sum)
        return as_fail_nomem(err);
    as_status st = r->ops->state_get(r->self, &l->base, err);
    if (st < 0)
        return st;
    memcpy(ret->weights, l->base.params, r->n_params * sizeof *ret->weights);
    memcpy(ret->sum, l->now, r->n_params * sizeof *ret->sum);
    ret->step = step;
    return AS_OK;
}

/* A world may end after one rank has completed a step and before another has. The other one lacks
 * its pieces of the newest pair, but not what they are made of. */
static as_status lbfgs_strategy_meet(void *self, struct meeting *m, struct as_err *err)
{
    struct lbfgs *l = self;
    const struct replica *r = l->replica;
    AS_AUTO(standing_done) struct standing before = {0};
    as_status st = standing_of(l, &before, err);
    if (st < 0 || (st = meeting_catch_up(m, err)) < 0)
        return st;
    int64_t step = r->ops->step(r->self);
    if (m->moved && before.step >= 0 && step == before.step + 1 && l->now[l->n] > 0) {
        if ((st = r->ops->state_get(r->self, &l->base, err)) < 0)
            return st;
        lbfgs_complete(&l->history, step, before.weights, l->base.params, before.sum, l->now);
    }
    return lbfgs_meet(&l->history, m->coll, step, err);
}

const struct strategy_ops strategy_lbfgs = {
    .name = "lbfgs",
    .create = lbfgs_create,
    .free = lbfgs_free,
    .run = lbfgs_run,
    .parts = lbfgs_strategy_parts,
    .restored = lbfgs_restored,
    .gather = lbfgs_strategy_gather,
    .meet = lbfgs_strategy_meet,
};
