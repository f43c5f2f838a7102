/* Linear models by dual coordinate ascent: `model: {kind: linear, solver: cocoa}` (CoCoA: Jaggi et
 * al. 2014; CoCoA+: Ma et al. 2015, whose changes are added).
 *
 * The batch has all rows. A shard is a worker: it has dual variables of its rows (sdca.h), and in a
 * step, a round, it goes over them three times, with weights in which its own changes count for
 * those of all workers. Then each shard's part of the weights is computed anew from its duals, and
 * the parts are added up in the order of the tree: that sum is the new weights. So a round sends
 * one vector of the weights, and what the duals say and what the weights are never drift apart. A
 * second sum, of two numbers, gives the objective and its dual at the new weights: the gap between
 * them, which is reported.
 *
 * Workers are shards, so any number of ranks gives the same bits. Rows are those of the model's
 * input, read once: as the factors of a gradient at weights of 0, of which the targets follow, too.
 * Their order is that of the first epoch in all epochs. The duals move as residuals do
 * (residuals.h): those that only a lost rank had begin anew from 0, and the weights of the round
 * that follows are those of what is left. */
#include <stdlib.h>
#include <string.h>

#include "data/random_purpose.h"
#include "trial-runner/distributed/own_sum.h"
#include "trial-runner/distributed/residuals.h"
#include "trial-runner/distributed/sdca.h"

enum { TAG_SUM = 1, TAG_VALUES };

/* Over the rows of a shard in a round. One needs up to a fifth more rounds than ten. */
#define PASSES 3

/* The rows of a shard. */
struct read_rows {
    struct sdca_rows rows;
    float *x, *y; /* NULL: not read */
};

struct cocoa {
    struct replica *replica;
    uint64_t seed;
    struct sdca_problem problem; /* lambda_n, workers: of a round */
    double lambda;
    uint32_t shards; /* of every round */
    struct read_rows *read;
    struct residuals duals;
    struct shard_run *runs; /* by rank */
    struct own_sum *own;
    int64_t sums;               /* that were begun: no two have shards in common */
    struct slot_state base;     /* weights alone */
    float *zero;                /* [n_params] */
    float *sum;                 /* [n_params + STRATEGY_WISHES] */
    float *numbers;             /* [n_numbers]: what an update is told */
    double *w, *part;           /* [in + 1, out]: the weights that a worker changes; its part */
    double *change;             /* [out] */
    int32_t *order;             /* [most rows of a shard] */
    struct sdca_values *values; /* by shard */
    float gap;
};

/* ---- life ---- */

static void forget_rows(struct read_rows *r)
{
    free(r->x);
    free(r->y);
    *r = (struct read_rows){0};
}

static void cocoa_free(void *self)
{
    struct cocoa *k = self;
    if (!k)
        return;
    for (uint32_t s = 0; k->read && s < k->shards; s++)
        forget_rows(&k->read[s]);
    free(k->read);
    residuals_done(&k->duals);
    free(k->runs);
    own_sum_free(k->own);
    slot_state_done(&k->base);
    free(k->zero);
    free(k->sum);
    free(k->numbers);
    free(k->w);
    free(k->part);
    free(k->change);
    free(k->order);
    free(k->values);
    free(k);
}

static inline void cocoa_freep(struct cocoa **k)
{
    cocoa_free(*k);
}

/* A state that has weights alone. */
static as_status create_base(struct cocoa *k, struct as_err *err)
{
    as_status st = k->replica->ops->state_new(k->replica->self, &k->base, err);
    if (st == AS_OK)
        slot_state_keep_weights(&k->base);
    return st;
}

static as_status create_rooms(struct cocoa *k, size_t most_rows, struct as_err *err)
{
    const struct replica *r = k->replica;
    size_t n = (k->problem.in + 1) * k->problem.out;
    k->read = as_calloc(k->shards, sizeof *k->read);
    k->runs = as_calloc(WORLD_MAX_RANKS, sizeof *k->runs);
    k->zero = as_calloc(r->n_params, sizeof *k->zero);
    k->sum = as_calloc(r->n_params + STRATEGY_WISHES, sizeof *k->sum);
    k->numbers = as_calloc(r->n_numbers, sizeof *k->numbers);
    k->w = as_calloc(n, sizeof *k->w);
    k->part = as_calloc(n, sizeof *k->part);
    k->change = as_calloc(k->problem.out, sizeof *k->change);
    k->order = as_calloc(most_rows, sizeof *k->order);
    k->values = as_calloc(k->shards, sizeof *k->values);
    return k->read && k->runs && k->zero && k->sum && k->numbers && k->w && k->part && k->change &&
                   k->order && k->values
               ? AS_OK
               : as_fail_nomem(err);
}

/* The weight of the only layer comes first, then its bias. */
static as_status find_layer(struct cocoa *k, struct as_err *err)
{
    const struct replica *r = k->replica;
    const struct replica_tensor *w = &r->tensors[0];
    if (r->n_tensors != 2 || w->pairs != 1 || w->first != 0 || r->tensors[1].rows != w->cols)
        return as_fail(err, AS_E_UNSUPPORTED,
                       "/train/model/solver: cocoa is for one layer that reads numbers");
    k->problem.in = w->rows;
    k->problem.out = w->cols;
    return AS_OK;
}

static as_status cocoa_create(const struct strategy_setup *setup, void **ret, struct as_err *err)
{
    struct replica *r = setup->replica;
    AS_AUTO(cocoa_freep) struct cocoa *k = as_calloc(1, sizeof *k);
    if (!k)
        return as_fail_nomem(err);
    *k = (struct cocoa){.replica = r,
                        .seed = setup->seed,
                        .lambda = setup->spec->optimizer.weight_decay,
                        .shards = r->ops->shards(r->self, 0)};
    k->problem.loss = setup->loss == TRAIN_MSE ? SDCA_SQUARES : SDCA_SOFTMAX;
    as_status st = find_layer(k, err);
    size_t most = r->ops->rows(r->self, 0, 0);
    if (st < 0 || (st = create_rooms(k, most, err)) < 0 || (st = create_base(k, err)) < 0 ||
        (st = own_sum_create(OWN_TREE, r->n_params + STRATEGY_WISHES, k->shards, &k->own, err)) <
            0 ||
        (st = residuals_init(&k->duals, most * k->problem.out, k->shards, false, err)) < 0)
        return st;
    k->duals.what = "the progress";
    *ret = as_steal(k);
    return AS_OK;
}

/* ---- the rows of a shard ---- */

struct reading {
    const struct sdca_problem *problem;
    struct read_rows *to;
};

/* The layer's inputs are the rows; the gradient by its outputs becomes the targets. */
static bool place_rows(void *arg, size_t first, size_t pairs, float **ret_left, float **ret_right)
{
    struct reading *r = arg;
    (void)first; /* there is one layer */
    r->to->x = as_calloc(pairs * r->problem->in, sizeof(float));
    r->to->y = as_calloc(pairs * r->problem->out, sizeof(float));
    if (!r->to->x || !r->to->y)
        return false;
    r->to->rows = (struct sdca_rows){.n = pairs, .x = r->to->x, .y = r->to->y};
    *ret_left = r->to->x;
    *ret_right = r->to->y;
    return true;
}

static void take_nothing(void *arg, size_t first, const float *values, size_t n)
{
    (void)arg, (void)first, (void)values, (void)n;
}

/* Where all outputs are 0, the gradient of the mean of n rows is (1/m - y) / n by a row's m
 * outputs, and for squares -2 y / (m n). */
static void find_targets(const struct sdca_problem *p, struct read_rows *r)
{
    float n = (float)r->rows.n, m = (float)p->out;
    for (size_t i = 0; i < r->rows.n * p->out; i++) {
        bool own = 1 / m - r->y[i] * n > 0.5F; /* the row's class */
        r->y[i] = p->loss == SDCA_SQUARES ? -r->y[i] * n * m / 2 : (float)own;
    }
}

static as_status read_shard(struct cocoa *k, struct backend *lane, uint32_t shard,
                            struct as_err *err)
{
    struct replica *r = k->replica;
    struct reading reading = {&k->problem, &k->read[shard]};
    const struct replica_sink sink = {.take = take_nothing, .arg = &reading, .factors = place_rows};
    as_status st = r->ops->gradient_taken(r->self, lane, 0, shard, &sink, err);
    if (st == AS_OK && reading.to->rows.n == 0)
        st = as_fail_nomem(err);
    if (st == AS_OK)
        find_targets(&k->problem, reading.to);
    else
        forget_rows(reading.to);
    return st;
}

static as_status put_params(struct cocoa *k, float *params, struct as_err *err)
{
    struct slot_state s = k->base;
    s.params = params;
    return k->replica->ops->state_put(k->replica->self, &s, err);
}

/* The rows of this rank's run that it does not have. The replica has its own weights afterwards. */
static as_status read_missing(struct cocoa *k, struct backend *lane, struct shard_run run,
                              struct as_err *err)
{
    as_status st = put_params(k, k->zero, err);
    for (uint32_t s = run.first; st == AS_OK && s < run.first + run.count; s++)
        st = k->read[s].x ? AS_OK : read_shard(k, lane, s, err);
    as_status back = put_params(k, k->base.params, st < 0 ? NULL : err);
    return st < 0 ? st : back;
}

/* The rows of this rank's run, and no others. */
static as_status read_run(struct cocoa *k, struct backend *lane, struct shard_run run,
                          struct as_err *err)
{
    bool missing = false;
    for (uint32_t s = 0; s < k->shards; s++)
        if (s - run.first < run.count)
            missing = missing || !k->read[s].x;
        else
            forget_rows(&k->read[s]);
    return missing ? read_missing(k, lane, run, err) : AS_OK;
}

/* ---- a round ---- */

static void widen(const struct cocoa *k, const float *params, double *w)
{
    for (size_t i = 0; i < k->replica->n_params; i++)
        w[i] = (double)params[i];
}

/* Works on a shard's duals, and adds its part of the new weights to the sum. */
static as_status work(struct cocoa *k, uint32_t shard, const float *params, struct as_err *err)
{
    const struct sdca_problem *p = &k->problem;
    const struct sdca_rows *rows = &k->read[shard].rows;
    int64_t round = k->replica->ops->step(k->replica->self);
    float *alpha;
    as_status st = residuals_after(&k->duals, shard, &alpha, err);
    if (st < 0)
        return st;
    memcpy(alpha, residuals_before(&k->duals, shard), k->duals.n * sizeof *alpha);
    struct rng draws = draw_stream(k->seed, DRAW_ROUND_ORDER, (uint64_t)round * k->shards + shard);
    for (size_t i = 0; i < rows->n; i++)
        k->order[i] = (int32_t)i;
    draw_shuffle(&draws, k->order, rows->n);
    widen(k, params, k->w);
    for (int pass = 0; pass < PASSES; pass++)
        sdca_pass(p, rows, k->order, k->w, alpha, k->change);
    memset(k->part, 0, k->replica->n_params * sizeof *k->part);
    sdca_add_weights(p, rows, alpha, k->part);
    for (size_t i = 0; i < k->replica->n_params; i++)
        k->sum[i] = (float)k->part[i]; /* of this shard, for now */
    if ((st = own_sum_open(k->own, shard, err)) < 0)
        return st;
    own_sum_add(k->own, 0, k->sum, k->replica->n_params, 1);
    own_sum_close(k->own);
    return AS_OK;
}

/* k->sum = the new weights, and what all wish. */
static as_status sum_weights(struct cocoa *k, struct coll *c, struct shard_run run, unsigned wishes,
                             struct as_err *err)
{
    const struct replica *r = k->replica;
    int64_t round = r->ops->step(r->self);
    float numbers[STRATEGY_WISHES];
    /* Before the first round the duals are 0, and so are the weights that they make. */
    const float *params = round == 0 ? k->zero : k->base.params;
    own_sum_begin(k->own, k->sums++, k->shards, run);
    residuals_begin(&k->duals, round, round + 1, k->shards);
    for (uint32_t s = run.first; s < run.first + run.count; s++) {
        as_status st = work(k, s, params, err);
        if (st < 0)
            return st;
    }
    strategy_wishes_put(wishes, numbers);
    own_sum_put(k->own, r->n_params, numbers, STRATEGY_WISHES);
    struct coll_id id = {.step = (uint64_t)round, .tag = TAG_SUM, .what = "weights"};
    return coll_tree_sum_merged(c, id, &reduce_f32_sum, k->runs, k->shards,
                                (const void *const *)own_sum_values(k->own), k->sum,
                                r->n_params + STRATEGY_WISHES, err);
}

/* The gap at the new weights, and their loss. */
static as_status measure(struct cocoa *k, struct coll *c, struct shard_run run, double rows,
                         double *ret_loss, double *ret_gap, struct as_err *err)
{
    struct coll_id id = {.step = (uint64_t)k->replica->ops->step(k->replica->self),
                         .tag = TAG_VALUES,
                         .what = "values of the objective"};
    struct sdca_values total;
    AS_AUTO(as_freep) const void **own = as_calloc(run.count, sizeof *own);
    double square = 0;
    if (!own)
        return as_fail_nomem(err);
    widen(k, k->sum, k->w);
    for (uint32_t i = 0; i < run.count; i++) {
        uint32_t shard = run.first + i;
        float *alpha;
        as_status st = residuals_after(&k->duals, shard, &alpha, err);
        if (st < 0)
            return st;
        k->values[shard] = sdca_values(&k->problem, &k->read[shard].rows, k->w, alpha, k->change);
        own[i] = &k->values[shard];
    }
    as_status st = coll_tree_sum(c, id, &reduce_f64_sum, k->runs, k->shards, own, &total,
                                 sizeof total / sizeof(double), err);
    for (size_t i = 0; i < k->replica->n_params; i++)
        square += k->w[i] * k->w[i];
    *ret_loss = total.loss;
    *ret_gap = (total.loss + total.conjugate) / rows + k->lambda * square;
    return st;
}

static as_status take_sum(void *arg, const float *grads, float *params, struct as_err *err)
{
    const struct cocoa *k = arg;
    (void)grads, (void)err;
    memcpy(params, k->sum, k->replica->n_params * sizeof *params);
    return AS_OK;
}

static as_status cocoa_run(void *self, struct coll *c, struct backend *lane, unsigned wishes,
                           unsigned *ret, struct as_err *err)
{
    struct cocoa *k = self;
    struct replica *r = k->replica;
    double rows = 0, loss, gap;
    as_status st = r->ops->state_get(r->self, &k->base, err);
    if (st < 0)
        return st;
    for (uint32_t s = 0; s < k->shards; s++)
        rows += r->ops->rows(r->self, 0, s);
    k->problem.lambda_n = k->lambda * rows;
    k->problem.workers = k->shards;
    residuals_spread(&k->duals, k->shards, coll_size(c), k->runs);
    struct shard_run run = k->runs[coll_rank(c)];
    if ((st = read_run(k, lane, run, err)) < 0 || (st = sum_weights(k, c, run, wishes, err)) < 0 ||
        (st = measure(k, c, run, rows, &loss, &gap, err)) < 0)
        return st;
    residuals_commit(&k->duals);
    k->gap = (float)gap;
    *ret = strategy_wishes_read(k->sum + r->n_params);
    k->numbers[r->n_params + r->n_state] = (float)loss;
    return r->ops->update_with(r->self, lane, k->numbers, take_sum, k, err);
}

static double cocoa_figure(const void *self)
{
    return (double)((const struct cocoa *)self)->gap;
}

/* ---- what is kept ---- */

static size_t cocoa_parts(void *self, struct strategy_part *ret)
{
    struct cocoa *k = self;
    size_t n = residuals_parts(&k->duals, ret);
    ret[n++] = (struct strategy_part){.name = "gap", .values = &k->gap, .n = 1};
    return n;
}

static as_status cocoa_restored(void *self, bool from_checkpoint, struct as_err *err)
{
    struct cocoa *k = self;
    (void)err;
    if (from_checkpoint)
        residuals_hold_all(&k->duals, k->replica->ops->step(k->replica->self));
    return AS_OK;
}

static as_status cocoa_gather(void *self, struct coll *c, struct backend *lane, struct as_err *err)
{
    struct cocoa *k = self;
    (void)lane;
    residuals_spread(&k->duals, k->shards, coll_size(c), k->runs);
    return residuals_gather(&k->duals, c, k->runs, err);
}

static as_status cocoa_meet(void *self, struct meeting *m, struct as_err *err)
{
    struct cocoa *k = self;
    as_status st = meeting_catch_up(m, err);
    if (st < 0)
        return st;
    residuals_spread(&k->duals, k->shards, coll_size(m->coll), k->runs);
    return residuals_meet(&k->duals, m->coll, k->replica->ops->step(k->replica->self), k->runs, 0,
                          0, err);
}

const struct strategy_ops strategy_cocoa = {
    .name = "cocoa",
    .create = cocoa_create,
    .free = cocoa_free,
    .run = cocoa_run,
    .figure = cocoa_figure,
    .parts = cocoa_parts,
    .restored = cocoa_restored,
    .gather = cocoa_gather,
    .meet = cocoa_meet,
};
