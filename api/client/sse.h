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
    char id[SSE_ID_MAX];      /* of the last whole event: where to resume */
    char next_id[SSE_ID_MAX]; /* takes effect when the event being read ends */
    char type[SSE_ID_MAX];    /* of the event being read; "" means "message" */
    bool after_cr;            /* a LF that follows belongs to the line before */
    bool has_data;
};

/* One event; the strings are views for the call. Return false to end. */
typedef bool (*sse_event_fn)(void *arg, const char *id, const char *type, const char *data,
                             size_t len);

void sse_done(struct sse *s);

/* Forget a half-read event (a cut connection), its id too. */
void sse_reset(struct sse *s);

/* Start as if the event `id` had been read last. Ids that do not fit are cut. */
void sse_resume(struct sse *s, const char *id);

/* Feed bytes. *ret_stop is whether the callback ended it; then the rest is not read.
 * AS_E_TOO_LARGE past SSE_MAX_EVENT_BYTES; AS_E_NOMEM. */
AS_MUST_CHECK as_status sse_feed(struct sse *s, const char *bytes, size_t len, sse_event_fn fn,
                                 void *arg, bool *ret_stop, struct as_err *err);

#endif
