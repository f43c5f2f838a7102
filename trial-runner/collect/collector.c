/* The collecting thread of an attempt.
 *
 * Patterns are a user's and may be slow, so main does not try them: it copies output into a buffer
 * of fixed size, which the thread takes whole by exchanging it with an empty one. Main stops
 * reading a pipe while its buffer is nearly full. The part of the buffer that is kept free
 * (PIPE_BYTES) takes what is left in the pipe when the process has ended.
 *
 * lock guards the buffer that main fills and the flags beside it; it is taken alone, and main never
 * waits under it for more than a memcpy. Everything else belongs to the thread, and after
 * collector_finish to the delivery thread. */
#include "trial-runner/collect/collector.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "trial-runner/collect/sources.h"
#include "trial-runner/reports/line_matcher.h"

#define BUFFER_BYTES (512 << 10)
#define PIPE_BYTES (128 << 10) /* a pipe has 64 KiB */
#define ROUND_MS 100           /* between looks at files whose writes are not heard */
#define HEARD_MS 20            /* between looks at files that were heard to be written */
#define SILENCE_MS 10000       /* after which output is perhaps buffered */
#define LATE_MS 3000           /* output that comes so late, and only at the end, was buffered */
#define AT_END_MS 500
#define MAX_NOTES 20
#define HOW_TO_FLUSH                                                                               \
    "in Python print(..., flush=True) or PYTHONUNBUFFERED=1, for other programs stdbuf -oL"

struct collector {
    struct collector_owner owner;
    int dir; /* the program's folder */
    int out; /* COLLECTED_NAME */
    char *marker;
    json_t *report;              /* owned; the sources have views of it */
    struct line_matcher matcher; /* without patterns: output is not asked for */
    struct sources *sources;
    struct str lines; /* to be written */
    unsigned notes;
    bool said_silent;
    pthread_t thread;
    bool has_thread;

    pthread_mutex_t lock; /* guards all below */
    pthread_cond_t changed;
    char *in; /* BUFFER_BYTES; NULL without patterns */
    size_t n_in;
    size_t lost;
    bool wanted; /* main waits for room */
    bool closed;
    bool heard;                /* a file was written */
    unsigned asked, caught_up; /* collector_catch_up(): how often it was called, and answered */
    int64_t began_ns, first_ns, ended_ns; /* 0: not yet */
};

/* ---- what is found ---- */

static void note(struct collector *c, const char *why)
{
    char text[900];
    if (c->notes < MAX_NOTES) {
        (void)snprintf(text, sizeof text, "warning: %s%s", why,
                       c->notes + 1 == MAX_NOTES ? " (further warnings are not shown)" : "");
        c->owner.note(c->owner.arg, text);
    }
    c->notes++;
}

static as_status add_line(struct collector *c, const json_t *j, struct as_err *err)
{
    json_format_to(&c->lines, j);
    str_putc(&c->lines, '\n');
    return str_check(&c->lines, err);
}

static as_status on_item(void *arg, int64_t step, json_t *metrics, struct as_err *err)
{
    JSON_AUTO owned = metrics;
    (void)json_object_del(owned, "step"); /* a column of that name beside the step is no metric */
    if (json_object_size(owned) == 0)
        return AS_OK;
    if (json_object_set_new(owned, "step", json_integer(step)) < 0)
        return as_fail_nomem(err);
    return add_line(arg, owned, err);
}

static as_status on_note(void *arg, const char *name, const char *text, struct as_err *err)
{
    JSON_AUTO j = json_pack("{s:s}", name, text);
    if (strcmp(name, "step") == 0)
        return AS_OK;
    return j ? add_line(arg, j, err) : as_fail_nomem(err);
}

static void on_bad(void *arg, size_t line, const char *why)
{
    char text[700];
    (void)snprintf(text, sizeof text, "line %zu of the output: %s", line, why);
    note(arg, line ? text : why);
}

static void flush_lines(struct collector *c)
{
    struct as_err err = {0};
    if (c->lines.len == 0)
        return;
    if (file_write_all(c->out, c->lines.s, c->lines.len, &err) < 0)
        note(c, err.msg);
    str_clear(&c->lines);
}

/* ---- the thread ---- */

static void note_silence(struct collector *c, int64_t began_ns, int64_t first_ns)
{
    char text[300];
    if (c->said_silent || !began_ns || first_ns ||
        clock_mono_ns() - began_ns < SILENCE_MS * NS_PER_MS)
        return;
    c->said_silent = true;
    (void)snprintf(
        text, sizeof text,
        "nothing was printed for %d s: the program's output is perhaps buffered, and its "
        "measurements come late: " HOW_TO_FLUSH,
        SILENCE_MS / 1000);
    c->owner.note(c->owner.arg, text);
}

/* Did all output come when the process ended? */
static void note_late(struct collector *c)
{
    if (!c->matcher.matches || !c->began_ns || !c->first_ns ||
        c->first_ns - c->began_ns < LATE_MS * NS_PER_MS ||
        c->ended_ns - c->first_ns > AT_END_MS * NS_PER_MS)
        return;
    c->owner.note(c->owner.arg, "all output came when the program ended: it was buffered, so its "
                                "measurements came late: " HOW_TO_FLUSH);
}

/* What one round has to look at. */
struct round {
    char *bytes; /* the buffer that main filled */
    size_t n, lost;
    bool closed;
    bool look;       /* at files */
    int64_t look_ns; /* when it looked last */
    unsigned asked;
    int64_t began_ns, first_ns;
};

/* When files are to be looked at, if nothing else happens. Locked. */
static int64_t look_due_ns(const struct collector *c, const struct round *before)
{
    return before->look_ns + (c->heard ? HEARD_MS : ROUND_MS) * NS_PER_MS;
}

static void wait_for_output(struct collector *c, const struct round *before)
{
    while (!c->closed && c->n_in == 0 && c->asked == c->caught_up &&
           clock_mono_ns() < look_due_ns(c, before))
        (void)clock_cond_wait(&c->changed, &c->lock, look_due_ns(c, before));
}

static void take_round(struct collector *c, struct round *r)
{
    char *empty = r->bytes;
    pthread_mutex_lock(&c->lock);
    wait_for_output(c, r);
    bool wake = c->wanted;
    int64_t now = clock_mono_ns();
    bool look = c->closed || c->asked != c->caught_up || now >= look_due_ns(c, r);
    if (look)
        c->heard = false;
    *r = (struct round){.bytes = c->in,
                        .n = c->n_in,
                        .lost = c->lost,
                        .closed = c->closed,
                        .look = look,
                        .look_ns = look ? now : r->look_ns,
                        .asked = c->asked,
                        .began_ns = c->began_ns,
                        .first_ns = c->first_ns};
    c->in = empty;
    c->n_in = c->lost = 0;
    c->wanted = false;
    pthread_mutex_unlock(&c->lock);
    if (wake)
        c->owner.wake(c->owner.arg);
}

/* All that was there when this round began is in the file. */
static void end_round(struct collector *c, const struct round *r)
{
    pthread_mutex_lock(&c->lock);
    c->caught_up = r->asked;
    pthread_cond_broadcast(&c->changed);
    pthread_mutex_unlock(&c->lock);
}

static void on_write(void *arg)
{
    struct collector *c = arg;
    pthread_mutex_lock(&c->lock);
    if (!c->heard)
        pthread_cond_broadcast(&c->changed);
    c->heard = true;
    pthread_mutex_unlock(&c->lock);
}

static as_status do_round(struct collector *c, const struct round *r, const struct report_fns *fns,
                          struct as_err *err)
{
    as_status st = line_matcher_feed(&c->matcher, r->bytes, r->n, fns, err);
    if (st == AS_OK && r->closed)
        st = line_matcher_end(&c->matcher, fns, err);
    if (r->look && c->owner.watch)
        sources_listen(c->sources, c->owner.watch, on_write, c);
    if (st == AS_OK && r->look)
        st = sources_read(c->sources, r->closed, err);
    if (r->lost)
        note(c, "some output came too fast at the end and was not searched");
    return st;
}

static const struct report_fns sink = {.on_item = on_item, .on_bad = on_bad, .on_note = on_note};

static void *collect(void *arg)
{
    struct collector *c = arg;
    struct report_fns fns = sink;
    struct round r = {.bytes = c->in ? malloc(BUFFER_BYTES) : NULL};
    struct as_err err = {0};
    as_status st = c->in && !r.bytes ? as_fail_nomem(&err) : AS_OK;
    fns.arg = c;
    while (!r.closed) {
        take_round(c, &r);
        if (st == AS_OK && (st = do_round(c, &r, &fns, &err)) < 0)
            note(c, err.msg);
        if (c->matcher.n)
            note_silence(c, r.began_ns, r.first_ns);
        flush_lines(c);
        end_round(c, &r);
    }
    note_late(c);
    free(r.bytes);
    return NULL;
}

/* ---- main's side ---- */

size_t collector_room(struct collector *c)
{
    size_t room = SIZE_MAX;
    pthread_mutex_lock(&c->lock);
    if (c->in) {
        size_t most = BUFFER_BYTES - PIPE_BYTES;
        room = c->n_in < most ? most - c->n_in : 0;
        c->wanted |= room == 0;
    }
    pthread_mutex_unlock(&c->lock);
    return room;
}

void collector_add(struct collector *c, const char *bytes, size_t len)
{
    pthread_mutex_lock(&c->lock);
    if (!c->first_ns)
        c->first_ns = clock_mono_ns();
    if (c->in) {
        size_t n = len < BUFFER_BYTES - c->n_in ? len : BUFFER_BYTES - c->n_in;
        memcpy(c->in + c->n_in, bytes, n);
        c->n_in += n;
        c->lost += len - n;
        pthread_cond_broadcast(&c->changed);
    }
    pthread_mutex_unlock(&c->lock);
}

void collector_began(struct collector *c)
{
    pthread_mutex_lock(&c->lock);
    c->began_ns = clock_mono_ns();
    pthread_mutex_unlock(&c->lock);
}

void collector_ended(struct collector *c)
{
    pthread_mutex_lock(&c->lock);
    c->ended_ns = clock_mono_ns();
    pthread_mutex_unlock(&c->lock);
}

/* ---- the delivery thread's side ---- */

void collector_catch_up(struct collector *c)
{
    pthread_mutex_lock(&c->lock);
    c->asked++;
    pthread_cond_broadcast(&c->changed);
    while (c->caught_up != c->asked && !c->closed)
        pthread_cond_wait(&c->changed, &c->lock);
    pthread_mutex_unlock(&c->lock);
}

/* ---- life ---- */

void collector_finish(struct collector *c)
{
    pthread_mutex_lock(&c->lock);
    c->closed = true;
    pthread_cond_broadcast(&c->changed);
    pthread_mutex_unlock(&c->lock);
    if (c->has_thread)
        pthread_join(c->thread, NULL);
    c->has_thread = false;
}

void collector_free(struct collector *c)
{
    if (!c)
        return;
    collector_finish(c);
    sources_free(c->sources);
    line_matcher_done(&c->matcher);
    str_done(&c->lines);
    file_closep(&c->dir);
    file_closep(&c->out);
    json_decref(c->report);
    free(c->marker);
    free(c->in);
    pthread_cond_destroy(&c->changed);
    pthread_mutex_destroy(&c->lock);
    free(c);
}
AS_DEFINE_FREEP(struct collector, collector_free)

static struct collector *new_collector(const struct collector_owner *owner)
{
    struct collector *c = as_calloc(1, sizeof *c);
    if (!c)
        return NULL;
    c->owner = *owner;
    c->dir = c->out = -1;
    pthread_mutex_init(&c->lock, NULL);
    clock_cond_init(&c->changed);
    return c;
}

static as_status open_files(struct collector *c, const char *folder, const char *directory,
                            struct as_err *err)
{
    AS_AUTO(as_freep) char *path = file_join(folder, COLLECTED_NAME);
    c->marker = file_join(folder, "report.jsonl");
    if (!path || !c->marker)
        return as_fail_nomem(err);
    c->dir = open(directory ? directory : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (c->dir < 0)
        return as_fail(err, errno == ENOENT || errno == ENOTDIR ? AS_E_NOT_FOUND : AS_E_INVAL,
                       "cannot enter the directory '%s': %s", directory ? directory : ".",
                       strerror(errno));
    c->out = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
    return c->out < 0 ? as_fail(err, AS_E_IO, "%s: %s", path, strerror(errno)) : AS_OK;
}

static as_status read_patterns(struct collector *c, const json_t *report, struct as_err *err)
{
    as_status st = line_matcher_init(&c->matcher, report, err);
    if (st < 0)
        return as_err_prefix(err, st, "trial.report");
    if (c->matcher.n && !(c->in = malloc(BUFFER_BYTES)))
        return as_fail_nomem(err);
    return AS_OK;
}

as_status collector_start(const char *folder, const json_t *report, const char *directory,
                          const struct collector_owner *owner, struct collector **ret,
                          struct as_err *err)
{
    AS_AUTO(collector_freep) struct collector *c = new_collector(owner);
    AS_AUTO(as_freep) char *trial_dir = file_join(folder, "artifacts");
    struct report_fns fns = sink;
    if (!c || !trial_dir)
        return as_fail_nomem(err);
    fns.arg = c;
    c->report = json_incref((json_t *)report);
    as_status st = open_files(c, folder, directory, err);
    if (st < 0 || (st = read_patterns(c, report, err)) < 0 ||
        (st = sources_create(report, c->dir, trial_dir, c->marker, &fns, &c->sources, err)) < 0)
        return st;
    int rc = pthread_create(&c->thread, NULL, collect, c);
    if (rc)
        return as_fail(err, AS_E_NOMEM, "pthread_create: %s", strerror(rc));
    c->has_thread = true;
    *ret = as_steal(c);
    return AS_OK;
}

void collector_explain(const struct collector *c, struct str *b)
{
    if (c->matcher.n && c->matcher.matches == 0)
        str_printf(b, "no line of the output matches a pattern");
    sources_explain(c->sources, b);
}
