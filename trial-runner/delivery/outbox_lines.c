/* Measurements and notes of one attempt: the lines that its program and the collector wrote, read
 * only as fast as the server takes them. */
#include "trial-runner/delivery/outbox_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "trial-runner/attempt/directive.h"
#include "trial-runner/attempt/process_output.h"
#include "trial-runner/collect/collector.h"
#include "trial-runner/protocol/notes.h"

#define READ_BYTES (64 << 10)
#define TEXTS_MS 1000 /* between posts of notes */

static const struct outbox_request add_measurements = {"POST", "measurements", true,
                                                       BATCH_MEASUREMENTS};

/* ---- measurements ---- */

static as_status post_items(struct outbox *o, json_t *items, struct as_err *err)
{
    JSON_AUTO answer = NULL;
    JSON_AUTO body = json_pack("{s:O}", "items", items);
    if (!body)
        return as_fail_nomem(err);
    as_status st = outbox_send(o, &add_measurements, body, &answer, err);
    if (st < 0)
        return st;
    directives_take_one(o->attempt, json_object_get(answer, "directives"));
    return AS_OK;
}

/* If the server refuses the batch, send its items one by one, so that one bad item costs only
 * itself. */
as_status outbox_flush_items(struct outbox *o, struct as_err *err)
{
    size_t i;
    json_t *item;
    if (json_array_size(o->items) == 0)
        return AS_OK;
    as_status st = outbox_keep_for_forks(o, err);
    if (st < 0)
        return st;
    st = post_items(o, o->items, err);
    if (outbox_is_refused(st) && json_array_size(o->items) > 1) {
        json_array_foreach(o->items, i, item)
        {
            JSON_AUTO one = json_pack("[O]", item);
            st = one ? post_items(o, one, err) : as_fail_nomem(err);
            if (outbox_is_refused(st))
                outbox_warn(o, "a measurement was refused", err->msg);
            else if (st < 0)
                return st;
        }
        st = AS_OK;
    } else if (outbox_is_refused(st)) {
        outbox_warn(o, "a measurement was refused", err->msg);
        st = AS_OK;
    }
    if (st == AS_OK)
        outbox_forget_kept(o);
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
    return outbox_flush_items(o, err);
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
    outbox_warn(o, what, why);
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
            outbox_warn(o, name, "this is the last text that is kept as a note; more names follow");
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
    as_status st = outbox_send(o, &add_measurements, body, NULL, err);
    if (outbox_is_refused(st)) {
        outbox_warn(o, "the notes were refused", err->msg);
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
        outbox_warn(o, "ASSAY_REPORT is not read", why);
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
    as_status st = outbox_send(o, &outbox_replace_files, body, NULL, err);
    if (st < 0 && !outbox_is_refused(st))
        return st;
    free(a->lost);
    a->lost = NULL;
    return AS_OK;
}

static as_status send_files(struct outbox *o, bool last, struct as_err *err)
{
    as_status st = AS_OK;
    for (size_t i = 0; st == AS_OK && i < OUTBOX_FILES; i++)
        st = send_file(o, &o->files[i], last, err);
    return st;
}

/* Send what was read and not sent. */
static as_status send_rest(struct outbox *o, bool at_once, struct as_err *err)
{
    as_status st = outbox_flush_items(o, err);
    if (st < 0 || (st = send_lost(o, err)) < 0)
        return st;
    return flush_texts(o, at_once, err);
}

as_status outbox_measurements(struct outbox *o, struct as_err *err)
{
    as_status st = send_files(o, false, err);
    return st < 0 ? st : send_rest(o, false, err);
}

as_status outbox_last_measurements(struct outbox *o, struct as_err *err)
{
    as_status st = send_files(o, true, err);
    o->rides = st == AS_OK && o->may_ride && json_array_size(o->items) == 1 &&
               json_object_size(o->texts) == 0 && !o->attempt->lost;
    return st < 0 || o->rides ? st : send_rest(o, true, err);
}

as_status outbox_lines_before(struct outbox *o, struct as_err *err)
{
    if (o->attempt->launch.collector)
        output_catch_up(o->attempt);
    as_status st = send_files(o, false, err);
    return st < 0 ? st : send_rest(o, true, err);
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
