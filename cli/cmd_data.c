/* assay data add | list | delete: data sets of the built-in trainer. */
#include <inttypes.h>
#include <string.h>

#include "base/hash.h"
#include "base/json.h"
#include "cli/cmd.h"
#include "cli/exit_code.h"
#include "cli/format.h"
#include "cli/list.h"
#include "cli/session.h"

#define UPLOAD_TIMEOUT_MS (60 * 60 * 1000) /* of one file */

struct data {
    struct session session;
    const char *target;
    const char *targets;
    const char *task;
    const char *description;
};

/* Digest, upload, and put the digest into `files` under its role. */
static as_status upload(struct data *d, const char *path, const char *role, json_t *files,
                        struct as_err *err)
{
    char sha256[SHA256_HEX_SIZE], size_text[32];
    int64_t size;
    bool sent = false;
    const struct client_opts opts = {.timeout_ms = UPLOAD_TIMEOUT_MS, .retry_ms = 30000};
    as_status st = sha256_of_file(path, sha256, &size, err);
    if (st == AS_OK)
        st = client_upload_file(d->session.client, path, sha256, &opts, &sent, err);
    if (st < 0)
        return as_err_prefix(err, st, "%s", path);
    if (sent)
        session_say("%s: sent %s", path, format_size(size, size_text));
    if (json_object_set_new(files, role, json_string(sha256)) != 0)
        return as_fail(err, AS_E_NOMEM, "out of memory");
    return AS_OK;
}

/* A column is named by its header, or by its number. */
static json_t *target_new(const char *text)
{
    int64_t index;
    return as_parse_i64(text, &index, NULL) == AS_OK ? json_integer(index) : json_string(text);
}

static as_status make_body(struct data *d, const char *name, const char *path, json_t **ret,
                           struct as_err *err)
{
    bool is_npy = as_ends_with(path, ".npy");
    JSON_AUTO files = json_object();
    JSON_AUTO body = json_pack("{s:s, s:s}", "name", name, "format", is_npy ? "npy" : "csv");
    if (!files || !body)
        return as_fail(err, AS_E_NOMEM, "out of memory");
    as_status st = upload(d, path, is_npy ? "features" : "table", files, err);
    if (st == AS_OK && d->targets)
        st = upload(d, d->targets, "targets", files, err);
    if (st < 0)
        return st;
    int bad = json_object_set(body, "files", files);
    if (d->target)
        bad |= json_object_set_new(body, "target", target_new(d->target));
    if (d->task)
        bad |= json_object_set_new(body, "task", json_string(d->task));
    if (d->description)
        bad |= json_object_set_new(body, "description", json_string(d->description));
    if (bad)
        return as_fail(err, AS_E_NOMEM, "out of memory");
    *ret = as_steal(body);
    return AS_OK;
}

static as_status check_files(const struct data *d, const char *path, struct as_err *err)
{
    bool is_npy = as_ends_with(path, ".npy");
    if (is_npy && !d->targets)
        return as_fail(err, AS_E_INVAL, "features in .npy need --targets FILE (.npy)");
    if (is_npy && d->target)
        return as_fail(err, AS_E_INVAL, "--target names a column of a table; .npy takes --targets");
    if (!is_npy && d->targets)
        return as_fail(err, AS_E_INVAL,
                       "--targets goes with .npy features; a table takes --target");
    if (!is_npy && !d->target)
        return as_fail(err, AS_E_INVAL,
                       "a table needs --target COLUMN: the name of a column, or its number");
    return AS_OK;
}

static as_status add(struct data *d, const char *name, const char *path, struct as_err *err)
{
    char key[CLIENT_KEY_SIZE];
    JSON_AUTO body = NULL;
    JSON_AUTO answer = NULL;
    as_status st = make_body(d, name, path, &body, err);
    if (st < 0)
        return st;
    client_key_new(key);
    const struct client_opts opts = {
        .idempotency_key = key, .timeout_ms = 300000, .retry_ms = 30000};
    int http_status = 0;
    st = client_call(d->session.client, "POST", "/v1/datasets", NULL, body, &opts, &answer,
                     &http_status, err);
    if (st < 0 && as_starts_with(err->pointer, "/files"))
        err->pointer[0] = '\0'; /* the paths say it better */
    if (st < 0)
        return as_err_prefix(err, st, "%s%s%s", path, d->targets ? ", " : "",
                             d->targets ? d->targets : "");
    if (d->session.json)
        return session_print_json(answer, err);
    const char *task = json_string_value(json_object_get(answer, "task"));
    session_say("%s%s: %" JSON_INTEGER_FORMAT " rows, %" JSON_INTEGER_FORMAT " features, %s, "
                "%" JSON_INTEGER_FORMAT " %s",
                name, http_status == 200 ? " (registered before)" : "",
                json_integer_value(json_object_get(answer, "rows")),
                json_integer_value(json_object_get(answer, "features")), task ? task : "?",
                json_integer_value(json_object_get(answer, "outputs")),
                as_streq(task, "classification") ? "classes" : "outputs");
    return AS_OK;
}

static void add_row(const struct session *s, struct table *t, const json_t *data, int64_t now_ms)
{
    char buf[32];
    const json_t *created = json_object_get(data, "created_at");
    static const char *const texts[] = {"name", "format", "task"};
    static const char *const numbers[] = {"rows", "features", "outputs"};
    for (size_t i = 0; i < AS_ARRAY_LEN(texts); i++)
        table_cell(t, json_string_value(json_object_get(data, texts[i])));
    for (size_t i = 0; i < AS_ARRAY_LEN(numbers); i++)
        table_cellf(t, "%" JSON_INTEGER_FORMAT,
                    json_integer_value(json_object_get(data, numbers[i])));
    struct str target = {0};
    format_value(&target, json_object_get(data, "target"), FORMAT_EXACT);
    table_cell(t, target.len ? target.s : NULL);
    str_done(&target);
    table_cell(t, s->look.tty ? format_ago(created, now_ms, buf) : json_string_value(created));
}

static as_status list(const struct session *s, struct as_err *err)
{
    static const struct list_column columns[] = {
        {"data set", TABLE_LEFT, 12}, {"format", TABLE_LEFT, 0},    {"task", TABLE_LEFT, 0},
        {"rows", TABLE_RIGHT, 0},     {"features", TABLE_RIGHT, 0}, {"outputs", TABLE_RIGHT, 0},
        {"target", TABLE_LEFT, 0},    {"created", TABLE_LEFT, 8},   {.header = NULL},
    };
    const struct list l = {.path = "/v1/datasets", .columns = columns, .add_row = add_row};
    return list_print(s, &l, err);
}

/* argv[1…] is the action and its arguments. */
static int act(struct data *d, int n, char **argv)
{
    struct as_err err = {0};
    const char *action = argv[1];
    as_status st = AS_OK;
    if (as_streq(action, "list") && n == 1) {
        st = list(&d->session, &err);
    } else if (as_streq(action, "add") && n == 3) {
        st = check_files(d, argv[3], &err);
        if (st < 0)
            return exit_with_usage("data", "%s", err.msg);
        st = add(d, argv[2], argv[3], &err);
    } else if (as_streq(action, "delete") && n == 2) {
        st = list_delete(&d->session, "/v1/datasets", argv[2], "deleted", &err);
    } else {
        return exit_with_usage(
            "data", "expected `add NAME FILE`, `list` or `delete NAME`, found '%.60s' with %d more",
            action, n - 1);
    }
    return session_end(&d->session, st, &err);
}

int cmd_data(int argc, char **argv)
{
    struct data d = {0};
    int n, code;
    const struct opt table[] = {
        {"target", 0, OPT_STRING, &d.target, "COLUMN", NULL, "what a table's rows are to predict"},
        {"targets", 0, OPT_STRING, &d.targets, "FILE", NULL, "the same for .npy features"},
        {"task", 0, OPT_STRING, &d.task, "TASK", NULL,
         "classification or regression (by the target's values)"},
        {"description", 0, OPT_STRING, &d.description, "TEXT", NULL, "for people"},
        SESSION_OPTS(&d.session),
    };
    if (session_begin(&d.session, "data", table, argc, argv, 1, 3, &n, &code))
        code = act(&d, n, argv);
    session_done(&d.session);
    return code;
}
