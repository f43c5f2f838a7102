/* The address to listen on: "HOST:PORT" or "[::1]:7117". Port 0 means any free port. */
#ifndef ASSAY_API_HTTP_LISTEN_H
#define ASSAY_API_HTTP_LISTEN_H

#include <stdbool.h>

#include "base/status.h"

struct listener_address {
    char host[80]; /* as it was given, without brackets */
    char url[128]; /* of the bound socket: "http://127.0.0.1:40123" */
};

/* Bind and listen. Without `allow_remote` only loopback addresses are accepted, because there is no
 * TLS. *ret_fd is owned by the caller. AS_E_INVAL: a malformed text or an unknown host.
 * AS_E_DENIED: not a loopback address. AS_E_CONFLICT: the port is taken. AS_E_IO. */
AS_MUST_CHECK as_status listen_open(const char *text, bool allow_remote, int *ret_fd,
                                    struct listener_address *ret, struct as_err *err);

#endif
