#include "trial-runner/collective/listener.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/hash.h"
#include "trial-runner/collective/socket_address.h"

#define BACKLOG 4096 /* the kernel's own limit (somaxconn) may be lower */

static as_status listen_at(const struct endpoint *e, bool local, int *ret_fd, struct as_err *err)
{
    struct sockaddr_storage at = {0};
    socklen_t len = socket_address(e, local, &at);
    if (len == 0)
        return as_fail(err, AS_E_INVAL, "'%s' is no numeric address", e->address);
    int fd = socket(at.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&at, len) < 0 || listen(fd, BACKLOG) < 0) {
        int why = errno;
        if (fd >= 0)
            (void)close(fd);
        return as_fail(err, AS_E_IO, "cannot listen on %s: %s",
                       local ? "a Unix socket" : e->address, strerror(why));
    }
    *ret_fd = fd;
    return AS_OK;
}

static as_status bound_port(int fd, uint16_t *ret, struct as_err *err)
{
    struct sockaddr_storage at = {0};
    socklen_t len = sizeof at;
    if (getsockname(fd, (struct sockaddr *)&at, &len) < 0)
        return as_fail(err, AS_E_IO, "getsockname: %s", strerror(errno));
    *ret = ntohs(at.ss_family == AF_INET ? ((struct sockaddr_in *)&at)->sin_port
                                         : ((struct sockaddr_in6 *)&at)->sin6_port);
    return AS_OK;
}

as_status listener_create(const char *address, struct listener **ret, struct as_err *err)
{
    AS_AUTO(listener_freep) struct listener *l = as_calloc(1, sizeof *l);
    uint8_t name[16];
    as_status st;
    if (!l)
        return as_fail_nomem(err);
    l->tcp_fd = l->unix_fd = -1;
    if (strlen(address) >= sizeof l->endpoint.address)
        return as_fail(err, AS_E_INVAL, "'%.80s' is no numeric address", address);
    (void)snprintf(l->endpoint.address, sizeof l->endpoint.address, "%s", address);
    random_bytes(name, sizeof name);
    hex_format(name, sizeof name, l->endpoint.socket);
    if ((st = endpoint_this_host(l->endpoint.host, err)) < 0 ||
        (st = listen_at(&l->endpoint, false, &l->tcp_fd, err)) < 0 ||
        (st = listen_at(&l->endpoint, true, &l->unix_fd, err)) < 0 ||
        (st = bound_port(l->tcp_fd, &l->endpoint.port, err)) < 0)
        return st;
    *ret = as_steal(l);
    return AS_OK;
}

void listener_free(struct listener *l)
{
    if (!l)
        return;
    if (l->tcp_fd >= 0)
        (void)close(l->tcp_fd);
    if (l->unix_fd >= 0)
        (void)close(l->unix_fd);
    free(l);
}
