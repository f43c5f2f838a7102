/* The main loop: starts processes, reads their output, stops them, reaps them, and drains.
 *
 * One thread does all of this, because a process must be forked, signalled and reaped by one owner:
 * a process id is safe to signal only until it is reaped. The thread does no HTTP and touches no
 * large file, so a slow server or disk cannot delay a signal.
 *
 * Each round copies the lists of attempts and groups and looks at all of them, whatever woke it. A
 * wake-up is only a hint, so a lost or superfluous one does no harm, and a round with nothing to do
 * costs little. Only main removes attempts, so the copies stay valid for the round.
 *
 * What a signal or an exit means is decided in verdict.c. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/notify.h"
#include "base/number.h"
#include "trial-runner/agent/agent.h"
#include "trial-runner/collect/collector.h"
#include "trial-runner/process/container.h"
#include "trial-runner/process/time_limit.h"
#include "trial-runner/attempt/attempt_start.h"
#include "trial-runner/attempt/process_output.h"
#include "trial-runner/rank/rank.h"
#include "trial-runner/rank/rank_process.h"

/* For an unreachable server when the runner leaves; briefly where the server ends with this
 * program (--die-with-parent), and for one that refuses the token. */
#define PATIENCE_MS 30000
#define PATIENCE_BRIEF_MS 5000
#define LAST_LINE_MAX 1500
#define RANK_LAST_LINES 5    /* in its reason: only the log of the leader is kept */
#define TOGETHER_MS 1000     /* signals within that time are one request */
#define GROUP_LEAVE_MS 10000 /* for a process whose members have all ended */

struct loop {
    struct agent *agent;
    int signal_fd;
    struct attempt **attempts; /* this round's copy; only main removes them from the agent's list */
    size_t n, cap;
    struct group_process **groups; /* likewise */
    size_t n_groups, cap_groups;
    struct pollfd *fds;
    size_t fds_cap;
    bool draining, forced;
    int64_t draining_since_ns;
    int64_t idle_since_ns;
    struct notify_watchdog watchdog;
    int64_t childless_since_ns; /* while draining; 0: some child runs */
    char buf[OUTPUT_BYTES];
};

/* Copy the lists of attempts and groups. If memory is out, keep the old copies. */
static void copy_lists(struct loop *l)
{
    struct agent *a = l->agent;
    pthread_mutex_lock(&a->lock);
    if (a->n > l->cap && as_grow(&l->attempts, a->cap, sizeof *l->attempts, NULL) == AS_OK)
        l->cap = a->cap;
    if (a->n_groups > l->cap_groups &&
        as_grow(&l->groups, a->cap_groups, sizeof *l->groups, NULL) == AS_OK)
        l->cap_groups = a->cap_groups;
    if (a->n <= l->cap && a->n_groups <= l->cap_groups) {
        if (a->n)
            memcpy(l->attempts, a->attempts, a->n * sizeof *a->attempts);
        if (a->n_groups)
            memcpy(l->groups, a->groups, a->n_groups * sizeof *a->groups);
        l->n = a->n;
        l->n_groups = a->n_groups;
    }
    pthread_mutex_unlock(&a->lock);
}

/* A line of a group goes to the log of each member that runs at that moment. */
struct group_lines {
    const struct loop *loop;
    const struct group_process *group;
};

static void on_group_line(void *arg, const char *text, size_t len)
{
    const struct group_lines *to = arg;
    for (size_t k = 0; k < to->loop->n; k++)
        if (to->loop->attempts[k]->group == to->group && to->loop->attempts[k]->process.joined)
            attempt_add_output(to->loop->attempts[k], text, len);
}

static void read_group_output(struct loop *l, struct group_process *g)
{
    struct group_lines to = {.loop = l, .group = g};
    size_t n;
    for (int i = 0;
         i < OUTPUT_ROUNDS && (n = output_read_pipe(&g->out_fd, l->buf, OUTPUT_BYTES)) > 0; i++)
        group_output_add(&g->output, l->buf, n, on_group_line, &to);
}

static void launch_attempt(struct loop *l, struct attempt *t)
{
    struct as_err err = {0};
    stop_why asked = attempt_asked(t);
    if (asked != STOP_NONE) {
        attempt_end(t, verdict_unstarted(asked), NULL, verdict_stop_reason(asked));
        return;
    }
    int64_t now_ns = clock_mono_ns(); /* before it: a busy machine may return here late */
    as_status st = t->group  ? group_process_add_member(t->group, t, &err)
                   : t->rank ? rank_process_start(t, l->attempts, l->n, &err)
                             : attempt_start(t, t->gpus, &err);
    if (st == AS_E_CONFLICT) { /* its group has ended meanwhile, and the attempt was not started */
        attempt_end(t, OUTCOME_RELEASED, NULL, err.msg);
        return;
    }
    if (st < 0) {
        log_write(LOG_WARN, "a trial cannot be started", "%s error=\"%s\"", t->label, err.msg);
        attempt_note(t, "%s", err.msg);
        bool ours = st == AS_E_IO || st == AS_E_NOMEM;
        attempt_end(t, ours ? OUTCOME_RETRY : OUTCOME_FAILED, NULL, err.msg);
        return;
    }
    stopping_begin(&t->process.stopping, now_ns, t->claimed.timeout_ms, t->claimed.grace_ms);
    t->process.joined = t->group != NULL;
    if (t->launch.collector)
        collector_began(t->launch.collector);
    log_write(LOG_DEBUG, "trial started", "%s pid=%d", t->label,
              (int)(t->group ? t->group->pid : t->process.pid));
    attempt_began(t, t->group ? t->group->pid : t->process.pid, now_ns);
    ahead_wake_claims(l->agent);
}

/* Has its process ended, although it is not reaped yet? Then it ended in time: nothing stops it. */
static bool has_ended(const struct attempt *t)
{
    siginfo_t info = {0};
    return t->process.pid &&
           waitid(P_PID, (id_t)t->process.pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
           info.si_pid == t->process.pid;
}

/* Send the signal that is due. A member is stopped by a request to the trainer instead of SIGTERM,
 * with a checkpoint if another attempt may go on from it. If it does not end within its grace
 * period, the whole process is killed, and the other members are tried again. */
static void stop_if_due(struct attempt *t)
{
    if (t->rank && t->rank->gang.elastic) {
        rank_process_stop_if_due(t);
        return;
    }
    stopping_ask(&t->process.stopping, attempt_asked(t));
    if (stopping_next_ns(&t->process.stopping) <= clock_mono_ns() && has_ended(t))
        return;
    switch (stopping_step(&t->process.stopping, clock_mono_ns())) {
    case STOP_SEND_TERM:
        if (t->process.joined)
            group_process_stop_member(t->group, t, t->process.stopping.why < STOP_PRUNE);
        else
            child_signal_group(t->process.pid, SIGTERM);
        break;
    case STOP_SEND_KILL:
        attempt_note_killed(t);
        child_signal_group(t->process.joined ? t->group->pid : t->process.pid, SIGKILL);
        break;
    case STOP_SEND_NONE:
        break;
    }
}

/* A member has ended. Its exit means the same as the exit code of a process. */
static void end_member(struct attempt *t, int exit_code, const char *error)
{
    AS_AUTO(verdict_done) struct verdict v = {0};
    t->process.joined = false;
    stopping_ask(&t->process.stopping, attempt_asked(t));
    /* << 8: the wait status of a process that exited with this code */
    verdict_of(&t->process.stopping, exit_code << 8, error ? error : "", &v);
    attempt_end(t, v.outcome, &v.exit_code, str_cstr(&v.reason));
}

/* Record a throughput. If the group has the size that this runner asked for, and it would now ask
 * for a larger one, close the group for new members, so that the next group is larger. */
static void note_throughput(struct agent *a, struct group_process *g, const struct control_event *e)
{
    struct as_err err = {0};
    pthread_mutex_lock(&a->lock);
    as_status st = group_sizes_note(&a->sizes, g->shape, e->members, e->rows_per_second, &err);
    if (g->max_members == g->asked_for && group_sizes_next(&a->sizes, g->shape) > g->max_members)
        g->closed = true;
    pthread_mutex_unlock(&a->lock);
    if (st != AS_OK)
        log_write(LOG_WARN, "a throughput is not recorded", "error=\"%s\"", err.msg);
}

/* The trainer has room for so many members only. Those that are too many go back to the queue, and
 * the runner asks for smaller groups of this shape from now on. */
static void bound_group(struct loop *l, struct group_process *g, int64_t members)
{
    struct agent *a = l->agent;
    struct as_err err = {0};
    pthread_mutex_lock(&a->lock);
    bool bounds = members > 0 && members < g->max_members;
    size_t surplus = bounds && g->held > (size_t)members ? g->held - (size_t)members : 0;
    as_status st = AS_OK;
    if (bounds) {
        g->max_members = members;
        g->most_held = g->most_held < (size_t)members ? g->most_held : (size_t)members;
        st = group_sizes_bound(&a->sizes, g->shape, members, &err);
    }
    pthread_mutex_unlock(&a->lock);
    if (bounds)
        log_write(LOG_INFO, "a group is smaller than asked for: the device is full",
                  "group=%s members=%lld returned=%zu", g->id, (long long)members, surplus);
    if (st != AS_OK)
        log_write(LOG_WARN, "the size of a group is not recorded", "error=\"%s\"", err.msg);
    for (size_t i = l->n; i-- > 0 && surplus > 0;)
        if (l->attempts[i]->group == g && attempt_phase_get(l->attempts[i]) < ATTEMPT_ENDED) {
            attempt_ask_stop(l->attempts[i], STOP_CROWDED);
            surplus--;
        }
}

/* The member that an event names, or NULL. */
static struct attempt *find_member(struct loop *l, const struct group_process *g, const char *name)
{
    char id[GROUP_MEMBER_ID_SIZE];
    for (size_t i = 0; i < l->n; i++) {
        struct attempt *t = l->attempts[i];
        group_process_member_id(t, id);
        if (t->group == g && t->process.joined && strcmp(id, name) == 0)
            return t;
    }
    return NULL;
}

static void on_group_event(void *arg, struct group_process *g, const struct control_event *e)
{
    struct loop *l = arg;
    struct attempt *t = e->id ? find_member(l, g, e->id) : NULL;
    if (e->kind == CONTROL_THROUGHPUT)
        note_throughput(l->agent, g, e);
    if (e->kind == CONTROL_READY)
        bound_group(l, g, e->members);
    if (e->kind == CONTROL_STARTED)
        log_write(LOG_DEBUG, "member trains", "trial=%s step=%lld", e->id, (long long)e->step);
    if (e->kind == CONTROL_LOG && t) {
        attempt_add_output(t, e->text, strlen(e->text));
        attempt_add_output(t, "\n", 1);
    }
    if (e->kind == CONTROL_ENDED && t) {
        read_group_output(l, g);
        end_member(t, (int)e->exit, e->error);
    }
}

/* The group's process has ended, and this member had not. After a crash the server lets each member
 * run alone, so that the next crash hits only the member that causes it. */
static void end_with_group(struct attempt *t, int wait_status)
{
    const char *last = t->group->output.last;
    AS_AUTO(verdict_done) struct verdict v = {0};
    AS_AUTO(str_done) struct str line = {0};
    t->process.joined = false;
    stopping_ask(&t->process.stopping, attempt_asked(t));
    if (*last) {
        str_printf(&line, "%.*s", LAST_LINE_MAX, last);
    } else {
        pthread_mutex_lock(&t->lock);
        tail_last_line(&t->tail, LAST_LINE_MAX, &line);
        pthread_mutex_unlock(&t->lock);
    }
    verdict_of(&t->process.stopping, wait_status, str_cstr(&line), &v);
    if (v.outcome == OUTCOME_COMPLETED || (v.outcome == OUTCOME_FAILED && WIFSIGNALED(wait_status)))
        v.outcome = OUTCOME_RETRY;
    if (v.outcome == OUTCOME_RETRY) {
        str_clear(&v.reason);
        str_printf(&v.reason, "the process of its group ended (%s %d): %s",
                   WIFSIGNALED(wait_status) ? "signal" : "exit",
                   WIFSIGNALED(wait_status) ? WTERMSIG(wait_status) : WEXITSTATUS(wait_status),
                   str_cstr(&line));
    }
    attempt_end(t, v.outcome, &v.exit_code, str_cstr(&v.reason));
}

static void take_group_end(struct loop *l, struct group_process *g)
{
    int status = 0;
    pthread_mutex_lock(&l->agent->lock);
    g->closed = true;
    pthread_mutex_unlock(&l->agent->lock);
    read_group_output(l, g);
    group_output_end(&g->output, on_group_line, &(struct group_lines){.loop = l, .group = g});
    group_process_take_end(g, on_group_event, l, &status);
    if (WIFEXITED(status) && WEXITSTATUS(status) == EXIT_TRY_AGAIN)
        agent_note_fault(l->agent, g->gpu_taken, g->dir);
    for (size_t i = 0; i < l->n; i++)
        if (l->attempts[i]->group == g && l->attempts[i]->process.joined)
            end_with_group(l->attempts[i], status);
}

/* The process is a zombie: take its end and judge it. */
static void take_end(struct loop *l, struct attempt *t)
{
    AS_AUTO(verdict_done) struct verdict v = {0};
    AS_AUTO(str_done) struct str line = {0};
    int status = 0;
    if (t->launch.collector)
        collector_ended(t->launch.collector);
    size_t strays = child_take_end(t->process.pid, t->launch.spec.cgroup, t->dir, &status);
    file_closep(&t->process.guard_fd);
    status = t->launch.container ? container_wait_status(status) : status;
    if (strays)
        log_write(LOG_INFO, "processes that a trial left were killed", "%s count=%zu", t->label,
                  strays);
    output_read(t, l->buf, true);
    if (t->process.out_fd >= 0)
        close(t->process.out_fd);
    t->process.out_fd = -1;
    if (t->rank) {
        rank_process_talk(t, l->attempts, l->n); /* what it said last */
        rank_process_ended(t);
    }
    t->process.pid = 0;
    if (WIFEXITED(status) && WEXITSTATUS(status) == EXIT_TRY_AGAIN)
        agent_note_fault(l->agent, t->hold.gpu_taken, t->dir);
    stopping_ask(&t->process.stopping, attempt_asked(t));
    pthread_mutex_lock(&t->lock);
    tail_last_lines(&t->tail, t->rank ? RANK_LAST_LINES : 1, LAST_LINE_MAX, &line);
    pthread_mutex_unlock(&t->lock);
    verdict_of(&t->process.stopping, status, str_cstr(&line), &v);
    attempt_end(t, v.outcome, &v.exit_code, str_cstr(&v.reason));
}

/* Reap every child that has ended: trials, and orphans that this process adopted as subreaper. */
static void reap_children(struct loop *l)
{
    for (;;) {
        siginfo_t info = {0};
        struct attempt *t = NULL;
        struct group_process *g = NULL;
        /* WNOWAIT keeps the zombie, so that its process group keeps its id (child_take_end). */
        if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) < 0 || info.si_pid == 0)
            return;
        for (size_t i = 0; i < l->n; i++)
            if (l->attempts[i]->process.pid == info.si_pid)
                t = l->attempts[i];
        for (size_t i = 0; i < l->n_groups; i++)
            if (l->groups[i]->pid == info.si_pid)
                g = l->groups[i];
        if (t) {
            agent_free_slot_early(l->agent, t);
            take_end(l, t);
        } else if (g)
            take_group_end(l, g);
        else
            waitpid(info.si_pid, NULL, 0);
    }
}

static void start_drain(struct loop *l, const char *why)
{
    struct agent *a = l->agent;
    log_write(LOG_INFO, "leaving", "why=\"%s\" trials=%zu", why, l->n);
    notify_send("STOPPING=1");
    l->draining = true;
    l->draining_since_ns = clock_mono_ns();
    pthread_mutex_lock(&a->lock);
    a->draining = true;
    agent_changed_locked(a);
    for (size_t i = 0; i < a->n; i++)
        if (!a->attempts[i]->recovered)
            attempt_ask_stop(a->attempts[i], STOP_DRAIN);
    for (size_t i = 0; i < a->n_groups; i++)
        a->groups[i]->closed = true;
    pthread_mutex_unlock(&a->lock);
    client_interrupt(a->claim_client);
}

static void kill_all(struct loop *l)
{
    log_write(LOG_WARN, "killing the running trials", "trials=%zu", l->n);
    l->forced = true;
    for (size_t i = 0; i < l->n; i++) {
        l->attempts[i]->process.stopping.grace_ns = 0;
        if (l->attempts[i]->process.pid)
            child_signal_group(l->attempts[i]->process.pid, SIGKILL);
    }
    for (size_t i = 0; i < l->n_groups; i++)
        if (l->groups[i]->pid)
            child_signal_group(l->groups[i]->pid, SIGKILL);
}

/* A batch system signals all processes of a job, and srun passes on what it gets itself. So the
 * same request comes twice, and is no order to kill. */
static bool comes_with_the_first(const struct loop *l)
{
    return clock_mono_ns() - l->draining_since_ns < TOGETHER_MS * NS_PER_MS;
}

static void take_signals(struct loop *l)
{
    struct signalfd_siginfo s;
    while (read(l->signal_fd, &s, sizeof s) == (ssize_t)sizeof s) {
        if (s.ssi_signo == SIGCHLD)
            continue; /* every round calls reap_children() */
        if (!l->draining)
            start_drain(l, strsignal((int)s.ssi_signo));
        else if (!l->forced && !comes_with_the_first(l))
            kill_all(l);
    }
}

/* While draining: if all processes have ended and the server has not answered for a while, stop the
 * deliveries. The results stay on disk for the next start. */
static void give_up_if_due(struct loop *l, size_t children)
{
    struct agent *a = l->agent;
    int64_t now = clock_mono_ns();
    bool brief = a->options->die_with_parent || l->forced;
    if (children)
        l->childless_since_ns = 0;
    else if (l->childless_since_ns == 0)
        l->childless_since_ns = now;
    pthread_mutex_lock(&a->lock);
    int64_t since =
        a->acknowledged_ns > l->childless_since_ns ? a->acknowledged_ns : l->childless_since_ns;
    brief |= a->refused.code != AS_OK;
    pthread_mutex_unlock(&a->lock);
    int64_t patience_ms = brief ? PATIENCE_BRIEF_MS : PATIENCE_MS;
    if (children || now - since < patience_ms * NS_PER_MS)
        return;
    agent_give_up(a);
}

/* Kill the process of a group without members if it does not end by itself. */
static void kill_if_it_stays(struct group_process *g)
{
    int64_t now = clock_mono_ns();
    if (g->empty_since_ns == 0)
        g->empty_since_ns = now;
    if (g->pid && now - g->empty_since_ns > GROUP_LEAVE_MS * NS_PER_MS)
        child_signal_group(g->pid, SIGKILL);
}

/* Is an attempt of the group still being prepared? Then it will be added, and `close` must wait. */
static bool members_prepare(const struct loop *l, const struct group_process *g)
{
    for (size_t i = 0; i < l->n; i++)
        if (l->attempts[i]->group == g && attempt_phase_get(l->attempts[i]) < ATTEMPT_RUNNING)
            return true;
    return false;
}

/* Do what is due for every attempt. Returns how many processes run. */
static size_t look_at_all(struct loop *l)
{
    size_t children = 0;
    for (size_t i = 0; i < l->n; i++) {
        struct attempt *t = l->attempts[i];
        attempt_phase p = attempt_phase_get(t);
        ahead_give_back_if_late(t, clock_mono_ns());
        if (p == ATTEMPT_READY && (!t->hold.waits || attempt_asked(t) != STOP_NONE))
            launch_attempt(l, t);
        if (t->rank && p == ATTEMPT_RUNNING)
            rank_process_look(t, l->attempts, l->n);
        if (t->process.pid) {
            output_read(t, l->buf, false);
            children++;
        }
        if (t->process.pid || t->process.joined)
            stop_if_due(t);
        if (p == ATTEMPT_DELIVERED) {
            agent_release(l->agent, t);
            l->attempts[i--] = l->attempts[--l->n];
        }
    }
    return children;
}

/* Read what the groups say. It is read before stops are due: a member that has ended in time is not
 * stopped for its timeout because this process looked late. */
static void listen_to_groups(struct loop *l)
{
    for (size_t i = 0; i < l->n_groups; i++) {
        read_group_output(l, l->groups[i]);
        group_process_read(l->groups[i], on_group_event, l);
    }
}

/* Do what is due for every group. Returns how many processes run. */
static size_t look_at_groups(struct loop *l)
{
    size_t children = 0;
    for (size_t i = 0; i < l->n_groups; i++) {
        struct group_process *g = l->groups[i];
        pthread_mutex_lock(&l->agent->lock);
        bool close_it = g->closed, is_empty = g->held == 0;
        pthread_mutex_unlock(&l->agent->lock);
        if (close_it && !members_prepare(l, g))
            group_process_close(g);
        group_process_flush(g);
        if (g->close_sent && is_empty)
            kill_if_it_stays(g);
        children += g->pid != 0;
    }
    agent_drop_groups(l->agent);
    copy_lists(l); /* some groups may be freed */
    return children;
}

static int poll_ms(const struct loop *l, int64_t now)
{
    int64_t until = now + NS_PER_S; /* for drain, idle-exit and lost wake-ups */
    if (l->watchdog.every_ns > 0 && l->watchdog.due_ns < until)
        until = l->watchdog.due_ns;
    for (size_t i = 0; i < l->n; i++) {
        const struct attempt *t = l->attempts[i];
        until = as_min_i64(until, ahead_late_ns(t));
        if (t->process.pid || t->process.joined)
            until = as_min_i64(until, stopping_next_ns(&t->process.stopping));
    }
    return until > now ? (int)((until - now) / NS_PER_MS) + 1 : 0;
}

static void wait_for_events(struct loop *l)
{
    size_t n = 2;
    uint64_t count;
    size_t most = 2 * l->n + 2 * l->n_groups + 2;
    if (most > l->fds_cap) {
        if (as_grow(&l->fds, most, sizeof *l->fds, NULL) < 0) {
            clock_sleep_ms(10);
            return;
        }
        l->fds_cap = most;
    }
    l->fds[0] = (struct pollfd){.fd = l->signal_fd, .events = POLLIN};
    l->fds[1] = (struct pollfd){.fd = l->agent->wake_fd, .events = POLLIN};
    for (size_t i = 0; i < l->n; i++) {
        const struct rank *r = l->attempts[i]->rank;
        if (l->attempts[i]->process.out_fd >= 0 && output_has_room(l->attempts[i]))
            l->fds[n++] = (struct pollfd){.fd = l->attempts[i]->process.out_fd, .events = POLLIN};
        if (r && r->fd >= 0)
            l->fds[n++] =
                (struct pollfd){.fd = r->fd, .events = r->out.len ? POLLIN | POLLOUT : POLLIN};
    }
    for (size_t i = 0; i < l->n_groups; i++) {
        const struct group_process *g = l->groups[i];
        short wants = g->out.len ? POLLIN | POLLOUT : POLLIN;
        if (g->out_fd >= 0)
            l->fds[n++] = (struct pollfd){.fd = g->out_fd, .events = POLLIN};
        if (g->control_fd >= 0)
            l->fds[n++] = (struct pollfd){.fd = g->control_fd, .events = wants};
    }
    poll(l->fds, n, poll_ms(l, clock_mono_ns()));
    if (read(l->agent->wake_fd, &count, sizeof count) < 0)
        return; /* no wake-up was pending */
}

static bool idle_too_long(struct loop *l)
{
    int64_t limit_ms = l->agent->options->idle_exit_ms, now = clock_mono_ns();
    if (l->n || l->idle_since_ns == 0)
        l->idle_since_ns = now;
    return limit_ms && !l->draining && now - l->idle_since_ns >= limit_ms * NS_PER_MS;
}

/* Does the time of this runner's job end so soon that its trials need the rest for their ends? */
static bool is_time_to_leave(const struct loop *l)
{
    const struct options *o = l->agent->options;
    int64_t grace_ms = 0;
    if (o->until_ns == 0 || l->draining)
        return false;
    for (size_t i = 0; i < l->n; i++)
        if (l->attempts[i]->claimed.grace_ms > grace_ms)
            grace_ms = l->attempts[i]->claimed.grace_ms;
    int64_t whole_ms = (o->until_ns - o->began_ns) / NS_PER_MS;
    return clock_mono_ns() >= o->until_ns - time_limit_notice_ms(whole_ms, grace_ms) * NS_PER_MS;
}

/* Why the heartbeats say that it has to leave; NULL: they do not. They say it once or many times:
 * only the first one begins a drain. */
static const char *told_to_leave(const struct loop *l)
{
    struct agent *a = l->agent;
    pthread_mutex_lock(&a->lock);
    const char *why = !a->told_to_leave || l->draining ? NULL
                      : a->refused.code == AS_OK       ? "the server asks for it"
                                                       : "the server refuses its token";
    pthread_mutex_unlock(&a->lock);
    return why;
}

/* Is the loop over: everything is delivered after a drain, or the runner cannot continue? */
static bool is_over(const struct loop *l)
{
    struct agent *a = l->agent;
    pthread_mutex_lock(&a->lock);
    bool over = a->fatal.code != AS_OK || (l->draining && a->n == 0 && a->n_groups == 0);
    pthread_mutex_unlock(&a->lock);
    return over;
}

void supervise(struct agent *a, int signal_fd)
{
    struct loop l = {
        .agent = a, .signal_fd = signal_fd, .watchdog = {.every_ns = notify_watchdog_ns()}};
    const char *why;
    notify_send("READY=1"); /* also while the server cannot be reached: it waits for that */
    while (!is_over(&l)) {
        notify_beat(&l.watchdog);
        copy_lists(&l);
        take_signals(&l);
        reap_children(&l);
        listen_to_groups(&l);
        size_t children = look_at_all(&l);
        children += look_at_groups(&l);
        agent_free_slots(a);
        if (l.draining)
            give_up_if_due(&l, children);
        if (idle_too_long(&l))
            start_drain(&l, "idle");
        if (is_time_to_leave(&l))
            start_drain(&l, "the time of its job ends");
        if ((why = told_to_leave(&l)))
            start_drain(&l, why);
        if (!is_over(&l))
            wait_for_events(&l);
    }
    agent_give_up(a); /* after `fatal` only deliveries of old results run */
    free(l.attempts);
    free(l.groups);
    free(l.fds);
}
