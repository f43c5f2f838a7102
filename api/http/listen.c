/* Opens the listening socket, and lists the names by which a request may call this host. The
 * address is resolved once; only the first result is bound. The check for loopback looks at the
 * resolved address and not at the text, so a name that leads to another interface is refused
 * without --insecure-http (decision 6001). The URL has the port that the kernel chose, for `:0`. */
#include "api/http/listen.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <arpa/inet.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"

#define BACKLOG 512

static as_status split_address(const char *text, char *host, size_t host_size, char *port,
                               size_t port_size, struct as_err *err)
{
    const char *colon = strrchr(text, ':');
    const char *begin = text, *end = colon;
    int64_t number = 0;
    if (colon && text[0] == '[' && colon[-1] == ']') {
        begin++;
        end--;
    } else if (colon && memchr(text, ':', (size_t)(colon - text))) {
        colon = NULL; /* an IPv6 address without brackets */
    }
    if (!colon || end == begin || (size_t)(end - begin) >= host_size)
        return as_fail(err, AS_E_INVAL,
                       "'%.80s' is not an address: expected HOST:PORT or [IPV6]:PORT", text);
    if (as_parse_i64(colon + 1, &number, NULL) < 0 || number < 0 || number > 65535)
        return as_fail(err, AS_E_INVAL, "'%.20s' is not a port: expected 0 to 65535", colon + 1);
    (void)snprintf(host, host_size, "%.*s", (int)(end - begin), begin);
    (void)snprintf(port, port_size, "%d", (int)number);
    return AS_OK;
}

static bool is_loopback(const struct sockaddr *sa)
{
    if (sa->sa_family == AF_INET6)
        return IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)(const void *)sa)->sin6_addr);
    uint32_t ip = ntohl(((const struct sockaddr_in *)(const void *)sa)->sin_addr.s_addr);
    return ip >> 24 == 127;
}

static as_status bind_one(const struct addrinfo *ai, const char *text, int *ret_fd,
                          struct as_err *err)
{
    AS_AUTO(file_closep)
    int fd = socket(ai->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int one = 1;
    if (fd < 0)
        return as_fail(err, AS_E_IO, "cannot make a socket: %m");
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(fd, ai->ai_addr, ai->ai_addrlen) != 0 || listen(fd, BACKLOG) != 0)
        return as_fail(err, errno == EADDRINUSE ? AS_E_CONFLICT : AS_E_IO,
                       "cannot listen on %.80s: %m", text);
    *ret_fd = fd;
    fd = -1;
    return AS_OK;
}

static void format_url(int fd, const char *host, char *url, size_t size)
{
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    } sa = {0};
    socklen_t len = sizeof sa;
    (void)getsockname(fd, &sa.any, &len);
    in_port_t port = sa.any.sa_family == AF_INET6 ? sa.v6.sin6_port : sa.v4.sin_port;
    bool is_6 = strchr(host, ':') != NULL;
    (void)snprintf(url, size, "http://%s%s%s:%u", is_6 ? "[" : "", host, is_6 ? "]" : "",
                   (unsigned)ntohs(port));
}

static as_status check_local(const struct addrinfo *list, const char *host, struct as_err *err)
{
    if (is_loopback(list->ai_addr))
        return AS_OK;
    return as_fail(
        err, AS_E_DENIED,
        "%.80s is not a loopback address, and there is no TLS: tokens and data would be sent "
        "unencrypted. Use --tls-certificate and --tls-key, or --insecure-http",
        host);
}

static void free_addresses(struct addrinfo **list)
{
    if (*list)
        freeaddrinfo(*list);
}

as_status listen_open(const char *text, bool allow_remote, int *ret_fd,
                      struct listener_address *ret, struct as_err *err)
{
    struct listener_address a = {0};
    char port[8];
    AS_AUTO(free_addresses) struct addrinfo *list = NULL;
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE};
    as_status st = split_address(text, a.host, sizeof a.host, port, sizeof port, err);
    if (st < 0)
        return st;
    int rc = getaddrinfo(a.host, port, &hints, &list);
    if (rc != 0)
        return as_fail(err, AS_E_INVAL, "cannot resolve '%.80s': %s", a.host, gai_strerror(rc));
    if (!allow_remote)
        st = check_local(list, a.host, err);
    if (st < 0)
        return st;
    st = bind_one(list, text, ret_fd, err);
    if (st < 0)
        return st;
    format_url(*ret_fd, a.host, a.url, sizeof a.url);
    *ret = a;
    return AS_OK;
}

void listener_address_secure(struct listener_address *a)
{
    char rest[sizeof a->url];
    (void)snprintf(rest, sizeof rest, "%s", a->url + strlen("http"));
    (void)snprintf(a->url, sizeof a->url, "https%.*s", (int)(sizeof a->url - sizeof "https"), rest);
}

as_status listener_address_write(const struct listener_address *a, const char *path,
                                 struct as_err *err)
{
    char line[sizeof a->url + 1];
    if (!path)
        return AS_OK;
    int n = snprintf(line, sizeof line, "%s\n", a->url);
    return file_write_output(path, line, (size_t)n, 0644, err);
}

/* ---- the names of this host ---- */

void host_names_done(struct host_names *h)
{
    free(h->text);
    *h = (struct host_names){0};
}

as_status host_names_init(const struct listener_address *a, const char *more,
                          struct host_names *ret, struct as_err *err)
{
    AS_AUTO(host_names_done) struct host_names h = {0};
    struct str all = {0};
    size_t n = 0;
    str_printf(&all, strchr(a->host, ':') ? "[%s]" : "%s", a->host);
    str_printf(&all, ",%s", more ? more : "");
    h.text = str_take(&all);
    if (!h.text)
        return as_fail_nomem(err);
    for (char *s = h.text; s;) {
        char *comma = strchr(s, ',');
        if (comma)
            *comma = '\0';
        if (*s && n == HOST_NAMES_MAX + 1)
            return as_fail(err, AS_E_INVAL,
                           "--public-host: found more than %d names, expected at most that many",
                           HOST_NAMES_MAX);
        if (*s)
            h.names[n++] = s;
        s = comma ? comma + 1 : NULL;
    }
    *ret = h;
    h = (struct host_names){0};
    return AS_OK;
}
