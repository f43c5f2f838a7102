/* The delivery thread's requests to the server.
 *
 * Every request can be repeated: measurements are keyed by step, files by digest, the log and the
 * set of files are replaced whole, and a completion counts once. So a lost answer needs no special
 * case.
 *
 * Three kinds of refusal are handled differently. A refused token is tried again for ever, because
 * the result is worth more than the wait; an internal error of the server is tried again a few
 * times. Stale or unknown attempts set `gone`, and nothing more is written. Refused content is
 * noted in the trial's log and skipped, so that one bad item costs only itself.
 *
 * The trial may change its files while they are read. Digest and bytes come from one open file, and
 * a checkpoint whose files changed meanwhile is not sent at all (upload_files, `whole`).
 *
 * A checkpoint and the measurements before it are two files that the trial writes one after the
 * other, at any moment. So the measurements are read to their end, and sent, after the last byte of
 * the checkpoint was read and before the server is told of it (send_lines_before).
 *
 * What is kept for forks goes the other way round: by a measurement at a rung the server decides
 * who is forked, so the files of that step are there before the measurement is sent
 * (keep_for_forks). */
#include "trial-runner/delivery/outbox.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "trial-runner/collect/collector.h"
#include "trial-runner/attempt/directive.h"
#include "trial-runner/delivery/cache.h"
#include "trial-runner/delivery/never_reported.h"
#include "trial-runner/delivery/sender.h"
#include "trial-runner/protocol/notes.h"
#include "trial-runner/attempt/process_output.h"
#include "trial-runner/rank/rank.h"

#define READ_BYTES (64 << 10)
#define USAGE_AFTER_MS 5000  /* a shorter attempt sends none */
#define USAGE_LEAST_MS 10000 /* between two, at first … */
#define USAGE_MOST_MS 60000  /* … and later */
#define USAGE_PATIENCE_MS 3000
#define OUTPUT_PATIENCE_MS 10000 /* for the output of an attempt without a result */
#define MAX_WARNINGS 20
#define TEXTS_MS 1000 /* between posts of notes */
#define DENIED_PAUSE_MS 5000
#define INTERNAL_PAUSE_MS 1000
#define INTERNAL_TRIES 4
#define METRICS_POINTER "/metrics"

void outbox_init(struct outbox *o, struct attempt *a)
{
    *o = (struct outbox){.attempt = a,
                         .files = {{.name = REPORT_NAME, .label = "ASSAY_REPORT", .fd = -1},
                                   {.name = COLLECTED_NAME, .label = "trial.report", .fd = -1}}};
}

void outbox_done(struct outbox *o)
{
    for (size_t i = 0; i < OUTBOX_FILES; i++) {
        file_closep(&o->files[i].fd);
        report_reader_done(&o->files[i].reader);
    }
    json_decref(o->items);
    json_decref(o->texts);
    json_decref(o->named);
    json_decref(o->seen);
    json_decref(o->skipped);
    fileset_done(&o->uploaded);
}

void outbox_rewind(struct outbox *o)
{
    for (size_t i = 0; i < OUTBOX_FILES; i++) {
        report_reader_done(&o->files[i].reader);
        o->files[i].reader = (struct report_reader){0};
        o->files[i].offset = 0;
    }
    json_array_clear(o->items);
    o->items_bytes = 0;
}

/* Add a warning to the trial's log. Only the first MAX_WARNINGS warnings are written. */
static void note_warning(struct outbox *o, const char *what, const char *why)
{
    if (o->warnings < MAX_WARNINGS)
        attempt_note(o->attempt, "warning: %s: %s%s", what, why,
                     o->warnings + 1 == MAX_WARNINGS ? " (further warnings are not shown)" : "");
    o->warnings++;
}

/* A kind of request. `kind` is for those that go together with those of other attempts. */
struct request {
    const char *method, *verb;
    bool is_shared;
    batch_kind kind;
};

static const struct request add_measurements = {"POST", "measurements", true, BATCH_MEASUREMENTS};
static const struct request complete_attempt = {"POST", "complete", true, BATCH_END};
static const struct request replace_log = {.method = "PUT", .verb = "log"};
static const struct request replace_usage = {.method = "PUT", .verb = "usage"};
static const struct request replace_files = {.method = "PUT", .verb = "files"};

/* Send a request of its own, of a rank with the headers that say in which world it leads. */
static as_status call_alone(struct outbox *o, const struct request *q, int64_t world,
                            const json_t *body, json_t **ret, struct as_err *err)
{
    const struct attempt *a = o->attempt;
    AS_AUTO(str_done) struct str path = {0};
    char seat[48], epoch[48];
    const char *const headers[] = {seat, epoch, NULL};
    struct client_opts opts = {.retry_ms = CLIENT_RETRY_FOREVER};
    if (o->brief_until_ns) {
        int64_t left_ms = (o->brief_until_ns - clock_mono_ns()) / NS_PER_MS;
        if (left_ms <= 0)
            return as_fail(err, AS_E_UNAVAILABLE, "the server did not take the result at once");
        opts = (struct client_opts){.timeout_ms = left_ms};
    }
    if (a->id.seat != ATTEMPT_NO_SEAT) {
        (void)snprintf(seat, sizeof seat, "Assay-Seat: %lld", (long long)a->id.seat);
        (void)snprintf(epoch, sizeof epoch, "Assay-World-Epoch: %lld", (long long)world);
        opts.headers = headers;
    }
    attempt_id_url(&a->id, &path);
    str_printf(&path, "/%s", q->verb);
    as_status st = str_check(&path, err);
    if (st < 0)
        return st;
    st = client_call(a->send, q->method, path.s, NULL, body, &opts, ret, NULL, err);
    (void)snprintf(o->code, sizeof o->code, "%s", client_problem_code(a->send));
    return st;
}

/* Send a request together with those of other attempts. *ret_alone: it has to be sent alone. */
static as_status call_shared(struct outbox *o, const struct request *q, int64_t world,
                             const json_t *body, json_t **ret, bool *ret_alone, struct as_err *err)
{
    const struct attempt *a = o->attempt;
    struct sender_answer answer;
    const struct sender_part part = {.kind = q->kind,
                                     .id = &a->id,
                                     .world_epoch = world,
                                     .body = body,
                                     .until_ns = o->brief_until_ns,
                                     .owner = a->send};
    as_status st = sender_send(a->sender, &part, &answer, err);
    (void)snprintf(o->code, sizeof o->code, "%s", answer.code);
    *ret_alone = answer.alone;
    if (ret)
        *ret = answer.body;
    else
        json_decref(answer.body);
    return st;
}

static as_status call_once(struct outbox *o, const struct request *q, const json_t *body,
                           json_t **ret, int64_t *ret_world, struct as_err *err)
{
    const struct attempt *a = o->attempt;
    bool is_alone = !q->is_shared;
    as_status st = AS_OK;
    o->code[0] = '\0';
    *ret_world = a->recovered ? a->end.world : 0; /* the world of a result found on disk */
    if (a->rank && !rank_leads(a->rank, ret_world))
        return as_fail(err, AS_E_STALE, "this rank does not lead its gang");
    if (!is_alone)
        st = call_shared(o, q, *ret_world, body, ret, &is_alone, err);
    return is_alone ? call_alone(o, q, *ret_world, body, ret, err) : st;
}

/* Has the request to be repeated, because there is a newer world and this rank leads it too? Where
 * the server says that there is one, it may come late. */
static bool repeat_in_newer_world(struct outbox *o, int64_t world)
{
    int64_t now = 0;
    struct rank *r = o->attempt->rank;
    bool exists = as_streq(o->code, "stale_world");
    return r && rank_leads(r, &now) &&
           (rank_await_world(r, world) || (exists && rank_leads(r, &now)));
}

/* Send one request of the attempt. A refused token is tried again, because the result is worth more
 * than the wait and an operator may restore the token. */
static as_status send_to_server(struct outbox *o, const struct request *q, const json_t *body,
                                json_t **ret, struct as_err *err)
{
    struct attempt *a = o->attempt;
    as_status st;
    int64_t world = 0;
    for (int failures = 0;;) {
        st = call_once(o, q, body, ret, &world, err);
        if (st == AS_E_STALE && repeat_in_newer_world(o, world))
            continue;
        if (st == AS_E_DENIED && as_streq(o->code, "not_holder"))
            st = err->code = AS_E_STALE; /* the work folder has lost the secret of this attempt */
        if (o->brief_until_ns && (st == AS_E_DENIED || st == AS_E_INTERNAL))
            return err->code = AS_E_UNAVAILABLE; /* patience decides */
        if (st != AS_E_DENIED && (st != AS_E_INTERNAL || ++failures > INTERNAL_TRIES))
            break;
        log_write(LOG_ERROR,
                  st == AS_E_DENIED ? "the server refuses this runner's token"
                                    : "the server failed",
                  "%s error=\"%s\"", a->label, err->msg);
        if (!client_wait(a->send, st == AS_E_DENIED ? DENIED_PAUSE_MS : INTERNAL_PAUSE_MS))
            return AS_E_UNAVAILABLE;
    }
    if (st == AS_E_STALE || st == AS_E_NOT_FOUND)
        o->gone = true;
    return st;
}

/* Did the server refuse the content? Then sending it again is useless. */
static bool is_refused(as_status st)
{
    return st == AS_E_INVAL || st == AS_E_TOO_LARGE || st == AS_E_CONFLICT ||
           st == AS_E_UNSUPPORTED || st == AS_E_INTERNAL;
}

static void on_skip(void *arg, const char *path, const char *why)
{
    char what[200];
    snprintf(what, sizeof what, "%.160s is not kept", path);
    note_warning(arg, what, why);
}

/* Upload the content of one file. Digest and bytes come from the same open file, so that the trial
 * may replace the file by rename meanwhile. */
static as_status upload_one(struct outbox *o, const char *dir, struct fileset_file *f,
                            int64_t retry_ms, struct as_err *err)
{
    const struct client_opts patience = {.retry_ms = retry_ms};
    AS_AUTO(as_freep) char *path = file_join(dir, f->path);
    char open_path[40];
    int64_t size = 0;
    if (!path)
        return as_fail_nomem(err);
    AS_AUTO(file_closep) int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return as_fail(err, AS_E_IO, "%s: %s", f->path, strerror(errno));
    snprintf(open_path, sizeof open_path, "/proc/self/fd/%d", fd);
    as_status st = sha256_of_file(open_path, f->sha256, &size, err);
    if (st == AS_OK)
        st = client_upload_file(o->attempt->send, open_path, f->sha256, &patience, NULL, err);
    if (st == AS_OK)
        f->size = size;
    else
        f->sha256[0] = '\0';
    return st;
}

/* May the failure come from a file that changed or disappeared while it was read? */
static bool is_moved(as_status st)
{
    return st == AS_E_INVAL || st == AS_E_IO || st == AS_E_NOT_FOUND;
}

/* Upload the files whose digest is not known. Files that cannot be kept are noted and left out.
 * AS_E_CONFLICT: `whole` asks for all files or none, and one has changed. */
static as_status upload_files(struct outbox *o, const char *dir, struct fileset *set, bool whole,
                              struct as_err *err)
{
    as_status st;
    for (size_t i = 0; i < set->n; i++) {
        if (set->files[i].sha256[0] ||
            (st = upload_one(o, dir, &set->files[i], CLIENT_RETRY_FOREVER, err)) == AS_OK)
            continue;
        if (!is_refused(st) && !is_moved(st))
            return st;
        if (whole && is_moved(st))
            return as_fail(err, AS_E_CONFLICT, "%s changed while it was read", set->files[i].path);
        on_skip(o, set->files[i].path, err->msg);
    }
    return AS_OK;
}

/* Send the list of files: what the attempt has of this kind. */
static as_status put_list(struct outbox *o, const struct fileset *set, const char *kind,
                          struct as_err *err)
{
    JSON_AUTO body = fileset_to_json(set, kind);
    if (!body)
        return as_fail_nomem(err);
    as_status st = send_to_server(o, &replace_files, body, NULL, err);
    if (is_refused(st)) {
        note_warning(o, kind, err->msg);
        st = AS_OK;
    }
    return st;
}

/* List the files below `dir`. A folder that the trial made unreadable is noted and counts as
 * empty. */
static as_status scan_folder(struct outbox *o, const char *dir, struct fileset *ret,
                             const char *what, struct as_err *err)
{
    as_status st = fileset_scan(dir, ret, on_skip, o, err);
    if (st != AS_E_INVAL)
        return st;
    note_warning(o, what, err->msg);
    return AS_OK;
}

/* ---- forks ---- */

#define KEPT_FOLDER "step-%" PRId64 /* as the trainer names it (train/checkpoint.h) */
#define KEEP_TRIES 5                /* a program may write its checkpoint just then */

/* Is the file below a folder "step-5", which holds what is kept and no checkpoint? */
static bool is_kept_file(const struct fileset_file *f)
{
    size_t prefix = strlen("step-"), digits = 0;
    if (strncmp(f->path, "step-", prefix) != 0)
        return false;
    digits = strspn(f->path + prefix, "0123456789");
    return digits > 0 && f->path[prefix + digits] == '/';
}

/* Leave out what is kept for forks. */
static void drop_kept(struct fileset *s)
{
    size_t n = 0;
    for (size_t i = 0; i < s->n; i++) {
        if (is_kept_file(&s->files[i]))
            free(s->files[i].path);
        else
            s->files[n++] = s->files[i];
    }
    s->n = n;
}

/* The checkpoint folder as another attempt would go on from it. */
static as_status scan_checkpoints(struct outbox *o, const char *dir, struct fileset *ret,
                                  struct as_err *err)
{
    as_status st = scan_folder(o, dir, ret, "the checkpoints are not kept", err);
    if (st == AS_OK && o->attempt->claimed.forks.json)
        drop_kept(ret);
    return st;
}

static char *kept_folder(const struct outbox *o, int64_t step)
{
    AS_AUTO(str_done) struct str path = {0};
    str_printf(&path, "%s/checkpoints/" KEPT_FOLDER, o->attempt->dir, step);
    return str_take(&path);
}

/* The bit of a step at which something is kept; 0: nothing is. */
static uint64_t bit_of(const struct outbox *o, int64_t step)
{
    const struct claimed_forks *k = &o->attempt->claimed.forks;
    if (!k->json || step <= 0 || step >= k->until || step % k->every != 0)
        return 0;
    return UINT64_C(1) << (step / k->every - 1);
}

static as_status put_kept(struct outbox *o, const struct fileset *set, int64_t step,
                          struct as_err *err)
{
    JSON_AUTO body = fileset_to_json(set, "kept");
    if (!body || json_object_set_new(body, "step", json_integer(step)) < 0)
        return as_fail_nomem(err);
    as_status st = send_to_server(o, &replace_files, body, NULL, err);
    if (!is_refused(st))
        return st;
    note_warning(o, "nothing is kept for forks", err->msg);
    return AS_OK;
}

/* Keep what the program has left for this step in the folder of its own, or else all that is in the
 * checkpoint folder now. */
static as_status keep_step(struct outbox *o, int64_t step, struct as_err *err)
{
    AS_AUTO(as_freep) char *all = file_join(o->attempt->dir, "checkpoints");
    AS_AUTO(as_freep) char *own = kept_folder(o, step);
    if (!all || !own)
        return as_fail_nomem(err);
    bool is_own = access(own, F_OK) == 0;
    as_status st = AS_E_CONFLICT;
    for (int tries = 0; tries < KEEP_TRIES && st == AS_E_CONFLICT; tries++) {
        AS_AUTO(fileset_done) struct fileset set = {0};
        st = is_own ? scan_folder(o, own, &set, "nothing is kept for forks", err)
                    : scan_checkpoints(o, all, &set, err);
        if (st == AS_OK)
            st = upload_files(o, is_own ? own : all, &set, true, err);
        if (st == AS_OK)
            st = put_kept(o, &set, step, err);
    }
    if (st != AS_E_CONFLICT)
        return st;
    note_warning(o, "nothing is kept for forks", err->msg);
    return AS_OK;
}

/* Before the batch is sent: keep what forks of its steps begin from. */
static as_status keep_for_forks(struct outbox *o, struct as_err *err)
{
    size_t i;
    json_t *item;
    as_status st = AS_OK;
    json_array_foreach(o->items, i, item)
    {
        int64_t step = json_integer_value(json_object_get(item, "step"));
        uint64_t bit = bit_of(o, step);
        if (!bit || (o->kept & bit))
            continue;
        if ((st = keep_step(o, step, err)) < 0)
            return st;
        o->kept |= bit;
    }
    return st;
}

/* The batch was sent: the server has what was kept for its steps. */
static void forget_kept(const struct outbox *o)
{
    size_t i;
    json_t *item;
    json_array_foreach(o->items, i, item)
    {
        int64_t step = json_integer_value(json_object_get(item, "step"));
        AS_AUTO(as_freep) char *folder = bit_of(o, step) ? kept_folder(o, step) : NULL;
        if (folder)
            (void)!file_remove_tree(folder, NULL);
    }
}

/* ---- measurements ---- */

static as_status post_items(struct outbox *o, json_t *items, struct as_err *err)
{
    JSON_AUTO answer = NULL;
    JSON_AUTO body = json_pack("{s:O}", "items", items);
    if (!body)
        return as_fail_nomem(err);
    as_status st = send_to_server(o, &add_measurements, body, &answer, err);
    if (st < 0)
        return st;
    directives_take_one(o->attempt, json_object_get(answer, "directives"));
    return AS_OK;
}

/* Send the batch. If the server refuses it, send its items one by one, so that one bad item costs
 * only itself. */
static as_status flush_items(struct outbox *o, struct as_err *err)
{
    size_t i;
    json_t *item;
    if (json_array_size(o->items) == 0)
        return AS_OK;
    as_status st = keep_for_forks(o, err);
    if (st < 0)
        return st;
    st = post_items(o, o->items, err);
    if (is_refused(st) && json_array_size(o->items) > 1) {
        json_array_foreach(o->items, i, item)
        {
            JSON_AUTO one = json_pack("[O]", item);
            st = one ? post_items(o, one, err) : as_fail_nomem(err);
            if (is_refused(st))
                note_warning(o, "a measurement was refused", err->msg);
            else if (st < 0)
                return st;
        }
        st = AS_OK;
    } else if (is_refused(st)) {
        note_warning(o, "a measurement was refused", err->msg);
        st = AS_OK;
    }
    if (st == AS_OK)
        forget_kept(o);
    json_array_clear(o->items);
    o->items_bytes = 0;
    return st;
}

/* ---- what is read ---- */

static as_status on_item(void *arg, int64_t step, json_t *metrics, struct as_err *err)
{
    struct outbox *o = arg;
    size_t n = json_object_size(metrics);
    const char *name;
    json_t *value;
    if (!o->seen)
        o->seen = json_object();
    json_object_foreach(metrics, name, value)
    {
        if (json_object_size(o->seen) < REPORT_MAX_METRICS && !json_object_get(o->seen, name) &&
            json_object_set_new(o->seen, name, json_true()) < 0) {
            json_decref(metrics);
            return as_fail_nomem(err);
        }
    }
    json_t *item = json_pack("{s:I,s:o}", "step", (json_int_t)step, "metrics", metrics);
    if (!o->items)
        o->items = json_array();
    if (json_array_append_new(o->items, item) < 0)
        return as_fail_nomem(err);
    o->items_bytes += 32 + 64 * n;
    if (json_array_size(o->items) < OUTBOX_BATCH_ITEMS && o->items_bytes < OUTBOX_BATCH_BYTES)
        return AS_OK;
    return flush_items(o, err);
}

/* For the reason, if the trial fails for want of a metric. */
static void on_field_skip(void *arg, const char *name)
{
    struct outbox *o = arg;
    if (!o->skipped)
        o->skipped = json_object();
    if (json_object_size(o->skipped) < REPORT_MAX_METRICS)
        (void)json_object_set_new(o->skipped, name, json_true());
}

static void on_bad(void *arg, size_t line, const char *why)
{
    struct outbox *o = arg;
    char what[48];
    snprintf(what, sizeof what, "line %zu of %s", line, o->reading->label);
    note_warning(o, what, why);
}

/* Does the trainer say with it that its checkpoint is damaged? */
static bool is_lost_note(const struct attempt *a, const char *name)
{
    return strcmp(name, NOTE_CHECKPOINT_LOST) == 0 &&
           json_is_object(json_object_get(a->claimed.trial, "train"));
}

static as_status note_lost(struct attempt *a, const char *text, struct as_err *err)
{
    free(a->lost);
    a->lost = as_strdup(text);
    return a->lost ? AS_OK : as_fail_nomem(err);
}

/* Keep the text until it is sent. The server keeps as many names. */
static as_status on_note(void *arg, const char *name, const char *text, struct as_err *err)
{
    struct outbox *o = arg;
    if (is_lost_note(o->attempt, name))
        return note_lost(o->attempt, text, err);
    if (!o->texts)
        o->texts = json_object();
    if (!o->named)
        o->named = json_object();
    if (!json_object_get(o->named, name)) {
        if (json_object_size(o->named) == OUTBOX_MAX_NOTES)
            return AS_OK;
        if (json_object_set_new(o->named, name, json_true()) < 0)
            return as_fail_nomem(err);
        if (json_object_size(o->named) == OUTBOX_MAX_NOTES)
            note_warning(o, name,
                         "this is the last text that is kept as a note; more names follow");
    }
    return json_object_set_new(o->texts, name, json_string(text)) < 0 ? as_fail_nomem(err) : AS_OK;
}

/* Send the notes, unless `at_once` at most once in TEXTS_MS: a trial may write a text with each
 * measurement. */
static as_status flush_texts(struct outbox *o, bool at_once, struct as_err *err)
{
    int64_t now = clock_mono_ns();
    if (json_object_size(o->texts) == 0 || (!at_once && now < o->texts_due_ns))
        return AS_OK;
    JSON_AUTO body = json_pack("{s:[],s:O}", "items", "notes", o->texts);
    if (!body)
        return as_fail_nomem(err);
    as_status st = send_to_server(o, &add_measurements, body, NULL, err);
    if (is_refused(st)) {
        note_warning(o, "the notes were refused", err->msg);
        st = AS_OK;
    }
    if (st < 0)
        return st;
    json_object_clear(o->texts);
    o->texts_due_ns = now + TEXTS_MS * NS_PER_MS;
    return AS_OK;
}

/* ---- the files ---- */

static void refuse_file(struct outbox *o, struct outbox_file *f, const char *why)
{
    file_closep(&f->fd);
    if (!f->refused)
        note_warning(o, "ASSAY_REPORT is not read", why);
    f->refused = true;
}

/* Open the file, which was `seen` at its path. The trial may replace it by anything at any moment;
 * to open a device may already do something. */
static void open_file(struct outbox *o, struct outbox_file *f, const char *path,
                      const struct stat *seen)
{
    struct stat sb;
    if (!S_ISREG(seen->st_mode)) {
        refuse_file(o, f,
                    S_ISLNK(seen->st_mode) ? "it is a link, not a regular file"
                                           : "it is not a regular file");
        return;
    }
    f->fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (f->fd < 0 && errno == EACCES)
        refuse_file(o, f, strerror(errno));
    else if (f->fd >= 0 && (fstat(f->fd, &sb) < 0 || !S_ISREG(sb.st_mode)))
        refuse_file(o, f, "it is not a regular file");
}

/* Open the file. If it was replaced, open the new one; if it was truncated, start again from its
 * beginning. */
static void follow_file(struct outbox *o, struct outbox_file *f)
{
    AS_AUTO(as_freep) char *path = file_join(o->attempt->dir, f->name);
    struct stat now, held;
    if (!path || lstat(path, &now) < 0)
        return;
    if (f->fd >= 0 && fstat(f->fd, &held) == 0) {
        if (held.st_ino == now.st_ino && held.st_dev == now.st_dev) {
            if (now.st_size < f->offset) {
                report_reader_restart(&f->reader);
                f->offset = 0;
            }
            return;
        }
        file_closep(&f->fd);
        report_reader_restart(&f->reader);
    }
    f->offset = 0;
    open_file(o, f, path, &now);
}

/* Read to where the file ends now. A trial that writes on and on would never let this end. */
static as_status read_file(struct outbox_file *f, const struct report_fns *fns, struct as_err *err)
{
    struct stat sb;
    AS_AUTO(as_freep) char *buf = malloc(READ_BYTES);
    if (!buf)
        return as_fail_nomem(err);
    if (fstat(f->fd, &sb) < 0)
        return as_fail(err, AS_E_IO, "report: %s", strerror(errno));
    while (f->offset < sb.st_size) {
        int64_t left = sb.st_size - f->offset;
        size_t most = left < READ_BYTES ? (size_t)left : READ_BYTES;
        ssize_t n = pread(f->fd, buf, most, (off_t)f->offset);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) /* 0: it was truncated meanwhile */
            return n == 0 ? AS_OK : as_fail(err, AS_E_IO, "report: %s", strerror(errno));
        f->offset += n;
        as_status st = report_reader_feed(&f->reader, buf, (size_t)n, fns, err);
        if (st < 0)
            return st;
    }
    return AS_OK;
}

static as_status send_file(struct outbox *o, struct outbox_file *f, bool last, struct as_err *err)
{
    const struct report_fns fns = {.on_item = on_item,
                                   .on_bad = on_bad,
                                   .on_note = on_note,
                                   .on_skip = on_field_skip,
                                   .arg = o};
    as_status st = AS_OK;
    o->reading = f;
    if (f->fd >= 0) /* the rest of this file, which may have been replaced by another */
        st = read_file(f, &fns, err);
    if (st < 0)
        return st;
    follow_file(o, f);
    if (f->fd >= 0)
        st = read_file(f, &fns, err);
    return st == AS_OK && last ? report_reader_end(&f->reader, &fns, err) : st;
}

/* Tell the server, once, that the checkpoint which it gave cannot be used: before a new one is. */
static as_status send_lost(struct outbox *o, struct as_err *err)
{
    struct attempt *a = o->attempt;
    JSON_AUTO body =
        a->lost ? json_pack("{s:s,s:[],s:s}", "kind", "checkpoint", "files", "lost", a->lost)
                : NULL;
    if (!a->lost)
        return AS_OK;
    if (!body)
        return as_fail_nomem(err);
    as_status st = send_to_server(o, &replace_files, body, NULL, err);
    if (st < 0 && !is_refused(st))
        return st;
    free(a->lost);
    a->lost = NULL;
    return AS_OK;
}

static as_status send_lines(struct outbox *o, bool last, bool at_once, struct as_err *err)
{
    as_status st = AS_OK;
    for (size_t i = 0; st == AS_OK && i < OUTBOX_FILES; i++)
        st = send_file(o, &o->files[i], last, err);
    if (st < 0 || (st = flush_items(o, err)) < 0 || (st = send_lost(o, err)) < 0)
        return st;
    return flush_texts(o, at_once, err);
}

as_status outbox_measurements(struct outbox *o, bool last, struct as_err *err)
{
    return send_lines(o, last, last, err);
}

/* Send all that the trial had measured before the bytes of its checkpoint were read. */
static as_status send_lines_before(struct outbox *o, struct as_err *err)
{
    if (o->attempt->launch.collector)
        output_catch_up(o->attempt);
    return send_lines(o, false, true, err);
}

static as_status put_log(struct outbox *o, const char *text, bool truncated, struct as_err *err)
{
    JSON_AUTO body = json_pack("{s:s,s:b}", "text", text, "truncated", truncated);
    if (!body)
        return as_fail_nomem(err);
    as_status st = send_to_server(o, &replace_log, body, NULL, err);
    if (is_refused(st)) {
        log_write(LOG_WARN, "the server refused a log", "%s error=\"%s\"", o->attempt->label,
                  err->msg);
        return AS_OK;
    }
    return st;
}

as_status outbox_log(struct outbox *o, struct as_err *err)
{
    struct attempt *a = o->attempt;
    AS_AUTO(str_done) struct str text = {0};
    pthread_mutex_lock(&a->lock);
    unsigned version = a->tail.version;
    bool truncated = version != o->log_version && tail_text(&a->tail, &text);
    pthread_mutex_unlock(&a->lock);
    if (version == o->log_version)
        return AS_OK;
    as_status st = str_check(&text, err);
    if (st < 0)
        return st;
    st = put_log(o, str_cstr(&text), truncated, err);
    if (st < 0)
        return st;
    o->log_version = version;
    return AS_OK;
}

/* The epoch that the header says: any of the gang's, because no rank leads in what it uses. */
static int64_t known_world(struct attempt *a)
{
    if (!a->rank)
        return 0;
    pthread_mutex_lock(&a->lock);
    int64_t epoch = a->rank->world.epoch;
    pthread_mutex_unlock(&a->lock);
    return epoch > 0 ? epoch : 1;
}

/* Every ten seconds at first, later every twentieth of the time that it has run, and at least once
 * a minute. */
static int64_t usage_pause_ms(int64_t ran_ms)
{
    int64_t ms = ran_ms / 20;
    return ms < USAGE_LEAST_MS ? USAGE_LEAST_MS : ms > USAGE_MOST_MS ? USAGE_MOST_MS : ms;
}

void outbox_usage(struct outbox *o, bool last)
{
    struct attempt *a = o->attempt;
    struct as_err err = {0};
    int64_t now = clock_mono_ns();
    JSON_AUTO body = NULL;
    pthread_mutex_lock(&a->lock);
    int64_t ran_ms = (now - a->began_ns) / NS_PER_MS;
    bool is_due = a->use.n > 0 && ran_ms >= USAGE_AFTER_MS && (last || now >= o->usage_due_ns);
    if (is_due)
        body = usage_json(&a->use);
    pthread_mutex_unlock(&a->lock);
    if (!body)
        return;
    o->usage_due_ns = now + usage_pause_ms(ran_ms) * NS_PER_MS;
    int64_t was_brief = o->brief_until_ns;
    o->brief_until_ns = now + USAGE_PATIENCE_MS * NS_PER_MS; /* one try */
    if (call_alone(o, &replace_usage, known_world(a), body, NULL, &err) < 0)
        log_write(LOG_DEBUG, "the use of the machine was not sent", "%s error=\"%s\"", a->label,
                  err.msg);
    o->brief_until_ns = was_brief;
    o->code[0] = '\0';
}

as_status outbox_checkpoints(struct outbox *o, struct as_err *err)
{
    AS_AUTO(fileset_done) struct fileset now = {0};
    AS_AUTO(as_freep) char *dir = file_join(o->attempt->dir, "checkpoints");
    if (!dir)
        return as_fail_nomem(err);
    as_status st = scan_checkpoints(o, dir, &now, err);
    if (st < 0 || fileset_same(&now, &o->uploaded))
        return st;
    fileset_copy_digests(&now, &o->uploaded);
    st = upload_files(o, dir, &now, true, err);
    if (st == AS_E_CONFLICT) /* until the next look the server keeps the files that it has */
        return AS_OK;
    if (st < 0 || (st = send_lines_before(o, err)) < 0 ||
        (st = put_list(o, &now, "checkpoint", err)) < 0)
        return st;
    fileset_done(&o->uploaded);
    o->uploaded = now;
    now = (struct fileset){0};
    return AS_OK;
}

as_status outbox_skip_checkpoints(struct outbox *o, struct as_err *err)
{
    AS_AUTO(as_freep) char *dir = file_join(o->attempt->dir, "checkpoints");
    return dir ? scan_folder(o, dir, &o->uploaded, "the checkpoints are not kept", err)
               : as_fail_nomem(err);
}

void outbox_keep_checkpoints(const struct outbox *o)
{
    const struct options *opts = o->attempt->options;
    for (size_t i = 0; i < o->uploaded.n; i++) {
        const struct fileset_file *f = &o->uploaded.files[i];
        AS_AUTO(str_done) struct str path = {0};
        struct as_err err = {0};
        str_printf(&path, "%s/checkpoints/%s", o->attempt->dir, f->path);
        if (!f->sha256[0] || path.failed)
            continue;
        if (cache_keep(opts->cache, opts->cache_max_bytes, f->sha256, path.s, &err) < 0)
            log_write(LOG_WARN, "a checkpoint is not kept in the cache", "%s error=\"%s\"",
                      o->attempt->label, err.msg);
    }
}

as_status outbox_artifacts(struct outbox *o, struct as_err *err)
{
    AS_AUTO(fileset_done) struct fileset now = {0};
    AS_AUTO(as_freep) char *dir = file_join(o->attempt->dir, "artifacts");
    if (!dir)
        return as_fail_nomem(err);
    as_status st = scan_folder(o, dir, &now, "the artifacts are not kept", err);
    if (st < 0 || now.n == 0 || (st = upload_files(o, dir, &now, false, err)) < 0)
        return st;
    return put_list(o, &now, "artifact", err);
}

bool outbox_has_output(const struct outbox *o)
{
    const struct attempt *a = o->attempt;
    whole_log_flush(a->whole);
    return !o->output_sent && a->options->log_max_bytes > 0 && whole_log_exists(a->dir);
}

/* Say which content the output is. Each rank has its own, whoever leads. */
static as_status put_output(struct outbox *o, struct fileset_file *f, bool patiently,
                            struct as_err *err)
{
    const struct fileset set = {.files = f, .n = 1};
    JSON_AUTO body = fileset_to_json(&set, "log");
    if (!body)
        return as_fail_nomem(err);
    return patiently && !o->attempt->rank
               ? send_to_server(o, &replace_files, body, NULL, err)
               : call_alone(o, &replace_files, known_world(o->attempt), body, NULL, err);
}

as_status outbox_output(struct outbox *o, bool patiently, struct as_err *err)
{
    const struct attempt *a = o->attempt;
    AS_AUTO(as_freep) char *path = NULL;
    char name[] = WHOLE_LOG_NAME;
    struct fileset_file f = {.path = name};
    if (!outbox_has_output(o))
        return AS_OK;
    as_status st = whole_log_join(a->dir, a->options->log_max_bytes, &path, err);
    if (st == AS_OK)
        st = upload_one(o, a->dir, &f, patiently ? CLIENT_RETRY_FOREVER : OUTPUT_PATIENCE_MS, err);
    if (st == AS_OK)
        st = put_output(o, &f, patiently, err);
    o->output_sent = st == AS_OK;
    if (!is_refused(st) && !is_moved(st) && st != AS_E_STALE)
        return st;
    log_write(LOG_WARN, "the whole output is not kept", "%s error=\"%s\"", a->label, err->msg);
    return AS_OK;
}

as_status outbox_sync_artifacts(const struct outbox *o, size_t *ret_n, struct as_err *err)
{
    AS_AUTO(fileset_done) struct fileset now = {0};
    AS_AUTO(as_freep) char *dir = file_join(o->attempt->dir, "artifacts");
    if (!dir)
        return as_fail_nomem(err);
    as_status st = fileset_scan(dir, &now, NULL, NULL, err);
    *ret_n = st == AS_OK ? now.n : 0;
    if (st == AS_OK && now.n > 0)
        st = fileset_sync(&now, dir, err);
    return st == AS_E_INVAL ? AS_OK
                            : st; /* a folder that the trial made unreadable has no artifacts */
}

as_status outbox_sync_measurements(const struct outbox *o, struct as_err *err)
{
    for (size_t i = 0; i < OUTBOX_FILES; i++) {
        AS_AUTO(as_freep) char *path = file_join(o->attempt->dir, o->files[i].name);
        struct stat sb;
        if (!path)
            return as_fail_nomem(err);
        if (lstat(path, &sb) < 0 || !S_ISREG(sb.st_mode))
            continue;
        as_status st = file_sync(path, err);
        if (st < 0)
            return st;
    }
    return AS_OK;
}

/* How far the rank came that leads a gang: its last heartbeat was before its end. */
static bool add_progress(struct attempt *a, json_t *body)
{
    if (!a->rank)
        return true;
    json_t *rank = json_object();
    pthread_mutex_lock(&a->lock);
    bool ok = rank && a->rank_fns->add_progress_locked(a->rank, rank);
    pthread_mutex_unlock(&a->lock);
    if (ok && json_object_size(rank) > 0)
        return json_object_set_new(body, "rank", rank) == 0;
    json_decref(rank);
    return ok;
}

/* Send the end of the attempt. */
static as_status post_end(struct outbox *o, struct as_err *err)
{
    const struct trial_end *r = &o->attempt->end;
    JSON_AUTO body =
        json_pack("{s:s,s:s?}", "outcome", outcome_name(r->outcome), "reason", r->reason);
    bool ok = body != NULL;
    if (ok && r->has_exit_code)
        ok = json_object_set_new(body, "exit_code", json_integer(r->exit_code)) == 0;
    if (ok && r->has_ran)
        ok = json_object_set_new(body, "ran_ms", json_integer(r->ran_ms)) == 0;
    ok = ok && add_progress(o->attempt, body);
    o->end_sent = true;
    return ok ? send_to_server(o, &complete_attempt, body, NULL, err) : as_fail_nomem(err);
}

/* The process exited with 0 and never reported a metric that its sweep requires: the server refuses
 * to complete the trial, and names the metric in the pointer. Only the server knows which metrics
 * those are. So the trial has failed. */
static as_status post_failure(struct outbox *o, struct as_err *err)
{
    AS_AUTO(str_done) struct str reason = {0};
    const char *at = err->pointer + strlen(METRICS_POINTER);
    char metric[METRIC_NAME_MAX + 1] = "";
    (void)json_pointer_next(&at, metric, sizeof metric);
    never_reported(o->attempt, metric, o->seen, o->skipped, &reason);
    as_status st = str_check(&reason, err);
    if (st < 0)
        return st;
    free(o->attempt->end.reason);
    o->attempt->end.reason = str_take(&reason);
    o->attempt->end.outcome = OUTCOME_FAILED;
    return post_end(o, err);
}

as_status outbox_end_again(struct outbox *o, struct as_err *err)
{
    const struct trial_end *r = &o->attempt->end;
    as_status st = post_end(o, err);
    if (st == AS_E_INVAL && r->outcome == OUTCOME_COMPLETED &&
        as_starts_with(err->pointer, METRICS_POINTER "/"))
        st = post_failure(o, err);
    return st;
}

as_status outbox_result(struct outbox *o, struct as_err *err)
{
    const struct trial_end *r = &o->attempt->end;
    as_status st = r->log && *r->log ? put_log(o, r->log, r->truncated, err) : AS_OK;
    return st < 0 ? st : outbox_end_again(o, err);
}
