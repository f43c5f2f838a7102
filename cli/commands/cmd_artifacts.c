/* assay artifacts list | get SWEEP/NUMBER: the files that a trial stored.
 *
 * fetch_content() writes each file, so a cut, Ctrl-C or damaged content leaves what was there
 * before. */
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "cli/commands/cmd.h"
#include "cli/files/artifact_path.h"
#include "cli/session/exit_code.h"
#include "cli/session/fetch.h"
#include "cli/session/list.h"
#include "cli/session/request.h"
#include "cli/session/session.h"
#include "cli/view/format.h"
#include "cli/view/say.h"

/* The command line. */
struct artifacts {
    struct session session;
    struct trial_ref ref;
    const char *path; /* a file or folder of the trial; NULL: all files */
    const char *output;
};

static void add_row(const struct session *s, struct table *t, const json_t *file, int64_t now_ms)
{
    char size[32];
    int64_t bytes = json_integer_value(json_object_get(file, "size"));
    (void)now_ms;
    table_cell(t, json_string_value(json_object_get(file, "path")));
    if (s->terminal.tty)
        table_cell(t, format_size(bytes, size));
    else
        table_cellf(t, "%lld", (long long)bytes);
    table_cell(t, json_string_value(json_object_get(file, "sha256")));
}

static as_status list_files(const struct artifacts *a, struct as_err *err)
{
    static const struct list_column columns[] = {
        {"path", TABLE_LEFT, 12},
        {"size", TABLE_RIGHT, 0},
        {"sha256", TABLE_LEFT, 12},
        {.header = NULL},
    };
    AS_AUTO(str_done) struct str path = {0};
    request_path(&path, &a->ref, "artifacts");
    as_status st = str_check(&path, err);
    const struct list l = {.path = path.s,
                           .is_whole = true,
                           .columns = columns,
                           .add_row = add_row,
                           .none = "The trial has stored no files."};
    return st < 0 ? st : list_print(&a->session, &l, err);
}

/* Fetch one file to `dest`: a path, or "-". */
static as_status fetch_file(const struct artifacts *a, const json_t *file, const char *dest,
                            struct as_err *err)
{
    const struct fetch f = {.sha256 = json_string_value(json_object_get(file, "sha256")),
                            .size = json_integer_value(json_object_get(file, "size")),
                            .name = json_string_value(json_object_get(file, "path")),
                            .dest = dest};
    return fetch_content(&a->session, &f, err);
}

/* Where one file goes: --output, a file in the folder --output, or a file in this folder. */
static as_status destination_of_one(const struct artifacts *a, const char *path, char **ret,
                                    struct as_err *err)
{
    const char *name = artifact_path_name(path);
    if (!artifact_path_valid(path))
        return artifact_path_prepare(".", path, ret, err); /* fails, and says why */
    bool is_folder = a->output && file_is_folder(a->output);
    *ret = is_folder ? file_join(a->output, name) : as_strdup(a->output ? a->output : name);
    return *ret ? AS_OK : as_fail_nomem(err);
}

/* Note in `done` that a file is at `dest`. */
static as_status keep_result(json_t *done, const json_t *file, const char *dest, struct as_err *err)
{
    json_t *j = json_pack("{s:O, s:O, s:O, s:s}", "path", json_object_get(file, "path"), "size",
                          json_object_get(file, "size"), "sha256", json_object_get(file, "sha256"),
                          "file", dest);
    return j && json_array_append_new(done, j) == 0 ? AS_OK : as_fail_nomem(err);
}

static as_status get_one(const struct artifacts *a, const json_t *file, json_t *done,
                         struct as_err *err)
{
    AS_AUTO(as_freep) char *dest = NULL;
    char size[32];
    const char *path = json_string_value(json_object_get(file, "path"));
    as_status st = destination_of_one(a, path, &dest, err);
    if (st == AS_OK)
        st = fetch_file(a, file, dest, err);
    if (st < 0)
        return st;
    if (!as_streq(dest, "-"))
        say("%s: %s", dest, format_size(json_integer_value(json_object_get(file, "size")), size));
    return keep_result(done, file, dest, err);
}

/* All files go below one folder: --output, or SWEEP-NUMBER in this folder. */
static as_status get_all(const struct artifacts *a, const json_t *files, json_t *done,
                         struct as_err *err)
{
    AS_AUTO(str_done) struct str folder = {0};
    char size[32];
    int64_t bytes = 0;
    size_t i;
    json_t *file;
    if (as_streq(a->output, "-"))
        return as_fail(err, AS_E_USAGE,
                       "--output - takes one file; this trial has %zu here, so name one as PATH",
                       json_array_size(files));
    if (a->output)
        str_puts(&folder, a->output);
    else
        str_printf(&folder, "%s-%lld", a->ref.sweep, (long long)a->ref.number);
    as_status st = str_check(&folder, err);
    json_array_foreach((json_t *)files, i, file)
    {
        AS_AUTO(as_freep) char *dest = NULL;
        if (st == AS_OK)
            st = artifact_path_prepare(folder.s, json_string_value(json_object_get(file, "path")),
                                       &dest, err);
        if (st == AS_OK)
            st = fetch_file(a, file, dest, err);
        if (st == AS_OK)
            st = keep_result(done, file, dest, err);
        if (st < 0)
            return st;
        bytes += json_integer_value(json_object_get(file, "size"));
    }
    say("%s: %zu files, %s", folder.s, json_array_size(files), format_size(bytes, size));
    return AS_OK;
}

/* The files that the command line names. *ret_exact: one file by its whole name. */
static as_status select_files(const struct artifacts *a, const json_t *items, json_t **ret,
                              bool *ret_exact, struct as_err *err)
{
    JSON_AUTO files = json_array();
    size_t i;
    json_t *file;
    *ret_exact = false;
    json_array_foreach((json_t *)items, i, file)
    {
        const char *path = json_string_value(json_object_get(file, "path"));
        if (!path || !json_is_string(json_object_get(file, "sha256")))
            return as_fail(err, AS_E_INTERNAL, "the server returned a file without path or digest");
        if (a->path && !artifact_path_matches(path, a->path))
            continue;
        *ret_exact = *ret_exact || as_streq(path, a->path);
        if (json_array_append(files, file) != 0)
            return as_fail_nomem(err);
    }
    if (json_array_size(files) == 0 && a->path)
        return as_fail(err, AS_E_NOT_FOUND,
                       "%s/%lld has no file '%.200s'; see assay artifacts list", a->ref.sweep,
                       (long long)a->ref.number, a->path);
    if (json_array_size(files) == 0)
        return as_fail(err, AS_E_NOT_FOUND, "%s/%lld has stored no files", a->ref.sweep,
                       (long long)a->ref.number);
    *ret = as_steal(files);
    return AS_OK;
}

static as_status get_files(const struct artifacts *a, struct as_err *err)
{
    JSON_AUTO answer = NULL;
    JSON_AUTO files = NULL;
    JSON_AUTO done = json_array();
    bool exact;
    as_status st = done ? request_get(a->session.client, &a->ref, "artifacts", NULL, &answer, err)
                        : as_fail_nomem(err);
    if (st < 0)
        return st;
    st = select_files(a, json_object_get(answer, "items"), &files, &exact, err);
    if (st < 0)
        return st;
    st = exact ? get_one(a, json_array_get(files, 0), done, err) : get_all(a, files, done, err);
    if (st < 0 || !a->session.json || as_streq(a->output, "-"))
        return st;
    return list_print_json(done, err);
}

int cmd_artifacts(const struct verb *v, int argc, char **argv)
{
    struct artifacts a = {0};
    struct as_err err = {0};
    int n, code;
    const struct opt table[] = {
        {"output", 'o', OPT_STRING, &a.output, "PATH", NULL,
         "get: the file, or the folder of several files; - is standard output"},
        SESSION_OPTS(&a.session),
    };
    if (session_begin(&a.session, v, table, argc, argv, 2, 3, &n, &code)) {
        as_status st = request_parse_ref(argv[2], false, &a.ref, &err);
        a.path = n == 3 ? argv[3] : NULL;
        if (st < 0)
            code = session_end(&a.session, st, &err);
        else if (as_streq(argv[1], "list") && n == 2 && !a.output)
            code = session_end(&a.session, list_files(&a, &err), &err);
        else if (as_streq(argv[1], "get"))
            code = session_end(&a.session, get_files(&a, &err), &err);
        else
            code = exit_with_usage(v->name, "expected `list SWEEP/NUMBER` or "
                                            "`get SWEEP/NUMBER [PATH] [--output PATH]`");
    }
    session_done(&a.session);
    return code;
}
