/* A death costs the residuals that only the lost rank held, and nothing else: the sums of four
 * ranks, one of which is lost and replaced on the way, have the bits of a single rank that sets
 * just these residuals to 0 at that step.
 *
 * The bits of whole trainings tell nothing here: one whose residuals are lost may end elsewhere. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/str.h"
#include "tests/support/check_main.h"
#include "tests/trial-runner/collective/ranks.h"
#include "trial-runner/distributed/gradient_codec.h"
#include "trial-runner/distributed/shard_sum.h"

enum {
    ROWS = 64,
    WIDE = 64,
    NARROW = 32,
    PARAMS = ROWS * WIDE + ROWS * NARROW + ROWS,
    N = PARAMS + 2, /* two numbers travel exactly */
    SHARDS = 8,
    RANKS = 4,
    STEPS = 12,
    LOSS = 7 /* at this position a rank is lost */
};

static const struct replica_tensor tensors[] = {
    {0, ROWS, WIDE}, {ROWS * WIDE, ROWS, NARROW}, {ROWS * (WIDE + NARROW), ROWS, 1}};

static const struct form {
    distributed_codec codec;
    bool half;
} forms[] = {{DISTRIBUTED_FP16, false},
             {DISTRIBUTED_ONE_BIT, false},
             {DISTRIBUTED_TOP_K, false},
             {DISTRIBUTED_POWERSGD, false},
             {DISTRIBUTED_POWERSGD, true}};

/* For all processes. */
struct board {
    float sums[STEPS][N]; /* what the single rank got */
};

struct how {
    struct board *board;
    struct form form;
    int32_t lost; /* this rank of RANKS */
};

/* One rank's side of the sums. */
struct side {
    struct replica replica;
    struct train_spec spec;
    struct strategy_setup setup;
    struct shard_sum *sums;
    int64_t step;
};

static int64_t side_step(const void *self)
{
    return ((const struct side *)self)->step;
}

static const struct replica_ops ops = {.step = side_step};

static as_status side_open(struct side *s, struct form form, struct as_err *err)
{
    *s = (struct side){.replica = {.ops = &ops,
                                   .self = s,
                                   .n_params = PARAMS,
                                   .n_state = 1,
                                   .n_numbers = PARAMS + 2,
                                   .max_shards = SHARDS,
                                   .tensors = tensors,
                                   .n_tensors = AS_ARRAY_LEN(tensors)}};
    s->spec.distributed.codec = form.codec;
    s->spec.distributed.half = form.half;
    s->spec.distributed.fraction = 0.05;
    s->spec.distributed.rank = 2;
    s->spec.distributed.error_feedback = true;
    s->setup = (struct strategy_setup){.spec = &s->spec, .replica = &s->replica};
    return shard_sum_create(&s->setup, N, &s->sums, err);
}

/* Shards differ much, as real gradients do: their residuals are far from 0. */
static float number_of(int64_t step, uint32_t shard, size_t i)
{
    size_t at = i * 7 + shard * 131 + (size_t)step * 31 + i / WIDE * (shard + 3);
    return (float)(at % 1009) / 1009.0F - 0.3F - 0.05F * (float)shard;
}

static as_status side_run(struct side *s, struct coll *c, float *ret, struct as_err *err)
{
    struct shard_step at = {.step = s->step, .next = s->step + 1, .shards = SHARDS};
    struct shard_run run = shard_sum_own(s->sums, c, SHARDS);
    AS_AUTO(as_freep) float *values = as_calloc(SHARDS * (size_t)N, sizeof *values);
    const float *partials[SHARDS];
    if (!values)
        return as_fail_nomem(err);
    for (uint32_t k = 0; k < run.count; k++) {
        for (size_t i = 0; i < N; i++)
            values[k * (size_t)N + i] = number_of(s->step, run.first + k, i);
        partials[k] = values + k * (size_t)N;
    }
    as_status st = shard_sum_all(s->sums, c, at, partials, ret, err);
    s->step += st == AS_OK;
    return st;
}

static struct strategy_part part_of(struct side *s, const char *name)
{
    struct strategy_part parts[SHARD_SUM_PARTS];
    size_t n = shard_sum_parts(s->sums, parts);
    for (size_t i = 0; i < n; i++)
        if (as_streq(parts[i].name, name))
            return parts[i];
    return (struct strategy_part){0};
}

/* The slice of the sum that is the lost rank's. */
static as_status lost_slice(const struct how *how, struct codec_extent *ret, struct as_err *err)
{
    struct codec_tensor shapes[] = {{ROWS, WIDE}, {ROWS, NARROW}, {1, ROWS}};
    struct codec_opts opts = {
        .name = distributed_codec_name(how->form.codec), .fraction = 0.05, .rank = 2};
    AS_AUTO(codec_freep) struct codec *codec = NULL;
    as_status st = codec_create(&opts, shapes, AS_ARRAY_LEN(shapes), &codec, err);
    if (st == AS_OK && !codec_sums(codec))
        *ret = codec_extent(codec, (struct codec_slice){(uint32_t)how->lost, RANKS});
    return st;
}

static int single_rank(const struct ranks *all, int32_t rank, void *arg)
{
    const struct how *how = arg;
    struct as_err err = {0};
    struct side s;
    struct codec_extent slice = {0};
    AS_AUTO(coll_freep) struct coll *c = ranks_open(all, rank, &(struct mesh_opts){0});
    EXPECT(c);
    EXPECT(side_open(&s, how->form, &err) == AS_OK);
    EXPECT(shard_sum_meet(s.sums, c, &err) == AS_OK);
    EXPECT(lost_slice(how, &slice, &err) == AS_OK);
    while (s.step < STEPS) {
        if (s.step == LOSS) {
            size_t count = SHARDS / RANKS;
            EXPECT(shard_sum_gather(s.sums, c, &err) == AS_OK); /* to their part */
            float *shards = part_of(&s, "residuals").values, *sum;
            memset(shards + (size_t)how->lost * count * PARAMS, 0, count * PARAMS * sizeof(float));
            sum = part_of(&s, "residual_of_sum").values;
            if (sum)
                memset(sum + slice.first_value, 0, slice.n_values * sizeof(float));
        }
        EXPECT(side_run(&s, c, how->board->sums[s.step], &err) == AS_OK);
    }
    shard_sum_free(s.sums);
    return 0;
}

/* Residuals of another position, as a checkpoint that is behind the others has them. */
static as_status restore_stale(struct side *s, struct as_err *err)
{
    static const char *const names[] = {"residuals", "residual_of_sum"};
    for (size_t k = 0; k < AS_ARRAY_LEN(names); k++) {
        struct strategy_part p = part_of(s, names[k]);
        for (size_t i = 0; i < p.n; i++)
            p.values[i] = 1;
    }
    s->step = LOSS - 2;
    return shard_sum_restored(s->sums, true, err);
}

/* The process of the lost rank goes on as the one that replaces it, from an old checkpoint: it has
 * the position and what the codec keeps from a rank that is there, which the trainer sees to. */
static int replace(struct side *s, const struct how *how, struct coll *c, int32_t rank)
{
    struct as_err err = {0};
    struct coll_id id = {.step = LOSS, .tag = 1 << 16, .what = "the codec's state"};
    int32_t from = (how->lost + 1) % RANKS;
    if (rank == how->lost) {
        shard_sum_free(s->sums);
        EXPECT(side_open(s, how->form, &err) == AS_OK);
        EXPECT(restore_stale(s, &err) == AS_OK);
        s->step = LOSS;
    }
    struct strategy_part state = part_of(s, "codec");
    if (rank == from && state.n > 0)
        EXPECT(coll_send(c, id, how->lost, state.values, state.n * sizeof(float), &err) == AS_OK);
    if (rank != how->lost)
        return 0;
    if (state.n > 0)
        EXPECT(coll_receive(c, id, from, state.values, state.n * sizeof(float), &err) == AS_OK);
    EXPECT(shard_sum_restored(s->sums, false, &err) == AS_OK);
    return 0;
}

static int one_of_four(const struct ranks *all, int32_t rank, void *arg)
{
    const struct how *how = arg;
    struct as_err err = {0};
    struct side s;
    AS_AUTO(coll_freep) struct coll *c = ranks_open(all, rank, &(struct mesh_opts){0});
    AS_AUTO(as_freep) float *sum = as_calloc(N, sizeof *sum);
    EXPECT(c && sum);
    EXPECT(side_open(&s, how->form, &err) == AS_OK);
    EXPECT(shard_sum_meet(s.sums, c, &err) == AS_OK);
    while (s.step < STEPS) {
        if (s.step == LOSS) {
            EXPECT(replace(&s, how, c, rank) == 0);
            EXPECT(shard_sum_meet(s.sums, c, &err) == AS_OK);
        }
        const float *expected = how->board->sums[s.step];
        EXPECT(side_run(&s, c, sum, &err) == AS_OK);
        EXPECT(memcmp(sum, expected, N * sizeof *sum) == 0);
    }
    shard_sum_free(s.sums);
    return 0;
}

START_TEST(a_death_costs_its_residuals_and_no_other_bit)
{
    struct board *board =
        mmap(NULL, sizeof *board, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(board, MAP_FAILED);
    struct how how = {board, forms[_i / RANKS], _i % RANKS};
    ck_assert(ranks_run(1, single_rank, &how));
    ck_assert(ranks_run(RANKS, one_of_four, &how));
    (void)munmap(board, sizeof *board);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("shard_loss");
    TCase *t = tcase_create("shard_loss");
    tcase_add_loop_test(t, a_death_costs_its_residuals_and_no_other_bit, 0,
                        (int)AS_ARRAY_LEN(forms) * RANKS);
    suite_add_tcase(s, t);
    return s;
}
