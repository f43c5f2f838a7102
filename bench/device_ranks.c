/* Ranks of a large trial on GPUs: steps in a second, by the way that their gradients take.
 *
 *   one rank           on one card: what the others are compared with
 *   one card           ranks that share a card: through page-locked and shared memory
 *   through the host   one card for each rank, without NCCL: the same way
 *   device to device   one card for each rank, through NCCL
 *
 * Ranks are real processes of assay-train; tests/support/gang plays their runners and the server.
 * An epoch is one step of eight shards; a line of a report stands for LINE of them. Each case's
 * note is what rank 0 itself says of its way, so a fallback shows. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/opt.h"
#include "base/str.h"
#include "bench/bench.h"
#include "tests/support/gang.h"

#define LINE 8

static int64_t seconds = 20, cards = 1, width = 4096;
static size_t n_cards; /* of the case: rank i has card i % n_cards */
static bool no_nccl;

static struct rig rig;

static void environment(size_t place)
{
    char text[24];
    (void)setenv("ASSAY_BACKEND", "cuda", 1);
    (void)snprintf(text, sizeof text, "%zu", place % n_cards);
    (void)setenv("CUDA_VISIBLE_DEVICES", text, 1);
    if (no_nccl)
        (void)setenv("ASSAY_NCCL", "none", 1);
}

/* Lines of rank 0's report. */
static size_t lines_of(const char *tag)
{
    size_t len, n = 0;
    AS_AUTO(as_freep) char *text = rig_read(&rig, tag, "r0", "report", &len);
    for (const char *at = text; at && (at = strchr(at, '\n')) != NULL; at++)
        n++;
    return n;
}

/* What rank 0 says of the way of its vectors; "" if it says nothing. */
static void read_way(const char *tag, char *ret, size_t size)
{
    static const char what[] = "vectors travel ";
    size_t len;
    AS_AUTO(as_freep) char *out = rig_read(&rig, tag, "r0", "out", &len);
    const char *at = out ? strstr(out, what) : NULL;
    at = at ? at + strlen(what) : "";
    (void)snprintf(ret, size, "%.*s", (int)strcspn(at, "\n"), at);
}

/* Steps in a second, between the first and the last line that came; NaN if the ranks ended. */
static double steps_per_second(struct gang *g, const char *tag)
{
    int64_t first_ns = 0, last_ns = 0;
    size_t first = 0, last = 0;
    while (first_ns == 0 || last == first || clock_mono_ns() - first_ns < seconds * NS_PER_S) {
        if (!gang_turn(g, 5) || g->deaths > 0)
            return NAN;
        size_t now = lines_of(tag);
        if (now == last)
            continue;
        last = now;
        last_ns = clock_mono_ns();
        if (first_ns == 0) {
            first = now;
            first_ns = last_ns;
        }
    }
    return (double)(last - first) * LINE / ((double)(last_ns - first_ns) / (double)NS_PER_S);
}

static double measure(const char *name, size_t ranks, double alone)
{
    static struct gang g;
    static int runs;
    char train[400], tag[16], way[200];
    const struct gang_opts opts = {.no_checkpoints = true, .environment = environment};
    (void)snprintf(train, sizeof train,
                   "\"model\":{\"layers\":[%d,%d,%d]},\"report_every\":%d,\"epochs\":1000000,"
                   "\"batch_size\":1024,\"micro_batch\":128,\"optimizer\":{\"lr\":0.0001}",
                   (int)width, (int)width, (int)width, LINE);
    const struct trial t = {"a", train, "5"};
    (void)snprintf(tag, sizeof tag, "g%d", runs++);
    gang_start_with(&g, &rig, tag, &t, ranks, &opts);
    double speed = gang_gather(&g, ranks) ? steps_per_second(&g, tag) : NAN;
    read_way(tag, way, sizeof way);
    bench_report(name, speed, "steps/s", alone * (double)ranks, NAN, NULL, way);
    gang_done(&g);
    return speed;
}

int main(int argc, char **argv)
{
    static const struct opt more[] = {
        {"seconds", 0, OPT_I64, &seconds, "N", NULL, "of each case (20)"},
        {"cards", 0, OPT_I64, &cards, "N", NULL, "GPUs of this machine (1)"},
        {"width", 0, OPT_I64, &width, "N", NULL, "of the three hidden layers (4096)"},
        {0},
    };
    if (!bench_start_with("device_ranks", "ranks of a large trial on GPUs", more, argc, argv))
        return bench_exit();
    if (seconds < 1 || cards < 1 || cards > 8 || width < 1 || width > 16384) {
        (void)fprintf(stderr, "--seconds from 1; --cards 1 to 8; --width 1 to 16384\n");
        return EXIT_FAILURE;
    }
    rig_open(&rig);
    n_cards = 1;
    double alone = measure("one rank", 1, NAN);
    (void)measure("two ranks on one card", 2, NAN); /* one card computes no faster for two */
    n_cards = (size_t)cards;
    if (cards > 1) {
        (void)measure("a card for each rank, device to device", n_cards, alone);
        no_nccl = true;
        (void)measure("a card for each rank, through the host", n_cards, alone);
    } else {
        bench_skip("a card for each rank, device to device", "steps/s",
                   "this machine has one card");
        bench_skip("a card for each rank, through the host", "steps/s",
                   "this machine has one card");
    }
    rig_close(&rig);
    return bench_exit();
}
