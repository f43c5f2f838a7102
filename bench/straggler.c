/* Steps of a large trial whose ranks are not equally fast, over the links of one host. A shard
 * takes 20 ms, in which the processor is free (the rank sleeps), as it is when a device computes.
 * The figure is the time of all steps until the last rank has done the last one, divided by the
 * steps.
 *
 * One slow rank: of four with 16 shards one takes 100 ms for a shard; with backup copies of its
 * shards and without (`server: {mode: sync}`). The floor is what the four could do if they shared
 * the work by their speeds: 16 shards / (3 + 1/5) a step; without a slow rank, four shards one
 * after another. The peer is the same without copies.
 *
 * Jitter: of eight ranks with a shard each, every one takes 60 ms for one shard in four, drawn for
 * each step; with `server: {mode: ssp, staleness: 3}`. The floor is what a rank needs alone, 30 ms
 * on average. The peer is `sync`, which waits for the slowest of eight in each step. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/rng.h"
#include "bench/bench.h"
#include "trial-runner/collective/collective.h"
#include "trial-runner/distributed/strategy.h"

#define RANKS 4
#define SLOW 2 /* of them */
#define SHARDS 16
#define STEPS 15
#define JITTER_RANKS 8
#define JITTER_STEPS 60
#define JITTER_SLOWER 3
#define JITTER_ONE_IN 4
#define MOST_RANKS 8
#define WARM 2
#define ROUNDS 3
#define SHARD_NS (20 * NS_PER_MS)
#define SLOWER 5
#define NUMBERS ((size_t)16 << 10)

/* What is run. */
struct course {
    int32_t ranks;
    uint32_t shards;
    int steps;
    bool slowed, jitter;
    bool copies;       /* of the last shards */
    int64_t staleness; /* 0: sync */
};

struct lab {
    struct course course;
    struct listener *listeners[MOST_RANKS];
    struct endpoint peers[MOST_RANKS];
    double seconds[MOST_RANKS]; /* of all steps */
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
    (void)ahead;
    return ((const struct model *)self)->lab->course.shards;
}

static float model_share(const void *self, int64_t ahead, uint32_t shard)
{
    (void)ahead, (void)shard;
    return 1.0F / (float)((const struct model *)self)->lab->course.shards;
}

/* How many times as long as usual this shard takes here. The draws of a step are the same in each
 * run. */
static int slowness(const struct model *m, int64_t ahead, uint32_t shard)
{
    const struct course *x = &m->lab->course;
    if (x->slowed)
        return m->rank == SLOW ? SLOWER : 1;
    if (!x->jitter)
        return 1;
    struct rng draws;
    rng_init(&draws, shard, (uint64_t)(m->step + ahead));
    return rng_below(&draws, JITTER_ONE_IN) == 0 ? JITTER_SLOWER : 1;
}

static as_status gradient(void *self, struct backend *lane, int64_t ahead, uint32_t shard,
                          float *to, struct as_err *err)
{
    const struct model *m = self;
    int64_t until_ns = clock_mono_ns() + SHARD_NS * slowness(m, ahead, shard);
    struct timespec until = {.tv_sec = until_ns / NS_PER_S, .tv_nsec = until_ns % NS_PER_S};
    (void)lane, (void)err;
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
    const struct course *x = &lab->course;
    struct world w = {.attempt = 1, .epoch = 1, .rank = rank, .n = x->ranks, .peers = lab->peers};
    struct replica_tensor whole = {.rows = NUMBERS, .cols = 1};
    struct model m = {.lab = lab, .rank = rank};
    struct train_spec spec = {
        .distributed = {.strategy = DISTRIBUTED_SERVER,
                        .mode = x->staleness > 0 ? DISTRIBUTED_SSP : DISTRIBUTED_SYNC,
                        .staleness = x->staleness,
                        .backup_copies = x->copies}};
    struct strategy_setup setup = {.spec = &spec, .replica = &m.replica};
    struct strategy strategy = {0};
    AS_AUTO(coll_freep) struct coll *c = NULL;
    const struct coll_id begin = {.tag = 1}, end = {.tag = 2};
    m.replica = (struct replica){.ops = &model_ops,
                                 .self = &m,
                                 .n_params = NUMBERS,
                                 .n_numbers = NUMBERS + 1,
                                 .max_shards = x->shards,
                                 .tensors = &whole,
                                 .n_tensors = 1};
    (void)freopen("/dev/null", "w", stdout); /* what the strategy says at its end */
    bool well =
        coll_create(lab->listeners[rank], &w, &(struct mesh_opts){0}, &c, NULL, NULL) == AS_OK &&
        strategy_init(&strategy, &setup, NULL) == AS_OK && take_steps(&strategy, c, WARM) &&
        coll_barrier(c, begin, NULL) == AS_OK;
    int64_t start_ns = clock_mono_ns();
    well = well && take_steps(&strategy, c, x->steps);
    lab->seconds[rank] = (double)(clock_mono_ns() - start_ns) / NS_PER_S;
    well = well && coll_barrier(c, end, NULL) == AS_OK;
    strategy_done(&strategy);
    return well ? 0 : 1;
}

/* Milliseconds of a step; NaN: it failed. */
static double run_ranks(struct lab *lab, const struct course *x)
{
    pid_t pids[MOST_RANKS];
    bool well = true;
    double last = 0;
    lab->course = *x;
    for (int32_t r = 0; r < x->ranks; r++) {
        if (listener_create("127.0.0.1", &lab->listeners[r], NULL) < 0)
            return NAN;
        lab->peers[r] = lab->listeners[r]->endpoint;
    }
    (void)fflush(NULL);
    for (int32_t r = 0; r < x->ranks; r++)
        if ((pids[r] = fork()) == 0)
            _exit(run_rank(lab, r));
    for (int32_t r = 0; r < x->ranks; r++) {
        int status;
        well = waitpid(pids[r], &status, 0) == pids[r] && status == 0 && well;
        listener_free(lab->listeners[r]);
        last = lab->seconds[r] > last ? lab->seconds[r] : last;
    }
    return well ? last * 1e3 / x->steps : NAN;
}

/* Both courses in turns; reports the median of each. */
static void compare(struct lab *lab, const char *name, const struct course *x,
                    const struct course *peer, double floor_ms, const char *peer_name)
{
    double own[ROUNDS], other[ROUNDS];
    for (int i = 0; i < ROUNDS; i++) {
        other[i] = run_ranks(lab, peer);
        own[i] = run_ranks(lab, x);
    }
    bench_report(name, bench_median(own, ROUNDS), "ms", floor_ms, bench_median(other, ROUNDS),
                 peer_name, NULL);
}

static void compare_copies(struct lab *lab, bool slowed)
{
    struct course x = {
        .ranks = RANKS, .shards = SHARDS, .steps = STEPS, .slowed = slowed, .copies = true};
    struct course peer = x;
    double speed = RANKS - 1 + (slowed ? 1.0 / SLOWER : 1);
    peer.copies = false;
    compare(lab, slowed ? "step, one of four ranks five times slower" : "step, equal ranks", &x,
            &peer, SHARDS / speed * SHARD_NS / NS_PER_MS, "without backup copies");
}

static void compare_ssp(struct lab *lab)
{
    struct course x = {.ranks = JITTER_RANKS,
                       .shards = JITTER_RANKS,
                       .steps = JITTER_STEPS,
                       .jitter = true,
                       .staleness = 3};
    struct course peer = x;
    double slowness = 1 + (double)(JITTER_SLOWER - 1) / JITTER_ONE_IN;
    peer.staleness = 0;
    compare(lab, "step, ssp of eight ranks with random threefold jitter", &x, &peer,
            slowness * SHARD_NS / NS_PER_MS, "sync");
}

int main(int argc, char **argv)
{
    if (!bench_start("straggler", "steps of ranks that are not equally fast", argc, argv))
        return bench_exit();
    struct lab *lab =
        mmap(NULL, sizeof *lab, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (lab == MAP_FAILED)
        return EXIT_FAILURE;
    compare_copies(lab, true);
    compare_copies(lab, false);
    compare_ssp(lab);
    return bench_exit();
}
