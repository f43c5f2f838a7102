/* Data sets: content is copied into temporary files, read completely, and registered under a name.
 *
 * The properties of a data set (rows, features, classes, columns) are computed from its content and
 * never taken from the request. Reading may take seconds, so it happens outside of transactions. A
 * name is bound to the digest of its files and of the options for reading them, so the same request
 * again is no conflict. */
#include "scheduler/services/datasets.h"

#include <stdio.h>
#include <string.h>

#include "data/dataset_json.h"
#include "data/dataset_profile.h"
#include "data/dataset_read.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/str.h"
#include "scheduler/content/blobs.h"
#include "scheduler/services/cursor_priv.h"
#include "scheduler/content/blob_file.h"
#include "scheduler/store/dataset_store.h"
#include "scheduler/store/event_store.h"

#define DATASET_DESCRIPTION_MAX 1000

/* The fields of a request. */
struct request {
    const char *name, *description;
    dataset_format format;
    dataset_task task;
    json_t *target; /* borrowed; NULL */
    char target_text[4000];
    json_t *options_json;                   /* borrowed; NULL */
    struct dataset_options options;         /* owned */
    const char *table, *features, *targets; /* digests */
    const char *test, *test_targets;        /* of the test rows: a table or features, and targets */
};

/* Test rows are in files like the others. */
static as_status check_test(struct request *r, const char *test, const char *test_features,
                            struct as_err *err)
{
    bool any = test || test_features || r->test_targets;
    bool is_pair = test_features && r->test_targets && !test;
    bool is_one = test && !test_features && !r->test_targets;
    r->test = test ? test : test_features;
    if (!any || (r->table ? is_one : is_pair))
        return AS_OK;
    return as_fail_at(err, AS_E_INVAL, "/files", "of test rows expected %s, as of the others",
                      r->table ? "test alone" : "test_features and test_targets");
}

static as_status read_files(json_t *files, struct request *r, struct as_err *err)
{
    struct json_fields f;
    const char *test = NULL, *test_features = NULL;
    as_status st = json_fields_init(&f, files, "/files", err);
    if (st < 0 || (st = json_fields_str(&f, "table", JSON_OPTIONAL, &r->table, err)) < 0 ||
        (st = json_fields_str(&f, "features", JSON_OPTIONAL, &r->features, err)) < 0 ||
        (st = json_fields_str(&f, "targets", JSON_OPTIONAL, &r->targets, err)) < 0 ||
        (st = json_fields_str(&f, "test", JSON_OPTIONAL, &test, err)) < 0 ||
        (st = json_fields_str(&f, "test_features", JSON_OPTIONAL, &test_features, err)) < 0 ||
        (st = json_fields_str(&f, "test_targets", JSON_OPTIONAL, &r->test_targets, err)) < 0 ||
        (st = json_fields_end(&f, err)) < 0)
        return st;
    bool pair = r->features && r->targets && !r->table;
    if (!pair && !(r->table && !r->features && !r->targets))
        return as_fail_at(err, AS_E_INVAL, "/files", "expected table, or features and targets");
    return check_test(r, test, test_features, err);
}

static as_status read_target(struct request *r, struct as_err *err)
{
    bool column = r->table && (r->format == DATASET_CSV || r->format == DATASET_NPY);
    if (!column)
        return r->target ? as_fail_at(err, AS_E_INVAL, "/target",
                                      "the targets of this data set are no column: none is named")
                         : AS_OK;
    if (!r->target && r->task == DATASET_CLUSTERING)
        return AS_OK;
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

/* Parse the fields without a check of their values. *ret_files is borrowed. */
static as_status read_fields(const json_t *doc, struct request *r, json_t **ret_files,
                             struct as_err *err)
{
    struct json_fields f;
    int format = 0, task = 0;
    as_status st = json_fields_init(&f, doc, "", err);
    if (st < 0 || (st = json_fields_str(&f, "name", JSON_REQUIRED, &r->name, err)) < 0 ||
        (st = json_fields_word(&f, "format", JSON_REQUIRED, dataset_format_names, &format, err)) <
            0 ||
        (st = json_fields_word(&f, "task", JSON_OPTIONAL, dataset_task_names, &task, err)) < 0 ||
        (st = json_fields_object(&f, "files", JSON_REQUIRED, ret_files, err)) < 0 ||
        (st = json_fields_any(&f, "target", JSON_OPTIONAL, &r->target, err)) < 0 ||
        (st = json_fields_object(&f, "options", JSON_OPTIONAL, &r->options_json, err)) < 0 ||
        (st = json_fields_text(&f, "description", JSON_OPTIONAL, 0, DATASET_DESCRIPTION_MAX,
                               &r->description, err)) < 0 ||
        (st = json_fields_end(&f, err)) < 0)
        return st;
    r->format = (dataset_format)format;
    r->task = (dataset_task)task;
    return AS_OK;
}

static as_status read_request(const json_t *doc, struct request *r, struct as_err *err)
{
    json_t *files = NULL;
    as_status st = read_fields(doc, r, &files, err);
    if (st != AS_OK)
        return st;
    if (r->options_json)
        st = dataset_options_from_json(r->options_json, "/options", &r->options, err);
    if (st != AS_OK)
        return st;
    if (!as_slug_valid(r->name))
        return as_fail_at(err, AS_E_INVAL, "/name",
                          "'%.63s' is not a name: lower-case letters, digits, '.', '_', '-', at "
                          "most 63",
                          r->name);
    st = read_files(files, r, err);
    if (st != AS_OK)
        return st;
    return read_target(r, err);
}

/* Copy the content of one role into a file. */
static as_status fetch_file(struct store *db, struct dataset_row *d, const char *role,
                            const char *sha256, struct blob_file *ret, struct as_err *err)
{
    char pointer[32];
    int64_t size = 0;
    snprintf(pointer, sizeof pointer, "/files/%s", role);
    if (!sha256_hex_valid(sha256))
        return as_fail_at(err, AS_E_INVAL, pointer, "'%.64s' is not a SHA-256 digest", sha256);
    as_status st = blob_stat(db, sha256, &size, err);
    if (st == AS_OK)
        st = blob_file_init(db, sha256, ret, err);
    if (st == AS_E_NOT_FOUND)
        return as_fail_at(err, AS_E_UNSUPPORTED, pointer,
                          "no content %s is stored: upload it first", sha256);
    if (st != AS_OK)
        return st;
    d->files[d->n_files++] =
        (struct dataset_file_row){.role = role, .sha256 = sha256, .size = size};
    return AS_OK;
}

static void info_done(struct dataset_info *info)
{
    dataset_info_done(info);
}

static void request_done(struct request *r)
{
    dataset_options_done(&r->options);
}

/* Messages name the files that a request gave. The names of temporary files would mean nothing to a
 * client. */
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

/* Read the test rows completely: by what the other files say. */
static as_status inspect_test(struct store *db, const struct request *r, struct dataset_row *d,
                              const struct dataset_info *info, struct as_err *err)
{
    AS_AUTO(blob_file_done) struct blob_file first = {0};
    AS_AUTO(blob_file_done) struct blob_file second = {0};
    const char *role = r->table ? "test" : "test_features";
    size_t rows = 0;
    as_status st = fetch_file(db, d, role, r->test, &first, err);
    if (st == AS_OK && r->test_targets)
        st = fetch_file(db, d, "test_targets", r->test_targets, &second, err);
    if (st != AS_OK)
        return st;
    const struct dataset_paths paths = {.table = r->table ? first.path : NULL,
                                        .features = r->table ? NULL : first.path,
                                        .targets = r->test_targets ? second.path : NULL};
    st = dataset_test_inspect(&paths, info, &rows, err);
    d->test_rows = (int64_t)rows;
    if (st == AS_OK)
        return AS_OK;
    name_file(err, first.path, role);
    name_file(err, second.path, "test_targets");
    if (st == AS_E_INVAL && err && err->pointer[0] == '\0')
        snprintf(err->pointer, sizeof err->pointer, "/files/%s", role);
    /* content of the request: 400, also where the format has no rows */
    return st == AS_E_UNSUPPORTED ? as_fail_at(err, AS_E_INVAL, "/files/test", "%s", err->msg) : st;
}

/* Read the content completely. An error is an error of the named files. */
static as_status inspect_content(struct store *db, const struct request *r, struct dataset_row *d,
                                 struct dataset_info *ret, struct as_err *err)
{
    AS_AUTO(blob_file_done) struct blob_file first = {0};
    AS_AUTO(blob_file_done) struct blob_file second = {0};
    struct dataset_paths paths = {0};
    as_status st = fetch_file(db, d, r->table ? "table" : "features",
                              r->table ? r->table : r->features, &first, err);
    if (st != AS_OK)
        return st;
    if (r->targets)
        st = fetch_file(db, d, "targets", r->targets, &second, err);
    if (st != AS_OK)
        return st;
    paths.table = r->table ? first.path : NULL;
    paths.features = r->features ? first.path : NULL;
    paths.targets = r->targets ? second.path : NULL;
    st = dataset_inspect(&paths, r->format, r->target ? r->target_text : NULL, r->task, &r->options,
                         ret, err);
    if (st == AS_OK)
        return r->test ? inspect_test(db, r, d, ret, err) : AS_OK;
    name_file(err, first.path, r->table ? "table" : "features");
    name_file(err, second.path, "targets");
    if (st == AS_E_INVAL && err && err->pointer[0] == '\0')
        snprintf(err->pointer, sizeof err->pointer, "/files");
    return st;
}

static bool is_of_test(const struct dataset_file_row *f)
{
    return as_starts_with(f->role, "test");
}

/* The digest of the files and of the options for reading them, with or without the test rows. */
static as_status digest_files(struct arena *a, const struct dataset_row *d, bool with_test,
                              const char **ret, struct as_err *err)
{
    AS_AUTO(str_done) struct str b = {0};
    str_printf(&b, "%s\n%s\n%s\n", d->format, d->task, d->target ? d->target : "");
    if (d->options)
        str_printf(&b, "%s\n", d->options);
    for (size_t i = 0; i < d->n_files; i++)
        if (with_test || !is_of_test(&d->files[i]))
            str_printf(&b, "%s %s\n", d->files[i].role, d->files[i].sha256);
    char hex[SHA256_HEX_SIZE];
    as_status st = str_check(&b, err);
    if (st != AS_OK)
        return st;
    st = sha256_of(str_cstr(&b), b.len, hex, err);
    if (st != AS_OK)
        return st;
    *ret = arena_strdup(a, hex);
    return *ret ? AS_OK : as_fail_nomem(err);
}

/* The text of a tree in the arena; NULL stays NULL. */
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
    return *ret ? AS_OK : as_fail_nomem(err);
}

static as_status describe_dataset(struct arena *a, const struct request *r,
                                  const struct dataset_info *info, struct dataset_row *d,
                                  struct as_err *err)
{
    JSON_AUTO j = dataset_info_to_json(info);
    if (!j)
        return as_fail_nomem(err);
    d->name = r->name;
    d->description = r->description;
    d->format = dataset_format_name(info->format);
    d->task = dataset_task_name(info->task);
    d->input = dataset_input_name(info->input);
    d->n_rows = (int64_t)info->n_rows;
    d->n_features = (int64_t)info->n_features;
    d->n_outputs = (int64_t)info->n_outputs;
    as_status st = arena_json(a, r->target, &d->target, err);
    if (st < 0 || (st = arena_json(a, json_object_get(j, "classes"), &d->classes, err)) < 0 ||
        (st = arena_json(a, json_object_get(j, "options"), &d->options, err)) < 0 ||
        (st = arena_json(a, json_object_get(j, "image"), &d->image, err)) < 0 ||
        (st = arena_json(a, json_object_get(j, "columns"), &d->columns, err)) < 0)
        return st;
    st = digest_files(a, d, true, &d->sha256, err);
    return st == AS_OK && d->test_rows > 0 ? digest_files(a, d, false, &d->train_sha256, err) : st;
}

static as_status note_change(struct tx *t, const char *name, struct as_err *err)
{
    const struct event_new e = {.type = "dataset.changed", .dataset = name};
    return store_event_add(t, &e, err);
}

static as_status add_dataset(struct tx *t, struct arena *a, const struct dataset_row *d,
                             bool *ret_created, struct dataset_row *ret, struct as_err *err)
{
    as_status st = store_dataset_add(t, d, ret_created, err);
    if (st == AS_E_NOT_FOUND)
        return as_fail_at(err, AS_E_UNSUPPORTED, "/files",
                          "its content was removed meanwhile: upload it again");
    if (st != AS_OK)
        return st;
    st = store_dataset_get(t, a, d->name, false, ret, err);
    if (st != AS_OK)
        return st;
    if (*ret_created)
        return note_change(t, d->name, err);
    if (!as_streq(ret->sha256, d->sha256))
        return as_fail_at(err, AS_E_CONFLICT, "/name",
                          "the data set '%s' holds other content, or the same read in another way",
                          d->name);
    return AS_OK;
}

as_status dataset_create(struct store *db, struct arena *a, const json_t *doc,
                         struct dataset_row *ret, bool *ret_created, struct as_err *err)
{
    AS_AUTO(request_done) struct request r = {0};
    struct dataset_row d = {0};
    AS_AUTO(info_done) struct dataset_info info = {0};
    struct dataset_row row;
    bool created = false;
    as_status st = read_request(doc, &r, err);
    if (st != AS_OK)
        return st;
    st = inspect_content(db, &r, &d, &info, err);
    if (st != AS_OK)
        return st;
    st = describe_dataset(a, &r, &info, &d, err);
    if (st != AS_OK)
        return st;
    struct tx_run run = tx_run_start(db, TX_WRITE, err);
    while (tx_run_again(&run))
        run.status = add_dataset(run.tx, a, &d, &created, &row, err);
    if (run.status != AS_OK)
        return run.status;
    *ret = row;
    *ret_created = created;
    return AS_OK;
}

/* Read and remove. */

as_status dataset_get(struct store *db, struct arena *a, const char *name, struct dataset_row *ret,
                      struct as_err *err)
{
    struct dataset_row row;
    struct tx_run run = tx_run_start(db, TX_READ, err);
    while (tx_run_again(&run))
        run.status = store_dataset_get(run.tx, a, name, false, &row, err);
    if (run.status == AS_OK)
        *ret = row;
    return run.status;
}

as_status dataset_list(struct store *db, struct arena *a, const struct page_req *page,
                       struct dataset_page *ret, struct as_err *err)
{
    const char *after = "";
    int64_t size = 0;
    struct dataset_page rows = {0};
    bool more = false;
    as_status st = page_size(page, &size, err);
    if (st != AS_OK)
        return st;
    if (page->cursor)
        st = cursor_read(a, page->cursor, "datasets", &after, 1, err);
    if (st != AS_OK)
        return st;
    struct tx_run run = tx_run_start(db, TX_READ, err);
    while (tx_run_again(&run))
        run.status = store_dataset_list(run.tx, a, after, size, &rows.rows, &rows.n, &more, err);
    if (run.status != AS_OK)
        return run.status;
    if (more) {
        const char *const place[] = {rows.rows[rows.n - 1].name};
        rows.next_cursor = cursor_make(a, "datasets", place, 1);
        if (!rows.next_cursor)
            return as_fail_nomem(err);
    }
    *ret = rows;
    return AS_OK;
}

/* ---- previews ---- */

static as_status read_preview(struct store *db, struct arena *a, const char *name,
                              struct dataset_row *ret_row, const char **ret, struct as_err *err)
{
    struct tx_run run = tx_run_start(db, TX_READ, err);
    while (tx_run_again(&run)) {
        run.status = store_dataset_preview(run.tx, a, name, ret, err);
        if (run.status == AS_OK && !*ret)
            run.status = store_dataset_get(run.tx, a, name, false, ret_row, err);
    }
    return run.status;
}

static const struct dataset_file_row *find_file(const struct dataset_row *d, const char *role)
{
    for (size_t i = 0; i < d->n_files; i++)
        if (as_streq(d->files[i].role, role))
            return &d->files[i];
    return NULL;
}

static as_status copy_role(struct store *db, const struct dataset_row *d, const char *role,
                           struct blob_file *file, const char **ret_path, struct as_err *err)
{
    const struct dataset_file_row *f = find_file(d, role);
    as_status st = f ? blob_file_init(db, f->sha256, file, err) : AS_OK;
    *ret_path = f ? file->path : NULL;
    return st;
}

static as_status look_at(struct store *db, const struct dataset_row *d, struct dataset_profile *ret,
                         struct as_err *err)
{
    AS_AUTO(blob_file_done) struct blob_file table = {0};
    AS_AUTO(blob_file_done) struct blob_file features = {0};
    AS_AUTO(blob_file_done) struct blob_file targets = {0};
    AS_AUTO(info_done) struct dataset_info info = {0};
    struct dataset_paths paths = {0};
    as_status st = dataset_row_info(d, &info, err);
    if (st == AS_OK)
        st = copy_role(db, d, "table", &table, &paths.table, err);
    if (st == AS_OK)
        st = copy_role(db, d, "features", &features, &paths.features, err);
    if (st == AS_OK)
        st = copy_role(db, d, "targets", &targets, &paths.targets, err);
    return st == AS_OK ? dataset_profile_read(&paths, &info, ret, err) : st;
}

/* Two requests at once do the work twice; both find the same. */
static as_status make_preview(struct store *db, struct arena *a, const struct dataset_row *d,
                              const char **ret, struct as_err *err)
{
    AS_AUTO(dataset_profile_done) struct dataset_profile profile = {0};
    as_status st = look_at(db, d, &profile, err);
    if (st != AS_OK)
        return st;
    JSON_AUTO j = dataset_profile_to_json(&profile);
    AS_AUTO(as_freep) char *text = json_format_ordered(j);
    *ret = arena_strdup(a, text);
    if (!*ret)
        return as_fail_nomem(err);
    struct tx_run run = tx_run_start(db, TX_WRITE, err);
    while (tx_run_again(&run))
        run.status = store_dataset_keep_preview(run.tx, d->name, d->sha256, *ret, err);
    return run.status;
}

as_status dataset_preview(struct store *db, struct arena *a, const char *name, const char **ret,
                          struct as_err *err)
{
    struct dataset_row row = {0};
    const char *preview = NULL;
    as_status st = read_preview(db, a, name, &row, &preview, err);
    if (st == AS_OK && !preview)
        st = make_preview(db, a, &row, &preview, err);
    if (st == AS_OK)
        *ret = preview;
    return st;
}

/* ---- removal ---- */

static as_status delete_unused(struct tx *t, const char *name, struct as_err *err)
{
    AS_AUTO(arena_done) struct arena a = {0};
    const char *user = NULL;
    as_status st = store_dataset_lock(t, name, err);
    if (st != AS_OK)
        return st;
    st = store_dataset_user(t, &a, name, &user, err);
    if (st != AS_OK)
        return st;
    if (user)
        return as_fail(err, AS_E_CONFLICT, "the sweep '%s' uses the data set and has not ended",
                       user);
    st = store_dataset_delete(t, name, err);
    return st == AS_OK ? note_change(t, name, err) : st;
}

as_status dataset_delete(struct store *db, const char *name, struct as_err *err)
{
    struct tx_run run = tx_run_start(db, TX_WRITE, err);
    while (tx_run_again(&run))
        run.status = delete_unused(run.tx, name, err);
    return run.status;
}
