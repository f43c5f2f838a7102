/* A step of a large trial in which one rank computes five times slower than the others, with
 * backup copies of its shards and without (`server: {mode: sync}`).
 *
 * Four processes with 16 shards, over the links of one host. A shard takes 20 ms, in which the
 * processor is free (the rank sleeps), as it is when a device computes; on the slow rank 100 ms.
 * The figure is the time of all steps until the last rank has done the last one, divided by the
 * steps. The floor is what the four could do if they shared the work by their speeds: 16 shards /
 * (3 + 1/5) a step; without a slow rank, four shards one after another. The peer is the same
 * without copies. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "bench/bench.h"
#include "trial-runner/collective/collective.h"
#include "trial-runner/distributed/strategy.h"

#define RANKS 4
#define SLOW 2 /* of them */
#define SHARDS 16
#define STEPS 15
#define WARM 2
#define ROUNDS 3
#define SHARD_NS (20 * NS_PER_MS)
#define SLOWER 5
#define NUMBERS ((size_t)16 << 10)

struct lab {
    bool copies, slowed;
    struct listener *listeners[RANKS];
    struct endpoint peers[RANKS];
    double seconds[RANKS]; /* of all steps */
};

struct model {
    const struct lab *lab;
    struct replica replica;
    int32_t rank;
    int64_t step;
};

static int64_t model_step(const void *self)
{
    return ((const struct model *)self)->step;
}

static uint32_t model_shards(const void *self, int64_t ahead)
{
    (void)self, (void)ahead;
    return SHARDS;
}

static float model_share(const void *self, int64_t ahead, uint32_t shard)
{
    (void)self, (void)ahead, (void)shard;
    return 1.0F / SHARDS;
}

static as_status gradient(void *self, struct backend *lane, int64_t ahead, uint32_t shard,
                          float *to, struct as_err *err)
{
    const struct model *m = self;
    bool slow = m->lab->slowed && m->rank == SLOW;
    int64_t until_ns = clock_mono_ns() + SHARD_NS * (slow ? SLOWER : 1);
    struct timespec until = {.tv_sec = until_ns / NS_PER_S, .tv_nsec = until_ns % NS_PER_S};
    (void)lane, (void)ahead, (void)err;
    (void)clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
    for (size_t i = 0; i <= NUMBERS; i++)
        to[i] = (float)shard;
    return AS_OK;
}

static as_status update(void *self, struct backend *lane, const float *sum, struct as_err *err)
{
    (void)lane, (void)sum, (void)err;
    ((struct model *)self)->step++;
    return AS_OK;
}

static const struct replica_ops model_ops = {.step = model_step,
                                             .shards = model_shards,
                                             .share = model_share,
                                             .gradient = gradient,
                                             .update = update};

static bool take_steps(struct strategy *s, struct coll *c, int steps)
{
    unsigned agreed;
    for (int k = 0; k < steps; k++)
        if (s->ops->run(s->self, c, NULL, 0, &agreed, NULL) < 0)
            return false;
    return true;
}

static int run_rank(struct lab *lab, int32_t rank)
{
    struct world w = {.attempt = 1, .epoch = 1, .rank = rank, .n = RANKS, .peers = lab->peers};
    struct replica_tensor whole = {.rows = NUMBERS, .cols = 1};
    struct model m = {.lab = lab, .rank = rank};
    struct train_spec spec = {
        .distributed = {.strategy = DISTRIBUTED_SERVER, .backup_copies = lab->copies}};
    struct strategy_setup setup = {.spec = &spec, .replica = &m.replica};
    struct strategy strategy = {0};
    AS_AUTO(coll_freep) struct coll *c = NULL;
    const struct coll_id begin = {.tag = 1}, end = {.tag = 2};
    m.replica = (struct replica){.ops = &model_ops,
                                 .self = &m,
                                 .n_params = NUMBERS,
                                 .n_numbers = NUMBERS + 1,
                                 .max_shards = SHARDS,
                                 .tensors = &whole,
                                 .n_tensors = 1};
    (void)freopen("/dev/null", "w", stdout); /* what the strategy says at its end */
    bool well =
        coll_create(lab->listeners[rank], &w, &(struct mesh_opts){0}, &c, NULL, NULL) == AS_OK &&
        strategy_init(&strategy, &setup, NULL) == AS_OK && take_steps(&strategy, c, WARM) &&
        coll_barrier(c, begin, NULL) == AS_OK;
    int64_t start_ns = clock_mono_ns();
    well = well && take_steps(&strategy, c, STEPS);
    lab->seconds[rank] = (double)(clock_mono_ns() - start_ns) / NS_PER_S;
    well = well && coll_barrier(c, end, NULL) == AS_OK;
    strategy_done(&strategy);
    return well ? 0 : 1;
}

/* Milliseconds of a step; NaN: it failed. */
static double run_ranks(struct lab *lab, bool copies, bool slowed)
{
    pid_t pids[RANKS];
    bool well = true;
    double last = 0;
    lab->copies = copies;
    lab->slowed = slowed;
    for (int32_t r = 0; r < RANKS; r++) {
        if (listener_create("127.0.0.1", &lab->listeners[r], NULL) < 0)
            return NAN;
        lab->peers[r] = lab->listeners[r]->endpoint;
    }
    (void)fflush(NULL);
    for (int32_t r = 0; r < RANKS; r++)
        if ((pids[r] = fork()) == 0)
            _exit(run_rank(lab, r));
    for (int32_t r = 0; r < RANKS; r++) {
        int status;
        well = waitpid(pids[r], &status, 0) == pids[r] && status == 0 && well;
        listener_free(lab->listeners[r]);
        last = lab->seconds[r] > last ? lab->seconds[r] : last;
    }
    return well ? last * 1e3 / STEPS : NAN;
}

int main(int argc, char **argv)
{
    if (!bench_start("straggler", "steps with a slow rank, with backup copies", argc, argv))
        return bench_exit();
    struct lab *lab =
        mmap(NULL, sizeof *lab, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (lab == MAP_FAILED)
        return EXIT_FAILURE;
    for (int slowed = 1; slowed >= 0; slowed--) {
        double with[ROUNDS], without[ROUNDS];
        double speed = RANKS - 1 + (slowed ? 1.0 / SLOWER : 1);
        for (int i = 0; i < ROUNDS; i++) {
            without[i] = run_ranks(lab, false, slowed);
            with[i] = run_ranks(lab, true, slowed);
        }
        bench_report(slowed ? "step, one of four ranks five times slower" : "step, equal ranks",
                     bench_median(with, ROUNDS), "ms", SHARDS / speed * SHARD_NS / NS_PER_MS,
                     bench_median(without, ROUNDS), "without backup copies", NULL);
    }
    return bench_exit();
}
