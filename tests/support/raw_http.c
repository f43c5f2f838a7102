#include "tests/support/raw_http.h"

#include <arpa/inet.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/mem.h"
#include "tests/support/check_main.h"

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
            return; /* the server has closed: its answer is still to be read */
        bytes += n;
        len -= (size_t)n;
    }
}

void raw_puts(int fd, const char *s)
{
    raw_send(fd, s, strlen(s));
}

static int port_at(int fd, int (*which)(int, struct sockaddr *, socklen_t *))
{
    struct sockaddr_in sa = {0};
    socklen_t len = sizeof sa;
    ck_assert_int_eq(which(fd, (struct sockaddr *)&sa, &len), 0);
    return ntohs(sa.sin_port);
}

/* Whether there is a TCP socket with these ports. TIME_WAIT (06) does not count. */
static bool is_open(int local, int remote)
{
    AS_AUTO(as_freep) char *text = NULL;
    size_t len = 0;
    struct as_err err;
    ck_ok(file_read("/proc/net/tcp", (size_t)64 << 20, &text, &len, &err), err);
    for (char *rest = text, *line; (line = strsep(&rest, "\n"));) {
        unsigned from = 0, to = 0, state = 0;
        if (sscanf(line, "%*s %*8x:%x %*8x:%x %x", &from, &to, &state) == 3 &&
            from == (unsigned)local && to == (unsigned)remote && state != 6)
            return true;
    }
    return false;
}

void raw_leave(int fd)
{
    int mine = port_at(fd, getsockname), servers = port_at(fd, getpeername);
    int64_t until = clock_mono_ns() + PATIENCE_MS * NS_PER_MS;
    (void)close(fd);
    while (is_open(servers, mine)) {
        ck_assert_msg(clock_mono_ns() < until, "the server keeps a connection whose peer left");
        clock_sleep_ms(5);
    }
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
