/* Blocks leave a rank that is slower than the others, at the begin of an epoch, in real processes:
 * the bits of one rank, also if a rank dies while they move; no move without a reason.
 *
 * The network is a chain of products, so that a block is a few lines. How long a rank computes is
 * what it says (busy_ns): the speed of the machine has no part in it. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "tests/support/check_main.h"
#include "tests/trial-runner/collective/ranks.h"
#include "trial-runner/distributed/strategy.h"

enum { BLOCKS = 6, WIDTH = 5, ROWS = 3, SHARDS = 4, EPOCHS = 4, STEPS = 3, RANKS = 3, HOLDS = 12 };
enum { NUMBERS = BLOCKS * WIDTH, VALUES = ROWS * WIDTH };

/* Where a rank dies, if it does. */
enum death { LIVES, DIES_BEFORE_THE_MOVE, DIES_AFTER_THE_MOVE };

struct plan {
    int64_t pass_ns[RANKS]; /* of a block, forward or backward */
    int32_t who_dies;
    enum death death;
    struct board {
        float params[NUMBERS];      /* at the end */
        int32_t held[RANKS][HOLDS]; /* how many blocks each rank got, each time it got any */
        _Atomic int32_t holds[RANKS], ends; /* so often; ranks that are done */
    } * board;
};

struct toy {
    const struct plan *plan;
    struct replica replica;
    struct replica_blocks blocks;
    struct replica_block of[BLOCKS];
    struct train_spec spec;
    int32_t rank;
    int64_t epoch, at, busy_ns;
    bool moves; /* all ranks have met: what follows is a move */
    size_t first, end;
    float params[NUMBERS], gradient[NUMBERS];
    float x[SHARDS][BLOCKS + 1][VALUES]; /* of a set: what each block reads, and the output */
    struct slot_state whole;
};

/* ---- a replica of blocks ---- */

static int64_t toy_step(const void *self)
{
    const struct toy *t = self;
    return t->epoch * STEPS + t->at;
}

static uint32_t toy_shards(const void *self, int64_t ahead)
{
    return ((const struct toy *)self)->at + ahead < STEPS ? SHARDS : 0;
}

static float toy_share(const void *self, int64_t ahead, uint32_t shard)
{
    (void)self, (void)ahead, (void)shard;
    return 1.0F / SHARDS;
}

static uint32_t toy_rows(const void *self, int64_t ahead, uint32_t shard)
{
    (void)self, (void)ahead, (void)shard;
    return ROWS;
}

static as_status toy_update_slice(void *self, struct backend *lane, int64_t step,
                                  int32_t steps_done, const struct replica_slice *s,
                                  struct as_err *err)
{
    (void)self, (void)lane, (void)step, (void)steps_done, (void)err;
    for (size_t i = 0; i < s->n; i++) {
        s->moment1[i] = 0.5F * s->moment1[i] + s->grads[i];
        s->params[i] -= 0.05F * s->moment1[i];
    }
    return AS_OK;
}

static const struct replica_ops replica_ops = {.step = toy_step,
                                               .shards = toy_shards,
                                               .share = toy_share,
                                               .rows = toy_rows,
                                               .update_slice = toy_update_slice};

static void die_at(const struct toy *t, enum death where)
{
    if (t->moves && t->plan->death == where && t->rank == t->plan->who_dies)
        _exit(9);
}

static as_status toy_hold(void *self, size_t first, size_t end, size_t sets, struct as_err *err)
{
    struct toy *t = self;
    struct board *b = t->plan->board;
    (void)sets, (void)err;
    die_at(t, DIES_AFTER_THE_MOVE);
    t->first = first;
    t->end = end;
    if (b->holds[t->rank] < HOLDS)
        b->held[t->rank][b->holds[t->rank]++] = (int32_t)(end - first);
    return AS_OK;
}

static void toy_draw(const void *self, size_t block, float *params, float *statistics)
{
    (void)self, (void)statistics;
    for (size_t i = 0; i < WIDTH; i++)
        params[i] = 1 + 0.01F * (float)((block * 7 + i * 3) % 11);
}

static as_status toy_put(void *self, size_t block, const float *params, const float *statistics,
                         struct as_err *err)
{
    (void)statistics, (void)err;
    memcpy(((struct toy *)self)->params + block * WIDTH, params, WIDTH * sizeof *params);
    return AS_OK;
}

static float row_of(const struct toy *t, uint32_t shard, size_t i)
{
    return 0.3F + 0.1F * (float)((i * 5 + shard * 3 + (size_t)toy_step(t)) % 13);
}

static as_status toy_forward(void *self, struct backend *lane, uint32_t shard, size_t set,
                             const float *in, float *out, float *statistics, float *ret_loss,
                             struct as_err *err)
{
    struct toy *t = self;
    float(*x)[VALUES] = t->x[set];
    (void)lane, (void)statistics, (void)err;
    for (size_t i = 0; i < VALUES; i++)
        x[t->first][i] = in ? in[i] : row_of(t, shard, i);
    for (size_t b = t->first; b < t->end; b++)
        for (size_t i = 0; i < VALUES; i++)
            x[b + 1][i] = x[b][i] * t->params[b * WIDTH + i % WIDTH];
    *ret_loss = 0;
    for (size_t i = 0; i < VALUES && !out; i++)
        *ret_loss += (x[BLOCKS][i] - 1) * (x[BLOCKS][i] - 1);
    if (out)
        memcpy(out, x[t->end], sizeof x[0]);
    t->busy_ns += t->plan->pass_ns[t->rank] * (int64_t)(t->end - t->first);
    return AS_OK;
}

static as_status toy_backward(void *self, struct backend *lane, uint32_t shard, size_t set,
                              const float *d_out, float *d_in, const float **ret,
                              struct as_err *err)
{
    struct toy *t = self;
    float(*x)[VALUES] = t->x[set], d[VALUES];
    (void)lane, (void)shard, (void)err;
    memset(t->gradient, 0, sizeof t->gradient);
    for (size_t i = 0; i < VALUES; i++)
        d[i] = d_out ? d_out[i] : 2 * (x[BLOCKS][i] - 1) / ROWS;
    for (size_t b = t->end; b > t->first; b--)
        for (size_t i = 0; i < VALUES; i++) {
            t->gradient[(b - 1 - t->first) * WIDTH + i % WIDTH] += d[i] * x[b - 1][i];
            d[i] *= t->params[(b - 1) * WIDTH + i % WIDTH];
        }
    if (d_in)
        memcpy(d_in, d, sizeof d);
    *ret = t->gradient;
    t->busy_ns += t->plan->pass_ns[t->rank] * (int64_t)(t->end - t->first);
    return AS_OK;
}

static int64_t toy_busy_ns(const void *self)
{
    const struct toy *t = self;
    die_at(t, DIES_BEFORE_THE_MOVE);
    return t->busy_ns;
}

static as_status toy_numbers(const void *self, struct replica_numbers *ret, struct as_err *err)
{
    (void)err;
    *ret = (struct replica_numbers){(int32_t)toy_step(self), 1};
    return AS_OK;
}

static as_status toy_done(void *self, float loss, bool active, struct as_err *err)
{
    (void)loss, (void)active, (void)err;
    ((struct toy *)self)->at++;
    return AS_OK;
}

static as_status toy_whole(void *self, bool make, struct slot_state **ret, struct as_err *err)
{
    struct toy *t = self;
    if (make && !t->whole.params)
        t->whole = (struct slot_state){.params = as_calloc(NUMBERS, sizeof(float)),
                                       .moment1 = as_calloc(NUMBERS, sizeof(float))};
    *ret = t->whole.params ? &t->whole : NULL;
    return make && !(t->whole.params && t->whole.moment1) ? as_fail_nomem(err) : AS_OK;
}

static void toy_whole_drop(void *self)
{
    struct toy *t = self;
    free(t->whole.params);
    free(t->whole.moment1);
    t->whole = (struct slot_state){0};
}

static const struct replica_block_ops block_ops = {.hold = toy_hold,
                                                   .draw = toy_draw,
                                                   .put = toy_put,
                                                   .forward = toy_forward,
                                                   .backward = toy_backward,
                                                   .busy_ns = toy_busy_ns,
                                                   .numbers = toy_numbers,
                                                   .done = toy_done,
                                                   .whole = toy_whole,
                                                   .whole_drop = toy_whole_drop};

static void toy_init(struct toy *t, const struct plan *plan, int32_t rank)
{
    *t = (struct toy){.plan = plan, .rank = rank};
    for (size_t i = 0; i < BLOCKS; i++)
        t->of[i] = (struct replica_block){
            .first = i * WIDTH, .n = WIDTH, .in = WIDTH, .out = WIDTH, .flops = 1};
    t->blocks = (struct replica_blocks){
        .ops = &block_ops, .self = t, .n = BLOCKS, .of = t->of, .rows = ROWS};
    t->replica = (struct replica){.ops = &replica_ops,
                                  .self = t,
                                  .n_params = NUMBERS,
                                  .n_numbers = NUMBERS + 1,
                                  .max_shards = SHARDS,
                                  .blocks = &t->blocks};
    t->spec.distributed =
        (struct distributed_spec){.strategy = DISTRIBUTED_MODEL_PARALLEL, .state_copies = 2};
}

/* ---- ranks ---- */

static void end_epoch(struct toy *t)
{
    t->epoch += t->at == STEPS;
    t->at %= STEPS;
}

static as_status no_transfer(struct meeting *m, int32_t from, int32_t to, struct as_err *err)
{
    (void)m, (void)from, (void)to;
    return as_fail(err, AS_E_INTERNAL, "all ranks are at one step");
}

static as_status meet(struct toy *t, const struct strategy *s, struct coll *c, struct as_err *err)
{
    int64_t steps[RANKS];
    for (int32_t r = 0; r < coll_size(c); r++)
        steps[r] = toy_step(t);
    struct meeting m = {.coll = c, .steps = steps, .transfer = no_transfer};
    t->moves = false;
    as_status st = s->ops->meet(s->self, &m, err);
    end_epoch(t); /* it may have completed a step that the others had done */
    t->moves = true;
    return st;
}

/* The world of those who live, after a death. */
static struct coll *open_without(const struct ranks *r, const struct toy *t, struct as_err *err)
{
    struct endpoint peers[RANKS];
    struct world w = ranks_world(r, t->rank, 2);
    const struct mesh_opts patient = {.join_ms = PATIENCE_MS, .silence_ms = PATIENCE_MS};
    struct coll *c = NULL;
    w.n = 0;
    w.peers = peers;
    for (int32_t i = 0; i < r->n; i++) {
        if (i == t->plan->who_dies)
            continue;
        w.rank = i == t->rank ? w.n : w.rank;
        peers[w.n++] = r->peers[i];
    }
    return coll_create(r->listeners[t->rank], &w, &patient, &c, NULL, err) == AS_OK ? c : NULL;
}

/* Steps until the end, or until a rank is lost. */
static as_status do_steps(struct toy *t, const struct strategy *s, struct coll *c,
                          struct as_err *err)
{
    unsigned agreed = 0;
    as_status st = AS_OK;
    while (st == AS_OK && t->epoch < EPOCHS) {
        st = s->ops->run(s->self, c, NULL, 0, &agreed, err);
        end_epoch(t);
    }
    return st;
}

static int one_rank(const struct ranks *r, int32_t rank, void *arg)
{
    const struct plan *plan = arg;
    struct as_err err = {0};
    static struct toy t;
    AS_AUTO(coll_freep) struct coll *c = ranks_open(r, rank, NULL);
    AS_AUTO(strategy_done) struct strategy s = {0};
    toy_init(&t, plan, rank);
    const struct strategy_setup setup = {.spec = &t.spec, .replica = &t.replica};
    EXPECT(c && strategy_init(&s, &setup, &err) == AS_OK && meet(&t, &s, c, &err) == AS_OK);
    as_status st = do_steps(&t, &s, c, &err);
    if (plan->death != LIVES) {
        EXPECT(st == AS_E_UNAVAILABLE);
        coll_free(c);
        c = open_without(r, &t, &err);
        EXPECT(c && meet(&t, &s, c, &err) == AS_OK);
        st = do_steps(&t, &s, c, &err);
    }
    EXPECT(st == AS_OK && s.ops->gather(s.self, c, NULL, &err) == AS_OK);
    if (coll_rank(c) == 0)
        memcpy(plan->board->params, t.whole.params, sizeof plan->board->params);
    toy_whole_drop(&t);
    plan->board->ends++;
    ranks_await(&plan->board->ends, r->n - (plan->death != LIVES)); /* who leaves is a lost rank */
    return 0;
}

/* ---- tests ---- */

/* pass_ns: of three ranks. ret: the plan, with what came of it. */
static struct plan train(int32_t n, const int64_t pass_ns[RANKS], enum death death, int32_t who)
{
    struct plan p = {.death = death, .who_dies = who, .board = ranks_share(sizeof *p.board)};
    struct ranks r;
    memcpy(p.pass_ns, pass_ns, sizeof p.pass_ns);
    ranks_init(&r, n);
    ranks_start(&r, one_rank, &p);
    for (int32_t i = 0; i < n; i++)
        ck_assert_int_eq(ranks_wait(&r, i), death != LIVES && i == who ? 9 : 0);
    ranks_done(&r);
    return p;
}

static void same_bits(const struct plan *p)
{
    static const int64_t any[RANKS] = {1, 1, 1};
    struct plan serial = train(1, any, LIVES, 0);
    float start[WIDTH];
    toy_draw(NULL, 0, start, NULL);
    ck_assert(memcmp(serial.board->params, start, sizeof start) != 0);
    ck_assert(memcmp(serial.board->params, p->board->params, sizeof p->board->params) == 0);
}

#define SLOW_NS (5 * NS_PER_S)
static const int64_t slow[][RANKS] = {
    {SLOW_NS, NS_PER_S, NS_PER_S}, {NS_PER_S, SLOW_NS, NS_PER_S}, {NS_PER_S, NS_PER_S, SLOW_NS}};

/* Two blocks each; then one is on the slow rank, and what it took stays true: they move once. */
START_TEST(blocks_leave_a_slow_rank)
{
    struct plan p = train(RANKS, slow[_i], LIVES, 0);
    for (int32_t r = 0; r < RANKS; r++) {
        ck_assert_int_eq(p.board->holds[r], 2);
        ck_assert_int_eq(p.board->held[r][0], 2);
    }
    ck_assert_int_eq(p.board->held[_i][1], 1);
    ck_assert_int_eq(p.board->held[0][1] + p.board->held[1][1] + p.board->held[2][1], BLOCKS);
    same_bits(&p);
}
END_TEST

static const int64_t alike[][RANKS] = {
    {NS_PER_S, NS_PER_S, NS_PER_S},         /* equally fast */
    {NS_PER_S, NS_PER_S * 6 / 5, NS_PER_S}, /* about */
    {NS_PER_MS, 5 * NS_PER_MS, NS_PER_MS},  /* less than a second in all epochs: no measure */
};

START_TEST(blocks_stay_without_a_reason)
{
    struct plan p = train(RANKS, alike[_i], LIVES, 0);
    for (int32_t r = 0; r < RANKS; r++)
        ck_assert_int_eq(p.board->holds[r], 1);
    same_bits(&p);
}
END_TEST

/* The next rank has its blocks: those of before, or those that have just come. In the new world the
 * blocks lie by their FLOPs, and leave the slow rank again, if that lives. */
START_TEST(a_death_while_blocks_move_costs_nothing)
{
    enum death death = _i % 2 ? DIES_BEFORE_THE_MOVE : DIES_AFTER_THE_MOVE;
    int32_t who = _i / 2;
    struct plan p = train(RANKS, slow[1], death, who);
    same_bits(&p);
    for (int32_t r = 0; r < RANKS; r++) {
        int32_t n = p.board->holds[r], least = 2 + (who != 1);
        if (r == who)
            continue;
        /* the end of a process may take back what it had sent: then this rank has not moved */
        ck_assert(n == least || (death == DIES_AFTER_THE_MOVE && n == least + 1));
        ck_assert_int_eq(p.board->held[r][n - 1], who == 1 ? 3 : r == 1 ? 1 : 5);
    }
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("block moves");
    TCase *t = tcase_create("moves");
    tcase_add_loop_test(t, blocks_leave_a_slow_rank, 0, RANKS);
    tcase_add_loop_test(t, blocks_stay_without_a_reason, 0, 3);
    tcase_add_loop_test(t, a_death_while_blocks_move_costs_nothing, 0, 2 * RANKS);
    suite_add_tcase(s, t);
    return s;
}
