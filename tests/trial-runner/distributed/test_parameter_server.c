/* The parameter server in real processes: the serial run's bits, bounded leads, ranks that are late
 * or dead. */
#include <check.h>
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/check_main.h"
#include "tests/trial-runner/distributed/toy.h"
#include "trial-runner/distributed/staleness.h"

#define SLOW 4

static const struct distributed_spec allreduce = {.strategy = DISTRIBUTED_ALLREDUCE};

START_TEST(synchronous_server_has_the_bits_of_the_serial_run)
{
    static const int64_t slices[] = {0, 1, 3, 7};
    struct toy_board *serial = toy_run_equal(1, allreduce, NULL);
    ck_assert(toy_distance(serial->x[0]) < 1e-4);
    for (int32_t n = 1; n <= 5; n++) {
        struct distributed_spec spec = {.strategy = DISTRIBUTED_SERVER,
                                        .mode = n % 2 ? DISTRIBUTED_SYNC : DISTRIBUTED_SSP,
                                        .staleness = 0,
                                        .server_shards = slices[n % 4]};
        struct toy_board *b = toy_run_equal(n, spec, NULL);
        ck_assert(memcmp(b->x[0], serial->x[0], sizeof b->x[0]) == 0);
        toy_board_free(b);
    }
    /* Staleness is not a synonym: the same run with it has other bits. */
    struct distributed_spec stale = {
        .strategy = DISTRIBUTED_SERVER, .mode = DISTRIBUTED_SSP, .staleness = 3};
    struct toy_board *b = toy_run_equal(3, stale, NULL);
    ck_assert(memcmp(b->x[0], serial->x[0], sizeof b->x[0]) != 0);
    ck_assert(toy_distance(b->x[0]) < 0.05);
    toy_board_free(b);
    toy_board_free(serial);
}
END_TEST

/* --- how far ranks lead --- */

/* Notes by how much this rank leads the slowest. One rank waits, once, until somebody leads it by
 * as much as the bound allows, and then for a while in vain. */
static void watch_lead(struct toy *t, int64_t step, uint32_t shard)
{
    struct toy_board *b = t->board;
    int64_t done[RANKS_MAX];
    (void)shard;
    for (int32_t r = 0; r < t->n_ranks; r++)
        done[r] = b->done[r];
    int32_t lead = (int32_t)(step - clock_slowest(done, (size_t)t->n_ranks));
    for (int32_t w = b->widest; lead > w && !atomic_compare_exchange_weak(&b->widest, &w, lead);)
        ;
    if (t->rank == 1 && step == 5)
        (void)(toy_wait(&b->widest, t->spec.distributed.staleness, PATIENCE_MS) &&
               toy_wait(&b->widest, t->spec.distributed.staleness + 1, 300));
}

START_TEST(no_rank_leads_by_more_than_the_staleness)
{
    for (int64_t s = 0; s <= 6; s += 3) {
        struct distributed_spec spec = {
            .strategy = DISTRIBUTED_SERVER, .mode = DISTRIBUTED_SSP, .staleness = s};
        struct toy_board *b = toy_run_equal(3, spec, watch_lead);
        ck_assert_int_eq(b->widest, s); /* not more, and no less while one rank waits */
        toy_board_free(b);
    }
}
END_TEST

/* --- its own updates --- */

START_TEST(a_rank_that_is_alone_is_never_stale)
{
    struct toy_board *serial = toy_run_equal(1, allreduce, NULL);
    for (int64_t s = 1; s <= 7; s += 3) {
        struct distributed_spec spec = {
            .strategy = DISTRIBUTED_SERVER, .mode = DISTRIBUTED_SSP, .staleness = s};
        struct toy_board *b = toy_run_equal(1, spec, NULL);
        ck_assert(memcmp(b->x[0], serial->x[0], sizeof b->x[0]) == 0);
        toy_board_free(b);
    }
    toy_board_free(serial);
}
END_TEST

#define AHEAD 12 /* gradients that are computed ahead of the sums, and looked at */

/* Rank 1 waits at a step, so that rank 0 is ahead of the sums. What rank 0 then reads are the
 * weights of its last gradient with its own update of that gradient. */
static void watch_writes(struct toy *t, int64_t step, uint32_t shard)
{
    static int64_t last_at = -1, last_step = -1;
    static float expected[TOY_N];
    struct toy_board *b = t->board;
    int64_t at = t->epoch * TOY_STEPS + t->at;
    if (t->rank == 1) {
        if (step % 4 == 0 && step / 4 < 5)
            (void)toy_wait(&b->after, AHEAD * (int32_t)(step / 4) / 4, 1000);
        return;
    }
    if (step != last_step) {
        for (size_t i = 0; at == last_at && i < TOY_N; i++)
            if (fabsf(t->x[i] - expected[i]) > 1e-5F)
                b->flags = 1;
        b->after += at == last_at;
        memcpy(expected, t->x, sizeof expected);
        last_at = at;
        last_step = step;
    }
    for (size_t i = 0; i < TOY_N; i++)
        expected[i] -= t->rate * (t->x[i] - toy_target(i, shard)) / TOY_SHARDS;
}

START_TEST(a_rank_that_is_ahead_reads_its_own_updates)
{
    struct distributed_spec spec = {
        .strategy = DISTRIBUTED_SERVER, .mode = DISTRIBUTED_SSP, .staleness = 3};
    struct toy_board *b = toy_run_equal(2, spec, watch_writes);
    ck_assert_int_ge(b->after, AHEAD);
    ck_assert_int_eq(b->flags, 0);
    ck_assert(toy_distance(b->x[0]) < 0.05);
    toy_board_free(b);
}
END_TEST

/* --- backup --- */

/* A gradient of the slow rank is not ready before the others have done ten more steps. */
static void wait_for_the_others(struct toy *t, int64_t step, uint32_t shard)
{
    (void)shard;
    if (t->rank != SLOW || step < 5 || t->board->flags) /* it may be late, and miss step 5 */
        return;
    t->board->flags = toy_wait(&t->board->steps[0], (int32_t)step + 10,
                               t->spec.distributed.backup ? PATIENCE_MS : 1000)
                          ? 1
                          : 2;
}

START_TEST(slow_rank_is_not_waited_for)
{
    struct distributed_spec spec = {.strategy = DISTRIBUTED_SERVER, .backup = 1};
    struct toy_board *b = toy_run_equal(5, spec, wait_for_the_others);
    ck_assert_int_eq(b->flags, 1);
    ck_assert(toy_distance(b->x[0]) < 0.5); /* what is late is left out: the optimum moves */
    toy_board_free(b);
    spec.backup = 0; /* without it they wait: the patience of the slow rank ends first */
    b = toy_run_equal(5, spec, wait_for_the_others);
    ck_assert_int_eq(b->flags, 2);
    ck_assert(toy_distance(b->x[0]) < 1e-4);
    toy_board_free(b);
}
END_TEST

static void die(struct toy *t, int64_t step, uint32_t shard)
{
    (void)shard;
    if (t->rank != SLOW && step >= 8) /* with backup they would be done before a late rank begins */
        (void)toy_wait(&t->board->flags, 1, PATIENCE_MS);
    if (t->rank != SLOW || step < 5)
        return;
    t->board->flags = 1;
    t->board->dead[t->rank] = 1;
    _exit(9);
}

/* With backup the others train to the end although no new world comes; without it they all hear of
 * the loss. The dead rank holds no slice: there are four. */
START_TEST(dead_rank_is_made_up_for_by_backup)
{
    for (int64_t backup = 0; backup <= 1; backup++) {
        struct toy_plan p = {
            .spec = {.strategy = DISTRIBUTED_SERVER, .backup = backup, .server_shards = 4},
            .board = toy_board_create(),
            .before = die};
        struct ranks r;
        ranks_init(&r, 5);
        ranks_start(&r, toy_run_rank, &p);
        for (int32_t i = 0; i < 5; i++)
            ck_assert_int_eq(ranks_wait(&r, i), i == SLOW ? 9 : 0);
        for (int32_t i = 0; i < SLOW; i++) {
            ck_assert_int_eq(p.board->ends[i], backup ? 1 : 2);
            ck_assert(!backup || toy_distance(p.board->x[i]) < 0.5);
        }
        ranks_done(&r);
        toy_board_free(p.board);
    }
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("server");
    TCase *t = tcase_create("server");
    tcase_add_test(t, synchronous_server_has_the_bits_of_the_serial_run);
    tcase_add_test(t, no_rank_leads_by_more_than_the_staleness);
    tcase_add_test(t, a_rank_that_is_alone_is_never_stale);
    tcase_add_test(t, a_rank_that_is_ahead_reads_its_own_updates);
    tcase_add_test(t, slow_rank_is_not_waited_for);
    tcase_add_test(t, dead_rank_is_made_up_for_by_backup);
    suite_add_tcase(s, t);
    return s;
}
