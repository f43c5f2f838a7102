/* The parameter server without a common step, in real processes. */
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/check_main.h"
#include "tests/trial-runner/distributed/toy.h"

struct plan {
    struct distributed_spec spec;
    struct toy_board *board;
    void (*before)(struct toy *t, int64_t step, uint32_t shard);
    int32_t victim;
};

static int32_t victim; /* set in each process */

/* On a busy machine a gradient may be late by all K steps of an epoch. With a rate of 1/K the
 * distance e of a weight to its optimum never grows and keeps its sign: K steps take at most as
 * much as the e at the epoch's start, and at least as much as the e at its end. So each epoch
 * divides it by 2 or more, in whatever order the gradients come. */
#define CALM_RATE (1.0F / TOY_STEPS)
#define NEARER (1 << TOY_EPOCHS) /* by all epochs */

static bool is_nearer(const float *x)
{
    static const float start[TOY_N];
    return toy_distance(x) <= 1.001 * toy_distance(start) / NEARER; /* rounding */
}

static int toy_rank(const struct ranks *r, int32_t rank, void *arg)
{
    const struct plan *p = arg;
    static struct toy t;
    toy_init(&t, rank, r->n, p->board);
    t.spec.distributed = p->spec;
    t.before = p->before;
    t.rate = CALM_RATE;
    victim = p->victim;
    return toy_train(&t, r);
}

static struct toy_board *train(int32_t n, struct distributed_spec spec)
{
    struct plan p = {.spec = spec, .board = toy_board_create()};
    ck_assert(ranks_run(n, toy_rank, &p));
    for (int32_t r = 0; r < n; r++) {
        ck_assert_int_eq(p.board->ends[r], 1);
        ck_assert(memcmp(p.board->x[r], p.board->x[0], sizeof p.board->x[0]) == 0);
    }
    return p.board;
}

/* Whatever the groups, each batch is one message to each slice: those in a group share it. */
START_TEST(server_messages_are_one_for_each_group_and_step)
{
    static const struct {
        int32_t ranks;
        int64_t groups, slices;
    } cases[] = {{4, 2, 0}, {4, 1, 3}, {4, 4, 0}, {3, 0, 1}, {5, 2, 7}, {1, 0, 0}};
    struct distributed_spec plain = {.strategy = DISTRIBUTED_ALLREDUCE};
    struct toy_board *serial = train(1, plain);
    for (size_t i = 0; i < AS_ARRAY_LEN(cases); i++) {
        struct distributed_spec spec = {.strategy = DISTRIBUTED_SERVER,
                                        .mode =
                                            cases[i].groups ? DISTRIBUTED_SYNC : DISTRIBUTED_ASYNC,
                                        .groups = cases[i].groups,
                                        .server_shards = cases[i].slices};
        struct toy_board *b = train(cases[i].ranks, spec);
        int64_t slices = cases[i].slices ? cases[i].slices : cases[i].ranks;
        ck_assert_int_eq(b->pushes, TOY_EPOCHS * TOY_STEPS * slices);
        bool serial_bits = memcmp(b->x[0], serial->x[0], sizeof b->x[0]) == 0;
        if (cases[i].groups == 1 || cases[i].ranks == 1)
            ck_assert(serial_bits);
        ck_assert(is_nearer(b->x[0]));
        toy_board_free(b);
    }
    toy_board_free(serial);
}
END_TEST

/* Counts gradients of the warm start (after) and of later steps (flags) that other ranks than the
 * first compute. */
static void watch_others(struct toy *t, int64_t step, uint32_t shard)
{
    static int32_t n_later; /* batches of this process */
    bool is_later = step >= t->spec.distributed.warm_start;
    if (t->rank > 0)
        (void)(is_later ? t->board->flags++ : t->board->after++);
    else if (is_later && shard == 0 && n_later++ > 0) /* others get a batch, however late */
        (void)toy_wait(&t->board->flags, 1, PATIENCE_MS);
}

/* One worker begins, and the others join: in the middle of an epoch, or after the training, which
 * is then a serial one. */
START_TEST(one_worker_makes_the_warm_start)
{
    static const int64_t steps[] = {TOY_STEPS * TOY_EPOCHS, TOY_STEPS + 7, 0};
    struct distributed_spec plain = {.strategy = DISTRIBUTED_ALLREDUCE};
    struct toy_board *serial = train(1, plain);
    for (size_t i = 0; i < AS_ARRAY_LEN(steps); i++) {
        struct plan p = {.spec = {.strategy = DISTRIBUTED_SERVER,
                                  .mode = DISTRIBUTED_ASYNC,
                                  .warm_start = steps[i]},
                         .board = toy_board_create(),
                         .before = watch_others};
        ck_assert(ranks_run(3, toy_rank, &p));
        bool serial_bits = memcmp(p.board->x[1], serial->x[0], sizeof p.board->x[1]) == 0;
        ck_assert_int_eq(serial_bits, i == 0);
        ck_assert_int_eq(p.board->after, 0);
        ck_assert_int_eq(p.board->flags > 0, i > 0);
        ck_assert(is_nearer(p.board->x[0]));
        toy_board_free(p.board);
    }
    toy_board_free(serial);
}
END_TEST

/* The victim dies in its first epoch, when each of the others has computed a batch: without rank 0,
 * which has the list of batches, one that has had none waits for the next world. The others count
 * the batches that they compute afterwards. */
static void die(struct toy *t, int64_t step, uint32_t shard)
{
    struct toy_board *b = t->board;
    if (t->rank == victim && step >= 4) {
        for (int32_t r = 0; r < t->n_ranks; r++)
            if (r != victim)
                (void)toy_wait(&b->done[r], 1, PATIENCE_MS);
        b->flags = 1;
        b->dead[t->rank] = 1;
        _exit(9);
    }
    /* the victim takes the next batch, however late it comes; nobody waits with the first */
    if (step >= 8 && b->done[t->rank] > 0)
        (void)toy_wait(&b->flags, 1, PATIENCE_MS);
    if (shard == 0 && b->flags)
        b->after++;
}

/* No new world comes, and still the others do the rest of the epoch; only its end needs all. */
START_TEST(death_does_not_pause_the_others)
{
    struct plan p = {.spec = {.strategy = DISTRIBUTED_SERVER, .mode = DISTRIBUTED_ASYNC},
                     .board = toy_board_create(),
                     .before = die,
                     .victim = _i == 0 ? 3 : 0};
    struct ranks r;
    ranks_init(&r, 4);
    ranks_start(&r, toy_rank, &p);
    for (int32_t i = 0; i < 4; i++)
        ck_assert_int_eq(ranks_wait(&r, i), i == p.victim ? 9 : 0);
    for (int32_t i = 0; i < 4; i++)
        ck_assert_int_eq(p.board->ends[i], i == p.victim ? 0 : 2);
    ck_assert_int_ge(p.board->after, 6);
    ranks_done(&r);
    toy_board_free(p.board);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("asynchronous server");
    TCase *t = tcase_create("async");
    tcase_add_test(t, server_messages_are_one_for_each_group_and_step);
    tcase_add_test(t, one_worker_makes_the_warm_start);
    tcase_add_loop_test(t, death_does_not_pause_the_others, 0, 2);
    suite_add_tcase(s, t);
    return s;
}
