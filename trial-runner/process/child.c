/* Starts processes of trials and makes sure that nothing of them stays.
 *
 * Start: in the control group of the trial (clone_into.h, decision 7017), or by vfork(), because
 * fork() copies the tables of the runner's memory, and then each page that either of the two
 * writes, for a process that throws all of it away (decision 7016). Until exec the process has the
 * runner's memory, and the thread that makes it waits. So it makes async-signal-safe calls only,
 * and writes nothing but its stack and errno. No signal
 * reaches it before its handlers are gone. It reports a failed chdir or exec through a pipe that
 * exec closes, so the caller learns of it as an error and not as exit code 127.
 *
 * End: a trial may start processes that leave its process group (setsid). They inherit its
 * environment, and ASSAY_REPORT in it names the attempt's folder, which no other process has.
 * Process ids are no safe mark, because the system uses them again. Where the host allows a control
 * group, none of them can leave that (cgroup.h). */
#include "trial-runner/process/child.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/str.h"
#include "trial-runner/process/clone_into.h"
#include "trial-runner/process/program_path.h"

#define ENVIRON_MAX (1 << 20)
#define CGROUP_WAIT_MS 2000 /* for killed processes of a control group */

void child_spec_done(struct child_spec *s)
{
    for (size_t i = 0; s->argv && s->argv[i]; i++)
        free(s->argv[i]);
    free(s->argv);
    free(s->directory);
    free(s->cgroup);
    child_env_done(&s->env);
    *s = (struct child_spec){0};
}

as_status child_spec_set_argv(struct child_spec *s, const char *const *args, size_t n,
                              struct as_err *err)
{
    bool ok = (s->argv = as_calloc(n + 1, sizeof *s->argv)) != NULL;
    for (size_t i = 0; ok && i < n; i++)
        ok = (s->argv[i] = as_strdup(args[i])) != NULL;
    return ok ? AS_OK : as_fail_nomem(err);
}

as_status child_spec_replace_argv(struct child_spec *s, const char *const *args, size_t n,
                                  struct as_err *err)
{
    struct child_spec fresh = {0}, old = {.argv = s->argv};
    as_status st = child_spec_set_argv(&fresh, args, n, err);
    if (st < 0) {
        child_spec_done(&fresh);
        return st;
    }
    s->argv = fresh.argv;
    child_spec_done(&old);
    return AS_OK;
}

/* What the child writes to the error pipe if it cannot become the program. */
enum exec_step { AT_EXEC, AT_CHDIR, AT_CONFINEMENT };
struct exec_error {
    int number;
    enum exec_step at;
};

static _Noreturn void fail_in_child(int fd, enum exec_step at)
{
    struct exec_error e = {.number = errno, .at = at};
    ssize_t n = write(fd, &e, sizeof e);
    (void)n;
    _exit(127);
}

/* What a process gets, which the one who makes it has prepared. */
struct start {
    const struct child_spec *spec;
    struct program_path program;
    pid_t parent;
    int out_fd, err_fd; /* ends of pipes */
    int entry;          /* of the control group that it has to enter, or -1 */
};

static void default_signals(void)
{
    const struct sigaction fallback = {.sa_handler = SIG_DFL};
    sigset_t none;
    for (int sig = 1; sig < NSIG; sig++)
        sigaction(sig, &fallback, NULL); /* fails for a few, which have no other action anyway */
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

/* In the new process: see the top of this file. */
static _Noreturn void become_program(const void *arg)
{
    const struct start *start = arg;
    const struct child_spec *s = start->spec;
    const struct rlimit no_core = {0, 0};
    int in_fd = s->stdin_fd ? *s->stdin_fd : open("/dev/null", O_RDONLY), err_fd = start->err_fd;
    setsid();
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != start->parent) /* the parent died before the line above */
        _exit(127);
    setrlimit(RLIMIT_CORE, &no_core);
    if (s->cores)
        (void)sched_setaffinity(0, sizeof *s->cores, s->cores); /* a cpuset may have shrunk: run */
    default_signals();
    if (dup2(in_fd, 0) < 0 || dup2(start->out_fd, 1) < 0 || dup2(start->out_fd, 2) < 0)
        fail_in_child(err_fd, AT_EXEC);
    if (s->directory && chdir(s->directory) < 0)
        fail_in_child(err_fd, AT_CHDIR);
    if (s->confinement && !confinement_enter(s->confinement, start->entry, s->is_engine))
        fail_in_child(err_fd, AT_CONFINEMENT);
    if (err_fd != 3 && dup3(err_fd, 3, O_CLOEXEC) < 0)
        fail_in_child(err_fd, AT_EXEC);
    close_range(4, ~0U, 0);
    program_path_exec(&start->program);
    fail_in_child(3, AT_EXEC);
}

static pid_t begin_in_group(struct start *start)
{
    AS_AUTO(file_closep)
    int folder = open(start->spec->cgroup, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return clone_into(folder, become_program, start);
}

/* It enters its group, if it has one. On failure with start->entry -1 that cannot be entered. */
static pid_t begin_outside(struct start *start)
{
    if (start->spec->cgroup && (start->entry = cgroup_open_entry(start->spec->cgroup)) < 0)
        return -1;
    pid_t pid = vfork(); /* NOLINT(clang-analyzer-security.insecureAPI.vfork) */
    if (pid == 0)
        become_program(start); /* NOLINT(clang-analyzer-unix.Vfork) */
    return pid;
}

/* Make the process, with all signals blocked until its handlers are gone. Returns its id, or -1
 * with errno. */
static pid_t make_process(struct start *start)
{
    sigset_t all, mask;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &mask);
    pid_t pid = start->spec->cgroup ? begin_in_group(start) : -1;
    if (pid < 0)
        pid = begin_outside(start);
    int failure = errno;
    pthread_sigmask(SIG_SETMASK, &mask, NULL);
    errno = failure;
    return pid;
}

static as_status exec_failed(const struct child_spec *s, const struct exec_error *e,
                             struct as_err *err)
{
    as_status code = e->number == ENOENT || e->number == ENOTDIR ? AS_E_NOT_FOUND : AS_E_INVAL;
    if (e->at == AT_CONFINEMENT)
        return as_fail(err, AS_E_IO, "cannot confine the process: %s", strerror(e->number));
    if (e->at == AT_CHDIR)
        return as_fail(err, code, "cannot enter the directory '%s': %s", s->directory,
                       strerror(e->number));
    return as_fail(err, code, "cannot run '%s': %s", s->argv[0], strerror(e->number));
}

/* Create a pipe whose ends are above 3, so that the child can use 0 to 3 without closing them. */
static int high_pipe(int fds[2])
{
    int low[2];
    if (pipe2(low, O_CLOEXEC) < 0)
        return -1;
    fds[0] = fcntl(low[0], F_DUPFD_CLOEXEC, 4);
    fds[1] = fcntl(low[1], F_DUPFD_CLOEXEC, 4);
    close(low[0]);
    close(low[1]);
    return fds[0] < 0 || fds[1] < 0 ? -1 : 0;
}

/* Take a descriptor out of a variable whose cleanup would close it. */
static int take_fd(int *fd)
{
    int v = *fd;
    *fd = -1;
    return v;
}

/* Make the control group of the process, where there are any. */
static as_status make_cgroup(struct child_spec *s, struct as_err *err)
{
    if (!s->confinement || !s->confinement->cgroups)
        return AS_OK;
    const struct cgroup_limits limits = {.memory_bytes = s->confinement->limits.memory_bytes,
                                         .processes = s->confinement->limits.processes,
                                         .cpus = s->cpus};
    return cgroup_make(s->confinement->cgroups, &limits, &s->cgroup, err);
}

/* Returns when the program runs. out_w, err_r, err_w: ends of pipes. */
static as_status start_program(const struct child_spec *s, int out_w, int err_r, int *err_w,
                               pid_t *ret_pid, struct as_err *err)
{
    struct start start = {
        .spec = s, .parent = getpid(), .out_fd = out_w, .err_fd = *err_w, .entry = -1};
    const char *path = child_env_get(&s->env, "PATH");
    as_status st = program_path_init(&start.program, s->argv, s->env.v, path, err);
    if (st < 0)
        return st;
    pid_t pid = make_process(&start);
    int failure = errno;
    bool is_shut_out = s->cgroup && start.entry < 0;
    file_closep(&start.entry);
    program_path_done(&start.program);
    close(take_fd(err_w));
    if (pid < 0 && is_shut_out)
        return as_fail(err, AS_E_IO, "cannot enter the control group %.150s: %s", s->cgroup,
                       strerror(failure));
    if (pid < 0)
        return as_fail(err, AS_E_IO, "vfork: %s", strerror(failure));
    struct exec_error e;
    ssize_t n;
    do {
        n = read(err_r, &e, sizeof e);
    } while (n < 0 && errno == EINTR);
    if (n == (ssize_t)sizeof e) { /* else the end of the pipe: exec has closed it */
        siginfo_t info;
        waitid(P_PID, (id_t)pid, &info, WEXITED);
        return exec_failed(s, &e, err);
    }
    *ret_pid = pid;
    return AS_OK;
}

as_status child_spawn(struct child_spec *s, pid_t *ret_pid, int *ret_out_fd, struct as_err *err)
{
    AS_AUTO(file_closep) int out_r = -1, out_w = -1, err_r = -1, err_w = -1;
    int fds[2] = {-1, -1};
    bool ok = high_pipe(fds) == 0;
    out_r = fds[0];
    out_w = fds[1];
    fds[0] = fds[1] = -1;
    ok = ok && high_pipe(fds) == 0;
    err_r = fds[0];
    err_w = fds[1];
    if (!ok || fcntl(out_r, F_SETFL, O_NONBLOCK) < 0)
        return as_fail(err, AS_E_IO, "pipe: %s", strerror(errno));
    as_status st = make_cgroup(s, err);
    if (st == AS_OK)
        st = start_program(s, out_w, err_r, &err_w, ret_pid, err);
    if (st == AS_OK) {
        *ret_out_fd = take_fd(&out_r);
        return AS_OK;
    }
    (void)cgroup_end(s->cgroup, 0);
    free(s->cgroup);
    s->cgroup = NULL;
    return st;
}

as_status child_spawn_on_socket(struct child_spec *s, pid_t *ret_pid, int *ret_out_fd, int *ret_fd,
                                struct as_err *err)
{
    AS_AUTO(file_closep) int ours = -1, theirs = -1;
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
        return as_fail(err, AS_E_IO, "socketpair: %s", strerror(errno));
    ours = pair[0];
    theirs = pair[1];
    if (fcntl(ours, F_SETFL, O_NONBLOCK) < 0)
        return as_fail(err, AS_E_IO, "fcntl: %s", strerror(errno));
    int *given = s->stdin_fd;
    s->stdin_fd = &theirs;
    as_status st = child_spawn(s, ret_pid, ret_out_fd, err);
    s->stdin_fd = given;
    if (st != AS_OK)
        return st;
    *ret_fd = take_fd(&ours);
    return AS_OK;
}

void child_signal_group(pid_t pid, int sig)
{
    if (pid > 1)
        kill(-pid, sig);
}

/* Does a variable in the environment of the process begin with `marker`? */
static bool carries_marker(pid_t pid, const char *marker)
{
    char path[32];
    AS_AUTO(as_freep) char *text = NULL;
    size_t len = 0, n = strlen(marker);
    snprintf(path, sizeof path, "/proc/%d/environ", (int)pid);
    if (file_read(path, ENVIRON_MAX, &text, &len, NULL) < 0)
        return false;
    for (size_t at = 0; at < len; at += strlen(text + at) + 1)
        if (len - at >= n && memcmp(text + at, marker, n) == 0)
            return true;
    return false;
}

/* Pids that were killed already. A killed process stays visible for a while and counts once. */
struct killed {
    pid_t *v;
    size_t n, cap;
};

static size_t kill_if_stray(long pid, const char *marker, struct killed *k)
{
    if (pid <= 1 || pid == getpid() || !carries_marker((pid_t)pid, marker))
        return 0;
    for (size_t i = 0; i < k->n; i++)
        if (k->v[i] == pid)
            return 0;
    if (kill((pid_t)pid, SIGKILL) < 0 ||
        as_reserve_one(&k->v, k->n, &k->cap, sizeof *k->v, NULL) < 0)
        return 0;
    k->v[k->n++] = (pid_t)pid;
    return 1;
}

static size_t kill_among_all(const char *marker, struct killed *k)
{
    size_t killed = 0;
    DIR *d = opendir("/proc");
    for (struct dirent *e; d && (e = readdir(d));)
        killed += kill_if_stray(strtol(e->d_name, NULL, 10), marker, k);
    if (d)
        closedir(d);
    return killed;
}

/* Look at the children of every thread of this process. */
static size_t kill_among_mine(const char *marker, struct killed *k)
{
    size_t killed = 0;
    DIR *d = opendir("/proc/self/task");
    for (struct dirent *e; d && (e = readdir(d));) {
        char path[300];
        AS_AUTO(as_freep) char *text = NULL;
        size_t len = 0;
        if (e->d_name[0] == '.')
            continue;
        snprintf(path, sizeof path, "/proc/self/task/%s/children", e->d_name);
        if (file_read(path, ENVIRON_MAX, &text, &len, NULL) < 0)
            continue;
        char *at = text, *end;
        for (long pid; (pid = strtol(at, &end, 10)) > 0 && end > at; at = end)
            killed += kill_if_stray(pid, marker, k);
    }
    if (d)
        closedir(d);
    return killed;
}

/* Kill strays until a look at all processes finds no new one, because a stray may fork meanwhile.
 * With orphans_first the look at all processes is skipped if this process has adopted no stray. */
static size_t kill_strays(const char *dir, bool orphans_first)
{
    AS_AUTO(str_done) struct str marker = {0};
    struct killed k = {0};
    str_printf(&marker, "ASSAY_REPORT=%s/", dir);
    bool look = !marker.failed && (!orphans_first || kill_among_mine(marker.s, &k) > 0);
    while (look && kill_among_all(marker.s, &k) > 0)
        ;
    free(k.v);
    return k.n;
}

size_t child_kill_strays(const char *dir)
{
    return kill_strays(dir, false);
}

size_t child_take_end(pid_t pid, const char *cgroup, const char *dir, int *ret_wait_status)
{
    child_signal_group(pid, SIGKILL); /* before the reap: the zombie keeps the group's id in use */
    while (waitpid(pid, ret_wait_status, 0) < 0 && errno == EINTR)
        ;
    /* If the group still has processes, they are dying. We adopt a child of theirs only after that,
     * so only a look at every process finds it now. */
    bool more = kill(-pid, 0) == 0;
    size_t killed = cgroup_end(cgroup, CGROUP_WAIT_MS);
    return killed + kill_strays(dir, !more);
}
