/* Sums over shards: which algorithm, which codec, and what is kept for error feedback. This is the
 * one place that knows all combinations; a strategy only asks for a sum. Exact numbers behind the
 * parameters (statistics, loss, wishes) are never encoded. During a codec's warm-up the sum is
 * plain, and no residual changes (decision 8008). */
#include "trial-runner/distributed/shard_sum.h"

#include <stdlib.h>
#include <string.h>

#include "trial-runner/distributed/coded_sum.h"
#include "trial-runner/distributed/replica_codec.h"

enum { TAG_SUM = 1, TAG_EXACT, TAG_PART };

struct shard_sum {
    const struct distributed_spec *spec;
    const struct replica *replica;
    size_t n;
    struct coded_sum coded; /* codec NULL: nothing is compressed */
    struct residuals residuals;
    float *state;           /* [codec_state_n()]: what the codec keeps */
    struct shard_run *runs; /* by rank */
    const void **exact;     /* [max_shards]: this rank's part of a sum, from its first number */
    float *own;             /* [n]: ring, halving: the sum of this rank's shards */
};

void shard_sum_free(struct shard_sum *s)
{
    if (!s)
        return;
    coded_sum_done(&s->coded);
    residuals_done(&s->residuals);
    free(s->state);
    free(s->runs);
    free(s->exact);
    free(s->own);
    free(s);
}

static as_status create_codec(struct shard_sum *s, struct as_err *err)
{
    const struct distributed_spec *d = s->spec;
    const struct replica *r = s->replica;
    as_status st = replica_codec_create(d, r, &s->coded.codec, err);
    if (st < 0)
        return st;
    s->state = as_calloc(codec_state_n(s->coded.codec), sizeof *s->state);
    if (!s->state)
        return as_fail_nomem(err);
    codec_state_get(s->coded.codec, s->state);
    if (!d->error_feedback)
        return AS_OK;
    s->coded.residuals = &s->residuals;
    return residuals_init(&s->residuals, r->n_params, r->max_shards, !codec_sums(s->coded.codec),
                          err);
}

as_status shard_sum_create(const struct strategy_setup *setup, size_t n, struct shard_sum **ret,
                           struct as_err *err)
{
    AS_AUTO(shard_sum_freep) struct shard_sum *s = as_calloc(1, sizeof *s);
    if (!s)
        return as_fail_nomem(err);
    *s = (struct shard_sum){.spec = &setup->spec->distributed, .replica = setup->replica, .n = n};
    s->runs = as_calloc(WORLD_MAX_RANKS, sizeof *s->runs);
    s->exact = as_calloc(s->replica->max_shards, sizeof *s->exact);
    if (s->spec->codec == DISTRIBUTED_PLAIN && s->spec->sum != DISTRIBUTED_TREE)
        s->own = as_calloc(n, sizeof *s->own);
    if (!s->runs || !s->exact ||
        (s->spec->codec == DISTRIBUTED_PLAIN && s->spec->sum != DISTRIBUTED_TREE && !s->own))
        return as_fail_nomem(err);
    if (s->spec->codec != DISTRIBUTED_PLAIN) {
        as_status st = create_codec(s, err);
        if (st < 0)
            return st;
    }
    *ret = as_steal(s);
    return AS_OK;
}

static void spread(struct shard_sum *s, const struct coll *c, uint32_t shards)
{
    if (s->coded.residuals)
        residuals_spread(s->coded.residuals, shards, coll_size(c), s->runs);
    else
        coll_spread(shards, coll_size(c), s->runs);
}

struct shard_run shard_sum_own(struct shard_sum *s, const struct coll *c, uint32_t shards)
{
    spread(s, c, shards);
    return s->runs[coll_rank(c)];
}

/* ---- the sum ---- */

/* Numbers [first, first + n) of a vector, in an operation of their own. */
struct part {
    size_t first, n;
    struct coll_id id;
};

static as_status sum_in_tree(struct shard_sum *s, struct coll *c, struct shard_step at,
                             const struct part *p, const float *const *partials, float *ret,
                             struct as_err *err)
{
    uint32_t count = s->runs[coll_rank(c)].count;
    for (uint32_t i = 0; i < count; i++)
        s->exact[i] = partials[i] + p->first;
    return coll_tree_sum(c, p->id, &reduce_f32_sum, s->runs, at.shards, s->exact, ret + p->first,
                         p->n, err);
}

static const coll_algorithm algorithms[] = {[DISTRIBUTED_RING] = COLL_RING,
                                            [DISTRIBUTED_HALVING_DOUBLING] = COLL_HALVING,
                                            [DISTRIBUTED_AUTO] = COLL_AUTO};

static as_status sum_by_rank(struct shard_sum *s, struct coll *c, const struct part *p,
                             const float *const *partials, float *ret, struct as_err *err)
{
    uint32_t count = s->runs[coll_rank(c)].count;
    float *own = s->own + p->first;
    if (count == 0)
        memset(own, 0, p->n * sizeof *own);
    for (uint32_t i = 0; i < count; i++)
        for (size_t k = 0; k < p->n; k++)
            own[k] = i == 0 ? partials[i][p->first + k] : own[k] + partials[i][p->first + k];
    return coll_allreduce(c, p->id, algorithms[s->spec->sum], &reduce_f32_sum, own, ret + p->first,
                          p->n, err);
}

static as_status sum_plain(struct shard_sum *s, struct coll *c, struct shard_step at,
                           const struct part *p, const float *const *partials, float *ret,
                           struct as_err *err)
{
    return s->spec->sum == DISTRIBUTED_TREE ? sum_in_tree(s, c, at, p, partials, ret, err)
                                            : sum_by_rank(s, c, p, partials, ret, err);
}

/* ---- where this rank has added up its shards ---- */

own_order shard_sum_order(const struct shard_sum *s)
{
    if (s->coded.codec)
        return OWN_EACH;
    return s->spec->sum == DISTRIBUTED_TREE ? OWN_TREE : OWN_LINE;
}

static as_status sum_merged(struct shard_sum *s, struct coll *c, struct shard_step at,
                            const struct part *p, const float *const *merged, float *ret,
                            struct as_err *err)
{
    struct shard_run run = s->runs[coll_rank(c)];
    uint32_t end = run.first + run.count, n = 0;
    if (s->spec->sum != DISTRIBUTED_TREE) {
        if (run.count == 0)
            memset(s->own + p->first, 0, p->n * sizeof *s->own);
        return coll_allreduce(c, p->id, algorithms[s->spec->sum], &reduce_f32_sum,
                              (run.count > 0 ? merged[0] : s->own) + p->first, ret + p->first, p->n,
                              err);
    }
    for (uint32_t first = run.first; first < end; n++) {
        uint32_t level = shard_tree_largest(at.shards, first, end);
        s->exact[n] = merged[n] + p->first;
        first = shard_tree_end(at.shards, first, level);
    }
    return coll_tree_sum_merged(c, p->id, &reduce_f32_sum, s->runs, at.shards, s->exact,
                                ret + p->first, p->n, err);
}

as_status shard_sum_merged(struct shard_sum *s, struct coll *c, struct shard_step at,
                           const float *const *merged, float *ret, struct as_err *err)
{
    if (s->coded.codec)
        return shard_sum_all(s, c, at, merged, ret, err);
    spread(s, c, at.shards);
    const struct part whole = {
        0, s->n, {.step = (uint64_t)at.step, .tag = TAG_SUM, .what = "gradients"}};
    return sum_merged(s, c, at, &whole, merged, ret, err);
}

bool shard_sum_splits(const struct shard_sum *s)
{
    return !s->coded.codec;
}

as_status shard_sum_part(struct shard_sum *s, struct coll *c, struct shard_step at,
                         const float *const *merged, size_t first, size_t n, uint64_t tag,
                         float *ret, struct as_err *err)
{
    const struct part p = {
        first, n, {.step = (uint64_t)at.step, .tag = TAG_PART + tag, .what = "gradients"}};
    return sum_merged(s, c, at, &p, merged, ret, err);
}

/* Factors and what is exact travel together: an exchange less. */
static as_status sum_factors(struct shard_sum *s, struct coll *c, struct coded_terms *t, float *ret,
                             struct as_err *err)
{
    t->exact = s->n - s->replica->n_params;
    return coded_sum_factors(&s->coded, c, t, ret, err);
}

static as_status sum_messages(struct shard_sum *s, struct coll *c, struct shard_step at,
                              const struct coded_terms *t, float *ret, struct as_err *err)
{
    /* The numbers that are exact go first: the rank that ends the last exchange has then all. */
    const struct part exact = {s->replica->n_params,
                               s->n - s->replica->n_params,
                               {.step = (uint64_t)at.step, .tag = TAG_EXACT, .what = "statistics"}};
    as_status st = sum_in_tree(s, c, at, &exact, t->partials, ret, err);
    return st < 0 ? st : coded_sum_messages(&s->coded, c, t, ret, err);
}

static as_status sum_coded(struct shard_sum *s, struct coll *c, struct shard_step at,
                           const float *const *partials, float *ret, struct as_err *err)
{
    struct coded_terms t = {
        .step = (uint64_t)at.step, .shards = at.shards, .runs = s->runs, .partials = partials};
    struct codec *codec = s->coded.codec;
    if (s->coded.residuals)
        residuals_begin(s->coded.residuals, at.step, at.next, at.shards);
    as_status st =
        codec_sums(codec) ? sum_factors(s, c, &t, ret, err) : sum_messages(s, c, at, &t, ret, err);
    if (st < 0)
        return st;
    codec_state_get(codec, s->state);
    if (s->coded.residuals)
        residuals_commit(s->coded.residuals);
    return AS_OK;
}

/* A step of the warm-up: nothing is encoded, and no residual changes. */
static as_status sum_warmup(struct shard_sum *s, struct coll *c, struct shard_step at,
                            const float *const *partials, float *ret, struct as_err *err)
{
    const struct part whole = {
        0, s->n, {.step = (uint64_t)at.step, .tag = TAG_SUM, .what = "gradients"}};
    if (s->coded.residuals)
        residuals_begin(s->coded.residuals, at.step, at.next, 0);
    as_status st = sum_in_tree(s, c, at, &whole, partials, ret, err);
    if (st == AS_OK && s->coded.residuals)
        residuals_commit(s->coded.residuals);
    return st;
}

as_status shard_sum_all(struct shard_sum *s, struct coll *c, struct shard_step at,
                        const float *const *partials, float *ret, struct as_err *err)
{
    spread(s, c, at.shards);
    if (s->coded.codec && at.step < s->spec->warmup_steps)
        return sum_warmup(s, c, at, partials, ret, err);
    if (s->coded.codec)
        return sum_coded(s, c, at, partials, ret, err);
    const struct part whole = {
        0, s->n, {.step = (uint64_t)at.step, .tag = TAG_SUM, .what = "gradients"}};
    return sum_plain(s, c, at, &whole, partials, ret, err);
}

/* ---- what is kept ---- */

size_t shard_sum_parts(struct shard_sum *s, struct strategy_part *ret)
{
    size_t n = 0, n_state = s->coded.codec ? codec_state_n(s->coded.codec) : 0;
    if (n_state > 0)
        ret[n++] = (struct strategy_part){.name = "codec", .values = s->state, .n = n_state};
    return n + residuals_parts(&s->residuals, ret + n);
}

as_status shard_sum_restored(struct shard_sum *s, bool from_checkpoint, struct as_err *err)
{
    const struct replica *r = s->replica;
    if (!s->coded.codec)
        return AS_OK;
    if (s->coded.residuals && from_checkpoint)
        residuals_hold_all(s->coded.residuals, r->ops->step(r->self));
    return codec_state_put(s->coded.codec, s->state, codec_state_n(s->coded.codec), err);
}

as_status shard_sum_meet(struct shard_sum *s, struct coll *c, struct as_err *err)
{
    const struct replica *r = s->replica;
    struct residuals *kept = s->coded.residuals;
    if (!kept)
        return AS_OK;
    struct codec_extent slice = {0};
    if (kept->of_sum)
        slice = codec_extent(s->coded.codec,
                             (struct codec_slice){(uint32_t)coll_rank(c), (uint32_t)coll_size(c)});
    spread(s, c, r->max_shards);
    return residuals_meet(kept, c, r->ops->step(r->self), s->runs, slice.first_value,
                          slice.first_value + slice.n_values, err);
}

bool shard_sum_gathers(const struct shard_sum *s)
{
    return s->coded.residuals != NULL;
}

as_status shard_sum_gather(struct shard_sum *s, struct coll *c, struct as_err *err)
{
    if (!s->coded.residuals)
        return AS_OK;
    spread(s, c, s->replica->max_shards);
    return residuals_gather(s->coded.residuals, c, s->runs, err);
}
