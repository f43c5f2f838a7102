/* assay pause, resume, cancel, delete: change the state of a sweep or trial, or delete a sweep. */
#include <inttypes.h>
#include <stdio.h>

#include "base/json.h"
#include "cli/commands/cmd.h"
#include "cli/session/list.h"
#include "cli/session/request.h"
#include "cli/session/session.h"
#include "cli/view/say.h"

/* Print the new state of the sweep or trial. */
static as_status print_state(const struct session *s, const char *name, const json_t *answer,
                             struct as_err *err)
{
    if (s->json)
        return session_print_json(answer, err);
    const char *state = json_string_value(json_object_get(answer, "state"));
    say("%s is %s", name, state ? state : "?");
    return AS_OK;
}

static as_status patch_sweep(const struct session *s, const struct trial_ref *ref,
                             const char *state, json_t **ret, struct as_err *err)
{
    JSON_AUTO body = json_pack("{s:s}", "state", state);
    AS_AUTO(str_done) struct str path = {0};
    const struct client_opts opts = {.content_type = "application/merge-patch+json"};
    request_path(&path, ref, NULL);
    as_status st = body ? str_check(&path, err) : as_fail_nomem(err);
    if (st < 0)
        return st;
    return client_call(s->client, "PATCH", path.s, NULL, body, &opts, ret, NULL, err);
}

static as_status cancel_trial(const struct session *s, const struct trial_ref *ref, json_t **ret,
                              struct as_err *err)
{
    AS_AUTO(str_done) struct str path = {0};
    request_path(&path, ref, "cancel");
    as_status st = str_check(&path, err);
    if (st < 0)
        return st;
    return client_call(s->client, "POST", path.s, NULL, NULL, NULL, ret, NULL, err);
}

static as_status change_state(const struct session *s, const char *name, const char *state,
                              struct as_err *err)
{
    struct trial_ref ref;
    JSON_AUTO answer = NULL;
    bool trials_too = as_streq(state, "cancelled");
    as_status st = request_parse_ref(name, true, &ref, err);
    if (st < 0)
        return st;
    if (ref.number >= 0 && !trials_too)
        return as_fail(err, AS_E_INVAL, "expected SWEEP, found '%.80s'", name);
    st = ref.number >= 0 ? cancel_trial(s, &ref, &answer, err)
                         : patch_sweep(s, &ref, state, &answer, err);
    return st < 0 ? st : print_state(s, name, answer, err);
}

static int run_change(const struct verb *v, int argc, char **argv, const char *state)
{
    struct session s = {0};
    struct as_err err = {0};
    int n, code;
    const struct opt table[] = {SESSION_OPTS(&s)};
    if (session_begin(&s, v, table, argc, argv, 1, 1, &n, &code))
        code = session_end(&s, change_state(&s, argv[1], state, &err), &err);
    session_done(&s);
    return code;
}

int cmd_pause(const struct verb *v, int argc, char **argv)
{
    return run_change(v, argc, argv, "paused");
}

int cmd_resume(const struct verb *v, int argc, char **argv)
{
    return run_change(v, argc, argv, "running");
}

int cmd_cancel(const struct verb *v, int argc, char **argv)
{
    return run_change(v, argc, argv, "cancelled");
}

static as_status delete_sweep(const struct session *s, const char *name, struct as_err *err)
{
    struct trial_ref ref;
    as_status st = request_parse_ref(name, true, &ref, err);
    if (st < 0)
        return st;
    if (ref.number >= 0)
        return as_fail(err, AS_E_INVAL, "expected SWEEP, found '%.80s'; trials go with their sweep",
                       name);
    return list_delete(s, "/v1/sweeps", ref.sweep, "deleted", err);
}

int cmd_delete(const struct verb *v, int argc, char **argv)
{
    struct session s = {0};
    struct as_err err = {0};
    int n, code;
    const struct opt table[] = {SESSION_OPTS(&s)};
    if (session_begin(&s, v, table, argc, argv, 1, 1, &n, &code))
        code = session_end(&s, delete_sweep(&s, argv[1], &err), &err);
    session_done(&s);
    return code;
}
