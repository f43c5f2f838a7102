/* The supervisor of `assay up`.
 *
 * All signals are blocked and received in supervisor_wait(), so that the state has one writer and
 * no code runs in a handler. Every wait of `assay up` is a supervisor_wait(): children are reaped
 * and restarted at any time, also while another child is being started or stopped.
 *
 * A child that dies is restarted after a pause that doubles with each death in a row. There is no
 * limit on restarts: a server that cannot reach its database must come back when it can. A command
 * of supervisor_run() is a child with `due_ns` ONCE: it is never restarted, and its row is removed
 * when it ends. */
#include "cli/up/supervisor.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/str.h"
#include "cli/files/process.h"
#include "cli/view/say.h"

#define STEADY_MS 30000 /* a child that ran this long has recovered: its back-off starts anew */
#define LOG_END_BYTES 900
#define WAIT_MS 1000 /* between two looks at what a child waits for */
#define ONCE (-1)    /* `due_ns` of a command that is not restarted */

const struct stop_step stop_runner[] = {{SIGTERM, 5000}, {SIGTERM, 3000}, {0, 0}};
const struct stop_step stop_server[] = {{SIGTERM, 6000}, {0, 0}};
const struct stop_step stop_database[] = {{SIGINT, 6000}, {SIGQUIT, 2000}, {0, 0}};

struct child {
    char *name; /* all owned */
    char *argv[SUPERVISOR_MAX_ARGS + 1];
    char *log_path;
    struct spawn_spec spec; /* its argv and log_path are the ones above */
    const struct stop_step *stop;
    pid_t pid; /* 0: not running */
    int64_t started_ns;
    int64_t due_ns; /* when to start it again; 0: not at all */
    unsigned deaths, in_a_row;
    int last_status;
    supervisor_wait_fn *wait_fn; /* NULL: it never waits */
    const void *wait_ctx;
    bool is_waiting;
};

struct supervisor {
    struct child children[SUPERVISOR_MAX];
    int n;
    char *notes_path;
    bool stopping;  /* no child is started any more */
    bool impatient; /* a signal requested a stop again */
    sigset_t signals;
};

struct supervisor *supervisor_create(const char *notes_path)
{
    struct supervisor *s = as_calloc(1, sizeof *s);
    if (!s || !(s->notes_path = as_strdup(notes_path))) {
        free(s);
        return NULL;
    }
    static const int numbers[] = {SIGCHLD, SIGINT, SIGTERM, SIGHUP};
    (void)sigemptyset(&s->signals);
    for (size_t i = 0; i < AS_ARRAY_LEN(numbers); i++)
        (void)sigaddset(&s->signals, numbers[i]);
    (void)sigprocmask(SIG_BLOCK, &s->signals, NULL);
    return s;
}

static void free_argv(struct child *c)
{
    for (size_t i = 0; i < AS_ARRAY_LEN(c->argv); i++)
        as_freep(&c->argv[i]);
}

static void child_done(struct child *c)
{
    free_argv(c);
    free(c->name);
    free(c->log_path);
    for (size_t i = 0; i < AS_ARRAY_LEN(c->spec.set_env); i++)
        free((char *)c->spec.set_env[i][1]);
    *c = (struct child){0};
}

void supervisor_free(struct supervisor *s)
{
    if (!s)
        return;
    for (int i = 0; i < s->n; i++)
        child_done(&s->children[i]);
    free(s->notes_path);
    free(s);
}

static as_status copy_argv(struct child *c, const char *const *argv, struct as_err *err)
{
    free_argv(c);
    for (size_t i = 0; argv[i]; i++) {
        if (i == SUPERVISOR_MAX_ARGS)
            return as_fail(err, AS_E_TOO_LARGE, "more than %d arguments", SUPERVISOR_MAX_ARGS);
        if (!(c->argv[i] = as_strdup(argv[i])))
            return as_fail_nomem(err);
    }
    c->spec.argv = (const char *const *)c->argv;
    return AS_OK;
}

as_status supervisor_add(struct supervisor *s, const char *name, const struct spawn_spec *spec,
                         const struct stop_step *stop, int *ret, struct as_err *err)
{
    if (s->n == SUPERVISOR_MAX)
        return as_fail(err, AS_E_TOO_LARGE, "more than %d processes", SUPERVISOR_MAX);
    struct child *c = &s->children[s->n];
    *c = (struct child){.spec = *spec, .stop = stop};
    c->name = as_strdup(name);
    c->log_path = as_strdup(spec->log_path);
    c->spec.log_path = c->log_path;
    bool bad = !c->name || !c->log_path;
    for (size_t i = 0; i < AS_ARRAY_LEN(spec->set_env) && spec->set_env[i][0]; i++) {
        c->spec.set_env[i][1] = as_strdup(spec->set_env[i][1]); /* the names are literals */
        bad = bad || !c->spec.set_env[i][1];
    }
    as_status st = bad ? as_fail_nomem(err) : copy_argv(c, spec->argv, err);
    if (st < 0) {
        child_done(c);
        return st;
    }
    *ret = s->n++;
    return AS_OK;
}

as_status supervisor_set_argv(struct supervisor *s, int index, const char *const *argv,
                              struct as_err *err)
{
    return copy_argv(&s->children[index], argv, err);
}

int64_t supervisor_backoff_ms(unsigned deaths_in_a_row)
{
    int64_t ms = 200;
    for (unsigned i = 1; i < deaths_in_a_row && ms < 10000; i++)
        ms *= 2;
    return ms < 10000 ? ms : 10000;
}

/* Write "NAME PID START" for each child that runs. A failure is no error: without the notes, the
 * next `assay up` only waits longer for these children. */
static void write_notes(const struct supervisor *s)
{
    struct str b = {0};
    for (int i = 0; i < s->n; i++)
        if (s->children[i].pid)
            str_printf(&b, "%s %d %llu\n", s->children[i].name, (int)s->children[i].pid,
                       process_start_ticks(s->children[i].pid));
    if (!b.failed)
        (void)!file_replace(s->notes_path, str_cstr(&b), b.len, 0600, NULL);
    str_done(&b);
}

as_status supervisor_start(struct supervisor *s, int index, struct as_err *err)
{
    struct child *c = &s->children[index];
    c->started_ns = clock_mono_ns();
    c->due_ns = 0;
    as_status st = spawn_child(&c->spec, &c->pid, err);
    if (st < 0)
        return st;
    write_notes(s);
    return AS_OK;
}

static void describe_status(int status, char *buf, size_t size)
{
    if (WIFSIGNALED(status))
        (void)snprintf(buf, size, "was killed by signal %d", WTERMSIG(status));
    else
        (void)snprintf(buf, size, "ended with code %d", WEXITSTATUS(status));
}

static void on_death(struct supervisor *s, struct child *c, int status)
{
    char how[60];
    int64_t lived_ms = (clock_mono_ns() - c->started_ns) / NS_PER_MS;
    c->last_status = status;
    c->deaths++;
    c->in_a_row = lived_ms >= STEADY_MS ? 1 : c->in_a_row + 1;
    if (s->stopping || c->due_ns == ONCE) {
        c->pid = 0;
        return;
    }
    int64_t pause_ms = supervisor_backoff_ms(c->in_a_row);
    c->due_ns = clock_mono_ns() + pause_ms * NS_PER_MS;
    describe_status(status, how, sizeof how);
    say("%s (pid %d) %s; starting it again in %" PRId64 " ms", c->name, (int)c->pid, how, pause_ms);
    c->pid = 0;
}

static void reap_children(struct supervisor *s)
{
    int status;
    bool any = false;
    for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0; any = true)
        for (int i = 0; i < s->n; i++)
            if (s->children[i].pid == pid)
                on_death(s, &s->children[i], status);
    if (any)
        write_notes(s);
}

void supervisor_set_wait(struct supervisor *s, int index, supervisor_wait_fn *fn, const void *ctx)
{
    s->children[index].wait_fn = fn;
    s->children[index].wait_ctx = ctx;
}

/* Must the start of this child wait? Then it is due again in WAIT_MS. */
static bool must_wait(struct child *c)
{
    char why[500];
    bool waits = c->wait_fn && c->in_a_row > 1 && c->wait_fn(c->wait_ctx, why, sizeof why);
    if (waits)
        c->due_ns = clock_mono_ns() + WAIT_MS * NS_PER_MS;
    if (waits && !c->is_waiting)
        say("%s is not started again: %s", c->name, why);
    else if (!waits && c->is_waiting)
        say("%s is started again", c->name);
    c->is_waiting = waits;
    return waits;
}

static void start_due(struct supervisor *s)
{
    for (int i = 0; i < s->n && !s->stopping; i++) {
        struct child *c = &s->children[i];
        struct as_err err = {0};
        if (c->pid || c->due_ns <= 0 || clock_mono_ns() < c->due_ns || must_wait(c))
            continue;
        if (supervisor_start(s, i, &err) < 0) {
            say("%s: %s", c->name, err.msg);
            c->due_ns = clock_mono_ns() + supervisor_backoff_ms(++c->in_a_row) * NS_PER_MS;
        }
    }
}

/* Milliseconds until the next child is due, at most timeout_ms. */
static int64_t wait_for_ms(const struct supervisor *s, int64_t timeout_ms)
{
    for (int i = 0; i < s->n; i++) {
        const struct child *c = &s->children[i];
        int64_t left_ms = (c->due_ns - clock_mono_ns()) / NS_PER_MS + 1;
        if (!c->pid && c->due_ns > 0 && left_ms < timeout_ms)
            timeout_ms = left_ms > 0 ? left_ms : 0;
    }
    return timeout_ms;
}

bool supervisor_wait(struct supervisor *s, int64_t timeout_ms)
{
    int64_t ms = wait_for_ms(s, timeout_ms);
    struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * NS_PER_MS};
    int number = sigtimedwait(&s->signals, NULL, &t);
    if (number == SIGINT || number == SIGTERM || number == SIGHUP) {
        s->impatient = s->stopping;
        s->stopping = true;
    }
    reap_children(s);
    start_due(s);
    return !s->stopping;
}

bool supervisor_stopping(const struct supervisor *s)
{
    return s->stopping;
}

unsigned supervisor_deaths(const struct supervisor *s, int index)
{
    return s->children[index].deaths;
}

int supervisor_last_status(const struct supervisor *s, int index)
{
    return s->children[index].last_status;
}

bool supervisor_running(const struct supervisor *s, int index)
{
    return s->children[index].pid != 0;
}

char *supervisor_log_end(const char *path)
{
    AS_AUTO(as_freep) char *text = NULL;
    size_t len = 0;
    if (file_read(path, (size_t)1 << 30, &text, &len, NULL) < 0)
        return as_strdup("");
    while (len > 0 && text[len - 1] == '\n')
        text[--len] = 0;
    const char *from = len > LOG_END_BYTES ? text + len - LOG_END_BYTES : text;
    const char *line = from > text ? strchr(from, '\n') : NULL;
    return as_strdup(line ? line + 1 : from);
}

as_status supervisor_run(struct supervisor *s, const char *name, const struct spawn_spec *spec,
                         int64_t timeout_ms, struct as_err *err)
{
    int index;
    as_status st = supervisor_add(s, name, spec, stop_server, &index, err);
    if (st < 0)
        return st;
    struct child *c = &s->children[index];
    int64_t end_ns = clock_mono_ns() + timeout_ms * NS_PER_MS;
    st = supervisor_start(s, index, err);
    c->due_ns = ONCE;
    while (st == AS_OK && c->pid && supervisor_wait(s, 1000) && clock_mono_ns() < end_ns)
        ;
    if (st == AS_OK && c->pid) {
        st = s->stopping ? as_fail(err, AS_E_UNAVAILABLE, "interrupted")
                         : as_fail(err, AS_E_TIMEOUT, "%s does not end", name);
        supervisor_stop(s, index, index);
    } else if (st == AS_OK && c->last_status != 0) {
        AS_AUTO(as_freep) char *end = supervisor_log_end(spec->log_path);
        char how[60];
        describe_status(c->last_status, how, sizeof how);
        say("%s", end ? end : "");
        st = as_fail(err, AS_E_IO, "%s %s; its output is in %s", name, how, spec->log_path);
    }
    child_done(c);
    s->n--; /* it is the last child, because none is added while it runs */
    return st;
}

/* Send the signal of `step` to the children of the range that run; past the last step that is
 * SIGKILL. Returns how many run. */
static int send_stop_signal(struct supervisor *s, int first, int last, size_t step)
{
    int n = 0;
    for (int i = first; i <= last; i++) {
        struct child *c = &s->children[i];
        if (!c->pid)
            continue;
        int number = SIGKILL;
        for (size_t k = 0; k <= step && c->stop[k].signal; k++)
            number = k == step ? c->stop[k].signal : SIGKILL;
        (void)kill(c->pid, number);
        n++;
    }
    return n;
}

static int count_running(const struct supervisor *s, int first, int last)
{
    int n = 0;
    for (int i = first; i <= last; i++)
        n += s->children[i].pid != 0;
    return n;
}

void supervisor_stop(struct supervisor *s, int first, int last)
{
    if (first < 0 || last < first)
        return;
    const struct stop_step *steps =
        s->children[first].stop; /* children that stop together have the same steps */
    s->stopping = true;
    for (size_t step = 0; send_stop_signal(s, first, last, step) > 0;
         step += steps[step].signal != 0) {
        int64_t wait_ms = steps[step].signal ? steps[step].wait_ms : 1000;
        int64_t end_ns = clock_mono_ns() + wait_ms * NS_PER_MS;
        s->impatient = false;
        for (int64_t left = wait_ms; left > 0 && !s->impatient && count_running(s, first, last) > 0;
             left = (end_ns - clock_mono_ns()) / NS_PER_MS)
            (void)supervisor_wait(s, left);
    }
}
