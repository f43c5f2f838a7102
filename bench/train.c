/* The built-in trainer, as the runner starts it, against its floor (the same products of matrices
 * through OpenBLAS and nothing else) and PyTorch, in alternating rounds, so that a shared machine
 * slows all of them alike. The figures are medians over the rounds. */
#include <cblas.h>
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/opt.h"
#include "base/rng.h"
#include "bench/bench.h"
#include "bench/train/drawn.h"
#include "bench/train/floor.h"
#include "bench/train/peer.h"
#include "bench/train/trainer.h"
#include "kernels/backend.h"

#define MAX_ROUNDS 15
#define EPOCHS 8
#define FUSED_EPOCHS 20
#define ALONE                                                                                      \
    8 /* trials that run one after another; the time of all members is computed from theirs */

#define LENET                                                                                      \
    "{\"kind\":\"cnn\",\"layers\":[{\"conv\":20,\"kernel\":5,\"padding\":0},{\"pool\":\"max\","    \
    "\"size\":2},{\"conv\":50,\"kernel\":5,\"padding\":0},{\"pool\":\"max\",\"size\":2},"          \
    "{\"dense\":500}]}"
#define LENET_1998                                                                                 \
    "{\"kind\":\"cnn\",\"layers\":[{\"conv\":6,\"kernel\":5,\"padding\":2},{\"pool\":\"max\","     \
    "\"size\":2},{\"conv\":16,\"kernel\":5,\"padding\":0},{\"pool\":\"max\",\"size\":2},"          \
    "{\"dense\":120},{\"dense\":84}]}"
#define SGD ",\"optimizer\":{\"kind\":\"sgd\",\"lr\":0.01}}"
#define ADAMW ",\"optimizer\":{\"kind\":\"adamw\",\"lr\":0.001}}"
#define TORCH_LENET                                                                                \
    "{\"model\":\"cnn\",\"optimizer\":\"sgd\",\"input\":[1,28,28],\"layers\":[[\"conv\",20,5,0],"  \
    "[\"pool\",2],[\"conv\",50,5,0],[\"pool\",2],[\"dense\",500],[\"dense\",10]]}"
#define TORCH_LENET_1998                                                                           \
    "{\"model\":\"cnn\",\"optimizer\":\"sgd\",\"input\":[1,28,28],\"layers\":[[\"conv\",6,5,2],"   \
    "[\"pool\",2],[\"conv\",16,5,0],[\"pool\",2],[\"dense\",120],[\"dense\",84],[\"dense\",10]]}"
#define GPT(depth, width)                                                                          \
    "{\"model\":{\"kind\":\"transformer\",\"depth\":" #depth ",\"width\":" #width                  \
    ",\"heads\":4,\"context\":64}" ADAMW
#define TORCH_GPT(depth, width)                                                                    \
    "{\"model\":\"transformer\",\"optimizer\":\"adamw\",\"depth\":" #depth ",\"width\":" #width    \
    ",\"heads\":4,\"context\":64,\"vocab\":256}"
#define RESNET                                                                                     \
    "{\"kind\":\"cnn\",\"layers\":[{\"conv\":16,\"norm\":\"batch\"}," BLOCK("16", "1") "," BLOCK(  \
        "32", "2") "," BLOCK("64", "2") ",{\"pool\":\"global\"}]}"
#define BLOCK(out, stride)                                                                         \
    "{\"residual\":[{\"conv\":" out ",\"stride\":" stride ",\"norm\":\"batch\"},{\"conv\":" out    \
    ",\"norm\":\"batch\",\"activation\":\"none\"}]}"
#define TORCH_RESNET                                                                               \
    "{\"model\":\"cnn\",\"optimizer\":\"sgd\",\"input\":[3,32,32],\"layers\":[[\"normed\",16,3,1]" \
    ","                                                                                            \
    "[\"residual\",16,1],[\"residual\",32,2],[\"residual\",64,2],[\"mean\",1],[\"dense\",10]]}"
#define MLP(widths, rest) "{\"model\":{\"layers\":[" widths "]}" rest
#define TORCH_MLP(widths, optimizer)                                                               \
    "{\"model\":\"mlp\",\"optimizer\":\"" optimizer "\",\"widths\":[" widths "]}"

static const struct bench_case cases[] = {
    {"mlp cpu", "cpu", MLP("512,256", SGD), TORCH_MLP("784,512,256,10", "sgd"), 128, 1, 50, 1, 1,
     784, 0},
    {"cnn cpu", "cpu", "{\"model\":" LENET SGD, TORCH_LENET, 64, 1, 10, 28, 28, 1, 0},
    {"cnn cpu, LeNet-5", "cpu", "{\"model\":" LENET_1998 SGD, TORCH_LENET_1998, 64, 1, 20, 28, 28,
     1, 0},
    {"transformer cpu", "cpu", GPT(2, 64), TORCH_GPT(2, 64), 16, 1, 10, 0, 0, 0, 0},
    {"mlp cpu, 54-256-128-7", "cpu", MLP("256,128", SGD), TORCH_MLP("54,256,128,7", "sgd"), 128, 1,
     200, 1, 1, 54, 7},
    {"mlp cpu, 300-100-2", "cpu", MLP("100", SGD), TORCH_MLP("300,100,2", "sgd"), 128, 1, 200, 1, 1,
     300, 2},
    {"mlp cpu, 20-1024-1024-1", "cpu", MLP("1024,1024", SGD), TORCH_MLP("20,1024,1024,1", "sgd"),
     128, 1, 20, 1, 1, 20, 1},
    {"cnn cpu, ResNet of 3 blocks", "cpu", "{\"model\":" RESNET SGD, TORCH_RESNET, 32, 1, 8, 32, 32,
     3, 0},
    {"transformer cpu, 4 x 128", "cpu", GPT(4, 128), TORCH_GPT(4, 128), 8, 1, 20, 0, 0, 0, 0},
    {"fused mlp cpu K=32", "cpu", MLP("64,32", ADAMW), TORCH_MLP("64,64,32,10", "adamw"), 32, 32,
     42, 1, 1, 64, 0},
    {"mlp gpu", "cuda", MLP("512,256", SGD), TORCH_MLP("784,512,256,10", "sgd"), 128, 1, 400, 1, 1,
     784, 0},
    {"transformer gpu", "cuda", GPT(6, 256), TORCH_GPT(6, 256), 64, 1, 40, 0, 0, 0, 0},
    {"fused mlp gpu K=64", "cuda", MLP("128", ADAMW), TORCH_MLP("784,128,10", "adamw"), 128, 64,
     100, 1, 1, 784, 0},
    {"fused cnn gpu K=16", "cuda", "{\"model\":" LENET SGD, TORCH_LENET, 64, 16, 50, 28, 28, 1, 0},
    {"fused transformer gpu K=8", "cuda", GPT(6, 256), TORCH_GPT(6, 256), 16, 8, 20, 0, 0, 0, 0},
};

static struct as_err err;
static const char *only;
static int64_t rounds = 5, n_drawn = 5, seed;

/* End the program with the error unless st is AS_OK. */
static void must(as_status st)
{
    if (st == AS_OK)
        return;
    torch_close();
    (void)fprintf(stderr, "bench/train: %s\n", err.msg);
    exit(EXIT_FAILURE);
}

static int n_cpus(void)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

/* The figures of the rounds of a case: rows per second, and processor time of a row in
 * microseconds. */
struct figures {
    double value, floor, peer;
    double cpu, cpu_floor, cpu_peer;
    double alone; /* members: the same trials one after another, rows per second */
    double loop;  /* the same, but only the training, without the rest of the process */
    char note[256];
};

/* For members: OpenBLAS in one thread, times the number of threads, because members are
 * independent. */
static double floor_of(const struct lab *l, struct floor *f)
{
    if (strcmp(l->c->backend, "cpu") != 0)
        return NAN;
    double one = floor_rate(f, 1);
    if (l->c->members > 1)
        return one * n_cpus();
    return fmax(one, floor_rate(f, n_cpus()));
}

static struct torch_speed torch_of(const struct bench_case *c, char *note, size_t len)
{
    JSON_AUTO doc = NULL;
    must(json_parse(c->torch, strlen(c->torch), &doc, &err));
    (void)json_object_set_new(doc, "batch", json_integer((json_int_t)c->batch));
    struct torch_speed best = {NAN, NAN};
    const char *device = strcmp(c->backend, "cpu") == 0 ? "cpu" : "cuda";
    for (int threads = 1; threads <= n_cpus(); threads *= 2) {
        if (torch_speed(doc, threads, 0.5, device, &best, &err) < 0) {
            (void)snprintf(note, len, "no peer: %.200s", err.msg);
            break;
        }
    }
    return best;
}

static void measure(const struct lab *l, struct floor *f, struct figures *ret)
{
    struct lab_speed own[MAX_ROUNDS] = {0};
    double value[MAX_ROUNDS], floor[MAX_ROUNDS], peer[MAX_ROUNDS], alone[MAX_ROUNDS] = {0};
    double cpu[MAX_ROUNDS], cpu_floor[MAX_ROUNDS], cpu_peer[MAX_ROUNDS], loop[MAX_ROUNDS] = {0};
    size_t members = l->c->members, n = (size_t)rounds;
    for (size_t r = 0; r < n; r++) {
        double seconds = 0;
        if (members == 1) {
            must(lab_speed(l, EPOCHS, &own[r], &err));
            value[r] = own[r].rows_per_s;
        } else {
            double rows = (double)l->train_rows * FUSED_EPOCHS;
            must(lab_group(l, members, FUSED_EPOCHS, &seconds, &err));
            value[r] = rows * (double)members / seconds;
            must(lab_alone(l, ALONE, FUSED_EPOCHS, &seconds, &err));
            alone[r] = rows * ALONE / seconds;
            must(lab_speed(l, FUSED_EPOCHS, &own[r], &err));
            loop[r] = own[r].rows_per_s;
        }
        floor[r] = floor_of(l, f);
        cpu_floor[r] = floor_cpu_us(f);
        const struct torch_speed torch = torch_of(l->c, ret->note, sizeof ret->note);
        peer[r] = torch.rows_per_s;
        cpu_peer[r] = torch.cpu_us;
        cpu[r] = own[r].cpu_us;
    }
    ret->value = bench_median(value, n);
    ret->floor = bench_median(floor, n);
    ret->peer = bench_median(peer, n);
    ret->cpu = bench_median(cpu, n);
    ret->cpu_floor = bench_median(cpu_floor, n);
    ret->cpu_peer = bench_median(cpu_peer, n);
    ret->alone = members > 1 ? bench_median(alone, n) : NAN;
    ret->loop = members > 1 ? bench_median(loop, n) : NAN;
}

/* On a machine that is shared the processor time says more than the clock. */
static void report_cpu(const struct bench_case *c, const struct figures *got)
{
    char name[96], note[96];
    if (strcmp(c->backend, "cpu") != 0 || c->members > 1)
        return;
    (void)snprintf(name, sizeof name, "%.60s, processor time of a row", c->name);
    (void)snprintf(note, sizeof note, "%.2f of the floor's, the peer's is %.2f times as long",
                   got->cpu / got->cpu_floor, got->cpu_peer / got->cpu);
    bench_report(name, got->cpu, "us", got->cpu_floor, got->cpu_peer, torch_version(), note);
}

static void run_case(const struct bench_case *c)
{
    struct lab l;
    struct figures got = {0};
    AS_AUTO(floor_freep) struct floor *f = NULL;
    must(lab_create(c, &l, &err));
    must(floor_create(l.plan, c->batch, &f, &err));
    measure(&l, f, &got);
    if (got.note[0] == '\0')
        (void)snprintf(got.note, sizeof got.note, "%.2f of the floor, %.2f times the peer",
                       got.value / got.floor, got.value / got.peer);
    bench_report(c->name, got.value, "rows/s", got.floor, got.peer, torch_version(), got.note);
    report_cpu(c, &got);
    if (c->members > 1) {
        char name[96];
        (void)snprintf(name, sizeof name, "%s / one after another", c->name);
        bench_report(name, got.value / got.alone, "times", NAN, NAN, NULL,
                     "whole processes, start to end");
        (void)snprintf(name, sizeof name, "%s / their epochs", c->name);
        bench_report(name, got.value / got.loop, "times", NAN, NAN, NULL,
                     "start to end, against the epochs alone of one after another");
    }
    lab_done(&l);
}

/* Report a small trial of one epoch, from the start of its process to its end. */
static void run_startup(void)
{
    static const struct bench_case c = {"startup", "cpu", MLP("64,32", ADAMW), "", 32, 1, 42, 1, 1,
                                        64,        0};
    struct lab l;
    double seconds[MAX_ROUNDS];
    must(lab_create(&c, &l, &err));
    for (int64_t r = 0; r < rounds; r++)
        must(lab_alone(&l, 1, 1, &seconds[r], &err));
    bench_report("startup", 1e3 * bench_median(seconds, (size_t)rounds), "ms", NAN, NAN, NULL,
                 "process, data, one epoch of 42 steps, end");
    lab_done(&l);
}

static bool wanted(const char *name)
{
    return only == NULL || strstr(name, only) != NULL;
}

static void run_all(bool gpu, const char *why_not)
{
    for (size_t i = 0; i < AS_ARRAY_LEN(cases); i++) {
        if (!wanted(cases[i].name))
            continue;
        if (strcmp(cases[i].backend, "cpu") == 0 || gpu)
            run_case(&cases[i]);
        else
            bench_skip(cases[i].name, "rows/s", why_not);
    }
    struct rng r;
    rng_init(&r, (uint64_t)seed, 0);
    for (int64_t i = 0; i < n_drawn; i++) {
        struct drawn_case d;
        drawn_case(&r, (size_t)i, &d);
        if (wanted(d.c.name))
            run_case(&d.c);
    }
    if (wanted("startup"))
        run_startup();
}

/* OpenBLAS 0.3.21 takes some new cores for a Haswell. The floor must be its best rate. It reads the
 * variable only when it is loaded, so this program starts itself again. */
static void tell_openblas(char **argv)
{
#if defined(__x86_64__)
    if (getenv("OPENBLAS_CORETYPE") != NULL || strcmp(openblas_get_corename(), "Haswell") != 0 ||
        !__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512bw") ||
        !__builtin_cpu_supports("avx512dq") || !__builtin_cpu_supports("avx512vl"))
        return;
    if (setenv("OPENBLAS_CORETYPE", "SkylakeX", 1) == 0)
        (void)execv("/proc/self/exe", argv);
#else
    (void)argv;
#endif
}

int main(int argc, char **argv)
{
    tell_openblas(argv);
    seed = (int64_t)(clock_mono_ns() % 1000000);
    const struct opt more[] = {
        {"case", 0, OPT_STRING, &only, "TEXT", NULL, "only cases whose name has this in it"},
        {"rounds", 0, OPT_I64, &rounds, "N", NULL, "1 to 15 (5)"},
        {"drawn", 0, OPT_I64, &n_drawn, "N", NULL, "so many shapes drawn at random (5)"},
        {"seed", 0, OPT_I64, &seed, "N", NULL, "of these (by the clock)"},
        {0},
    };
    if (!bench_start_with("train", "the built-in trainer against its floor and PyTorch", more, argc,
                          argv))
        return bench_exit();
    rounds = rounds < 1 ? 1 : rounds > MAX_ROUNDS ? MAX_ROUNDS : rounds;
    struct backend *gpu = NULL;
    char why_not[300] = "";
    if (backend_open("cuda", NULL, &gpu, &err) < 0)
        (void)snprintf(why_not, sizeof why_not, "not measured: no GPU (%.80s)", err.msg);
    backend_free(gpu);
    run_all(gpu != NULL, why_not);
    torch_close();
    return bench_exit();
}
