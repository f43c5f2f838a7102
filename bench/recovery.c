/* What deaths cost a large trial, and what being one costs when nobody dies.
 *
 * Ranks are real processes of assay-train; tests/support/gang plays their runners and the server, so
 * the figures have no network to a server in them. A step is seen when its line stands in a report:
 * an epoch of these trials is one step, with an evaluation. Each figure is a median over rounds; what
 * is compared runs in turn, because the machine is shared. */
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/clock.h"
#include "base/opt.h"
#include "base/rng.h"
#include "bench/bench.h"
#include "tests/support/gang_check.h"

#define ROUNDS_MAX 100
#define SECOND 1e9

static int64_t rounds = 5, seconds = 20, every = 5;
static const char *only;
static bool also_silent;

static struct rig rig;
static struct gang g;
static int gangs; /* each has a folder of its own */

/* An epoch is one step of eight shards. */
#define ONE_STEP "\"epochs\":100000,\"batch_size\":1432,\"micro_batch\":179,"
#define STEPS_OF_LINE 4 /* where evaluations are to cost little */
static const struct trial quick = {
    "a", "\"model\":{\"layers\":[64,64]}," ONE_STEP "\"optimizer\":{\"lr\":0.003}", "5"};
static const struct trial computing = {
    "b",
    "\"model\":{\"layers\":[512,512]},\"report_every\":4," ONE_STEP "\"optimizer\":{\"lr\":0.001}",
    "5"};

static void start(const struct trial *t, size_t n, const struct gang_opts *opts)
{
    static char tags[1000][16];
    char *tag = tags[gangs % 1000];
    (void)snprintf(tag, sizeof tags[0], "g%d", gangs++);
    gang_start_with(&g, &rig, tag, t, n, opts);
}

/* The step that the rank has reported last; 0: none. */
static int64_t last_step(size_t place)
{
    char folder[24];
    size_t len;
    int64_t step = 0;
    (void)snprintf(folder, sizeof folder, "r%zu", place);
    char *text = rig_read(&rig, g.tag, folder, "report", &len);
    for (const char *line = text; line && strchr(line, '\n'); line = strchr(line, '\n') + 1) {
        const char *number = strstr(line, "\"step\": ");
        if (number)
            step = strtoll(number + strlen("\"step\": "), NULL, 10);
    }
    free(text);
    return step;
}

static off_t bytes_of(size_t place)
{
    char path[256];
    struct stat is;
    (void)snprintf(path, sizeof path, "%s/%s/r%zu/report", rig.dir, g.tag, place);
    return stat(path, &is) == 0 ? is.st_size : 0;
}

static void wait_for_report(size_t place)
{
    off_t before = bytes_of(place);
    while (bytes_of(place) == before && gang_turn(&g, 1))
        ;
}

static size_t member_at(int64_t rank)
{
    size_t place = gang_place(&g, rank);
    if (place == GANG_MAX) {
        (void)fprintf(stderr, "bench/recovery: no rank %d\n", (int)rank);
        exit(EXIT_FAILURE);
    }
    return place;
}

static bool wants(const char *name)
{
    return !only || strstr(name, only);
}

static double ms_since(int64_t then_ns)
{
    return (double)(clock_mono_ns() - then_ns) / 1e6;
}

/* --- how soon a loss is noticed --- */

static double notice(const struct trial *t, int signal)
{
    static const struct gang_opts opts = {.no_checkpoints = true, .unwatched = true, .hold = true};
    start(t, 4, &opts);
    if (!gang_gather(&g, 4))
        return NAN;
    wait_for_report(member_at(0));
    gang_pass(&g, 20000);
    g.missed_ns = 0;
    int64_t start_ns = clock_mono_ns();
    gang_kill(&g, member_at(gangs % 4), signal);
    while (g.missed_ns == 0 && gang_turn(&g, 1))
        ;
    double ms = (double)(g.missed_ns - start_ns) / 1e6;
    gang_done(&g);
    return ms;
}

static void time_notice(void)
{
    double quick_ms[ROUNDS_MAX], computing_ms[ROUNDS_MAX];
    for (int64_t k = 0; k < rounds; k++) {
        quick_ms[k] = notice(&quick, SIGKILL);
        computing_ms[k] = notice(&computing, SIGKILL);
    }
    bench_report("a killed rank is noticed, short steps", bench_median(quick_ms, (size_t)rounds),
                 "ms", NAN, 50, "bar", NULL);
    bench_report("a killed rank is noticed, long steps", bench_median(computing_ms, (size_t)rounds),
                 "ms", NAN, 50, "bar", NULL);
    if (also_silent)
        bench_report("a stopped rank is noticed", notice(&quick, SIGSTOP), "ms", 5000, 6000, "bar",
                     "the silence that is allowed is 5 s");
}

/* --- from a death to the next step --- */

static void time_next_step(void)
{
    static const struct gang_opts opts = {.no_checkpoints = true};
    double step[ROUNDS_MAX], next[ROUNDS_MAX];
    start(&quick, 4, &opts);
    for (int64_t k = 0; k < rounds; k++) {
        if (!gang_gather(&g, 4))
            return;
        size_t first = member_at(0), second = member_at(1);
        wait_for_report(first);
        int64_t start_ns = clock_mono_ns();
        wait_for_report(first);
        step[k] = ms_since(start_ns);
        gang_pass(&g, 3000); /* anywhere in a step */
        size_t watched = k % 2 ? first : second;
        start_ns = clock_mono_ns();
        gang_kill(&g, k % 2 ? second : first, SIGKILL);
        wait_for_report(watched);
        if (g.epoch == g.ranks[watched].joined) /* the line of a step before the death: once more */
            wait_for_report(watched);
        next[k] = ms_since(start_ns);
        gang_add(&g);
    }
    gang_done(&g);
    double clean = bench_median(step, (size_t)rounds);
    bench_report("kill to next completed step", bench_median(next, (size_t)rounds), "ms", clean,
                 500, "bar", "floor: a step with its evaluation, nobody dies");
    bench_report("kill to next completed step, the worst", next[rounds - 1], "ms", clean, 500,
                 "bar", NULL);
}

/* --- deaths again and again --- */

/* Steps in a second of four ranks, of which one dies every `kill_every` seconds (0: never). */
static double rate(int64_t kill_every)
{
    static const struct gang_opts opts = {.no_checkpoints = true};
    struct rng r;
    rng_init(&r, (uint64_t)gangs, 0);
    start(&computing, 4, &opts);
    if (!gang_gather(&g, 4))
        return NAN;
    wait_for_report(member_at(0));
    int64_t begin = last_step(member_at(0)), end = begin;
    int64_t begin_ns = clock_mono_ns(), next_ns = begin_ns + kill_every * NS_PER_S / 2;
    while (clock_mono_ns() - begin_ns < seconds * NS_PER_S) {
        (void)gang_turn(&g, 10);
        if (kill_every == 0 || clock_mono_ns() < next_ns)
            continue;
        next_ns += kill_every * NS_PER_S;
        gang_kill(&g, member_at((int64_t)rng_below(&r, 3)), SIGKILL);
        gang_add(&g);
    }
    double took = (double)(clock_mono_ns() - begin_ns) / SECOND;
    for (size_t i = 0; i < g.n; i++)
        end = last_step(i) > end ? last_step(i) : end;
    gang_done(&g);
    return (double)(end - begin) / took;
}

static void time_deaths(void)
{
    double clean[ROUNDS_MAX], dying[ROUNDS_MAX], ratio[ROUNDS_MAX];
    char name[100];
    for (int64_t k = 0; k < rounds; k++) {
        clean[k] = rate(0);
        dying[k] = rate(every);
        ratio[k] = clean[k] / dying[k];
    }
    (void)snprintf(name, sizeof name, "one death every %d s, %d x %d s: time of a step", (int)every,
                   (int)rounds, (int)seconds);
    double own = 1000 / bench_median(dying, (size_t)rounds);
    bench_report(name, own, "ms", 1000 / bench_median(clean, (size_t)rounds), NAN, NULL,
                 "floor: nobody dies");
    bench_report("the same, as a ratio", bench_median(ratio, (size_t)rounds), "x", 1, 1.5, "bar",
                 "median of the rounds' ratios");
}

/* --- when nobody dies --- */

/* Processor time of a rank's process so far, of all its threads. */
static double processor_seconds(size_t place)
{
    clockid_t clock;
    struct timespec t;
    if (clock_getcpuclockid(g.ranks[place].pid, &clock) != 0 || clock_gettime(clock, &t) != 0)
        return NAN;
    return (double)t.tv_sec + (double)t.tv_nsec / SECOND;
}

/* Steps in a second of n processes, from the first line to the last one in `seconds` / 5; of plain
 * trainers, the sum. ret_work: processor time of a step, of all ranks; of plain trainers, of one. */
static double speed(const struct trial *t, size_t n, bool alone, double *ret_work)
{
    double first_work[2] = {0}, last_work[2] = {0};
    struct gang_opts opts = {.no_checkpoints = true, .alone = alone};
    int64_t first_ns[2] = {0}, last_ns[2] = {0};
    off_t seen[2] = {0};
    size_t lines[2] = {0};
    start(t, n, &opts);
    if (!alone && !gang_gather(&g, n))
        return NAN;
    int64_t until_ns = clock_mono_ns() + seconds * NS_PER_S / 5;
    while (clock_mono_ns() < until_ns || lines[0] == 0 || lines[n - 1] == 0) {
        (void)gang_turn(&g, 5);
        for (size_t i = 0; i < n; i++) {
            if (bytes_of(i) == seen[i])
                continue;
            lines[i] += seen[i] > 0;
            seen[i] = bytes_of(i);
            last_ns[i] = clock_mono_ns();
            last_work[i] = processor_seconds(i);
            if (first_ns[i])
                continue;
            first_ns[i] = last_ns[i];
            first_work[i] = last_work[i];
        }
    }
    double sum = 0;
    *ret_work = 0;
    for (size_t i = 0; i < n; i++)
        *ret_work += (last_work[i] - first_work[i]) / (double)lines[i] / STEPS_OF_LINE;
    *ret_work /= alone ? (double)n : 1;
    for (size_t i = 0; i < (alone ? n : 1); i++)
        sum += (double)lines[i] * STEPS_OF_LINE * SECOND / (double)(last_ns[i] - first_ns[i]);
    gang_done(&g);
    return sum;
}

static void time_calm(void)
{
    double one[ROUNDS_MAX], plain[ROUNDS_MAX], two[ROUNDS_MAX], twice[ROUNDS_MAX];
    double of_plain[ROUNDS_MAX], of_twice[ROUNDS_MAX], work_one[ROUNDS_MAX], work_two[ROUNDS_MAX];
    for (int64_t k = 0; k < rounds; k++) {
        double w_plain, w_one, w_two, w_twice;
        plain[k] = speed(&computing, 1, true, &w_plain);
        one[k] = speed(&computing, 1, false, &w_one);
        two[k] = speed(&computing, 2, false, &w_two);
        twice[k] = speed(&computing, 2, true, &w_twice);
        of_plain[k] = 100 * one[k] / plain[k];
        of_twice[k] = 100 * two[k] / twice[k];
        work_one[k] = 100 * w_plain / w_one;
        work_two[k] = 100 * w_twice / w_two;
    }
    size_t n = (size_t)rounds;
    bench_report("one rank", bench_median(one, n), "steps/s", bench_median(plain, n), NAN, NULL,
                 "floor: the trainer alone");
    bench_report("one rank of the trainer alone", bench_median(of_plain, n), "%", 100, 97, "bar",
                 NULL);
    bench_report("the same by processor time of a step", bench_median(work_one, n), "%", 100, 97,
                 "bar", "does not depend on who else computes");
    bench_report("two ranks on two cores", bench_median(two, n), "steps/s", bench_median(twice, n),
                 NAN, NULL, "floor: two trainers beside each other, their steps added");
    bench_report("two ranks, efficiency", bench_median(of_twice, n), "%", 100, 90, "bar", NULL);
    bench_report("the same by processor time of a step", bench_median(work_two, n), "%", 100, 90,
                 "bar", "without the waiting for each other");
}

int main(int argc, char **argv)
{
    static const struct opt more[] = {
        {"rounds", 0, OPT_I64, &rounds, "N", NULL, "rounds of each case (5, at most 100)"},
        {"seconds", 0, OPT_I64, &seconds, "N", NULL, "of a round with deaths (20)"},
        {"every", 0, OPT_I64, &every, "N", NULL, "seconds between two deaths (5)"},
        {"silent", 0, OPT_FLAG, &also_silent, NULL, NULL, "a stopped rank too, which takes 5 s"},
        {"case", 0, OPT_STRING, &only, "TEXT", NULL, "of notice, step, deaths and calm, one"},
        {0},
    };
    if (!bench_start_with("recovery", "what deaths cost a large trial", more, argc, argv))
        return bench_exit();
    if (rounds < 1 || rounds > ROUNDS_MAX || seconds < 1 || every < 1) {
        (void)fprintf(stderr, "--rounds: 1 to %d; --seconds and --every: from 1\n", ROUNDS_MAX);
        return EXIT_FAILURE;
    }
    rig_open(&rig);
    if (wants("notice"))
        time_notice();
    if (wants("step"))
        time_next_step();
    if (wants("deaths"))
        time_deaths();
    if (wants("calm"))
        time_calm();
    rig_close(&rig);
    return bench_exit();
}
