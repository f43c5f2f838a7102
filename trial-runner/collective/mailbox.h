/* Requests between any two ranks of a world, outside of the lock-step operations.
 *
 * A rank sends a request when it likes; a thread of the mailbox at the other rank calls its
 * `on_request`, which answers at once or later. The mailbox has connections of its own, so a
 * message never waits behind an operation that some rank has not begun. It is for one epoch, like
 * the collective, but outlives its peers: requests to a lost rank fail, and the others go on.
 *
 * Memory is bounded: a message has at most `max_bytes`; a rank whose MAIL_OPEN_MAX requests are not
 * answered yet is not read further. Frames carry attempt and epoch, and on TCP checksums; a peer
 * that sends anything else is lost. */
#ifndef ASSAY_TRIAL_RUNNER_COLLECTIVE_MAILBOX_H
#define ASSAY_TRIAL_RUNNER_COLLECTIVE_MAILBOX_H

#include "trial-runner/collective/collective.h"

#define MAIL_OPEN_MAX 64
#define MAIL_PARTS 3

struct mailbox;

struct mail_part {
    const void *bytes;
    size_t n;
};

/* A received request. */
struct mail {
    int32_t from; /* a rank, perhaps this one */
    int32_t kind;
    uint64_t step;
    const uint8_t *bytes; /* aligned as malloc does it; a view until the request is answered */
    size_t n;
};

struct mailbox_opts {
    size_t max_bytes; /* of a message */
    /* Called by the mailbox's thread, one at a time. Every request is to be answered with
     * mailbox_answer() by this thread, here or in a later call. */
    void (*on_request)(void *arg, struct mailbox *b, struct mail *m);
    /* The rank is lost. Called by the mailbox's thread, after its requests to others; NULL: not. */
    void (*on_lost)(void *arg, struct mailbox *b, int32_t rank);
    void *arg;
};

/* A request that this rank sends. Its memory, and that of its parts, is the caller's until it is
 * done. */
struct mail_call {
    int32_t to; /* perhaps this rank itself */
    int32_t kind;
    uint64_t step;
    struct mail_part parts[MAIL_PARTS]; /* they arrive as one piece */
    /* NULL, or called by the mailbox's thread when the call is done, instead of
     * mailbox_finish(). */
    void (*on_done)(void *arg, struct mail_call *call);
    void *arg;

    /* Set when it is done: */
    as_status status; /* the answer's; AS_E_UNAVAILABLE: the rank is lost, or the epoch is over */
    uint8_t *answer;  /* its bytes, or NULL; the caller's: free() */
    size_t answer_n;

    /* The mailbox's: */
    bool done;
    uint64_t id;
    struct mail_call *next;
};

/* All ranks of `c` call it together; then each can reach each. `c` is borrowed for the call; when
 * its epoch is over, or c is freed, all calls fail. How long ranks may be silent, and may take to
 * connect, is as for `c`. AS_E_UNAVAILABLE: a rank is lost, or did not connect in time, or the
 * epoch was over before. */
AS_MUST_CHECK as_status mailbox_create(struct coll *c, const struct mailbox_opts *opts,
                                       struct mailbox **ret, struct as_err *err);
/* Ends the thread; calls that are not done fail before. */
void mailbox_free(struct mailbox *b);
AS_DEFINE_FREEP(struct mailbox, mailbox_free)

/* Sends a request; from any thread. mailbox_finish() waits for its answer. */
void mailbox_begin(struct mailbox *b, struct mail_call *call);
/* Returns call->status. */
AS_MUST_CHECK as_status mailbox_finish(struct mailbox *b, struct mail_call *call,
                                       struct as_err *err);
bool mailbox_is_done(struct mailbox *b, const struct mail_call *call);

/* Answers a request, and frees it; only in the mailbox's thread. The parts are copied. An answer to
 * a lost rank goes nowhere. `status` is AS_OK or an error, of which only the code travels. */
void mailbox_answer(struct mailbox *b, struct mail *m, as_status status,
                    const struct mail_part *parts, size_t n);

/* Payload bytes that this rank has sent in messages to others. */
uint64_t mailbox_bytes_sent(struct mailbox *b);
bool mailbox_has_lost(struct mailbox *b, int32_t rank);

#endif
