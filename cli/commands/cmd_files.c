/* assay files SWEEP/NUMBER [--output DIR]: all that a trial left: its artifacts, the files of its
 * latest checkpoint, all output of attempts that printed much, and the last lines of the latest.
 *
 * With --output they go to DIR/artifacts, DIR/checkpoints, DIR/logs and DIR/log.txt. The command
 * may be repeated: a file that is there with the right digest is not fetched again, so an
 * interrupted fetch goes on where it was. Each file gets its name when its digest is right. Nothing
 * is written outside of DIR: a name that leads out, a link, and anything else that is not a regular
 * file are refused. */
#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/json.h"
#include "cli/commands/cmd.h"
#include "cli/files/artifact_path.h"
#include "cli/session/exit_code.h"
#include "cli/session/list.h"
#include "cli/session/request.h"
#include "cli/session/session.h"
#include "cli/view/format.h"
#include "cli/view/meter.h"
#include "cli/view/say.h"

#define IDLE_MS 60000 /* without a byte */
#define RETRY_MS 30000

struct files {
    struct session session;
    struct trial_ref ref;
    const char *output;   /* NULL: list */
    json_t *items;        /* owned: [{kind, path, size, sha256}, …] */
    json_t *done;         /* owned: what is in DIR now, for --json */
    int64_t fetched, had; /* bytes; */
    size_t n_fetched, n_had;
};

static const struct {
    const char *kind, *folder;
} kinds[] = {{"artifact", "artifacts"}, {"checkpoint", "checkpoints"}, {"log", "logs"}};

static const char *text_of(const json_t *file, const char *field)
{
    const char *text = json_string_value(json_object_get(file, field));
    return text ? text : "";
}

static const char *folder_of(const char *kind)
{
    size_t i = 0;
    while (i + 1 < AS_ARRAY_LEN(kinds) && !as_streq(kinds[i].kind, kind))
        i++;
    return kinds[i].folder;
}

/* Add the trial's files of one kind to the items. */
static as_status add_kind(struct files *f, const char *kind, struct as_err *err)
{
    JSON_AUTO answer = NULL;
    AS_AUTO(str_done) struct str query = {0};
    size_t i;
    json_t *file;
    client_query_add(&query, "kind", kind);
    as_status st = str_check(&query, err);
    if (st == AS_OK)
        st = request_get(f->session.client, &f->ref, "artifacts", query.s, &answer, err);
    if (st < 0)
        return st;
    json_array_foreach(json_object_get(answer, "items"), i, file)
    {
        if (!sha256_hex_valid(text_of(file, "sha256")) || !*text_of(file, "path"))
            return as_fail(err, AS_E_INTERNAL, "the server returned a file without path or digest");
        if (json_object_set_new(file, "kind", json_string(kind)) != 0 ||
            json_array_append(f->items, file) != 0)
            return as_fail_nomem(err);
    }
    return AS_OK;
}

static as_status collect(struct files *f, struct as_err *err)
{
    f->items = json_array();
    f->done = json_array();
    as_status st = f->items && f->done ? AS_OK : as_fail_nomem(err);
    for (size_t i = 0; i < AS_ARRAY_LEN(kinds) && st == AS_OK; i++)
        st = add_kind(f, kinds[i].kind, err);
    return st;
}

/* ---- list ---- */

static as_status print_list(struct files *f, struct as_err *err)
{
    size_t i;
    json_t *file;
    char size[32];
    if (f->session.json)
        return list_print_json(f->items, err);
    if (json_array_size(f->items) == 0) {
        say("The trial has stored no files.");
        return AS_OK;
    }
    AS_AUTO(table_freep) struct table *t = table_create();
    if (!t)
        return as_fail_nomem(err);
    table_column(t, "kind", TABLE_LEFT, 0);
    table_column(t, "path", TABLE_LEFT, 12);
    table_column(t, "size", TABLE_RIGHT, 0);
    table_column(t, "sha256", TABLE_LEFT, 12);
    json_array_foreach(f->items, i, file)
    {
        int64_t bytes = json_integer_value(json_object_get(file, "size"));
        table_cell(t, text_of(file, "kind"));
        table_cell(t, text_of(file, "path"));
        if (f->session.terminal.tty)
            table_cell(t, format_size(bytes, size));
        else
            table_cellf(t, "%lld", (long long)bytes);
        table_cell(t, text_of(file, "sha256"));
    }
    return session_print_table(&f->session, t, err);
}

/* ---- fetch ---- */

/* Is there nothing in DIR, on the way to the file, but folders? A link would lead out of DIR. */
static as_status check_way(const char *dir, const char *path, struct as_err *err)
{
    AS_AUTO(as_freep) char *full = file_join(dir, path);
    struct stat sb;
    if (!full)
        return as_fail_nomem(err);
    for (char *slash = full + strlen(dir) + 1; (slash = strchr(slash, '/')); *slash++ = '/') {
        *slash = '\0';
        if (lstat(full, &sb) < 0)
            return errno == ENOENT ? AS_OK : as_fail(err, AS_E_IO, "%s: %s", full, strerror(errno));
        if (!S_ISDIR(sb.st_mode))
            return as_fail(err, AS_E_IO, "%s is no folder; nothing is written through it", full);
    }
    if (lstat(full, &sb) == 0 && !S_ISREG(sb.st_mode))
        return as_fail(err, AS_E_IO, "%s is not a regular file; it is not replaced", full);
    return AS_OK;
}

/* Is the file there, with the right content? */
static bool is_there(const char *dest, const json_t *file)
{
    char hex[SHA256_HEX_SIZE];
    struct stat sb;
    int64_t size = 0;
    return stat(dest, &sb) == 0 &&
           sb.st_size == json_integer_value(json_object_get(file, "size")) &&
           sha256_of_file(dest, hex, &size, NULL) == AS_OK &&
           as_streq(hex, text_of(file, "sha256"));
}

static void on_received(void *arg, int64_t done)
{
    meter_show(arg, done);
}

static as_status download(struct files *f, const json_t *file, const char *dest, struct as_err *err)
{
    struct meter meter;
    const struct client_opts opts = {.timeout_ms = IDLE_MS,
                                     .retry_ms = RETRY_MS,
                                     .on_progress = on_received,
                                     .progress_arg = &meter};
    meter_start(&meter, text_of(file, "path"), "fetching",
                json_integer_value(json_object_get(file, "size")));
    as_status st =
        client_download_blob(f->session.client, text_of(file, "sha256"), dest, 0, &opts, err);
    meter_end(&meter);
    return st < 0 ? as_err_prefix(err, st, "%.200s", text_of(file, "path")) : AS_OK;
}

static as_status note_done(struct files *f, const json_t *file, const char *dest, bool fetched,
                           struct as_err *err)
{
    int64_t bytes = json_integer_value(json_object_get(file, "size"));
    json_t *j = json_deep_copy(file);
    f->fetched += fetched ? bytes : 0;
    f->had += fetched ? 0 : bytes;
    f->n_fetched += fetched;
    f->n_had += !fetched;
    bool bad = !j || json_object_set_new(j, "file", json_string(dest)) != 0 ||
               json_object_set_new(j, "fetched", json_boolean(fetched)) != 0;
    if (bad)
        json_decref(j);
    return !bad && json_array_append_new(f->done, j) == 0 ? AS_OK : as_fail_nomem(err);
}

static as_status fetch_one(struct files *f, const json_t *file, struct as_err *err)
{
    AS_AUTO(as_freep) char *below = NULL;
    AS_AUTO(as_freep) char *dest = NULL;
    const char *folder = folder_of(text_of(file, "kind"));
    if (!artifact_path_valid(text_of(file, "path")))
        return artifact_path_prepare(".", text_of(file, "path"), &dest, err); /* says why */
    below = file_join(folder, text_of(file, "path"));
    as_status st = below ? check_way(f->output, below, err) : as_fail_nomem(err);
    if (st == AS_OK)
        st = artifact_path_prepare(f->output, below, &dest, err);
    if (st < 0)
        return st;
    assert(dest);
    bool fetched = !is_there(dest, file);
    if (fetched)
        st = download(f, file, dest, err);
    return st < 0 ? st : note_done(f, file, dest, fetched, err);
}

/* The last lines of the output, as the server has them. */
static as_status fetch_log(struct files *f, struct as_err *err)
{
    JSON_AUTO answer = NULL;
    AS_AUTO(as_freep) char *dest = file_join(f->output, "log.txt");
    as_status st = dest ? check_way(f->output, "log.txt", err) : as_fail_nomem(err);
    if (st == AS_OK)
        st = request_get(f->session.client, &f->ref, "log", NULL, &answer, err);
    if (st < 0)
        return st;
    const char *text = text_of(answer, "text");
    return *text ? file_replace(dest, text, strlen(text), 0644, err) : AS_OK;
}

static as_status fetch_all(struct files *f, struct as_err *err)
{
    size_t i;
    json_t *file;
    char fetched[32], had[32];
    if (as_streq(f->output, "-") || !*f->output)
        return as_fail(err, AS_E_USAGE, "--output is '%s', expected a folder", f->output);
    as_status st = file_mkdirs(f->output, 0777, err);
    json_array_foreach(f->items, i, file)
    {
        if (st == AS_OK)
            st = fetch_one(f, file, err);
    }
    if (st == AS_OK)
        st = fetch_log(f, err);
    if (st < 0)
        return st;
    if (f->session.json)
        return list_print_json(f->done, err);
    say("%s: %zu files fetched, %s; %zu were there, %s", f->output, f->n_fetched,
        format_size(f->fetched, fetched), f->n_had, format_size(f->had, had));
    return AS_OK;
}

int cmd_files(const struct verb *v, int argc, char **argv)
{
    struct files f = {0};
    struct as_err err = {0};
    int n, code;
    const struct opt table[] = {
        {"output", 'o', OPT_STRING, &f.output, "DIR", NULL,
         "fetch the files into this folder; without it they are listed"},
        SESSION_OPTS(&f.session),
    };
    if (session_begin(&f.session, v, table, argc, argv, 1, 1, &n, &code)) {
        as_status st = request_parse_ref(argv[1], false, &f.ref, &err);
        if (st == AS_OK)
            st = collect(&f, &err);
        if (st == AS_OK)
            st = f.output ? fetch_all(&f, &err) : print_list(&f, &err);
        code = session_end(&f.session, st, &err);
    }
    json_decref(f.items);
    json_decref(f.done);
    session_done(&f.session);
    return code;
}
