/* Each source follows its file, or each event file below its folder, and feeds a reader of
 * trial-runner/reports/.
 *
 * Several trials often write event files below one folder at the same time ("runs/"). So a new
 * event file counts if a process of this trial has it open, and never if another process has. A
 * file that nobody has open any more counts: a short program may have ended before anyone
 * looked. */
#include "trial-runner/collect/sources.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "trial-runner/collect/file_owner.h"
#include "trial-runner/collect/follow.h"
#include "trial-runner/reports/csv_reader.h"
#include "trial-runner/reports/event_reader.h"
#include "trial-runner/reports/report_reader.h"

#define MAX_DEPTH 8
#define MAX_FILES 1000 /* event files of one source */
#define EVENT_FILE "tfevents"

typedef enum source_kind { SOURCE_CSV, SOURCE_JSON, SOURCE_BOARD } source_kind;

/* One file and what reads it. */
struct file {
    struct source *of;
    char *path; /* below of->dir; owned */
    struct follow follow;
    union {
        struct csv_reader csv;
        struct report_reader json;
        struct event_reader event;
    } reader;
    bool is_old;    /* what is read now was there before */
    bool is_judged; /* an event file: it is known whose it is */
    bool is_foreign;
    bool failed; /* on_bad was told that it cannot be read */
    int mark;    /* of a CSV or JSON file: descriptor that marks it as read; -1: none yet */
    ino_t marked;
    bool warned; /* on_bad was told that it is shared */
    struct folder_listener listener;
};

struct source {
    struct sources *all;
    source_kind kind;
    int dir;          /* of the folder that `path` is below; borrowed */
    const char *path; /* a view of the report */
    const json_t *object;
    struct file **files; /* of a CSV or JSON source: one */
    size_t n, cap;
    bool crowded; /* on_bad was told of MAX_FILES */
    size_t items;
};

struct sources {
    int dir;
    int trial_dir; /* owned; -1: there is none */
    const char *marker;
    struct report_fns sink;
    struct folder_watch *watch; /* borrowed; NULL: nothing listens */
    void (*on_write)(void *arg);
    void *on_write_arg;
    struct source list[SOURCES_MAX];
    size_t n;
};

/* ---- what a reader says ---- */

static as_status on_item(void *arg, int64_t step, json_t *metrics, struct as_err *err)
{
    struct file *f = arg;
    if (f->is_old) {
        json_decref(metrics);
        return AS_OK;
    }
    f->of->items++;
    return f->of->all->sink.on_item(f->of->all->sink.arg, step, metrics, err);
}

static void on_bad(void *arg, size_t line, const char *why)
{
    struct file *f = arg;
    const struct report_fns *sink = &f->of->all->sink;
    char text[600];
    if (f->is_old)
        return;
    if (line)
        (void)snprintf(text, sizeof text, "%.200s, %s %zu: %s", f->path,
                       f->of->kind == SOURCE_BOARD ? "record" : "line", line, why);
    else
        (void)snprintf(text, sizeof text, "%.200s: %s", f->path, why);
    sink->on_bad(sink->arg, 0, text);
}

static as_status on_note(void *arg, const char *name, const char *text, struct as_err *err)
{
    struct file *f = arg;
    const struct report_fns *sink = &f->of->all->sink;
    return f->is_old ? AS_OK : sink->on_note(sink->arg, name, text, err);
}

static struct report_fns fns_of(struct file *f)
{
    return (struct report_fns){.on_item = on_item, .on_bad = on_bad, .on_note = on_note, .arg = f};
}

static as_status feed(void *arg, const char *bytes, size_t len, bool is_old, struct as_err *err)
{
    struct file *f = arg;
    const struct report_fns fns = fns_of(f);
    f->is_old = is_old;
    switch (f->of->kind) {
    case SOURCE_CSV:
        return csv_reader_feed(&f->reader.csv, bytes, len, &fns, err);
    case SOURCE_JSON:
        return report_reader_feed(&f->reader.json, bytes, len, &fns, err);
    case SOURCE_BOARD:
        return event_reader_feed(&f->reader.event, bytes, len, &fns, err);
    }
    return AS_OK;
}

static void restart(void *arg)
{
    struct file *f = arg;
    if (f->of->kind == SOURCE_CSV)
        csv_reader_restart(&f->reader.csv);
    else if (f->of->kind == SOURCE_JSON)
        report_reader_restart(&f->reader.json);
    else {
        event_reader_done(&f->reader.event);
        f->reader.event = (struct event_reader){.tags = json_object_get(f->of->object, "tags")};
    }
}

/* ---- files ---- */

static void file_free(struct file *f)
{
    if (!f)
        return;
    folder_watch_remove(f->of->all->watch, &f->listener);
    if (f->of->kind == SOURCE_CSV)
        csv_reader_done(&f->reader.csv);
    else if (f->of->kind == SOURCE_JSON)
        report_reader_done(&f->reader.json);
    else
        event_reader_done(&f->reader.event);
    file_closep(&f->mark);
    free(f->path);
    free(f);
}

/* Add a file, unless it is known. `mark_old`: what is in it now is not the program's. */
static as_status add_file(struct source *s, const char *path, bool mark_old, struct as_err *err)
{
    const char *step = json_string_value(json_object_get(s->object, "step"));
    for (size_t i = 0; i < s->n; i++)
        if (strcmp(s->files[i]->path, path) == 0)
            return AS_OK;
    if (s->n == s->cap) {
        size_t cap = s->cap ? 2 * s->cap : 4;
        as_status st = as_grow(&s->files, cap, sizeof(struct file *), err);
        if (st < 0)
            return st;
        s->cap = cap;
    }
    struct file *f = as_calloc(1, sizeof *f);
    char *copy = as_strdup(path);
    if (!f || !copy) {
        free(f);
        free(copy);
        return as_fail_nomem(err);
    }
    f->of = s;
    f->path = copy;
    f->mark = -1;
    if (s->kind == SOURCE_CSV)
        f->reader.csv.step_column = step;
    else if (s->kind == SOURCE_JSON)
        f->reader.json = (struct report_reader){.step_name = step, .of_others = true};
    else
        f->reader.event.tags = json_object_get(s->object, "tags");
    if (mark_old)
        follow_mark_old(&f->follow, s->dir, path);
    s->files[s->n++] = f;
    return AS_OK;
}

static bool is_event_file(const char *name)
{
    return strstr(name, EVENT_FILE) != NULL;
}

/* Add the event files below a folder. Folders that cannot be read are as if they were empty: they
 * may be gone by now. */
static as_status scan(struct source *s, const char *folder, int depth, bool mark_old,
                      struct as_err *err)
{
    int fd = openat(s->dir, folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    as_status st = AS_OK;
    if (!d) {
        file_closep(&fd);
        return AS_OK;
    }
    for (struct dirent *e; st == AS_OK && (e = readdir(d));) {
        AS_AUTO(as_freep)
        char *path = strcmp(folder, ".") == 0 ? as_strdup(e->d_name) : file_join(folder, e->d_name);
        bool may_be_folder = e->d_type == DT_DIR || e->d_type == DT_UNKNOWN;
        if (e->d_name[0] == '.' || (!may_be_folder && !is_event_file(e->d_name)))
            continue;
        if (!path)
            st = as_fail_nomem(err);
        else if (e->d_type == DT_REG && s->n < MAX_FILES)
            st = add_file(s, path, mark_old, err);
        else if (e->d_type == DT_REG)
            s->crowded = true;
        else if (may_be_folder && depth < MAX_DEPTH)
            st = scan(s, path, depth + 1, mark_old, err);
    }
    closedir(d);
    return st;
}

/* ---- reading ---- */

static bool is_ours(struct file *f)
{
    if (f->of->kind != SOURCE_BOARD || f->is_judged)
        return !f->is_foreign;
    file_owner who = file_owner_find(f->of->dir, f->path, f->of->all->marker);
    f->is_judged = true;
    f->is_foreign = who == FILE_OWNER_OTHER;
    return !f->is_foreign;
}

static as_status end_file(struct file *f, struct as_err *err)
{
    const struct report_fns fns = fns_of(f);
    if (f->of->kind == SOURCE_CSV)
        return csv_reader_end(&f->reader.csv, &fns, err);
    return f->of->kind == SOURCE_JSON ? report_reader_end(&f->reader.json, &fns, err) : AS_OK;
}

/* Two trials that write one file at the same time spoil each other's measurements. */
static void warn_if_shared(struct file *f, bool last)
{
    const struct report_fns *sink = &f->of->all->sink;
    char text[400];
    if (f->of->kind == SOURCE_BOARD || !f->follow.seen)
        return;
    if (f->mark < 0 || f->marked != f->follow.held.st_ino) {
        file_closep(&f->mark);
        f->mark = follow_open(f->of->dir, f->path);
        f->marked = f->follow.held.st_ino;
        if (f->mark >= 0)
            file_owner_mark(f->mark);
    }
    if (f->mark >= 0 && !f->warned && file_owner_is_shared(f->mark)) {
        (void)snprintf(text, sizeof text,
                       "%.200s is read for another trial too, so the measurements of both are "
                       "mixed: give each trial a path of its own, with ${name} of a parameter",
                       f->path);
        sink->on_bad(sink->arg, 0, text);
        f->warned = true;
    }
    if (last)
        file_closep(&f->mark);
}

static as_status read_file(struct file *f, bool last, struct as_err *err)
{
    const struct follow_fns fns = {.feed = feed, .restart = restart, .arg = f};
    struct as_err why = {0};
    if (f->failed || !is_ours(f))
        return AS_OK;
    as_status st = follow_read(&f->follow, f->of->dir, f->path, &fns, &why);
    if (st == AS_OK)
        warn_if_shared(f, last);
    if (st == AS_OK && last)
        st = end_file(f, &why);
    if (st != AS_E_INVAL && st != AS_E_IO)
        return st < 0 ? as_fail(err, st, "%s", why.msg) : AS_OK;
    f->failed = true;
    f->is_old = false;
    f->of->all->sink.on_bad(f->of->all->sink.arg, 0, why.msg);
    return AS_OK;
}

static as_status read_source(struct source *s, bool last, struct as_err *err)
{
    bool crowded = s->crowded;
    as_status st = s->kind == SOURCE_BOARD ? scan(s, s->path, 0, false, err) : AS_OK;
    if (s->crowded && !crowded)
        s->all->sink.on_bad(s->all->sink.arg, 0,
                            "more than 1000 event files: the rest is not read");
    for (size_t i = 0; st == AS_OK && i < s->n; i++)
        st = read_file(s->files[i], last, err);
    return st;
}

as_status sources_read(struct sources *s, bool last, struct as_err *err)
{
    as_status st = AS_OK;
    for (size_t i = 0; st == AS_OK && i < s->n; i++)
        st = read_source(&s->list[i], last, err);
    return st;
}

/* ---- listening ---- */

static const char *name_of(const struct file *f)
{
    const char *slash = strrchr(f->path, '/');
    return slash ? slash + 1 : f->path;
}

static void on_write(void *arg, const char *name)
{
    const struct file *f = arg;
    if (!name || strcmp(name, name_of(f)) == 0)
        f->of->all->on_write(f->of->all->on_write_arg);
}

/* The folder may not be there yet, and the system may watch no more: files are looked at, too. */
static void listen_to(struct file *f)
{
    size_t len = (size_t)(name_of(f) - f->path);
    AS_AUTO(as_freep) char *folder = as_strdup(len ? f->path : ".");
    char path[40];
    if (!folder || folder_watch_listens(f->of->all->watch, &f->listener))
        return;
    if (len)
        folder[len - 1] = '\0';
    AS_AUTO(file_closep) int fd = follow_open(f->of->dir, folder);
    if (fd < 0)
        return;
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    f->listener = (struct folder_listener){.on_write = on_write, .arg = f};
    if (folder_watch_add(f->of->all->watch, path, &f->listener, NULL) < 0)
        return; /* it is asked for again at the next look */
}

void sources_listen(struct sources *s, struct folder_watch *w, void (*fn)(void *arg), void *arg)
{
    s->watch = w;
    s->on_write = fn;
    s->on_write_arg = arg;
    for (size_t i = 0; i < s->n; i++)
        for (size_t k = 0; s->list[i].kind != SOURCE_BOARD && k < s->list[i].n; k++)
            listen_to(s->list[i].files[k]);
}

/* ---- the whole ---- */

/* The part of `path` behind the trial's own folder ("." for the folder itself); NULL: it is not
 * below that. */
static const char *below(const char *trial_dir, const char *path)
{
    size_t n = trial_dir ? strlen(trial_dir) : 0;
    if (n == 0 || strncmp(path, trial_dir, n) != 0 || (path[n] && path[n] != '/'))
        return NULL;
    path += n + strspn(path + n, "/");
    return *path ? path : ".";
}

static as_status add_source(struct sources *all, const char *trial_dir, const json_t *object,
                            struct as_err *err)
{
    static const char *const words[] = {"csv", "json", "tensorboard"};
    for (size_t k = 0; k < AS_ARRAY_LEN(words); k++) {
        const char *path = json_string_value(json_object_get(object, words[k]));
        struct source *s = &all->list[all->n];
        if (!path)
            continue;
        if (all->n == SOURCES_MAX)
            return as_fail(err, AS_E_TOO_LARGE, "trial.report: more than %d sources", SOURCES_MAX);
        const char *own = below(trial_dir, path);
        path = own ? own : path;
        if (!file_path_is_inner(path) && !(k == SOURCE_BOARD && strcmp(path, ".") == 0))
            return as_fail(err, AS_E_INVAL,
                           "trial.report: '%.200s' is not a path below the program's folder, and "
                           "not one below ${trial_dir}",
                           path);
        *s = (struct source){.all = all,
                             .kind = (source_kind)k,
                             .dir = own ? all->trial_dir : all->dir,
                             .path = path,
                             .object = object};
        all->n++;
        as_status st =
            k == SOURCE_BOARD ? scan(s, path, 0, true, err) : add_file(s, path, true, err);
        if (st < 0)
            return st;
    }
    return AS_OK;
}

as_status sources_create(const json_t *report, int dir, const char *trial_dir, const char *marker,
                         const struct report_fns *sink, struct sources **ret, struct as_err *err)
{
    struct sources *s = as_calloc(1, sizeof *s);
    as_status st = s ? AS_OK : as_fail_nomem(err);
    if (st < 0)
        return st;
    *s = (struct sources){.dir = dir, .trial_dir = -1, .marker = marker, .sink = *sink};
    if (trial_dir) {
        s->trial_dir = open(trial_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (s->trial_dir < 0)
            st = as_fail(err, AS_E_IO, "%s: %s", trial_dir, strerror(errno));
    }
    for (size_t i = 0; st == AS_OK && i < json_array_size(report); i++)
        st = add_source(s, trial_dir, json_array_get(report, i), err);
    if (st < 0) {
        sources_free(s);
        return st;
    }
    *ret = s;
    return AS_OK;
}

void sources_free(struct sources *s)
{
    for (size_t i = 0; s && i < s->n; i++) {
        for (size_t k = 0; k < s->list[i].n; k++)
            file_free(s->list[i].files[k]);
        free(s->list[i].files);
    }
    if (s)
        file_closep(&s->trial_dir);
    free(s);
}

static const char *why_nothing(const struct source *s)
{
    size_t seen = 0, foreign = 0;
    for (size_t i = 0; i < s->n; i++) {
        seen += s->files[i]->follow.seen;
        foreign += s->files[i]->is_foreign;
    }
    if (s->kind == SOURCE_BOARD && s->n == 0)
        return "has no event file";
    if (s->kind == SOURCE_BOARD)
        return foreign == s->n ? "has event files of other processes alone"
                               : "has no scalar that was asked for";
    return seen ? "has no number that is new" : "was not written";
}

void sources_explain(const struct sources *s, struct str *b)
{
    for (size_t i = 0; i < s->n; i++)
        if (s->list[i].items == 0)
            str_printf(b, "%s%.120s %s", b->len ? "; " : "", s->list[i].path,
                       why_nothing(&s->list[i]));
}
