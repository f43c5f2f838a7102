/* A guard for each connection, found by its descriptor. Only the connection's I/O thread uses a
 * guard, and it opens and closes it: libmicrohttpd reports the start and the end of a connection in
 * the thread that reads it. The table of pointers is atomic, because other threads call recv() for
 * other descriptors.
 *
 * A refused message that followed another one in the same bytes must wait for the answer to that
 * one (http_guard_answered); any other is refused at once, because nothing is being sent then. */
#include "api/http/http_recv.h"

#include <errno.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/mem.h"

#define GUARDS_MAX 65536
/* Bytes of a refused connection that are still read. */
#define DROP_MAX (8 * 1024 * 1024)

struct http_guard {
    struct http_framing framing;
    struct http_guard_hooks hooks;
    int fd;
    struct http_tls_connection *tls; /* NULL: plain HTTP */
    bool has_passed, is_waiting, is_refused;
    size_t dropped;
};

static struct http_guard *_Atomic guards[GUARDS_MAX]; /* by descriptor */

static struct http_guard *guard_of(int fd)
{
    return fd >= 0 && fd < GUARDS_MAX ? atomic_load_explicit(&guards[fd], memory_order_acquire)
                                      : NULL;
}

static void guard_free(struct http_guard *g)
{
    if (!g)
        return;
    http_tls_close(g->tls);
    free(g);
}

bool http_guard_open(int fd, const struct http_guard_hooks *hooks, struct http_tls *tls)
{
    struct http_guard *g = fd >= 0 && fd < GUARDS_MAX ? as_calloc(1, sizeof *g) : NULL;
    if (!g)
        return false;
    g->hooks = *hooks;
    g->fd = fd;
    if (tls && !(g->tls = http_tls_open(tls, fd))) {
        free(g);
        return false;
    }
    guard_free(atomic_exchange(&guards[fd], g));
    return true;
}

void http_guard_close(int fd)
{
    if (fd >= 0 && fd < GUARDS_MAX)
        guard_free(atomic_exchange(&guards[fd], NULL));
}

static ssize_t read_bytes(struct http_guard *g, void *buf, size_t len, int flags)
{
    return g->tls ? http_tls_recv(g->tls, buf, len, flags)
                  : recvfrom(g->fd, buf, len, flags, NULL, NULL);
}

bool http_guard_works(int fd)
{
    const struct http_guard *g = guard_of(fd);
    return g && g->has_passed;
}

static void refuse_message(struct http_guard *g)
{
    AS_AUTO(str_done) struct str answer = {0};
    g->is_waiting = false;
    g->is_refused = true;
    g->hooks.on_refused(g->hooks.ctx, g->fd, g->framing.problem, g->framing.refusal, &answer);
    if (answer.len && !answer.failed)
        (void)send(g->fd, answer.s, answer.len, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (g->tls)
        http_tls_end(g->tls);
    else
        (void)shutdown(g->fd, SHUT_WR);
}

void http_guard_answered(int fd)
{
    struct http_guard *g = guard_of(fd);
    if (!g)
        return;
    if (g->is_waiting)
        refuse_message(g);
    else if (g->framing.part != HTTP_FRAMING_START)
        g->hooks.on_message(g->hooks.ctx, fd);
}

/* Read and drop what a refused peer sends. Its end of data, or too much of it, ends the
 * connection. */
static ssize_t drop_bytes(struct http_guard *g, void *buf, size_t len, int flags)
{
    while (g->dropped < DROP_MAX) {
        ssize_t n = read_bytes(g, buf, len, flags);
        if (n <= 0)
            return n;
        g->dropped += (size_t)n;
    }
    return 0;
}

static ssize_t guarded_recv(struct http_guard *g, void *buf, size_t len, int flags)
{
    if (g->is_refused || g->is_waiting)
        return drop_bytes(g, buf, len, flags);
    ssize_t n = read_bytes(g, buf, len, flags);
    if (n <= 0 || (flags & MSG_PEEK))
        return n;
    bool was_between = g->framing.part == HTTP_FRAMING_START;
    g->has_passed = true;
    if (was_between)
        g->hooks.on_message(g->hooks.ctx, g->fd);
    size_t good = http_framing_follow(&g->framing, buf, (size_t)n);
    if (!g->framing.problem)
        return n;
    g->is_waiting = good > 0;
    if (good > 0)
        return (ssize_t)good;
    refuse_message(g);
    return drop_bytes(g, buf, len, flags);
}

/* The name that the linker sees is recv, or send: libc's header may define an inline function of
 * that name. */
ssize_t http_recv(int fd, void *buf, size_t len, int flags) __asm__("recv");

__attribute__((visibility("default"))) ssize_t http_recv(int fd, void *buf, size_t len, int flags)
{
    struct http_guard *g = guard_of(fd);
    return g ? guarded_recv(g, buf, len, flags) : recvfrom(fd, buf, len, flags, NULL, NULL);
}

ssize_t http_send(int fd, const void *buf, size_t len, int flags) __asm__("send");
ssize_t http_sendmsg(int fd, const struct msghdr *msg, int flags) __asm__("sendmsg");

__attribute__((visibility("default"))) ssize_t http_send(int fd, const void *buf, size_t len,
                                                         int flags)
{
    struct http_guard *g = guard_of(fd);
    const struct iovec v = {(void *)buf, len};
    return g && g->tls ? http_tls_send(g->tls, &v, 1) : sendto(fd, buf, len, flags, NULL, 0);
}

__attribute__((visibility("default"))) ssize_t http_sendmsg(int fd, const struct msghdr *msg,
                                                            int flags)
{
    struct http_guard *g = guard_of(fd);
    return g && g->tls ? http_tls_send(g->tls, msg->msg_iov, msg->msg_iovlen)
                       : syscall(SYS_sendmsg, fd, msg, flags);
}
