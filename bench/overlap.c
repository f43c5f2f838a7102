/* How much of the exchange of gradients is hidden behind the backward pass.
 *
 * Two processes train a model of equal layers with the strategy `allreduce`, over TCP of this host.
 * A layer's gradient takes as long as a device would need for it; the processor is free meanwhile
 * (the rank sleeps), as it is when a GPU computes. Reported: the part of a step that is not
 * computation, when the gradient leaves layer by layer (value) and when it leaves at the end
 * (`peer`). The floor is 0: everything hidden. Both take turns, step by step, in the same world. */
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

#define RANKS 2
#define LAYERS 16
#define STEPS 40

struct lab {
    size_t layer_numbers;
    int64_t layer_ns; /* to compute the gradient of a layer */
    struct listener *listeners[RANKS];
    struct endpoint peers[RANKS];
    double exposed[2]; /* seconds of a step; [1]: reported layer by layer. Rank 0 writes them */
};

struct model {
    const struct lab *lab;
    struct replica replica;
    int64_t step;
    bool reports;    /* each layer when it is known */
    float *gradient; /* [LAYERS * layer_numbers] */
};

static int64_t model_step(const void *self)
{
    return ((const struct model *)self)->step;
}

static uint32_t model_shards(const void *self, int64_t ahead)
{
    (void)self;
    (void)ahead;
    return RANKS;
}

static float model_share(const void *self, int64_t ahead, uint32_t shard)
{
    (void)self;
    (void)ahead;
    (void)shard;
    return 1.0F / RANKS;
}

static as_status gradient_taken(void *self, struct backend *lane, int64_t ahead, uint32_t shard,
                                const struct replica_sink *sink, struct as_err *err)
{
    const struct model *m = self;
    size_t width = m->lab->layer_numbers;
    int64_t until_ns = clock_mono_ns();
    (void)lane;
    (void)ahead;
    (void)err;
    for (size_t layer = LAYERS; layer-- > 0;) {
        until_ns += m->lab->layer_ns;
        struct timespec until = {.tv_sec = until_ns / NS_PER_S, .tv_nsec = until_ns % NS_PER_S};
        (void)clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
        m->gradient[layer * width] = (float)shard;
        if (m->reports)
            sink->take(sink->arg, layer * width, m->gradient + layer * width, width);
    }
    if (!m->reports)
        sink->take(sink->arg, 0, m->gradient, LAYERS * width);
    sink->take(sink->arg, LAYERS * width, &(float){0}, 1);
    return AS_OK;
}

static as_status update(void *self, struct backend *lane, const float *sum, struct as_err *err)
{
    (void)lane;
    (void)sum;
    (void)err;
    ((struct model *)self)->step++;
    return AS_OK;
}

static const struct replica_ops model_ops = {.step = model_step,
                                             .shards = model_shards,
                                             .share = model_share,
                                             .gradient_taken = gradient_taken,
                                             .update = update};

static bool take_steps(struct lab *lab, struct coll *c, struct strategy *s, struct model *m)
{
    double exposed[2][STEPS];
    for (int k = -2; k < 2 * STEPS; k++) { /* the first two warm up */
        unsigned agreed;
        m->reports = k % 2;
        int64_t start_ns = clock_mono_ns();
        if (s->ops->run(s->self, c, NULL, 0, &agreed, NULL) < 0)
            return false;
        int64_t took_ns = clock_mono_ns() - start_ns;
        if (k >= 0)
            exposed[k % 2][k / 2] = (double)(took_ns - LAYERS * lab->layer_ns) / NS_PER_S;
    }
    for (int i = 0; i < 2 && coll_rank(c) == 0; i++)
        lab->exposed[i] = bench_median(exposed[i], STEPS);
    return true;
}

static int run_rank(struct lab *lab, int32_t rank)
{
    struct world w = {.attempt = 1, .epoch = 1, .rank = rank, .n = RANKS, .peers = lab->peers};
    struct mesh_opts opts = {.tcp_only = true};
    struct replica_tensor whole = {.rows = LAYERS * lab->layer_numbers, .cols = 1};
    AS_AUTO(as_freep) float *gradient = as_calloc(whole.rows, sizeof *gradient);
    struct model m = {.lab = lab, .gradient = gradient};
    struct train_spec spec = {0};
    struct strategy_setup setup = {.spec = &spec, .replica = &m.replica};
    struct strategy strategy = {0};
    AS_AUTO(coll_freep) struct coll *c = NULL;
    m.replica = (struct replica){.ops = &model_ops,
                                 .self = &m,
                                 .n_params = whole.rows,
                                 .n_numbers = whole.rows + 1,
                                 .max_shards = RANKS,
                                 .tensors = &whole,
                                 .n_tensors = 1};
    bool well = gradient && coll_create(lab->listeners[rank], &w, &opts, &c, NULL, NULL) == AS_OK &&
                strategy_init(&strategy, &setup, NULL) == AS_OK &&
                take_steps(lab, c, &strategy, &m);
    strategy_done(&strategy);
    return well ? 0 : 1;
}

static bool run_ranks(struct lab *lab)
{
    pid_t pids[RANKS];
    bool well = true;
    for (int32_t r = 0; r < RANKS; r++) {
        if (listener_create("127.0.0.1", &lab->listeners[r], NULL) < 0)
            return false;
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
    }
    return well;
}

int main(int argc, char **argv)
{
    static const struct {
        size_t layer_numbers;
        int64_t layer_ms;
    } cases[] = {{256 << 10, 1}, {256 << 10, 4}, {1 << 20, 4}};
    if (!bench_start("overlap", "exchange of gradients beside the backward pass", argc, argv))
        return bench_exit();
    struct lab *lab =
        mmap(NULL, sizeof *lab, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (lab == MAP_FAILED)
        return EXIT_FAILURE;
    for (size_t i = 0; i < AS_ARRAY_LEN(cases); i++) {
        char name[64];
        lab->layer_numbers = cases[i].layer_numbers;
        lab->layer_ns = cases[i].layer_ms * NS_PER_MS;
        lab->exposed[0] = lab->exposed[1] = NAN;
        bool well = run_ranks(lab);
        (void)snprintf(name, sizeof name, "exposed, %d layers of %zu MiB, %d ms each", LAYERS,
                       lab->layer_numbers >> 18, (int)cases[i].layer_ms);
        bench_report(name, well ? lab->exposed[1] * 1e3 : NAN, "ms", 0, lab->exposed[0] * 1e3,
                     "at the end", NULL);
    }
    return bench_exit();
}
