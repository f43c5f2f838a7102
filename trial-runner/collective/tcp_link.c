/* Frames between two ranks over a TCP connection.
 *
 * What a connection over loopback costs is calls and segments, not only bytes. So frames that are
 * ready leave in one call (a batch), and one call reads what has arrived of several frames, into a
 * buffer that stays in the cache. A socket that was read empty is read again when epoll has said
 * that there is something: a read in vain takes the socket's lock from the kernel, which puts what
 * arrives there. A frame counts, and its bytes reach their destination, when it is
 * there as a whole and its checksum is right; so no rank passes on what was damaged.
 *
 * Where the connection encrypts (cipher.h), each frame ends with a tag, which takes the place of
 * the checksum of its payload. */
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

#define FRAMES_AT_ONCE 4 /* of a batch; then other links have their turn */
#define ENCRYPTED_MAX (FRAME_PAYLOAD_MAX + CIPHER_TAG_BYTES)
#define FRAME_BYTES_MAX (FRAME_HEAD_BYTES + ENCRYPTED_MAX)
#define HEARTBEAT_NS (NS_PER_S / 5) /* silence after which a heartbeat is sent */
#define UNACKED_MS 5000             /* bytes that the peer's host does not acknowledge so long */

/* Frames on their way into the socket: frame i has the parts 2i (head) and 2i + 1 (payload and
 * tag). A frame without a payload is alone in its batch, and one part: its tag is behind its
 * head. */
struct batch {
    struct frame frames[FRAMES_AT_ONCE];
    uint8_t heads[FRAMES_AT_ONCE][FRAME_HEAD_BYTES + CIPHER_TAG_BYTES];
    struct iovec parts[2 * FRAMES_AT_ONCE]; /* what is not sent of each */
    size_t n_parts, next;                   /* next: the first part that is not sent as a whole */
};

struct tcp_link {
    struct link link; /* first */
    struct batch out;
    size_t from, end;                 /* the bytes of `buffer` that were received and not taken */
    struct frame in;                  /* the frame that begins at `from` */
    bool has_in;                      /* `in` is decoded */
    bool is_plain;                    /* and the frame is decrypted */
    struct cipher *encrypt, *decrypt; /* NULL: the connection does not encrypt */
    uint8_t (*encrypted)[ENCRYPTED_MAX]; /* payloads of the batch, [FRAMES_AT_ONCE]; or NULL */
    int64_t sent_ns;
    uint8_t buffer[FRAMES_AT_ONCE * FRAME_BYTES_MAX];
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

/* --- sending --- */

static bool is_sending(const struct tcp_link *t)
{
    return t->out.next < t->out.n_parts;
}

static void add_part(struct batch *b, const void *bytes, size_t n)
{
    b->parts[b->n_parts++] = (struct iovec){(void *)bytes, n};
}

/* Frame i of the batch, with these bytes, which stay where they are until they have left. */
static as_status add_frame(struct tcp_link *t, size_t i, const uint8_t *payload, struct as_err *err)
{
    struct batch *b = &t->out;
    struct frame *f = &b->frames[i];
    size_t n = f->length;
    f->payload_sum = t->encrypt ? 0 : checksum32(payload, f->length);
    frame_encode(f, b->heads[i]);
    if (t->encrypt) {
        as_status st = cipher_encrypt(t->encrypt, b->heads[i], FRAME_HEAD_BYTES, payload, f->length,
                                      t->encrypted[i], err);
        if (st < 0)
            return st;
        payload = t->encrypted[i];
        n += CIPHER_TAG_BYTES;
    }
    add_part(b, b->heads[i], FRAME_HEAD_BYTES);
    add_part(b, payload, n);
    return AS_OK;
}

static as_status begin_batch(struct tcp_link *t, struct as_err *err)
{
    struct batch *b = &t->out;
    const uint8_t *payload;
    as_status st = AS_OK;
    b->n_parts = b->next = 0;
    for (size_t i = 0; i < FRAMES_AT_ONCE && st == AS_OK; i++) {
        if (!link_next_frame(&t->link, FRAME_PAYLOAD_MAX, &b->frames[i], &payload))
            return AS_OK;
        st = add_frame(t, i, payload, err);
    }
    return st;
}

static as_status begin_control(struct tcp_link *t, frame_kind kind, struct as_err *err)
{
    struct batch *b = &t->out;
    uint8_t *head = b->heads[0];
    b->frames[0] = (struct frame){.kind = kind, .epoch = t->link.epoch, .attempt = t->link.attempt};
    frame_encode(&b->frames[0], head);
    b->n_parts = b->next = 0;
    as_status st = t->encrypt ? cipher_encrypt(t->encrypt, head, FRAME_HEAD_BYTES, NULL, 0,
                                               head + FRAME_HEAD_BYTES, err)
                              : AS_OK;
    if (st == AS_OK)
        add_part(b, head, FRAME_HEAD_BYTES + (t->encrypt ? CIPHER_TAG_BYTES : 0));
    return st;
}

static void count_sent(struct tcp_link *t, size_t sent)
{
    struct batch *b = &t->out;
    while (sent > 0) {
        struct iovec *p = &b->parts[b->next];
        size_t now = sent < p->iov_len ? sent : p->iov_len;
        p->iov_base = (uint8_t *)p->iov_base + now;
        p->iov_len -= now;
        sent -= now;
        if (p->iov_len > 0)
            return;
        if (b->next % 2 == 1)
            link_frame_sent(&t->link, &b->frames[b->next / 2]);
        b->next++;
    }
}

/* Sends of the batch what the socket takes now. */
static as_status write_batch(struct tcp_link *t, bool *moved, struct as_err *err)
{
    struct batch *b = &t->out;
    while (is_sending(t)) {
        struct msghdr m = {.msg_iov = b->parts + b->next, .msg_iovlen = b->n_parts - b->next};
        ssize_t sent = sendmsg(t->link.fd, &m, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent < 0)
            return errno == EAGAIN ? AS_OK : gone(t, errno, err);
        *moved = true;
        count_sent(t, (size_t)sent);
    }
    t->sent_ns = clock_mono_ns();
    return AS_OK;
}

static as_status send_some(struct tcp_link *t, bool *moved, struct as_err *err)
{
    as_status st = is_sending(t) ? AS_OK : begin_batch(t, err);
    return st == AS_OK && is_sending(t) ? write_batch(t, moved, err) : st;
}

/* --- receiving --- */

static size_t received(const struct tcp_link *t)
{
    return t->end - t->from;
}

/* Of the frame at the front. */
static size_t frame_bytes(const struct tcp_link *t)
{
    return FRAME_HEAD_BYTES + t->in.length + (t->decrypt ? CIPHER_TAG_BYTES : 0);
}

/* One read, as far as the buffer goes. AS_E_EXHAUSTED: the socket has no more now. A read that is
 * not filled has emptied it; what comes later epoll reports. */
static as_status read_some(struct tcp_link *t, bool *moved, struct as_err *err)
{
    if (!t->link.readable)
        return AS_E_EXHAUSTED;
    if (t->from > 0) { /* mostly nothing is left: a frame that was cut */
        memmove(t->buffer, t->buffer + t->from, received(t));
        t->end -= t->from;
        t->from = 0;
    }
    ssize_t got;
    size_t most = sizeof t->buffer - t->end;
    do
        got = recv(t->link.fd, t->buffer + t->end, most, MSG_DONTWAIT);
    while (got < 0 && errno == EINTR);
    t->link.readable = got == (ssize_t)most || t->link.closing;
    if (got < 0 && errno == EAGAIN)
        return AS_E_EXHAUSTED;
    if (got <= 0)
        return gone(t, got < 0 ? errno : 0, err);
    *moved = true;
    t->end += (size_t)got;
    return AS_OK;
}

/* The bytes of the frame at the front. Items that are added must lie at multiples of their size:
 * behind a frame of another length they move over their head, which has been read. */
static const uint8_t *place_payload(struct tcp_link *t)
{
    uint8_t *payload = t->buffer + t->from + FRAME_HEAD_BYTES;
    const struct transfer *r = t->link.receives.head;
    size_t off = r->reduce ? (uintptr_t)payload % r->reduce->item_bytes : 0;
    if (off > 0)
        memmove(payload - off, payload, t->in.length);
    return payload - off;
}

static as_status take_payload(struct tcp_link *t, struct as_err *err)
{
    const struct frame *f = &t->in;
    const uint8_t *payload = place_payload(t);
    uint32_t sum = t->decrypt ? f->payload_sum : checksum32(payload, f->length);
    if (sum != f->payload_sum)
        return as_fail(err, AS_E_IO,
                       "rank %d: a frame was damaged on its way (checksum %08x, %08x)",
                       (int)t->link.peer, (unsigned)sum, (unsigned)f->payload_sum);
    link_frame_received(&t->link, f, payload);
    return AS_OK;
}

/* Decrypts the frame at the front. AS_E_EXHAUSTED: it is not there as a whole. */
static as_status decrypt_frame(struct tcp_link *t, struct as_err *err)
{
    uint8_t *head = t->buffer + t->from;
    struct as_err why = {0};
    if (t->is_plain)
        return AS_OK;
    if (received(t) < frame_bytes(t))
        return AS_E_EXHAUSTED;
    if (cipher_decrypt(t->decrypt, head, FRAME_HEAD_BYTES, head + FRAME_HEAD_BYTES, t->in.length,
                       &why) < 0)
        return as_fail(err, AS_E_IO, "rank %d: %s", (int)t->link.peer, why.msg);
    t->is_plain = true;
    return AS_OK;
}

/* Takes the frame at the front of the buffer. AS_E_EXHAUSTED: it is not there as a whole, or waits
 * for its receive. */
static as_status take_frame(struct tcp_link *t, struct as_err *err)
{
    struct transfer *r;
    as_status st;
    if (received(t) < FRAME_HEAD_BYTES)
        return AS_E_EXHAUSTED;
    if (!t->has_in && (st = frame_decode(t->buffer + t->from, &t->in, err)) < 0)
        return st;
    t->has_in = true;
    if (t->decrypt && (st = decrypt_frame(t, err)) < 0)
        return st;
    st = t->in.kind == FRAME_DATA ? link_expect(&t->link, &t->in, &r, err) : AS_OK;
    if (st < 0 && st != AS_E_STALE)
        return st;
    bool dropped = st == AS_E_STALE;
    if (received(t) < frame_bytes(t))
        return AS_E_EXHAUSTED;
    if (t->in.kind == FRAME_GOODBYE)
        t->link.left = true;
    if (dropped)
        t->link.frames_dropped++;
    else if (t->in.kind == FRAME_DATA && (st = take_payload(t, err)) < 0)
        return st;
    t->link.heard_ns = clock_mono_ns();
    t->from += frame_bytes(t);
    t->has_in = t->is_plain = false;
    return AS_OK;
}

/* The frame at the front waits: this rank has posted no receive for it. */
static bool is_held_up(const struct tcp_link *t)
{
    return t->has_in && t->in.kind == FRAME_DATA && !t->link.receives.head;
}

static as_status take_frames(struct tcp_link *t, bool *moved, struct as_err *err)
{
    as_status st;
    while ((st = take_frame(t, err)) == AS_OK)
        *moved = true;
    return st;
}

/* AS_E_EXHAUSTED: there is nothing to receive now. */
static as_status receive_some(struct tcp_link *t, bool *moved, struct as_err *err)
{
    as_status st = take_frames(t, moved, err); /* one may have waited for its receive */
    if (st != AS_E_EXHAUSTED || is_held_up(t))
        return st;
    if ((st = read_some(t, moved, err)) < 0)
        return st;
    st = take_frames(t, moved, err);
    return st == AS_E_EXHAUSTED ? AS_OK : st;
}

/* --- the link's operations --- */

/* A peer that takes no bytes any more may have said goodbye before: what it sent is read to its
 * end, because who has left is not lost. */
static as_status progress(struct link *l, bool *moved, struct as_err *err)
{
    struct tcp_link *t = of(l);
    as_status sent = send_some(t, moved, err), st;
    /* Where all has left, the answer is mostly there already: it is tried without asking epoll. */
    l->readable = l->readable || sent < 0 || (*moved && !l->sends.head);
    do
        st = receive_some(t, moved, sent < 0 ? NULL : err);
    while (sent < 0 && st == AS_OK);
    if (sent < 0)
        return sent;
    return st == AS_E_EXHAUSTED ? AS_OK : st;
}

/* epoll watches the socket from its creation, edge-triggered. */
static void rest(struct link *l)
{
    (void)l;
}

static as_status heartbeat(struct link *l, int64_t now_ns, struct as_err *err)
{
    struct tcp_link *t = of(l);
    bool moved = false;
    if (is_held_up(t)) /* so are the heartbeats behind it */
        l->heard_ns = now_ns;
    if (is_sending(t) || now_ns - t->sent_ns < HEARTBEAT_NS)
        return AS_OK;
    as_status st = begin_control(t, FRAME_HEARTBEAT, err);
    if (st < 0)
        return st;
    st = write_batch(t, &moved, err);
    if (st == AS_OK)
        return AS_OK;
    l->readable = true;
    return progress(l, &moved, err);
}

static void goodbye(struct link *l)
{
    struct tcp_link *t = of(l);
    bool moved = false;
    if (is_sending(t)) /* in the middle of a frame that its receiver will never have whole */
        return;
    as_status st = begin_control(t, FRAME_GOODBYE, NULL);
    if (st == AS_OK)
        st = write_batch(t, &moved, NULL);
    (void)st; /* the connection ends in any case */
}

static void free_memory(struct tcp_link *t)
{
    cipher_free(t->encrypt);
    cipher_free(t->decrypt);
    free(t->encrypted);
    free(t);
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
    free_memory(t);
}

static const struct link_ops ops = {"tcp", true,      progress, rest,
                                    rest,  heartbeat, goodbye,  free_link};

static as_status take_keys(struct tcp_link *t, const struct cipher_keys *keys, struct as_err *err)
{
    t->encrypted = as_calloc(FRAMES_AT_ONCE, sizeof *t->encrypted);
    if (!t->encrypted)
        return as_fail_nomem(err);
    as_status st = cipher_create(keys->send, &t->encrypt, err);
    return st == AS_OK ? cipher_create(keys->receive, &t->decrypt, err) : st;
}

as_status tcp_link_create(int fd, const struct cipher_keys *keys, struct link **ret,
                          struct as_err *err)
{
    int one = 1, unacked_ms = UNACKED_MS;
    struct tcp_link *t = as_calloc(1, sizeof *t);
    as_status st = !t ? as_fail_nomem(err) : keys ? take_keys(t, keys, err) : AS_OK;
    if (st < 0) {
        (void)close(fd);
        if (t)
            free_memory(t);
        return st;
    }
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &unacked_ms, sizeof unacked_ms);
    t->link.ops = &ops;
    t->link.fd = fd;
    t->link.readable = true;
    t->link.process_fd = -1;
    t->link.heard_ns = t->sent_ns = clock_mono_ns();
    *ret = &t->link;
    return AS_OK;
}
