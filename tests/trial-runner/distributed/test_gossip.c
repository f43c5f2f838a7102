/* Gossip in real processes: what is conserved, how fast ranks agree, who dies. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/rng.h"
#include "tests/support/check_main.h"
#include "tests/trial-runner/distributed/toy.h"

#define LOOKS 4
#define EVERY 6 /* steps between two looks */

struct plan {
    struct distributed_spec spec;
    struct toy_board *board;
    void (*before)(struct toy *t, int64_t step, uint32_t shard);
    bool scattered; /* ranks begin at different places, and learn nothing */
    float rate;     /* 0: the toy's */
};

static float start_of(int32_t rank, size_t i)
{
    struct rng g;
    rng_init(&g, 77, (uint64_t)rank << 32 | i);
    return (float)rng_normal(&g);
}

static int toy_rank(const struct ranks *r, int32_t rank, void *arg)
{
    const struct plan *p = arg;
    static struct toy t;
    toy_init(&t, rank, r->n, p->board);
    t.spec.distributed = p->spec;
    t.before = p->before;
    if (p->rate > 0)
        t.rate = p->rate;
    if (p->scattered) {
        t.rate = 0;
        for (size_t i = 0; i < TOY_N; i++)
            t.x[i] = start_of(rank, i);
    }
    return toy_train(&t, r);
}

static double disagreement(const struct toy_board *b, int32_t n)
{
    double worst = 0;
    for (int32_t r = 1; r < n; r++)
        for (size_t i = 0; i < TOY_N; i++)
            worst = fmax(worst, fabs((double)b->x[r][i] - (double)b->x[0][i]));
    return worst;
}

/* All ranks meet before each step, and rank 0 looks by how much they disagree. */
static void look(struct toy *t, int64_t step, uint32_t shard)
{
    struct toy_board *b = t->board;
    static uint32_t first_shard = UINT32_MAX;
    if (first_shard == UINT32_MAX)
        first_shard = shard;
    if (shard != first_shard || step >= TOY_STEPS)
        return;
    clock_sleep_ms(5); /* a step takes longer than a message, as in a training */
    memcpy(b->x[t->rank], t->x, sizeof t->x);
    toy_meet(t, 2 * (int32_t)step + 1);
    if (t->rank == 0 && step % EVERY == 0)
        b->seen[step / EVERY] = disagreement(b, t->n_ranks);
    toy_meet(t, 2 * (int32_t)step + 2);
}

/* Does the disagreement halve from look to look? */
static bool agrees_geometrically(const struct toy_board *b)
{
    bool agrees = b->seen[0] > 1;
    for (int i = 1; i < LOOKS; i++) {
        bool halves = b->seen[i] < b->seen[i - 1] / 2 || b->seen[i] < 1e-5;
        if (!halves)
            (void)fprintf(stderr, "%g, then %g\n", b->seen[i - 1], b->seen[i]);
        agrees = agrees && halves;
    }
    return agrees;
}

/* At the end every rank has the mean of all starts: nothing was lost, and nothing counts twice. */
static void check_mass(const struct toy_board *b, int32_t n)
{
    for (size_t i = 0; i < TOY_N; i++) {
        double mean = 0;
        for (int32_t r = 0; r < n; r++)
            mean += (double)start_of(r, i) / n;
        for (int32_t r = 0; r < n; r++)
            ck_assert_double_le(fabs((double)b->x[r][i] - mean), 1e-6);
    }
}

/* On a busy machine a message may take longer than a step: then the ranks agree later, and once
 * more. */
START_TEST(mass_is_kept_and_ranks_agree_geometrically)
{
    bool agrees = false;
    for (int tries = 0; !agrees && tries < 10; tries++) {
        struct plan p = {
            .spec = {.strategy = DISTRIBUTED_GOSSIP, .peers = 1 + _i, .gossip_staleness = 4},
            .board = toy_board_create(),
            .before = look,
            .scattered = true};
        int32_t n = 4;
        ck_assert(ranks_run(n, toy_rank, &p));
        check_mass(p.board, n);
        agrees = agrees_geometrically(p.board);
        toy_board_free(p.board);
    }
    ck_assert(agrees);
}
END_TEST

START_TEST(gossip_learns)
{
    for (int32_t n = 1; n <= 5; n += 2) {
        struct plan p = {
            .spec = {.strategy = DISTRIBUTED_GOSSIP, .peers = 1, .gossip_staleness = 4},
            .board = toy_board_create()};
        ck_assert(ranks_run(n, toy_rank, &p));
        for (int32_t r = 0; r < n; r++) {
            ck_assert(memcmp(p.board->x[r], p.board->x[0], sizeof p.board->x[0]) == 0);
            /* the start is at 5.9; the ranks' own optima are up to 1 from the common one */
            ck_assert(toy_distance(p.board->x[r]) < 1);
        }
        toy_board_free(p.board);
    }
}
END_TEST

/* All ranks begin each step together. */
static void keep_pace(struct toy *t, int64_t step, uint32_t shard)
{
    static int64_t last = -1;
    (void)shard;
    if (step != last)
        toy_meet(t, (int32_t)step + 1);
    last = step;
}

/* Half of the weight is on its way during a step, and makes none: the step counts for it too. Sixty
 * steps at the rate 0.02 leave 30 % of the way, and of half their length 55 %. */
START_TEST(steps_count_for_weight_that_was_given_away)
{
    struct plan p = {.spec = {.strategy = DISTRIBUTED_GOSSIP, .peers = 1, .gossip_staleness = 4},
                     .board = toy_board_create(),
                     .before = keep_pace,
                     .rate = 0.02F};
    ck_assert(ranks_run(4, toy_rank, &p));
    double begin = 0, left = 0;
    for (size_t i = 0; i < TOY_N; i++) {
        begin += fabs((double)toy_optimum(i));
        left += fabs((double)p.board->x[0][i] - (double)toy_optimum(i));
    }
    ck_assert_double_le(left / begin, 0.42);
    toy_board_free(p.board);
}
END_TEST

/* Rank 1 waits, once, until rank 0 leads it by as much as it may, and then for a while in vain. */
static void watch_lead(struct toy *t, int64_t step, uint32_t shard)
{
    struct toy_board *b = t->board;
    (void)shard;
    int32_t lead = (int32_t)step - b->done[1],
            bound = (int32_t)t->spec.distributed.gossip_staleness;
    if (t->rank == 0 && lead > b->widest)
        b->widest = lead;
    if (t->rank == 1 && step == 5)
        (void)(toy_wait(&b->widest, bound, PATIENCE_MS) && toy_wait(&b->widest, bound + 1, 300));
}

START_TEST(a_rank_waits_for_the_peer_that_it_gives_to)
{
    for (int64_t s = 1; s <= 5; s += 4) {
        struct plan p = {
            .spec = {.strategy = DISTRIBUTED_GOSSIP, .peers = 1, .gossip_staleness = s},
            .board = toy_board_create(),
            .before = watch_lead};
        ck_assert(ranks_run(2, toy_rank, &p));
        ck_assert_int_eq(p.board->widest, s);
        toy_board_free(p.board);
    }
}
END_TEST

static void die(struct toy *t, int64_t step, uint32_t shard)
{
    (void)shard;
    if (t->rank == 2 && step == 4) {
        t->board->flags = 1;
        t->board->dead[t->rank] = 1;
        _exit(9);
    }
    if (step >= 8)
        (void)toy_wait(&t->board->flags, 1, PATIENCE_MS);
}

/* No new world comes, and the others go on to the next common step. */
START_TEST(death_does_not_stop_the_others)
{
    struct plan p = {.spec = {.strategy = DISTRIBUTED_GOSSIP, .peers = 1, .gossip_staleness = 4},
                     .board = toy_board_create(),
                     .before = die};
    struct ranks r;
    ranks_init(&r, 4);
    ranks_start(&r, toy_rank, &p);
    for (int32_t i = 0; i < 4; i++)
        ck_assert_int_eq(ranks_wait(&r, i), i == 2 ? 9 : 0);
    for (int32_t i = 0; i < 4; i++) {
        ck_assert_int_eq(p.board->ends[i], i == 2 ? 0 : 2);
        ck_assert_int_eq(p.board->steps[i], i == 2 ? 4 : TOY_STEPS - 1);
    }
    ranks_done(&r);
    toy_board_free(p.board);
}
END_TEST

/* --- a loss in a common step --- */

#define DYING 3
#define TAG_SUM 3             /* of gossip_priv.h */
#define SUM_N (TOY_N + 1 + 2) /* the gradient, the loss, and what a rank wishes */

/* Ranks 1 and 2 complete the common step, rank 0 does not. */
static const struct cut {
    int64_t epoch, at, epoch_steps; /* where all begin */
    int64_t common, end;            /* positions */
} cuts[] = {
    {0, 250, 258, 255, 258}, /* another common step of the epoch follows: its last */
    {TOY_EPOCHS - 1, 14, TOY_STEPS, TOY_EPOCHS *TOY_STEPS - 1, TOY_EPOCHS *TOY_STEPS},
};

struct cut_run {
    const struct cut *cut;
    struct toy_board *board;
};

/* Of this rank's process. */
static const struct cut *cut;
static struct coll *world;
static struct toy toy;

static int64_t position(void)
{
    return toy.replica.ops->step(&toy);
}

static bool others_have_done_it(const struct toy_board *b)
{
    int32_t done = (int32_t)cut->common + 1;
    return toy_wait(&b->steps[1], done, PATIENCE_MS) && toy_wait(&b->steps[2], done, PATIENCE_MS);
}

/* Rank 3 takes part in the sum as coll_tree_sum() would, with a gradient of zeros, and dies when
 * its slice of the result has come to ranks 1 and 2, before it has sent it to rank 0. */
static void die_in_the_sum(struct toy *t, int64_t step, uint32_t shard)
{
    static float zeros[SUM_N], from[3][SUM_N];
    struct coll_id id = {.step = (uint64_t)step, .tag = TAG_SUM, .what = "gradients"};
    struct coll_message out[3], in[3], results[3];
    size_t own, first, end;
    (void)shard;
    if (t->rank != DYING || step != cut->common)
        return;
    coll_slice(SUM_N, 4, DYING, &first, &own);
    own -= first;
    for (int32_t r = 0; r < 3; r++) {
        coll_slice(SUM_N, 4, r, &first, &end);
        size_t theirs = (end - first) * sizeof(float);
        out[r] = (struct coll_message){.peer = r, .from = zeros, .bytes = theirs};
        in[r] = (struct coll_message){.peer = r, .to = from[r], .bytes = own * sizeof(float)};
        results[r] = (struct coll_message){.peer = r, .to = from[r], .bytes = theirs};
    }
    bool sent = coll_exchange(world, id, out, 3, in, 3, NULL) == AS_OK;
    for (int32_t r = 1; r < 3; r++)
        out[r].bytes = own * sizeof(float);
    sent = sent && coll_exchange(world, id, out + 1, 2, results, 3, NULL) == AS_OK;
    _exit(sent && others_have_done_it(t->board) ? 9 : 1);
}

static as_status run_toy(struct strategy *s, struct as_err *err)
{
    unsigned agreed;
    as_status st = s->ops->run(s->self, world, NULL, 0, &agreed, err);
    if (st == AS_OK && toy.at == toy.epoch_steps) {
        toy.epoch++;
        toy.at = 0;
    }
    return st;
}

/* Until the loss, or until this rank hears that its world is over. */
static int run_to_the_loss(struct strategy *s, int32_t rank)
{
    struct as_err err = {0};
    as_status st;
    while ((st = run_toy(s, &err)) == AS_OK) {
        toy.board->steps[rank] = (int32_t)position();
        if (position() > cut->common) {
            EXPECT(others_have_done_it(toy.board));
            coll_interrupt(world);
        }
    }
    EXPECT(st == AS_E_UNAVAILABLE);
    EXPECT(position() == cut->common + (rank > 0));
    return 0;
}

static as_status give_state(struct meeting *m, int32_t from, int32_t to, struct as_err *err)
{
    static struct toy came;
    struct coll_id id = {.tag = 70000, .what = "state"};
    int32_t rank = coll_rank(m->coll);
    if (rank == from)
        return coll_send(m->coll, id, to, &toy, sizeof toy, err);
    if (rank != to)
        return AS_OK;
    as_status st = coll_receive(m->coll, id, from, &came, sizeof came, err);
    if (st < 0)
        return st;
    memcpy(toy.x, came.x, sizeof toy.x);
    memcpy(toy.moment, came.moment, sizeof toy.moment);
    toy.epoch = came.epoch;
    toy.at = came.at;
    toy.steps_done = came.steps_done;
    toy.loss = came.loss;
    return AS_OK;
}

/* The next world, of those who are left. */
static int meet_again(const struct ranks *r, struct strategy *s, int32_t rank)
{
    struct as_err err = {0};
    struct world w = ranks_world(r, rank, 2);
    struct mesh_opts opts = {.join_ms = PATIENCE_MS, .silence_ms = PATIENCE_MS};
    int64_t steps[3] = {0};
    w.n = 3;
    coll_free(as_steal(world));
    EXPECT(coll_create(r->listeners[rank], &w, &opts, &world, NULL, &err) == AS_OK);
    steps[rank] = position();
    EXPECT(coll_allgather(world, (struct coll_id){.tag = 70001}, steps, 3, sizeof *steps, &err) ==
           AS_OK);
    struct meeting m = {.coll = world, .steps = steps, .transfer = give_state};
    EXPECT(s->ops->meet(s->self, &m, &err) == AS_OK);
    return 0;
}

/* To the end, where all leave together. */
static int go_on(struct strategy *s, int32_t rank)
{
    struct as_err err = {0};
    while (position() < cut->end)
        EXPECT(run_toy(s, &err) == AS_OK);
    struct coll_id id = {.step = (uint64_t)position(), .tag = 70002, .what = "end"};
    EXPECT(coll_barrier(world, id, &err) == AS_OK);
    memcpy(toy.board->x[rank], toy.x, sizeof toy.x);
    toy.board->ends[rank] = 1;
    toy.board->after++;
    ranks_await(&toy.board->after, 3);
    return 0;
}

static int cut_rank(const struct ranks *r, int32_t rank, void *arg)
{
    const struct cut_run *run = arg;
    struct as_err err = {0};
    struct strategy s = {0};
    cut = run->cut;
    toy_init(&toy, rank, r->n, run->board);
    toy.spec.distributed = (struct distributed_spec){
        .strategy = DISTRIBUTED_GOSSIP, .peers = 1, .gossip_staleness = 4};
    toy.before = die_in_the_sum;
    toy.epoch = cut->epoch;
    toy.at = cut->at;
    toy.epoch_steps = cut->epoch_steps;
    struct strategy_setup setup = {.spec = &toy.spec, .replica = &toy.replica, .seed = 12};
    EXPECT((world = ranks_open(r, rank, NULL)) != NULL);
    EXPECT(strategy_init(&s, &setup, &err) == AS_OK);
    int how = run_to_the_loss(&s, rank);
    if (how == 0)
        how = meet_again(r, &s, rank);
    if (how == 0)
        how = go_on(&s, rank);
    strategy_done(&s);
    coll_free(world);
    return how;
}

/* All go on from behind the step that some have done, although its epoch is not over: a rank that
 * did it again would wait for the others at one common step, and they for it at the next. */
START_TEST(ranks_agree_on_the_next_common_step)
{
    struct cut_run run = {.cut = &cuts[_i], .board = toy_board_create()};
    const struct toy_board *b = run.board;
    struct ranks r;
    ranks_init(&r, 4);
    ranks_start(&r, cut_rank, &run);
    for (int32_t i = 0; i < 4; i++)
        ck_assert_int_eq(ranks_wait(&r, i), i == DYING ? 9 : 0);
    for (int32_t i = 0; i < 3; i++) {
        ck_assert_int_eq(b->ends[i], 1);
        ck_assert(memcmp(b->x[i], b->x[0], sizeof b->x[0]) == 0);
    }
    ranks_done(&r);
    toy_board_free(run.board);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("gossip");
    TCase *t = tcase_create("gossip");
    tcase_add_loop_test(t, mass_is_kept_and_ranks_agree_geometrically, 0, 2);
    tcase_add_test(t, gossip_learns);
    tcase_add_test(t, steps_count_for_weight_that_was_given_away);
    tcase_add_test(t, a_rank_waits_for_the_peer_that_it_gives_to);
    tcase_add_test(t, death_does_not_stop_the_others);
    tcase_add_loop_test(t, ranks_agree_on_the_next_common_step, 0, AS_ARRAY_LEN(cuts));
    suite_add_tcase(s, t);
    return s;
}
