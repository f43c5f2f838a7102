/* Follows server-sent events across cuts of the connection and restarts of the server. A new
 * connection asks for the events after the last complete one (sse.c), so none is lost and none
 * comes twice. The time for trying again counts from each cut. A stream without a byte for
 * STREAM_IDLE_MS is dead: the server sends a comment every 15 s. */
#include "api/client/client_priv.h"

#include <string.h>

#include "api/client/sse.h"
#include "base/clock.h"
#include "base/json.h"

#define STREAM_IDLE_MS 45000

struct stream {
    struct sse sse;
    const struct client_stream_fns *fns;
    struct as_err *err;
    as_status st;   /* the error that ended the reading, if no callback did */
    bool connected; /* since the last cut */
};

static bool pass_event(void *arg, const char *id, const char *type, const char *data, size_t len)
{
    struct stream *s = arg;
    JSON_AUTO j = NULL;
    s->st = json_parse(data, len, &j, s->err);
    if (s->st < 0) {
        s->st = as_err_prefix(s->err, AS_E_INTERNAL, "an event of the server");
        return false;
    }
    return s->fns->on_event(s->fns->arg, id, type, j);
}

static bool pass_bytes(void *arg, const char *bytes, size_t len)
{
    struct stream *s = arg;
    bool stop = false;
    as_status st = sse_feed(&s->sse, bytes, len, pass_event, s, &stop, s->err);
    if (st < 0)
        s->st = st;
    return st == AS_OK && !stop;
}

static void on_opened(void *arg)
{
    struct stream *s = arg;
    s->connected = true;
    if (s->fns->on_connection)
        s->fns->on_connection(s->fns->arg, true, "");
}

static bool on_ticked(void *arg)
{
    struct stream *s = arg;
    return s->fns->on_tick(s->fns->arg);
}

/* Read until the connection ends. AS_OK and r->stopped: a callback ended it. */
static as_status follow_once(struct client *c, const char *path, struct stream *s,
                             struct http_response *r, struct as_err *err)
{
    struct http_request q = {.method = "GET",
                             .path = path,
                             .accept = "text/event-stream",
                             .body_size = -1,
                             .last_event_id = s->sse.id[0] ? s->sse.id : NULL,
                             .idle_ms = STREAM_IDLE_MS,
                             .tick_ms = s->fns->tick_ms,
                             .on_body = pass_bytes,
                             .on_open = on_opened,
                             .on_tick = s->fns->on_tick && s->fns->tick_ms ? on_ticked : NULL,
                             .arg = s};
    as_status st = http_exchange(c, &q, r, err);
    if (s->st < 0)
        return s->st;
    if (st < 0)
        return st;
    st = problem_status(c, &q, r, err);
    if (st < 0)
        return st;
    if (!r->stopped)
        return as_fail(err, AS_E_UNAVAILABLE, "the server ended the stream");
    return AS_OK;
}

/* Wait before the next connection, and call on_tick once. Returns false if there is no next try;
 * *ret_stop: on_tick ended the stream. */
static bool wait_before_reconnect(struct client *c, struct stream *s, struct backoff *b,
                                  int64_t at_least_ms, bool *ret_stop)
{
    *ret_stop = s->fns->on_tick && s->fns->tick_ms && !s->fns->on_tick(s->fns->arg);
    return !*ret_stop && backoff_pause(b, c, at_least_ms);
}

as_status client_stream_events(struct client *c, const char *path, const char *after,
                               const struct client_stream_fns *fns, const struct client_opts *opts,
                               struct as_err *err)
{
    struct as_err local;
    struct stream s = {.fns = fns, .err = err ? err : &local};
    struct backoff b;
    int64_t retry_ms = opts ? opts->retry_ms : 0;
    as_status st;
    if (after)
        sse_resume(&s.sse, after);
    backoff_start(&b, retry_ms);
    for (;;) {
        struct http_response r = {0};
        bool stop = false;
        st = follow_once(c, path, &s, &r, s.err);
        int64_t retry_after_ms = r.retry_after_ms;
        stop = st == AS_OK && r.stopped;
        http_response_done(&r);
        if (stop || st != AS_E_UNAVAILABLE || client_interrupted(c))
            break;
        if (s.connected) { /* retry_ms counts from each cut */
            backoff_start(&b, retry_ms);
            s.connected = false;
            if (fns->on_connection)
                fns->on_connection(fns->arg, false, s.err->msg);
        }
        sse_reset(&s.sse);
        if (!wait_before_reconnect(c, &s, &b, retry_after_ms, &stop)) {
            st = stop ? AS_OK : st;
            break;
        }
    }
    sse_done(&s.sse);
    return st;
}
