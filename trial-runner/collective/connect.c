/* Every rank dials the ranks below it and accepts those above it, all at the same time, in one
 * poll loop. A connection that is not yet proven is a candidate. A candidate that fails is closed
 * without harm to the others: it may be a stranger, or a rank of another epoch. A dialler tries
 * again until the time is over, because its peer may still be in the epoch before. Once it has sent
 * its proof it waits: the acceptor may have made its link, and a slow one answers or closes.
 *
 * Peers that are connected already may have begun an operation with this rank. They are shown that
 * it lives while it waits for the others; else they would take it for lost when one peer is late.
 *
 *   dialler                                  acceptor
 *   hello                            ->
 *                                    <-      challenge (nonce, proof)
 *   proof (+ segment, bell)          ->
 *                                    <-      one byte (+ bell)
 *
 * What stands in brackets is passed on Unix sockets only (SCM_RIGHTS, unix(7)). */
#include "trial-runner/collective/connect.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "trial-runner/collective/admission.h"
#include "trial-runner/collective/handshake.h"
#include "trial-runner/collective/socket_address.h"

#define RETRY_NS (20 * NS_PER_MS)
#define LIFE_NS (100 * NS_PER_MS)
#define STRANGERS_MAX 64 /* candidates beyond the peers that are missing */
#define PASSED_MAX 2

enum phase { TO_DIAL, CONNECTING, AWAIT_CHALLENGE, AWAIT_ANSWER, AWAIT_HELLO, AWAIT_PROOF };

struct candidate {
    enum phase phase;
    int32_t peer; /* -1 until the hello says it */
    bool local;
    int fd;
    int64_t due_ns;   /* TO_DIAL: when to dial; else when to give up */
    int64_t since_ns; /* accepted: when it came, and from where */
    uint64_t origin;
    uint8_t hello[HELLO_BYTES], challenge[CHALLENGE_BYTES], in[HELLO_BYTES];
    size_t have;
    int passed[PASSED_MAX]; /* descriptors received: segment and bell, or bell */
    int n_passed;
    struct shm_segment *segment;
};

struct joining {
    const struct listener *listener;
    const struct world *world;
    const struct connect_opts *opts;
    struct link **links;
    struct candidate *c;
    size_t n, max;
    struct admission_entry *entries; /* of all candidates and ranks */
    struct pollfd *polled;
    int64_t beaten_ns; /* when this rank last showed life */
};

static void clear(struct candidate *c)
{
    if (c->fd >= 0)
        (void)close(c->fd);
    for (int i = 0; i < c->n_passed; i++)
        (void)close(c->passed[i]);
    shm_segment_unmap(c->segment);
    c->fd = -1;
    c->n_passed = 0;
    c->segment = NULL;
    c->have = 0;
}

static void dial_again(struct candidate *c, int64_t now_ns)
{
    clear(c);
    c->phase = TO_DIAL;
    c->due_ns = now_ns + RETRY_NS;
}

static struct candidate *add(struct joining *j)
{
    if (j->n == j->max)
        return NULL;
    struct candidate *c = &j->c[j->n++];
    *c = (struct candidate){.fd = -1, .peer = -1};
    return c;
}

static void drop(struct joining *j, size_t i)
{
    clear(&j->c[i]);
    j->c[i] = j->c[--j->n];
}

/* --- sending and receiving with descriptors --- */

union rights {
    struct cmsghdr align;
    char bytes[CMSG_SPACE(PASSED_MAX * sizeof(int))];
};

static bool send_with(int fd, const void *bytes, size_t n, const int *pass, int n_pass)
{
    union rights control;
    struct iovec part = {(void *)bytes, n};
    struct msghdr m = {.msg_iov = &part, .msg_iovlen = 1};
    if (n_pass > 0) {
        memset(&control, 0, sizeof control);
        m.msg_control = control.bytes;
        m.msg_controllen = CMSG_SPACE((size_t)n_pass * sizeof(int));
        struct cmsghdr *h = CMSG_FIRSTHDR(&m);
        h->cmsg_level = SOL_SOCKET;
        h->cmsg_type = SCM_RIGHTS;
        h->cmsg_len = CMSG_LEN((size_t)n_pass * sizeof(int));
        memcpy(CMSG_DATA(h), pass, (size_t)n_pass * sizeof(int));
    }
    /* The few bytes of a handshake always fit the buffer of a new connection. */
    return sendmsg(fd, &m, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)n;
}

static void keep_passed(struct candidate *c, struct msghdr *m)
{
    for (struct cmsghdr *h = CMSG_FIRSTHDR(m); h; h = CMSG_NXTHDR(m, h)) {
        if (h->cmsg_level != SOL_SOCKET || h->cmsg_type != SCM_RIGHTS)
            continue;
        size_t n = (h->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t i = 0; i < n; i++) {
            int fd;
            memcpy(&fd, CMSG_DATA(h) + i * sizeof fd, sizeof fd);
            if (c->n_passed < PASSED_MAX)
                c->passed[c->n_passed++] = fd;
            else
                (void)close(fd);
        }
    }
}

/* 1: `want` bytes are there; 0: not yet; -1: the connection is of no use. */
static int receive(struct candidate *c, size_t want)
{
    while (c->have < want) {
        union rights control;
        struct iovec part = {c->in + c->have, want - c->have};
        struct msghdr m = {.msg_iov = &part,
                           .msg_iovlen = 1,
                           .msg_control = control.bytes,
                           .msg_controllen = sizeof control.bytes};
        ssize_t n = recvmsg(c->fd, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            return 0;
        if (n <= 0)
            return -1;
        keep_passed(c, &m);
        c->have += (size_t)n;
    }
    c->have = 0;
    return 1;
}

/* --- from a proven candidate to a link --- */

static int watch_process(struct shm_segment *segment, bool dialled)
{
    int32_t pid = atomic_load(&segment->sides[dialled ? 1 : 0].pid);
    return pid > 0 ? (int)syscall(SYS_pidfd_open, pid, 0) : -1;
}

/* Takes the descriptor. */
static as_status make_tcp_link(const struct joining *j, const struct candidate *c, int fd,
                               bool dialled, struct link **ret, struct as_err *err)
{
    struct cipher_keys keys;
    if (!j->world->encrypt)
        return tcp_link_create(fd, NULL, ret, err);
    as_status st = handshake_keys(j->world, c->hello, c->challenge, dialled, &keys, err);
    if (st == AS_OK)
        st = tcp_link_create(fd, &keys, ret, err);
    else
        (void)close(fd);
    OPENSSL_cleanse(&keys, sizeof keys);
    return st;
}

/* Takes everything that the candidate owns. */
static as_status make_link(struct joining *j, struct candidate *c, bool dialled, struct as_err *err)
{
    struct link *l = NULL;
    as_status st;
    int fd = c->fd;
    c->fd = -1;
    if (c->local) {
        int bell = c->passed[--c->n_passed];
        int process = watch_process(c->segment, dialled);
        st = shm_link_create(fd, process, as_steal(c->segment), dialled, bell, &l, err);
    } else {
        st = make_tcp_link(j, c, fd, dialled, &l, err);
    }
    clear(c);
    if (st < 0)
        return st;
    l->peer = c->peer;
    l->attempt = j->world->attempt;
    l->epoch = j->world->epoch;
    struct link *before = j->links[c->peer]; /* the dialler has given it up and dialled again */
    if (before)
        before->ops->free(before);
    j->links[c->peer] = l;
    return AS_OK;
}

/* --- the dialler --- */

static bool start_dial(struct joining *j, struct candidate *c, int64_t now_ns)
{
    struct sockaddr_storage at;
    socklen_t len = socket_address(&j->world->peers[c->peer], c->local, &at);
    c->fd = socket(at.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    c->phase = CONNECTING;
    c->due_ns = now_ns + j->opts->prove_ns;
    return c->fd >= 0 && len > 0 &&
           (connect(c->fd, (struct sockaddr *)&at, len) == 0 || errno == EINPROGRESS);
}

static bool say_hello(struct joining *j, struct candidate *c)
{
    int why = 0;
    socklen_t len = sizeof why;
    if (getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &why, &len) < 0 || why != 0)
        return false;
    hello_encode(j->world, c->peer, c->hello);
    c->phase = AWAIT_CHALLENGE;
    return send_with(c->fd, c->hello, HELLO_BYTES, NULL, 0);
}

static bool send_proof(struct joining *j, struct candidate *c)
{
    uint8_t proof[PROOF_BYTES];
    if (challenge_answer(j->world, c->hello, c->in, proof, NULL) < 0)
        return false;
    memcpy(c->challenge, c->in, CHALLENGE_BYTES);
    c->phase = AWAIT_ANSWER;
    c->due_ns = j->opts->until_ns;
    if (!c->local)
        return send_with(c->fd, proof, sizeof proof, NULL, 0);
    int pass[2] = {-1, j->opts->bell};
    if (shm_segment_create(&pass[0], NULL) < 0)
        return false;
    bool ok = shm_segment_map(pass[0], &c->segment, NULL) == AS_OK;
    if (ok) {
        atomic_store(&c->segment->sides[0].pid, (int32_t)getpid());
        ok = send_with(c->fd, proof, sizeof proof, pass, 2);
    }
    (void)close(pass[0]);
    return ok;
}

/* 1: the link is there; 0: not yet; -1: dial again. */
static int step_dialler(struct joining *j, struct candidate *c, as_status *st, struct as_err *err)
{
    if (c->phase == CONNECTING)
        return say_hello(j, c) ? 0 : -1;
    int got = receive(c, c->phase == AWAIT_CHALLENGE ? CHALLENGE_BYTES : 1);
    if (got <= 0)
        return got;
    if (c->phase == AWAIT_CHALLENGE)
        return send_proof(j, c) ? 0 : -1;
    if (c->n_passed != (c->local ? 1 : 0))
        return -1;
    *st = make_link(j, c, true, err);
    return 1;
}

/* --- the acceptor --- */

static bool send_challenge(struct joining *j, struct candidate *c)
{
    if (hello_decode(j->world, c->in, &c->peer, NULL) < 0 || c->peer < j->world->rank)
        return false;
    memcpy(c->hello, c->in, HELLO_BYTES);
    if (challenge_encode(j->world, c->hello, c->challenge, NULL) < 0)
        return false;
    c->phase = AWAIT_PROOF;
    return send_with(c->fd, c->challenge, CHALLENGE_BYTES, NULL, 0);
}

static bool accept_proof(struct joining *j, struct candidate *c)
{
    if (proof_check(j->world, c->hello, c->challenge, c->in, NULL) < 0 ||
        c->n_passed != (c->local ? 2 : 0))
        return false;
    if (c->local) {
        if (shm_segment_map(c->passed[0], &c->segment, NULL) < 0)
            return false;
        (void)close(c->passed[0]);
        c->passed[0] = c->passed[1];
        c->n_passed = 1;
        atomic_store(&c->segment->sides[1].pid, (int32_t)getpid());
    }
    return send_with(c->fd, "A", 1, &j->opts->bell, c->local ? 1 : 0);
}

/* 1: the link is there; 0: not yet; -1: no peer of ours. */
static int step_acceptor(struct joining *j, struct candidate *c, as_status *st, struct as_err *err)
{
    int got = receive(c, c->phase == AWAIT_HELLO ? HELLO_BYTES : PROOF_BYTES);
    if (got <= 0)
        return got;
    if (c->phase == AWAIT_HELLO)
        return send_challenge(j, c) ? 0 : -1;
    if (!accept_proof(j, c))
        return -1;
    *st = make_link(j, c, false, err);
    return 1;
}

static bool dials(const struct candidate *c)
{
    return c->phase <= AWAIT_ANSWER;
}

static bool is_local_peer(const struct joining *j, int32_t peer)
{
    const struct world *w = j->world;
    return !j->opts->tcp_only && endpoint_same_host(&w->peers[peer], &w->peers[w->rank]);
}

/* Makes room for a newcomer. A peer that goes so dials again. */
static void drop_stranger(struct joining *j)
{
    size_t n = 0;
    for (size_t i = 0; i < j->n; i++)
        if (!dials(&j->c[i]))
            j->entries[n++] = (struct admission_entry){
                .origin = j->c[i].origin, .since_ns = j->c[i].since_ns, .place = i};
    for (int32_t r = j->world->rank + 1; r < j->world->n; r++) {
        struct sockaddr_storage at;
        if (j->links[r])
            continue;
        (void)socket_address(&j->world->peers[r], is_local_peer(j, r), &at);
        j->entries[n++] =
            (struct admission_entry){.origin = admission_origin(&at), .is_expected = 1};
    }
    drop(j, admission_victim(j->entries, n));
}

/* There are more places than ranks that are dialled, so that one is an accepted candidate's. */
static void accept_some(struct joining *j, int listening, bool local, int64_t now_ns)
{
    for (int some = 0; some < STRANGERS_MAX; some++) {
        struct sockaddr_storage from = {0};
        socklen_t len = sizeof from;
        int fd = accept4(listening, (struct sockaddr *)&from, &len, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0)
            return;
        if (j->n == j->max)
            drop_stranger(j);
        struct candidate *c = add(j);
        c->fd = fd;
        c->local = local;
        c->phase = AWAIT_HELLO;
        c->due_ns = now_ns + j->opts->prove_ns;
        c->since_ns = clock_mono_ns();
        c->origin = admission_origin(&from);
    }
}

/* --- the loop --- */

static as_status step(struct joining *j, size_t i, bool ready, int64_t now_ns, struct as_err *err)
{
    struct candidate *c = &j->c[i];
    as_status st = AS_OK;
    int went = 0;
    if (c->phase == TO_DIAL) {
        if (now_ns >= c->due_ns)
            went = start_dial(j, c, now_ns) ? 0 : -1;
    } else if (ready) {
        went = dials(c) ? step_dialler(j, c, &st, err) : step_acceptor(j, c, &st, err);
    } else if (now_ns >= c->due_ns) {
        went = -1;
    }
    if (went < 0 && dials(c))
        dial_again(c, now_ns);
    else if (went != 0)
        drop(j, i);
    return st;
}

/* The listener's two sockets and what ends the epoch come first in `polled`. */
#define POLLED_FIRST 3

static int fill_polled(struct joining *j, int64_t now_ns)
{
    int64_t next_ns = j->opts->until_ns;
    j->polled[0] = (struct pollfd){.fd = j->listener->tcp_fd, .events = POLLIN};
    j->polled[1] = (struct pollfd){.fd = j->listener->unix_fd, .events = POLLIN};
    j->polled[2] = (struct pollfd){.fd = j->opts->over_fd, .events = POLLIN};
    for (size_t i = 0; i < j->n; i++) {
        struct candidate *c = &j->c[i];
        j->polled[i + POLLED_FIRST] =
            (struct pollfd){.fd = c->fd, .events = c->phase == CONNECTING ? POLLOUT : POLLIN};
        if (c->due_ns < next_ns)
            next_ns = c->due_ns;
    }
    if (next_ns > now_ns + LIFE_NS)
        next_ns = now_ns + LIFE_NS;
    int64_t ms = (next_ns - now_ns + NS_PER_MS - 1) / NS_PER_MS;
    return ms < 0 ? 0 : (int)ms;
}

/* A link that has failed meanwhile is found by whoever uses it first. */
static void show_life(struct joining *j, int64_t now_ns)
{
    if (now_ns - j->beaten_ns < LIFE_NS)
        return;
    j->beaten_ns = now_ns;
    for (int32_t r = 0; r < j->world->n; r++) {
        as_status st = j->links[r] ? j->links[r]->ops->heartbeat(j->links[r], now_ns, NULL) : AS_OK;
        (void)st;
    }
}

static int32_t first_missing(const struct joining *j)
{
    for (int32_t r = 0; r < j->world->n; r++)
        if (r != j->world->rank && !j->links[r])
            return r;
    return -1;
}

static as_status run(struct joining *j, struct as_err *err)
{
    for (;;) {
        int32_t missing = first_missing(j);
        int64_t now_ns = clock_mono_ns();
        if (missing < 0)
            return AS_OK;
        if (now_ns >= j->opts->until_ns)
            return as_fail(err, AS_E_UNAVAILABLE, "rank %d did not connect to rank %d in time",
                           (int)missing, (int)j->world->rank);
        int timeout_ms = fill_polled(j, now_ns);
        if (poll(j->polled, j->n + POLLED_FIRST, timeout_ms) < 0) {
            if (errno == EINTR) /* what `polled` says is of the call before */
                continue;
            return as_fail(err, AS_E_IO, "poll: %s", strerror(errno));
        }
        if (j->polled[2].revents) /* a peer that is lost by now would be waited for in vain */
            return as_fail(err, AS_E_UNAVAILABLE, "epoch %u ended while its ranks connected",
                           (unsigned)j->world->epoch);
        now_ns = clock_mono_ns();
        show_life(j, now_ns);
        /* Backwards, because drop() moves the last candidate into the hole. */
        for (size_t i = j->n; i-- > 0;) {
            as_status st = step(j, i, j->polled[i + POLLED_FIRST].revents != 0, now_ns, err);
            if (st < 0)
                return st;
        }
        accept_some(j, j->listener->tcp_fd, false, now_ns);
        accept_some(j, j->listener->unix_fd, true, now_ns);
    }
}

static void dial_lower_ranks(struct joining *j)
{
    const struct world *w = j->world;
    for (int32_t r = 0; r < w->rank; r++) {
        struct candidate *c = add(j);
        c->peer = r;
        c->phase = TO_DIAL;
        c->local = is_local_peer(j, r);
    }
}

as_status connect_all(const struct listener *listener, const struct world *world,
                      const struct connect_opts *opts, struct link **links, struct as_err *err)
{
    struct joining j = {.listener = listener,
                        .world = world,
                        .opts = opts,
                        .links = links,
                        .max = (size_t)world->n + STRANGERS_MAX};
    j.c = as_calloc(j.max, sizeof *j.c);
    j.polled = as_calloc(j.max + POLLED_FIRST, sizeof *j.polled);
    j.entries = as_calloc(j.max + (size_t)world->n, sizeof *j.entries);
    as_status st = AS_OK;
    if (!j.c || !j.polled || !j.entries)
        st = as_fail_nomem(err);
    else
        dial_lower_ranks(&j);
    if (st == AS_OK)
        st = run(&j, err);
    for (size_t i = 0; i < j.n; i++)
        clear(&j.c[i]);
    free(j.c);
    free(j.polled);
    free(j.entries);
    return st;
}
