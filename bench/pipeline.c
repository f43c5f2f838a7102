/* What a step takes whose layers lie on two ranks (model_parallel), beside one process that has all
 * of them (floor) and two ranks that divide the rows (peer: `tree`).
 *
 * Ranks are real processes of assay-train on the digits; tests/support/gang plays their runners and
 * the server. The time of a step is what the slowest rank says: the mean of its steps, with the
 * waits for others in them, without evaluations. A figure is the median over rounds, in which the
 * three take turns, because the machine is shared.
 *
 * With --slowed one of the two ranks is stopped for four of five parts of the time (SIGSTOP), so it
 * is five times slower, and blocks may leave it (`auto`) or are tied to it by a list. Both must
 * end with the weights of one process. */
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/opt.h"
#include "bench/bench.h"
#include "tests/support/gang.h"

#define ROUNDS_MAX 99

static int64_t rounds = 5;
static bool slowed;
static struct rig rig;

/* Eight shards in a step, one step an epoch. */
#define TRAIN(layers, section)                                                                     \
    "\"model\":{\"layers\":[" layers "]},\"epochs\":60,\"report_every\":60,\"batch_size\":1432,"   \
    "\"micro_batch\":179,\"optimizer\":{\"lr\":0.001}" section
#define BLOCKS ",\"distributed\":{\"model_parallel\":\"auto\"}"
#define BLOCKS_ONCE ",\"distributed\":{\"model_parallel\":\"auto\",\"state_copies\":1}"

static const struct size {
    const char *name, *rows, *blocks, *once;
} sizes[] = {
    {"four layers of 256", TRAIN("256,256,256,256", ""), TRAIN("256,256,256,256", BLOCKS),
     TRAIN("256,256,256,256", BLOCKS_ONCE)},
    {"four layers of 1024", TRAIN("1024,1024,1024,1024", ""), TRAIN("1024,1024,1024,1024", BLOCKS),
     TRAIN("1024,1024,1024,1024", BLOCKS_ONCE)},
};

/* One rank runs for 2 ms of 10. */
static void run_slowed(struct gang *g)
{
    while (gang_alive(g) > 0 && !gang_is_over(g)) {
        gang_kill(g, 0, SIGSTOP);
        gang_pass(g, 8000);
        gang_kill(g, 0, SIGCONT);
        gang_pass(g, 2000);
    }
    gang_run(g);
}

/* Milliseconds of a step; NaN: a rank did not end well. *ret_tag: where its files are. */
static double step_ms_as(const char *train, size_t n, bool slow, const char **ret_tag)
{
    static struct gang g;
    static const struct gang_opts opts = {.no_checkpoints = true, .silence = "10m"};
    static char tags[3000][16];
    static int gangs;
    const struct trial t = {"a", train, "5"};
    char *tag = tags[gangs % 3000];
    double slowest = 0;
    (void)snprintf(tag, sizeof tags[0], "g%d", gangs++);
    gang_start_with(&g, &rig, tag, &t, n, &opts);
    if (slow)
        run_slowed(&g);
    else
        gang_run(&g);
    bool well = true;
    for (size_t i = 0; i < n; i++) {
        well = well && g.ended[i] == 0;
        slowest = fmax(slowest, (double)g.ranks[i].step_ns / 1e6);
    }
    gang_done(&g);
    *ret_tag = tag;
    return well ? slowest : NAN;
}

static double step_ms(const char *train, size_t n)
{
    const char *tag;
    return step_ms_as(train, n, false, &tag);
}

#define LASTING(section)                                                                           \
    "\"model\":{\"layers\":[256,256,256,256]},\"epochs\":300,\"report_every\":300,"                \
    "\"batch_size\":1432,\"micro_batch\":179,\"optimizer\":{\"lr\":0.001}" section
#define TIED                                                                                       \
    ",\"distributed\":{\"model_parallel\":[[\"layers.0\",\"layers.1\",\"layers.2\"],"              \
    "[\"layers.3\",\"layers.4\"]]}"

static void time_slowed(void)
{
    static const char *const trains[] = {LASTING(""), LASTING(BLOCKS), LASTING(TIED)};
    const struct trial t = {".", "", "5"};
    double took[3][ROUNDS_MAX];
    const char *tags[3];
    size_t n = (size_t)rounds;
    for (size_t k = 0; k < n; k++) {
        for (size_t i = 0; i < AS_ARRAY_LEN(trains); i++)
            took[i][k] = step_ms_as(trains[i], i ? 2 : 1, i > 0, &tags[i]);
        for (size_t i = 1; i < AS_ARRAY_LEN(trains); i++)
            if (rig_distance(&rig, tags[0], tags[i], &t) != 0)
                took[i][k] = NAN;
    }
    bench_report("two ranks, one five times slower", bench_median(took[1], n), "ms",
                 bench_median(took[0], n), bench_median(took[2], n), "blocks stay",
                 "floor: one process alone, which is not slowed");
}

static void time_size(const struct size *s)
{
    double alone[ROUNDS_MAX], rows[ROUNDS_MAX], blocks[ROUNDS_MAX], once[ROUNDS_MAX];
    size_t n = (size_t)rounds;
    char name[80];
    for (size_t k = 0; k < n; k++) {
        alone[k] = step_ms(s->rows, 1);
        rows[k] = step_ms(s->rows, 2);
        blocks[k] = step_ms(s->blocks, 2);
        once[k] = step_ms(s->once, 2);
    }
    double floor = bench_median(alone, n), peer = bench_median(rows, n);
    (void)snprintf(name, sizeof name, "%s: layers on two ranks", s->name);
    bench_report(name, bench_median(blocks, n), "ms", floor, peer, "tree, two ranks",
                 "floor: one process alone");
    (void)snprintf(name, sizeof name, "%s: the same, state_copies 1", s->name);
    bench_report(name, bench_median(once, n), "ms", floor, peer, "tree, two ranks",
                 "floor: one process alone");
}

int main(int argc, char **argv)
{
    static const struct opt more[] = {
        {"rounds", 0, OPT_I64, &rounds, "N", NULL, "rounds (5, at most 99)"},
        {"slowed", 0, OPT_FLAG, &slowed, NULL, NULL, "one rank is five times slower"},
        {0},
    };
    if (!bench_start_with("pipeline", "a step whose layers lie on two ranks", more, argc, argv))
        return bench_exit();
    if (rounds < 1 || rounds > ROUNDS_MAX) {
        (void)fprintf(stderr, "--rounds: 1 to %d\n", ROUNDS_MAX);
        return EXIT_FAILURE;
    }
    rig_open(&rig);
    if (slowed)
        time_slowed();
    for (size_t i = 0; i < AS_ARRAY_LEN(sizes) && !slowed; i++)
        time_size(&sizes[i]);
    rig_close(&rig);
    return bench_exit();
}
