/* What ranks hold of residuals after they have met: a rank that missed the end of a step, one that
 * is new, one whose shards go to another, and what only a lost rank had. */
#include <stdlib.h>

#include "tests/support/check_main.h"
#include "tests/trial-runner/collective/ranks.h"
#include "trial-runner/distributed/residuals.h"

enum { N = 5, SHARDS = 4, STEP = 7 };

/* The residual of a shard after a step. */
static float value_of(uint32_t shard, int64_t step, size_t i)
{
    return (float)(100 * (int64_t)shard + 10 * step) + (float)i;
}

static float sum_value(int64_t step, size_t i)
{
    return -(float)(10 * step) - (float)i;
}

/* Writes what the step from STEP on has lost, for this rank's shards and slice. It has `shards`
 * shards. */
static as_status write_step(struct residuals *r, struct shard_run run, uint32_t shards,
                            struct as_err *err)
{
    residuals_begin(r, STEP, STEP + 1, shards);
    for (uint32_t s = run.first; s < run.first + run.count; s++) {
        float *after;
        as_status st = residuals_after(r, s, &after, err);
        if (st < 0)
            return st;
        for (size_t i = 0; i < N; i++)
            after[i] = value_of(s, STEP + 1, i);
    }
    for (size_t i = r->slice_first; i < r->slice_end; i++)
        r->sum_after[i] = sum_value(STEP + 1, i);
    r->sum_written = true;
    return AS_OK;
}

static const struct shard_run halves[3] = {{0, 2}, {2, 2}, {4, 0}};
static const struct shard_run moved[3] = {{0, 1}, {1, 1}, {2, 2}};

/* Ranks 0 and 1 have trained; rank 2 is new. In the last step rank 1 lost the connection before it
 * had the result, which rank 0 has: both are right for STEP + 1 when they meet. */
static int behind_rank(const struct ranks *all, int32_t rank, void *arg)
{
    struct as_err err = {0};
    AS_AUTO(coll_freep) struct coll *c = ranks_open(all, rank, &(struct mesh_opts){0});
    AS_AUTO(residuals_done) struct residuals r = {0};
    (void)arg;
    EXPECT(c);
    EXPECT(residuals_init(&r, N, SHARDS, true, &err) == AS_OK);
    residuals_hold_all(&r, STEP);
    r.run = halves[rank];
    r.slice_first = rank == 0 ? 0 : 2;
    r.slice_end = rank == 0 ? 2 : N;
    if (rank < 2)
        EXPECT(write_step(&r, halves[rank], SHARDS, &err) == AS_OK);
    if (rank == 0)
        residuals_commit(&r);
    size_t first, end;
    coll_slice(N, 3, rank, &first, &end);
    EXPECT(residuals_meet(&r, c, STEP + 1, moved, first, end, &err) == AS_OK);
    EXPECT(r.lost == 0);
    for (uint32_t s = moved[rank].first; s < moved[rank].first + moved[rank].count; s++)
        for (size_t i = 0; i < N; i++)
            EXPECT(residuals_before(&r, s)[i] == value_of(s, STEP + 1, i));
    for (size_t i = 0; i < N; i++)
        EXPECT(r.of_sum[i] == sum_value(STEP + 1, i));
    EXPECT(residuals_gather(&r, c, moved, &err) == AS_OK);
    for (uint32_t s = 0; rank == 0 && s < SHARDS; s++)
        for (size_t i = 0; i < N; i++)
            EXPECT(residuals_before(&r, s)[i] == value_of(s, STEP + 1, i));
    return 0;
}

START_TEST(a_rank_that_missed_the_end_of_a_step_has_its_residuals)
{
    ck_assert(ranks_run(3, behind_rank, NULL));
}
END_TEST

/* Rank 1 is another process than the one that held shards 2 and 3: these are 0, the others stay. */
static int lost_rank(const struct ranks *all, int32_t rank, void *arg)
{
    struct as_err err = {0};
    AS_AUTO(coll_freep) struct coll *c = ranks_open(all, rank, &(struct mesh_opts){0});
    AS_AUTO(residuals_done) struct residuals r = {0};
    (void)arg;
    EXPECT(c);
    EXPECT(residuals_init(&r, N, SHARDS, false, &err) == AS_OK);
    residuals_hold_all(&r, rank == 0 ? STEP : 0);
    r.run = halves[rank];
    if (rank == 0) {
        EXPECT(write_step(&r, halves[0], SHARDS, &err) == AS_OK);
        residuals_commit(&r);
    }
    EXPECT(residuals_meet(&r, c, STEP + 1, halves, 0, 0, &err) == AS_OK);
    EXPECT(r.lost == 2);
    for (uint32_t s = halves[rank].first; s < halves[rank].first + halves[rank].count; s++)
        for (size_t i = 0; i < N; i++)
            EXPECT(residuals_before(&r, s)[i] == (rank == 0 ? value_of(s, STEP + 1, i) : 0));
    return 0;
}

START_TEST(what_only_a_lost_rank_held_begins_from_0)
{
    ck_assert(ranks_run(2, lost_rank, NULL));
}
END_TEST

/* The residuals of `run` after STEP, of a rank that has trained. */
static as_status hold(struct residuals *r, struct shard_run run, struct as_err *err)
{
    as_status st = residuals_init(r, N, SHARDS, false, err);
    if (st < 0)
        return st;
    residuals_hold_all(r, STEP);
    r->run = run;
    for (uint32_t s = 0; s < SHARDS; s++) {
        r->held[s] = s - run.first < run.count;
        for (size_t i = 0; i < N && r->held[s]; i++)
            r->now[s][i] = value_of(s, STEP, i);
    }
    return AS_OK;
}

/* The last step of an epoch has two of four shards, both of rank 0, which completes it. Rank 1 has
 * not begun it when ranks 2 and 3 join: what rank 1 holds has not changed. In a full step it
 * would have. */
static const struct shard_run spread[4] = {{0, 1}, {1, 1}, {2, 1}, {3, 1}};

static int idle_rank(const struct ranks *all, int32_t rank, void *arg)
{
    const uint32_t shards = *(const uint32_t *)arg, known = shards == SHARDS ? 2 : SHARDS;
    struct as_err err = {0};
    AS_AUTO(coll_freep) struct coll *c = ranks_open(all, rank, &(struct mesh_opts){0});
    AS_AUTO(residuals_done) struct residuals r = {0};
    EXPECT(c);
    if (rank >= 2)
        EXPECT(residuals_init(&r, N, SHARDS, false, &err) == AS_OK);
    else
        EXPECT(hold(&r, halves[rank], &err) == AS_OK);
    if (rank == 0) {
        EXPECT(write_step(&r, halves[0], shards, &err) == AS_OK);
        residuals_commit(&r);
    }
    EXPECT(residuals_meet(&r, c, STEP + 1, spread, 0, 0, &err) == AS_OK);
    EXPECT(r.lost == SHARDS - known);
    uint32_t own = spread[rank].first;
    for (size_t i = 0; i < N; i++)
        EXPECT(residuals_before(&r, own)[i] ==
               (own >= known ? 0 : value_of(own, own < 2 ? STEP + 1 : STEP, i)));
    /* Who was behind knows now what the others know. */
    EXPECT(r.step == STEP + 1 && r.changed[0] == STEP + 1);
    EXPECT(r.changed[3] == (shards == SHARDS ? STEP + 1 : STEP));
    return 0;
}

START_TEST(a_rank_without_shards_in_a_missed_step_keeps_its_residuals)
{
    uint32_t some = 2, all = SHARDS;
    ck_assert(ranks_run(4, idle_rank, &some));
    ck_assert(ranks_run(4, idle_rank, &all));
}
END_TEST

/* Who had the result of a step is gone, and with it the knowledge which shards it had. */
static int ignorant_rank(const struct ranks *all, int32_t rank, void *arg)
{
    struct as_err err = {0};
    AS_AUTO(coll_freep) struct coll *c = ranks_open(all, rank, &(struct mesh_opts){0});
    AS_AUTO(residuals_done) struct residuals r = {0};
    (void)arg;
    EXPECT(c);
    EXPECT(hold(&r, halves[rank], &err) == AS_OK);
    EXPECT(residuals_meet(&r, c, STEP + 1, halves, 0, 0, &err) == AS_OK);
    EXPECT(r.lost == SHARDS);
    EXPECT(residuals_before(&r, halves[rank].first)[0] == 0);
    return 0;
}

START_TEST(what_nobody_knows_to_be_right_begins_from_0)
{
    ck_assert(ranks_run(2, ignorant_rank, NULL));
}
END_TEST

/* Nothing that is owed disappears: the first of the run owes all of it, also after steps in which
 * the residuals have changed places. */
START_TEST(merged_residuals_are_the_sum_of_a_run)
{
    struct as_err err = {0};
    AS_AUTO(residuals_done) struct residuals r = {0};
    ck_ok(residuals_init(&r, N, SHARDS, false, &err), err);
    residuals_hold_all(&r, STEP);
    r.run = (struct shard_run){0, SHARDS};
    ck_ok(write_step(&r, r.run, SHARDS, &err), err);
    residuals_commit(&r);
    residuals_merge(&r, (struct shard_run){1, 3});
    for (size_t i = 0; i < N; i++) {
        float all = value_of(1, STEP + 1, i) + value_of(2, STEP + 1, i) + value_of(3, STEP + 1, i);
        ck_assert(residuals_before(&r, 0)[i] == value_of(0, STEP + 1, i));
        ck_assert(residuals_before(&r, 1)[i] == all);
        ck_assert(residuals_before(&r, 2)[i] == 0 && residuals_before(&r, 3)[i] == 0);
    }
}
END_TEST

/* The last batch of an epoch has five of eight shards: each stays with its rank. */
START_TEST(shards_of_a_short_batch_stay_where_they_are)
{
    struct as_err err = {0};
    AS_AUTO(residuals_done) struct residuals r = {0};
    struct shard_run all[3], some[3];
    ck_ok(residuals_init(&r, N, 8, false, &err), err);
    residuals_spread(&r, 8, 3, all);
    residuals_spread(&r, 5, 3, some);
    for (size_t k = 0; k < 3; k++)
        for (uint32_t i = some[k].first; i < some[k].first + some[k].count; i++)
            ck_assert(i < 5 && i - all[k].first < all[k].count);
    ck_assert_uint_eq(some[0].count + some[1].count + some[2].count, 5);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("residuals");
    TCase *t = tcase_create("residuals");
    tcase_add_test(t, a_rank_that_missed_the_end_of_a_step_has_its_residuals);
    tcase_add_test(t, what_only_a_lost_rank_held_begins_from_0);
    tcase_add_test(t, a_rank_without_shards_in_a_missed_step_keeps_its_residuals);
    tcase_add_test(t, what_nobody_knows_to_be_right_begins_from_0);
    tcase_add_test(t, merged_residuals_are_the_sum_of_a_run);
    tcase_add_test(t, shards_of_a_short_batch_stay_where_they_are);
    suite_add_tcase(s, t);
    return s;
}
