#include "trial-runner/attempt/attempt_start.h"

#include <unistd.h>

#include "base/log.h"
#include "base/str.h"
#include "trial-runner/process/container.h"

/* Make the command line that of the container's engine. */
static as_status enter_container(struct attempt *a, const char *gpus, struct as_err *err)
{
    char name[CONTAINER_NAME_SIZE];
    container_name(a->dir, name);
    const struct container_run r = {
        .container = a->launch.container,
        .engine = a->launch.engine,
        .name = name,
        .folder = a->launch.folder,
        .attempt = a->dir,
        .cache = access(a->options->cache, R_OK) == 0 ? a->options->cache : NULL,
        .gpus = gpus,
        .is_rank = a->rank != NULL};
    a->launch.spec.is_engine = true;
    return container_wrap(&r, &a->launch.spec, environ, err);
}

static void guard_container(struct attempt *a)
{
    struct as_err err = {0};
    if (as_streq(a->launch.engine, "podman") &&
        container_guard(a->dir, environ, &a->process.guard_fd, &err) < 0)
        log_write(LOG_WARN, "a container is not guarded", "%s error=\"%s\"", a->label, err.msg);
}

as_status attempt_start(struct attempt *a, const char *gpus, struct as_err *err)
{
    as_status st = a->launch.container ? enter_container(a, gpus, err) : AS_OK;
    if (st == AS_OK)
        st = child_spawn(&a->launch.spec, &a->process.pid, &a->process.out_fd, err);
    if (st == AS_OK && a->launch.container)
        guard_container(a);
    return st;
}
