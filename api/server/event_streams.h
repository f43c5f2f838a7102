/* Server-sent events: one thread reads what happened and hands it to all streams.
 *
 * Streams that are up to date share one query each HUB_TICK_MS; one that starts in the past, or
 * whose client reads slowly, is caught up by queries of its own and drops nothing. A comment goes
 * out every HUB_KEEP_ALIVE_MS. While the database is away the streams wait. */
#ifndef ASSAY_API_SERVER_HUB_H
#define ASSAY_API_SERVER_HUB_H

#include <stddef.h>
#include <stdint.h>

#include "api/http/http.h"
#include "base/mem.h"
#include "base/status.h"
#include "scheduler/store/store.h"

#define HUB_TICK_MS 200
#define HUB_KEEP_ALIVE_MS 15000
#define HUB_STREAM_BYTES ((size_t)256 << 10)
#define HUB_STREAMS_MAX 1000

struct hub;

/* `db` is borrowed for the life of the hub. AS_E_NOMEM. */
AS_MUST_CHECK as_status hub_create(struct store *db, struct hub **ret, struct as_err *err);

/* A new stream of the events after `after`, of one sweep (an id, copied) or of all (NULL).
 * *ret_stream is one reference for the answer. AS_E_UNAVAILABLE: HUB_STREAMS_MAX are open, or the
 * hub drains. AS_E_NOMEM. */
AS_MUST_CHECK as_status hub_add(struct hub *h, const char *sweep, int64_t after,
                                struct http_stream **ret_stream, struct as_err *err);

size_t hub_streams(struct hub *h); /* how many are open */

/* End every stream; no new ones. */
void hub_drain(struct hub *h);
void hub_free(struct hub *h); /* NULL is fine */
AS_DEFINE_FREEP(struct hub, hub_free)

#endif
