/* Frames between two ranks over a TCP connection.
 *
 * Bytes that are stored go from the socket straight to their destination; bytes that are combined
 * are read into a buffer of one frame first, which stays in the cache. The checksum is verified
 * before a frame counts as received, and so before any rank passes it on. */
#include "trial-runner/collective/link.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/checksum.h"
#include "base/mem.h"

#define FRAMES_AT_ONCE 4
#define HEARTBEAT_NS (NS_PER_S / 5) /* silence after which a heartbeat is sent */
#define UNACKED_MS 5000             /* bytes that the peer's host does not acknowledge so long */

struct outgoing {
    bool busy;
    struct frame frame;
    uint8_t head[FRAME_HEAD_BYTES];
    const uint8_t *payload;
    size_t sent; /* bytes of head and payload */
};

struct incoming {
    struct frame frame;
    size_t have;   /* payload bytes */
    uint8_t *into; /* where they go */
    bool begun;    /* `into` is decided */
    bool dropped;  /* the frame is another epoch's */
};

struct tcp_link {
    struct link link; /* first */
    struct outgoing out;
    struct incoming in; /* the frame whose head is decoded, if it has begun */
    uint8_t next_head[FRAME_HEAD_BYTES];
    size_t next_have;
    int64_t sent_ns;
    uint8_t buffer[FRAME_PAYLOAD_MAX];
};

static struct tcp_link *of(struct link *l)
{
    return (struct tcp_link *)l;
}

static as_status gone(const struct tcp_link *t, int why, struct as_err *err)
{
    return as_fail(err, AS_E_UNAVAILABLE, "rank %d: %s", (int)t->link.peer,
                   why ? strerror(why) : "it closed the connection");
}

static bool begin_frame(struct tcp_link *t)
{
    struct outgoing *o = &t->out;
    if (!link_next_frame(&t->link, FRAME_PAYLOAD_MAX, &o->frame, &o->payload))
        return false;
    o->frame.payload_sum = checksum32(o->payload, o->frame.length);
    frame_encode(&o->frame, o->head);
    o->sent = 0;
    o->busy = true;
    return true;
}

/* AS_E_EXHAUSTED: the socket takes no more now. */
static as_status write_frame(struct tcp_link *t, struct as_err *err)
{
    struct outgoing *o = &t->out;
    size_t total = FRAME_HEAD_BYTES + o->frame.length;
    while (o->sent < total) {
        struct iovec parts[2];
        int n = 0;
        size_t body = o->sent > FRAME_HEAD_BYTES ? o->sent - FRAME_HEAD_BYTES : 0;
        if (o->sent < FRAME_HEAD_BYTES)
            parts[n++] = (struct iovec){o->head + o->sent, FRAME_HEAD_BYTES - o->sent};
        if (o->frame.length > body)
            parts[n++] = (struct iovec){(void *)(o->payload + body), o->frame.length - body};
        struct msghdr m = {.msg_iov = parts, .msg_iovlen = (size_t)n};
        ssize_t sent = sendmsg(t->link.fd, &m, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent < 0)
            return errno == EAGAIN ? AS_E_EXHAUSTED : gone(t, errno, err);
        o->sent += (size_t)sent;
    }
    o->busy = false;
    t->sent_ns = clock_mono_ns();
    return AS_OK;
}

static as_status send_one(struct tcp_link *t, bool *moved, struct as_err *err)
{
    struct outgoing *o = &t->out;
    if (!o->busy && !begin_frame(t))
        return AS_OK;
    size_t before = o->sent;
    as_status st = write_frame(t, err);
    if (o->sent > before)
        *moved = true;
    if (st == AS_OK && o->frame.kind == FRAME_DATA)
        link_frame_sent(&t->link, &o->frame);
    return st == AS_E_EXHAUSTED ? AS_OK : st;
}

/* One read: of the payload what is missing, and behind it the head of the next frame, which has
 * mostly arrived too. `payload`, `head`: bytes that are read to; either may be 0.
 * AS_E_EXHAUSTED: the socket has no more now. */
static as_status read_some(struct tcp_link *t, size_t payload, size_t head, bool *moved,
                           struct as_err *err)
{
    struct incoming *in = &t->in;
    struct iovec parts[2];
    int n = 0;
    if (payload > 0)
        parts[n++] = (struct iovec){in->into + in->have, payload};
    if (head > 0)
        parts[n++] = (struct iovec){t->next_head + t->next_have, head};
    struct msghdr m = {.msg_iov = parts, .msg_iovlen = (size_t)n};
    ssize_t got;
    do
        got = recvmsg(t->link.fd, &m, MSG_DONTWAIT);
    while (got < 0 && errno == EINTR);
    if (got < 0 && errno == EAGAIN)
        return AS_E_EXHAUSTED;
    if (got <= 0)
        return gone(t, got < 0 ? errno : 0, err);
    *moved = true;
    size_t of_payload = (size_t)got < payload ? (size_t)got : payload;
    in->have += of_payload;
    t->next_have += (size_t)got - of_payload;
    return AS_OK;
}

/* Decides where the payload of the frame that has begun is read to. */
static as_status place_payload(struct tcp_link *t, struct as_err *err)
{
    struct incoming *in = &t->in;
    struct transfer *r = NULL;
    as_status st = AS_OK;
    if (in->frame.kind == FRAME_DATA)
        st = link_expect(&t->link, &in->frame, &r, err);
    if (st < 0 && st != AS_E_STALE)
        return st;
    in->dropped = st == AS_E_STALE;
    in->into = !r || r->reduce ? t->buffer : r->to + r->done;
    in->begun = true;
    return AS_OK;
}

static as_status end_frame(struct tcp_link *t, struct as_err *err)
{
    struct incoming *in = &t->in;
    struct frame f = in->frame;
    bool dropped = in->dropped;
    uint8_t *payload = in->into;
    *in = (struct incoming){0};
    t->link.heard_ns = clock_mono_ns();
    if (f.kind == FRAME_GOODBYE && !dropped)
        t->link.left = true;
    if (f.kind != FRAME_DATA)
        return AS_OK;
    if (dropped) {
        t->link.frames_dropped++;
        return AS_OK;
    }
    uint32_t sum = checksum32(payload, f.length);
    if (sum != f.payload_sum)
        return as_fail(err, AS_E_IO,
                       "rank %d: a frame was damaged on its way (checksum %08x, %08x)",
                       (int)t->link.peer, (unsigned)sum, (unsigned)f.payload_sum);
    link_frame_received(&t->link, &f, payload);
    return AS_OK;
}

static as_status begin_incoming(struct tcp_link *t, bool *moved, struct as_err *err)
{
    as_status st;
    while (t->next_have < FRAME_HEAD_BYTES)
        if ((st = read_some(t, 0, FRAME_HEAD_BYTES - t->next_have, moved, err)) < 0)
            return st;
    if ((st = frame_decode(t->next_head, &t->in.frame, err)) < 0 ||
        (st = place_payload(t, err)) < 0)
        return st;
    t->next_have = 0;
    return AS_OK;
}

static as_status receive_one(struct tcp_link *t, bool *moved, struct as_err *err)
{
    struct incoming *in = &t->in;
    as_status st;
    if (!in->begun && (st = begin_incoming(t, moved, err)) < 0)
        return st;
    while (in->have < in->frame.length)
        if ((st = read_some(t, in->frame.length - in->have, FRAME_HEAD_BYTES, moved, err)) < 0)
            return st;
    return end_frame(t, err);
}

static as_status send_some(struct tcp_link *t, bool *moved, struct as_err *err)
{
    as_status st = AS_OK;
    for (int i = 0; i < FRAMES_AT_ONCE && st == AS_OK; i++) {
        st = send_one(t, moved, err);
        if (t->out.busy)
            break;
    }
    return st;
}

/* A peer that takes no bytes any more may have said goodbye before: what it sent is read to its
 * end, because who has left is not lost. */
static as_status progress(struct link *l, bool *moved, struct as_err *err)
{
    struct tcp_link *t = of(l);
    as_status sent = send_some(t, moved, err);
    for (int i = 0; i < FRAMES_AT_ONCE || sent < 0; i++) {
        as_status st = receive_one(t, moved, sent < 0 ? NULL : err);
        if (st == AS_E_EXHAUSTED || (st < 0 && sent < 0))
            break;
        if (st < 0)
            return st;
    }
    return sent;
}

/* epoll watches the socket from its creation, edge-triggered. */
static void rest(struct link *l)
{
    (void)l;
}

static void begin_control(struct tcp_link *t, frame_kind kind)
{
    t->out = (struct outgoing){.busy = true};
    t->out.frame = (struct frame){.kind = kind, .epoch = t->link.epoch, .attempt = t->link.attempt};
    frame_encode(&t->out.frame, t->out.head);
}

static as_status heartbeat(struct link *l, int64_t now_ns, struct as_err *err)
{
    struct tcp_link *t = of(l);
    bool moved = false;
    /* A frame that waits for its receive holds up the heartbeats behind it. */
    if (t->next_have == FRAME_HEAD_BYTES && !t->in.begun)
        l->heard_ns = now_ns;
    if (t->out.busy || now_ns - t->sent_ns < HEARTBEAT_NS)
        return AS_OK;
    begin_control(t, FRAME_HEARTBEAT);
    as_status st = send_one(t, &moved, err);
    return st < 0 ? progress(l, &moved, err) : st;
}

static void goodbye(struct link *l)
{
    struct tcp_link *t = of(l);
    bool moved = false;
    if (t->out.busy) /* in the middle of a frame that its receiver will never have whole */
        return;
    begin_control(t, FRAME_GOODBYE);
    as_status st = send_one(t, &moved, NULL);
    (void)st; /* the connection ends in any case */
}

/* A close with unread bytes would reset the connection, and the peer would lose what is still on
 * its way to it. */
static void free_link(struct link *l)
{
    struct tcp_link *t = of(l);
    (void)shutdown(l->fd, SHUT_WR);
    while (recv(l->fd, t->buffer, sizeof t->buffer, MSG_DONTWAIT) > 0)
        ;
    (void)close(l->fd);
    free(t);
}

static const struct link_ops ops = {"tcp", progress, rest, rest, heartbeat, goodbye, free_link};

as_status tcp_link_create(int fd, struct link **ret, struct as_err *err)
{
    int one = 1, unacked_ms = UNACKED_MS;
    struct tcp_link *t = as_calloc(1, sizeof *t);
    if (!t) {
        (void)close(fd);
        return as_fail_nomem(err);
    }
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &unacked_ms, sizeof unacked_ms);
    t->link.ops = &ops;
    t->link.fd = fd;
    t->link.process_fd = -1;
    t->link.heard_ns = t->sent_ns = clock_mono_ns();
    *ret = &t->link;
    return AS_OK;
}
