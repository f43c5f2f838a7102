/* The messages between the runner and a rank of a large trial. They travel over the rank's file
 * descriptor 0, a SOCK_STREAM Unix socket, as lines of JSON (control_lines_next splits them). Pure:
 * these functions read and write the lines, not the socket.
 *
 *   runner to rank   {"op": "world", "attempt": "77", "epoch": 3, "rank": 1, "secret": "64 digits",
 *                     "peers": ["ENDPOINT", …]}      the ranks of an epoch; another epoch is over
 *                    {"op": "stop"}                  leave with the others at the end of a step
 *   rank to runner   {"event": "listening", "endpoint": "ENDPOINT"}   once, when its data are
 *   loaded
 *                    {"event": "joined", "epoch": 3, "step": 120}     connected to all, at a step
 *                    {"event": "lost", "epoch": 3, "rank": 2}         this rank of the epoch is
 *                    gone {"event": "lost", "epoch": 3, "rank": 2, "others": [3, 5]}
 *                    {"event": "progress", "step": 140, "sent_bytes": 99, "step_ns": 7}
 *                                       at most once a second, and at the end: steps done, bytes
 *                                       sent to peers, the mean time of a step of this process
 *
 * A loss may be noticed by several ranks, and one may report it twice. "rank": -1 says only that
 * this rank waits for the next world: a peer that lives has left the epoch, and reports itself whom
 * it misses. "others" are ranks that are silent too, or have not connected either: a host that is
 * lost takes all of its ranks along.
 *
 * An endpoint is text that the runner passes on without reading it. */
#ifndef ASSAY_TRIAL_RUNNER_PROTOCOL_RANKS_H
#define ASSAY_TRIAL_RUNNER_PROTOCOL_RANKS_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "base/str.h"

#define RANKS_MAX 4096         /* of a world */
#define RANKS_MAX_ENDPOINT 200 /* bytes */
#define RANKS_SECRET_BYTES 32

typedef enum rank_op { RANK_WORLD, RANK_STOP } rank_op;

struct rank_request {
    rank_op op;
    uint64_t attempt;
    int64_t epoch; /* 1 to 2^31 - 1 */
    int64_t rank;
    uint8_t secret[RANKS_SECRET_BYTES];
    size_t n;            /* ranks of the world */
    const json_t *peers; /* array of n texts */
    json_t *doc;         /* owned; `peers` is a view of it; NULL if it is the caller's */
};

/* Parse one line without its newline. ret is owned by the caller: rank_request_done().
 * AS_E_INVAL with the pointer of the field, AS_E_TOO_LARGE, AS_E_NOMEM. */
AS_MUST_CHECK as_status rank_request_parse(const char *line, size_t len, struct rank_request *ret,
                                           struct as_err *err);
void rank_request_done(struct rank_request *r);
const char *rank_request_peer(const struct rank_request *r, size_t rank); /* a view */

/* Append the line and its newline. AS_E_NOMEM, AS_E_TOO_LARGE. */
AS_MUST_CHECK as_status rank_request_format(const struct rank_request *r, struct str *out,
                                            struct as_err *err);

typedef enum rank_event_kind {
    RANK_LISTENING,
    RANK_JOINED,
    RANK_LOST,
    RANK_PROGRESS
} rank_event_kind;

struct rank_event {
    rank_event_kind kind;
    const char *endpoint; /* listening */
    int64_t epoch;        /* joined, lost */
    int64_t step;         /* joined, progress: steps of the optimizer that are done */
    int64_t sent_bytes;   /* progress: payload that this process has sent to its peers so far */
    int64_t step_ns;      /* progress: the mean time of a step of this process; 0: none yet */
    int64_t rank;         /* lost: -1 to n - 1 */
    const json_t *others; /* lost: NULL, or an array of further ranks */
    json_t *doc;          /* as in rank_request */
};

AS_MUST_CHECK as_status rank_event_parse(const char *line, size_t len, struct rank_event *ret,
                                         struct as_err *err);
void rank_event_done(struct rank_event *e);
AS_MUST_CHECK as_status rank_event_format(const struct rank_event *e, struct str *out,
                                          struct as_err *err);

#endif
