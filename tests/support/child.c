#include "tests/support/child.h"

#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "tests/support/check_main.h"
#include "tests/support/roots.h"
#include "tests/support/temp_folder.h"

static struct as_err err;

char *child_path(const struct child *c, const char *name)
{
    char *path = file_join(c->dir, name);
    ck_assert_ptr_nonnull(path);
    return path;
}

void child_setup(struct child *c)
{
    *c = (struct child){.report = -1, .gone = -1};
    temp_folder_make(c->dir);
}

void child_teardown(struct child *c)
{
    temp_folder_remove(c->dir);
}

void child_write(const struct child *c, const char *name, const void *bytes, size_t len)
{
    AS_AUTO(as_freep) char *path = child_path(c, name);
    ck_ok(file_replace(path, bytes, len, 0644, &err), err);
}

char *child_read(const struct child *c, const char *name, size_t *ret_len)
{
    AS_AUTO(as_freep) char *path = child_path(c, name);
    char *bytes = NULL;
    ck_ok(file_read(path, 1 << 26, &bytes, ret_len, &err), err);
    return bytes;
}

/* Runs in the child after fork: it may only make calls that are safe there. */
static void set_path(const char *name, const char *dir, const char *file)
{
    char path[80];
    (void)snprintf(path, sizeof path, "%s/%s", dir, file);
    (void)setenv(name, path, 1);
}

static void exec_trainer(const struct child *c, const char *seed, const char *option)
{
    char program[512];
    (void)snprintf(program, sizeof program, "%s/trial-runner/train/assay-train", build_root());
    set_path("ASSAY_REPORT", c->dir, "report");
    set_path("ASSAY_CHECKPOINTS", c->dir, "checkpoints");
    set_path("ASSAY_ARTIFACTS", c->dir, "artifacts");
    (void)setenv("ASSAY_SEED", seed, 1);
    (void)setenv("ASSAY_BACKEND", "cpu", 1);
    if (chdir(c->dir) != 0 || !freopen("out", "w", stdout) || !freopen("err", "w", stderr))
        _exit(126);
    if (option)
        (void)execl(program, "assay-train", option, "job.json", (char *)NULL);
    else
        (void)execl(program, "assay-train", "job.json", (char *)NULL);
    _exit(127);
}

void child_start(struct child *c, const char *seed, const char *option)
{
    AS_AUTO(as_freep) char *path = child_path(c, "report");
    (void)unlink(path);
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    c->report = open(path, O_RDWR | O_CLOEXEC);
    ck_assert_int_ge(c->report, 0);
    ck_assert_int_eq(fcntl(c->report, F_SETPIPE_SZ, 4096), 4096);
    c->pid = fork();
    ck_assert_int_ge(c->pid, 0);
    if (c->pid == 0)
        exec_trainer(c, seed, option);
    c->gone = pidfd_open(c->pid, 0);
    ck_assert_int_ge(c->gone, 0);
    c->have = 0;
}

/* Read more of the pipe. Returns false if there is no more and the child has ended. */
static bool read_more(struct child *c)
{
    for (bool has_ended = false;;) {
        struct pollfd fds[2] = {{c->report, POLLIN, 0}, {c->gone, POLLIN, 0}};
        ck_assert_int_gt(poll(fds, 2, PATIENCE_MS), 0);
        if (!(fds[0].revents & POLLIN)) {
            if (has_ended)
                return false;
            /* its last lines may have come after poll() returned: read once more */
            has_ended = (fds[1].revents & POLLIN) != 0;
            continue;
        }
        ssize_t n = read(c->report, c->buf + c->have, sizeof c->buf - c->have);
        ck_assert_int_gt(n, 0);
        c->have += (size_t)n;
        return true;
    }
}

const char *child_line(struct child *c, char *buf, size_t size)
{
    char *end;
    while (!(end = memchr(c->buf, '\n', c->have)))
        if (!read_more(c))
            return NULL;
    size_t n = (size_t)(end - c->buf);
    ck_assert_uint_lt(n, size);
    memcpy(buf, c->buf, n);
    buf[n] = 0;
    c->have -= n + 1;
    memmove(c->buf, end + 1, c->have);
    return buf;
}

bool child_has_ended(const struct child *c)
{
    struct pollfd p = {c->gone, POLLIN, 0};
    return poll(&p, 1, 0) != 0;
}

int child_wait(struct child *c)
{
    int status = 0;
    char line[512];
    while (child_line(c, line, sizeof line))
        ; /* drain the pipe, so that the child never waits for room in it */
    ck_assert_int_eq(waitpid(c->pid, &status, 0), c->pid);
    file_closep(&c->report);
    file_closep(&c->gone);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}
