/* assay data add: uploads files and registers them as a data set.
 *
 * Files are uploaded before the data set is registered, because a registration names its files by
 * digest. The server keeps files by digest: a file that it has already is not sent again, so the
 * command can be repeated after an error.
 *
 * A file is read twice, for its digest and to send it. So it must be a regular file; standard
 * input is copied to a temporary file without a name while its digest is computed. A signal ends
 * each part at once: the digest looks at the flag after each piece, and the upload ends with its
 * client. */
#include "cli/commands/data_add.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/temp_file.h"
#include "cli/commands/data_show.h"
#include "cli/files/image_folder.h"
#include "cli/files/table_options.h"
#include "cli/files/test_cut.h"
#include "cli/session/interrupt.h"
#include "cli/view/format.h"
#include "cli/view/meter.h"
#include "cli/view/say.h"
#include "data/dataset_json.h"

#define UPLOAD_TIMEOUT_MS (60 * 60 * 1000)  /* without a byte */
#define INPUT_MAX_BYTES (INT64_C(16) << 30) /* of standard input; assayd has a limit of its own */
#define REMARKS_SAID ((size_t)20)
#define LARGE_BYTES (INT64_C(16) << 20) /* the server needs a while for them */

/* The format by the end of the file's name; NULL: unknown. */
static const char *format_of(const char *path)
{
    static const struct {
        const char *end, *format;
    } ends[] = {
        {".csv", "csv"},        {".npy", "npy"},
        {".npz", "npz"},        {".safetensors", "safetensors"},
        {".txt", "text"},       {".txt.gz", "text"},
        {"-ubyte", "idx"},      {"-ubyte.gz", "idx"},
        {".idx", "idx"},        {".idx.gz", "idx"},
        {".idx3-ubyte", "idx"}, {".data", "csv"},
        {".csv.gz", "csv"},     {".tsv", "csv"},
        {".tsv.gz", "csv"},     {".tab", "csv"},
    };
    for (size_t i = 0; i < AS_ARRAY_LEN(ends); i++)
        if (as_ends_with(path, ends[i].end))
            return ends[i].format;
    return NULL;
}

/* One file to upload. */
struct source {
    const char *name; /* for people */
    int fd;
    int64_t size;
    char sha256[SHA256_HEX_SIZE];
    int copy_fd; /* -1, or where the pieces of standard input are kept */
    struct meter meter;
};

static as_status take_piece(void *arg, const void *piece, size_t len, int64_t so_far,
                            struct as_err *err)
{
    struct source *f = arg;
    meter_show(&f->meter, so_far);
    if (interrupt_seen())
        return as_fail(err, AS_E_UNAVAILABLE, "interrupted");
    if (f->copy_fd >= 0 && so_far > INPUT_MAX_BYTES)
        return as_fail(err, AS_E_TOO_LARGE, "more than %lld GiB; name a file instead",
                       (long long)(INPUT_MAX_BYTES >> 30));
    return f->copy_fd >= 0 ? file_write_all(f->copy_fd, piece, len, err) : AS_OK;
}

static void on_sent(void *arg, int64_t done)
{
    meter_show(arg, done);
}

/* Compute the digest. *fd becomes a descriptor that can be read again. */
static as_status read_source(struct source *f, const char *path, int *fd, struct as_err *err)
{
    bool is_stdin = as_streq(path, "-");
    struct stat sb;
    as_status st = is_stdin ? temp_file_open(fd, err) : file_open_regular(path, fd, err);
    if (st < 0)
        return st;
    f->copy_fd = is_stdin ? *fd : -1;
    bool has_size = !is_stdin && fstat(*fd, &sb) == 0;
    meter_start(&f->meter, f->name, "reading", has_size ? (int64_t)sb.st_size : -1);
    st = sha256_of_fd(is_stdin ? STDIN_FILENO : *fd, take_piece, f, f->sha256, &f->size, err);
    meter_end(&f->meter);
    return st;
}

/* Compute the digest of a file, upload it, and store the digest in `files` under its role. `name`
 * is the file's for people. */
static as_status upload_named(const struct data_add *d, const char *path, const char *name,
                              const char *role, json_t *files, struct as_err *err)
{
    AS_AUTO(file_closep) int fd = -1;
    char size_text[32];
    bool sent = false;
    struct source f = {.name = name};
    as_status st = read_source(&f, path, &fd, err);
    if (st < 0)
        return as_err_prefix(err, st, "%s", f.name);
    const struct client_opts opts = {.timeout_ms = UPLOAD_TIMEOUT_MS,
                                     .retry_ms = 30000,
                                     .on_progress = on_sent,
                                     .progress_arg = &f.meter};
    meter_start(&f.meter, f.name, "sending", f.size);
    st = client_upload_fd(d->session->client, fd, f.size, f.sha256, &opts, &sent, err);
    meter_end(&f.meter);
    if (st < 0)
        return as_err_prefix(err, st, "%s", f.name);
    if (sent)
        say("%s: sent %s%s", f.name, format_size(f.size, size_text),
            f.size >= LARGE_BYTES ? "; the server reads it" : "");
    if (json_object_set_new(files, role, json_string(f.sha256)) != 0)
        return as_fail_nomem(err);
    return AS_OK;
}

/* A column is named by its header or by its number. */
static json_t *target_new(const char *text)
{
    int64_t index;
    return as_parse_i64(text, &index, NULL) == AS_OK ? json_integer(index) : json_string(text);
}

/* The bytes before the next comma of a list; one with a backslash before it belongs to the item. */
static size_t item_length(const char *list)
{
    size_t n = 0;
    while (list[n] && list[n] != ',')
        n += list[n] == '\\' && list[n + 1] ? 2 : 1;
    return n;
}

/* Add a list of names that commas separate. Returns 0, or -1 when memory is out. */
static int add_names(json_t *o, const char *option, const char *text)
{
    JSON_AUTO list = json_array();
    for (const char *p = text; p; p = *p ? p + 1 : NULL) {
        size_t n = item_length(p);
        bool is_empty = n == 2 && strncmp(p, "\"\"", n) == 0; /* the column without a name */
        if (json_array_append_new(list, json_stringn(p, is_empty ? 0 : n)) != 0)
            return -1;
        p += n;
    }
    return json_array_size(list) ? json_object_set(o, option, list) : 0;
}

/* Add the numbers that mean that a value is missing. Returns 0, or -1 when memory is out. */
static int add_codes(json_t *o, const struct data_add *d)
{
    JSON_AUTO list = json_array();
    for (size_t i = 0; i < d->n_codes; i++)
        if (json_array_append_new(list, json_real(d->codes[i])) != 0)
            return -1;
    return d->n_codes ? json_object_set(o, "missing", list) : 0;
}

/* How to read a table. Returns 0, or not 0 when memory is out. */
static int add_csv_options(json_t *o, const struct data_add *d)
{
    const struct csv_dialect *w = &d->written;
    int bad = 0;
    if (w->separator)
        bad |= json_object_set_new(o, "separator", json_stringn(&w->separator, 1));
    if (w->decimal)
        bad |= json_object_set_new(o, "decimal", json_stringn(&w->decimal, 1));
    if (w->comment)
        bad |= json_object_set_new(o, "comment", json_stringn(&w->comment, 1));
    bad |= add_names(o, "select", d->select);
    AS_AUTO(str_done) struct str drop = {0};
    str_printf(&drop, "%s%s%s", d->drop ? d->drop : "", d->drop && d->test_column ? "," : "",
               d->test_column ? d->test_column : "");
    bad |= drop.failed || add_names(o, "drop", drop.len ? str_cstr(&drop) : NULL) != 0;
    bad |= add_names(o, "text", d->text);
    bad |= add_names(o, "numeric", d->numeric);
    bad |= add_codes(o, d);
    if (d->buckets)
        bad |= json_object_set_new(o, "buckets", json_integer(d->buckets));
    if (d->drop_unlabelled)
        bad |= json_object_set_new(o, "drop_unlabelled", json_true());
    return bad;
}

/* The options that differ from their defaults. New reference. */
static json_t *options_new(const struct data_add *d)
{
    JSON_AUTO o = json_object();
    int bad = o == NULL;
    if (d->channels_first)
        bad |= json_object_set_new(o, "channels_first", json_true());
    if (d->raw)
        bad |= json_object_set_new(o, "raw", json_true());
    if (d->vocab)
        bad |= json_object_set_new(o, "vocab", json_integer(d->vocab));
    if (d->x)
        bad |= json_object_set_new(o, "x", json_string(d->x));
    if (d->y)
        bad |= json_object_set_new(o, "y", json_string(d->y));
    if (d->positive)
        bad |= json_object_set_new(o, "positive", json_string(d->positive));
    bad |= add_csv_options(o, d);
    return bad ? NULL : as_steal(o);
}

/* "28x32": height and width. */
static as_status parse_size(const char *text, size_t *height, size_t *width, struct as_err *err)
{
    int64_t h = 0, w = 0;
    const char *x = strchr(text, 'x');
    AS_AUTO(as_freep) char *first = as_strdup(text);
    if (!first)
        return as_fail_nomem(err);
    if (x)
        first[x - text] = '\0';
    if (!x || as_parse_i64(first, &h, NULL) != AS_OK || as_parse_i64(x + 1, &w, NULL) != AS_OK ||
        h < 1 || w < 1 || h > 65536 || w > 65536)
        return as_fail(err, AS_E_USAGE,
                       "--size: found '%.40s', expected HEIGHTxWIDTH, such as 32x32", text);
    *height = (size_t)h;
    *width = (size_t)w;
    return AS_OK;
}

static as_status on_image(void *arg, size_t done, size_t total, struct as_err *err)
{
    (void)arg;
    (void)done;
    (void)total;
    return interrupt_seen() ? as_fail(err, AS_E_UNAVAILABLE, "interrupted") : AS_OK;
}

/* Pack the images of a folder into the file at `path`. */
static as_status pack_folder(const struct data_add *d, const char *path, struct as_err *err)
{
    struct image_folder packed;
    struct image_folder_opts opts = {.grey = d->grey, .on_file = on_image};
    as_status st = d->size ? parse_size(d->size, &opts.height, &opts.width, err) : AS_OK;
    if (st < 0)
        return st;
    st = image_folder_pack(d->file, path, &opts, &packed, err);
    if (st < 0)
        return st;
    say("%s: %zu images of %zu classes, %zu x %zu pixels, %zu channel%s", d->file, packed.n_images,
        packed.n_classes, packed.height, packed.width, packed.channels,
        packed.channels == 1 ? "" : "s");
    if (packed.n_skipped)
        say("%s: %zu other file%s skipped", d->file, packed.n_skipped,
            packed.n_skipped == 1 ? "" : "s");
    return AS_OK;
}

/* A folder is packed into a temporary file, which is uploaded. */
static as_status upload_folder(const struct data_add *d, json_t *files, struct as_err *err)
{
    char path[256];
    AS_AUTO(file_closep) int fd = -1;
    as_status st = temp_file_create(path, sizeof path, &fd, err);
    if (st < 0)
        return st;
    st = pack_folder(d, path, err);
    if (st == AS_OK)
        st = upload_named(d, path, d->file, "table", files, err);
    (void)unlink(path);
    return st;
}

static as_status upload_file(const struct data_add *d, const char *path, const char *role,
                             json_t *files, struct as_err *err)
{
    const char *name = as_streq(path, "-")                   ? "standard input"
                       : d->shown && as_streq(path, d->file) ? d->shown
                                                             : path;
    return upload_named(d, path, name, role, files, err);
}

/* One temporary file of the two that a table is cut into. */
struct cut_file {
    char path[256]; /* "": there is none */
    int fd;
};

static void cut_file_done(struct cut_file *f)
{
    if (!*f->path)
        return;
    (void)close(f->fd);
    (void)unlink(f->path);
}

static as_status cut_file_open(struct cut_file *f, struct as_err *err)
{
    as_status st = temp_file_create(f->path, sizeof f->path, &f->fd, err);
    if (st < 0)
        f->path[0] = '\0';
    return st;
}

/* Cut the table in two and upload both. */
static as_status upload_cut(const struct data_add *d, json_t *files, struct as_err *err)
{
    AS_AUTO(cut_file_done) struct cut_file train = {.fd = -1};
    AS_AUTO(cut_file_done) struct cut_file test = {.fd = -1};
    struct test_cut rows;
    AS_AUTO(str_done) struct str name = {0};
    as_status st = cut_file_open(&train, err);
    if (st == AS_OK)
        st = cut_file_open(&test, err);
    if (st == AS_OK)
        st = test_cut_file(d->file, &d->written, d->test_column, train.fd, test.fd, &rows, err);
    if (st != AS_OK)
        return st;
    str_printf(&name, "%s, its %zu test rows", d->file, rows.n_test);
    st = upload_named(d, train.path, d->file, "table", files, err);
    return st == AS_OK ? upload_named(d, test.path, str_cstr(&name), "test", files, err) : st;
}

static as_status upload_files(const struct data_add *d, json_t *files, struct as_err *err)
{
    if (d->test_column)
        return upload_cut(d, files, err);
    if (file_is_folder(d->file))
        return upload_folder(d, files, err);
    as_status st = upload_file(d, d->file, d->targets ? "features" : "table", files, err);
    if (st < 0)
        return st;
    if (d->targets)
        st = upload_file(d, d->targets, "targets", files, err);
    if (st == AS_OK && d->test)
        st = upload_file(d, d->test, d->targets ? "test_features" : "test", files, err);
    if (st == AS_OK && d->test_targets)
        st = upload_file(d, d->test_targets, "test_targets", files, err);
    return st;
}

/* Remove the pointer from an error, also from the beginning of its message. */
static void forget_pointer(struct as_err *err)
{
    size_t n = strlen(err->pointer);
    if (as_starts_with(err->msg, err->pointer) && err->msg[n] == ':' && err->msg[n + 1] == ' ')
        memmove(err->msg, err->msg + n + 2, strlen(err->msg + n + 2) + 1);
    err->pointer[0] = '\0';
}

as_status data_add_options(const struct data_add *d, struct dataset_options *ret,
                           struct as_err *err)
{
    JSON_AUTO options = options_new(d);
    return options ? dataset_options_from_json(options, "", ret, err) : as_fail_nomem(err);
}

/* Say what people should know of a table before it is learned from. A table that cannot be looked
 * at is no error here: the server says what is wrong with it. */
static void say_remarks(const struct data_add *d)
{
    AS_AUTO(table_look_done) struct table_look look = {0};
    AS_AUTO(dataset_options_done) struct dataset_options o = {0};
    AS_AUTO(as_freep) struct remark *remarks = NULL;
    dataset_task task = DATASET_TASK_AUTO;
    size_t n = 0;
    bool is_table = as_streq(d->format, "csv") && !as_streq(d->file, "-") && !d->session->json &&
                    !as_streq(d->task, "clustering"); /* remarks are about a target */
    if (!is_table || (d->task && dataset_task_parse(d->task, &task, NULL) != AS_OK) ||
        data_add_options(d, &o, NULL) != AS_OK ||
        table_look(d->file, d->target, task, &o, &look, NULL) != AS_OK ||
        remarks_of(&look, &remarks, &n, NULL) != AS_OK)
        return;
    remarks_say(&look, remarks, n);
}

void remarks_say(const struct table_look *look, const struct remark *remarks, size_t n)
{
    AS_AUTO(str_done) struct str line = {0};
    for (size_t i = 0; i < n && i < REMARKS_SAID; i++) {
        str_clear(&line);
        remark_format(look, &remarks[i], &line);
        say("%s", str_cstr(&line));
    }
    if (n > REMARKS_SAID)
        say("… and %zu more remarks on columns", n - REMARKS_SAID);
}

static as_status make_body(const struct data_add *d, json_t **ret, struct as_err *err)
{
    JSON_AUTO files = json_object();
    JSON_AUTO options = options_new(d);
    JSON_AUTO body = json_pack("{s:s, s:s}", "name", d->name, "format", d->format);
    if (!files || !body || !options)
        return as_fail_nomem(err);
    as_status st = upload_files(d, files, err);
    if (st < 0)
        return st;
    int bad = json_object_set(body, "files", files);
    if (d->target)
        bad |= json_object_set_new(body, "target", target_new(d->target));
    if (d->task)
        bad |= json_object_set_new(body, "task", json_string(d->task));
    if (d->description)
        bad |= json_object_set_new(body, "description", json_string(d->description));
    if (json_object_size(options))
        bad |= json_object_set(body, "options", options);
    if (bad)
        return as_fail_nomem(err);
    *ret = as_steal(body);
    return AS_OK;
}

/* Test rows are in files like the others. */
static as_status check_test(const struct data_add *d, struct as_err *err)
{
    bool is_text = as_streq(d->format, "text") || as_streq(d->format, "tokens");
    if (d->test_column && !as_streq(d->format, "csv"))
        return as_fail(err, AS_E_USAGE, "--test-column names a column of a csv table, found %s",
                       d->format);
    if (d->test_column && (d->test || d->test_targets || as_streq(d->file, "-")))
        return as_fail(err, AS_E_USAGE,
                       "--test-column cuts FILE: it goes with neither --test nor standard input");
    if (d->test_column && d->test_column[strcspn(d->test_column, ",*?[")])
        return as_fail(
            err, AS_E_USAGE,
            "--test-column: found '%.60s', expected the name of one column without , * ? [",
            d->test_column);
    if (!d->test && !d->test_targets)
        return AS_OK;
    if (is_text)
        return as_fail(err, AS_E_USAGE, "--test is for tables and images, found %s", d->format);
    if (as_streq(d->test, "-") || as_streq(d->test_targets, "-"))
        return as_fail(err, AS_E_USAGE, "--test: expected a file, found standard input (-)");
    if (d->targets && !(d->test && d->test_targets))
        return as_fail(err, AS_E_USAGE,
                       "test rows of two files need both: --test FILE and --test-targets FILE");
    if (!d->targets && d->test_targets)
        return as_fail(err, AS_E_USAGE,
                       "--test-targets goes with --targets; the targets of %.160s are in it",
                       d->file);
    return AS_OK;
}

static as_status check_folder(struct data_add *d, struct as_err *err)
{
    size_t h, w;
    if (as_streq(d->format, "csv"))
        return as_fail(err, AS_E_USAGE, "%.160s is a folder, expected a CSV file", d->file);
    if (d->format && !as_streq(d->format, "safetensors"))
        return as_fail(err, AS_E_USAGE,
                       "%.160s is a folder: its images are packed as safetensors, not as %s",
                       d->file, d->format);
    if (d->test || d->test_targets || d->test_column)
        return as_fail(
            err, AS_E_USAGE,
            "--test: %.160s is a folder of images, whose test rows must be packed as the "
            "arrays x and y of a safetensors file, like those of the folder",
            d->file);
    if (d->target || d->targets || d->x || d->y)
        return as_fail(err, AS_E_USAGE,
                       "%.160s is a folder: the classes of its images are its sub-folders, and it "
                       "takes no --target, --targets, --x or --y",
                       d->file);
    d->format = "safetensors";
    return d->size ? parse_size(d->size, &h, &w, err) : AS_OK;
}

as_status data_add_check(struct data_add *d, struct as_err *err)
{
    if (d->file && d->features)
        return as_fail(err, AS_E_USAGE, "the features are named twice: as FILE and by --features");
    d->file = d->file ? d->file : d->features;
    if (!d->file)
        return as_fail(err, AS_E_USAGE, "expected a FILE, or --features FILE --targets FILE");
    as_status st = table_options_parse(d->separator, d->decimal, d->comment, &d->written, err);
    if (st == AS_OK)
        st = table_codes_parse(d->missing, DATASET_MAX_CODES, d->codes, &d->n_codes, err);
    if (st < 0)
        return st;
    if (as_streq(d->file, "-") && as_streq(d->targets, "-"))
        return as_fail(err, AS_E_USAGE, "standard input (-) can be only one of the two files");
    if (file_is_folder(d->file))
        return check_folder(d, err);
    if (d->size || d->grey)
        return as_fail(err, AS_E_USAGE,
                       "--size and --grey go with a folder of images, found %.160s", d->file);
    if (!d->format)
        d->format = format_of(d->file);
    if (!d->format && d->target)
        d->format = "csv"; /* a table may have any name */
    if (!d->format)
        return as_fail(err, AS_E_USAGE,
                       "%.200s: its name does not show the format; add --format csv, npy, npz, "
                       "idx, cifar, safetensors, text or tokens",
                       d->file);
    bool csv = as_streq(d->format, "csv"), npy = as_streq(d->format, "npy");
    bool idx = as_streq(d->format, "idx");
    if (idx && !d->targets)
        return as_fail(err, AS_E_USAGE, "images in idx need --targets FILE, the labels");
    if (d->targets && !npy && !idx)
        return as_fail(err, AS_E_USAGE, "--targets goes with the formats npy and idx, not with %s",
                       d->format);
    if (d->target && (d->targets || (!csv && !npy)))
        return as_fail(err, AS_E_USAGE, "--target names a column of a csv or npy table");
    if (!d->target && ((csv && !as_streq(d->task, "clustering")) || (npy && !d->targets)))
        return as_fail(err, AS_E_USAGE,
                       "a table needs --target COLUMN: the name of a column, or its number%s",
                       npy ? " (or --targets FILE)" : "; or --task clustering");
    return check_test(d, err);
}

static void say_added(const struct data_add *d, const json_t *answer, bool again)
{
    const char *task = json_string_value(json_object_get(answer, "task"));
    json_int_t rows = json_integer_value(json_object_get(answer, "rows"));
    json_int_t features = json_integer_value(json_object_get(answer, "features"));
    json_int_t outputs = json_integer_value(json_object_get(answer, "outputs"));
    const char *before = again ? " (registered before)" : "";
    bool is_of_classes = as_streq(task, "classification");
    if (as_streq(task, "language_modeling"))
        say("%s%s: %" JSON_INTEGER_FORMAT " tokens of %" JSON_INTEGER_FORMAT " kinds", d->name,
            before, rows, outputs);
    else
        say("%s%s: %" JSON_INTEGER_FORMAT " rows, %" JSON_INTEGER_FORMAT
            " feature%s, %s, %" JSON_INTEGER_FORMAT " %s%s",
            d->name, before, rows, features, features == 1 ? "" : "s", task ? task : "?", outputs,
            is_of_classes ? "class" : "output",
            outputs == 1    ? ""
            : is_of_classes ? "es"
                            : "s");
    const json_t *test = json_object_get(answer, "test");
    if (test)
        say("%s: %" JSON_INTEGER_FORMAT
            " test rows, which no search sees: the end of a sweep reports them",
            d->name, json_integer_value(json_object_get(test, "rows")));
    if (!d->task && outputs > 2 && data_show_numbers_are_classes(answer))
        say("%s: the target's %" JSON_INTEGER_FORMAT
            " whole numbers are taken as classes; if they are quantities, give --task "
            "regression",
            d->name, outputs);
}

as_status data_add(const struct data_add *d, struct as_err *err)
{
    char key[CLIENT_KEY_SIZE];
    JSON_AUTO body = NULL;
    JSON_AUTO answer = NULL;
    if (!d->looked_at)
        say_remarks(d);
    as_status st = make_body(d, &body, err);
    if (st < 0)
        return st;
    client_key_new(key);
    const struct client_opts opts = {
        .idempotency_key = key, .timeout_ms = 300000, .retry_ms = 30000};
    int http_status = 0;
    st = client_call(d->session->client, "POST", "/v1/datasets", NULL, body, &opts, &answer,
                     &http_status, err);
    bool of_test = as_starts_with(err->pointer, "/files/test");
    if (st < 0 && as_starts_with(err->pointer, "/files"))
        forget_pointer(err); /* the paths of the files are clearer than "/files" */
    if (st < 0 && of_test)
        return as_err_prefix(err, st, "%s%s%s%s", d->test ? d->test : d->file,
                             d->test ? "" : ", its test rows alone", d->test_targets ? ", " : "",
                             d->test_targets ? d->test_targets : "");
    if (st < 0)
        return as_err_prefix(err, st, "%s%s%s", d->file, d->targets ? ", " : "",
                             d->targets ? d->targets : "");
    if (d->session->json)
        return d->looked_at ? AS_OK : session_print_json(answer, err);
    say_added(d, answer, http_status == 200);
    return AS_OK;
}
