/* Sums of powersgd's factors as float32 and as halves: what is in the sum and in the residuals
 * afterwards is what was in the gradients and in the residuals before. Halves lose 2^-12 of each
 * number, so the check is far finer than they are. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "base/str.h"
#include "tests/support/check_main.h"
#include "tests/trial-runner/collective/ranks.h"
#include "trial-runner/distributed/shard_sum.h"

enum {
    ROWS = 96,
    COLS = 80,
    PARAMS = ROWS * COLS + 40 * 3 + COLS, /* the second matrix and the vector travel whole */
    EXACT = 3,
    N = PARAMS + EXACT,
    SHARDS = 6,
    STEPS = 5
};

static const struct replica_tensor tensors[] = {
    {0, ROWS, COLS}, {ROWS * COLS, 3, 40}, {ROWS * COLS + 120, COLS, 1}};

struct how {
    bool half;
    double scale;
    uint32_t shards; /* of a step */
};

static int64_t step_of(const void *self)
{
    return *(const int64_t *)self;
}

static const struct replica_ops ops = {.step = step_of};

/* Shards share a direction and differ in others. */
static float number_of(int64_t step, uint32_t shard, size_t i, double scale)
{
    struct rng r;
    rng_init(&r, (uint64_t)(step * SHARDS + shard), i);
    double common = sin(0.01 * (double)(i % COLS)) * cos(0.02 * (double)(i / COLS));
    return (float)(scale * (common + 0.3 * rng_normal(&r)));
}

/* What the ranks' residuals add up to, on rank 0. */
static as_status add_residuals(struct shard_sum *s, struct coll *c, double *ret, struct as_err *err)
{
    struct strategy_part parts[SHARD_SUM_PARTS];
    size_t n = shard_sum_parts(s, parts);
    as_status st = shard_sum_gather(s, c, err);
    memset(ret, 0, PARAMS * sizeof *ret);
    for (size_t k = 0; k < n; k++)
        for (size_t i = 0; as_streq(parts[k].name, "residuals") && i < parts[k].n; i++)
            ret[i % PARAMS] += (double)parts[k].values[i];
    return st;
}

/* The largest deviation of one step, as a part of the largest number. */
static double deviation(int64_t step, const struct how *how, const float *sum, const double *before,
                        const double *after)
{
    double off = 0, most = 0;
    for (size_t i = 0; i < N; i++) {
        double in = i < PARAMS ? before[i] : 0, out = i < PARAMS ? after[i] : 0;
        for (uint32_t k = 0; k < how->shards; k++)
            in += (double)number_of(step, k, i, how->scale);
        off = fmax(off, fabs(in - (double)sum[i] - out));
        most = fmax(most, fabs(in));
    }
    return off / most;
}

static int keeps_all(const struct ranks *all, int32_t rank, void *arg)
{
    static double before[PARAMS], after[PARAMS];
    static float values[SHARDS][N], sum[N];
    const struct how *how = arg;
    struct as_err err = {0};
    struct train_spec spec = {
        .distributed = {
            .codec = DISTRIBUTED_POWERSGD, .rank = 2, .half = how->half, .error_feedback = true}};
    int64_t position = 0;
    struct replica replica = {.ops = &ops,
                              .self = &position,
                              .n_params = PARAMS,
                              .n_state = EXACT - 1,
                              .n_numbers = N,
                              .max_shards = SHARDS,
                              .tensors = tensors,
                              .n_tensors = AS_ARRAY_LEN(tensors)};
    const struct strategy_setup setup = {.spec = &spec, .replica = &replica};
    AS_AUTO(coll_freep) struct coll *c = ranks_open(all, rank, &(struct mesh_opts){0});
    AS_AUTO(shard_sum_freep) struct shard_sum *s = NULL;
    EXPECT(c && shard_sum_create(&setup, N, &s, &err) == AS_OK);
    EXPECT(shard_sum_meet(s, c, &err) == AS_OK);
    for (; position < STEPS; position++) {
        struct shard_step at = {.step = position, .next = position + 1, .shards = how->shards};
        struct shard_run run = shard_sum_own(s, c, how->shards);
        const float *partials[SHARDS];
        for (uint32_t k = 0; k < run.count; k++) {
            for (size_t i = 0; i < N; i++)
                values[k][i] = number_of(position, run.first + k, i, how->scale);
            partials[k] = values[k];
        }
        EXPECT(shard_sum_all(s, c, at, partials, sum, &err) == AS_OK);
        EXPECT(add_residuals(s, c, after, &err) == AS_OK);
        double off = deviation(position, how, sum, before, after);
        if (rank == 0 && !(off <= 4e-6)) {
            (void)fprintf(stderr, "step %lld: %g of the largest number is lost\n",
                          (long long)position, off);
            return 1;
        }
        memcpy(before, after, sizeof before);
    }
    return 0;
}

/* 1e30: as halves without scales these would be infinite. Four shards: the last batch of an
 * epoch. */
static const struct how hows[] = {{false, 1, SHARDS},
                                  {true, 1, SHARDS},
                                  {true, 1e30, SHARDS},
                                  {true, 1e-20, SHARDS},
                                  {true, 1, 4}};

START_TEST(sum_and_residuals_lose_nothing)
{
    struct how how = hows[_i];
    for (int32_t n = 1; n <= 4; n++)
        ck_assert_msg(ranks_run(n, keeps_all, &how), "%d ranks", (int)n);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("factor_sum");
    TCase *t = tcase_create("factor_sum");
    tcase_add_loop_test(t, sum_and_residuals_lose_nothing, 0, (int)AS_ARRAY_LEN(hows));
    suite_add_tcase(s, t);
    return s;
}
