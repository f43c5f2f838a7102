#include "tests/api/raw_http.h"

#include <arpa/inet.h>
#include <check.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"

int raw_connect(int port)
{
    struct sockaddr_in sa = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    sa.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_ge(fd, 0);
    ck_assert_msg(connect(fd, (const struct sockaddr *)&sa, sizeof sa) == 0, "connect: %m");
    return fd;
}

void raw_send(int fd, const char *bytes, size_t len)
{
    while (len) {
        ssize_t n = send(fd, bytes, len, MSG_NOSIGNAL);
        if (n <= 0)
            return; /* the server has closed: what it said is still to be read */
        bytes += n;
        len -= (size_t)n;
    }
}

void raw_puts(int fd, const char *s)
{
    raw_send(fd, s, strlen(s));
}

bool raw_read(int fd, struct str *out, const char *want, int wait_ms)
{
    int64_t until = clock_mono_ns() + wait_ms * NS_PER_MS;
    while (!want || !strstr(str_cstr(out), want)) {
        int64_t left = (until - clock_mono_ns()) / NS_PER_MS;
        struct pollfd p = {.fd = fd, .events = POLLIN};
        char buf[4096];
        if (left <= 0 || poll(&p, 1, (int)left) <= 0)
            return false;
        ssize_t n = recv(fd, buf, sizeof buf, 0);
        if (n <= 0)
            return true;
        str_add(out, buf, (size_t)n);
    }
    return false;
}

int raw_status(const struct str *answer)
{
    const char *s = str_cstr(answer);
    if (!as_starts_with(s, "HTTP/1."))
        return 0;
    return (int)strtol(s + 9, NULL, 10);
}

int raw_request(int port, const char *bytes, size_t len, int wait_ms, struct str *out)
{
    struct str own = {0};
    int fd = raw_connect(port);
    raw_send(fd, bytes, len);
    (void)raw_read(fd, out ? out : &own, NULL, wait_ms);
    int status = raw_status(out ? out : &own);
    (void)close(fd);
    str_done(&own);
    return status;
}

size_t raw_count(const struct str *answer, const char *part)
{
    size_t n = 0;
    for (const char *s = str_cstr(answer); (s = strstr(s, part)); s += strlen(part))
        n++;
    return n;
}
