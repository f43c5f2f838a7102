/* The HTTP transport: everything that knows libmicrohttpd is behind this header.
 *
 * I/O threads read requests and never block. The application holds a request, with its connection
 * suspended, until it calls http_release() from any thread. It may hold a request twice: after the
 * head, if it calls http_hold(), and after the body, when on_request is called. An answer is bytes,
 * or a stream that is written later.
 *
 * The transport itself enforces the filter of http_filter.h, limits on connections and bodies, an
 * absolute deadline for heads and a lowest rate for bodies (libmicrohttpd's own timeout counts
 * inactivity only). It also detects peers that leave while their connection is suspended. */
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
struct http_tls;

/* The answer. Pointers live as long as the exchange (its arena), or for ever. */
struct http_answer {
    int status; /* 0: none yet */
    const char *content_type;
    const char *bytes; /* or stream, or neither */
    size_t len;
    struct http_stream *stream; /* takes one reference */
    int64_t stream_size;        /* -1: not known */
    int64_t head_size;          /* of an answer to HEAD without bytes: its Content-Length */
    struct http_pair headers[HTTP_ANSWER_HEADERS_MAX];
    size_t n_headers;
    bool close; /* end the connection afterwards */
};

typedef enum http_body_kind {
    HTTP_BODY_NONE,   /* read and discarded */
    HTTP_BODY_MEMORY, /* in x->body */
    HTTP_BODY_SINK,   /* each chunk is passed to x->sink */
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
    /* Called in an I/O thread: may write to a local file, must not wait. Its error is the
     * answer. */
    as_status (*sink)(void *ctx, const void *bytes, size_t len, struct as_err *err);
    void *sink_ctx; /* borrowed */
    struct http_answer answer;
    http_refusal refusal; /* of a request that on_refusal answers */
    atomic_bool is_gone;  /* the peer left while it was watched */
    void *app;            /* set by the application; see on_end */
};

struct http_app {
    void *ctx; /* borrowed */
    /* Called in an I/O thread, after the head: must not block. Sets body_kind and body_max, or an
     * answer (then on_request is not called). It may do so now, or later between http_hold() and
     * http_release(). */
    void (*on_head)(void *ctx, struct http_exchange *x);
    /* Called in an I/O thread, after the body: must not block. x is held. An answer that is
     * released within the call is sent at once, which costs less than one that is released
     * later. */
    void (*on_request)(void *ctx, struct http_exchange *x);
    /* Fill x->answer for a request that the transport refuses: AS_E_INVAL, AS_E_TOO_LARGE (see
     * x->refusal), AS_E_IO, AS_E_NOMEM. The answer is bytes. */
    void (*on_refusal)(void *ctx, struct http_exchange *x, const struct as_err *err);
    /* The exchange is over, answered or not; frees x->app. */
    void (*on_end)(void *ctx, struct http_exchange *x);
    /* The is_gone of some watched exchange was set. Must not block. */
    void (*on_gone)(void *ctx);
};

struct http_options {
    int listen_fd; /* bound and listening; http_start() takes it */
    unsigned threads;
    struct http_tls *tls; /* borrowed; NULL: plain HTTP */
    /* Open at one time, of all addresses and of one (0: no limit for one). Past a limit the oldest
     * connection that never sent a whole head is closed for a new one, else the one that has waited
     * longest for its next request; if there is none, the new one. */
    unsigned max_connections, max_per_address;
    int64_t head_ms;       /* for a whole head from its first byte; the first one: from the start of
                              the connection */
    int64_t idle_ms;       /* between requests, without a byte */
    int64_t body_grace_ms; /* for a body before its rate counts */
    int64_t body_rate;     /* lowest average, bytes per second */
};

/* The defaults; listen_fd is -1. */
struct http_options http_options_default(void);

/* Start. AS_E_INTERNAL: libmicrohttpd does not start; AS_E_NOMEM; AS_E_IO. */
AS_MUST_CHECK as_status http_start(const struct http_options *opts, const struct http_app *app,
                                   struct http_server **ret, struct as_err *err);

/* Serve no new connections: they are closed as soon as they are accepted, and refused once
 * http_stop() has returned true. Requests on old connections are still served. */
void http_quiesce(struct http_server *s);

/* End. The application must answer the exchanges that it holds and end its streams. This call waits
 * up to wait_ms for that and for answers that are being sent, then cuts the connections that are
 * left and waits as long again. Returns false if an exchange is still held: libmicrohttpd cannot be
 * stopped then, nothing was freed, and s still runs. NULL is fine. */
AS_MUST_CHECK bool http_stop(struct http_server *s, int64_t wait_ms);

/* Suspend the connection of x. Call it in on_head only, before another thread can release x. */
void http_hold(struct http_exchange *x);

/* End the hold on x. After on_request: sends x->answer (status 0: cuts the connection). After
 * http_hold() in on_head: sends x->answer, or reads the body if there is no answer yet. */
void http_release(struct http_exchange *x);

/* From now on, set x->is_gone and call on_gone when the peer closes its side. Any thread that holds
 * x may call this. A peer that only shuts down its sending half counts as gone. */
void http_watch(struct http_exchange *x);

/* Add a header to the answer. name and value are views for the life of x. */
void http_answer_header(struct http_exchange *x, const char *name, const char *value);

/* A stream: the application writes bytes over time, and the I/O threads send them. It is
 * reference-counted: create returns one reference, the answer takes one, http_stream_unref drops
 * one. `limit` bounds the bytes that wait to be sent. on_room (may be NULL) is called in an I/O
 * thread and must not block. It is called after each read that leaves less than half of the limit
 * waiting, until the stream has ended. Returns NULL when memory is out. */
struct http_stream *http_stream_create(size_t limit, void (*on_room)(void *ctx), void *ctx,
                                       void (*free_ctx)(void *ctx));
struct http_stream *http_stream_ref(struct http_stream *s);
void http_stream_unref(struct http_stream *s);
/* AS_E_TOO_LARGE: the bytes do not fit now, nothing was added. AS_E_NOT_FOUND: the peer is gone or
 * the stream has ended. AS_E_NOMEM. */
AS_MUST_CHECK as_status http_stream_write(struct http_stream *s, const void *bytes, size_t len);
/* End the stream. is_whole false: the connection is cut, so that the peer sees an error. */
void http_stream_end(struct http_stream *s, bool is_whole);
bool http_stream_is_gone(struct http_stream *s);
size_t http_stream_room(struct http_stream *s); /* bytes that can be written now */

#endif
