/* The connections of one HTTP server, and a thread that watches them. The thread cuts connections
 * whose deadline has passed, and reports when the peer of a suspended connection has left. A new
 * connection past a limit costs an old one (http_shares.h), which is cut at once. It knows sockets,
 * not libmicrohttpd.
 *
 * A descriptor is in the table from libmicrohttpd's notification "started" to "closed", and it is
 * closed only after that. So an action on it under the table's lock cannot affect another
 * connection that reuses the descriptor. */
#ifndef ASSAY_API_HTTP_HTTP_WATCH_PRIV_H
#define ASSAY_API_HTTP_HTTP_WATCH_PRIV_H

#include <sys/socket.h>

#include "api/http/http.h"

typedef enum http_phase {
    HTTP_PHASE_IDLE, /* waits for a request line */
    HTTP_PHASE_HEAD, /* reads a head */
    HTTP_PHASE_BODY, /* reads a body */
    HTTP_PHASE_REST, /* reads a body that nobody needs: its answer is known */
    HTTP_PHASE_WORK, /* answers: no deadline */
} http_phase;

struct http_table;

/* opts and app are copied. AS_E_NOMEM, AS_E_IO. */
AS_MUST_CHECK as_status http_table_create(const struct http_options *opts,
                                          const struct http_app *app, struct http_table **ret,
                                          struct as_err *err);
void http_table_free(struct http_table *t); /* ends the thread; NULL is fine */

/* The most connections that the table lets be open, which RLIMIT_NOFILE may lower. */
unsigned http_table_max(const struct http_table *t);

/* `addr`: the peer's; borrowed; NULL: unknown. A connection that is refused is shut down. */
void http_table_opened(struct http_table *t, int fd, const struct sockaddr *addr);
void http_table_closed(struct http_table *t, int fd);
void http_table_phase(struct http_table *t, int fd, http_phase phase);
void http_table_received(struct http_table *t, int fd, size_t bytes);

/* Set the exchange that fd serves (NULL: none). x must stay alive until the next call for fd. */
void http_table_serve(struct http_table *t, int fd, struct http_exchange *x);
/* Set the stream of the answer; borrowed until the next http_table_serve. */
void http_table_stream(struct http_table *t, int fd, struct http_stream *stream);
/* From now on, report when the peer of fd leaves. */
void http_table_watch(struct http_table *t, int fd);

/* Release an exchange: call resume(conn) under the table's lock. libmicrohttpd may continue with
 * the connection before that call returns (it writes to its eventfd last). The end of the exchange
 * takes the same lock. So when no exchange is served, no thread is inside resume() any more. */
void http_table_release(struct http_table *t, void (*resume)(void *conn), void *conn);

/* Wait until no exchange is served, at most wait_ms. Returns whether none is. */
bool http_table_wait_idle(struct http_table *t, int64_t wait_ms);
/* Shut every connection down. */
void http_table_cut_all(struct http_table *t);

#endif
