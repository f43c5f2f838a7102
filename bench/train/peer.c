/* Starts PyTorch's processes and sends them cases.
 *
 * OpenBLAS decides when it is loaded which kernels it uses, and the choice may be wrong for a new
 * core. So there is one process for each entry of `cores`, and the best rate counts. The variables
 * that a process needs are set only for the duration of its posix_spawn, and then restored. */
#include "bench/train/peer.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/mem.h"
#include "bench/answer.h"
#include "bench/peer_process.h"

#define SCRIPT BENCH_TRAIN_DIR "/peer_torch.py"
#define OPENMP_BLAS "/usr/lib/x86_64-linux-gnu/openblas-openmp"

/* OPENBLAS_CORETYPE of each process. Debian's OpenBLAS takes some new cores for a Haswell. Where it
 * does not, its own choice may be better. */
static const char *const cores[] = {NULL, "SkylakeX"};

static struct peer_process torches[AS_ARRAY_LEN(cores)];
static char version[64];
static bool looked; /* and found none: do not search again */

const char *torch_version(void)
{
    return version[0] != '\0' ? version : NULL;
}

void torch_close(void)
{
    for (size_t i = 0; i < AS_ARRAY_LEN(torches); i++)
        peer_process_end(&torches[i]);
}

static void set_or_not(const char *name, const char *value)
{
    (void)(value != NULL ? setenv(name, value, 1) : unsetenv(name));
}

/* Start `python` with variables for this child alone. */
static as_status spawn(struct peer_process *t, const char *core, const char *python,
                       struct as_err *err)
{
    char *argv[] = {(char *)python, (char *)SCRIPT, NULL};
    bool has_openmp = access(OPENMP_BLAS "/libopenblas.so.0", R_OK) == 0;
    const char *now = getenv("OPENBLAS_CORETYPE");
    char before[64];
    (void)snprintf(before, sizeof before, "%s", now != NULL ? now : "");
    set_or_not("OPENBLAS_CORETYPE", core);
    if (has_openmp) { /* use it before the library of the system's alternatives */
        set_or_not("LD_LIBRARY_PATH", OPENMP_BLAS);
        set_or_not("LD_PRELOAD", OPENMP_BLAS "/libopenblas.so.0");
    }
    as_status st = peer_process_start(argv, true, t, err);
    if (has_openmp) {
        set_or_not("LD_LIBRARY_PATH", NULL);
        set_or_not("LD_PRELOAD", NULL);
    }
    set_or_not("OPENBLAS_CORETYPE", now != NULL ? before : NULL);
    return st;
}

static as_status start_one(struct peer_process *t, const char *core, const char *python,
                           struct as_err *err)
{
    JSON_AUTO hello = NULL;
    if (t->pid != 0)
        return AS_OK;
    as_status st = spawn(t, core, python, err);
    if (st < 0)
        return st;
    st = answer_read(t->from, "PyTorch", &hello, err);
    if (st < 0) {
        peer_process_end(t);
        return st;
    }
    (void)snprintf(version, sizeof version, "PyTorch %s",
                   json_string_value(json_object_get(hello, "torch")));
    return AS_OK;
}

/* Whether this machine can run the kernels of OpenBLAS for that core. */
static bool runs(const char *core)
{
#if defined(__x86_64__)
    return core == NULL ||
           (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
            __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"));
#else
    return core == NULL;
#endif
}

static as_status start_all(const char *python, struct as_err *err)
{
    as_status st = AS_OK;
    for (size_t i = 0; st == AS_OK && i < AS_ARRAY_LEN(cores); i++)
        if (runs(cores[i]))
            st = start_one(&torches[i], cores[i], python, err);
    return st;
}

static as_status start(struct as_err *err)
{
    const char *pythons[] = {getenv("ASSAY_PYTHON"), "/usr/bin/python3", "python3"};
    for (size_t i = 0; i < AS_ARRAY_LEN(pythons) && !looked; i++)
        if (pythons[i] != NULL && start_all(pythons[i], err) == AS_OK)
            return AS_OK;
    looked = true;
    return as_fail(
        err, AS_E_UNAVAILABLE,
        "no interpreter imports torch: install python3-torch, or name one in ASSAY_PYTHON");
}

/* Better of two figures that may be NaN, as the first ones are. */
static void keep_best(struct torch_speed *best, double rate, double cpu_us)
{
    best->rows_per_s = fmax(best->rows_per_s, rate);
    best->cpu_us = fmin(best->cpu_us, cpu_us);
}

static as_status ask(struct peer_process *t, const json_t *request, struct torch_speed *best,
                     struct as_err *err)
{
    JSON_AUTO reply = NULL;
    AS_AUTO(as_freep) char *text = json_dumps(request, JSON_COMPACT);
    if (text == NULL)
        return as_fail(err, AS_E_NOMEM, "out of memory");
    if (dprintf(t->to, "%s\n", text) < 0)
        return as_fail(err, AS_E_IO, "PyTorch's process takes no requests");
    as_status st = answer_read(t->from, "PyTorch", &reply, err);
    if (st == AS_OK)
        keep_best(best, json_number_value(json_object_get(reply, "rate")),
                  json_number_value(json_object_get(reply, "cpu_us")));
    return st;
}

as_status torch_speed(const json_t *c, int threads, double seconds, const char *device,
                      struct torch_speed *best, struct as_err *err)
{
    as_status st = start(err);
    if (st < 0)
        return st;
    JSON_AUTO request = json_pack("{s:O, s:i, s:f, s:s}", "case", c, "threads", threads, "seconds",
                                  seconds, "device", device);
    if (request == NULL)
        return as_fail(err, AS_E_NOMEM, "out of memory");
    for (size_t i = 0; st == AS_OK && i < AS_ARRAY_LEN(torches); i++)
        if (torches[i].pid != 0)
            st = ask(&torches[i], request, best, err);
    if (st < 0)
        torch_close();
    return st;
}
