/* assay retry SWEEP/NUMBER…, assay retry SWEEP --failed: tries trials again that have ended. */
#include <stdio.h>

#include "base/json.h"
#include "cli/commands/cmd.h"
#include "cli/session/exit_code.h"
#include "cli/session/request.h"
#include "cli/session/session.h"
#include "cli/view/say.h"

static as_status post(const struct session *s, const struct trial_ref *ref, const json_t *body,
                      json_t **ret, struct as_err *err)
{
    AS_AUTO(str_done) struct str path = {0};
    request_path(&path, ref, "retry");
    as_status st = str_check(&path, err);
    if (st < 0)
        return st;
    return client_call(s->client, "POST", path.s, NULL, body, NULL, ret, NULL, err);
}

static as_status retry_one(const struct session *s, const char *name, struct as_err *err)
{
    struct trial_ref ref;
    JSON_AUTO trial = NULL;
    as_status st = request_parse_ref(name, false, &ref, err);
    if (st < 0)
        return st;
    if ((st = post(s, &ref, NULL, &trial, err)) < 0)
        return st;
    if (s->json)
        return session_print_json(trial, err);
    const char *state = json_string_value(json_object_get(trial, "state"));
    say("%s is %s", name, state ? state : "?");
    return AS_OK;
}

/* All trials of the sweep in this state. */
static as_status retry_all(const struct session *s, const char *name, const char *state,
                           struct as_err *err)
{
    struct trial_ref ref;
    JSON_AUTO body = json_pack("{s:s}", "state", state);
    JSON_AUTO answer = NULL;
    as_status st = request_parse_sweep(name, &ref, err);
    if (st < 0)
        return st;
    st = body ? post(s, &ref, body, &answer, err) : as_fail_nomem(err);
    if (st < 0)
        return st;
    if (s->json)
        return session_print_json(answer, err);
    const json_t *sweep = json_object_get(answer, "sweep");
    const char *now = json_string_value(json_object_get(sweep, "state"));
    say("%s: %zu %s trials are queued again; the sweep is %s", ref.sweep,
        json_array_size(json_object_get(answer, "numbers")), state, now ? now : "?");
    return AS_OK;
}

static int run(const struct session *s, int n, char **argv, bool failed, bool cancelled)
{
    struct as_err err = {0};
    as_status st = AS_OK;
    if ((failed || cancelled) && n != 1)
        return exit_with_usage("retry", "--failed and --cancelled take one SWEEP");
    if (failed)
        st = retry_all(s, argv[1], "failed", &err);
    if (cancelled && st == AS_OK)
        st = retry_all(s, argv[1], "cancelled", &err);
    for (int i = 1; !failed && !cancelled && i <= n && st == AS_OK; i++)
        st = retry_one(s, argv[i], &err);
    return session_end(s, st, &err);
}

int cmd_retry(const struct verb *v, int argc, char **argv)
{
    struct session s = {0};
    bool failed = false, cancelled = false;
    int n, code;
    const struct opt table[] = {
        {"failed", 0, OPT_FLAG, &failed, NULL, NULL, "all failed trials of SWEEP"},
        {"cancelled", 0, OPT_FLAG, &cancelled, NULL, NULL, "all cancelled trials of SWEEP"},
        SESSION_OPTS(&s),
    };
    if (session_begin(&s, v, table, argc, argv, 1, 1000, &n, &code))
        code = run(&s, n, argv, failed, cancelled);
    session_done(&s);
    return code;
}
