/* The rules for the writes of a running attempt.
 *
 * They see rows that the caller has locked, and write nothing, so that one operation (attempts.c)
 * and a batch of many (scheduler/commit/batch_plan.c) give the same answers in the same words. */
#include "scheduler/lifecycle/attempt_rules.h"

#include "base/json.h"
#include "base/metric_name.h"
#include "base/str.h"
#include "base/utf8.h"

const char *const attempt_outcome_words[] = {"completed", "failed", "retry",  "released",
                                             "timeout",   "paused", "pruned", NULL};

/* The request alone. */

static as_status check_points(const struct measurement *points, size_t n, struct as_err *err)
{
    if (n > MEASUREMENTS_MAX)
        return as_fail(err, AS_E_TOO_LARGE, "items has %zu measurements, expected at most %d", n,
                       MEASUREMENTS_MAX);
    for (size_t i = 0; i < n; i++) {
        if (points[i].step < 0)
            return as_fail(err, AS_E_INVAL, "step of '%.63s' is %lld, expected 0 or more",
                           points[i].metric, (long long)points[i].step);
        if (!metric_name_valid(points[i].metric))
            return as_fail(err, AS_E_INVAL, "metrics names '%.80s', expected " METRIC_NAME_RULE,
                           points[i].metric);
    }
    return AS_OK;
}

as_status attempt_check_report(const struct attempt_report *r, struct as_err *err)
{
    as_status st = attempt_notes_check(r->notes, r->n_notes, err);
    return st == AS_OK ? check_points(r->points, r->n_points, err) : st;
}

as_status attempt_check_completion(const struct completion *c, struct as_err *err)
{
    for (size_t i = 0; i < c->n_metrics; i++) {
        char pointer[AS_ERR_POINTER_MAX];
        json_pointer_child("/metrics", c->metrics[i].metric, pointer);
        if (!metric_name_valid(c->metrics[i].metric))
            return as_fail_at(err, AS_E_INVAL, pointer,
                              "'%.80s' is not the name of a metric: expected " METRIC_NAME_RULE,
                              c->metrics[i].metric);
    }
    if (c->n_metrics > MEASUREMENTS_MAX)
        return as_fail_at(err, AS_E_TOO_LARGE, "/metrics", "%zu metrics", c->n_metrics);
    return AS_OK;
}

/* The writer. */

static as_status deny_runner(const struct attempt_ref *ref, bool shows_secret, struct as_err *err)
{
    return as_fail(err, AS_E_DENIED,
                   "attempt %lld of %.80s/%lld is of a runner with a secret, and the header "
                   "Assay-Runner-Secret %s",
                   (long long)ref->attempt, ref->sweep, (long long)ref->number,
                   shows_secret ? "does not hold it" : "is missing");
}

as_status attempt_check_holder(const struct attempt_ref *ref, const struct attempt_writer *by,
                               const struct attempt_holder *holder, struct as_err *err)
{
    if (!holder->is_there)
        return AS_OK;
    if (by->client && holder->gang)
        return as_fail(err, AS_E_DENIED, "attempt %lld of %.80s/%lld is of a gang of runners",
                       (long long)ref->attempt, ref->sweep, (long long)ref->number);
    if (by->is_trial && holder->gang)
        return as_fail(err, AS_E_UNSUPPORTED,
                       "attempt %lld of %.80s/%lld has a gang: its measurements are what rank 0 "
                       "writes to ASSAY_REPORT",
                       (long long)ref->attempt, ref->sweep, (long long)ref->number);
    if (by->is_trial)
        return AS_OK;
    if (by->client)
        return AS_OK; /* if it names an older attempt, the fence refuses that */
    if (holder->client)
        return as_fail(err, AS_E_DENIED,
                       "attempt %lld of %.80s/%lld is of the client '%.64s', who asked for it",
                       (long long)ref->attempt, ref->sweep, (long long)ref->number, holder->client);
    if (holder->secret && !as_streq(holder->secret, by->secret))
        return deny_runner(ref, by->secret != NULL, err);
    return AS_OK;
}

as_status attempt_check_seat(const struct attempt_ref *ref, const struct attempt_writer *by,
                             const char *secret, struct as_err *err)
{
    if (secret && !as_streq(secret, by->secret))
        return deny_runner(ref, by->secret != NULL, err);
    return AS_OK;
}

as_status attempt_check_says_seat(const struct attempt_ref *ref, const struct attempt_writer *by,
                                  struct as_err *err)
{
    if (by && by->has_seat)
        return AS_OK;
    return as_fail(err, AS_E_UNSUPPORTED,
                   "attempt %lld of %.80s/%lld has a gang: its writer says its seat and epoch in "
                   "the headers Assay-Seat and Assay-World-Epoch",
                   (long long)ref->attempt, ref->sweep, (long long)ref->number);
}

as_status attempt_check_leader(const struct attempt_writer *by, int64_t epoch, int64_t leader,
                               struct as_err *err)
{
    if (epoch != by->epoch)
        return as_fail_at(err, AS_E_STALE, STALE_WORLD,
                          "epoch %lld is not current: the gang is at %lld", (long long)by->epoch,
                          (long long)epoch);
    if (leader != by->seat)
        return as_fail_at(err, AS_E_STALE, STALE_WORLD,
                          "seat %lld does not lead epoch %lld: seat %lld does", (long long)by->seat,
                          (long long)epoch, (long long)leader);
    return AS_OK;
}

/* The fence. */

as_status attempt_stale(const struct attempt_ref *ref, const struct trial_head *x,
                        struct as_err *err)
{
    if (x->attempt != ref->attempt)
        return as_fail(
            err, AS_E_STALE, "attempt %lld of %.80s/%lld is not current: attempt %lld is",
            (long long)ref->attempt, ref->sweep, (long long)ref->number, (long long)x->attempt);
    return as_fail(err, AS_E_STALE, "attempt %lld of %.80s/%lld is over: the trial is %s",
                   (long long)ref->attempt, ref->sweep, (long long)ref->number,
                   trial_state_format(x->state));
}

bool attempt_is_late(const struct trial_head *x, const struct attempt_ref *ref)
{
    return x->attempt == ref->attempt && x->state == TRIAL_QUEUED && !x->gang &&
           x->at.decision == DECIDED_NOTHING;
}

bool attempt_end_counts(const struct trial_head *x, const struct attempt_ref *ref, bool is_success)
{
    return x->attempt == ref->attempt &&
           (x->state == TRIAL_RUNNING || (is_success && attempt_is_late(x, ref)));
}

/* The end. */

as_status attempt_check_timeout(const struct completion *c, const struct sweep_head *s,
                                struct as_err *err)
{
    if (c->outcome != OUTCOME_TIMEOUT || !c->has_ran || c->ran_ms >= s->trial_timeout_ms)
        return AS_OK;
    return as_fail_at(err, AS_E_UNSUPPORTED, "/ran_ms",
                      "/ran_ms: found %lld beside outcome timeout, expected at least the "
                      "trial_timeout of %lld ms",
                      (long long)c->ran_ms, (long long)s->trial_timeout_ms);
}

bool attempt_is_last(const struct completion *c)
{
    return c->outcome != OUTCOME_RELEASED && c->outcome != OUTCOME_RETRY;
}

as_status attempt_check_told(const struct completion *c, const struct trial_head *x,
                             struct as_err *err)
{
    if (c->outcome != OUTCOME_PAUSED || x->at.decision != DECIDED_NOTHING)
        return AS_OK;
    return as_fail_at(err, AS_E_UNSUPPORTED, "/outcome",
                      "/outcome: found paused for an attempt that was not told to pause: nothing "
                      "would resume it; expected released");
}

as_status attempt_change_of(struct arena *a, const struct completion *c, struct trial_change *ret,
                            struct as_err *err)
{
    static const struct {
        trial_event event;
        const char *outcome;
    } meaning[] = {[OUTCOME_COMPLETED] = {TRIAL_EV_COMPLETE, "completed"},
                   [OUTCOME_FAILED] = {TRIAL_EV_FAIL, "failed"},
                   [OUTCOME_RETRY] = {TRIAL_EV_LOSE, "retry"},
                   [OUTCOME_RELEASED] = {TRIAL_EV_RELEASE, "released"},
                   [OUTCOME_TIMEOUT] = {TRIAL_EV_TIMEOUT, "timeout"},
                   [OUTCOME_PAUSED] = {TRIAL_EV_PAUSE, "paused"},
                   [OUTCOME_PRUNED] = {TRIAL_EV_PRUNE, "pruned"}};
    *ret = (struct trial_change){.event = meaning[c->outcome].event,
                                 .outcome = meaning[c->outcome].outcome,
                                 .reported = attempt_outcome_words[c->outcome],
                                 .has_exit_code = c->has_exit_code,
                                 .exit_code = c->exit_code,
                                 .has_ran = c->has_ran,
                                 .ran_ms = c->ran_ms,
                                 .waited_ms = c->waited_ms};
    if (!c->reason)
        return AS_OK;
    ret->reason = arena_strndup(a, c->reason, as_utf8_prefix(c->reason, REASON_CHARACTERS));
    return ret->reason ? AS_OK : as_fail_nomem(err);
}

as_status attempt_other_value(const struct measurement *p, const struct measured_other *other,
                              trial_state state, struct as_err *err)
{
    char pointer[AS_ERR_POINTER_MAX], had[32], found[32];
    json_pointer_child("/metrics", p->metric, pointer);
    if (!other->has_value)
        return as_fail_at(
            err, AS_E_CONFLICT, pointer, "%s: found %s, but the trial is %s, without a value of it",
            pointer, as_format_double(p->value, found, sizeof found), trial_state_format(state));
    return as_fail_at(err, AS_E_CONFLICT, pointer,
                      "%s: found %s, but %s is recorded%s; a value that is recorded stays", pointer,
                      as_format_double(p->value, found, sizeof found),
                      as_format_double(other->value, had, sizeof had),
                      p->step < 0 ? " last" : " at that step");
}
