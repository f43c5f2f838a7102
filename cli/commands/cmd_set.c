/* assay set SWEEP LIMIT=VALUE…: changes limits of a sweep, also after it has ended.
 * assay priority SWEEP N: changes its place among other sweeps. */
#include <stdio.h>

#include "base/json.h"
#include "cli/commands/cmd.h"
#include "cli/files/param_args.h"
#include "cli/session/request.h"
#include "cli/session/session.h"
#include "cli/view/say.h"

static as_status print_change(const struct session *s, const char *name, const json_t *sweep,
                              struct as_err *err)
{
    size_t i;
    json_t *note;
    if (s->json)
        return session_print_json(sweep, err);
    const char *state = json_string_value(json_object_get(sweep, "state"));
    say("%s is %s, with %" JSON_INTEGER_FORMAT " planned trials", name, state ? state : "?",
        json_integer_value(json_object_get(sweep, "planned_trials")));
    json_array_foreach(json_object_get(sweep, "notes"), i, note)
        say("%s", json_string_value(note) ? json_string_value(note) : "?");
    return AS_OK;
}

static as_status set_limits(const struct session *s, const char *name, const char *const *texts,
                            size_t n, struct as_err *err)
{
    struct trial_ref ref;
    JSON_AUTO limits = NULL;
    JSON_AUTO answer = NULL;
    as_status st = request_parse_sweep(name, &ref, err);
    if (st < 0)
        return st;
    st = param_args_read("LIMIT", texts, n, param_args_add_limit, &limits, err);
    if (st < 0)
        return st;
    JSON_AUTO body = json_pack("{s:O}", "limits", limits);
    st = request_patch(s->client, &ref, body, &answer, err);
    return st < 0 ? st : print_change(s, ref.sweep, answer, err);
}

static as_status set_priority(const struct session *s, const char *name, const char *text,
                              struct as_err *err)
{
    struct trial_ref ref;
    int64_t n = 0;
    JSON_AUTO answer = NULL;
    as_status st = request_parse_sweep(name, &ref, err);
    if (st < 0)
        return st;
    if (as_parse_i64(text, &n, NULL) < 0)
        return as_fail(err, AS_E_USAGE,
                       "N: found '%.40s', expected a whole number from -100 to 100", text);
    JSON_AUTO body = json_pack("{s:I}", "priority", (json_int_t)n);
    if ((st = request_patch(s->client, &ref, body, &answer, err)) < 0)
        return st;
    if (s->json)
        return session_print_json(answer, err);
    say("%s has priority %" JSON_INTEGER_FORMAT, ref.sweep,
        json_integer_value(json_object_get(answer, "priority")));
    return AS_OK;
}

int cmd_set(const struct verb *v, int argc, char **argv)
{
    struct session s = {0};
    struct as_err err = {0};
    int n, code;
    const struct opt table[] = {SESSION_OPTS(&s)};
    if (session_begin(&s, v, table, argc, argv, 2, 20, &n, &code))
        code = session_end(
            &s, set_limits(&s, argv[1], (const char *const *)argv + 2, (size_t)n - 1, &err), &err);
    session_done(&s);
    return code;
}

int cmd_priority(const struct verb *v, int argc, char **argv)
{
    struct session s = {0};
    struct as_err err = {0};
    int n, code;
    const struct opt table[] = {SESSION_OPTS(&s)};
    if (session_begin(&s, v, table, argc, argv, 2, 2, &n, &code))
        code = session_end(&s, set_priority(&s, argv[1], argv[2], &err), &err);
    session_done(&s);
    return code;
}
