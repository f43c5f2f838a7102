/* Runs `assay-train` as a process on a data set of random numbers and measures it.
 *
 * The time of an epoch is the distance between two lines that the trainer writes to a fifo, so it
 * does not contain the start of the process. Other figures time the whole process, from start to
 * end. Validation uses a hundredth of the rows, because it is not the subject. */
#include "bench/train/trainer.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "model/plan/plan.h"
#include "base/clock.h"
#include "base/file.h"
#include "data/formats/npy.h"
#include "base/json.h"
#include "base/rng.h"
#include "bench/bench.h"
#include "data/dataset_json.h"
#include "data/dataset_read.h"

#define MAX_EPOCHS 64
#define CLASSES 10
#define HELD_OUT 0.01 /* small, because validation is not the subject */

extern char **environ;

/* A path in the lab's folder; 128 bytes. */
static const char *in_lab(const struct lab *l, const char *name, char *path)
{
    (void)snprintf(path, 128, "%s/%s", l->dir, name);
    return path;
}

/* ---- data ---- */

static bool is_regression(const struct bench_case *c)
{
    return c->classes == 1;
}

static as_status write_arrays(struct lab *l, struct as_err *err)
{
    const struct bench_case *c = l->c;
    size_t n = c->height * c->width * c->channels, classes = c->classes ? c->classes : CLASSES;
    AS_AUTO(as_freep) float *x = as_calloc(l->rows * n, sizeof(*x));
    AS_AUTO(as_freep) int32_t *y = as_calloc(l->rows, sizeof(*y));
    AS_AUTO(as_freep) float *numbers = as_calloc(l->rows, sizeof(*numbers));
    char path[128];
    if (x == NULL || y == NULL || numbers == NULL)
        return as_fail(err, AS_E_NOMEM, "out of memory");
    struct rng r;
    rng_init(&r, 1, n);
    for (size_t i = 0; i < l->rows * n; i++)
        x[i] = (float)(rng_uniform(&r) - 0.5);
    for (size_t i = 0; i < l->rows; i++) {
        y[i] = (int32_t)(i % classes);
        numbers[i] = x[i * n];
    }
    const size_t image[] = {l->rows, c->height, c->width, c->channels}, table[] = {l->rows, n};
    bool is_image = c->height > 1;
    as_status st = npy_write(in_lab(l, "x.npy", path), NPY_F4, is_image ? image : table,
                             is_image ? 4 : 2, x, err);
    if (st < 0)
        return st;
    in_lab(l, "y.npy", path);
    return is_regression(c) ? npy_write(path, NPY_F4, &l->rows, 1, numbers, err)
                            : npy_write(path, NPY_I4, &l->rows, 1, y, err);
}

static as_status write_text(struct lab *l, size_t bytes, struct as_err *err)
{
    AS_AUTO(as_freep) unsigned char *text = as_calloc(bytes, 1);
    char path[128];
    if (text == NULL)
        return as_fail(err, AS_E_NOMEM, "out of memory");
    struct rng r;
    rng_init(&r, 1, bytes);
    for (size_t i = 0; i < bytes; i++)
        text[i] = (unsigned char)(rng_uniform(&r) * 256);
    return file_replace(in_lab(l, "text", path), text, bytes, 0644, err);
}

static json_t *paths_of(const struct lab *l)
{
    char x[128], y[128];
    if (l->c->height == 0)
        return json_pack("{s:s}", "table", in_lab(l, "text", x));
    return json_pack("{s:s, s:s}", "features", in_lab(l, "x.npy", x), "targets",
                     in_lab(l, "y.npy", y));
}

/* ---- documents ---- */

static json_t *train_doc(const struct bench_case *c, int epochs, struct as_err *err)
{
    JSON_AUTO doc = NULL;
    if (json_parse(c->train, strlen(c->train), &doc, err) < 0)
        return NULL;
    JSON_AUTO rest = json_pack("{s:s, s:i, s:i, s:{s:f}}", "dataset", "bench", "epochs", epochs,
                               "batch_size", (int)c->batch, "validation", "fraction", HELD_OUT);
    return rest != NULL && json_object_update(doc, rest) == 0 ? as_steal(doc) : NULL;
}

static json_t *dataset_doc(const struct lab *l)
{
    JSON_AUTO doc = dataset_info_to_json(&l->info);
    if (doc == NULL || json_object_set_new(doc, "paths", paths_of(l)) != 0)
        return NULL;
    return as_steal(doc);
}

static as_status write_job(const struct lab *l, json_t *job, struct as_err *err)
{
    char path[128];
    JSON_AUTO doc = job;
    AS_AUTO(as_freep) char *text = doc != NULL ? json_dumps(doc, JSON_COMPACT) : NULL;
    if (text == NULL)
        return as_fail(err, AS_E_NOMEM, "bench: the job's document cannot be made");
    return file_replace(in_lab(l, "job.json", path), text, strlen(text), 0644, err);
}

static as_status write_single(const struct lab *l, int epochs, struct as_err *err)
{
    return write_job(
        l,
        json_pack("{s:o, s:o}", "train", train_doc(l->c, epochs, err), "dataset", dataset_doc(l)),
        err);
}

static as_status write_group(const struct lab *l, size_t n, int epochs, struct as_err *err)
{
    JSON_AUTO members = json_array();
    for (size_t i = 0; i < n; i++) {
        char id[32], seed[32], report[160];
        (void)snprintf(id, sizeof id, "bench/%zu.1", i + 1);
        (void)snprintf(seed, sizeof seed, "%zu", i);
        (void)snprintf(report, sizeof report, "%s/report.%zu", l->dir, i);
        if (json_array_append_new(members, json_pack("{s:s, s:o, s:s, s:s}", "id", id, "train",
                                                     train_doc(l->c, epochs, err), "seed", seed,
                                                     "report", report)) != 0)
            return as_fail(err, AS_E_NOMEM, "out of memory");
    }
    return write_job(l,
                     json_pack("{s:o, s:i, s:O}", "dataset", dataset_doc(l), "slots", (int)n,
                               "members", members),
                     err);
}

/* ---- processes ---- */

static void program_path(char path[PATH_MAX])
{
    ssize_t n = readlink("/proc/self/exe", path, PATH_MAX - 64);
    path[n > 0 ? n : 0] = '\0';
    char *end = strrchr(path, '/');
    (void)snprintf(end != NULL ? end : path, 64, "/../trial-runner/train/assay-train");
}

/* Start the trainer. Its stderr goes to a file of the lab. */
static as_status start_trainer(const struct lab *l, pid_t *ret, struct as_err *err)
{
    char program[PATH_MAX], job[128], errors[128];
    program_path(program);
    char *argv[] = {program, (char *)in_lab(l, "job.json", job), NULL};
    posix_spawn_file_actions_t files;
    (void)setenv("ASSAY_BACKEND", l->c->backend, 1);
    (void)posix_spawn_file_actions_init(&files);
    (void)posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    (void)posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    (void)posix_spawn_file_actions_addopen(&files, STDERR_FILENO, in_lab(l, "errors", errors),
                                           O_WRONLY | O_CREAT | O_TRUNC, 0644);
    /* As the runner does (trial-runner/process/child_env.c). The peer sets its own value. */
    bool set = getenv("OPENBLAS_NUM_THREADS") == NULL;
    if (set)
        (void)setenv("OPENBLAS_NUM_THREADS", "1", 1);
    int rc = posix_spawn(ret, program, &files, NULL, argv, environ);
    if (set)
        (void)unsetenv("OPENBLAS_NUM_THREADS");
    (void)posix_spawn_file_actions_destroy(&files);
    return rc == 0 ? AS_OK : as_fail(err, AS_E_IO, "%s: %s", program, strerror(rc));
}

static as_status wait_for(const struct lab *l, pid_t pid, struct as_err *err)
{
    int status = 0;
    char path[128];
    AS_AUTO(as_freep) char *text = NULL;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        continue;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return AS_OK;
    if (file_read(in_lab(l, "errors", path), 4096, &text, NULL, NULL) < 0)
        return as_fail(err, AS_E_IO, "the trainer ended with status %d", status);
    return as_fail(err, AS_E_IO, "the trainer ended with status %d: %.180s", status, text);
}

/* What an epoch took: by the clock, and of processors. */
struct epoch {
    double s, cpu_s;
};

/* Processor time of all threads of a process so far. */
static double cpu_seconds(pid_t pid)
{
    clockid_t clock;
    struct timespec t = {0};
    if (clock_getcpuclockid(pid, &clock) == 0)
        (void)clock_gettime(clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / (double)NS_PER_S;
}

/* Medians of what lies between the lines in the fifo, until the trainer ends. The trainer opens the
 * fifo again for each line, so an end of file means nothing. 0: fewer than two lines. */
static struct epoch median_epoch(int fifo, pid_t pid)
{
    char line[4096];
    double times[MAX_EPOCHS], cpu[MAX_EPOCHS], last_cpu = 0;
    size_t n = 0;
    int64_t last = 0;
    int gone = pidfd_open(pid, 0);
    struct pollfd fds[] = {{fifo, POLLIN, 0}, {gone, POLLIN, 0}};
    while (n < MAX_EPOCHS && (poll(fds, 2, -1) > 0 || errno == EINTR)) {
        if ((fds[0].revents & POLLIN) == 0 || read(fifo, line, sizeof line) <= 0)
            break;
        int64_t now = clock_mono_ns();
        double now_cpu = cpu_seconds(pid); /* while it goes on, or as a zombie */
        if (last != 0) {
            cpu[n] = now_cpu - last_cpu;
            times[n++] = (double)(now - last) / (double)NS_PER_S;
        }
        last = now;
        last_cpu = now_cpu;
    }
    (void)close(gone);
    return n > 0 ? (struct epoch){bench_median(times, n), bench_median(cpu, n)} : (struct epoch){0};
}

as_status lab_speed(const struct lab *l, int epochs, struct lab_speed *ret, struct as_err *err)
{
    char path[128];
    struct epoch took = {0};
    as_status st = write_single(l, epochs, err);
    if (st < 0)
        return st;
    (void)unlink(in_lab(l, "fifo", path));
    int fifo = mkfifo(path, 0600) == 0 ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (fifo < 0)
        return as_fail(err, AS_E_IO, "%s: %s", path, strerror(errno));
    (void)setenv("ASSAY_REPORT", path, 1);
    pid_t pid = 0;
    st = start_trainer(l, &pid, err);
    if (st == AS_OK) {
        took = median_epoch(fifo, pid);
        st = wait_for(l, pid, err);
    }
    (void)unsetenv("ASSAY_REPORT");
    (void)close(fifo);
    if (st == AS_OK)
        *ret = (struct lab_speed){(double)l->train_rows / took.s,
                                  1e6 * took.cpu_s / (double)l->train_rows};
    return st;
}

static as_status run_once(const struct lab *l, struct as_err *err)
{
    pid_t pid = 0;
    as_status st = start_trainer(l, &pid, err);
    return st < 0 ? st : wait_for(l, pid, err);
}

as_status lab_alone(const struct lab *l, size_t n, int epochs, double *ret, struct as_err *err)
{
    char path[128];
    as_status st = write_single(l, epochs, err);
    (void)setenv("ASSAY_REPORT", in_lab(l, "report", path), 1);
    int64_t from = clock_mono_ns();
    for (size_t i = 0; i < n && st == AS_OK; i++)
        st = run_once(l, err);
    *ret = (double)(clock_mono_ns() - from) / (double)NS_PER_S;
    (void)unsetenv("ASSAY_REPORT");
    return st;
}

as_status lab_group(const struct lab *l, size_t n, int epochs, double *ret, struct as_err *err)
{
    as_status st = write_group(l, n, epochs, err);
    int64_t from = clock_mono_ns();
    if (st == AS_OK)
        st = run_once(l, err);
    *ret = (double)(clock_mono_ns() - from) / (double)NS_PER_S;
    return st;
}

/* ---- labs ---- */

static as_status inspect(struct lab *l, struct as_err *err)
{
    char x[128], y[128];
    const struct dataset_paths arrays = {.features = in_lab(l, "x.npy", x),
                                         .targets = in_lab(l, "y.npy", y)};
    if (l->c->height > 0)
        return dataset_inspect(&arrays, DATASET_NPY, NULL,
                               is_regression(l->c) ? DATASET_REGRESSION : DATASET_CLASSIFICATION,
                               NULL, &l->info, err);
    const struct dataset_paths text = {.table = in_lab(l, "text", x)};
    return dataset_inspect(&text, DATASET_TEXT, NULL, DATASET_TASK_AUTO, NULL, &l->info, err);
}

static as_status prepare(struct lab *l, struct as_err *err)
{
    struct train_spec spec = {0};
    JSON_AUTO doc = train_doc(l->c, 1, err);
    as_status st = train_spec_parse(doc, "/train", &spec, err);
    if (st < 0)
        return st;
    size_t context = (size_t)spec.model.context;
    /* Enough for the steps after a hundredth is held out. */
    l->rows = l->c->steps * l->c->batch * 100 / 99 + 1;
    st = l->c->height > 0 ? write_arrays(l, err) : write_text(l, l->rows * context + 1, err);
    if (st == AS_OK)
        st = inspect(l, err);
    if (st == AS_OK) {
        struct net_data data = net_data_of(&l->info, NULL);
        l->train_rows = l->rows - train_spec_validation_rows(&spec, l->rows);
        st = net_plan_create(&spec, &data, "/train", &l->plan, err);
    }
    train_spec_done(&spec);
    return st;
}

as_status lab_create(const struct bench_case *c, struct lab *ret, struct as_err *err)
{
    *ret = (struct lab){.dir = "/tmp/assay-bench-XXXXXX", .c = c};
    if (mkdtemp(ret->dir) == NULL) {
        ret->dir[0] = '\0';
        return as_fail(err, AS_E_IO, "no folder in /tmp: %s", strerror(errno));
    }
    return prepare(ret, err);
}

void lab_done(struct lab *l)
{
    if (l->dir[0] != '\0' && file_remove_tree(l->dir, NULL) < 0)
        (void)fprintf(stderr, "train: %s is left behind\n", l->dir);
    dataset_info_done(&l->info);
    net_plan_free(l->plan);
    *l = (struct lab){0};
}
