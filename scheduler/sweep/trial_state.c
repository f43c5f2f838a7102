/* The two tables of transitions, one for trials and one for sweeps.
 *
 * A row is one allowed transition and carries its reason as data, so that the whole behaviour can
 * be read here and tested as a picture (test_trial_state.c). A pair of state and event without a
 * row is a conflict. One rule is not in the table: a lost trial without a restart left fails
 * instead of returning to the queue. */
#include "scheduler/sweep/trial_state.h"

#include "base/mem.h"
#include "base/str.h"

static const char *const trial_state_words[TRIAL_STATES] = {
    [TRIAL_QUEUED] = "queued",       [TRIAL_RUNNING] = "running", [TRIAL_PAUSED] = "paused",
    [TRIAL_COMPLETED] = "completed", [TRIAL_PRUNED] = "pruned",   [TRIAL_FAILED] = "failed",
    [TRIAL_CANCELLED] = "cancelled"};

static const char *const trial_event_words[TRIAL_EVENTS] = {
    [TRIAL_EV_CLAIM] = "claim",     [TRIAL_EV_COMPLETE] = "complete", [TRIAL_EV_FAIL] = "fail",
    [TRIAL_EV_LOSE] = "lose",       [TRIAL_EV_RELEASE] = "release",   [TRIAL_EV_CANCEL] = "cancel",
    [TRIAL_EV_PRUNE] = "prune",     [TRIAL_EV_PAUSE] = "pause",       [TRIAL_EV_RESUME] = "resume",
    [TRIAL_EV_TIMEOUT] = "timeout", [TRIAL_EV_KEEP] = "keep",         [TRIAL_EV_RETRY] = "retry"};

static const char *const sweep_state_words[SWEEP_STATES] = {
    [SWEEP_RUNNING] = "running",     [SWEEP_PAUSED] = "paused", [SWEEP_FINISHING] = "finishing",
    [SWEEP_COMPLETED] = "completed", [SWEEP_FAILED] = "failed", [SWEEP_CANCELLED] = "cancelled"};

static const char *const sweep_event_words[SWEEP_EVENTS] = {
    [SWEEP_EV_PAUSE] = "pause",     [SWEEP_EV_RESUME] = "resume",   [SWEEP_EV_CANCEL] = "cancel",
    [SWEEP_EV_EXHAUST] = "exhaust", [SWEEP_EV_TIMEOUT] = "timeout", [SWEEP_EV_FINISH] = "finish",
    [SWEEP_EV_FAIL] = "fail",       [SWEEP_EV_REOPEN] = "reopen",   [SWEEP_EV_TARGET] = "target",
    [SWEEP_EV_SETTLE] = "settle"};

static const struct {
    trial_state from;
    trial_event ev;
    trial_state to;
    bool burns_restart;
    const char *reason;
} trial_rows[] = {
    {TRIAL_QUEUED, TRIAL_EV_CLAIM, TRIAL_RUNNING, false, "the trial was handed out"},
    /* the lease ended, no other attempt has begun, and the work is complete */
    {TRIAL_QUEUED, TRIAL_EV_COMPLETE, TRIAL_COMPLETED, false,
     "the result arrived after the lease had ended, before another attempt began"},
    {TRIAL_QUEUED, TRIAL_EV_CANCEL, TRIAL_CANCELLED, false, "cancelled before it ran"},
    {TRIAL_RUNNING, TRIAL_EV_COMPLETE, TRIAL_COMPLETED, false, "the trial completed"},
    {TRIAL_RUNNING, TRIAL_EV_FAIL, TRIAL_FAILED, false, "the trial failed"},
    {TRIAL_RUNNING, TRIAL_EV_LOSE, TRIAL_QUEUED, true, "the attempt was lost; it starts again"},
    {TRIAL_RUNNING, TRIAL_EV_RELEASE, TRIAL_QUEUED, false, "it was handed back before its end"},
    {TRIAL_RUNNING, TRIAL_EV_CANCEL, TRIAL_CANCELLED, false, "cancelled while it ran"},
    {TRIAL_RUNNING, TRIAL_EV_PRUNE, TRIAL_PRUNED, false, "stopped early"},
    {TRIAL_RUNNING, TRIAL_EV_PAUSE, TRIAL_PAUSED, false, "paused at its checkpoint"},
    {TRIAL_RUNNING, TRIAL_EV_TIMEOUT, TRIAL_FAILED, false, "it ran longer than trial_timeout"},
    {TRIAL_RUNNING, TRIAL_EV_KEEP, TRIAL_COMPLETED, false,
     "it ran longer than trial_timeout; the values that it had reported count"},
    {TRIAL_PAUSED, TRIAL_EV_RESUME, TRIAL_QUEUED, false, "resumed from its checkpoint"},
    {TRIAL_PAUSED, TRIAL_EV_CANCEL, TRIAL_CANCELLED, false, "cancelled while it was paused"},
    {TRIAL_PAUSED, TRIAL_EV_PRUNE, TRIAL_PRUNED, false, "stopped early while it was paused"},
    {TRIAL_FAILED, TRIAL_EV_RETRY, TRIAL_QUEUED, false, "it failed and is tried again"},
    {TRIAL_CANCELLED, TRIAL_EV_RETRY, TRIAL_QUEUED, false, "it was cancelled and is tried again"},
};

static const struct {
    sweep_state from;
    sweep_event ev;
    sweep_state to;
    const char *reason;
} sweep_rows[] = {
    {SWEEP_RUNNING, SWEEP_EV_PAUSE, SWEEP_PAUSED, "paused by a user"},
    {SWEEP_RUNNING, SWEEP_EV_CANCEL, SWEEP_CANCELLED, "cancelled by a user"},
    {SWEEP_RUNNING, SWEEP_EV_EXHAUST, SWEEP_FINISHING, "every trial has ended"},
    {SWEEP_RUNNING, SWEEP_EV_TIMEOUT, SWEEP_FINISHING, "wall_time is over"},
    {SWEEP_RUNNING, SWEEP_EV_TARGET, SWEEP_FINISHING, "the target was reached"},
    {SWEEP_RUNNING, SWEEP_EV_SETTLE, SWEEP_FINISHING, "little is left to gain"},
    {SWEEP_RUNNING, SWEEP_EV_FAIL, SWEEP_FAILED, "too many trials failed"},
    {SWEEP_PAUSED, SWEEP_EV_RESUME, SWEEP_RUNNING, "resumed by a user"},
    {SWEEP_PAUSED, SWEEP_EV_CANCEL, SWEEP_CANCELLED, "cancelled by a user"},
    /* the trials that run while a sweep is paused may be its last ones */
    {SWEEP_PAUSED, SWEEP_EV_EXHAUST, SWEEP_FINISHING, "every trial has ended"},
    {SWEEP_PAUSED, SWEEP_EV_TIMEOUT, SWEEP_FINISHING, "wall_time is over"},
    {SWEEP_PAUSED, SWEEP_EV_TARGET, SWEEP_FINISHING, "the target was reached"},
    {SWEEP_PAUSED, SWEEP_EV_SETTLE, SWEEP_FINISHING, "little is left to gain"},
    {SWEEP_PAUSED, SWEEP_EV_FAIL, SWEEP_FAILED, "too many trials failed"},
    {SWEEP_FINISHING, SWEEP_EV_FINISH, SWEEP_COMPLETED, "the sweep completed"},
    {SWEEP_FINISHING, SWEEP_EV_CANCEL, SWEEP_CANCELLED, "cancelled by a user"},
    {SWEEP_FINISHING, SWEEP_EV_FAIL, SWEEP_FAILED, "no trial completed"},
    {SWEEP_FINISHING, SWEEP_EV_REOPEN, SWEEP_RUNNING, "it runs on"},
    {SWEEP_COMPLETED, SWEEP_EV_REOPEN, SWEEP_RUNNING, "it runs on"},
    {SWEEP_FAILED, SWEEP_EV_REOPEN, SWEEP_RUNNING, "it runs on"},
    {SWEEP_CANCELLED, SWEEP_EV_REOPEN, SWEEP_RUNNING, "it runs on"},
};

as_status trial_step(trial_state from, trial_event ev, int64_t restarts, int64_t max_restarts,
                     struct trial_step *ret, struct as_err *err)
{
    for (size_t i = 0; i < AS_ARRAY_LEN(trial_rows); i++) {
        if (trial_rows[i].from != from || trial_rows[i].ev != ev)
            continue;
        *ret = (struct trial_step){.to = trial_rows[i].to,
                                   .burns_restart = trial_rows[i].burns_restart,
                                   .reason = trial_rows[i].reason};
        if (ret->burns_restart && restarts >= max_restarts)
            *ret = (struct trial_step){.to = TRIAL_FAILED,
                                       .reason = "the attempt was lost and no restart is left"};
        return AS_OK;
    }
    return as_fail(err, AS_E_CONFLICT, "a trial that is %s does not take the event %s",
                   trial_state_words[from], trial_event_words[ev]);
}

as_status sweep_step(sweep_state from, sweep_event ev, struct sweep_step *ret, struct as_err *err)
{
    for (size_t i = 0; i < AS_ARRAY_LEN(sweep_rows); i++) {
        if (sweep_rows[i].from != from || sweep_rows[i].ev != ev)
            continue;
        *ret = (struct sweep_step){.to = sweep_rows[i].to, .reason = sweep_rows[i].reason};
        return AS_OK;
    }
    return as_fail(err, AS_E_CONFLICT, "a sweep that is %s does not take the event %s",
                   sweep_state_words[from], sweep_event_words[ev]);
}

bool trial_state_is_final(trial_state s)
{
    return s == TRIAL_COMPLETED || s == TRIAL_PRUNED || s == TRIAL_FAILED || s == TRIAL_CANCELLED;
}

bool sweep_state_is_final(sweep_state s)
{
    return s == SWEEP_COMPLETED || s == SWEEP_FAILED || s == SWEEP_CANCELLED;
}

const char *trial_state_format(trial_state s)
{
    return trial_state_words[s];
}

const char *sweep_state_format(sweep_state s)
{
    return sweep_state_words[s];
}

const char *trial_event_format(trial_event e)
{
    return trial_event_words[e];
}

const char *sweep_event_format(sweep_event e)
{
    return sweep_event_words[e];
}

/* The index of a word. AS_E_INVAL: it is no word of the list; the message lists them. */
static as_status find_word(const char *name, const char *const *words, int n, int *ret,
                           struct as_err *err)
{
    AS_AUTO(str_done) struct str list = {0};
    for (int i = 0; i < n; i++) {
        if (as_streq(name, words[i])) {
            *ret = i;
            return AS_OK;
        }
    }
    for (int i = 0; i < n; i++)
        str_printf(&list, "%s%s", i ? ", " : "", words[i]);
    return as_fail(err, AS_E_INVAL, "'%.40s' is not a state; expected one of %s", name,
                   str_cstr(&list));
}

as_status trial_state_parse(const char *name, trial_state *ret, struct as_err *err)
{
    int i = 0;
    as_status st = find_word(name, trial_state_words, TRIAL_STATES, &i, err);
    if (st == AS_OK)
        *ret = (trial_state)i;
    return st;
}

as_status sweep_state_parse(const char *name, sweep_state *ret, struct as_err *err)
{
    int i = 0;
    as_status st = find_word(name, sweep_state_words, SWEEP_STATES, &i, err);
    if (st == AS_OK)
        *ret = (sweep_state)i;
    return st;
}
