/* assay pause, resume, cancel, delete: change the state of a sweep or trial, or delete a sweep. */
#include <inttypes.h>
#include <stdio.h>

#include "base/json.h"
#include "cli/commands/cmd.h"
#include "cli/session/deletion.h"
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
    return request_patch(s->client, ref, body, ret, err);
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
        return as_fail(err, AS_E_USAGE, "expected SWEEP, found '%.80s'", name);
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

/* A sweep that has not ended cannot be deleted, and the server says so. */
static bool ask_sweep(const json_t *sweep, const char *id, struct str *b)
{
    static const char *const ended[] = {"completed", "failed", "cancelled"};
    static const char *const states[] = {"completed", "pruned", "failed", "cancelled"};
    const char *state = json_string_value(json_object_get(sweep, "state"));
    const json_t *counts = json_object_get(sweep, "counts");
    bool has_ended = false;
    for (size_t i = 0; i < AS_ARRAY_LEN(ended); i++)
        has_ended = has_ended || as_streq(state, ended[i]);
    if (!has_ended)
        return false;
    json_int_t total = json_integer_value(json_object_get(counts, "total"));
    str_printf(b, "Delete the sweep %s? Its %" JSON_INTEGER_FORMAT " trial%s", id, total,
               total == 1 ? "" : "s");
    const char *before = " (";
    for (size_t i = 0; i < AS_ARRAY_LEN(states); i++) {
        json_int_t n = json_integer_value(json_object_get(counts, states[i]));
        if (n == 0)
            continue;
        str_printf(b, "%s%" JSON_INTEGER_FORMAT " %s", before, n, states[i]);
        before = ", ";
    }
    str_printf(b, "%s will be lost, with their measurements, logs and files.",
               as_streq(before, ", ") ? ")" : "");
    return true;
}

static int delete_sweep(const struct session *s, const char *name, bool yes)
{
    struct trial_ref ref;
    struct as_err err = {0};
    as_status st = request_parse_ref(name, true, &ref, &err);
    if (st == AS_OK && ref.number >= 0)
        st = as_fail(&err, AS_E_USAGE, "expected SWEEP, found '%.80s'; trials go with their sweep",
                     name);
    if (st < 0)
        return session_end(s, st, &err);
    const struct deletion d = {
        .path = "/v1/sweeps", .id = ref.sweep, .done = "deleted", .yes = yes, .ask = ask_sweep};
    return deletion_run(s, &d);
}

int cmd_delete(const struct verb *v, int argc, char **argv)
{
    struct session s = {0};
    bool yes = false;
    int n, code;
    const struct opt table[] = {DELETION_OPT(&yes), SESSION_OPTS(&s)};
    if (session_begin(&s, v, table, argc, argv, 1, 1, &n, &code))
        code = delete_sweep(&s, argv[1], yes);
    session_done(&s);
    return code;
}
