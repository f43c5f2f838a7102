#include "api/server/handlers.h"

#include "api/server/server_priv.h"
#include "scheduler/services/events.h"

/* Where the stream starts: Last-Event-ID, else `after`, else now. A later id counts as now. */
static as_status read_start(struct call *c, int64_t *ret, struct as_err *err)
{
    const char *last = c->x->head.last_event_id;
    int64_t after = -1, now = 0;
    as_status st = call_query_i64(c, "after", 0, INT64_MAX, &after, err);
    if (st < 0)
        return st;
    if (last && !call_read_i64(last, 0, INT64_MAX, &after))
        return as_fail(err, AS_E_INVAL, "Last-Event-ID '%.20s' is not the id of an event", last);
    st = events_now(c->db, &now, err);
    if (st < 0)
        return st;
    *ret = after < 0 || after > now ? now : after;
    return AS_OK;
}

static as_status open_stream(struct call *c, const char *sweep, struct as_err *err)
{
    struct http_stream *stream = NULL;
    int64_t after = 0;
    as_status st = read_start(c, &after, err);
    if (st < 0)
        return st;
    st = event_streams_add(c->server->streams, sweep, after, &stream, err);
    return st < 0 ? st : call_stream(c, "text/event-stream", stream, -1);
}

as_status h_events_sweep(struct call *c, struct as_err *err)
{
    const char *sweep = call_param(c, "sweep");
    struct event_list none;
    as_status st = events_after(c->db, c->arena, sweep, INT64_MAX - 1, 1, &none, err);
    return st < 0 ? st : open_stream(c, sweep, err); /* AS_E_NOT_FOUND before a stream is open */
}

as_status h_events_all(struct call *c, struct as_err *err)
{
    return open_stream(c, NULL, err);
}
