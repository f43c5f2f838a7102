/* Parser of server-sent events (HTML Living Standard, "Event stream interpretation").
 *
 * Pure: bytes in, events out through a callback. Lines end in LF, CR or CRLF; an event ends with an
 * empty line; comments (": …") and unknown fields are skipped. `retry` is not used. */
#ifndef ASSAY_API_CLIENT_SSE_H
#define ASSAY_API_CLIENT_SSE_H

#include "base/str.h"

#define SSE_MAX_EVENT_BYTES (1 << 20)
#define SSE_ID_MAX 64

struct sse {
    struct str line, data;
    char id[SSE_ID_MAX];      /* of the last complete event: where to resume */
    char next_id[SSE_ID_MAX]; /* takes effect when the event being read ends */
    char type[SSE_ID_MAX];    /* of the event being read; "" means "message" */
    bool after_cr;            /* a LF that follows belongs to the line before */
    bool has_data;
};

/* One event; the strings are views for the call. Return false to end. */
typedef bool (*sse_event_fn)(void *arg, const char *id, const char *type, const char *data,
                             size_t len);

void sse_done(struct sse *s);

/* Drop a partly read event with its id (after a cut connection). */
void sse_reset(struct sse *s);

/* Start as if the event `id` had been read last. An id that is too long is truncated. */
void sse_resume(struct sse *s, const char *id);

/* Feed bytes. *ret_stop: the callback ended the stream, and the rest was not read.
 * AS_E_TOO_LARGE past SSE_MAX_EVENT_BYTES; AS_E_NOMEM. */
AS_MUST_CHECK as_status sse_feed(struct sse *s, const char *bytes, size_t len, sse_event_fn fn,
                                 void *arg, bool *ret_stop, struct as_err *err);

#endif
