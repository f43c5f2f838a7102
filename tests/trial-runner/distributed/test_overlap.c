/* A gradient that leaves in buckets: its sums begin, and end, while the backward pass still runs.
 *
 * The replica here computes "layers" from the last to the first. It does not go on with the first
 * ones before the last one's sum is known on this rank, which needs the numbers of all ranks:
 * without overlap no rank would ever go on. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "tests/support/check_main.h"
#include "tests/trial-runner/collective/ranks.h"
#include "trial-runner/distributed/buckets.h"
#include "trial-runner/distributed/strategy.h"

#define LAYERS 4
#define WIDTH BUCKET_NUMBERS /* numbers of a layer */
#define PARAMS (LAYERS * WIDTH)
#define SHARDS 5
#define PATIENCE_NS (60 * NS_PER_S)

struct model {
    struct replica replica;
    struct strategy strategy;
    int64_t step;
    bool reports;  /* each layer when it is known */
    bool waits;    /* it goes on when the last layer is summed */
    size_t waited; /* for how many steps it saw that sum before it went on */
    float *summed; /* [n_numbers]: of the last update */
};

static float number_of(int64_t step, uint32_t shard, size_t i)
{
    return (float)((i * 7 + shard * 13 + (size_t)step * 31) % 1009) / 1009.0F - 0.3F;
}

static int64_t model_step(const void *self)
{
    return ((const struct model *)self)->step;
}

static uint32_t model_shards(const void *self, int64_t ahead)
{
    (void)self;
    (void)ahead;
    return SHARDS;
}

static float model_share(const void *self, int64_t ahead, uint32_t shard)
{
    (void)self;
    (void)ahead;
    return shard == 1 ? 0.25F : 0.1875F;
}

/* Until the sum of the first bucket is known. */
static void await_sum(struct model *m)
{
    int64_t until_ns = clock_mono_ns() + PATIENCE_NS;
    while (clock_mono_ns() < until_ns) {
        if (m->strategy.ops->progress(m->strategy.self).summed > 0) {
            m->waited++;
            return;
        }
        (void)nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
    }
}

static as_status gradient_taken(void *self, struct backend *lane, int64_t ahead, uint32_t shard,
                                const struct replica_sink *sink, struct as_err *err)
{
    struct model *m = self;
    AS_AUTO(as_freep) float *values = calloc(PARAMS, sizeof *values);
    bool early = sink->early && m->reports;
    (void)lane;
    (void)ahead;
    if (!values)
        return as_fail_nomem(err);
    for (size_t layer = LAYERS; layer-- > 0;) {
        size_t first = layer * WIDTH;
        for (size_t i = first; i < first + WIDTH; i++)
            values[i] = number_of(m->step, shard, i);
        if (early)
            sink->take(sink->arg, first, values + first, WIDTH);
        if (early && m->waits && layer == LAYERS - 2)
            await_sum(m);
    }
    if (!early)
        sink->take(sink->arg, 0, values, PARAMS);
    sink->take(sink->arg, PARAMS, &(float){1.0F + (float)shard}, 1);
    return AS_OK;
}

static as_status model_update(void *self, struct backend *lane, const float *sum,
                              struct as_err *err)
{
    struct model *m = self;
    (void)lane;
    (void)err;
    memcpy(m->summed, sum, (PARAMS + 1) * sizeof *sum);
    m->step++;
    return AS_OK;
}

static const struct replica_ops model_ops = {.step = model_step,
                                             .shards = model_shards,
                                             .share = model_share,
                                             .gradient_taken = gradient_taken,
                                             .update = model_update};

struct how {
    distributed_sum sum;
    bool reports;
};

static as_status model_init(struct model *m, struct train_spec *spec, const struct how *how,
                            struct as_err *err)
{
    static const struct replica_tensor whole = {.first = 0, .rows = PARAMS, .cols = 1};
    *m = (struct model){.replica = {.ops = &model_ops,
                                    .self = m,
                                    .n_params = PARAMS,
                                    .n_numbers = PARAMS + 1,
                                    .max_shards = SHARDS,
                                    .tensors = &whole,
                                    .n_tensors = 1},
                        .reports = how->reports,
                        .waits = how->reports};
    m->summed = calloc(PARAMS + 1, sizeof *m->summed);
    spec->distributed.sum = how->sum;
    struct strategy_setup setup = {.spec = spec, .replica = &m->replica};
    return m->summed ? strategy_init(&m->strategy, &setup, err) : as_fail_nomem(err);
}

/* The order of the tree over five shards, written down. */
static float tree_of(const float v[SHARDS])
{
    return ((v[0] + v[1]) + (v[2] + v[3])) + v[4];
}

static bool is_sum(const struct model *m, int64_t step, const struct how *how)
{
    for (size_t i = 0; i < PARAMS; i++) {
        float v[SHARDS];
        for (uint32_t s = 0; s < SHARDS; s++)
            v[s] = number_of(step, s, i) * model_share(m, 0, s);
        float want = tree_of(v), off = m->summed[i] - want;
        if (how->sum == DISTRIBUTED_TREE ? off != 0 : off > 1e-5F || off < -1e-5F)
            return false;
    }
    return m->summed[PARAMS] == 15.0F;
}

#define STEPS 3

static int overlap_rank(const struct ranks *r, int32_t rank, void *arg)
{
    const struct how *how = arg;
    struct as_err err = {0};
    struct model m;
    struct train_spec spec = {0};
    unsigned agreed;
    AS_AUTO(coll_freep) struct coll *c = ranks_open(r, rank, NULL);
    EXPECT(c && model_init(&m, &spec, how, &err) == AS_OK);
    for (int64_t step = 0; step < STEPS; step++) {
        EXPECT(m.strategy.ops->run(m.strategy.self, c, NULL, rank == 1 ? STRATEGY_SAVE : 0, &agreed,
                                   &err) == AS_OK);
        EXPECT(agreed == (r->n > 1 ? STRATEGY_SAVE : 0));
        EXPECT(is_sum(&m, step, how));
    }
    struct strategy_progress p = m.strategy.ops->progress(m.strategy.self);
    bool has_shards = rank < SHARDS;
    EXPECT(r->n == 1 || p.buckets == LAYERS + 1);
    EXPECT(r->n == 1 || p.summed == p.buckets);
    /* All layers leave before the end if the replica reports them; none if it does not. */
    EXPECT(p.begun_early == (r->n > 1 && how->reports && has_shards ? LAYERS : 0));
    EXPECT(m.waited == (r->n > 1 && how->reports && has_shards ? STEPS : 0));
    EXPECT(coll_barrier(c, (struct coll_id){.step = 99}, &err) == AS_OK);
    strategy_done(&m.strategy);
    free(m.summed);
    return 0;
}

static const struct how hows[] = {
    {DISTRIBUTED_TREE, true},
    {DISTRIBUTED_RING, true},
    {DISTRIBUTED_TREE, false},
};

START_TEST(buckets_are_summed_while_the_gradient_is_computed)
{
    struct how how = hows[_i];
    for (int32_t n = 1; n <= 4; n++)
        ck_assert(ranks_run(n, overlap_rank, &how));
}
END_TEST

/* A rank that cannot compute its gradient leaves; the others are not left waiting. */
static as_status failing(void *self, struct backend *lane, int64_t ahead, uint32_t shard,
                         const struct replica_sink *sink, struct as_err *err)
{
    static const float zeros[WIDTH];
    if (!sink->early)
        return gradient_taken(self, lane, ahead, shard, sink, err);
    sink->take(sink->arg, PARAMS - WIDTH, zeros, WIDTH);
    return as_fail(err, AS_E_INTERNAL, "the device is broken");
}

static int failing_rank(const struct ranks *r, int32_t rank, void *arg)
{
    struct as_err err = {0};
    struct model m;
    struct train_spec spec = {0};
    struct replica_ops ops = model_ops;
    unsigned agreed;
    (void)arg;
    ops.gradient_taken = failing;
    struct coll *c = ranks_open(r, rank, NULL);
    EXPECT(c && model_init(&m, &spec, &hows[0], &err) == AS_OK);
    m.waits = false;
    if (rank == 0) /* its run has two shards: the first does not leave early */
        m.replica.ops = &ops;
    as_status st = m.strategy.ops->run(m.strategy.self, c, NULL, 0, &agreed, &err);
    EXPECT(st == (rank == 0 ? AS_E_INTERNAL : AS_E_UNAVAILABLE));
    EXPECT(m.step == 0);
    coll_free(c);
    strategy_done(&m.strategy);
    free(m.summed);
    return 0;
}

START_TEST(a_rank_that_fails_in_its_gradient_leaves)
{
    ck_assert(ranks_run(3, failing_rank, NULL));
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("overlap");
    TCase *t = tcase_create("overlap");
    tcase_add_loop_test(t, buckets_are_summed_while_the_gradient_is_computed, 0,
                        AS_ARRAY_LEN(hows));
    tcase_add_test(t, a_rank_that_fails_in_its_gradient_leaves);
    suite_add_tcase(s, t);
    return s;
}
