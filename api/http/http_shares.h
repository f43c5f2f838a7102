/* Who has the connections: how many are open in all and for each client address, and which one is
 * closed to make room for a new one.
 *
 * A connection that has never sent a whole head ("silent") costs its client nothing, so it must not
 * keep others out: where a limit is reached, the oldest silent connection is closed for the new
 * one. If none is silent, the one that has waited longest between two requests is. Connections that
 * are at work stay, and if all are, the new one is refused.
 *
 * It knows descriptors and addresses, no sockets: http_watch.c closes what it names. Not thread
 * safe. Every call takes constant time, except one at the limit of all addresses, which looks at
 * each address. */
#ifndef ASSAY_API_HTTP_HTTP_SHARES_H
#define ASSAY_API_HTTP_HTTP_SHARES_H

#include <stdint.h>
#include <sys/socket.h>

#include "base/mem.h"
#include "base/status.h"

/* What a connection does. */
typedef enum http_share_use {
    HTTP_SHARE_SILENT, /* has not sent a whole head yet */
    HTTP_SHARE_IDLE,   /* waits for its next request, or sends what nobody waits for */
    HTTP_SHARE_BUSY,   /* a request is read or answered */
} http_share_use;

struct http_share_limits {
    unsigned all;         /* connections of all addresses */
    unsigned per_address; /* 0: no limit for one address */
};

#define HTTP_SHARE_ROOM (-1)    /* there is room for the new connection */
#define HTTP_SHARE_REFUSED (-2) /* there is none: close the new connection */

struct http_shares;

/* For descriptors below n_fds. AS_E_NOMEM. */
AS_MUST_CHECK as_status http_shares_create(int n_fds, const struct http_share_limits *limits,
                                           struct http_shares **ret, struct as_err *err);
void http_shares_free(struct http_shares *s); /* NULL is fine */

/* Add a connection, which is silent. `addr` is borrowed; NULL: unknown, all of these share one
 * address. Returns the descriptor of the connection to close for it, which has left the shares by
 * then, HTTP_SHARE_ROOM, or HTTP_SHARE_REFUSED: then nothing was added. */
int http_shares_add(struct http_shares *s, int fd, const struct sockaddr *addr);

/* For a descriptor that is not (or no longer) in the shares, these two do nothing. */
void http_shares_use(struct http_shares *s, int fd, http_share_use use);
void http_shares_remove(struct http_shares *s, int fd);

#endif
