/* assay tell, assay report: send the result of a trial that was asked for, or its measurements.
 *
 * Both fetch the trial and its sweep first. The trial names the client that holds it, so that no
 * --client is needed; the sweep names its metrics, so that `tell` can refuse a completion that
 * lacks one. The server would fail such a trial for good. */
#include <stdio.h>

#include "base/json.h"
#include "cli/files/param_args.h"
#include "cli/commands/cmd.h"
#include "cli/session/exit_code.h"
#include "cli/view/format.h"
#include "cli/commands/told_trial.h"
#include "cli/session/session.h"
#include "cli/view/say.h"

#define RETRY_MS 60000 /* safe: telling the same twice changes nothing */
#define MAX_ARGS (2 + 100)
#define NO_STEP INT64_MIN

struct tell {
    struct session session;
    struct told_trial trial;
    const char *client;
    const char *failed; /* reason of --failed; NULL: the trial did not fail */
    bool release, prune, pause;
    bool needs_step;  /* with metrics: it is `report` */
    int64_t step;     /* NO_STEP: not given */
    int64_t lease_ms; /* 0: not given */
    json_t *metrics;  /* owned */
};

/* POST /v1/sweeps/{sweep}/suggestions/{number}/rest. */
static as_status post_to_suggestion(const struct tell *t, const char *rest, const json_t *body,
                                    json_t **ret, struct as_err *err)
{
    AS_AUTO(str_done) struct str path = {0};
    struct trial_ref sweep = t->trial.ref;
    const struct client_opts opts = {.retry_ms = RETRY_MS};
    sweep.number = -1;
    request_path(&path, &sweep, "suggestions");
    client_path_add_i64(&path, t->trial.ref.number);
    str_printf(&path, "/%s", rest);
    as_status st = body ? str_check(&path, err) : as_fail_nomem(err);
    if (st < 0)
        return st;
    return client_call(t->session.client, "POST", path.s, NULL, body, &opts, ret, NULL, err);
}

/* Read SWEEP NUMBER NAME=VALUE… and fetch the trial. */
static as_status prepare_tell(struct tell *t, int n, char **args, struct as_err *err)
{
    struct trial_ref ref;
    int used = 0;
    as_status st = told_trial_parse_args(n, args, &ref, &used, err);
    if (st < 0)
        return st;
    st = param_args_read("metrics", (const char *const *)args + used, (size_t)(n - used),
                         param_args_add_metric, &t->metrics, err);
    if (st < 0)
        return st;
    if (t->needs_step && json_object_size(t->metrics) > 0 && t->step == NO_STEP)
        return as_fail(err, AS_E_USAGE, "--step is needed with metrics: at which step were they?");
    return told_trial_find(t->session.client, &ref, t->client, &t->trial, err);
}

static const char *outcome_of(const struct tell *t)
{
    return t->failed    ? "failed"
           : t->release ? "released"
           : t->prune   ? "pruned"
           : t->pause   ? "paused"
                        : "completed";
}

static bool completes(const struct tell *t)
{
    return !t->failed && !t->release && !t->prune && !t->pause;
}

static as_status make_completion(const struct tell *t, json_t **ret, struct as_err *err)
{
    const char *outcome = outcome_of(t);
    JSON_AUTO body = json_pack("{s:s, s:s}", "client", t->trial.client, "outcome", outcome);
    int bad = body ? 0 : 1;
    if (!bad && json_object_size(t->metrics) > 0)
        bad |= json_object_set(body, "metrics", t->metrics);
    if (!bad && t->step != NO_STEP)
        bad |= json_object_set_new(body, "step", json_integer(t->step));
    if (!bad && t->failed && *t->failed)
        bad |= json_object_set_new(body, "reason", json_string(t->failed));
    if (bad)
        return as_fail_nomem(err);
    *ret = as_steal(body);
    return AS_OK;
}

static as_status print_trial(const struct tell *t, const json_t *trial, struct as_err *err)
{
    struct str b = {0};
    const char *state = json_string_value(json_object_get(trial, "state"));
    const char *reason = json_string_value(json_object_get(trial, "reason"));
    if (t->session.json)
        return session_print_json(trial, err);
    if (as_streq(state, "completed"))
        format_params(&b, json_object_get(trial, "metrics"), FORMAT_SHORT);
    else if (reason)
        str_puts(&b, reason);
    say("%s/%lld is %s%s%.600s", t->trial.ref.sweep, (long long)t->trial.ref.number,
        state ? state : "?", b.len ? ": " : "", str_cstr(&b));
    str_done(&b);
    return AS_OK;
}

/* The value stays as told; the person should know that the search will not use it. */
static void warn_of_absurd(const struct tell *t)
{
    const char *name;
    double value, best;
    if (told_trial_is_absurd(t->trial.sweep, t->metrics, &name, &value, &best))
        say("warning: '%.60s' is %g, far beyond the sweep's best value %g: the search counts this "
            "trial as failed; if the configuration does not work, tell --failed REASON instead",
            name, value, best);
}

static as_status tell_outcome(struct tell *t, int n, char **args, struct as_err *err)
{
    JSON_AUTO body = NULL;
    JSON_AUTO trial = NULL;
    as_status st = prepare_tell(t, n, args, err);
    if (st < 0)
        return st;
    if (completes(t))
        st = told_trial_check_metrics(t->trial.sweep, t->trial.trial, t->metrics, err);
    if (st < 0)
        return st;
    st = make_completion(t, &body, err);
    if (st < 0)
        return st;
    st = post_to_suggestion(t, "complete", body, &trial, err);
    if (st < 0)
        return st;
    if (completes(t))
        warn_of_absurd(t);
    return print_trial(t, trial, err);
}

static as_status post_heartbeat(const struct tell *t, json_t **ret, struct as_err *err)
{
    JSON_AUTO body = json_pack("{s:s}", "client", t->trial.client);
    if (body && t->lease_ms > 0 &&
        json_object_set_new(body, "lease_ms", json_integer(t->lease_ms)) != 0)
        return as_fail_nomem(err);
    return post_to_suggestion(t, "heartbeat", body, ret, err);
}

static as_status post_measurement(const struct tell *t, json_t **ret, struct as_err *err)
{
    JSON_AUTO body = json_pack("{s:s, s:[{s:I, s:O}]}", "client", t->trial.client, "items", "step",
                               (json_int_t)t->step, "metrics", t->metrics);
    return post_to_suggestion(t, "measurements", body, ret, err);
}

/* What early stopping decided about the trial: a word for scripts on standard output, and the
 * reason for people. */
static void print_directives(const struct tell *t, const json_t *report)
{
    size_t i;
    json_t *d;
    json_array_foreach(json_object_get(report, "directives"), i, d)
    {
        const char *action = json_string_value(json_object_get(d, "action"));
        const char *reason = json_string_value(json_object_get(d, "reason"));
        if (!action)
            continue;
        (void)printf("%s\n", action);
        say("%s/%lld: early stopping says %s: %.600s; stop its program, then `assay tell %s %lld "
            "--%sd`",
            t->trial.ref.sweep, (long long)t->trial.ref.number, action, reason ? reason : "",
            t->trial.ref.sweep, (long long)t->trial.ref.number, action);
    }
}

static as_status report_measurement(struct tell *t, int n, char **args, struct as_err *err)
{
    JSON_AUTO answer = NULL;
    JSON_AUTO report = NULL;
    as_status st = prepare_tell(t, n, args, err);
    if (st < 0)
        return st;
    bool any = json_object_size(t->metrics) > 0;
    if (any)
        st = post_measurement(t, &report, err);
    if (st < 0)
        return st;
    if (!t->session.json)
        print_directives(t, report);
    /* Measurements extend the lease by its present length. Another length needs a heartbeat. */
    if (!any || t->lease_ms > 0)
        st = post_heartbeat(t, &answer, err);
    else
        answer = json_object();
    if (st < 0)
        return st;
    if (!answer || (report && json_object_update(answer, report) < 0))
        return as_fail_nomem(err);
    if (t->session.json)
        return session_print_json(answer, err);
    const char *until = json_string_value(json_object_get(answer, "lease_until"));
    if (until && t->session.terminal.tty)
        say("%s/%lld is held until %s", t->trial.ref.sweep, (long long)t->trial.ref.number, until);
    return AS_OK;
}

static void done(struct tell *t)
{
    json_decref(t->metrics);
    told_trial_done(&t->trial);
    session_done(&t->session);
}

#define CLIENT_OPT(t)                                                                              \
    {                                                                                              \
        "client", 0, OPT_STRING, &(t)->client, "NAME", "ASSAY_CLIENT",                             \
            "who asked; may be left out on the machine where `assay ask` ran without it"           \
    }

int cmd_tell(const struct verb *v, int argc, char **argv)
{
    struct tell t = {.step = NO_STEP};
    struct as_err err = {0};
    int n, code;
    const struct opt table[] = {
        CLIENT_OPT(&t),
        {"failed", 0, OPT_STRING, &t.failed, "REASON", NULL, "the configuration does not work"},
        {"release", 0, OPT_FLAG, &t.release, NULL, NULL,
         "give the trial back to the queue, for another client"},
        {"pruned", 0, OPT_FLAG, &t.prune, NULL, NULL,
         "it ended early, as `assay report` said, or by a rule of your own"},
        {"paused", 0, OPT_FLAG, &t.pause, NULL, NULL,
         "it waits, as `assay report` said, until it is handed out again"},
        {"step", 0, OPT_I64, &t.step, "N", NULL, "at which step the metrics were measured"},
        SESSION_OPTS(&t.session),
    };
    if (session_begin(&t.session, v, table, argc, argv, 1, MAX_ARGS, &n, &code)) {
        if ((t.failed != NULL) + t.release + t.prune + t.pause > 1)
            code = exit_with_usage(v->name,
                                   "choose one of --failed, --release, --pruned and --paused");
        else
            code = session_end(&t.session, tell_outcome(&t, n, argv + 1, &err), &err);
    }
    done(&t);
    return code;
}

int cmd_report(const struct verb *v, int argc, char **argv)
{
    struct tell t = {.step = NO_STEP, .needs_step = true};
    struct as_err err = {0};
    int n, code;
    const struct opt table[] = {
        CLIENT_OPT(&t),
        {"step", 0, OPT_I64, &t.step, "N", NULL, "at which step the metrics were measured"},
        {"lease", 0, OPT_DURATION, &t.lease_ms, "TIME", NULL,
         "how long it is yours from now without another sign of life"},
        SESSION_OPTS(&t.session),
    };
    if (session_begin(&t.session, v, table, argc, argv, 1, MAX_ARGS, &n, &code))
        code = session_end(&t.session, report_measurement(&t, n, argv + 1, &err), &err);
    done(&t);
    return code;
}
