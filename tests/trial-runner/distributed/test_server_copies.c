/* Backup copies in real processes: the serial run's bits, whoever is quicker; a slow rank that is
 * not waited for; a rank that is lost. */
#include <check.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "tests/support/check_main.h"
#include "tests/trial-runner/distributed/toy.h"

#define SLOW 2 /* of four ranks */
#define N 4

static const struct distributed_spec allreduce = {.strategy = DISTRIBUTED_ALLREDUCE};
static const struct distributed_spec copies = {.strategy = DISTRIBUTED_SERVER,
                                               .backup_copies = true};

START_TEST(bits_are_those_of_the_serial_run)
{
    static const int64_t slices[] = {0, 1, 3, 500};
    struct toy_board *serial = toy_run_equal(1, allreduce, NULL);
    for (int32_t n = 1; n <= 5; n++) {
        struct distributed_spec spec = copies;
        spec.server_shards = slices[n % 4];
        struct toy_board *b = toy_run_equal(n, spec, NULL);
        ck_assert(memcmp(b->x[0], serial->x[0], sizeof b->x[0]) == 0);
        toy_board_free(b);
    }
    toy_board_free(serial);
}
END_TEST

/* A gradient of the slow rank is not ready before the others have done ten more steps. */
static void wait_for_the_others(struct toy *t, int64_t step, uint32_t shard)
{
    (void)shard;
    if (t->rank == SLOW && step >= 5 && !t->board->flags)
        t->board->flags = toy_wait(&t->board->steps[0], (int32_t)step + 10,
                                   t->spec.distributed.backup_copies ? PATIENCE_MS : 500)
                              ? 1
                              : 2;
}

START_TEST(the_others_go_on_with_the_same_bits)
{
    const struct distributed_spec plain = {.strategy = DISTRIBUTED_SERVER};
    struct toy_board *serial = toy_run_equal(1, allreduce, NULL);
    struct toy_board *b = toy_run_equal(N, copies, wait_for_the_others);
    ck_assert_int_eq(b->flags, 1);
    ck_assert(memcmp(b->x[0], serial->x[0], sizeof b->x[0]) == 0);
    toy_board_free(b);
    b = toy_run_equal(N, plain,
                      wait_for_the_others); /* without copies they wait: its patience ends first */
    ck_assert_int_eq(b->flags, 2);
    ck_assert(memcmp(b->x[0], serial->x[0], sizeof b->x[0]) == 0);
    toy_board_free(b);
    toy_board_free(serial);
}
END_TEST

static void die(struct toy *t, int64_t step, uint32_t shard)
{
    (void)shard;
    if (t->rank != SLOW && step >= 5) /* they hear of it before they are done */
        clock_sleep_ms(5);
    if (t->rank != SLOW || step < 5)
        return;
    t->board->dead[t->rank] = 1;
    _exit(9);
}

/* Copies do not make up for a rank that is gone: a new world comes, with runs of its own. */
START_TEST(all_hear_of_a_lost_rank)
{
    struct toy_plan p = {.spec = copies, .board = toy_board_create(), .before = die};
    struct ranks r;
    ranks_init(&r, N);
    ranks_start(&r, toy_run_rank, &p);
    for (int32_t i = 0; i < N; i++)
        ck_assert_int_eq(ranks_wait(&r, i), i == SLOW ? 9 : 0);
    for (int32_t i = 0; i < N; i++)
        ck_assert(i == SLOW || p.board->ends[i] == 2);
    ranks_done(&r);
    toy_board_free(p.board);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("server copies");
    TCase *t = tcase_create("copies");
    tcase_add_test(t, bits_are_those_of_the_serial_run);
    tcase_add_test(t, the_others_go_on_with_the_same_bits);
    tcase_add_test(t, all_hear_of_a_lost_rank);
    suite_add_tcase(s, t);
    return s;
}
