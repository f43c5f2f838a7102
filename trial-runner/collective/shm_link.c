/* Frames between two ranks of one host, through the memory that they share.
 *
 * A queue has one sender and one receiver, so two counters are enough: the sender publishes slots,
 * the receiver consumes them. The order of the stores and loads that decide whether to ring the
 * peer's bell is sequentially consistent (Dekker's argument): the sleeper sets its flag and then
 * looks at the counters, the other moves a counter and then looks at the flag; one of them sees the
 * other. Nothing can damage the bytes on their way, so no checksum is made of them. */
#include "trial-runner/collective/link.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"

#define FRAMES_AT_ONCE 4 /* then other links have their turn */

struct shm_link {
    struct link link; /* first */
    struct shm_segment *segment;
    struct shm_side *own, *peer;
    struct shm_queue *out, *in;
    uint64_t published, consumed; /* this side's own counters; memory's copies are for the peer */
    int peer_bell;
};

static struct shm_link *of(struct link *l)
{
    return (struct shm_link *)l;
}

static void ring_if_asleep(struct shm_link *s)
{
    atomic_thread_fence(memory_order_seq_cst);
    if (atomic_load_explicit(&s->peer->sleeping, memory_order_relaxed) &&
        atomic_exchange(&s->peer->sleeping, 0)) {
        uint64_t one = 1;
        /* A full counter means that the bell is ringing already. */
        ssize_t n = write(s->peer_bell, &one, sizeof one);
        (void)n;
    }
}

static bool send_one(struct shm_link *s)
{
    struct frame f;
    const uint8_t *payload;
    uint64_t freed = atomic_load_explicit(&s->out->consumed, memory_order_acquire);
    if (s->published - freed >= SHM_SLOTS ||
        !link_next_frame(&s->link, SHM_SLOT_BYTES, &f, &payload))
        return false;
    struct shm_slot *slot = &s->out->slots[s->published % SHM_SLOTS];
    slot->frame = f;
    memcpy(slot->payload, payload, f.length);
    atomic_store_explicit(&s->out->published, ++s->published, memory_order_release);
    ring_if_asleep(s);
    link_frame_sent(&s->link, &f);
    return true;
}

static void consume(struct shm_link *s)
{
    atomic_store_explicit(&s->in->consumed, ++s->consumed, memory_order_release);
    ring_if_asleep(s);
}

static as_status receive_one(struct shm_link *s, bool *moved, struct as_err *err)
{
    struct transfer *t;
    uint64_t there = atomic_load_explicit(&s->in->published, memory_order_acquire);
    if (there == s->consumed)
        return AS_OK;
    const struct shm_slot *slot = &s->in->slots[s->consumed % SHM_SLOTS];
    struct frame f = slot->frame; /* a copy: the peer can change the original at any time */
    if (there - s->consumed > SHM_SLOTS || f.length > SHM_SLOT_BYTES)
        return as_fail(err, AS_E_INVAL, "rank %d has damaged the shared memory", (int)s->link.peer);
    as_status st = link_expect(&s->link, &f, &t, err);
    if (st == AS_E_EXHAUSTED)
        return AS_OK;
    if (st == AS_E_STALE)
        s->link.frames_dropped++;
    else if (st < 0)
        return st;
    else
        link_frame_received(&s->link, &f, slot->payload);
    consume(s);
    *moved = true;
    return AS_OK;
}

static as_status progress(struct link *l, bool *moved, struct as_err *err)
{
    struct shm_link *s = of(l);
    if (atomic_load_explicit(&s->peer->left, memory_order_acquire))
        l->left = true;
    for (int i = 0; i < FRAMES_AT_ONCE; i++) {
        bool now = send_one(s);
        as_status st = receive_one(s, &now, err);
        if (st < 0)
            return st;
        if (!now)
            break;
        *moved = true;
    }
    return AS_OK;
}

static void rest(struct link *l)
{
    atomic_store(&of(l)->own->sleeping, 1);
    atomic_thread_fence(memory_order_seq_cst);
}

static void wake(struct link *l)
{
    atomic_store_explicit(&of(l)->own->sleeping, 0, memory_order_relaxed);
}

static as_status heartbeat(struct link *l, int64_t now_ns, struct as_err *err)
{
    struct shm_link *s = of(l);
    (void)err;
    atomic_store_explicit(&s->own->alive_ns, now_ns, memory_order_relaxed);
    int64_t peers = atomic_load_explicit(&s->peer->alive_ns, memory_order_relaxed);
    if (peers > l->heard_ns && peers <= now_ns)
        l->heard_ns = peers;
    return AS_OK;
}

static void goodbye(struct link *l)
{
    struct shm_link *s = of(l);
    atomic_store(&s->own->left, 1);
    ring_if_asleep(s);
}

static void free_link(struct link *l)
{
    struct shm_link *s = of(l);
    shm_segment_unmap(s->segment);
    if (s->peer_bell >= 0)
        (void)close(s->peer_bell);
    if (l->process_fd >= 0)
        (void)close(l->process_fd);
    (void)close(l->fd);
    free(s);
}

static const struct link_ops ops = {"shm", false,     progress, rest,
                                    wake,  heartbeat, goodbye,  free_link};

as_status shm_link_create(int fd, int process_fd, struct shm_segment *segment, bool dialled,
                          int peer_bell, struct link **ret, struct as_err *err)
{
    struct shm_link *s = as_calloc(1, sizeof *s);
    if (!s) {
        shm_segment_unmap(segment);
        (void)close(fd);
        if (process_fd >= 0)
            (void)close(process_fd);
        (void)close(peer_bell);
        return as_fail_nomem(err);
    }
    s->link.ops = &ops;
    s->link.fd = fd;
    s->link.process_fd = process_fd;
    s->link.heard_ns = clock_mono_ns();
    s->segment = segment;
    s->peer_bell = peer_bell;
    s->own = &segment->sides[dialled ? 0 : 1];
    s->peer = &segment->sides[dialled ? 1 : 0];
    s->out = &segment->queues[dialled ? 0 : 1];
    s->in = &segment->queues[dialled ? 1 : 0];
    *ret = &s->link;
    return AS_OK;
}
