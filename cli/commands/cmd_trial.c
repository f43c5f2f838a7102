/* assay trial SWEEP/NUMBER: prints everything about one trial, as rows of name and value. The rows
 * about files, ranks and the use of the machine come from further requests, and those about a
 * model's columns from the artifact importance.json; --json adds them to the trial as "artifacts",
 * "gang", "usage" and "importance". */
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "base/temp_file.h"
#include "cli/commands/cmd.h"
#include "cli/session/exit_code.h"
#include "cli/view/feature_view.h"
#include "cli/view/fork_view.h"
#include "cli/view/format.h"
#include "cli/view/gang_view.h"
#include "cli/view/objectives.h"
#include "cli/view/pairs.h"
#include "cli/view/rung_view.h"
#include "cli/view/usage_view.h"
#include "cli/session/request.h"
#include "cli/session/session.h"

static void add_head(struct pairs *p, const json_t *trial)
{
    char buf[32];
    const char *state = json_string_value(json_object_get(trial, "state"));
    int64_t ms = format_ran_ms(trial, clock_wall_ms());
    pairs_addf(p, "trial", "%s/%" JSON_INTEGER_FORMAT,
               json_string_value(json_object_get(trial, "sweep")),
               json_integer_value(json_object_get(trial, "number")));
    pairs_add(p, "state", terminal_state_style(state), state);
    static const char *const fields[] = {
        "reason", "value",  "partial", "step",     "runner",     "client",     "group",
        "shape",  "origin", "seed",    "restarts", "created_at", "started_at", "finished_at"};
    for (size_t i = 0; i < AS_ARRAY_LEN(fields); i++)
        pairs_add_json(p, fields[i], json_object_get(trial, fields[i]));
    if (ms >= 0)
        pairs_add(p, "ran", STYLE_PLAIN, clock_format_duration(ms, buf));
}

/* Add the reason for the parameters in words, and the constraints if the trial breaks one. */
static void add_why(struct pairs *p, const json_t *trial, const json_t *sweep)
{
    struct str b = {0};
    size_t i;
    json_t *constraint;
    const char *why = json_string_value(json_object_get(trial, "why"));
    pairs_add(p, "why", STYLE_BOLD, why ? why : "");
    if (objectives_has_constraints(sweep))
        pairs_add_json(p, "feasible", json_object_get(trial, "feasible"));
    if (json_is_false(json_object_get(trial, "feasible"))) {
        str_clear(&b);
        json_array_foreach(json_object_get(sweep, "constraints"), i, constraint)
        {
            str_puts(&b, i ? ", " : "");
            objectives_bounds(constraint, &b);
        }
        pairs_add(p, "must hold", STYLE_WARN, str_cstr(&b));
    }
    str_done(&b);
}

/* Add a row "GROUP.NAME" for each member of an object. */
static void add_group(struct pairs *p, const char *group, const json_t *object)
{
    const char *name;
    json_t *v;
    json_object_foreach((json_t *)object, name, v)
    {
        char label[200];
        (void)snprintf(label, sizeof label, "%s.%s", group, name);
        if (json_is_null(v) && as_streq(group, "param"))
            pairs_add(p, label, STYLE_PLAIN, "null");
        else
            pairs_add_json(p, label, v);
    }
}

static void add_attempts(struct pairs *p, const json_t *attempts)
{
    size_t i;
    json_t *a;
    json_array_foreach((json_t *)attempts, i, a)
    {
        struct str b = {0};
        char label[40];
        const json_t *exit_code = json_object_get(a, "exit_code");
        const char *outcome = json_string_value(json_object_get(a, "outcome"));
        const char *reason = json_string_value(json_object_get(a, "reason"));
        const char *runner = json_string_value(json_object_get(a, "runner"));
        if (!runner)
            runner = json_string_value(json_object_get(a, "client"));
        const json_t *ranks = json_object_get(json_object_get(a, "gang"), "ranks");
        str_puts(&b, outcome ? outcome : "running");
        if (json_is_integer(ranks))
            str_printf(&b, " on %" JSON_INTEGER_FORMAT " ranks", json_integer_value(ranks));
        else
            str_printf(&b, " on %s", runner ? runner : "?");
        const char *group = json_string_value(json_object_get(a, "group"));
        if (group)
            str_printf(&b, ", group %s", group);
        if (json_is_integer(exit_code))
            str_printf(&b, ", exit code %" JSON_INTEGER_FORMAT, json_integer_value(exit_code));
        if (reason)
            str_printf(&b, ": %s", reason);
        (void)snprintf(label, sizeof label, "attempt %" JSON_INTEGER_FORMAT,
                       json_integer_value(json_object_get(a, "attempt")));
        pairs_add(p, label, STYLE_PLAIN, str_cstr(&b));
        str_done(&b);
    }
}

/* What stood around the processes of the latest attempt, if its runner said it. */
static void add_walls(struct pairs *p, const json_t *attempts)
{
    const json_t *last = json_array_get(attempts, json_array_size(attempts) - 1);
    const json_t *walls = json_object_get(last, "walls");
    struct str b = {0};
    if (!json_is_array(walls))
        return;
    for (size_t i = 0; i < json_array_size(walls); i++)
        str_printf(&b, "%s%s", i ? ", " : "", json_string_value(json_array_get(walls, i)));
    for (char *c = b.s; c && *c; c++)
        if (*c == '_')
            *c = ' ';
    pairs_add(p, "walls", b.len ? STYLE_PLAIN : STYLE_WARN, b.len ? str_cstr(&b) : "none");
    str_done(&b);
}

/* The earlier ends of a trial that was tried again: "failed: exit 1; tried again 2026-… by
 * tok1". */
static void add_retries(struct pairs *p, const json_t *retries)
{
    size_t i;
    json_t *r;
    json_array_foreach((json_t *)retries, i, r)
    {
        struct str b = {0};
        const char *state = json_string_value(json_object_get(r, "state"));
        const char *reason = json_string_value(json_object_get(r, "reason"));
        const char *at = json_string_value(json_object_get(r, "retried_at"));
        const char *by = json_string_value(json_object_get(r, "retried_by"));
        str_printf(&b, "%s%s%s; tried again %s", state ? state : "?", reason ? ": " : "",
                   reason ? reason : "", at ? at : "?");
        if (by)
            str_printf(&b, " by %s", by);
        pairs_add(p, "earlier end", STYLE_PLAIN, str_cstr(&b));
        str_done(&b);
    }
}

static void add_files(struct pairs *p, const json_t *files)
{
    size_t i;
    json_t *f;
    json_array_foreach((json_t *)files, i, f)
    {
        char size[32];
        const char *path = json_string_value(json_object_get(f, "path"));
        const char *sha256 = json_string_value(json_object_get(f, "sha256"));
        pairs_addf(p, "file", "%s (%s, sha256 %.16s…)", path ? path : "?",
                   format_size(json_integer_value(json_object_get(f, "size")), size),
                   sha256 ? sha256 : "?");
    }
}

/* The gang of the latest attempt, if it has one; else *ret stays NULL. */
static as_status get_gang(const struct session *s, const struct trial_ref *ref, const json_t *trial,
                          json_t **ret, struct as_err *err)
{
    const json_t *attempts = json_object_get(trial, "attempts");
    const json_t *last = json_array_get(attempts, json_array_size(attempts) - 1);
    char rest[64];
    if (!json_is_object(json_object_get(last, "gang")))
        return AS_OK;
    (void)snprintf(rest, sizeof rest, "attempts/%" JSON_INTEGER_FORMAT "/gang",
                   json_integer_value(json_object_get(last, "attempt")));
    return request_get(s->client, ref, rest, NULL, ret, err);
}

static as_status read_json_file(const struct session *s, const char *sha256, json_t **ret,
                                struct as_err *err)
{
    char path[256];
    AS_AUTO(as_freep) char *text = NULL;
    AS_AUTO(file_closep) int fd = -1;
    size_t len = 0;
    as_status st = temp_file_create(path, sizeof path, &fd, err);
    if (st != AS_OK)
        return st;
    st = client_download_blob(s->client, sha256, path, FEATURE_VIEW_MAX_BYTES, NULL, err);
    if (st == AS_OK)
        st = file_read(path, FEATURE_VIEW_MAX_BYTES, &text, &len, err);
    (void)unlink(path);
    return st == AS_OK ? json_parse(text, len, ret, err) : st;
}

/* The importance of the columns, if the trial left one that the built-in trainer wrote; else *ret
 * stays NULL. What a program wrote under this name is its own, and no error. */
static as_status get_importance(const struct session *s, const json_t *files, json_t **ret,
                                struct as_err *err)
{
    size_t i;
    const json_t *f;
    JSON_AUTO found = NULL;
    as_status st = AS_OK;
    json_array_foreach(files, i, f)
    {
        if (as_streq(json_string_value(json_object_get(f, "path")), FEATURE_VIEW_FILE) &&
            json_integer_value(json_object_get(f, "size")) <= FEATURE_VIEW_MAX_BYTES)
            st = read_json_file(s, json_string_value(json_object_get(f, "sha256")), &found, err);
    }
    if (st < 0) /* no JSON; or removed meanwhile */
        return st == AS_E_INVAL || st == AS_E_NOT_FOUND ? AS_OK : st;
    if (found && feature_view_knows(found))
        *ret = as_steal(found);
    return AS_OK;
}

/* A server of an earlier version has no such route: then *ret stays NULL. */
static as_status get_usage(const struct session *s, const struct trial_ref *ref, json_t **ret,
                           struct as_err *err)
{
    as_status st = request_get(s->client, ref, "usage", NULL, ret, err);
    return st == AS_E_NOT_FOUND ? AS_OK : st;
}

/* What further requests answered about the trial; owned. */
struct beside {
    json_t *files, *gang, *usage, *importance; /* all but `files` may be NULL */
};

static void beside_done(struct beside *b)
{
    json_decref(b->files);
    json_decref(b->gang);
    json_decref(b->usage);
    json_decref(b->importance);
}

static as_status get_beside(const struct session *s, const struct trial_ref *ref,
                            const json_t *trial, struct beside *b, struct as_err *err)
{
    as_status st = request_get(s->client, ref, "artifacts", NULL, &b->files, err);
    if (st < 0 || (st = get_gang(s, ref, trial, &b->gang, err)) < 0 ||
        (st = get_usage(s, ref, &b->usage, err)) < 0)
        return st;
    return get_importance(s, json_object_get(b->files, "items"), &b->importance, err);
}

static as_status print_as_json(json_t *trial, const struct beside *b, struct as_err *err)
{
    json_t *files = json_object_get(b->files, "items");
    json_t *usage = json_object_get(b->usage, "items");
    if (json_object_set(trial, "artifacts", files) != 0 ||
        (b->gang && json_object_set(trial, "gang", b->gang) != 0) ||
        (usage && json_object_set(trial, "usage", usage) != 0) ||
        (b->importance &&
         json_object_set(trial, "importance", json_object_get(b->importance, "columns")) != 0))
        return as_fail_nomem(err);
    return session_print_json(trial, err);
}

static as_status show_trial(const struct session *s, const char *name, struct as_err *err)
{
    struct trial_ref ref;
    JSON_AUTO trial = NULL;
    JSON_AUTO sweep = NULL;
    AS_AUTO(beside_done) struct beside beside = {0};
    as_status st = request_parse_ref(name, false, &ref, err);
    if (st < 0 || (st = request_get(s->client, &ref, NULL, NULL, &trial, err)) < 0 ||
        (st = get_beside(s, &ref, trial, &beside, err)) < 0)
        return st;
    if (s->json)
        return print_as_json(trial, &beside, err);
    struct trial_ref whole = ref;
    whole.number = -1;
    st = request_get(s->client, &whole, NULL, NULL, &sweep, err);
    if (st < 0)
        return st;
    struct pairs p = {.terminal = s->terminal, .name_width = 20};
    add_head(&p, trial);
    add_why(&p, trial, sweep);
    add_group(&p, "param", json_object_get(trial, "params"));
    add_group(&p, "metric", json_object_get(trial, "metrics"));
    const json_t *test = json_object_get(trial, "test");
    pairs_add_json(&p, "test rows", json_object_get(test, "rows"));
    add_group(&p, "test", json_object_get(test, "metrics"));
    add_group(&p, "note", json_object_get(trial, "notes"));
    add_group(&p, "attr", json_object_get(trial, "user_attrs"));
    add_group(&p, "suggestion", json_object_get(trial, "suggestion"));
    rung_view_rows(&p, json_object_get(trial, "rungs"));
    fork_view_trial(&p, trial);
    add_retries(&p, json_object_get(trial, "retries"));
    add_attempts(&p, json_object_get(trial, "attempts"));
    add_walls(&p, json_object_get(trial, "attempts"));
    gang_view_rows(&p, beside.gang);
    usage_view_rows(&p, beside.usage);
    feature_view_rows(&p, beside.importance);
    add_files(&p, json_object_get(beside.files, "items"));
    pairs_addf(&p, "dashboard", "%s/#/sweeps/%s/trials/%" PRId64, s->url, ref.sweep, ref.number);
    return pairs_print(&p, err);
}

int cmd_trial(const struct verb *v, int argc, char **argv)
{
    struct session s = {0};
    struct as_err err = {0};
    int n, code;
    const struct opt table[] = {SESSION_OPTS(&s)};
    if (session_begin(&s, v, table, argc, argv, 1, 2, &n, &code)) {
        if (n == 2 && !as_streq(argv[1], "show"))
            code = exit_with_usage(v->name, "too many arguments, the first is '%.60s'", argv[2]);
        else
            code = session_end(&s, show_trial(&s, argv[n], &err), &err);
    }
    session_done(&s);
    return code;
}
