/* TLS below libmicrohttpd: the bytes of a connection are encrypted and decrypted where
 * http_recv.c stands between the library and the socket. So the library, and the checks of
 * http_framing.h, see plain HTTP, and everything that holds for a plain connection (deadlines,
 * shares, event loops) holds for these. TLS 1.2 and 1.3, without compression and renegotiation. */
#ifndef ASSAY_API_HTTP_HTTP_TLS_H
#define ASSAY_API_HTTP_HTTP_TLS_H

#include <signal.h>
#include <stddef.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "base/mem.h"
#include "base/status.h"

/* A certificate with its key, for all connections of a server. */
struct http_tls;

/* Read both files (PEM; the certificate first, then those that lead to its authority).
 * AS_E_INVAL: a file is no certificate or no key, the key does not fit the certificate, or it
 * has expired; the message names the file. AS_E_NOT_FOUND, AS_E_IO, AS_E_NOMEM. */
AS_MUST_CHECK as_status http_tls_create(const char *certificate, const char *key,
                                        struct http_tls **ret, struct as_err *err);
void http_tls_free(struct http_tls *t); /* NULL is fine; no connection may use it any more */
AS_DEFINE_FREEP(struct http_tls, http_tls_free)

/* Read the files again. New connections get what they say now; others go on. After an error the
 * server goes on with what it has. Errors as http_tls_create(). Any thread. */
AS_MUST_CHECK as_status http_tls_reload(struct http_tls *t, struct as_err *err);

/* Wait for one of these signals, which all threads block, and return it. SIGHUP reads the files
 * again, and is waited on, unless t is NULL. */
int http_tls_await_signal(struct http_tls *t, const sigset_t *signals);

/* ---- one connection: its I/O thread alone ---- */

struct http_tls_connection;

/* The handshake goes on with the first reads. NULL when memory is out. */
struct http_tls_connection *http_tls_open(struct http_tls *t, int fd);
void http_tls_close(struct http_tls_connection *c); /* tells the peer; NULL is fine */

/* As recv() and sendmsg() of a socket that does not block, with decrypted bytes. A read fills
 * the buffer, or has read all that has come: an edge-triggered loop hears of the rest. A message
 * that is no TLS, or a failed handshake, is ECONNRESET. */
ssize_t http_tls_recv(struct http_tls_connection *c, void *buf, size_t len, int flags);
ssize_t http_tls_send(struct http_tls_connection *c, const struct iovec *v, size_t n);

/* No more is sent: tell the peer, and shut down the sending half of the socket. */
void http_tls_end(struct http_tls_connection *c);

#endif
