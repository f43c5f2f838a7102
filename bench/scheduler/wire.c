#include "bench/scheduler/wire.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define IN_MIN 16384

void wire_give_up(const char *what, const char *detail)
{
    (void)fprintf(stderr, "scheduler: %s: %s\n", what, detail);
    exit(EXIT_FAILURE);
}

static void fail(const char *what)
{
    char text[80];
    (void)snprintf(text, sizeof text, "%m");
    wire_give_up(what, text);
}

static bool connect_to(struct wire *w, int port)
{
    const struct sockaddr_in sa = {.sin_family = AF_INET,
                                   .sin_port = htons((uint16_t)port),
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int one = 1;
    w->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (w->fd < 0)
        fail("socket");
    if (connect(w->fd, (const struct sockaddr *)&sa, sizeof sa) != 0)
        return false;
    (void)setsockopt(w->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    return true;
}

void wire_open(struct wire *w, int port)
{
    *w = (struct wire){.cap = IN_MIN};
    w->in = malloc(w->cap);
    if (!w->in)
        wire_give_up("connection", "out of memory");
    if (!connect_to(w, port))
        fail("connect");
}

bool wire_reopen(struct wire *w, int port)
{
    (void)close(w->fd);
    w->have = 0;
    w->has_ended = !connect_to(w, port);
    return !w->has_ended;
}

void wire_close(struct wire *w)
{
    (void)close(w->fd);
    free(w->in);
    str_done(&w->out);
    *w = (struct wire){.fd = -1};
}

void wire_repeat(struct wire *w)
{
    w->have = 0;
    for (size_t sent = 0; sent < w->out.len;) {
        ssize_t n = send(w->fd, w->out.s + sent, w->out.len - sent, MSG_NOSIGNAL);
        if (n <= 0 && w->may_end) {
            w->has_ended = true;
            return;
        }
        if (n <= 0)
            fail("send");
        sent += (size_t)n;
    }
}

void wire_send(struct wire *w, const char *method, const char *path, const char *fields,
               const struct str *body)
{
    str_clear(&w->out);
    str_printf(&w->out, "%s %s HTTP/1.1\r\nHost: 127.0.0.1\r\n%s", method, path, fields);
    if (body)
        str_printf(&w->out, "Content-Type: application/%sjson\r\nContent-Length: %zu\r\n",
                   strcmp(method, "PATCH") == 0 ? "merge-patch+" : "", body->len);
    str_puts(&w->out, "\r\n");
    if (body)
        str_add(&w->out, body->s, body->len);
    if (w->out.failed)
        wire_give_up("request", "out of memory");
    wire_repeat(w);
}

/* Is the whole answer there? Makes room for it as soon as its length is known. */
static bool is_whole(struct wire *w, struct answer *ret)
{
    static const char field[] = "\r\nContent-Length: ";
    char *end = memmem(w->in, w->have, "\r\n\r\n", 4);
    if (!end)
        return false;
    size_t head = (size_t)(end + 4 - w->in), len = 0;
    const char *length = memmem(w->in, head, field, sizeof field - 1);
    if (length)
        len = strtoul(length + sizeof field - 1, NULL, 10);
    if (head + len + 1 > w->cap) {
        w->cap = 2 * (head + len + 1);
        w->in = realloc(w->in, w->cap);
        if (!w->in)
            wire_give_up("answer", "out of memory");
    }
    if (w->have < head + len)
        return false;
    w->in[w->have] = '\0';
    *ret = (struct answer){(int)strtol(w->in + sizeof "HTTP/1.1", NULL, 10), w->in + head, len};
    return true;
}

bool wire_receive(struct wire *w, struct answer *ret)
{
    if (w->have + 1 >= w->cap)
        wire_give_up("answer", "its head is too long");
    ssize_t n = recv(w->fd, w->in + w->have, w->cap - w->have - 1, 0);
    if (n <= 0 && w->may_end) {
        w->has_ended = true;
        return false;
    }
    if (n == 0)
        wire_give_up("recv", "the server closed the connection");
    if (n < 0)
        fail("recv");
    w->have += (size_t)n;
    return is_whole(w, ret);
}

struct answer wire_call(struct wire *w, const char *method, const char *path, const char *fields,
                        const struct str *body)
{
    struct answer a;
    wire_send(w, method, path, fields, body);
    while (!wire_receive(w, &a))
        ;
    return a;
}
