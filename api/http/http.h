/* The HTTP transport: everything that knows libmicrohttpd is behind this header.
 *
 * I/O threads read requests and never block. A request is held by the application, its connection
 * suspended, from http_hold() to http_release(), which any thread may call: once while only its
 * head is known if the application wishes, and once when it is whole (http_app.on_request is called
 * with it held). An answer is bytes, or a stream that is written later.
 *
 * What it holds by itself: the filter of http_filter.h, limits on connections and bodies, an
 * absolute deadline for heads and a lowest rate for bodies (libmicrohttpd's own timeout counts
 * inactivity only), and noticing peers that leave while their connection is suspended. */
#ifndef ASSAY_API_HTTP_HTTP_H
#define ASSAY_API_HTTP_HTTP_H

#include <netinet/in.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "api/http/http_filter.h"
#include "base/arena.h"
#include "base/status.h"
#include "base/str.h"

#define HTTP_ANSWER_HEADERS_MAX 12

struct http_server;
struct http_stream;

/* What is sent back. Pointers live as long as the exchange (its arena), or for ever. */
struct http_answer {
    int status; /* 0: none yet */
    const char *content_type;
    const char *bytes; /* or stream, or neither */
    size_t len;
    struct http_stream *stream; /* takes one reference */
    int64_t stream_size;        /* -1: not known */
    struct http_pair headers[HTTP_ANSWER_HEADERS_MAX];
    size_t n_headers;
    bool close; /* end the connection afterwards */
};

typedef enum http_body_kind {
    HTTP_BODY_NONE,   /* read and thrown away */
    HTTP_BODY_MEMORY, /* in x->body */
    HTTP_BODY_SINK,   /* given to x->sink as it comes */
} http_body_kind;

/* One request and its answer. */
struct http_exchange {
    struct arena arena; /* dies with the exchange */
    struct http_head head;
    char peer[INET6_ADDRSTRLEN];
    int64_t start_ns; /* monotonic, when the request line was read */
    http_body_kind body_kind;
    int64_t body_max;
    struct str body;
    int64_t body_size;
    /* In an I/O thread: may write to a local file, may not wait. Its error is the answer. */
    as_status (*sink)(void *ctx, const void *bytes, size_t len, struct as_err *err);
    void *sink_ctx; /* borrowed */
    struct http_answer answer;
    atomic_bool is_gone; /* the peer left while it was watched */
    void *app;           /* the application's own; see on_end */
};

struct http_app {
    void *ctx; /* borrowed */
    /* In an I/O thread, after the head: must not block. Sets body_kind and body_max, or an answer
     * (then on_request is not called), now or between http_hold() and http_release(). */
    void (*on_head)(void *ctx, struct http_exchange *x);
    /* In an I/O thread, after the body: must not block. x is held. */
    void (*on_request)(void *ctx, struct http_exchange *x);
    /* Fill x->answer for what this file refuses: AS_E_INVAL, AS_E_TOO_LARGE, AS_E_IO, AS_E_NOMEM.
     */
    void (*on_refusal)(void *ctx, struct http_exchange *x, const struct as_err *err);
    /* The exchange is over, answered or not; frees x->app. */
    void (*on_end)(void *ctx, struct http_exchange *x);
    /* Some watched exchange's is_gone was set. Must not block. */
    void (*on_gone)(void *ctx);
};

struct http_options {
    int listen_fd; /* bound and listening; taken */
    unsigned threads;
    unsigned max_connections;
    unsigned max_per_address;
    int64_t head_ms;       /* for a whole head, from its first line */
    int64_t idle_ms;       /* between requests, and until a first line is whole */
    int64_t body_grace_ms; /* for a body before its rate counts */
    int64_t body_rate;     /* lowest average, bytes per second */
};

/* The defaults; listen_fd is -1. */
struct http_options http_options_default(void);

/* Start. AS_E_INTERNAL: libmicrohttpd would not; AS_E_NOMEM; AS_E_IO. */
AS_MUST_CHECK as_status http_start(const struct http_options *opts, const struct http_app *app,
                                   struct http_server **ret, struct as_err *err);

/* No new connections: they are closed as soon as they are accepted, and refused once http_stop()
 * has returned true. Requests on old ones still come in. */
void http_quiesce(struct http_server *s);

/* End. The application answers what it holds and ends its streams; waits up to wait_ms for that and
 * for answers on their way, then cuts what is left and waits as long again. False: something is
 * still held (libmicrohttpd may not be stopped then), nothing was freed, and s goes on. NULL is
 * fine. */
AS_MUST_CHECK bool http_stop(struct http_server *s, int64_t wait_ms);

/* In on_head only: suspend. Before anything else may release x. */
void http_hold(struct http_exchange *x);

/* Give x back. After on_request: sends x->answer (status 0: cuts the connection). After http_hold()
 * in on_head: sends x->answer, or reads the body when it has none. */
void http_release(struct http_exchange *x);

/* Set x->is_gone and call on_gone when the peer closes its side from now on. Any thread that holds
 * x. A peer that only shuts down its sending half counts as gone. */
void http_watch(struct http_exchange *x);

/* Add a header to the answer. name and value are views for the life of x. */
void http_answer_header(struct http_exchange *x, const char *name, const char *value);

/* A stream: bytes written by one side as they come, sent by the I/O threads. Reference-counted:
 * create gives one reference, the answer takes one, http_stream_unref drops one. `limit` bounds
 * what waits. on_room (may be NULL) is called in an I/O thread, not blocking, each time that less
 * than half of the limit is left waiting after a read, until the stream ended. NULL when memory is
 * out. */
struct http_stream *http_stream_create(size_t limit, void (*on_room)(void *ctx), void *ctx,
                                       void (*free_ctx)(void *ctx));
struct http_stream *http_stream_ref(struct http_stream *s);
void http_stream_unref(struct http_stream *s);
/* AS_E_TOO_LARGE: it does not fit now, nothing was added; AS_E_NOT_FOUND: the peer is gone or the
 * stream ended; AS_E_NOMEM. */
AS_MUST_CHECK as_status http_stream_write(struct http_stream *s, const void *bytes, size_t len);
/* No more will come. is_whole false: the connection is cut, so that the peer sees an error. */
void http_stream_end(struct http_stream *s, bool is_whole);
bool http_stream_is_gone(struct http_stream *s);
size_t http_stream_room(struct http_stream *s); /* bytes that can be written now */

#endif
