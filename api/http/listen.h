/* The address to listen on: "HOST:PORT" or "[::1]:7117". Port 0 means any free port. */
#ifndef ASSAY_API_HTTP_LISTEN_H
#define ASSAY_API_HTTP_LISTEN_H

#include <stdbool.h>

#include "base/mem.h"
#include "base/status.h"

struct listener_address {
    char host[80]; /* as it was given, without brackets */
    char url[128]; /* of the bound socket: "http://127.0.0.1:40123", or https */
};

/* Bind and listen. Without `allow_remote` only loopback addresses are accepted: others need TLS,
 * or somebody who says that the network is trusted. *ret_fd is owned by the caller. AS_E_INVAL:
 * a malformed text or an unknown host. AS_E_DENIED: not a loopback address. AS_E_CONFLICT: the
 * port is taken. AS_E_IO. */
AS_MUST_CHECK as_status listen_open(const char *text, bool allow_remote, int *ret_fd,
                                    struct listener_address *ret, struct as_err *err);

/* The socket speaks TLS: its URL is https://… */
void listener_address_secure(struct listener_address *a);

/* Write the URL as a line to this file, by the rules of file_write_output(); path NULL: nowhere.
 * AS_E_IO. */
AS_MUST_CHECK as_status listener_address_write(const struct listener_address *a, const char *path,
                                               struct as_err *err);

#define HOST_NAMES_MAX 16

/* The names that a Host header may have besides the loopback names. A zeroed struct is empty. */
struct host_names {
    char *text;                            /* owned; `names` points into it */
    const char *names[HOST_NAMES_MAX + 2]; /* NULL-terminated */
};

/* The address that is listened on, and further names.
 *   more  at most HOST_NAMES_MAX names with commas between them, or NULL; borrowed
 *   ret   owned by the caller: host_names_done()
 * AS_E_INVAL: there are more; AS_E_NOMEM. */
AS_MUST_CHECK as_status host_names_init(const struct listener_address *a, const char *more,
                                        struct host_names *ret, struct as_err *err);
void host_names_done(struct host_names *h);

#endif
