/* assay-runner: takes trials from an Assay server and runs them on this machine.
 *
 * The main thread runs the main loop (supervise.c), because it must fork: the kernel kills a trial
 * when the thread that forked it ends. Signals are blocked in all threads and read from a
 * descriptor, so nothing runs in a signal handler. A lock on the work folder keeps a second runner
 * away; it waits until the first has left. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/private_env.h"
#include "base/file.h"
#include "base/log.h"
#include "trial-runner/agent/agent.h"
#include "trial-runner/attempt/identity.h"

#define EXIT_DENIED 4
#define EXIT_USAGE 64
#define LOCK_LOOK_MS 200

/* Block the signals in this thread, and so in every thread that it starts. Returns a descriptor
 * that delivers them. */
static int block_signals(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGHUP);
    sigaddset(&set, SIGUSR1); /* what batch systems send before the end of a job */
    sigaddset(&set, SIGUSR2);
    sigaddset(&set, SIGCHLD);
    signal(SIGPIPE, SIG_IGN);
    if (pthread_sigmask(SIG_BLOCK, &set, NULL) != 0)
        return -1;
    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* Wait for a signal that asks the runner to leave, at most so long. */
static bool is_asked_to_leave(int signal_fd, int wait_ms)
{
    struct pollfd p = {.fd = signal_fd, .events = POLLIN};
    return poll(&p, 1, wait_ms) > 0;
}

/* Lock the work folder. Of two runners on one folder the second waits until the first has left, or
 * until it is asked to leave itself; then *ret_fd stays -1. */
static as_status lock_work(const char *work, int signal_fd, int *ret_fd, struct as_err *err)
{
    for (bool logged = false;; logged = true) {
        as_status st = result_journal_lock(work, ret_fd, err);
        if (st != AS_E_CONFLICT)
            return st;
        if (!logged)
            log_write(LOG_INFO, "waiting for another runner to release the work folder", "work=%s",
                      work);
        if (is_asked_to_leave(signal_fd, LOCK_LOOK_MS))
            return AS_OK;
    }
}

static as_status on_found(void *arg, const struct attempt_id *id, struct trial_end *r,
                          struct as_err *err)
{
    AS_AUTO(str_done) struct str label = {0};
    attempt_id_label(id, &label);
    log_write(LOG_INFO,
              r->outcome == OUTCOME_NONE ? "delivering output of the previous runner"
                                         : "delivering a result of the previous runner",
              "%s", str_cstr(&label));
    return agent_hold_result(arg, id, r, err);
}

/* Clean up after a runner that was killed on this folder: kill its processes, remove its folders,
 * and deliver its results. */
static as_status recover_work(struct agent *a, struct as_err *err)
{
    AS_AUTO(as_freep) char *trials = file_join(a->options->work, "trials");
    if (!trials)
        return as_fail_nomem(err);
    size_t n = child_kill_strays(trials);
    AS_AUTO(as_freep) char *groups = file_join(trials, GROUPS_FOLDER);
    as_status st = groups ? file_remove_tree(groups, err) : as_fail_nomem(err);
    if (st != AS_OK)
        return st;
    if (n)
        log_write(LOG_WARN, "killed processes of the previous runner", "count=%zu", n);
    return result_journal_recover(a->options->work, on_found, a, err);
}

static as_status run_threads(struct agent *a, int signal_fd, struct as_err *err)
{
    pthread_t claim, beat, use;
    if (pthread_create(&beat, NULL, heartbeat_main, a) != 0)
        return as_fail(err, AS_E_NOMEM, "cannot start a thread");
    if (pthread_create(&claim, NULL, claim_main, a) != 0) {
        struct as_err why = {.code = AS_E_NOMEM, .msg = "cannot start a thread"};
        agent_fail(a, &why);
        pthread_join(beat, NULL);
        *err = why;
        return why.code;
    }
    bool measures = pthread_create(&use, NULL, measure_use_main, a) == 0;
    if (!measures)
        log_write(LOG_WARN, "what trials use is not measured", "error=\"cannot start a thread\"");
    supervise(a, signal_fd);
    client_interrupt(a->claim_client);
    pthread_mutex_lock(&a->lock);
    a->quitting = true;
    agent_changed_locked(a);
    *err = a->fatal;
    if (err->code == AS_OK && a->refused.code != AS_OK)
        (void)as_fail(err, AS_E_DENIED, "the server refuses this runner's token: %s",
                      a->refused.msg);
    pthread_mutex_unlock(&a->lock);
    pthread_join(claim, NULL);
    pthread_join(beat, NULL);
    if (measures)
        pthread_join(use, NULL);
    if (err->code == AS_OK)
        heartbeat_leave(a);
    return err->code;
}

/* The caller calls agent_done(a), also on failure. */
static as_status run_agent(struct agent *a, const struct options *o, int signal_fd,
                           struct as_err *err)
{
    as_status st = agent_init(a, o, err);
    if (st < 0)
        return st;
    st = recover_work(a, err);
    if (st < 0)
        return st;
    return run_threads(a, signal_fd, err);
}

/* What stands around its trials, which the log says once. */
static as_status confine_trials(struct options *o, struct confinement *c, struct as_err *err)
{
    AS_AUTO(str_done) struct str words = {0};
    as_status st = confinement_open(&o->trial_limits, o->work, c, err);
    if (st < 0)
        return st;
    o->confinement = c;
    confinement_words(c, &words);
    st = str_check(&words, err);
    if (st == AS_OK)
        log_write(LOG_INFO, "trials are confined", "by=\"%s\" no_cgroup=\"%s\"", str_cstr(&words),
                  c->why_none);
    return st;
}

static as_status run_runner(struct options *o, struct as_err *err)
{
    struct agent a = {0};
    AS_AUTO(confinement_done) struct confinement confinement = {0};
    AS_AUTO(file_closep) int lock_fd = -1;
    AS_AUTO(file_closep) int signal_fd = block_signals();
    if (signal_fd < 0)
        return as_fail(err, AS_E_IO, "signalfd: %s", strerror(errno));
    if (o->die_with_parent) {
        pid_t parent = getppid();
        prctl(PR_SET_PDEATHSIG, SIGTERM);
        if (getppid() != parent)
            return as_fail(err, AS_E_CONFLICT, "the parent process has ended already");
    }
    prctl(PR_SET_CHILD_SUBREAPER, 1); /* orphans of trials become our children */
    as_status st = client_trust(o->ca_file, err);
    if (st < 0)
        return st;
    st = lock_work(o->work, signal_fd, &lock_fd, err);
    if (st < 0 || lock_fd < 0)
        return st;
    st = identity_load(o->work, &o->secret, err);
    if (st == AS_OK)
        st = confine_trials(o, &confinement, err);
    if (st == AS_OK) {
        st = run_agent(&a, o, signal_fd, err);
        agent_give_up(&a); /* after a failure: undelivered results stay on disk */
        agent_done(&a);
    }
    o->confinement = NULL;
    return st;
}

int main(int argc, char **argv)
{
    AS_AUTO(options_done) struct options o = {0};
    struct as_err err = {0};
    as_status st = private_env_hide(&err);
    if (st == AS_OK)
        st = options_parse(&o, argc, argv, &err);
    if (st < 0) {
        fprintf(stderr, "assay-runner: %s\nTry assay-runner --help.\n", err.msg);
        return st == AS_E_INVAL ? EXIT_USAGE : 1;
    }
    if (o.help)
        options_help();
    if (o.version)
        printf("assay-runner %s\n", ASSAY_VERSION);
    if (o.help || o.version)
        return 0;
    log_setup("assay-runner", o.level);
    if (o.gpus.note[0])
        log_write(LOG_WARN, "GPUs", "note=\"%s\"", o.gpus.note);
    for (size_t i = 0; i < o.gpus.n; i++)
        log_write(LOG_INFO, "GPU", "gpu=%s memory_mib=%lld", o.gpus.v[i].id,
                  (long long)(o.gpus.v[i].memory_bytes >> 20));
    json_object_seed(0);
    st = run_runner(&o, &err);
    if (st < 0)
        log_write(LOG_ERROR, "ended", "error=\"%s\"", err.msg);
    return st == AS_OK ? 0 : st == AS_E_DENIED ? EXIT_DENIED : 1;
}
