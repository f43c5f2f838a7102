/* Data sets: content is copied out into temporary files, read through once, and given a name. */
#include "scheduler/services/datasets.h"

#include <stdio.h>
#include <string.h>

#include "data/dataset.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/str.h"
#include "scheduler/content/blobs.h"
#include "scheduler/services/cursor_priv.h"
#include "scheduler/content/blob_file.h"
#include "scheduler/store/dataset_store.h"

#define DATASET_DESCRIPTION_MAX 1000

/* A request, field by field. */
struct request {
    const char *name, *description;
    dataset_format format;
    dataset_task task;
    json_t *target; /* borrowed; NULL */
    char target_text[4000];
    json_t *options_json;                   /* borrowed; NULL */
    struct dataset_options options;         /* owned strings */
    const char *table, *features, *targets; /* digests */
};

static as_status read_files(json_t *files, struct request *r, struct as_err *err)
{
    struct json_fields f;
    as_status st = json_fields_init(&f, files, "/files", err);
    if (st == AS_OK)
        st = json_fields_str(&f, "table", JSON_OPTIONAL, &r->table, err);
    if (st == AS_OK)
        st = json_fields_str(&f, "features", JSON_OPTIONAL, &r->features, err);
    if (st == AS_OK)
        st = json_fields_str(&f, "targets", JSON_OPTIONAL, &r->targets, err);
    if (st == AS_OK)
        st = json_fields_end(&f, err);
    if (st != AS_OK)
        return st;
    bool pair = r->features && r->targets && !r->table;
    if (!pair && !(r->table && !r->features && !r->targets))
        return as_fail_at(err, AS_E_INVAL, "/files", "expected table, or features and targets");
    return AS_OK;
}

static as_status read_target(struct request *r, struct as_err *err)
{
    bool column = r->table && (r->format == DATASET_CSV || r->format == DATASET_NPY);
    if (!column)
        return r->target ? as_fail_at(err, AS_E_INVAL, "/target",
                                      "the targets of this data set are no column: none is named")
                         : AS_OK;
    if (!r->target)
        return as_fail_at(err, AS_E_INVAL, "/target",
                          "required: the column of the target, its name or its index");
    if (json_is_integer(r->target)) {
        snprintf(r->target_text, sizeof r->target_text, "%lld",
                 (long long)json_integer_value(r->target));
        return AS_OK;
    }
    const char *s = json_string_value(r->target);
    if (!s || strlen(s) >= sizeof r->target_text)
        return as_fail_at(err, AS_E_INVAL, "/target",
                          "found %s, expected the name or the index of a column, or several with "
                          "commas between",
                          json_type_name(r->target));
    snprintf(r->target_text, sizeof r->target_text, "%s", s);
    return AS_OK;
}

static as_status read_request(const json_t *doc, struct request *r, struct as_err *err)
{
    struct json_fields f;
    json_t *files = NULL;
    int format = 0, task = 0;
    as_status st = json_fields_init(&f, doc, "", err);
    if (st == AS_OK)
        st = json_fields_str(&f, "name", JSON_REQUIRED, &r->name, err);
    if (st == AS_OK)
        st = json_fields_word(&f, "format", JSON_REQUIRED, dataset_format_names, &format, err);
    if (st == AS_OK)
        st = json_fields_word(&f, "task", JSON_OPTIONAL, dataset_task_names, &task, err);
    if (st == AS_OK)
        st = json_fields_object(&f, "files", JSON_REQUIRED, &files, err);
    if (st == AS_OK)
        st = json_fields_any(&f, "target", JSON_OPTIONAL, &r->target, err);
    if (st == AS_OK)
        st = json_fields_object(&f, "options", JSON_OPTIONAL, &r->options_json, err);
    if (st == AS_OK)
        st = json_fields_text(&f, "description", JSON_OPTIONAL, 0, DATASET_DESCRIPTION_MAX,
                              &r->description, err);
    if (st == AS_OK)
        st = json_fields_end(&f, err);
    if (st != AS_OK)
        return st;
    r->format = (dataset_format)format;
    r->task = (dataset_task)task;
    if (r->options_json &&
        (st = dataset_options_from_json(r->options_json, "/options", &r->options, err)) != AS_OK)
        return st;
    if (!as_slug_valid(r->name))
        return as_fail_at(err, AS_E_INVAL, "/name",
                          "'%.63s' is not a name: lower-case letters, digits, '.', '_', '-', at "
                          "most 63",
                          r->name);
    st = read_files(files, r, err);
    return st == AS_OK ? read_target(r, err) : st;
}

/* The content of one role, in a file. */
static as_status fetch(struct store *db, struct dataset_row *d, const char *role,
                       const char *sha256, struct spool_file *ret, struct as_err *err)
{
    char pointer[24];
    int64_t size = 0;
    snprintf(pointer, sizeof pointer, "/files/%s", role);
    if (!sha256_hex_valid(sha256))
        return as_fail_at(err, AS_E_INVAL, pointer, "'%.64s' is not a SHA-256 digest", sha256);
    as_status st = blob_stat(db, sha256, &size, err);
    if (st == AS_OK)
        st = spool_blob(db, sha256, ret, err);
    if (st == AS_E_NOT_FOUND)
        return as_fail_at(err, AS_E_UNSUPPORTED, pointer,
                          "no content %s is stored: upload it first", sha256);
    if (st == AS_OK)
        d->files[d->n_files++] =
            (struct dataset_file_row){.role = role, .sha256 = sha256, .size = size};
    return st;
}

static void info_done(struct dataset_info *info)
{
    dataset_info_done(info);
}

static void request_done(struct request *r)
{
    free(r->options.x);
    free(r->options.y);
}

static void spool_done(struct spool_file *f)
{
    spool_file_done(f);
}

/* Messages name the files that they are about; ours are temporary and mean nothing to a client. */
static void name_file(struct as_err *err, const char *path, const char *role)
{
    const char *at = err && *path ? strstr(err->msg, path) : NULL;
    if (!at)
        return;
    char msg[AS_ERR_MSG_MAX];
    snprintf(msg, sizeof msg, "%.*sthe %s file%s", (int)(at - err->msg), err->msg, role,
             at + strlen(path));
    snprintf(err->msg, sizeof err->msg, "%s", msg);
    snprintf(err->pointer, sizeof err->pointer, "/files/%s", role);
}

/* Read the content through; what is wrong with it is wrong with the files named. */
static as_status inspect(struct store *db, const struct request *r, struct dataset_row *d,
                         struct dataset_info *ret, struct as_err *err)
{
    AS_AUTO(spool_done) struct spool_file first = {0};
    AS_AUTO(spool_done) struct spool_file second = {0};
    struct dataset_paths paths = {0};
    as_status st = fetch(db, d, r->table ? "table" : "features", r->table ? r->table : r->features,
                         &first, err);
    if (st == AS_OK && r->targets)
        st = fetch(db, d, "targets", r->targets, &second, err);
    if (st != AS_OK)
        return st;
    paths.table = r->table ? first.path : NULL;
    paths.features = r->features ? first.path : NULL;
    paths.targets = r->targets ? second.path : NULL;
    st = dataset_inspect(&paths, r->format, r->target ? r->target_text : NULL, r->task, &r->options,
                         ret, err);
    if (st == AS_OK)
        return st;
    name_file(err, first.path, r->table ? "table" : "features");
    name_file(err, second.path, "targets");
    if (st == AS_E_INVAL && err && err->pointer[0] == '\0')
        snprintf(err->pointer, sizeof err->pointer, "/files");
    return st;
}

/* The digest of the files and of how they are read. */
static as_status digest(struct arena *a, struct dataset_row *d, struct as_err *err)
{
    AS_AUTO(str_done) struct str b = {0};
    str_printf(&b, "%s\n%s\n%s\n", d->format, d->task, d->target ? d->target : "");
    if (d->options)
        str_printf(&b, "%s\n", d->options);
    for (size_t i = 0; i < d->n_files; i++)
        str_printf(&b, "%s %s\n", d->files[i].role, d->files[i].sha256);
    char hex[SHA256_HEX_SIZE];
    as_status st = str_check(&b, err);
    if (st == AS_OK)
        st = sha256_of(str_cstr(&b), b.len, hex, err);
    d->sha256 = arena_strdup(a, hex);
    return st == AS_OK && !d->sha256 ? as_fail(err, AS_E_NOMEM, "out of memory") : st;
}

/* Text of a tree in the arena; NULL stays NULL. */
static as_status arena_json(struct arena *a, const json_t *j, const char **ret, struct as_err *err)
{
    if (!j)
        return AS_OK;
    AS_AUTO(as_freep) char *text = NULL;
    if (json_is_string(j) || json_is_integer(j))
        text = json_dumps(j, JSON_ENCODE_ANY | JSON_COMPACT);
    else
        text = json_format(j);
    *ret = arena_strdup(a, text);
    return *ret ? AS_OK : as_fail(err, AS_E_NOMEM, "out of memory");
}

static as_status describe(struct arena *a, const struct request *r, const struct dataset_info *info,
                          struct dataset_row *d, struct as_err *err)
{
    JSON_AUTO j = dataset_info_to_json(info);
    if (!j)
        return as_fail(err, AS_E_NOMEM, "out of memory");
    d->name = r->name;
    d->description = r->description;
    d->format = dataset_format_name(info->format);
    d->task = dataset_task_name(info->task);
    d->input = dataset_input_name(info->input);
    d->n_rows = (int64_t)info->n_rows;
    d->n_features = (int64_t)info->n_features;
    d->n_outputs = (int64_t)info->n_outputs;
    as_status st = arena_json(a, r->target, &d->target, err);
    if (st == AS_OK)
        st = arena_json(a, json_object_get(j, "classes"), &d->classes, err);
    if (st == AS_OK)
        st = arena_json(a, json_object_get(j, "options"), &d->options, err);
    if (st == AS_OK)
        st = arena_json(a, json_object_get(j, "image"), &d->image, err);
    if (st == AS_OK)
        st = arena_json(a, json_object_get(j, "columns"), &d->columns, err);
    return st == AS_OK ? digest(a, d, err) : st;
}

struct add_arg {
    struct arena *a;
    const struct dataset_row *d;
    struct dataset_row ret;
    bool created;
};

static as_status tx_add(struct tx *t, void *p, struct as_err *err)
{
    struct add_arg *arg = p;
    as_status st = store_dataset_add(t, arg->d, &arg->created, err);
    if (st == AS_E_NOT_FOUND)
        return as_fail_at(err, AS_E_UNSUPPORTED, "/files",
                          "its content was removed meanwhile: upload it again");
    if (st == AS_OK)
        st = store_dataset_get(t, arg->a, arg->d->name, false, &arg->ret, err);
    if (st == AS_OK && !arg->created && !as_streq(arg->ret.sha256, arg->d->sha256))
        return as_fail_at(err, AS_E_CONFLICT, "/name",
                          "the data set '%s' holds other content, or the same read in another way",
                          arg->d->name);
    return st;
}

as_status dataset_create(struct store *db, struct arena *a, const json_t *doc,
                         struct dataset_row *ret, bool *ret_created, struct as_err *err)
{
    AS_AUTO(request_done) struct request r = {0};
    struct dataset_row d = {0};
    AS_AUTO(info_done) struct dataset_info info = {0};
    as_status st = read_request(doc, &r, err);
    if (st == AS_OK)
        st = inspect(db, &r, &d, &info, err);
    if (st == AS_OK)
        st = describe(a, &r, &info, &d, err);
    if (st != AS_OK)
        return st;
    struct add_arg arg = {.a = a, .d = &d};
    st = store_run(db, TX_WRITE, tx_add, &arg, err);
    if (st != AS_OK)
        return st;
    *ret = arg.ret;
    *ret_created = arg.created;
    return AS_OK;
}

/* Reading and removing. */

struct get_arg {
    struct arena *a;
    const char *name;
    struct dataset_row row;
    int64_t size;
    bool more;
    struct dataset_page page;
};

static as_status tx_get(struct tx *t, void *p, struct as_err *err)
{
    struct get_arg *arg = p;
    return store_dataset_get(t, arg->a, arg->name, false, &arg->row, err);
}

as_status dataset_get(struct store *db, struct arena *a, const char *name, struct dataset_row *ret,
                      struct as_err *err)
{
    struct get_arg arg = {.a = a, .name = name};
    as_status st = store_run(db, TX_READ, tx_get, &arg, err);
    if (st == AS_OK)
        *ret = arg.row;
    return st;
}

static as_status tx_list(struct tx *t, void *p, struct as_err *err)
{
    struct get_arg *arg = p;
    return store_dataset_list(t, arg->a, arg->name, arg->size, &arg->page.rows, &arg->page.n,
                              &arg->more, err);
}

as_status dataset_list(struct store *db, struct arena *a, const struct page_req *page,
                       struct dataset_page *ret, struct as_err *err)
{
    struct get_arg arg = {.a = a, .name = ""};
    as_status st = page_size(page, &arg.size, err);
    if (st == AS_OK && page->cursor)
        st = cursor_read(a, page->cursor, "datasets", &arg.name, 1, err);
    if (st == AS_OK)
        st = store_run(db, TX_READ, tx_list, &arg, err);
    if (st == AS_OK && arg.more) {
        const char *const place[] = {arg.page.rows[arg.page.n - 1].name};
        arg.page.next_cursor = cursor_make(a, "datasets", place, 1);
        if (!arg.page.next_cursor)
            return as_fail(err, AS_E_NOMEM, "out of memory");
    }
    if (st == AS_OK)
        *ret = arg.page;
    return st;
}

static as_status tx_delete(struct tx *t, void *p, struct as_err *err)
{
    AS_AUTO(arena_done) struct arena a = {0};
    struct get_arg *arg = p;
    const char *user = NULL;
    as_status st = store_dataset_lock(t, arg->name, err);
    if (st == AS_OK)
        st = store_dataset_user(t, &a, arg->name, &user, err);
    if (st == AS_OK && user)
        return as_fail(err, AS_E_CONFLICT, "the sweep '%s' uses the data set and has not ended",
                       user);
    return st == AS_OK ? store_dataset_delete(t, arg->name, err) : st;
}

as_status dataset_delete(struct store *db, const char *name, struct as_err *err)
{
    struct get_arg arg = {.name = name};
    return store_run(db, TX_WRITE, tx_delete, &arg, err);
}
