/* What the strategies of large trials gain on a slow network.
 *
 * Ranks are processes of assay-train on hosts of their own (network/hosts.h), one shard each. For
 * each strategy two trainings: a large model of few rows, whose gradient takes far longer to send
 * than to compute, for the time and the traffic of a step; and a smaller one for the loss that the
 * same samples lead to. It is trained on many rows and for few epochs, because a loss that rises
 * again (too many epochs) says nothing of the strategy. The rows are points of a random two-layer
 * teacher with noisy answers, so the loss does not go to 0 and a ratio of losses means something.
 * Traffic is counted by the network's counters: it has the headers of all layers, and
 * acknowledgements.
 *
 * The floor of a step is its traffic at the rate that plain sockets have between the same hosts in
 * the same run. Strategies take turns in each round; figures are medians over the rounds. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/opt.h"
#include "base/rng.h"
#include "base/str.h"
#include "bench/bench.h"
#include "bench/network/hosts.h"
#include "bench/network/ranks.h"
#include "data/formats/npy.h"

#define FEATURES 64
#define HIDDEN 32
#define CLASSES 10
#define NOISE 1.0 /* of the teacher's scores, whose deviation is about 2 */
#define HELD_OUT 0.2
#define ROUNDS_MAX 9
#define RATE_BYTES (8U << 20)

static int64_t ranks = 2, mbit = 1000, rounds = 1, width = 1500, loss_epochs = 2;
static const char *only;
static bool quiet;

static const struct strategy {
    const char *name, *section;
} strategies[] = {
    {"plain", "{}"},
    {"fp16", "{\"compress\":\"fp16\"}"},
    {"one_bit", "{\"compress\":\"one_bit\"}"},
    {"top_k 1%", "{\"compress\":{\"kind\":\"top_k\",\"fraction\":0.01}}"},
    {"powersgd rank 4", "{\"compress\":{\"kind\":\"powersgd\",\"rank\":4}}"},
    {"powersgd rank 4, half", "{\"compress\":{\"kind\":\"powersgd\",\"rank\":4,\"half\":true}}"},
    {"sufficient factors", "{\"sufficient_factors\":\"auto\"}"},
    {"encrypted", "{\"encrypt\":true}"},
    {"server", "{\"server\":{}}"},
    {"server, ssp", "{\"server\":{\"mode\":\"ssp\"}}"},
    {"server, ssp, significance", "{\"server\":{\"mode\":\"ssp\",\"significance\":0.003}}"},
    {"local_sgd 50", "{\"local_sgd\":{\"steps\":50}}"},
    {"local_sgd 50, block momentum", "{\"local_sgd\":{\"steps\":50,\"block_momentum\":0.5}}"},
    {"local_sgd 50, nesterov", "{\"local_sgd\":{\"steps\":50,\"outer\":{\"kind\":\"nesterov\","
                               "\"lr\":0.7,\"momentum\":0.5}}}"},
};
#define N_STRATEGIES AS_ARRAY_LEN(strategies)

/* One of the two kinds of trainings. */
struct task {
    char dir[64];
    size_t batch, steps; /* of an epoch */
    int64_t epochs;
    int64_t layers[3]; /* widths; 0: none */
    double lr;
};

struct figures {
    double seconds[ROUNDS_MAX], bytes, loss;
};

static double rate; /* bytes per second of plain sockets; the median over rounds */

/* ---- data ---- */

static double gaussian(struct rng *r)
{
    return sqrt(-2 * log(1 - rng_uniform(r))) * cos(2 * M_PI * rng_uniform(r));
}

static void fill(struct rng *r, double scale, float *v, size_t n)
{
    for (size_t i = 0; i < n; i++)
        v[i] = (float)(scale * gaussian(r));
}

/* The class with the largest noisy score. */
static int32_t answer(struct rng *r, const float *x, const float *w1, const float *w2)
{
    double hidden[HIDDEN], best = -INFINITY;
    int32_t ret = 0;
    for (size_t h = 0; h < HIDDEN; h++) {
        hidden[h] = 0;
        for (size_t i = 0; i < FEATURES; i++)
            hidden[h] += (double)x[i] * (double)w1[h * FEATURES + i];
        hidden[h] = tanh(hidden[h]);
    }
    for (int32_t k = 0; k < CLASSES; k++) {
        double score = NOISE * gaussian(r);
        for (size_t h = 0; h < HIDDEN; h++)
            score += hidden[h] * (double)w2[(size_t)k * HIDDEN + h];
        if (score > best) {
            best = score;
            ret = k;
        }
    }
    return ret;
}

static as_status write_data(const struct task *t, struct as_err *err)
{
    size_t rows = (size_t)lround((double)(t->batch * t->steps) / (1 - HELD_OUT));
    const size_t shape[] = {rows, FEATURES};
    float w1[HIDDEN * FEATURES], w2[CLASSES * HIDDEN];
    AS_AUTO(as_freep) float *x = as_calloc(rows * FEATURES, sizeof *x);
    AS_AUTO(as_freep) int32_t *y = as_calloc(rows, sizeof *y);
    char path[100];
    struct rng r;
    if (!x || !y)
        return as_fail_nomem(err);
    rng_init(&r, 1, 0);
    fill(&r, 1 / sqrt(FEATURES), w1, HIDDEN * FEATURES);
    fill(&r, 3 / sqrt(HIDDEN), w2, CLASSES * HIDDEN);
    fill(&r, 1, x, rows * FEATURES);
    for (size_t i = 0; i < rows; i++)
        y[i] = answer(&r, x + i * FEATURES, w1, w2);
    (void)snprintf(path, sizeof path, "%s/x.npy", t->dir);
    as_status st = npy_write(path, NPY_F4, shape, 2, x, err);
    (void)snprintf(path, sizeof path, "%s/y.npy", t->dir);
    return st < 0 ? st : npy_write(path, NPY_I4, shape, 1, y, err);
}

/* ---- trainings ---- */

/* `n` ranks of one shard each. A rank alone computes what each of them computes, and sends
 * nothing. */
static as_status train(const struct task *t, const char *section, int n, struct ranks_figures *ret,
                       struct as_err *err)
{
    AS_AUTO(str_done) struct str doc = {0};
    size_t shard = t->batch / (size_t)ranks;
    str_puts(&doc, "{\"model\":{\"layers\":[");
    for (size_t i = 0; i < AS_ARRAY_LEN(t->layers) && t->layers[i]; i++)
        str_printf(&doc, "%s%lld", i ? "," : "", (long long)t->layers[i]);
    str_printf(&doc,
               "]},\"epochs\":%lld,\"batch_size\":%zu,\"micro_batch\":%zu,"
               "\"optimizer\":{\"kind\":\"sgd\",\"lr\":%g,\"momentum\":0.9},"
               "\"validation\":{\"fraction\":%g}}",
               (long long)t->epochs, n > 1 ? t->batch : shard, shard, t->lr, HELD_OUT);
    if (!doc.s)
        return as_fail_nomem(err);
    const struct ranks_trial trial = {.dir = t->dir,
                                      .train = doc.s,
                                      .distributed = n > 1 ? section : NULL,
                                      .n = n,
                                      .steps = n > 1 ? t->steps : t->steps * (size_t)ranks};
    return ranks_train(&trial, ret, err);
}

static void number(const struct task *t, const char *section, int n, bool is_loss,
                   struct figures *f, int64_t round)
{
    struct ranks_figures got = {NAN, NAN, NAN};
    struct as_err err = {0};
    int64_t start_ns = clock_mono_ns();
    if (train(t, section, n, &got, &err) < 0)
        (void)fprintf(stderr, "bench/network: %s: %s\n", section ? section : "alone", err.msg);
    else if (!quiet)
        (void)fprintf(stderr, "bench/network: %s: %.1f s\n", section ? section : "alone",
                      (double)(clock_mono_ns() - start_ns) / (double)NS_PER_S);
    if (is_loss)
        f->loss = got.loss;
    else
        f->bytes = got.bytes;
    if (!is_loss)
        f->seconds[round] = got.seconds;
}

/* ---- reports ---- */

static void report(const struct strategy *s, struct figures *f, struct figures *plain)
{
    char name[80], note[80];
    double seconds = bench_median(f->seconds, (size_t)rounds);
    (void)snprintf(name, sizeof name, "%s: step", s->name);
    (void)snprintf(note, sizeof note, "plain takes %.2f times as long",
                   bench_median(plain->seconds, (size_t)rounds) / seconds);
    bench_report(name, seconds * 1e3, "ms", f->bytes / rate * 1e3, NAN, NULL, note);
    (void)snprintf(name, sizeof name, "%s: sent", s->name);
    (void)snprintf(note, sizeof note, "of each rank in a step; plain sends %.1f times as much",
                   plain->bytes / f->bytes);
    bench_report(name, f->bytes / 1e3, "kB", NAN, NAN, NULL, note);
    if (loss_epochs == 0)
        return;
    (void)snprintf(name, sizeof name, "%s: loss", s->name);
    (void)snprintf(note, sizeof note, "%.4f of plain", f->loss / plain->loss);
    bench_report(name, f->loss, "nats", NAN, NAN, NULL, note);
}

static bool wants(size_t i)
{
    return i == 0 || !only || strstr(strategies[i].name, only);
}

static void measure(const struct task *fast, const struct task *long_one)
{
    static struct figures all[N_STRATEGIES], alone;
    double rates[ROUNDS_MAX];
    for (int64_t k = 0; k < rounds; k++) {
        rates[k] = hosts_rate((int)ranks, RATE_BYTES);
        number(fast, NULL, 1, false, &alone, k);
        for (size_t i = 0; i < N_STRATEGIES; i++)
            if (wants(i))
                number(fast, strategies[i].section, (int)ranks, false, &all[i], k);
    }
    rate = bench_median(rates, (size_t)rounds);
    for (size_t i = 0; i < N_STRATEGIES && loss_epochs > 0; i++)
        if (wants(i))
            number(long_one, strategies[i].section, (int)ranks, true, &all[i], 0);
    bench_report("plain sockets", rate * 8 / 1e6, "Mbit/s", (double)mbit, NAN, NULL,
                 mbit ? "floor: the limit of the cables" : "cables without a limit");
    bench_report("a rank alone: step", bench_median(alone.seconds, (size_t)rounds) * 1e3, "ms", NAN,
                 NAN, NULL, "computes one shard, sends nothing");
    for (size_t i = 0; i < N_STRATEGIES; i++)
        if (wants(i))
            report(&strategies[i], &all[i], &all[0]);
}

static bool check(const char *name, int64_t value, int64_t least, int64_t most)
{
    if (value >= least && value <= most)
        return true;
    (void)fprintf(stderr, "--%s is %lld; expected %lld to %lld\n", name, (long long)value,
                  (long long)least, (long long)most);
    return false;
}

int main(int argc, char **argv)
{
    static const struct opt more[] = {
        {"ranks", 0, OPT_I64, &ranks, "P", NULL, "ranks, each on a host of its own (2 to 8)"},
        {"rate", 0, OPT_I64, &mbit, "MBIT", NULL, "Mbit/s of each cable; 0: no limit"},
        {"rounds", 0, OPT_I64, &rounds, "N", NULL, "rounds; medians count"},
        {"width", 0, OPT_I64, &width, "W", NULL, "of the three layers of the large model"},
        {"loss-epochs", 0, OPT_I64, &loss_epochs, "N", NULL, "of the smaller model; 0: no losses"},
        {"case", 0, OPT_STRING, &only, "TEXT", NULL,
         "plain, and strategies whose name has the text"},
        {"quiet", 'q', OPT_FLAG, &quiet, NULL, NULL, "no line on stderr for each training"},
        {0},
    };
    if (!bench_start_with("network", "strategies of large trials on a slow network", more, argc,
                          argv))
        return bench_exit();
    if (!check("ranks", ranks, 2, HOSTS_MAX) || !check("rate", mbit, 0, 100000) ||
        !check("rounds", rounds, 1, ROUNDS_MAX) || !check("width", width, 1, 10000) ||
        !check("loss-epochs", loss_epochs, 0, 1000) || loss_epochs == 1)
        return EXIT_FAILURE;
    if (!hosts_make((int)ranks, mbit)) {
        bench_skip("network", "", "no network namespaces here (needs root, ip and tc)");
        return bench_exit();
    }
    struct task tasks[] = {
        {"/tmp/assay-bench-XXXXXX", 64, 50, 2, {width, width, width}, 0.01},
        {"/tmp/assay-bench-XXXXXX", 64, 1000, loss_epochs, {256, 256}, 0.02},
    };
    struct as_err err = {0};
    as_status st = AS_OK;
    for (size_t i = 0; i < AS_ARRAY_LEN(tasks) && st == AS_OK; i++)
        st = mkdtemp(tasks[i].dir) ? write_data(&tasks[i], &err)
                                   : as_fail(&err, AS_E_IO, "no folder in /tmp");
    if (st == AS_OK)
        measure(&tasks[0], &tasks[1]);
    else
        (void)fprintf(stderr, "bench/network: %s\n", err.msg);
    for (size_t i = 0; i < AS_ARRAY_LEN(tasks); i++)
        if (access(tasks[i].dir, F_OK) == 0 && file_remove_tree(tasks[i].dir, NULL) < 0)
            (void)fprintf(stderr, "bench/network: %s is left behind\n", tasks[i].dir);
    return st == AS_OK ? bench_exit() : EXIT_FAILURE;
}
