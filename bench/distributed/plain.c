#include "bench/distributed/plain.h"

#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#include "trial-runner/collective/operation.h"
#include "trial-runner/collective/reduction.h"

size_t plain_bytes(const struct plain *p)
{
    return 2 * (p->items * sizeof(float) / (size_t)p->n) * (size_t)(p->n - 1);
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* What the sockets can do now; a descriptor of -1 is not asked. */
static bool wait_for(int send_fd, int receive_fd, struct pollfd p[2])
{
    p[0] = (struct pollfd){.fd = send_fd, .events = POLLOUT};
    p[1] = (struct pollfd){.fd = receive_fd, .events = POLLIN};
    return poll(p, 2, -1) >= 0;
}

/* Bytes that a call moved: 0 if the socket was not ready after all. */
static size_t moved(ssize_t n)
{
    return n > 0 ? (size_t)n : 0;
}

/* --- bytes alone --- */

/* The next piece of `span` bytes that are passed again and again. */
static size_t piece(size_t span, size_t at, size_t all)
{
    return least(least(all - at, PLAIN_PIECE_BYTES), span - at % span);
}

bool plain_pass(const struct plain *p, bool cached)
{
    const char *from = cached ? p->buffer : (const char *)p->from;
    char *to = cached ? p->buffer : (char *)p->to;
    size_t span = cached ? PLAIN_PIECE_BYTES : p->items * sizeof(float);
    size_t all = plain_bytes(p), sent = 0, received = 0;
    while (sent < all || received < all) {
        struct pollfd ready[2];
        if (!wait_for(sent < all ? p->next : -1, received < all ? p->before : -1, ready))
            return false;
        if (ready[0].revents)
            sent += moved(send(p->next, from + sent % span, piece(span, sent, all),
                               MSG_DONTWAIT | MSG_NOSIGNAL));
        if (ready[1].revents)
            received += moved(
                recv(p->before, to + received % span, piece(span, received, all), MSG_DONTWAIT));
    }
    return true;
}

/* --- the all-reduce --- */

/* A rank's stream: in a ring, slice after slice backwards from its own, 2 (P-1) of them; what it
 * sends in a step is what it received and added in the step before. Exchanged whole, one slice. */
struct stream {
    const struct plain *p;
    size_t slice, all; /* bytes; all ranks' slices are equally long, and a multiple of a float */
    size_t summed;     /* so many bytes of what arrives are added, the rest is stored */
    size_t sent, received, kept; /* kept: bytes in the buffer that are not added yet */
    bool whole;
};

/* Where byte `at` of the stream that leaves (or, `arrives`) lies in the vectors. */
static size_t place(const struct stream *s, size_t at, bool arrives)
{
    size_t n = (size_t)s->p->n, step = at / s->slice + (arrives ? 1 : 0);
    if (s->whole)
        return at;
    return ((size_t)s->p->rank + 2 * n - step) % n * s->slice + at % s->slice;
}

static bool send_piece(struct stream *s, size_t sendable)
{
    size_t to_end = s->slice - s->sent % s->slice;
    size_t most = least(least(sendable - s->sent, to_end), PLAIN_PIECE_BYTES);
    const char *from = (const char *)(s->sent < s->slice ? s->p->from : s->p->to);
    ssize_t n =
        send(s->p->next, from + place(s, s->sent, false), most, MSG_DONTWAIT | MSG_NOSIGNAL);
    s->sent += moved(n);
    return n != 0;
}

/* Adds the whole items of the buffer; a cut one stays for the next call. */
static void add_buffer(struct stream *s)
{
    size_t whole = s->kept - s->kept % sizeof(float), at = place(s, s->received, true);
    reduce_f32_sum.combine((char *)s->p->to + at, (const char *)s->p->from + at, s->p->buffer,
                           whole / sizeof(float));
    s->received += whole;
    s->kept -= whole;
    memcpy(s->p->buffer, s->p->buffer + whole, s->kept);
}

static bool receive_piece(struct stream *s)
{
    size_t to_end = s->slice - s->received % s->slice;
    bool adds = s->received < s->summed;
    char *to = adds ? s->p->buffer + s->kept : (char *)s->p->to + place(s, s->received, true);
    size_t most = least(to_end, PLAIN_PIECE_BYTES) - (adds ? s->kept : 0);
    ssize_t n = recv(s->p->before, to, most, MSG_DONTWAIT);
    if (!adds)
        s->received += moved(n);
    else if ((s->kept += moved(n)) >= sizeof(float))
        add_buffer(s);
    return n != 0;
}

bool plain_allreduce(const struct plain *p, bool whole)
{
    size_t slice = p->items / (whole ? 1 : (size_t)p->n) * sizeof(float);
    size_t steps = whole ? 1 : 2 * ((size_t)p->n - 1);
    struct stream s = {.p = p,
                       .slice = slice,
                       .all = steps * slice,
                       .summed = whole ? slice : steps / 2 * slice,
                       .whole = whole};
    while (s.sent < s.all || s.received < s.all) {
        size_t sendable = least(s.all, s.slice + s.received);
        struct pollfd ready[2];
        if (!wait_for(s.sent < sendable ? p->next : -1, s.received < s.all ? p->before : -1, ready))
            return false;
        if (ready[0].revents && !send_piece(&s, sendable))
            return false;
        if (ready[1].revents && !receive_piece(&s))
            return false;
    }
    return true;
}
