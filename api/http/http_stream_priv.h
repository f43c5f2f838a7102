/* The reading end of a stream, for http.c. */
#ifndef ASSAY_API_HTTP_HTTP_STREAM_PRIV_H
#define ASSAY_API_HTTP_HTTP_STREAM_PRIV_H

#include <sys/types.h>

#include "api/http/http.h"

#define HTTP_STREAM_WHOLE (-1)
#define HTTP_STREAM_CUT (-2)

/* How the connection that reads is put to sleep and woken. `sleep` is called in the thread of
 * http_stream_take, `wake` in any thread; both with the stream's lock held. */
struct http_sleeper {
    void (*sleep)(void *conn);
    void (*wake)(void *conn);
    void *conn;
};

/* Copy up to max bytes. Returns their number, HTTP_STREAM_WHOLE or HTTP_STREAM_CUT at the end, or 0
 * if no byte waits: the connection was put to sleep then. */
ssize_t http_stream_take(struct http_stream *s, char *buf, size_t max,
                         const struct http_sleeper *sleeper);

/* The peer left: wake the reader, which then ends. Writers get AS_E_NOT_FOUND. */
void http_stream_abandon(struct http_stream *s);

/* The connection has ended: the stream never wakes it again. */
void http_stream_detach(struct http_stream *s);

#endif
