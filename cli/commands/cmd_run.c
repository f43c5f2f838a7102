/* assay run FILE [--watch]: creates a sweep, and watches it with --watch. A refused document has
 * one line on stderr for each of its faults, with its place in the file. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/str.h"
#include "cli/commands/cmd.h"
#include "cli/files/document.h"
#include "cli/session/exit_code.h"
#include "cli/session/session.h"
#include "cli/files/shell_environment.h"
#include "cli/files/strategy_note.h"
#include "cli/files/trial_folder.h"
#include "cli/commands/watch.h"
#include "cli/view/say.h"

#define RETRY_MS 10000 /* safe because of the idempotency key */

struct run {
    struct session session;
    bool watch;
    bool paused;
    bool no_env;
    const char *name;
    struct opt_list sets;
    struct watch_opts watch_opts;
    struct str faults; /* of the document, all but the first, explained; a line each */
};

/* Let the runners of an `assay up` on this machine run commands in the current directory. */
static as_status set_folder(struct document *d, struct as_err *err)
{
    char here[4096];
    return getcwd(here, sizeof here) ? trial_folder_set(d->tree, here, err) : AS_OK;
}

static as_status prepare_document(const struct run *r, struct document *d, struct as_err *err)
{
    for (size_t i = 0; i < r->sets.n; i++) {
        as_status st = document_set(d, r->sets.values[i], err);
        if (st < 0)
            return st;
    }
    if (r->name && json_object_set_new(d->tree, "name", json_string(r->name)) != 0)
        return as_fail_nomem(err);
    as_status st = r->session.local ? set_folder(d, err) : AS_OK;
    if (st < 0 || r->no_env || (!r->session.local && !shell_environment_is_local(r->session.url)))
        return st;
    return shell_environment_set(d->tree, environ, err);
}

static void set_fault(const json_t *fault, as_status st, struct as_err *err)
{
    const char *pointer = json_string_value(json_object_get(fault, "pointer"));
    const char *detail = json_string_value(json_object_get(fault, "detail"));
    as_err_set(err, st, pointer ? pointer : "", "%s", detail ? detail : as_status_name(st));
}

/* Explain why the server refused the document: the first fault in *err, the others in r->faults. */
static as_status explain_faults(struct run *r, const struct document *d, as_status st,
                                struct as_err *err)
{
    const json_t *faults = client_problem_errors(r->session.client);
    for (size_t i = 1; i < json_array_size(faults); i++) {
        struct as_err other;
        set_fault(json_array_get(faults, i), st, &other);
        (void)document_explain(d, st, &other);
        str_printf(&r->faults, "%s\n", other.msg);
    }
    if (json_array_size(faults) > 1)
        set_fault(json_array_get(faults, 0), st, err);
    return document_explain(d, st, err);
}

static as_status create_sweep(struct run *r, const struct document *d, json_t **ret,
                              struct as_err *err)
{
    char key[CLIENT_KEY_SIZE];
    client_key_new(key);
    const struct client_opts opts = {.idempotency_key = key, .retry_ms = RETRY_MS};
    as_status st = client_call(r->session.client, "POST", "/v1/sweeps",
                               r->paused ? "paused=true" : NULL, d->tree, &opts, ret, NULL, err);
    if (st < 0)
        return explain_faults(r, d, st, err);
    if (!json_is_string(json_object_get(*ret, "id"))) {
        json_decref(*ret);
        *ret = NULL;
        return as_fail(err, AS_E_INTERNAL, "the server returned a sweep without an id");
    }
    return AS_OK;
}

/* Which Python the trials on this machine get is worth a line if the shell has one of its own. */
static void say_environment(const json_t *sweep)
{
    const json_t *trial = json_object_get(json_object_get(sweep, "document"), "trial");
    const json_t *variables = json_object_get(json_object_get(trial, "environment"), "variables");
    const char *venv = json_string_value(json_object_get(variables, "VIRTUAL_ENV"));
    if (!venv)
        venv = json_string_value(json_object_get(variables, "CONDA_PREFIX"));
    if (venv && !json_object_get(trial, "venv"))
        say("Trials on this machine run with the environment of this shell, %s", venv);
}

static as_status say_strategy(const json_t *sweep, struct as_err *err)
{
    AS_AUTO(str_done) struct str note = {0};
    strategy_note(json_object_get(sweep, "document"), &note);
    if (note.len)
        say("%s", str_cstr(&note));
    return str_check(&note, err);
}

/* Print the id of the sweep alone on stdout, for scripts. With --watch, the summary goes to stdout
 * instead. */
static as_status announce_sweep(const struct run *r, const json_t *sweep, struct as_err *err)
{
    const char *id = json_string_value(json_object_get(sweep, "id"));
    if (r->session.json)
        return r->watch ? AS_OK : session_print_json(sweep, err);
    if (r->watch)
        say("Sweep %s", id);
    else if (printf("%s\n", id) < 0 || fflush(stdout) != 0)
        return as_fail(err, AS_E_IO, "cannot write the output");
    say_environment(sweep);
    as_status st = say_strategy(sweep, err);
    if (st < 0)
        return st;
    say("Dashboard: %s/#/sweeps/%s", r->session.url, id);
    if (r->paused)
        say("It is paused; start it with: assay resume %s", id);
    else if (!r->watch)
        say("Follow it with: assay watch %s", id);
    return AS_OK;
}

static as_status submit_sweep(struct run *r, const char *path, json_t **ret_sweep,
                              struct as_err *err)
{
    AS_AUTO(document_done) struct document d = {0};
    as_status st = document_read(path, &d, err);
    if (st < 0)
        return st;
    st = prepare_document(r, &d, err);
    if (st < 0)
        return st;
    st = create_sweep(r, &d, ret_sweep, err);
    if (st < 0)
        return st;
    return announce_sweep(r, *ret_sweep, err);
}

static void say_faults(char *lines)
{
    for (char *end; (end = strchr(lines, '\n')); lines = end + 1) {
        *end = 0;
        say("assay run: %s", lines);
    }
}

static int run_sweep(struct run *r, const char *path)
{
    struct as_err err = {0};
    JSON_AUTO sweep = NULL;
    as_status st = submit_sweep(r, path, &sweep, &err);
    if (st < 0 || !r->watch) {
        int code = session_end(&r->session, st, &err);
        if (!r->session.json && r->faults.len)
            say_faults(r->faults.s);
        return code;
    }
    return watch_sweep(&r->session, json_string_value(json_object_get(sweep, "id")),
                       &r->watch_opts);
}

int cmd_run(const struct verb *v, int argc, char **argv)
{
    struct run r = {.watch_opts = {.top = 5}};
    int n, code;
    const struct opt table[] = {
        {"watch", 'w', OPT_FLAG, &r.watch, NULL, NULL, "show the progress until it ends"},
        {"paused", 0, OPT_FLAG, &r.paused, NULL, NULL,
         "create it paused, to add known results first; `assay resume` starts it"},
        {"no-env", 0, OPT_FLAG, &r.no_env, NULL, NULL,
         "the trials do not get PATH, VIRTUAL_ENV and CONDA_PREFIX of this shell"},
        {"name", 0, OPT_STRING, &r.name, "NAME", NULL, "instead of the name in the document"},
        {"set", 0, OPT_LIST, &r.sets, "FIELD=VALUE", NULL,
         "change a field: limits.max_trials=10; may stand several times"},
        {"timeout", 0, OPT_DURATION, &r.watch_opts.timeout_ms, "TIME", NULL,
         "with --watch: give up after so long, with exit code 6"},
        SESSION_OPTS(&r.session),
    };
    if (session_begin(&r.session, v, table, argc, argv, 1, 1, &n, &code))
        code = run_sweep(&r, argv[1]);
    str_done(&r.faults);
    session_done(&r.session);
    return code;
}
