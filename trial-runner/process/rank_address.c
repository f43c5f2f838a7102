#include "trial-runner/process/rank_address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"

#define HOST_MAX 256

bool rank_address_valid(const char *text)
{
    unsigned char bytes[sizeof(struct in6_addr)];
    return inet_pton(strchr(text, ':') ? AF_INET6 : AF_INET, text, bytes) == 1;
}

/* "http://HOST:PORT/prefix" or "http://[HOST]…". */
static as_status host_of_url(const char *url, char host[HOST_MAX], struct as_err *err)
{
    const char *at = strstr(url, "://");
    at = at ? at + strlen("://") : url;
    const char *user = memchr(at, '@', strcspn(at, "/"));
    at = user ? user + 1 : at;
    bool six = *at == '[';
    at += six;
    size_t n = strcspn(at, six ? "]" : ":/");
    if (n == 0 || n >= HOST_MAX)
        return as_fail(err, AS_E_INVAL, "'%.100s' names no host", url);
    memcpy(host, at, n);
    host[n] = '\0';
    return AS_OK;
}

/* The kernel chooses the local address when a datagram socket is connected; nothing is sent. */
static bool local_address(const struct addrinfo *to, char ret[RANK_ADDRESS_MAX])
{
    struct sockaddr_storage own = {0};
    socklen_t len = sizeof own;
    AS_AUTO(file_closep) int fd = socket(to->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    return fd >= 0 && connect(fd, to->ai_addr, to->ai_addrlen) == 0 &&
           getsockname(fd, (struct sockaddr *)&own, &len) == 0 &&
           getnameinfo((struct sockaddr *)&own, len, ret, RANK_ADDRESS_MAX, NULL, 0,
                       NI_NUMERICHOST) == 0 &&
           rank_address_valid(ret); /* not one with the name of an interface in it */
}

as_status rank_address_find(const char *server_url, char ret[RANK_ADDRESS_MAX], struct as_err *err)
{
    struct addrinfo hints = {.ai_socktype = SOCK_DGRAM}, *all = NULL;
    char host[HOST_MAX], found[RANK_ADDRESS_MAX] = "";
    as_status st = host_of_url(server_url, host, err);
    if (st < 0)
        return st;
    int rc = getaddrinfo(host, "9", &hints, &all);
    if (rc != 0)
        return as_fail(err, AS_E_UNAVAILABLE, "the address for ranks: %s: %s", host,
                       gai_strerror(rc));
    bool ok = false;
    for (const struct addrinfo *a = all; a && !ok; a = a->ai_next)
        ok = local_address(a, found);
    freeaddrinfo(all);
    if (!ok)
        return as_fail(err, AS_E_UNAVAILABLE,
                       "this machine has no address on the way to %s; give one with --rank-address",
                       host);
    (void)snprintf(ret, RANK_ADDRESS_MAX, "%s", found);
    return AS_OK;
}

as_status rank_address_free_port(const char *address, int64_t *ret, struct as_err *err)
{
    struct sockaddr_in6 six = {.sin6_family = AF_INET6};
    struct sockaddr_in four = {.sin_family = AF_INET};
    bool is_six = strchr(address, ':') != NULL;
    struct sockaddr *own = is_six ? (struct sockaddr *)&six : (struct sockaddr *)&four;
    socklen_t len = is_six ? sizeof six : sizeof four;
    (void)inet_pton(is_six ? AF_INET6 : AF_INET, address,
                    is_six ? (void *)&six.sin6_addr : (void *)&four.sin_addr);
    AS_AUTO(file_closep) int fd = socket(own->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || bind(fd, own, len) < 0 || getsockname(fd, own, &len) < 0)
        return as_fail(err, AS_E_IO, "no port of %s for a rank: %s", address, strerror(errno));
    *ret = ntohs(is_six ? six.sin6_port : four.sin_port);
    return AS_OK;
}
