/* assay-train as the runner sees it: a child with files, an environment, signals and an exit code.
 */
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "data/formats/npy.h"
#include "data/formats/safetensors.h"
#include "base/json.h"
#include "base/rng.h"
#include "tests/support/check_main.h"
#include "tests/support/roots.h"
#include "tests/support/child.h"

static struct as_err err;
static struct child child;

static void setup(void)
{
    child_setup(&child);
}

static void teardown(void)
{
    child_teardown(&child);
}

static void write_job(const char *train, const char *dataset)
{
    AS_AUTO(str_done) struct str b = {0};
    str_printf(&b, "{\"train\":{%s},\"dataset\":{%s}}", train, dataset);
    child_write(&child, "job.json", b.s, b.len);
}

/* A job on the digits that are shipped, with the fields of `train` besides its data set. */
static void digits_job(const char *train)
{
    AS_AUTO(str_done) struct str fields = {0}, data = {0};
    str_printf(&fields, "\"dataset\":\"digits\",%s", train);
    str_printf(&data,
               "\"format\":\"csv\",\"task\":\"classification\",\"target\":\"-1\",\"rows\":1797,"
               "\"features\":64,\"outputs\":10,\"classes\":[\"0\",\"1\",\"2\",\"3\",\"4\",\"5\","
               "\"6\",\"7\",\"8\",\"9\"],\"paths\":{\"table\":\"%s/examples/digits.csv\"}",
               source_root());
    write_job(str_cstr(&fields), str_cstr(&data));
}

static double field(const char *line, const char *name)
{
    JSON_AUTO j = NULL;
    double v = 0;
    ck_ok(json_parse(line, strlen(line), &j, &err), err);
    ck_assert_msg(json_number_get(json_object_get(j, name), &v), "%s in %s", name, line);
    return v;
}

/* The child must end with this code and this in the last line of its stderr. */
static void ends_with(int code, const char *part)
{
    ck_assert_int_eq(child_wait(&child), code);
    AS_AUTO(as_freep) char *text = child_read(&child, "err", NULL);
    size_t n = strlen(text);
    ck_assert_msg(n > 0 && text[n - 1] == '\n', "stderr: %s", text);
    text[n - 1] = 0;
    const char *last = strrchr(text, '\n');
    ck_assert_msg(strstr(last ? last + 1 : text, part) != NULL, "'%s' is not in: %s", part, text);
}

START_TEST(digits)
{
    char line[512];
    double step = 0, error = 1;
    digits_job("\"model\":{\"layers\":[64,32]},\"optimizer\":{\"lr\":0.003},\"epochs\":20");
    child_start(&child, "1", NULL);
    while (child_line(&child, line, sizeof line)) {
        ck_assert_double_eq(field(line, "step"), step + 1);
        step = field(line, "step");
        error = field(line, "val_error");
    }
    ck_assert_int_eq(child_wait(&child), 0);
    ck_assert_double_eq(step, 20);
    ck_assert_double_lt(error, 0.06);

    AS_AUTO(as_freep) char *path = file_join(child.dir, "artifacts/predictions.npy");
    AS_AUTO(as_freep) char *targets = file_join(child.dir, "artifacts/targets.npy");
    AS_AUTO(npy_freep) struct npy *p = NULL, *t = NULL;
    ck_ok(npy_open(path, &p, &err), err);
    ck_ok(npy_open(targets, &t, &err), err);
    ck_assert_uint_eq(npy_header_of(p)->shape[0], 449);
    ck_assert_uint_eq(npy_header_of(p)->shape[1], 10);
    ck_assert_int_eq(npy_header_of(p)->type, NPY_F4);
    ck_assert_int_eq(npy_header_of(t)->type, NPY_I8);
    size_t wrong = 0;
    for (int i = 0; i < 449; i++) {
        double row[10], want, sum = 0;
        size_t best = 0;
        ck_ok(npy_read(p, 10, row, &err), err);
        ck_ok(npy_read(t, 1, &want, &err), err);
        for (size_t c = 0; c < 10; c++) {
            sum += row[c];
            best = row[c] > row[best] ? c : best;
        }
        ck_assert_double_eq_tol(sum, 1, 1e-5);
        wrong += best != (size_t)want;
    }
    ck_assert_double_eq_tol((double)wrong / 449, error,
                            1e-9); /* what was reported is what is there */
    free(as_steal(path));
    path = file_join(child.dir, "artifacts/model.safetensors");
    AS_AUTO(safetensors_freep) struct safetensors *m = NULL;
    ck_ok(safetensors_read(path, 1 << 20, &m, &err), err);
    ck_assert_uint_eq(safetensors_get(m, "layers.1.weight")->shape[1], 32);
    ck_assert_uint_eq(safetensors_get(m, "input.mean")->shape[0], 64);
    ck_assert_str_eq(safetensors_metadata(m, "format"), "assay-model-1");
}
END_TEST

#define LONG_EPOCHS 60
#define LONG_JOB                                                                                   \
    "\"model\":{\"layers\":[64,32],\"dropout\":0.1},\"batch_size\":16,\"optimizer\":{\"kind\":"    \
    "\"sgd\",\"lr\":0.02,\"momentum\":0.9},\"schedule\":{\"kind\":\"cosine\"},\"epochs\":60"

/* With patience: it ends early, and a checkpoint holds the best weights too, here with averages and
 * running statistics. */
#define PATIENT_JOB                                                                                \
    "\"model\":{\"layers\":[64,32],\"norm\":\"batch\"},\"batch_size\":16,\"optimizer\":{"          \
    "\"kind\":\"sgd\",\"lr\":0.05,\"momentum\":0.9,\"ema\":0.8},\"epochs\":60,\"patience\":6"

/* With snapshots: those of earlier cycles are in a checkpoint in the middle of a cycle. */
#define SNAPSHOT_JOB                                                                               \
    "\"model\":{\"layers\":[64,32],\"norm\":\"batch\"},\"batch_size\":16,\"optimizer\":{"          \
    "\"kind\":\"sgd\",\"lr\":0.05,\"momentum\":0.9,\"ema\":0.5},\"epochs\":60,\"schedule\":{"      \
    "\"kind\":\"cosine\",\"cycles\":7,\"snapshots\":5}"

static const char *const long_jobs[] = {LONG_JOB, PATIENT_JOB, SNAPSHOT_JOB};

/* Keep the first report of each step; a later one must be the same text. */
static void take_line(char seen[LONG_EPOCHS + 2][512], const char *line)
{
    size_t step = (size_t)field(line, "step");
    ck_assert_uint_le(step, LONG_EPOCHS + 1);
    if (seen[step][0])
        ck_assert_str_eq(seen[step], line);
    (void)snprintf(seen[step], sizeof seen[step], "%s", line);
}

START_TEST(killed_at_any_moment_it_ends_with_the_same_bits)
{
    static char whole[LONG_EPOCHS + 2][512], parts[LONG_EPOCHS + 2][512];
    char line[512];
    size_t len = 0, len_again = 0;
    struct rng r;
    rng_init(&r, 20261120, 0);
    memset(whole, 0, sizeof whole); /* the job before ran in this process where tests do not fork */
    memset(parts, 0, sizeof parts);
    digits_job(long_jobs[_i]);
    child_start(&child, "5", NULL);
    while (child_line(&child, line, sizeof line))
        take_line(whole, line);
    ck_assert_int_eq(child_wait(&child), 0);
    ck_assert_int_eq(whole[LONG_EPOCHS][0] == 0, _i == 1); /* patience ends it */
    AS_AUTO(as_freep) char *want = child_read(&child, "artifacts/model.safetensors", &len);
    AS_AUTO(as_freep) char *want_p = child_read(&child, "artifacts/predictions.npy", NULL);

    child_teardown(&child);
    child_setup(&child);
    digits_job(long_jobs[_i]);
    int resumed = 0, rounds = 0, code = -1;
    for (; code != 0; rounds++) {
        /* SIGTERM and SIGKILL by turns, after a few lines, wherever the child is by then */
        int sig = rounds % 2 ? SIGKILL : SIGTERM;
        uint64_t after = 1 + rng_below(&r, 9);
        child_start(&child, "5", "--checkpoint-every=1ms");
        for (uint64_t n = 0; child_line(&child, line, sizeof line); n++) {
            resumed += n == 0 && field(line, "step") > 1;
            take_line(parts, line);
            if (n == after && rounds < 12)
                ck_assert_int_eq(kill(child.pid, sig), 0);
        }
        code = child_wait(&child);
        ck_assert_msg(code == 0 || code == 75 || code == -SIGKILL, "code %d", code);
    }
    ck_assert_int_gt(resumed, 0);
    for (size_t i = 1; i <= LONG_EPOCHS + 1; i++)
        ck_assert_str_eq(whole[i], parts[i]);
    AS_AUTO(as_freep) char *got = child_read(&child, "artifacts/model.safetensors", &len_again);
    AS_AUTO(as_freep) char *got_p = child_read(&child, "artifacts/predictions.npy", NULL);
    ck_assert_uint_eq(len, len_again);
    ck_assert_mem_eq(want, got, len);
    ck_assert_mem_eq(want_p, got_p, 128 + sizeof(float) * 449 * 10);
}
END_TEST

START_TEST(sigterm)
{
    char line[512];
    digits_job("\"epochs\":1000000");
    child_start(&child, "1", NULL);
    ck_assert_ptr_nonnull(child_line(&child, line, sizeof line));
    ck_assert_int_eq(kill(child.pid, SIGTERM), 0);
    ck_assert_int_eq(child_wait(&child), 75);
    AS_AUTO(as_freep) char *path = file_join(child.dir, "checkpoints/checkpoint.safetensors");
    AS_AUTO(safetensors_freep) struct safetensors *s = NULL;
    ck_ok(safetensors_read(path, 1 << 24, &s, &err), err);
    int64_t position[2];
    ck_ok(safetensors_copy(s, "position", SAFETENSORS_I64, 2, position, &err), err);
    ck_assert_int_ge(position[0], 1);
}
END_TEST

/* A limit on the size of files stands for a full disk. Checkpoints do not fit, and training
 * continues. At the end the model does not fit either, and the trial asks for another attempt. */
START_TEST(no_room_for_files)
{
    char line[512];
    struct rlimit unlimited, small;
    digits_job("\"epochs\":3,\"model\":{\"kind\":\"mlp\",\"layers\":[256]}");
    (void)signal(SIGXFSZ, SIG_IGN); /* both are inherited */
    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &unlimited), 0);
    small = (struct rlimit){.rlim_cur = 30000, .rlim_max = unlimited.rlim_max};
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &small), 0);
    child_start(&child, "1", "--checkpoint-every=0s");
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &unlimited), 0);
    (void)signal(SIGXFSZ, SIG_DFL);
    int lines = 0;
    while (child_line(&child, line, sizeof line))
        lines++;
    ck_assert_int_eq(lines, 3);
    ends_with(75, "cannot write");
    AS_AUTO(as_freep) char *text = child_read(&child, "err", NULL);
    ck_assert_ptr_nonnull(strstr(text, "going on without a checkpoint"));
}
END_TEST

/* It trains, and SIGTERM stops it in the middle. */
static void train_and_stop(void)
{
    char line[512];
    child_start(&child, "1", NULL);
    ck_assert_ptr_nonnull(child_line(&child, line, sizeof line));
    ck_assert_int_eq(kill(child.pid, SIGTERM), 0);
    ck_assert_int_eq(child_wait(&child), 75);
}

static void leave_a_checkpoint(void)
{
    digits_job("\"epochs\":1000000");
    train_and_stop();
}

/* The checkpoint is damaged: the training begins again, and says so in its log and its report. */
static void begins_again(const char *part)
{
    char line[512];
    child_start(&child, "1", NULL);
    ck_assert_ptr_nonnull(child_line(&child, line, sizeof line));
    ck_assert_msg(as_starts_with(line, "{\"checkpoint_lost\":\"") && strstr(line, part), "%s",
                  line);
    ck_assert_ptr_nonnull(child_line(&child, line, sizeof line));
    ck_assert_double_eq(field(line, "step"), 1);
    ck_assert_int_eq(kill(child.pid, SIGTERM), 0);
    ck_assert_int_eq(child_wait(&child), 75);
    AS_AUTO(as_freep) char *text = child_read(&child, "err", NULL);
    ck_assert_msg(strstr(text, "the trial begins again: ") && strstr(text, part), "%s", text);
}

START_TEST(foreign_and_cut_checkpoints)
{
    size_t len = 0;
    leave_a_checkpoint();
    child_start(&child, "2", NULL);
    ends_with(1, "checkpoint.safetensors: the checkpoint belongs to another job");
    AS_AUTO(as_freep) char *bytes = child_read(&child, "checkpoints/checkpoint.safetensors", &len);
    child_write(&child, "checkpoints/checkpoint.safetensors", bytes, len / 2);
    begins_again("checkpoint.safetensors: ");
}
END_TEST

#define CHECKPOINT "checkpoints/checkpoint.safetensors"

/* In place, a text of the same length. */
static void change(char *bytes, size_t len, const char *from, const char *to)
{
    char *at = memmem(bytes, len, from, strlen(from));
    ck_assert_ptr_nonnull(at);
    memcpy(at, to, strlen(to));
}

/* After a flipped bit in the weights or the position the trial begins again; without a checksum it
 * would continue with another state. A checkpoint of the format without checksums is still read. */
START_TEST(damaged_checkpoints)
{
    size_t len = 0;
    leave_a_checkpoint();
    AS_AUTO(as_freep) char *bytes = child_read(&child, CHECKPOINT, &len);
    const size_t places[] = {len / 2, len - 3};
    for (size_t i = 0; i < AS_ARRAY_LEN(places); i++) {
        bytes[places[i]] ^= 1;
        child_write(&child, CHECKPOINT, bytes, len);
        begins_again("checkpoint.safetensors: the file is damaged: its content has the CRC-32C ");
        bytes[places[i]] ^= 1;
    }
    change(bytes, len, SAFETENSORS_CHECKSUM, "another_word");
    child_write(&child, CHECKPOINT, bytes, len);
    begins_again("checkpoint.safetensors: the file is damaged: it has no checksum");
    change(bytes, len, "assay-checkpoint-3", "assay-checkpoint-2");
    child_write(&child, CHECKPOINT, bytes, len);
    train_and_stop(); /* it goes on */
}
END_TEST

#define PAIR                                                                                       \
    "\"format\":\"npy\",\"task\":\"regression\",\"rows\":200,\"features\":2,\"outputs\":1,"        \
    "\"paths\":{\"features\":\"%s/x.npy\",\"targets\":\"%s/y.npy\"}"

static void write_pair(void)
{
    float x[400], y[200];
    struct rng r;
    rng_init(&r, 8, 8);
    for (size_t i = 0; i < 200; i++) {
        x[2 * i] = (float)(100 * rng_uniform(&r));
        x[2 * i + 1] = (float)rng_normal(&r);
        y[i] = 5000 + 3 * x[2 * i] - 40 * x[2 * i + 1];
    }
    AS_AUTO(as_freep) char *xp = file_join(child.dir, "x.npy");
    AS_AUTO(as_freep) char *yp = file_join(child.dir, "y.npy");
    ck_ok(npy_write(xp, NPY_F4, (size_t[]){200, 2}, 2, x, &err), err);
    ck_ok(npy_write(yp, NPY_F4, (size_t[]){200}, 1, y, &err), err);
}

static void pair_job(const char *train)
{
    char data[512];
    (void)snprintf(data, sizeof data, PAIR, child.dir, child.dir);
    write_job(train, data);
}

START_TEST(regression)
{
    char line[512] = "", last[512] = "";
    write_pair();
    pair_job("\"dataset\":\"pair\",\"model\":{\"kind\":\"linear\"},\"optimizer\":{\"kind\":\"sgd\","
             "\"lr\":0.05},\"epochs\":60,\"report_every\":25");
    child_start(&child, "1", NULL);
    size_t lines = 0;
    for (; child_line(&child, line, sizeof line); lines++)
        memcpy(last, line, sizeof last);
    ck_assert_int_eq(child_wait(&child), 0);
    ck_assert_uint_eq(lines, 3); /* 25, 50, 60 */
    ck_assert_double_gt(field(last, "val_r2"), 0.999);
    ck_assert_double_lt(field(last, "val_rmse"), 2);
    AS_AUTO(as_freep) char *path = file_join(child.dir, "artifacts/targets.npy");
    AS_AUTO(npy_freep) struct npy *t = NULL;
    double v = 0;
    ck_ok(npy_open(path, &t, &err), err);
    ck_assert_int_eq(npy_header_of(t)->type, NPY_F4);
    ck_assert_uint_eq(npy_header_of(t)->shape[1], 1);
    ck_ok(npy_read(t, 1, &v, &err), err);
    ck_assert_double_gt(v, 4500);
}
END_TEST

START_TEST(divergence)
{
    char line[512] = "";
    write_pair();
    pair_job("\"dataset\":\"pair\",\"optimizer\":{\"kind\":\"sgd\",\"lr\":100000},\"epochs\":50");
    child_start(&child, "1", NULL);
    ck_assert_ptr_nonnull(child_line(&child, line, sizeof line));
    ck_assert_ptr_nonnull(strstr(line, "\"val_loss\": \"NaN\""));
    ends_with(1, "diverged: the loss is not finite after epoch 1");
    AS_AUTO(as_freep) char *path = file_join(child.dir, "artifacts/predictions.npy");
    ck_assert_int_ne(access(path, F_OK), 0);
}
END_TEST

START_TEST(bad_jobs)
{
    char data[512];
    (void)snprintf(data, sizeof data, PAIR, child.dir, child.dir);
    child_start(&child, "1", NULL);
    ends_with(1, "job.json");
    pair_job("\"dataset\":\"pair\",\"epochs\":1");
    child_start(&child, "1", NULL);
    ends_with(1, "data set 'pair': cannot open");
    write_pair();
    child_write(&child, "y.npy", "short", 5);
    child_start(&child, "1", NULL);
    ends_with(1, "y.npy: not an NPY file");
    pair_job("\"dataset\":\"pair\",\"epochs\":1,\"model\":{\"layers\":[64,-1]}");
    child_start(&child, "1", NULL);
    ends_with(1, "/train/model/layers/1: found -1, expected a whole number");
    pair_job("\"dataset\":\"pair\",\"epochs\":1,\"model\":{\"layers\":[60000,60000]}");
    child_start(&child, "1", NULL);
    ends_with(1, "parameters, expected at most");
    digits_job("\"epochs\":1");
    child_start(&child, "x", NULL);
    ends_with(1, "ASSAY_SEED: found 'x'");
    child_start(&child, "1", "--no-such-option");
    ends_with(2, "no-such-option");
}
END_TEST

START_TEST(target_that_is_no_number)
{
    char data[256];
    child_write(&child, "t.csv", "a,b\n1,x\n2,y\n3,4\n", 16);
    (void)snprintf(data, sizeof data,
                   "\"format\":\"csv\",\"task\":\"regression\",\"target\":\"b\",\"rows\":3,"
                   "\"features\":1,\"outputs\":1,\"paths\":{\"table\":\"%s/t.csv\"}",
                   child.dir);
    write_job("\"dataset\":\"t\",\"epochs\":1", data);
    child_start(&child, "1", NULL);
    ends_with(1, "column 'b', line 2: found 'x', expected a number");
}
END_TEST

/* Has the child loaded a library of this name? */
static bool child_has_loaded(const char *name)
{
    char path[64];
    AS_AUTO(as_freep) char *maps = NULL;
    (void)snprintf(path, sizeof path, "/proc/%d/maps", (int)child.pid);
    ck_ok(file_read(path, (size_t)1 << 24, &maps, NULL, &err), err);
    ck_assert_ptr_nonnull(strstr(maps, "libc.so"));
    return strstr(maps, name) != NULL;
}

/* Threads of the child after its first epoch; it is stopped then. It loads no library of matrix
 * products where it has its own. */
static size_t threads_of_child(void)
{
    char path[64], line[512];
    size_t n = 0;
    child_start(&child, "1", NULL);
    ck_assert_ptr_nonnull(child_line(&child, line, sizeof line));
    (void)snprintf(path, sizeof path, "/proc/%d/task", (int)child.pid);
    DIR *dir = opendir(path);
    ck_assert_ptr_nonnull(dir);
    for (struct dirent *e; (e = readdir(dir));)
        n += e->d_name[0] != '.';
    closedir(dir);
#if defined(__x86_64__)
    ck_assert_int_eq(child_has_loaded("libopenblas"),
                     !(__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")));
#endif
    ck_assert_int_eq(kill(child.pid, SIGTERM), 0);
    ck_assert_int_eq(child_wait(&child), 75);
    return n;
}

/* With little memory the threads of OpenBLAS would wait for their buffers for ever, and the process
 * for them. */
START_TEST(no_threads_of_openblas)
{
    digits_job("\"epochs\":100000");
    ck_assert_int_eq(setenv("ASSAY_THREADS", "1", 1), 0);
    ck_assert_int_eq(setenv("OPENBLAS_NUM_THREADS", "1", 1), 0);
    size_t expected = threads_of_child();
    ck_assert_int_eq(unsetenv("OPENBLAS_NUM_THREADS"), 0);
    AS_AUTO(as_freep) char *checkpoint = file_join(child.dir, "checkpoints");
    ck_ok(file_remove_tree(checkpoint, &err), err);
    ck_assert_uint_eq(threads_of_child(), expected);
    ck_assert_int_eq(unsetenv("ASSAY_THREADS"), 0);
}
END_TEST

START_TEST(top5_of_two_classes_under_bce)
{
    char data[300], line[512];
    child_write(&child, "t.csv", "a,b\n1,x\n2,y\n3,x\n4,y\n5,x\n6,y\n", 28);
    (void)snprintf(data, sizeof data,
                   "\"format\":\"csv\",\"task\":\"classification\",\"target\":\"b\",\"rows\":6,"
                   "\"features\":1,\"outputs\":2,\"classes\":[\"x\",\"y\"],"
                   "\"paths\":{\"table\":\"%s/t.csv\"}",
                   child.dir);
    write_job("\"dataset\":\"t\",\"epochs\":1,\"loss\":\"bce\",\"metrics\":[\"val_top5\"]", data);
    child_start(&child, "1", NULL);
    ck_assert_ptr_nonnull(child_line(&child, line, sizeof line));
    ck_assert_double_eq(field(line, "val_top5"), 1);
    ck_assert_int_eq(child_wait(&child), 0);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("train_program");
    TCase *t = tcase_create("train_program");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, digits);
    tcase_add_loop_test(t, killed_at_any_moment_it_ends_with_the_same_bits, 0,
                        (int)AS_ARRAY_LEN(long_jobs));
    tcase_add_test(t, sigterm);
    tcase_add_test(t, no_room_for_files);
    tcase_add_test(t, foreign_and_cut_checkpoints);
    tcase_add_test(t, damaged_checkpoints);
    tcase_add_test(t, regression);
    tcase_add_test(t, divergence);
    tcase_add_test(t, bad_jobs);
    tcase_add_test(t, target_that_is_no_number);
    tcase_add_test(t, no_threads_of_openblas);
    tcase_add_test(t, top5_of_two_classes_under_bce);
    suite_add_tcase(s, t);
    return s;
}
