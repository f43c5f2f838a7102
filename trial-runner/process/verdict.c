/* Two pure parts: which signal is due at a time, and what an end means. Why a child is being
 * stopped goes before how it ended: exit 0 after the SIGTERM of a drain is a release, because many
 * programs end with 0 with their work half done (decision 7002). */
#include "trial-runner/process/verdict.h"

#include <string.h>
#include <sys/wait.h>

#include "base/clock.h"

void stopping_begin(struct stopping *s, int64_t now_ns, int64_t timeout_ms, int64_t grace_ms)
{
    *s = (struct stopping){.started_ns = now_ns,
                           .timeout_ns =
                               timeout_ms > INT64_MAX / 2 / NS_PER_MS ? 0 : timeout_ms * NS_PER_MS,
                           .grace_ns = (grace_ms > INT32_MAX ? INT32_MAX : grace_ms) * NS_PER_MS};
}

void stopping_ask(struct stopping *s, stop_why why)
{
    if (why > s->why)
        s->why = why;
}

stop_signal stopping_step(struct stopping *s, int64_t now_ns)
{
    if (s->why == STOP_NONE && s->timeout_ns && now_ns - s->started_ns >= s->timeout_ns)
        s->why = STOP_TIMEOUT;
    if (s->why == STOP_NONE || s->killed)
        return STOP_SEND_NONE;
    if (s->term_ns == 0) {
        s->term_ns = now_ns;
        return STOP_SEND_TERM;
    }
    if (now_ns - s->term_ns < s->grace_ns)
        return STOP_SEND_NONE;
    s->killed = true;
    return STOP_SEND_KILL;
}

int64_t stopping_next_ns(const struct stopping *s)
{
    if (s->killed)
        return INT64_MAX;
    if (s->why == STOP_NONE)
        return s->timeout_ns ? s->started_ns + s->timeout_ns : INT64_MAX;
    return s->term_ns ? s->term_ns + s->grace_ns : 0;
}

bool stop_is_early(stop_why why)
{
    return why == STOP_PAUSE || why == STOP_PRUNE;
}

static const struct {
    outcome outcome;
    const char *reason;
} stopped[] = {[STOP_LATE] = {OUTCOME_RELEASED, "no slot came free for it in time"},
               [STOP_CROWDED] = {OUTCOME_RELEASED, "its group has no room for it on the device"},
               [STOP_DRAIN] = {OUTCOME_RELEASED, "the runner is leaving"},
               [STOP_PAUSE] = {OUTCOME_PAUSED, "early stopping paused it"},
               [STOP_PRUNE] = {OUTCOME_PRUNED, "early stopping ended it"},
               [STOP_DROPPED] = {OUTCOME_NONE, ""}};

outcome verdict_unstarted(stop_why why)
{
    return stopped[why].outcome;
}

const char *verdict_stop_reason(stop_why why)
{
    return stopped[why].reason;
}

static const char *const names[] = {"completed", "failed", "retry", "released",
                                    "timeout",   "paused", "pruned"};

const char *outcome_name(outcome o)
{
    return o < OUTCOME_NONE ? names[o] : NULL;
}

bool outcome_parse(const char *s, outcome *ret)
{
    for (size_t i = 0; i < AS_ARRAY_LEN(names); i++)
        if (strcmp(s, names[i]) == 0) {
            *ret = (outcome)i;
            return true;
        }
    return false;
}

void verdict_done(struct verdict *v)
{
    str_done(&v->reason);
}

/* "exit 3: last line" or "killed by signal 11 (Segmentation fault): last line". */
static void describe_end(struct verdict *v, int wait_status, const char *last_line)
{
    if (WIFSIGNALED(wait_status))
        str_printf(&v->reason, "killed by signal %d (%s)", WTERMSIG(wait_status),
                   strsignal(WTERMSIG(wait_status)));
    else
        str_printf(&v->reason, "exit %d", WEXITSTATUS(wait_status));
    if (*last_line) {
        str_puts(&v->reason, ": ");
        str_puts(&v->reason, last_line);
    }
}

static outcome outcome_of_exit(int wait_status, bool killed_by_us)
{
    if (WIFSIGNALED(wait_status))
        return WTERMSIG(wait_status) == SIGKILL && !killed_by_us ? OUTCOME_RETRY : OUTCOME_FAILED;
    switch (WEXITSTATUS(wait_status)) {
    case 0:
        return OUTCOME_COMPLETED;
    case EXIT_TRY_AGAIN:
        return OUTCOME_RETRY;
    default:
        return OUTCOME_FAILED;
    }
}

void verdict_of(const struct stopping *s, int wait_status, const char *last_line,
                struct verdict *ret)
{
    char took[32];
    ret->exit_code = WIFSIGNALED(wait_status) ? -WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
    switch (s->why) {
    case STOP_DROPPED:
    case STOP_LATE:
    case STOP_CROWDED:
    case STOP_DRAIN:
    case STOP_PAUSE:
    case STOP_PRUNE:
        ret->outcome = stopped[s->why].outcome;
        str_puts(&ret->reason, stopped[s->why].reason);
        return;
    case STOP_TIMEOUT:
        ret->outcome = OUTCOME_TIMEOUT;
        str_printf(&ret->reason, "still running after trial_timeout (%s)",
                   clock_format_duration(s->timeout_ns / NS_PER_MS, took));
        return;
    case STOP_NONE:
        break;
    }
    ret->outcome = outcome_of_exit(wait_status, s->killed);
    if (ret->outcome == OUTCOME_RETRY && WIFSIGNALED(wait_status))
        str_puts(&ret->reason, "killed by signal 9: the system ran out of memory, or somebody "
                               "killed it");
    else if (ret->outcome != OUTCOME_COMPLETED)
        describe_end(ret, wait_status, last_line);
}
