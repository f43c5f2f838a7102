#include "trial-runner/collective/socket_address.h"

#include <arpa/inet.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>

/* An abstract name (unix(7)): it begins with a NUL and exists in the network namespace only. */
static socklen_t unix_address(const struct endpoint *e, struct sockaddr_storage *ret)
{
    struct sockaddr_un *u = (struct sockaddr_un *)ret;
    u->sun_family = AF_UNIX;
    int n = snprintf(u->sun_path + 1, sizeof u->sun_path - 1, "assay-rank-%s", e->socket);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
}

socklen_t socket_address(const struct endpoint *e, bool local, struct sockaddr_storage *ret)
{
    memset(ret, 0, sizeof *ret);
    if (local)
        return unix_address(e, ret);
    struct sockaddr_in *four = (struct sockaddr_in *)ret;
    struct sockaddr_in6 *six = (struct sockaddr_in6 *)ret;
    if (inet_pton(AF_INET, e->address, &four->sin_addr) == 1) {
        four->sin_family = AF_INET;
        four->sin_port = htons(e->port);
        return sizeof *four;
    }
    if (inet_pton(AF_INET6, e->address, &six->sin6_addr) == 1) {
        six->sin6_family = AF_INET6;
        six->sin6_port = htons(e->port);
        return sizeof *six;
    }
    return 0;
}
