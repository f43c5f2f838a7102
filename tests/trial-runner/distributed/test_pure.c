/* What strategies compute without peers: clocks, the tree over shards, push-sum. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "tests/support/check_main.h"
#include "trial-runner/distributed/block_placement.h"
#include "trial-runner/distributed/staleness.h"
#include "trial-runner/distributed/push_sum.h"
#include "trial-runner/distributed/shard_tree.h"

/* --- clocks --- */

/* Ranks that begin whenever they may, in any order, never lead by more than the bound. */
START_TEST(leads_are_bounded)
{
    struct rng g;
    rng_init(&g, 8, 0);
    for (int64_t bound = 0; bound < 6; bound++) {
        int64_t done[5] = {0}, widest = 0;
        for (int turn = 0; turn < 4000; turn++) {
            size_t r = rng_below(&g, 5) * rng_below(&g, 5) % 5; /* some ranks are slow */
            int64_t slowest = clock_slowest(done, 5);
            if (!clock_may_begin(bound, slowest, done[r]))
                continue;
            widest = done[r] - slowest > widest ? done[r] - slowest : widest;
            done[r]++;
        }
        ck_assert_int_eq(widest, bound);
        ck_assert_int_gt(clock_slowest(done, 5), 100);
    }
    ck_assert(clock_may_begin(CLOCK_NO_BOUND, 0, 1000000));
}
END_TEST

/* --- the tree --- */

static float node_value(const float *leaves, uint32_t total, uint32_t first, uint32_t level)
{
    if (level == 0)
        return leaves[first];
    uint32_t middle = first + (1U << (level - 1));
    float left = node_value(leaves, total, first, level - 1);
    return middle >= total ? left : left + node_value(leaves, total, middle, level - 1);
}

/* However the shards are cut into runs, the sum has the bits of the plain recursion. */
START_TEST(sums_do_not_depend_on_the_runs)
{
    struct rng g;
    struct as_err err;
    rng_init(&g, 9, 0);
    for (uint32_t total = 1; total <= 33; total++) {
        float leaves[33], values[33], sum;
        struct shard_node known[33], nodes[SHARD_TREE_NODES];
        size_t n = 0;
        for (uint32_t i = 0; i < total; i++)
            leaves[i] = (float)rng_normal(&g);
        for (uint32_t first = 0; first < total;) {
            struct shard_run run = {first, 1 + (uint32_t)rng_below(&g, total - first)};
            struct shard_node own[33];
            for (uint32_t i = 0; i < run.count; i++)
                own[i] = (struct shard_node){first + i, 0, &leaves[first + i]};
            size_t cover = shard_tree_cover(total, run, nodes);
            for (size_t i = 0; i < cover; i++, n++) {
                known[n] = nodes[i];
                ck_assert_int_eq(
                    shard_tree_sum(total, nodes[i], own, run.count, &values[n], 1, &err), AS_OK);
                known[n].value = &values[n];
            }
            first += run.count;
        }
        struct shard_node root = shard_tree_root(total);
        ck_assert_int_eq(shard_tree_sum(total, root, known, n, &sum, 1, &err), AS_OK);
        float plain = node_value(leaves, total, 0, root.level);
        ck_assert(memcmp(&sum, &plain, sizeof sum) == 0);
    }
}
END_TEST

START_TEST(missing_shards_are_left_out)
{
    struct as_err err;
    for (unsigned mask = 0; mask < 128; mask++) {
        float leaves[7], sum = -1, expected = 0;
        struct shard_node known[7];
        size_t n = 0;
        for (uint32_t i = 0; i < 7; i++) {
            leaves[i] = (float)(1U << i); /* exact in any order */
            if (!(mask >> i & 1))
                continue;
            known[n++] = (struct shard_node){i, 0, &leaves[i]};
            expected += leaves[i];
        }
        ck_assert_int_eq(shard_tree_sum(7, shard_tree_root(7), known, n, &sum, 1, &err), AS_OK);
        ck_assert(sum == expected);
    }
}
END_TEST

/* --- push-sum --- */

enum { RANKS = 6, NUMBERS = 50 };

static double disagreement(float x[RANKS][NUMBERS])
{
    double worst = 0;
    for (int i = 0; i < NUMBERS; i++)
        for (int r = 1; r < RANKS; r++)
            worst = fmax(worst, fabs((double)x[r][i] - (double)x[0][i]));
    return worst;
}

/* One round: every rank gives a part of its weight, with its model, to a peer. */
static void gossip_round(float x[RANKS][NUMBERS], double *w, uint64_t round, bool halve)
{
    float sent[RANKS][NUMBERS];
    double given[RANKS];
    memcpy(sent, x, sizeof sent);
    for (int32_t r = 0; r < RANKS; r++)
        given[r] = halve ? push_sum_give(&w[r]) : w[r]; /* the fault: the weight is kept too */
    for (int32_t r = 0; r < RANKS; r++)
        push_sum_take(x[push_sum_peer(3, round, 0, r, RANKS)],
                      &w[push_sum_peer(3, round, 0, r, RANKS)], sent[r], given[r], NUMBERS);
}

static void mass(float x[RANKS][NUMBERS], const double *w, double *ret)
{
    for (int i = 0; i < NUMBERS; i++) {
        ret[i] = 0;
        for (int r = 0; r < RANKS; r++)
            ret[i] += w[r] * (double)x[r][i];
    }
}

START_TEST(gossip_keeps_the_mass_and_agrees_geometrically)
{
    float x[RANKS][NUMBERS];
    double w[RANKS], before[NUMBERS], after[NUMBERS], last;
    struct rng g;
    for (int halve = 1; halve >= 0; halve--) {
        rng_init(&g, 4, 0);
        for (int r = 0; r < RANKS; r++) {
            w[r] = 1;
            for (int i = 0; i < NUMBERS; i++)
                x[r][i] = (float)rng_normal(&g);
        }
        mass(x, w, before);
        last = disagreement(x);
        for (uint64_t round = 0; round < 80; round++) {
            gossip_round(x, w, round, halve);
            if (halve && round % 20 == 19) { /* by a constant factor in as many rounds */
                double now = disagreement(x);
                ck_assert(now < last / 4 || now < 1e-5);
                last = now;
            }
        }
        mass(x, w, after);
        double drift = 0;
        for (int i = 0; i < NUMBERS; i++)
            drift = fmax(drift, fabs(after[i] - before[i]) / RANKS);
        ck_assert(halve ? drift < 1e-6 * 10 : drift > 1e-2);
    }
}
END_TEST

START_TEST(peers_are_never_oneself_and_all_are_met)
{
    for (int32_t n = 2; n <= 7; n++) {
        unsigned met[7] = {0};
        for (uint64_t step = 0; step < 200; step++)
            for (int32_t r = 0; r < n; r++) {
                int32_t p = push_sum_peer(1, step, 0, r, n);
                ck_assert(p >= 0 && p < n && p != r);
                met[r] |= 1U << p;
            }
        for (int32_t r = 0; r < n; r++)
            ck_assert_uint_eq(met[r], ((1U << n) - 1) & ~(1U << r));
    }
}
END_TEST

/* --- blocks on ranks --- */

enum { BLOCKS = 7 };

/* What a stage takes. */
static double time_of(const double *cost, const double *pace, size_t stage, const size_t *bounds)
{
    double sum = 0;
    for (size_t i = bounds[stage]; i < bounds[stage + 1]; i++)
        sum += cost[i];
    return sum * (pace ? pace[stage] : 1);
}

/* What the slowest takes. */
static double most_of(const double *cost, const double *pace, size_t stages, const size_t *bounds)
{
    double most = 0;
    for (size_t s = 0; s < stages; s++)
        most = fmax(most, time_of(cost, pace, s, bounds));
    return most;
}

/* The least of all ways to cut, tried one after another. */
static double least_most(const double *cost, const double *pace, size_t stages, size_t stage,
                         size_t *bounds)
{
    double least = INFINITY;
    bounds[stages] = BLOCKS;
    if (stage == stages)
        return most_of(cost, pace, stages, bounds);
    for (size_t at = stage == 0 ? 0 : bounds[stage - 1] + 1;
         at <= (stage == 0 ? 0 : BLOCKS - (stages - stage)); at++) {
        bounds[stage] = at;
        double t = least_most(cost, pace, stages, stage + 1, bounds);
        least = t < least ? t : least;
    }
    return least;
}

START_TEST(blocks_are_placed_so_that_the_most_is_least)
{
    struct rng g;
    rng_init(&g, 3, 0);
    for (int turn = 0; turn < 300; turn++) {
        size_t stages = 1 + rng_below(&g, BLOCKS), bounds[BLOCKS + 1], tried[BLOCKS + 1];
        double cost[BLOCKS], paces[BLOCKS];
        const double *pace = turn % 2 ? paces : NULL;
        for (size_t i = 0; i < BLOCKS; i++) {
            cost[i] = (double)rng_below(&g, 20);
            paces[i] = 0.5 + (double)rng_below(&g, 9);
        }
        ck_assert(block_placement(cost, pace, BLOCKS, stages, bounds, NULL) == AS_OK);
        ck_assert_uint_eq(bounds[0], 0);
        ck_assert_uint_eq(bounds[stages], BLOCKS);
        for (size_t s = 0; s < stages; s++)
            ck_assert_uint_lt(bounds[s], bounds[s + 1]);
        double found = most_of(cost, pace, stages, bounds);
        ck_assert_double_le(found, least_most(cost, pace, stages, 0, tried) * (1 + 1e-9));
    }
}
END_TEST

/* Three ranks with blocks 0 and 1, 2 and 3, 4 to 6, of equal cost. */
static bool is_placed_anew(double first, double second, double third, size_t *ret)
{
    static const double cost[BLOCKS] = {2, 2, 2, 2, 2, 2, 2};
    static const size_t bounds[] = {0, 2, 4, BLOCKS};
    double times[] = {first, second, third};
    bool gains;
    ck_assert(block_placement_anew(cost, times, BLOCKS, 3, bounds, ret, &gains, NULL) == AS_OK);
    return gains;
}

START_TEST(blocks_leave_a_slow_rank_if_that_is_worth_it)
{
    size_t now[4];
    ck_assert(is_placed_anew(2, 20, 3, now));
    ck_assert_uint_eq(now[2] - now[1], 1); /* it keeps one: its neighbours share the other six */
    ck_assert(is_placed_anew(50, 2, 3, now));
    ck_assert_uint_eq(now[1], 1);
    ck_assert(is_placed_anew(2, 2, 30, now));
    ck_assert_uint_eq(now[2], BLOCKS - 1);
    /* Equal ranks; one a little slower; one that nothing can be taken from. */
    ck_assert(!is_placed_anew(2, 2, 3, now));
    ck_assert(!is_placed_anew(2, 3, 3, now));
    ck_assert(!is_placed_anew(3, 2, 3, now));
    ck_assert(!is_placed_anew(0, 0, 0, now));
    /* A rank that has measured nothing counts as an average one. */
    ck_assert(is_placed_anew(0, 20, 3, now));
    ck_assert_uint_eq(now[2] - now[1], 1);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("distributed");
    TCase *t = tcase_create("pure");
    tcase_add_test(t, leads_are_bounded);
    tcase_add_test(t, sums_do_not_depend_on_the_runs);
    tcase_add_test(t, missing_shards_are_left_out);
    tcase_add_test(t, gossip_keeps_the_mass_and_agrees_geometrically);
    tcase_add_test(t, peers_are_never_oneself_and_all_are_met);
    tcase_add_test(t, blocks_are_placed_so_that_the_most_is_least);
    tcase_add_test(t, blocks_leave_a_slow_rank_if_that_is_worth_it);
    suite_add_tcase(s, t);
    return s;
}
