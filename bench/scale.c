/* What the model of bench/scale/scale.py needs of this machine: latency, bandwidth, the speed of
 * adding, the cost of a meeting; and the collectives themselves, to compare the model with.
 *
 *     ./dev bench scale --json > bench/scale/machine.jsonl
 *
 * Every figure is the median over some rounds, each a median over repeats. The model is about what
 * the algorithms need, not about who else computes here: so the processors must be free, or the
 * ranks have real-time priority. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/opt.h"
#include "bench/bench.h"
#include "trial-runner/collective/collective.h"

#define RANKS_MOST 16
#define REPEATS_MAX 200
#define ROUNDS_MAX 99
#define ADDITIONS 21 /* that are timed */

static const size_t sizes[] = {4 << 10, 64 << 10, 1 << 20, 16 << 20};
static const int32_t worlds[] = {2, 3, 4, 8};
static int64_t rounds = 5;

/* What the processes of a measurement share. */
struct lab {
    int32_t n;
    bool tcp;
    size_t bytes;
    struct listener *listeners[RANKS_MOST];
    struct endpoint peers[RANKS_MOST];
    double seconds; /* rank 0 writes it */
};

typedef as_status operation_fn(struct coll *c, const struct lab *lab, float *in, float *out);

static const struct operation {
    const char *name;
    operation_fn *run;
} * measured; /* inherited by the processes */

/* --- operations --- */

static struct coll_id id = {.step = 1, .tag = 1};

static as_status ping_pong(struct coll *c, const struct lab *lab, float *in, float *out)
{
    bool first = coll_rank(c) == 0;
    as_status st = first ? coll_send(c, id, 1, in, lab->bytes, NULL)
                         : coll_receive(c, id, 0, out, lab->bytes, NULL);
    if (st < 0)
        return st;
    return first ? coll_receive(c, id, 1, out, lab->bytes, NULL)
                 : coll_send(c, id, 0, in, lab->bytes, NULL);
}

static as_status barrier(struct coll *c, const struct lab *lab, float *in, float *out)
{
    (void)lab, (void)in, (void)out;
    return coll_barrier(c, id, NULL);
}

static as_status ring(struct coll *c, const struct lab *lab, float *in, float *out)
{
    return coll_allreduce(c, id, COLL_RING, &reduce_f32_sum, in, out, lab->bytes / sizeof(float),
                          NULL);
}

static as_status halving(struct coll *c, const struct lab *lab, float *in, float *out)
{
    return coll_allreduce(c, id, COLL_HALVING, &reduce_f32_sum, in, out, lab->bytes / sizeof(float),
                          NULL);
}

/* One shard on each rank. */
static as_status tree(struct coll *c, const struct lab *lab, float *in, float *out)
{
    struct shard_run runs[RANKS_MOST];
    const void *own[1] = {in};
    coll_spread((uint32_t)lab->n, lab->n, runs);
    return coll_tree_sum(c, id, &reduce_f32_sum, runs, (uint32_t)lab->n, own, out,
                         lab->bytes / sizeof(float), NULL);
}

static const struct operation op_ping = {"ping-pong", ping_pong}, op_barrier = {"barrier", barrier};
static const struct operation ops[] = {{"ring", ring}, {"halving", halving}, {"tree", tree}};

/* --- ranks --- */

static int repeats_of(const struct lab *lab)
{
    double n = 4e7 / (double)(lab->bytes * (size_t)lab->n);
    return n > REPEATS_MAX ? REPEATS_MAX : n < 3 ? 3 : (int)n;
}

static int time_operation(struct lab *lab, struct coll *c)
{
    int repeats = repeats_of(lab);
    double own[REPEATS_MAX], all[REPEATS_MAX];
    AS_AUTO(as_freep) float *in = as_calloc(1, lab->bytes);
    AS_AUTO(as_freep) float *out = as_calloc(1, lab->bytes);
    as_status st = in && out ? AS_OK : AS_E_NOMEM;
    for (size_t i = 0; st == AS_OK && i < lab->bytes / sizeof *in; i++)
        in[i] = (float)i, out[i] = 0;
    for (int k = -2; st == AS_OK && k < repeats; k++) { /* the first two warm up */
        st = coll_barrier(c, id, NULL);
        int64_t start_ns = clock_mono_ns();
        if (st == AS_OK)
            st = measured->run(c, lab, in, out);
        if (k >= 0)
            own[k] = (double)(clock_mono_ns() - start_ns) / (double)NS_PER_S;
    }
    if (st == AS_OK) /* the slowest rank's time counts */
        st = coll_allreduce(c, id, COLL_RING, &reduce_f64_max, own, all, (size_t)repeats, NULL);
    if (st == AS_OK && coll_rank(c) == 0)
        lab->seconds = bench_median(all, (size_t)repeats);
    return st == AS_OK ? 0 : 1;
}

static int rank_main(struct lab *lab, int32_t rank)
{
    struct world w = {.attempt = 1, .epoch = 1, .rank = rank, .n = lab->n, .peers = lab->peers};
    struct mesh_opts opts = {.tcp_only = lab->tcp};
    AS_AUTO(coll_freep) struct coll *c = NULL;
    int64_t start_ns = clock_mono_ns();
    if (coll_create(lab->listeners[rank], &w, &opts, &c, NULL, NULL) < 0)
        return 1;
    if (measured)
        return time_operation(lab, c);
    double met = (double)(clock_mono_ns() - start_ns) / (double)NS_PER_S, slowest = 0;
    if (coll_allreduce(c, id, COLL_RING, &reduce_f64_max, &met, &slowest, 1, NULL) < 0)
        return 1;
    if (rank == 0)
        lab->seconds = slowest;
    return 0;
}

/* Seconds of `measured` (NULL: of the meeting) in a world of n; NaN if a rank failed. */
static double once(struct lab *lab)
{
    pid_t pids[RANKS_MOST];
    bool well = true;
    (void)fflush(NULL);
    for (int32_t r = 0; r < lab->n; r++) {
        if (listener_create("127.0.0.1", &lab->listeners[r], NULL) < 0)
            return NAN;
        lab->peers[r] = lab->listeners[r]->endpoint;
    }
    for (int32_t r = 0; r < lab->n; r++)
        if ((pids[r] = fork()) == 0)
            _exit(rank_main(lab, r));
    for (int32_t r = 0; r < lab->n; r++) {
        int status;
        well = waitpid(pids[r], &status, 0) == pids[r] && status == 0 && well;
        listener_free(lab->listeners[r]);
    }
    return well ? lab->seconds : NAN;
}

static double middle(struct lab *lab, int32_t n, bool tcp, const struct operation *op, size_t bytes)
{
    double v[ROUNDS_MAX];
    lab->n = n;
    lab->tcp = tcp;
    lab->bytes = bytes;
    measured = op;
    for (int64_t k = 0; k < rounds; k++)
        if (isnan(v[k] = once(lab)))
            return NAN;
    return bench_median(v, (size_t)rounds);
}

/* --- this machine's constants --- */

static double add_seconds(size_t n)
{
    double v[ADDITIONS];
    AS_AUTO(as_freep) float *a = as_calloc(n, sizeof *a);
    AS_AUTO(as_freep) float *b = as_calloc(n, sizeof *b);
    if (!a || !b)
        return NAN;
    for (int k = 0; k < ADDITIONS; k++) {
        int64_t start_ns = clock_mono_ns();
        reduce_f32_sum.combine(a, a, b, n);
        v[k] = (double)(clock_mono_ns() - start_ns) / (double)NS_PER_S;
    }
    return bench_median(v, ADDITIONS);
}

static void report_constants(struct lab *lab, bool tcp)
{
    const char *name = tcp ? "tcp" : "shm";
    char text[64];
    double small = middle(lab, 2, tcp, &op_ping, 4) / 2;
    double large = middle(lab, 2, tcp, &op_ping, 16 << 20) / 2;
    (void)snprintf(text, sizeof text, "latency %s", name);
    bench_report(text, small * 1e6, "us", NAN, NAN, NULL, NULL);
    (void)snprintf(text, sizeof text, "bandwidth %s", name);
    bench_report(text, (16 << 20) / (large - small) / 1e9, "GB/s", NAN, NAN, NULL, NULL);
    for (int32_t n = 4; n <= 8; n *= 2) { /* more ranks than processors: each message is a switch */
        (void)snprintf(text, sizeof text, "barrier %s P=%d", name, (int)n);
        bench_report(text, middle(lab, n, tcp, &op_barrier, 4) * 1e6, "us", NAN, NAN, NULL, NULL);
    }
    for (int32_t n = 2; n <= RANKS_MOST; n *= 2) {
        (void)snprintf(text, sizeof text, "meeting %s P=%d", name, (int)n);
        bench_report(text, middle(lab, n, tcp, NULL, 4) * 1e6, "us", NAN, NAN, NULL, NULL);
    }
}

static void report_operations(struct lab *lab, bool tcp)
{
    char text[64];
    for (size_t w = 0; w < AS_ARRAY_LEN(worlds); w++)
        for (size_t s = 0; s < AS_ARRAY_LEN(sizes); s++)
            for (size_t o = 0; o < AS_ARRAY_LEN(ops); o++) {
                (void)snprintf(text, sizeof text, "%s %s P=%d %zu", ops[o].name,
                               tcp ? "tcp" : "shm", (int)worlds[w], sizes[s]);
                bench_report(text, middle(lab, worlds[w], tcp, &ops[o], sizes[s]) * 1e6, "us", NAN,
                             NAN, NULL, NULL);
            }
}

int main(int argc, char **argv)
{
    static const struct opt more[] = {
        {"rounds", 0, OPT_I64, &rounds, "N", NULL, "rounds of each case; their median counts (5)"},
        {0},
    };
    if (!bench_start_with("scale", "what the model of large worlds needs", more, argc, argv))
        return bench_exit();
    struct lab *lab =
        mmap(NULL, sizeof *lab, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (lab == MAP_FAILED || rounds < 1 || rounds > ROUNDS_MAX)
        return EXIT_FAILURE;
    bench_report("processors", (double)sysconf(_SC_NPROCESSORS_ONLN), "", NAN, NAN, NULL, NULL);
    bench_report("add", (1 << 20) / add_seconds((1 << 20) / sizeof(float)) / 1e9, "GB/s", NAN, NAN,
                 NULL, NULL);
    for (int tcp = 0; tcp < 2; tcp++)
        report_constants(lab, tcp == 1);
    for (int tcp = 0; tcp < 2; tcp++)
        report_operations(lab, tcp == 1);
    return bench_exit();
}
