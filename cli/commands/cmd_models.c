/* assay models list | show | add | alias | get | delete: what sweeps found, kept under names. */
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "cli/commands/cmd.h"
#include "cli/commands/models_onnx.h"
#include "cli/commands/models_show.h"
#include "cli/files/model_ref.h"
#include "cli/session/deletion.h"
#include "cli/session/exit_code.h"
#include "cli/session/fetch.h"
#include "cli/session/list.h"
#include "cli/session/request.h"
#include "cli/session/session.h"
#include "cli/view/format.h"
#include "cli/view/say.h"

#define ADD_TIMEOUT_MS 600000 /* a large ensemble is composed for a while */
#define RETRY_MS 30000

/* The command line. */
struct models {
    struct session session;
    const char *use;    /* NULL: what the sweep recommends */
    int64_t ensemble;   /* add: number of one that was asked for; 0: none */
    const char *format; /* of get */
    const char *from;   /* get: a model file; NULL: the server's */
    bool remove, yes;
};

/* ---- list ---- */

static void add_row(const struct session *s, struct table *t, const json_t *model, int64_t now_ms)
{
    AS_AUTO(str_done) struct str b = {0};
    char buf[32];
    const json_t *changed = json_object_get(model, "changed_at");
    table_cell(t, json_string_value(json_object_get(model, "name")));
    table_cellf(t, "%" JSON_INTEGER_FORMAT, json_integer_value(json_object_get(model, "versions")));
    format_value(&b, json_object_get(model, "default_version"), FORMAT_EXACT);
    table_cell(t, b.len ? str_cstr(&b) : NULL);
    str_clear(&b);
    models_format_aliases(&b, json_object_get(model, "aliases"));
    table_cell(t, b.len ? str_cstr(&b) : NULL);
    table_cell(t, s->terminal.tty ? format_ago(changed, now_ms, buf) : json_string_value(changed));
}

static as_status list_models(const struct session *s, struct as_err *err)
{
    static const struct list_column columns[] = {
        {"model", TABLE_LEFT, 12},  {"versions", TABLE_RIGHT, 0}, {"default", TABLE_RIGHT, 0},
        {"aliases", TABLE_LEFT, 8}, {"changed", TABLE_LEFT, 8},   {.header = NULL},
    };
    const struct list l = {.path = "/v1/models",
                           .columns = columns,
                           .add_row = add_row,
                           .none = "There are no models yet; `assay models add SWEEP MODEL` keeps "
                                   "what a sweep found."};
    return list_print(s, &l, err);
}

/* ---- add ---- */

static void say_added(const json_t *v, bool is_new)
{
    AS_AUTO(str_done) struct str origin = {0};
    char size[32];
    models_format_origin(&origin, v);
    say("%s@%" JSON_INTEGER_FORMAT " %s: %s, %s", json_string_value(json_object_get(v, "model")),
        json_integer_value(json_object_get(v, "version")),
        is_new ? "is added" : "has this content already", str_cstr(&origin),
        format_size(json_integer_value(json_object_get(v, "size")), size));
}

static as_status add_version(const struct models *m, const char *from, const char *name,
                             struct as_err *err)
{
    struct trial_ref trial = {0};
    struct model_ref ref = {0};
    JSON_AUTO answer = NULL;
    AS_AUTO(str_done) struct str path = {0};
    char key[CLIENT_KEY_SIZE];
    int status = 0;
    as_status st = request_parse_ref(from, true, &trial, err);
    if (st == AS_OK)
        st = model_ref_parse(name, &ref, err);
    if (st < 0)
        return st;
    if (ref.has_version)
        return as_fail(err, AS_E_USAGE,
                       "expected the name of a model, found '%.80s': the server numbers versions",
                       name);
    JSON_AUTO body = json_pack("{s:s, s:s*}", "sweep", trial.sweep, "use", m->use);
    if (body && m->ensemble &&
        json_object_set_new(body, "ensemble", json_integer(m->ensemble)) != 0)
        return as_fail_nomem(err);
    if (!body ||
        (trial.number >= 0 && json_object_set_new(body, "trial", json_integer(trial.number)) != 0))
        return as_fail_nomem(err);
    str_puts(&path, "/v1/models");
    client_path_add(&path, ref.name);
    str_puts(&path, "/versions");
    client_key_new(key);
    const struct client_opts opts = {
        .idempotency_key = key, .timeout_ms = ADD_TIMEOUT_MS, .retry_ms = RETRY_MS};
    st = str_check(&path, err);
    if (st == AS_OK)
        st = client_call(m->session.client, "POST", path.s, NULL, body, &opts, &answer, &status,
                         err);
    if (st < 0)
        return st;
    if (m->session.json)
        return session_print_json(answer, err);
    say_added(answer, status == 201);
    return AS_OK;
}

/* ---- alias ---- */

static as_status change_alias(const struct models *m, const char *name, const char *alias,
                              const char *version, struct as_err *err)
{
    struct model_ref ref;
    int64_t number = 0;
    JSON_AUTO body = NULL;
    JSON_AUTO answer = NULL;
    AS_AUTO(str_done) struct str path = {0};
    const struct client_opts opts = {.retry_ms = RETRY_MS};
    as_status st = model_ref_parse(name, &ref, err);
    if (st == AS_OK && ref.has_version)
        st = as_fail(err, AS_E_USAGE, "expected the name of a model, found '%.80s'", name);
    if (st == AS_OK && version && (as_parse_i64(version, &number, NULL) < 0 || number < 1))
        st = as_fail(err, AS_E_USAGE, "expected the number of a version, found '%.40s'", version);
    if (st < 0)
        return st;
    str_puts(&path, "/v1/models");
    client_path_add(&path, ref.name);
    str_puts(&path, "/aliases");
    client_path_add(&path, alias);
    body = version ? json_pack("{s:I}", "version", (json_int_t)number) : NULL;
    st = str_check(&path, err);
    if (st == AS_OK && version && !body)
        st = as_fail_nomem(err);
    if (st == AS_OK)
        st = client_call(m->session.client, version ? "PUT" : "DELETE", path.s, NULL, body, &opts,
                         &answer, NULL, err);
    if (st < 0)
        return st;
    if (m->session.json && answer)
        return session_print_json(answer, err);
    if (version)
        say("%s@%s is version %lld", ref.name, alias, (long long)number);
    else
        say("%s@%s is removed", ref.name, alias);
    return AS_OK;
}

/* ---- get ---- */

/* Where the file goes: `to`, a file in the folder `to`, or NAME-VERSION.FORMAT in this folder. */
static char *destination_of(const struct models *m, const json_t *v, const char *to)
{
    AS_AUTO(str_done) struct str name = {0};
    bool is_folder = to && file_is_folder(to);
    if (to && !is_folder)
        return as_strdup(to);
    str_printf(&name, "%s-%" JSON_INTEGER_FORMAT ".%s",
               json_string_value(json_object_get(v, "model")),
               json_integer_value(json_object_get(v, "version")), m->format);
    if (name.failed)
        return NULL;
    return to ? file_join(to, name.s) : as_strdup(name.s);
}

static as_status get_model(const struct models *m, const char *name, const char *to,
                           struct as_err *err)
{
    struct model_ref ref;
    JSON_AUTO v = NULL;
    char label[MODEL_REF_MAX + 24], size[32];
    as_status st = model_ref_parse(name, &ref, err);
    if (st == AS_OK)
        st = models_get_version(&m->session, &ref, &v, err);
    if (st < 0)
        return st;
    AS_AUTO(as_freep) char *dest = destination_of(m, v, to);
    if (!dest)
        return as_fail_nomem(err);
    (void)snprintf(label, sizeof label, "%s@%" JSON_INTEGER_FORMAT, ref.name,
                   json_integer_value(json_object_get(v, "version")));
    const struct fetch f = {.sha256 = json_string_value(json_object_get(v, "sha256")),
                            .size = json_integer_value(json_object_get(v, "size")),
                            .name = label,
                            .dest = dest};
    bool onnx = as_streq(m->format, "onnx");
    st = onnx ? models_fetch_onnx(&m->session, &f, err) : fetch_content(&m->session, &f, err);
    if (st < 0 || as_streq(dest, "-"))
        return st;
    if (!m->session.json && onnx)
        say("%s: %s as ONNX", dest, label);
    else if (!m->session.json)
        say("%s: %s, %s", dest, label, format_size(f.size, size));
    if (!m->session.json)
        return AS_OK;
    JSON_AUTO done = json_pack("{s:s, s:O, s:s, s:I, s:s, s:s}", "model", ref.name, "version",
                               json_object_get(v, "version"), "sha256", f.sha256, "size",
                               (json_int_t)f.size, "format", m->format, "file", dest);
    return done ? session_print_json(done, err) : as_fail_nomem(err);
}

/* A model file of this machine. */
static as_status convert_file(const struct models *m, const char *to, struct as_err *err)
{
    if (!as_streq(m->format, "onnx"))
        return as_fail(err, AS_E_USAGE, "--from needs --format onnx: the file is %s already",
                       m->format);
    as_status st = models_convert_onnx(m->from, to, err);
    if (st < 0 || as_streq(to, "-"))
        return st;
    if (!m->session.json) {
        say("%s: %s as ONNX", to, m->from);
        return AS_OK;
    }
    JSON_AUTO done = json_pack("{s:s, s:s, s:s}", "from", m->from, "format", m->format, "file", to);
    return done ? session_print_json(done, err) : as_fail_nomem(err);
}

/* ---- delete ---- */

static bool ask_model(const json_t *model, const char *id, struct str *b)
{
    json_int_t n = json_integer_value(json_object_get(model, "versions"));
    str_printf(b, "Delete the model %s with its %" JSON_INTEGER_FORMAT " version%s?", id, n,
               n == 1 ? "" : "s");
    return true;
}

static bool ask_version(const json_t *v, const char *id, struct str *b)
{
    (void)id;
    if (json_array_size(json_object_get(v, "aliases")) > 0)
        return false; /* the server refuses it */
    str_printf(b, "Delete version %" JSON_INTEGER_FORMAT " of the model %s, made of ",
               json_integer_value(json_object_get(v, "version")),
               json_string_value(json_object_get(v, "model")));
    models_format_origin(b, v);
    str_puts(b, "?");
    return true;
}

static int delete_model(const struct models *m, const char *name)
{
    struct model_ref ref;
    struct as_err err = {0};
    AS_AUTO(str_done) struct str path = {0};
    struct deletion d = {
        .path = "/v1/models", .id = ref.name, .done = "deleted", .yes = m->yes, .ask = ask_model};
    as_status st = model_ref_parse(name, &ref, &err);
    if (st < 0)
        return session_end(&m->session, st, &err);
    if (ref.has_version) {
        str_printf(&path, "/v1/models/%s/versions", ref.name);
        d.path = str_cstr(&path);
        d.id = ref.version;
        d.ask = ask_version;
    }
    return path.failed ? session_end(&m->session, as_fail_nomem(&err), &err)
                       : deletion_run(&m->session, &d);
}

/* Run the action argv[1] with the n - 1 arguments after it. */
static int run_action(struct models *m, int n, char **argv)
{
    struct as_err err = {0};
    const char *action = argv[1];
    struct model_ref ref;
    as_status st = AS_OK;
    bool get = as_streq(action, "get"), plain = !m->from && as_streq(m->format, "safetensors");
    bool no_options = !m->use && !m->ensemble && !m->remove && (get || plain);
    if (as_streq(action, "list") && n == 1 && no_options) {
        st = list_models(&m->session, &err);
    } else if (as_streq(action, "show") && n == 2 && no_options) {
        st = model_ref_parse(argv[2], &ref, &err);
        st = st < 0 ? st : models_show(&m->session, &ref, &err);
    } else if (as_streq(action, "add") && n == 3 && !m->remove && plain) {
        st = add_version(m, argv[2], argv[3], &err);
    } else if (as_streq(action, "alias") && n == (m->remove ? 3 : 4) && !m->use && !m->ensemble &&
               plain) {
        st = change_alias(m, argv[2], argv[3], m->remove ? NULL : argv[4], &err);
    } else if (get && m->from && n == 2 && no_options) {
        st = convert_file(m, argv[2], &err);
    } else if (get && !m->from && (n == 2 || n == 3) && no_options) {
        st = get_model(m, argv[2], n == 3 ? argv[3] : NULL, &err);
    } else if (as_streq(action, "delete") && n == 2 && no_options) {
        return delete_model(m, argv[2]);
    } else {
        return exit_with_usage(
            "models",
            "expected `list`, `show MODEL[@VERSION]`, `add SWEEP[/NUMBER] MODEL "
            "[--use WHAT | --ensemble N]`, `alias MODEL ALIAS VERSION`, `alias MODEL ALIAS "
            "--remove`, `get MODEL[@VERSION] [FILE] [--format onnx]`, `get "
            "FILE --from FILE --format onnx` or `delete MODEL[@VERSION]`, found "
            "'%.60s' with %d more",
            action, n - 1);
    }
    return session_end(&m->session, st, &err);
}

int cmd_models(const struct verb *v, int argc, char **argv)
{
    struct models m = {.format = "safetensors"};
    int n, code;
    const struct opt table[] = {
        {"use", 0, OPT_STRING, &m.use, "WHAT", NULL,
         "add: of a sweep, instead of what it recommends", "recommended|ensemble|single"},
        {"ensemble", 0, OPT_I64, &m.ensemble, "N", NULL,
         "add: the ensemble with this number of a sweep, which was asked for after its end"},
        {"remove", 0, OPT_FLAG, &m.remove, NULL, NULL, "alias: remove it; its version stays"},
        {"format", 0, OPT_STRING, &m.format, "FORMAT", NULL, "get: of the file",
         "safetensors|onnx"},
        {"from", 0, OPT_STRING, &m.from, "FILE", NULL,
         "get: write this model file in another format, without a server"},
        DELETION_OPT(&m.yes),
        SESSION_OPTS(&m.session),
    };
    m.session.instead = &m.from;
    if (session_begin(&m.session, v, table, argc, argv, 1, 4, &n, &code))
        code = run_action(&m, n, argv);
    session_done(&m.session);
    return code;
}
