/* Boosted trees: what the trainer adds to XGBoost.
 *
 * The value is the time of assay-train from its start to its end, on a table in an NPY file:
 * reading, the split, reports, the files that it leaves. The floor is a bare loop in this process
 * over the same rows with the same parameters, library and threads, which begins with the rows in
 * memory: XGBoost's own copy of them, the rounds, one prediction of the held-out rows. The peer is
 * XGBoost called directly by a program that does what any user's does: this program, started again,
 * reads the same files, runs the same loop with an evaluation of both parts as often as the trainer
 * reports, and writes the predictions. The three take turns; figures are medians. Processor time
 * says more than elapsed time on a machine with other work. All let threads sleep while they wait
 * (model/trees/xgboost.c), because this machine is shared. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/opt.h"
#include "base/rng.h"
#include "base/str.h"
#include "bench/bench.h"
#include "data/formats/array.h"
#include "data/formats/npy.h"
#include "model/trees/xgboost.h"

#define COLUMNS ((size_t)30)
#define MAX_TURNS 9
#define REPORTS 20 /* of a trial, unless its document says otherwise */

static int64_t n_rows = 100000, rounds = 100, turns = 5, threads = 2;

struct table {
    float *x, *y; /* [n_rows, COLUMNS], [n_rows]: 0 or 1 */
    char dir[64];
};

static void fail_if(as_status st, const struct as_err *err)
{
    if (st == AS_OK)
        return;
    (void)fprintf(stderr, "%s\n", err->msg);
    exit(EXIT_FAILURE);
}

/* ---- data ---- */

static void fill(struct table *t)
{
    struct rng r;
    size_t n = (size_t)n_rows;
    rng_init(&r, 7, 1);
    t->x = as_calloc(n * COLUMNS, sizeof *t->x);
    t->y = as_calloc(n, sizeof *t->y);
    if (!t->x || !t->y)
        exit(EXIT_FAILURE);
    for (size_t i = 0; i < n; i++) {
        float *row = t->x + i * COLUMNS;
        for (size_t c = 0; c < COLUMNS; c++)
            row[c] = (float)rng_normal(&r);
        double score = (double)row[0] * (double)row[1] + sin(3 * (double)row[2]) + (double)row[3];
        t->y[i] = score + rng_normal(&r) > 0;
    }
}

static void write_file(const struct table *t, const char *name, const float *v, const size_t *shape,
                       size_t dims)
{
    struct as_err err;
    AS_AUTO(as_freep) char *path = file_join(t->dir, name);
    fail_if(npy_write(path, NPY_F4, shape, dims, v, &err), &err);
}

static void write_job(const struct table *t)
{
    struct as_err err;
    AS_AUTO(str_done) struct str b = {0};
    AS_AUTO(as_freep) char *path = file_join(t->dir, "job.json");
    size_t n = (size_t)n_rows;
    write_file(t, "x.npy", t->x, (size_t[]){n, COLUMNS}, 2);
    write_file(t, "y.npy", t->y, &n, 1);
    str_printf(&b,
               "{\"train\":{\"dataset\":\"t\",\"model\":{\"kind\":\"boosted_trees\","
               "\"n_estimators\":%lld}},\"dataset\":{\"format\":\"npy\",\"task\":"
               "\"classification\",\"rows\":%zu,\"features\":%zu,\"outputs\":2,\"classes\":[\"0\","
               "\"1\"],\"input\":\"table\",\"paths\":{\"features\":\"%s/x.npy\",\"targets\":"
               "\"%s/y.npy\"}}}",
               (long long)rounds, n, COLUMNS, t->dir, t->dir);
    fail_if(str_check(&b, &err), &err);
    fail_if(file_replace(path, b.s, b.len, 0600, &err), &err);
}

/* Seconds of a run. */
struct seconds {
    double wall, cpu;
};

/* The processor time so far of this process, or of its children that have ended. */
static double cpu_seconds(int who)
{
    struct rusage u;
    (void)getrusage(who, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
           1e-6 * (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

/* ---- the trainer ---- */

/* The path of this program. */
static void own_path(char *ret, size_t size)
{
    ssize_t n = readlink("/proc/self/exe", ret, size - 1);
    if (n < 0)
        exit(EXIT_FAILURE);
    ret[n] = 0;
}

/* Wait for a child's end; what it took since `start` (ns) and `cpu` (s). */
static struct seconds wait_for(pid_t pid, const char *name, int64_t start, double cpu)
{
    int status = 0;
    if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0) {
        (void)fprintf(stderr, "%s ended with status %d\n", name, status);
        exit(EXIT_FAILURE);
    }
    return (struct seconds){(double)(clock_mono_ns() - start) / NS_PER_S,
                            cpu_seconds(RUSAGE_CHILDREN) - cpu};
}

static struct seconds run_trainer(const struct table *t)
{
    double cpu = cpu_seconds(RUSAGE_CHILDREN);
    char program[600], count[24];
    own_path(program, sizeof program - 64);
    (void)snprintf(strrchr(program, '/'), 64, "/../trial-runner/train/assay-train");
    (void)snprintf(count, sizeof count, "%lld", (long long)threads);
    int64_t start = clock_mono_ns();
    pid_t pid = fork();
    if (pid == 0) {
        if (chdir(t->dir) != 0 || setenv("ASSAY_THREADS", count, 1) != 0 ||
            setenv("ASSAY_REPORT", "report", 1) != 0 ||
            setenv("ASSAY_CHECKPOINTS", "checkpoints", 1) != 0 ||
            setenv("ASSAY_ARTIFACTS", "artifacts", 1) != 0 || !freopen("out", "w", stdout))
            _exit(126);
        (void)unlink("checkpoints/checkpoint.safetensors"); /* of the turn before */
        (void)execl(program, "assay-train", "job.json", (char *)NULL);
        _exit(127);
    }
    return wait_for(pid, "assay-train", start, cpu);
}

/* ---- the bare loop ---- */

static void check(const struct xgboost *x, int result)
{
    struct as_err err;
    fail_if(xgboost_check(x, result, "the bare loop", &err), &err);
}

static xgb_matrix matrix(const struct xgboost *x, const float *rows, const float *y, size_t n)
{
    char array[XGBOOST_ARRAY_MAX], config[64];
    xgb_matrix m = NULL;
    xgboost_array(rows, n, COLUMNS, array);
    (void)snprintf(config, sizeof config, "{\"missing\": NaN, \"nthread\": %lld}",
                   (long long)threads);
    check(x, x->matrix_from_dense(array, config, &m));
    xgboost_array(y, n, 0, array);
    check(x, x->matrix_set_info(m, "label", array));
    return m;
}

static xgb_booster booster(const struct xgboost *x, const xgb_matrix *m)
{
    char count[24];
    xgb_booster b = NULL;
    (void)snprintf(count, sizeof count, "%lld", (long long)threads);
    check(x, x->booster_create(m, 2, &b));
    check(x, x->booster_set(b, "tree_method", "hist"));
    check(x, x->booster_set(b, "objective", "binary:logistic"));
    check(x, x->booster_set(b, "nthread", count));
    return b;
}

/* Predictions, a view until the next call. */
static const float *predict(const struct xgboost *x, xgb_booster b, xgb_matrix m)
{
    static const char config[] = "{\"type\": 0, \"training\": false, \"iteration_begin\": 0, "
                                 "\"iteration_end\": 0, \"strict_shape\": true}";
    const xgb_size *shape;
    xgb_size dims;
    const float *predicted;
    check(x, x->booster_predict(b, m, config, &shape, &dims, &predicted));
    return predicted;
}

static struct seconds run_bare(const struct xgboost *x, const float *rows, const float *y)
{
    size_t n = (size_t)n_rows, held = n / 4;
    double cpu = cpu_seconds(RUSAGE_SELF);
    int64_t start = clock_mono_ns();
    xgb_matrix m[2] = {matrix(x, rows + held * COLUMNS, y + held, n - held),
                       matrix(x, rows, y, held)};
    xgb_booster b = booster(x, m);
    for (int r = 0; r < rounds; r++)
        check(x, x->booster_update(b, r, m[0]));
    (void)predict(x, b, m[1]);
    struct seconds s = {(double)(clock_mono_ns() - start) / NS_PER_S,
                        cpu_seconds(RUSAGE_SELF) - cpu};
    check(x, x->booster_free(b));
    check(x, x->matrix_free(m[0]));
    check(x, x->matrix_free(m[1]));
    return s;
}

/* ---- XGBoost called directly, in a process of its own ---- */

static float *read_array(const char *dir, const char *name, size_t columns)
{
    struct as_err err;
    struct array a;
    size_t n = (size_t)n_rows;
    AS_AUTO(as_freep) char *path = file_join(dir, name);
    AS_AUTO(as_freep) double *row = as_calloc(columns, sizeof *row);
    float *v = as_calloc(n * columns, sizeof *v);
    if (!path || !row || !v)
        exit(EXIT_FAILURE);
    fail_if(array_open_npy(path, &a, &err), &err);
    for (size_t i = 0; i < n; i++) {
        fail_if(array_read(&a, columns, row, &err), &err);
        for (size_t c = 0; c < columns; c++)
            v[i * columns + c] = (float)row[c];
    }
    array_done(&a);
    return v;
}

/* Log loss and errors of predictions, as a line. */
static void evaluate(const char *part, const float *p, const float *y, size_t n)
{
    double loss = 0;
    size_t errors = 0;
    for (size_t i = 0; i < n; i++) {
        double right = y[i] > 0 ? (double)p[i] : 1 - (double)p[i];
        loss -= log(right < 1e-7 ? 1e-7 : right);
        errors += right < 0.5;
    }
    printf("%s: loss %.6f, error %.6f\n", part, loss / (double)n, (double)errors / (double)n);
}

/* The program of the peer. */
static int direct(const char *dir)
{
    const struct xgboost *x = NULL;
    struct as_err err;
    fail_if(xgboost_open(&x, &err), &err);
    float *rows = read_array(dir, "x.npy", COLUMNS), *y = read_array(dir, "y.npy", 1);
    size_t n = (size_t)n_rows, held = n / 4, every = ((size_t)rounds + REPORTS - 1) / REPORTS;
    xgb_matrix m[2] = {matrix(x, rows + held * COLUMNS, y + held, n - held),
                       matrix(x, rows, y, held)};
    xgb_booster b = booster(x, m);
    AS_AUTO(as_freep) char *out = file_join(dir, "direct.npy");
    for (int r = 0; r < rounds; r++) {
        check(x, x->booster_update(b, r, m[0]));
        if (((size_t)r + 1) % every != 0 && r + 1 < rounds)
            continue;
        evaluate("training", predict(x, b, m[0]), y + held, n - held);
        evaluate("held out", predict(x, b, m[1]), y, held);
    }
    fail_if(npy_write(out, NPY_F4, &held, 1, predict(x, b, m[1]), &err), &err);
    return EXIT_SUCCESS;
}

static struct seconds run_direct(const struct table *t)
{
    double cpu = cpu_seconds(RUSAGE_CHILDREN);
    char program[600], text[3][24];
    const long long counts[] = {n_rows, rounds, threads};
    own_path(program, sizeof program);
    for (size_t i = 0; i < AS_ARRAY_LEN(counts); i++)
        (void)snprintf(text[i], sizeof text[i], "%lld", counts[i]);
    int64_t start = clock_mono_ns();
    pid_t pid = fork();
    if (pid == 0) {
        if (chdir(t->dir) != 0 || !freopen("out", "w", stdout))
            _exit(126);
        (void)execl(program, "trees", "--rows", text[0], "--rounds", text[1], "--threads", text[2],
                    "--direct", t->dir, (char *)NULL);
        _exit(127);
    }
    return wait_for(pid, "the direct program", start, cpu);
}

static void report(const char *what, double *value, double *floor, double *peer)
{
    double ratio[2][MAX_TURNS];
    size_t n = (size_t)turns;
    char name[96], note[120];
    for (size_t i = 0; i < n; i++) {
        ratio[0][i] = value[i] / floor[i];
        ratio[1][i] = value[i] / peer[i];
    }
    (void)snprintf(name, sizeof name, "boosted trees, %lld x %zu, %lld rounds, %lld threads, %s",
                   (long long)n_rows, COLUMNS, (long long)rounds, (long long)threads, what);
    (void)snprintf(note, sizeof note, "%.3f of the floor, %.3f of the peer, medians of %zu turns",
                   bench_median(ratio[0], n), bench_median(ratio[1], n), n);
    bench_report(name, bench_median(value, n), "s", bench_median(floor, n), bench_median(peer, n),
                 "XGBoost directly", note);
}

static void compare(const struct xgboost *x, const struct table *t)
{
    double wall[3][MAX_TURNS], cpu[3][MAX_TURNS];
    for (int64_t i = 0; i < turns; i++) {
        const struct seconds s[] = {run_trainer(t), run_bare(x, t->x, t->y), run_direct(t)};
        for (size_t k = 0; k < AS_ARRAY_LEN(s); k++) {
            wall[k][i] = s[k].wall;
            cpu[k][i] = s[k].cpu;
        }
    }
    report("elapsed", wall[0], wall[1], wall[2]);
    report("processor time", cpu[0], cpu[1], cpu[2]);
}

int main(int argc, char **argv)
{
    const char *direct_in = NULL;
    const struct opt options[] = {
        {"rows", 0, OPT_I64, &n_rows, "N", NULL, "rows of the table (100000)"},
        {"rounds", 0, OPT_I64, &rounds, "N", NULL, "rounds of boosting (100)"},
        {"turns", 0, OPT_I64, &turns, "N", NULL, "turns, at most 9 (5)"},
        {"threads", 0, OPT_I64, &threads, "N", NULL, "threads of each (2)"},
        {"direct", 0, OPT_STRING, &direct_in, "DIR", NULL, "be the peer, on the files in DIR"},
        {0},
    };
    const struct xgboost *x = NULL;
    struct as_err err;
    struct table t = {.dir = "/tmp/assay-bench-trees-XXXXXX"};
    if (!bench_start_with("trees", "boosted trees in the trainer, and in XGBoost alone", options,
                          argc, argv))
        return bench_exit();
    if (direct_in)
        return direct(direct_in);
    if (xgboost_open(&x, &err) != AS_OK) {
        bench_skip("boosted trees", "s", err.msg);
        return bench_exit();
    }
    turns = turns < 1 ? 1 : turns > MAX_TURNS ? MAX_TURNS : turns;
    if (n_rows < 100 || rounds < 1 || threads < 1 || !mkdtemp(t.dir))
        return EXIT_FAILURE;
    fill(&t);
    write_job(&t);
    compare(x, &t);
    fail_if(file_remove_tree(t.dir, &err), &err);
    free(t.x);
    free(t.y);
    return bench_exit();
}
