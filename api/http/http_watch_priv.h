/* The connections of one HTTP server, and a thread that watches them: it cuts those whose deadline
 * has passed and tells when the peer of a suspended one has left. Knows sockets, not libmicrohttpd.
 *
 * A descriptor is in the table from libmicrohttpd's "started" to its "closed", and is closed only
 * after that: what is done to it under the table's lock cannot hit a stranger. */
#ifndef ASSAY_API_HTTP_HTTP_WATCH_PRIV_H
#define ASSAY_API_HTTP_HTTP_WATCH_PRIV_H

#include "api/http/http.h"

typedef enum http_phase {
    HTTP_PHASE_IDLE, /* waits for a request line */
    HTTP_PHASE_HEAD, /* reads a head */
    HTTP_PHASE_BODY, /* reads a body */
    HTTP_PHASE_WORK, /* answers: no deadline */
} http_phase;

struct http_table;

/* opts and app are copied. AS_E_NOMEM, AS_E_IO. */
AS_MUST_CHECK as_status http_table_create(const struct http_options *opts,
                                          const struct http_app *app, struct http_table **ret,
                                          struct as_err *err);
void http_table_free(struct http_table *t); /* ends the thread; NULL is fine */

void http_table_opened(struct http_table *t, int fd);
void http_table_closed(struct http_table *t, int fd);
void http_table_phase(struct http_table *t, int fd, http_phase phase);
void http_table_received(struct http_table *t, int fd, size_t bytes);

/* x is what fd serves from now on (NULL: nothing). It must stay alive until that changes. */
void http_table_serve(struct http_table *t, int fd, struct http_exchange *x);
/* The stream that x is answered with; borrowed until the next http_table_serve. */
void http_table_stream(struct http_table *t, int fd, struct http_stream *stream);
void http_table_watch(struct http_table *t, int fd);

/* Let go of an exchange: resume(conn), under the table's lock. libmicrohttpd goes on with the
 * connection before that call has left the daemon (it writes to its eventfd last); the end of the
 * exchange takes the lock too, so that nobody is inside any more when nothing is served. */
void http_table_release(struct http_table *t, void (*resume)(void *conn), void *conn);

/* Wait until nothing is served, at most wait_ms. Says whether that came to be. */
bool http_table_wait_idle(struct http_table *t, int64_t wait_ms);
/* Shut every connection down. */
void http_table_cut_all(struct http_table *t);

#endif
