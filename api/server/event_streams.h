/* Server-sent events: one thread reads new events and writes them to all streams.
 *
 * Streams that are up to date share one query each EVENT_STREAMS_TICK_MS and are served first. A
 * stream that starts in the past, or whose client reads slowly, is brought up to date by further
 * queries and drops nothing. A stream without room costs no query. A comment is sent every
 * EVENT_STREAMS_KEEP_ALIVE_MS. While the database cannot be reached, the streams wait. */
#ifndef ASSAY_API_SERVER_EVENT_STREAMS_H
#define ASSAY_API_SERVER_EVENT_STREAMS_H

#include <stddef.h>
#include <stdint.h>

#include "api/http/http.h"
#include "base/mem.h"
#include "base/status.h"
#include "scheduler/store/store.h"

#define EVENT_STREAMS_TICK_MS 200
#define EVENT_STREAMS_KEEP_ALIVE_MS 15000
#define EVENT_STREAM_BYTES ((size_t)256 << 10)
#define EVENT_STREAMS_MAX 1000

struct event_streams;

/* `db` is borrowed until event_streams_free(). AS_E_NOMEM. */
AS_MUST_CHECK as_status event_streams_create(struct store *db, struct event_streams **ret,
                                             struct as_err *err);

/* Open a stream of the events after the id `after`, of one sweep (an id, copied) or of all (NULL).
 * *ret_stream is one reference, for the answer. AS_E_UNAVAILABLE: EVENT_STREAMS_MAX are open, or
 * the server is stopping. AS_E_NOMEM. */
AS_MUST_CHECK as_status event_streams_add(struct event_streams *s, const char *sweep, int64_t after,
                                          struct http_stream **ret_stream, struct as_err *err);

size_t event_streams_count(struct event_streams *s); /* how many are open */
/* Queries for events since the start. */
long event_streams_queries(const struct event_streams *s);

/* End every stream, and accept no new ones. */
void event_streams_drain(struct event_streams *s);
void event_streams_free(struct event_streams *s); /* NULL is fine */
AS_DEFINE_FREEP(struct event_streams, event_streams_free)

#endif
