/* One thread reads events from the database and writes them to all streams.
 *
 * Each listener has a cursor: the id up to which every event was written to its stream. In each
 * round, the listeners at the newest cursor are served first, by one query. A listener behind it
 * (it started in the past, or its buffer was full) is brought up to date by further queries, which
 * end at the newest cursor: then the listener joins the others. Listeners at one place share such a
 * query, and a round has at most CATCH_UP_MAX of them, so that a crowd that is behind does not
 * delay those that are up to date.
 *
 * A listener whose client does not read has no room and costs no query. Its cursor stays where it
 * is until half of its buffer is free: nothing is dropped. New listeners arrive in the list `added`
 * under the lock; the list `listeners` belongs to the thread, so that it queries and writes without
 * the lock. */
#include "api/server/event_streams.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>

#include "api/codec/wire.h"
#include "base/arena.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/str.h"
#include "scheduler/services/events.h"

#define BATCH 500
#define CATCH_UP_MAX 8 /* queries of one round for listeners that are behind */

struct listener {
    struct listener *next;
    struct http_stream *stream; /* one reference */
    char *sweep;                /* NULL: all */
    int64_t cursor;             /* every event up to this id was written */
    int64_t written_ns;         /* time of the last write */
    int64_t caught_ns;          /* time of the last query that brought it up to date; 0: none */
    bool is_over;
};

struct event_streams {
    struct store *db;
    pthread_mutex_t lock; /* guards `added`, n and the flags */
    pthread_cond_t wake;
    struct listener *added; /* not yet seen by the thread */
    size_t n;
    bool is_draining, is_stopping;
    atomic_long queries;
    struct listener *listeners; /* used by the thread only */
    pthread_t thread;
    bool has_thread;
};

static void listener_free(struct listener *l)
{
    if (!l)
        return;
    http_stream_unref(l->stream);
    free(l->sweep);
    free(l);
}

/* ---- writing ---- */

/* Format one event as a message. If memory is out, `out` stays empty and the next tick tries
 * again. */
static void format_event(const struct event_row *e, struct str *out)
{
    JSON_AUTO doc = event_encode(e);
    AS_AUTO(as_freep) char *text = doc ? json_format_ordered(doc) : NULL;
    if (text)
        str_printf(out, "id: %lld\ndata: %s\n\n", (long long)e->id, text);
}

static void write_bytes(struct listener *l, const char *bytes, size_t len, bool *ret_full)
{
    as_status st = http_stream_write(l->stream, bytes, len);
    *ret_full = st == AS_E_TOO_LARGE || st == AS_E_NOMEM;
    l->is_over |= st == AS_E_NOT_FOUND;
    if (st == AS_OK)
        l->written_ns = clock_mono_ns();
}

static bool event_concerns(const struct listener *l, const struct event_row *e)
{
    return e->id > l->cursor && (!l->sweep || as_streq(l->sweep, e->sweep));
}

static void advance(struct listener *l, int64_t id)
{
    l->cursor = id > l->cursor ? id : l->cursor;
}

/* Write the events that concern l, up to the id `limit`, and move its cursor past those that were
 * written. `texts` are the messages of the events, each formatted once for all listeners. All that
 * there is room for is one write: each wakes the connection, and then the client. */
static void write_events(struct listener *l, const struct event_list *events,
                         const struct str *texts, int64_t limit)
{
    AS_AUTO(str_done) struct str all = {0};
    const size_t room = http_stream_room(l->stream);
    int64_t end = events->last_id < limit ? events->last_id : limit;
    bool full = false;
    for (size_t i = 0; i < events->n && events->rows[i].id <= limit; i++) {
        const struct event_row *e = &events->rows[i];
        if (!event_concerns(l, e))
            continue;
        if (texts[i].len == 0 || all.len + texts[i].len > room) {
            end = e->id - 1;
            break;
        }
        str_add(&all, texts[i].s, texts[i].len);
    }
    if (all.failed)
        return; /* the next tick tries again */
    if (all.len > 0)
        write_bytes(l, all.s, all.len, &full);
    if (!full && !l->is_over)
        advance(l, end);
}

static bool has_room(const struct listener *l)
{
    return !l->is_over && http_stream_room(l->stream) >= EVENT_STREAM_BYTES / 2;
}

/* The listeners that one query serves. */
struct group {
    int64_t from;      /* their cursor */
    bool is_one_sweep; /* only those of `sweep` (NULL: of all sweeps); else any */
    const char *sweep;
};

static bool is_in_group(const struct listener *l, const struct group *g)
{
    return l->cursor == g->from && has_room(l) &&
           (!g->is_one_sweep || as_streq(l->sweep, g->sweep));
}

/* Read the events after g->from once, and write those up to `limit` to the listeners of the group.
 * Returns whether one of them advanced. */
static bool serve_group(struct event_streams *s, const struct group *g, int64_t limit)
{
    struct arena a = {0};
    struct event_list events = {0};
    bool advanced = false;
    const char *sweep = g->is_one_sweep ? g->sweep : NULL;
    atomic_fetch_add(&s->queries, 1);
    as_status st = events_after(s->db, &a, sweep, g->from, BATCH, &events, NULL);
    struct str *texts = st == AS_OK ? as_calloc(events.n + 1, sizeof *texts) : NULL;
    for (size_t i = 0; texts && i < events.n; i++)
        format_event(&events.rows[i], &texts[i]);
    for (struct listener *l = s->listeners; l; l = l->next) {
        if (!is_in_group(l, g))
            continue;
        l->is_over |= st == AS_E_NOT_FOUND && sweep; /* its sweep was deleted */
        if (texts)
            write_events(l, &events, texts, limit);
        advanced |= l->cursor > g->from;
    }
    for (size_t i = 0; texts && i < events.n; i++)
        str_done(&texts[i]);
    free(texts);
    arena_done(&a);
    return advanced;
}

/* The newest cursor of those that have room; -1: none has. */
static int64_t newest_cursor(const struct event_streams *s)
{
    int64_t newest = -1;
    for (const struct listener *l = s->listeners; l; l = l->next)
        if (l->cursor > newest && has_room(l))
            newest = l->cursor;
    return newest;
}

/* The listener behind `newest` with room that was served longest ago. */
static struct listener *most_behind(const struct event_streams *s, int64_t newest, int64_t now)
{
    struct listener *first = NULL;
    for (struct listener *l = s->listeners; l; l = l->next)
        if (l->cursor < newest && l->caught_ns < now && has_room(l) &&
            (!first || l->caught_ns < first->caught_ns))
            first = l;
    return first;
}

/* Bring listeners up to date. Returns whether some that advanced are still behind. */
static bool catch_up(struct event_streams *s, int64_t newest)
{
    int64_t now = clock_mono_ns();
    bool advanced = false;
    struct listener *l = most_behind(s, newest, now);
    for (int i = 0; l && i < CATCH_UP_MAX; i++, l = most_behind(s, newest, now)) {
        const struct group g = {.from = l->cursor, .is_one_sweep = true, .sweep = l->sweep};
        for (struct listener *other = s->listeners; other; other = other->next)
            if (is_in_group(other, &g))
                other->caught_ns = now;
        advanced |= serve_group(s, &g, newest);
    }
    return advanced && most_behind(s, newest, INT64_MAX);
}

static void write_keep_alive(struct listener *l, int64_t now)
{
    static const char comment[] = ": keep-alive\n\n";
    bool full = false;
    if (now - l->written_ns >= EVENT_STREAMS_KEEP_ALIVE_MS * NS_PER_MS)
        write_bytes(l, comment, sizeof comment - 1, &full);
}

/* Returns whether another round has work at once. */
static bool serve_listeners(struct event_streams *s)
{
    int64_t now = clock_mono_ns(), newest = newest_cursor(s);
    bool more = false;
    if (newest >= 0) {
        (void)serve_group(s, &(struct group){.from = newest}, INT64_MAX);
        newest = newest_cursor(s);
        more = catch_up(s, newest);
    }
    for (struct listener *l = s->listeners; l; l = l->next) {
        write_keep_alive(l, now);
        l->is_over |= http_stream_is_gone(l->stream);
    }
    return more;
}

/* ---- the thread ---- */

static void adopt_locked(struct event_streams *s)
{
    while (s->added) {
        struct listener *l = s->added;
        s->added = l->next;
        l->next = s->listeners;
        s->listeners = l;
    }
}

static void drop_over(struct event_streams *s, bool all)
{
    for (struct listener **at = &s->listeners; *at;) {
        struct listener *l = *at;
        if (!all && !l->is_over) {
            at = &l->next;
            continue;
        }
        *at = l->next;
        http_stream_end(l->stream, true);
        listener_free(l);
        pthread_mutex_lock(&s->lock);
        s->n--;
        pthread_mutex_unlock(&s->lock);
    }
}

static void wait_tick_locked(struct event_streams *s)
{
    int64_t until_ns = clock_mono_ns() + EVENT_STREAMS_TICK_MS * NS_PER_MS;
    bool was_draining = s->is_draining, is_early = true;
    while (!s->is_stopping && !s->added && s->is_draining == was_draining && is_early) {
        if (s->listeners)
            is_early = clock_cond_wait(&s->wake, &s->lock, until_ns);
        else
            (void)pthread_cond_wait(&s->wake, &s->lock);
    }
}

static void *run_event_streams(void *arg)
{
    struct event_streams *s = arg;
    bool more = false;
    pthread_mutex_lock(&s->lock);
    while (!s->is_stopping) {
        if (!more)
            wait_tick_locked(s);
        adopt_locked(s);
        bool is_draining = s->is_draining;
        pthread_mutex_unlock(&s->lock);
        more = !is_draining && serve_listeners(s);
        drop_over(s, is_draining);
        pthread_mutex_lock(&s->lock);
    }
    adopt_locked(s);
    pthread_mutex_unlock(&s->lock);
    drop_over(s, true);
    return NULL;
}

as_status event_streams_create(struct store *db, struct event_streams **ret, struct as_err *err)
{
    AS_AUTO(event_streams_freep) struct event_streams *s = as_calloc(1, sizeof *s);
    if (!s)
        return as_fail(err, AS_E_NOMEM, "out of memory for the event streams");
    s->db = db;
    (void)pthread_mutex_init(&s->lock, NULL); /* none of these can fail on Linux */
    clock_cond_init(&s->wake);
    if (pthread_create(&s->thread, NULL, run_event_streams, s) != 0)
        return as_fail(err, AS_E_NOMEM, "cannot start the thread of the event streams");
    s->has_thread = true;
    *ret = as_steal(s);
    return AS_OK;
}

static as_status add_locked(struct event_streams *s, struct listener *l, struct as_err *err)
{
    if (s->is_draining || s->n >= EVENT_STREAMS_MAX)
        return as_fail(err, AS_E_UNAVAILABLE,
                       s->is_draining ? "the server is stopping"
                                      : "too many event streams are open");
    l->next = s->added;
    s->added = l;
    s->n++;
    pthread_cond_signal(&s->wake);
    return AS_OK;
}

as_status event_streams_add(struct event_streams *s, const char *sweep, int64_t after,
                            struct http_stream **ret_stream, struct as_err *err)
{
    static const char hello[] = "retry: 2000\n\n"; /* a first byte also sends the head at once */
    struct listener *l = as_calloc(1, sizeof *l);
    if (l) {
        l->cursor = after;
        l->written_ns = clock_mono_ns();
        l->sweep = as_strdup(sweep);
        l->stream = http_stream_create(EVENT_STREAM_BYTES, NULL, NULL, NULL);
    }
    if (!l || !l->stream || (sweep && !l->sweep) ||
        http_stream_write(l->stream, hello, sizeof hello - 1) < 0) {
        listener_free(l);
        return as_fail(err, AS_E_NOMEM, "out of memory for an event stream");
    }
    struct http_stream *stream = http_stream_ref(l->stream);
    pthread_mutex_lock(&s->lock);
    as_status st = add_locked(s, l, err);
    pthread_mutex_unlock(&s->lock);
    if (st < 0) {
        http_stream_unref(stream);
        listener_free(l);
        return st;
    }
    *ret_stream = stream;
    return AS_OK;
}

size_t event_streams_count(struct event_streams *s)
{
    pthread_mutex_lock(&s->lock);
    size_t n = s->n;
    pthread_mutex_unlock(&s->lock);
    return n;
}

long event_streams_queries(const struct event_streams *s)
{
    return atomic_load(&s->queries);
}

void event_streams_drain(struct event_streams *s)
{
    pthread_mutex_lock(&s->lock);
    s->is_draining = true;
    pthread_cond_signal(&s->wake);
    pthread_mutex_unlock(&s->lock);
}

void event_streams_free(struct event_streams *s)
{
    if (!s)
        return;
    pthread_mutex_lock(&s->lock);
    s->is_stopping = true;
    pthread_cond_signal(&s->wake);
    pthread_mutex_unlock(&s->lock);
    if (s->has_thread)
        (void)pthread_join(s->thread, NULL);
    (void)pthread_mutex_destroy(&s->lock);
    (void)pthread_cond_destroy(&s->wake);
    free(s);
}
