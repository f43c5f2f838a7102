/* The reading end of a stream, for http.c. */
#ifndef ASSAY_API_HTTP_HTTP_STREAM_PRIV_H
#define ASSAY_API_HTTP_HTTP_STREAM_PRIV_H

#include <sys/types.h>

#include "api/http/http.h"

#define HTTP_STREAM_WHOLE (-1)
#define HTTP_STREAM_CUT (-2)

/* How the connection that reads sleeps and wakes. `sleep` is called in http_stream_take's thread,
 * `wake` in any; both with the stream's lock held. */
struct http_sleeper {
    void (*sleep)(void *conn);
    void (*wake)(void *conn);
    void *conn;
};

/* Copy up to max bytes. 0: nothing there, and the connection was put to sleep. */
ssize_t http_stream_take(struct http_stream *s, char *buf, size_t max,
                         const struct http_sleeper *sleeper);

/* The peer left: wake the reader, which then ends; writers see AS_E_NOT_FOUND. */
void http_stream_abandon(struct http_stream *s);

/* The connection is over: it is never woken again. */
void http_stream_detach(struct http_stream *s);

#endif
