/* The connection to one peer: two queues of transfers, and a transport that moves their bytes.
 *
 * A transport (shm_link.c, tcp_link.c) implements the operations below and nothing else; which
 * frame comes next, and whether a received one is the expected one, is decided here for both. */
#ifndef ASSAY_TRIAL_RUNNER_COLLECTIVE_LINK_H
#define ASSAY_TRIAL_RUNNER_COLLECTIVE_LINK_H

#include "trial-runner/collective/cipher.h"
#include "trial-runner/collective/frame.h"
#include "trial-runner/collective/shm_segment.h"
#include "trial-runner/collective/transfer.h"

struct link;

struct link_ops {
    const char *name;
    bool asks_epoll; /* it reads only if `readable` says so */
    /* Move what can be moved without waiting; *moved is set if anything did.
     * AS_E_UNAVAILABLE: the connection has ended. Others: the peer sends what it must not. */
    as_status (*progress)(struct link *l, bool *moved, struct as_err *err);
    /* From `rest` until `wake` the peer must wake this rank when there is something to move. */
    void (*rest)(struct link *l);
    void (*wake)(struct link *l);
    /* Show the peer that this rank lives, and look when the peer last did (heard_ns). */
    as_status (*heartbeat)(struct link *l, int64_t now_ns, struct as_err *err);
    /* Say that this rank sends nothing more; waits for nothing. */
    void (*goodbye)(struct link *l);
    void (*free)(struct link *l);
};

struct transfer_queue {
    struct transfer *head, *tail;
};

struct link {
    const struct link_ops *ops;
    int32_t peer;
    uint32_t epoch;
    uint64_t attempt;
    int fd;                  /* the connection: its end is the peer's end; owned */
    int process_fd;          /* the peer's process (pidfd), or -1; owned */
    int64_t heard_ns;        /* when the peer last showed life */
    uint64_t bytes_sent;     /* payload bytes */
    uint64_t frames_dropped; /* of other attempts and epochs */
    bool left;               /* the peer has said goodbye: it will send nothing more */
    bool ended;              /* the connection is over */
    bool lost;               /* and the mesh goes on without it */
    bool stirred;            /* something happened on the connection: move it */
    bool readable;           /* it may have unread bytes: set when epoll says so, reset by the
                              * transport that has found none */
    bool closing;            /* epoll has said that it ends, and will say nothing more */
    struct transfer_queue sends, receives;
};

void link_post(struct link *l, struct transfer *t);

/* The next frame to send: its head without the checksum, and its payload. False if there is none
 * now. `most` bytes at most. Frames that are taken so leave in this order, each once. */
bool link_next_frame(struct link *l, size_t most, struct frame *ret, const uint8_t **ret_payload);
/* The first frame that link_next_frame returned and that had not left has left. */
void link_frame_sent(struct link *l, const struct frame *f);

/* Whose frame is it?
 *   AS_OK           the next bytes of the first receive: *ret_to is where they belong
 *   AS_E_EXHAUSTED  no receive is posted yet: ask again later
 *   AS_E_STALE      another attempt's or epoch's: drop it
 *   AS_E_CONFLICT   the peer is at another tensor or step; the message names both */
AS_MUST_CHECK as_status link_expect(struct link *l, const struct frame *f, struct transfer **ret_to,
                                    struct as_err *err);
/* Put the payload of an expected frame where it belongs. */
void link_frame_received(struct link *l, const struct frame *f, const uint8_t *payload);

/* The two transports. They take the descriptors, even on failure.
 *   fd        the authenticated connection, non-blocking
 *   segment   mapped; `dialled`: this side is its side 0
 *   own_bell, peer_bell   eventfds; own_bell is borrowed
 *   keys      of a connection that encrypts; NULL: it does not. Copied. What is in the memory of
 *             one host is never encrypted */
AS_MUST_CHECK as_status shm_link_create(int fd, int process_fd, struct shm_segment *segment,
                                        bool dialled, int peer_bell, struct link **ret,
                                        struct as_err *err);
AS_MUST_CHECK as_status tcp_link_create(int fd, const struct cipher_keys *keys, struct link **ret,
                                        struct as_err *err);

#endif
