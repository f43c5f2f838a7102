/* What deaths cost a large trial, and what being one costs when nobody dies.
 *
 * Ranks are real processes of assay-train; tests/support/gang plays their runners and the server,
 * so the figures have no network to a server in them. A step is seen when its line stands in a
 * report: an epoch of these trials is one step, with an evaluation. Each figure is a median over
 * rounds; what is compared runs in turn, because the machine is shared. */
#include <limits.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/opt.h"
#include "base/rng.h"
#include "base/str.h"
#include "bench/bench.h"
#include "tests/support/gang_check.h"
#include "tests/support/roots.h"

#define ROUNDS_MAX 1000
#define SECOND 1e9

static int64_t rounds = 5, seconds = 20, every = 5;
static const char *only;
static bool also_silent;

static struct rig rig;
static struct gang g;
static int gangs; /* each has a folder of its own */

/* An epoch is one step of eight shards. */
#define ONE_STEP "\"epochs\":100000,\"batch_size\":1432,\"micro_batch\":179,"
static const struct trial quick = {
    "a", "\"model\":{\"layers\":[64,64]}," ONE_STEP "\"optimizer\":{\"lr\":0.003}", "5"};

/* Two trials of the same network whose evaluations cost little. In the first, the exchange of 1.2
 * MB and the optimizer, which every rank runs, have a part in a step; in the second, computing
 * dominates. */
static const struct calm_trial {
    const char *name;
    struct trial trial;
    int64_t steps; /* of a line */
    size_t copies; /* of the digits, one after another, in the data set */
    double bar;    /* of two ranks, percent */
} calm_trials[] = {
    {"1432 rows a step",
     {"b",
      "\"model\":{\"layers\":[512,512]},\"report_every\":16," ONE_STEP
      "\"optimizer\":{\"lr\":0.001}",
      "5"},
     16,
     1,
     NAN},
    {"8528 rows a step",
     {"c",
      "\"model\":{\"layers\":[512,512]},\"report_every\":4,\"epochs\":100000,"
      "\"batch_size\":8528,\"micro_batch\":1066,\"validation\":{\"fraction\":0.05},"
      "\"optimizer\":{\"lr\":0.001}",
      "5"},
     8,
     10,
     90},
};

static void start(struct gang *of, const struct trial *t, size_t n, const struct gang_opts *opts)
{
    static char tags[1000][16];
    char *tag = tags[gangs % 1000];
    (void)snprintf(tag, sizeof tags[0], "g%d", gangs++);
    gang_start_with(of, &rig, tag, t, n, opts);
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

static off_t bytes_of(const struct gang *of, size_t place)
{
    char path[256];
    struct stat is;
    (void)snprintf(path, sizeof path, "%s/%s/r%zu/report", rig.dir, of->tag, place);
    return stat(path, &is) == 0 ? is.st_size : 0;
}

static void wait_for_report(size_t place)
{
    off_t before = bytes_of(&g, place);
    while (bytes_of(&g, place) == before && gang_turn(&g, 1))
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
    start(&g, t, 4, &opts);
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
        computing_ms[k] = notice(&calm_trials[0].trial, SIGKILL);
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
    start(&g, &quick, 4, &opts);
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
    bench_report("kill to next completed step, p99", next[(rounds * 99 + 99) / 100 - 1], "ms",
                 clean, 500, "bar", "of so many kills as --rounds says");
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
    start(&g, &calm_trials[0].trial, 4, &opts);
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

#define SLICE_NS (250 * NS_PER_MS)
#define LOOK_MS 25

/* One of two gangs that take turns. */
struct side {
    struct gang gang;
    size_t n;
    bool alone; /* plain trainers, which know nothing of each other */
    int64_t steps_of_line;
    off_t seen[2];                   /* bytes of the reports */
    size_t lines[2];                 /* that came after the first one */
    int64_t active_ns;               /* how long it could run */
    int64_t first_ns[2], last_ns[2]; /* of active_ns, at the first and the last line */
    double first_work[2], last_work[2];
};

/* Processor seconds of a rank's process so far, of all its threads. */
static double processor_seconds(const struct gang *of, size_t place)
{
    clockid_t clock;
    struct timespec t;
    if (clock_getcpuclockid(of->ranks[place].pid, &clock) != 0 || clock_gettime(clock, &t) != 0)
        return NAN;
    return (double)t.tv_sec + (double)t.tv_nsec / SECOND;
}

static void signal_side(struct side *s, int signal)
{
    for (size_t i = 0; i < s->n; i++)
        gang_kill(&s->gang, i, signal);
}

static bool start_side(struct side *s, const struct calm_trial *t, size_t n, bool alone)
{
    struct gang_opts opts = {.no_checkpoints = true, .alone = alone};
    *s = (struct side){.n = n, .alone = alone, .steps_of_line = t->steps};
    start(&s->gang, &t->trial, n, &opts);
    return alone || gang_gather(&s->gang, n);
}

/* Lets it run for a slice. */
static void run_side(struct side *s)
{
    int64_t start_ns = clock_mono_ns(), before_ns = s->active_ns;
    signal_side(s, SIGCONT);
    while (clock_mono_ns() - start_ns < SLICE_NS) {
        clock_sleep_ms(LOOK_MS); /* what this process computes, a rank waits for */
        (void)gang_turn(&s->gang, 0);
        s->active_ns = before_ns + clock_mono_ns() - start_ns;
        for (size_t i = 0; i < s->n; i++) {
            off_t now = bytes_of(&s->gang, i);
            if (now == s->seen[i])
                continue;
            s->lines[i] += s->seen[i] > 0;
            s->last_ns[i] = s->active_ns;
            s->last_work[i] = processor_seconds(&s->gang, i);
            if (s->seen[i] == 0) {
                s->first_ns[i] = s->last_ns[i];
                s->first_work[i] = s->last_work[i];
            }
            s->seen[i] = now;
        }
    }
    signal_side(s, SIGSTOP);
}

/* Steps in a second; of plain trainers, the sum. */
static double steps_of(const struct side *s)
{
    double sum = 0;
    for (size_t i = 0; i < (s->alone ? s->n : 1); i++)
        sum += (double)(s->lines[i] * (size_t)s->steps_of_line) * SECOND /
               (double)(s->last_ns[i] - s->first_ns[i]);
    return sum;
}

/* Processor seconds of a step, of all ranks; of plain trainers, of one. */
static double work_of(const struct side *s)
{
    double sum = 0;
    for (size_t i = 0; i < s->n; i++)
        sum +=
            (s->last_work[i] - s->first_work[i]) / (double)(s->lines[i] * (size_t)s->steps_of_line);
    return s->alone ? sum / (double)s->n : sum;
}

struct calm {
    double own[ROUNDS_MAX], plain[ROUNDS_MAX];  /* steps in a second */
    double speed[ROUNDS_MAX], work[ROUNDS_MAX]; /* percent of the plain trainers' */
};

/* n ranks of one trial against n plain trainers. One side runs while the other is stopped, in short
 * turns: so both meet the same load of the machine. */
static void compare_calm(const struct calm_trial *t, size_t n, struct calm *ret, size_t round)
{
    static struct side sides[2];
    ret->own[round] = ret->plain[round] = ret->speed[round] = ret->work[round] = NAN;
    for (size_t k = 0; k < 2; k++) {
        if (!start_side(&sides[k], t, n, k == 1))
            return;
        signal_side(&sides[k], SIGSTOP);
    }
    int64_t until_ns = clock_mono_ns() + seconds * NS_PER_S / 2;
    for (size_t k = 0;
         clock_mono_ns() < until_ns || sides[0].lines[n - 1] < 2 || sides[1].lines[n - 1] < 2; k++)
        run_side(&sides[k % 2]);
    ret->own[round] = steps_of(&sides[0]);
    ret->plain[round] = steps_of(&sides[1]);
    ret->speed[round] = 100 * ret->own[round] / ret->plain[round];
    ret->work[round] = 100 * work_of(&sides[1]) / work_of(&sides[0]);
    for (size_t k = 0; k < 2; k++) {
        signal_side(&sides[k], SIGCONT);
        gang_done(&sides[k].gang);
    }
}

static void must(as_status st)
{
    if (st < 0) {
        (void)fprintf(stderr, "recovery: %s\n", rig.err.msg);
        exit(EXIT_FAILURE);
    }
}

/* Use the digits so many times over as the data set. */
static void copy_digits(size_t copies)
{
    char path[PATH_MAX];
    char *one = NULL;
    size_t len = 0;
    struct str all = {0};
    (void)snprintf(path, sizeof path, "%s/examples/digits.csv", source_root());
    must(file_read(path, (size_t)1 << 24, &one, &len, &rig.err));
    const char *rows = strchr(one, '\n') + 1; /* after the names of the columns */
    str_add(&all, one, len);
    for (size_t i = 1; i < copies; i++)
        str_puts(&all, rows);
    free(one);
    (void)snprintf(path, sizeof path, "%s/digits.csv", rig.dir);
    must(file_write_output(path, str_cstr(&all), all.len, 0600, &rig.err));
    str_done(&all);
    rig_digits(&rig, path, copies * RIG_DIGITS_ROWS);
}

static void time_calm(const struct calm_trial *t)
{
    static struct calm one, two;
    char name[80];
    size_t n = (size_t)rounds;
    copy_digits(t->copies);
    for (size_t k = 0; k < n; k++) {
        compare_calm(t, 1, &one, k);
        compare_calm(t, 2, &two, k);
    }
    (void)snprintf(name, sizeof name, "%s: one rank", t->name);
    bench_report(name, bench_median(one.own, n), "steps/s", bench_median(one.plain, n), NAN, NULL,
                 "floor: the trainer alone");
    bench_report("of the trainer alone", bench_median(one.speed, n), "%", 100, 97, "bar", NULL);
    bench_report("the same by processor time of a step", bench_median(one.work, n), "%", 100, 97,
                 "bar", "depends little on who else computes");
    (void)snprintf(name, sizeof name, "%s: two ranks", t->name);
    bench_report(name, bench_median(two.own, n), "steps/s", bench_median(two.plain, n), NAN, NULL,
                 "floor: two trainers beside each other, their steps added");
    bench_report("efficiency", bench_median(two.speed, n), "%", 100, t->bar, "bar", NULL);
    bench_report("the same by processor time of a step", bench_median(two.work, n), "%", 100,
                 t->bar, "bar", "without the waiting for each other");
}

int main(int argc, char **argv)
{
    static const struct opt more[] = {
        {"rounds", 0, OPT_I64, &rounds, "N", NULL, "rounds of each case (5, at most 1000)"},
        {"seconds", 0, OPT_I64, &seconds, "N", NULL, "of a round with deaths; calm: of two (20)"},
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
    for (size_t i = 0; wants("calm") && i < sizeof calm_trials / sizeof *calm_trials; i++)
        time_calm(&calm_trials[i]);
    rig_close(&rig);
    return bench_exit();
}
