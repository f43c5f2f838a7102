/* Stands between the sockets and libmicrohttpd: the library gets only bytes that http_framing.h has
 * followed.
 *
 * The library offers no hook there, so http_recv.c defines recv(), and the dynamic linker lets the
 * library call it; the same holds for send() and sendmsg(), because of TLS (http_tls.h). For a
 * descriptor that is not guarded they are those of libc. A connection
 * whose message is refused gets one answer, then its end of data; what the peer still sends is read
 * and dropped, so that the answer is not lost to a reset. Decision 6002. */
#ifndef ASSAY_API_HTTP_HTTP_RECV_H
#define ASSAY_API_HTTP_HTTP_RECV_H

#include <stdbool.h>

#include "api/http/http_framing.h"
#include "api/http/http_tls.h"
#include "base/str.h"

struct http_guard_hooks {
    void *ctx; /* borrowed */
    /* Called in the connection's I/O thread: a message begins that is not pipelined. */
    void (*on_message)(void *ctx, int fd);
    /* Called in the connection's I/O thread: write the whole answer to a refused message. */
    void (*on_refused)(void *ctx, int fd, const char *problem, http_refusal kind, struct str *ret);
};

/* Guard a connection from its first byte. tls: it speaks TLS; NULL: plain HTTP. Returns false when
 * memory is out, or fd is too large: then it must not be served. */
bool http_guard_open(int fd, const struct http_guard_hooks *hooks, struct http_tls *tls);
/* Before fd is closed. */
void http_guard_close(int fd);

/* Has recv() passed bytes of this connection? False means that the library does not call our
 * recv(), and that its requests must not be served. */
bool http_guard_works(int fd);

/* The answer to a message was sent. If the next one came in the same bytes: report it, or refuse
 * it. */
void http_guard_answered(int fd);

#endif
