/* A bounded buffer between the thread that writes an answer and the I/O thread that sends it.
 *
 * When the buffer is empty, the connection is suspended ("sleeps") and the next write resumes it.
 * Both happen under the stream's lock. So a write between the check and the suspension cannot be
 * lost, and a connection that has ended is not resumed any more. The stream knows a connection only
 * through struct http_sleeper: it can be tested without libmicrohttpd. */
#include "api/http/http.h"

#include <pthread.h>
#include <string.h>

#include "api/http/http_stream_priv.h"
#include "base/mem.h"

struct http_stream {
    pthread_mutex_t lock; /* guards all fields below; taken before the locks of libmicrohttpd */
    size_t refs;
    struct str buf; /* bytes [read, buf.len) wait to be sent */
    size_t read, limit;
    bool is_ended, is_whole, is_gone;
    bool is_asleep;
    struct http_sleeper sleeper;
    void (*on_room)(void *ctx);
    void (*free_ctx)(void *ctx);
    void *ctx;
};

struct http_stream *http_stream_create(size_t limit, void (*on_room)(void *ctx), void *ctx,
                                       void (*free_ctx)(void *ctx))
{
    struct http_stream *s = as_calloc(1, sizeof *s);
    if (!s)
        return NULL;
    if (pthread_mutex_init(&s->lock, NULL) != 0) {
        free(s);
        return NULL;
    }
    s->refs = 1;
    s->limit = limit;
    s->on_room = on_room;
    s->ctx = ctx;
    s->free_ctx = free_ctx;
    return s;
}

struct http_stream *http_stream_ref(struct http_stream *s)
{
    pthread_mutex_lock(&s->lock);
    s->refs++;
    pthread_mutex_unlock(&s->lock);
    return s;
}

void http_stream_unref(struct http_stream *s)
{
    if (!s)
        return;
    pthread_mutex_lock(&s->lock);
    bool is_last = --s->refs == 0;
    pthread_mutex_unlock(&s->lock);
    if (!is_last)
        return;
    if (s->free_ctx)
        s->free_ctx(s->ctx);
    str_done(&s->buf);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

static void wake_locked(struct http_stream *s)
{
    if (!s->is_asleep)
        return;
    s->is_asleep = false;
    s->sleeper.wake(s->sleeper.conn);
}

static void compact_locked(struct http_stream *s)
{
    size_t left = s->buf.len - s->read;
    if (s->read == 0)
        return;
    memmove(s->buf.s, s->buf.s + s->read, left);
    s->buf.len = left;
    s->read = 0;
}

static as_status write_locked(struct http_stream *s, const void *bytes, size_t len)
{
    if (s->is_gone || s->is_ended)
        return AS_E_NOT_FOUND;
    if (s->buf.len - s->read + len > s->limit)
        return AS_E_TOO_LARGE;
    compact_locked(s);
    str_add(&s->buf, bytes, len);
    wake_locked(s);
    return str_check(&s->buf, NULL);
}

as_status http_stream_write(struct http_stream *s, const void *bytes, size_t len)
{
    pthread_mutex_lock(&s->lock);
    as_status st = write_locked(s, bytes, len);
    pthread_mutex_unlock(&s->lock);
    return st;
}

void http_stream_end(struct http_stream *s, bool is_whole)
{
    pthread_mutex_lock(&s->lock);
    if (!s->is_ended) {
        s->is_ended = true;
        s->is_whole = is_whole;
        wake_locked(s);
    }
    pthread_mutex_unlock(&s->lock);
}

bool http_stream_is_gone(struct http_stream *s)
{
    pthread_mutex_lock(&s->lock);
    bool is_gone = s->is_gone;
    pthread_mutex_unlock(&s->lock);
    return is_gone;
}

size_t http_stream_room(struct http_stream *s)
{
    pthread_mutex_lock(&s->lock);
    size_t room = s->limit - (s->buf.len - s->read);
    pthread_mutex_unlock(&s->lock);
    return room;
}

void http_stream_abandon(struct http_stream *s)
{
    pthread_mutex_lock(&s->lock);
    s->is_gone = true;
    wake_locked(s);
    pthread_mutex_unlock(&s->lock);
}

void http_stream_detach(struct http_stream *s)
{
    pthread_mutex_lock(&s->lock);
    s->is_gone = true;
    s->is_asleep = false;
    pthread_mutex_unlock(&s->lock);
}

ssize_t http_stream_take(struct http_stream *s, char *buf, size_t max,
                         const struct http_sleeper *sleeper)
{
    pthread_mutex_lock(&s->lock);
    size_t left = s->buf.len - s->read;
    ssize_t n = 0;
    bool has_room = false;
    if (s->is_gone || s->buf.failed) {
        n = HTTP_STREAM_CUT;
    } else if (left) {
        size_t take = left < max ? left : max;
        memcpy(buf, s->buf.s + s->read, take);
        s->read += take;
        has_room = !s->is_ended && left - take < s->limit / 2;
        n = (ssize_t)take;
    } else if (s->is_ended) {
        n = s->is_whole ? HTTP_STREAM_WHOLE : HTTP_STREAM_CUT;
    } else {
        s->sleeper = *sleeper;
        s->is_asleep = true;
        sleeper->sleep(sleeper->conn);
    }
    pthread_mutex_unlock(&s->lock);
    if (has_room && s->on_room) /* without the lock: on_room may write to this stream */
        s->on_room(s->ctx);
    return n;
}
