/* Runs a user's program in a container of podman or apptainer.
 *
 * The engine is the attempt's process. Both engines pass signals and exit codes on. Apptainer's
 * program is a child of it and ends with its process group. Podman's program is a child of conmon,
 * which has left the group on purpose; it would survive a runner that is killed. So each attempt
 * with podman has a guard: a process that waits for the end of a pipe which the runner alone holds
 * open, and then removes the container by its name. The kernel closes the pipe, however the runner
 * ends.
 *
 * Variables: podman reads the value of `--env NAME` from its own environment, so values, which may
 * be secrets, are on no command line. A variable that podman itself would follow, such as HOME,
 * must not be in podman's environment; it is passed as NAME=VALUE. Apptainer takes
 * APPTAINERENV_NAME. */
#include "trial-runner/process/container.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/str.h"

/* Engines follow variables with these names and prefixes. */
static const char *const engine_names[] = {"PATH",   "HOME",  "USER", "LOGNAME",
                                           "TMPDIR", "SHELL", "TERM", "GODEBUG"};
static const char *const engine_prefixes[] = {
    "LD_",     "XDG_",      "CONTAINER", "STORAGE_",    "PODMAN_", "BUILDAH_",
    "DOCKER_", "REGISTRY_", "APPTAINER", "SINGULARITY", "DBUS_",   "_CONTAINERS"};

/* Arguments that grow; a failure is kept until the end. */
struct args {
    char **v; /* owned */
    size_t n, cap;
    bool failed;
};

static void args_done(struct args *a)
{
    for (size_t i = 0; i < a->n; i++)
        free(a->v[i]);
    free(a->v);
}

static void args_add(struct args *a, const char *text)
{
    char *copy = as_strdup(text);
    if (!copy || as_reserve_one(&a->v, a->n + 1, &a->cap, sizeof *a->v, NULL) < 0) {
        free(copy);
        a->failed = true;
        return;
    }
    a->v[a->n++] = copy;
    a->v[a->n] = NULL;
}

static void args_join(struct args *a, const char *one, const char *two)
{
    AS_AUTO(str_done) struct str b = {0};
    str_printf(&b, "%s%s", one, two);
    a->failed = a->failed || b.failed;
    args_add(a, str_cstr(&b));
}

/* The text up to the next separator, which is overwritten; NULL at the end. */
static char *next_part(char **at, const char *separator)
{
    char *part = strsep(at, separator);
    while (part && !*part)
        part = strsep(at, separator);
    return part;
}

/* ---- the engine ---- */

static bool is_installed(const char *program, const struct child_env *e)
{
    const char *path = child_env_get(e, "PATH");
    AS_AUTO(as_freep) char *dirs = as_strdup(path ? path : "/usr/bin:/bin");
    char *at = dirs;
    for (char *dir; (dir = next_part(&at, ":"));) {
        AS_AUTO(as_freep) char *file = file_join(dir, program);
        if (file && access(file, X_OK) == 0)
            return true;
    }
    return false;
}

as_status container_engine(const json_t *container, const struct child_env *e, const char **ret,
                           struct as_err *err)
{
    static const char *const engines[] = {"podman", "apptainer"};
    const char *asked = json_string_value(json_object_get(container, "engine"));
    for (size_t i = 0; i < AS_ARRAY_LEN(engines); i++)
        if ((!asked || as_streq(asked, engines[i])) && is_installed(engines[i], e)) {
            *ret = engines[i];
            return AS_OK;
        }
    return as_fail(err, AS_E_NOT_FOUND, "trial.container: this machine has %s%s",
                   asked ? "no " : "", asked ? asked : "neither podman nor apptainer");
}

void container_name(const char *attempt, char ret[CONTAINER_NAME_SIZE])
{
    char hex[SHA256_HEX_SIZE] = "";
    const char *part = attempt + strlen(attempt);
    for (int slashes = 0; part > attempt; part--)
        if (part[-1] == '/' && ++slashes == 3) /* SWEEP/NUMBER/ATTEMPT */
            break;
    (void)!sha256_of(attempt, strlen(attempt), hex, NULL);
    int n = snprintf(ret, CONTAINER_NAME_SIZE, "assay-%.90s-%.12s", part, hex);
    for (int i = 0; i < n && ret[i]; i++)
        if (ret[i] == '/')
            ret[i] = '-';
}

/* ---- the command line ---- */

static bool is_of_engine(const char *pair)
{
    size_t n = strcspn(pair, "=");
    for (size_t i = 0; i < AS_ARRAY_LEN(engine_names); i++)
        if (strlen(engine_names[i]) == n && memcmp(engine_names[i], pair, n) == 0)
            return true;
    for (size_t i = 0; i < AS_ARRAY_LEN(engine_prefixes); i++)
        if (as_starts_with(pair, engine_prefixes[i]))
            return true;
    return false;
}

/* Pass one variable: its name on the command line, its value in the engine's environment. */
static as_status pass_variable(struct args *a, bool podman, const char *pair, struct child_env *e,
                               struct as_err *err)
{
    AS_AUTO(str_done) struct str name = {0};
    const char *value = strchr(pair, '=') + 1;
    str_printf(&name, "%s%.*s", podman ? "" : "APPTAINERENV_", (int)(value - 1 - pair), pair);
    as_status st = str_check(&name, err);
    if (st < 0)
        return st;
    if (!podman)
        return child_env_set(e, name.s, value, err);
    bool own = is_of_engine(pair);
    args_add(a, "--env");
    args_add(a, own ? pair : name.s);
    return own ? AS_OK : child_env_set(e, name.s, value, err);
}

static as_status pass_variables(struct args *a, bool podman, const struct child_env *vars,
                                struct child_env *e, struct as_err *err)
{
    as_status st = AS_OK;
    for (size_t i = 0; st == AS_OK && i < vars->n; i++)
        st = pass_variable(a, podman, vars->v[i], e, err);
    /* by this the runner finds the engine's own processes when it cleans up (child.h) */
    const char *report = child_env_get(vars, "ASSAY_REPORT");
    return st < 0 || !report ? st : child_env_set(e, "ASSAY_REPORT", report, err);
}

static as_status mount(struct args *a, bool podman, const char *path, const char *suffix,
                       struct as_err *err)
{
    AS_AUTO(str_done) struct str b = {0};
    if (!path || strcmp(path, "/") == 0)
        return AS_OK;
    if (strpbrk(path, ":,"))
        return as_fail(err, AS_E_INVAL,
                       "trial.container: '%.200s' cannot be mounted, because its path contains : "
                       "or ,",
                       path);
    str_printf(&b, "%s:%s%s", path, path, suffix);
    args_add(a, podman ? "--volume" : "--bind");
    args_add(a, str_cstr(&b));
    return str_check(&b, err);
}

static as_status add_mounts(struct args *a, bool podman, const struct container_run *r,
                            struct as_err *err)
{
    as_status st = mount(a, podman, r->folder, "", err);
    if (st < 0 || (st = mount(a, podman, r->attempt, "", err)) < 0 ||
        (st = mount(a, podman, r->cache, ":ro", err)) < 0)
        return st;
    if (r->folder && strcmp(r->folder, "/") != 0) {
        args_add(a, podman ? "--workdir" : "--pwd");
        args_add(a, r->folder);
    }
    return AS_OK;
}

static void add_gpus(struct args *a, bool podman, const char *gpus)
{
    AS_AUTO(as_freep) char *list = as_strdup(gpus);
    char *at = podman ? list : NULL;
    if (!podman && *gpus)
        args_add(a, "--nv"); /* of those, CUDA_VISIBLE_DEVICES names the trial's own */
    for (char *gpu; (gpu = next_part(&at, ","));) {
        args_add(a, "--device");
        args_join(a, "nvidia.com/gpu=", gpu);
    }
}

/* Do the document's options choose a network? */
static bool chooses_network(const json_t *container)
{
    size_t i;
    json_t *option;
    json_array_foreach(json_object_get(container, "options"), i, option)
    {
        const char *text = json_string_value(option);
        size_t n = strcspn(text, "=");
        if ((n == strlen("--net") && as_starts_with(text, "--net")) ||
            (n == strlen("--network") && as_starts_with(text, "--network")))
            return true;
    }
    return false;
}

static void add_begin(struct args *a, bool podman, const struct container_run *r)
{
    static const char *const podmans[] = {
        "podman", "run", "--rm", "--replace",
        /* so that folders of the machine can be read as they are */
        "--security-opt", "label=disable", "--security-opt", "no-new-privileges", "--name"};
    static const char *const apptainers[] = {"apptainer", "exec", "--cleanenv", "--no-home"};
    for (size_t i = 0; podman && i < AS_ARRAY_LEN(podmans); i++)
        args_add(a, podmans[i]);
    for (size_t i = 0; !podman && i < AS_ARRAY_LEN(apptainers); i++)
        args_add(a, apptainers[i]);
    if (podman)
        args_add(a, r->name);
    if (podman && r->is_rank && !chooses_network(r->container))
        args_add(a, "--network=host");
}

static void add_end(struct args *a, const struct container_run *r, char *const *program)
{
    size_t i;
    json_t *option;
    json_array_foreach(json_object_get(r->container, "options"), i, option)
        args_add(a, json_string_value(option));
    args_add(a, json_string_value(json_object_get(r->container, "image")));
    for (; program && *program; program++)
        args_add(a, *program);
}

as_status container_wrap(const struct container_run *r, struct child_spec *spec, char *const *base,
                         struct as_err *err)
{
    AS_AUTO(args_done) struct args a = {0};
    AS_AUTO(child_env_done) struct child_env e = {0};
    bool podman = as_streq(r->engine, "podman");
    as_status st = child_env_init(&e, base, err);
    if (st < 0)
        return st;
    add_begin(&a, podman, r);
    if ((st = add_mounts(&a, podman, r, err)) < 0 ||
        (st = pass_variables(&a, podman, &spec->env, &e, err)) < 0)
        return st;
    add_gpus(&a, podman, r->gpus);
    add_end(&a, r, spec->argv);
    if (a.failed)
        return as_fail_nomem(err);
    st = child_spec_replace_argv(spec, (const char *const *)a.v, a.n, err);
    if (st < 0)
        return st;
    struct child_env old = spec->env;
    spec->env = e;
    e = old; /* freed */
    return AS_OK;
}

int container_wait_status(int wait_status)
{
    int code = WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : 0;
    return code > 128 && code <= 128 + SIGRTMAX ? code - 128 : wait_status;
}

/* ---- the guard ---- */

/* Between fork and exec: async-signal-safe calls only. */
static _Noreturn void become_guard(int in_fd, const char *const *argv, char *const *env)
{
    sigset_t none;
    int null = open("/dev/null", O_WRONLY);
    setsid();
    for (int sig = 1; sig < NSIG; sig++)
        signal(sig, SIG_DFL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    if (dup2(in_fd, 0) < 0 || dup2(null, 1) < 0 || dup2(null, 2) < 0)
        _exit(127);
    close_range(3, ~0U, 0);
    execve("/bin/sh", (char *const *)argv, env);
    _exit(127);
}

as_status container_guard(const char *attempt, char *const *base, int *ret_fd, struct as_err *err)
{
    char name[CONTAINER_NAME_SIZE];
    const char *argv[] = {
        "sh",          "-c", "cat; exec podman rm --force --ignore --time 0 \"$1\"",
        "assay-guard", name, NULL};
    AS_AUTO(child_env_done) struct child_env e = {0};
    int fds[2];
    container_name(attempt, name);
    as_status st = child_env_init(&e, base, err); /* without ASSAY_REPORT: it is no stray */
    if (st < 0)
        return st;
    if (pipe2(fds, O_CLOEXEC) < 0)
        return as_fail(err, AS_E_IO, "pipe: %s", strerror(errno));
    pid_t pid = fork();
    if (pid == 0)
        become_guard(fds[0], argv, e.v);
    close(fds[0]);
    if (pid < 0) {
        close(fds[1]);
        return as_fail(err, AS_E_IO, "fork: %s", strerror(errno));
    }
    *ret_fd = fds[1];
    return AS_OK;
}
