#include "bench/train/peer.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/json.h"
#include "base/mem.h"

#define SCRIPT BENCH_TRAIN_DIR "/peer_torch.py"
#define OPENMP_BLAS "/usr/lib/x86_64-linux-gnu/openblas-openmp"

extern char **environ;

static struct {
    pid_t pid; /* 0: not running */
    int to;
    FILE *from;
    char version[64];
    bool looked; /* in vain: do not look again */
} torch;

const char *torch_version(void)
{
    return torch.version[0] != '\0' ? torch.version : NULL;
}

void torch_close(void)
{
    if (torch.pid == 0)
        return;
    (void)close(torch.to);
    (void)fclose(torch.from);
    (void)waitpid(torch.pid, NULL, 0);
    torch.pid = 0;
}

static as_status read_answer(json_t **ret, struct as_err *err)
{
    AS_AUTO(as_freep) char *line = NULL;
    size_t cap = 0;
    ssize_t len = getline(&line, &cap, torch.from);
    if (len <= 0)
        return as_fail(err, AS_E_IO, "PyTorch's process ended");
    as_status st = json_parse(line, (size_t)len, ret, err);
    if (st < 0)
        return st;
    const char *said = json_string_value(json_object_get(*ret, "error"));
    if (said == NULL)
        return AS_OK;
    st = as_fail(err, AS_E_IO, "PyTorch: %s", said);
    json_decref(*ret);
    *ret = NULL;
    return st;
}

/* Start `python` with pipes on both ends. */
static as_status spawn(const char *python, struct as_err *err)
{
    int in[2], out[2];
    if (pipe2(in, O_CLOEXEC) != 0)
        return as_fail(err, AS_E_IO, "no pipe");
    if (pipe2(out, O_CLOEXEC) != 0) {
        (void)close(in[0]);
        (void)close(in[1]);
        return as_fail(err, AS_E_IO, "no pipe");
    }
    char *argv[] = {(char *)python, (char *)SCRIPT, NULL};
    posix_spawn_file_actions_t files;
    (void)posix_spawn_file_actions_init(&files);
    (void)posix_spawn_file_actions_adddup2(&files, in[0], STDIN_FILENO);
    (void)posix_spawn_file_actions_adddup2(&files, out[1], STDOUT_FILENO);
    (void)posix_spawn_file_actions_addopen(&files, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    /* For this child alone: put before what the system's alternatives chose. */
    bool has_openmp = access(OPENMP_BLAS "/libopenblas.so.0", R_OK) == 0;
    if (has_openmp) {
        (void)setenv("LD_LIBRARY_PATH", OPENMP_BLAS, 1);
        (void)setenv("LD_PRELOAD", OPENMP_BLAS "/libopenblas.so.0", 1);
    }
    int failed = posix_spawnp(&torch.pid, python, &files, NULL, argv, environ);
    if (has_openmp) {
        (void)unsetenv("LD_LIBRARY_PATH");
        (void)unsetenv("LD_PRELOAD");
    }
    (void)posix_spawn_file_actions_destroy(&files);
    (void)close(in[0]);
    (void)close(out[1]);
    torch.to = in[1];
    torch.from = fdopen(out[0], "r");
    if (failed == 0 && torch.from != NULL)
        return AS_OK;
    torch.pid = 0;
    (void)close(in[1]);
    (void)(torch.from != NULL ? fclose(torch.from) : close(out[0]));
    return as_fail(err, AS_E_UNAVAILABLE, "%s does not start", python);
}

static as_status try_start(const char *python, struct as_err *err)
{
    JSON_AUTO hello = NULL;
    as_status st = spawn(python, err);
    if (st < 0)
        return st;
    st = read_answer(&hello, err);
    if (st < 0) {
        torch_close();
        return st;
    }
    (void)snprintf(torch.version, sizeof torch.version, "PyTorch %s",
                   json_string_value(json_object_get(hello, "torch")));
    return AS_OK;
}

static as_status start(struct as_err *err)
{
    const char *pythons[] = {getenv("ASSAY_PYTHON"), "/usr/bin/python3", "python3"};
    if (torch.pid != 0)
        return AS_OK;
    (void)signal(SIGPIPE, SIG_IGN);
    for (size_t i = 0; i < AS_ARRAY_LEN(pythons) && !torch.looked; i++)
        if (pythons[i] != NULL && try_start(pythons[i], err) == AS_OK)
            return AS_OK;
    torch.looked = true;
    return as_fail(
        err, AS_E_UNAVAILABLE,
        "no interpreter imports torch: install python3-torch, or name one in ASSAY_PYTHON");
}

static as_status ask(const json_t *request, json_t **ret, struct as_err *err)
{
    AS_AUTO(as_freep) char *text = json_dumps(request, JSON_COMPACT);
    if (text == NULL)
        return as_fail(err, AS_E_NOMEM, "out of memory");
    if (dprintf(torch.to, "%s\n", text) < 0)
        return as_fail(err, AS_E_IO, "PyTorch's process takes no requests");
    return read_answer(ret, err);
}

as_status torch_rate(const json_t *c, int threads, double seconds, const char *device, double *ret,
                     struct as_err *err)
{
    as_status st = start(err);
    if (st < 0)
        return st;
    JSON_AUTO request = json_pack("{s:O, s:i, s:f, s:s}", "case", c, "threads", threads, "seconds",
                                  seconds, "device", device);
    JSON_AUTO reply = NULL;
    if (request == NULL)
        return as_fail(err, AS_E_NOMEM, "out of memory");
    st = ask(request, &reply, err);
    if (st < 0) {
        torch_close();
        return st;
    }
    *ret = json_number_value(json_object_get(reply, "rate"));
    return AS_OK;
}
