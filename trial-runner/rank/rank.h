/* A rank of a gang on this runner: what an attempt with a seat has beside its process and its
 * delivery. Two threads of its own speak with the server about the gang: one waits for the next
 * world (a long poll), the other tells where the rank listens, whom it has lost, and its end. The
 * main thread passes worlds on to the process. What is decided is in rank_state.h.
 *
 * What the threads share is guarded by the attempt's lock, and `changed` of the attempt wakes
 * them. */
#ifndef ASSAY_TRIAL_RUNNER_RANK_RANK_H
#define ASSAY_TRIAL_RUNNER_RANK_RANK_H

#include <pthread.h>

#include "api/client/client.h"
#include "trial-runner/attempt/claimed.h"
#include "trial-runner/process/rank_address.h"
#include "trial-runner/rank/rank_state.h"
#include "trial-runner/protocol/control.h"

struct attempt;
struct rendezvous;

/* Whom a rank misses: it asks for a world without them. */
struct accusation {
    int64_t epoch;  /* of the world; 0: none */
    int64_t due_ns; /* not before this time: their own runners may report them first */
    json_t *seats;  /* owned; empty: all live, but must meet again */
};

struct rank {
    struct attempt *attempt; /* borrowed; it owns the rank */
    struct claimed_gang gang;
    struct client *talk, *watch;
    pthread_t talker, watcher;
    bool has_talker, has_watcher;

    /* Under attempt->lock. */
    rank_state state;
    struct rank_world world; /* the newest */
    unsigned to_tell;        /* actions of the talker: RANK_TELL, RANK_LEAVE */
    unsigned to_do;          /* of the main thread: RANK_MEET, RANK_FINISH */
    char endpoint[201], address[RANK_ADDRESS_MAX];
    int64_t port;
    bool told; /* the server knows where it listens */
    struct accusation accusation;
    int64_t joined_epoch, joined_step; /* not told yet; 0: nothing to tell */
    int64_t last_joined;               /* epoch, told or not; 0: none */
    int64_t step, sent_bytes, step_ns; /* progress */
    bool ended; /* its process has ended, and `way` says what the server hears of it */
    rank_way way;
    bool end_told;   /* nothing more has to be told */
    int64_t echo_ns; /* a failure is not told before: the death of another may be its cause */
    bool quitting;
    struct rendezvous *rendezvous; /* the delivery thread's; of a command's rank 0; else NULL */
    int64_t left_ns; /* when a world began without it, by its own wish; 0: it has not */

    /* The main thread's own. */
    bool ends_early; /* RANK_ENDS_EARLY has happened */
    char *gpus; /* of all ranks of its gang here, since the first of them began; NULL: none has */
    bool held;  /* it has no process (launch: first), and keeps its slot until the gang is over */
    int fd;     /* the socket to an elastic rank's process; -1: none */
    struct control_lines in;
    struct str out; /* bytes that could not be written yet */
};

/* Make t the rank of the gang that it was claimed for: t->rank, which attempt_free() frees after
 * its threads have ended. AS_E_NOMEM, AS_E_INVAL (the server's URL). */
AS_MUST_CHECK as_status rank_create(struct attempt *t, struct as_err *err);

/* ---- for the delivery thread ---- */

/* Start the threads. The delivery thread calls it before it prepares. AS_E_NOMEM. */
AS_MUST_CHECK as_status rank_start(struct rank *r, struct as_err *err);

/* A rank of a fixed gang: choose an address and a port, send them, and wait for the gang. Then set
 * the environment of a->spec and write the hostfile. AS_E_UNAVAILABLE: a stop was asked for.
 * AS_E_IO, AS_E_NOMEM. */
AS_MUST_CHECK as_status rank_gather(struct rank *r, struct as_err *err);

/* The address for ranks: the option's, else that of the way to the server. Errors as
 * rank_address_find. */
AS_MUST_CHECK as_status rank_own_address(const struct rank *r, char ret[RANK_ADDRESS_MAX],
                                         struct as_err *err);

/* Does it lead its gang, so that what the attempt writes is its to send? *ret_epoch is the epoch of
 * the world in which it does. */
bool rank_leads(struct rank *r, int64_t *ret_epoch);
/* The server says that `epoch` is over, or another leads: wait for a newer world, at most a few
 * seconds. Returns whether this rank leads the newest one. */
bool rank_await_world(struct rank *r, int64_t epoch);

/* A rank of a fixed gang that leads has failed: wait until a death that may have been the cause has
 * been told. Returns at once in all other cases, and when the attempt is over for the server. */
void rank_await_echo(struct rank *r);

/* Wait until the server has heard the end of the rank, or need not. Returns false if it has not,
 * because the runner gives up. */
bool rank_await_end(struct rank *r);

/* ---- for any thread ---- */

/* Something happened to the rank. */
void rank_notice(struct rank *r, rank_happens happens);

#endif
