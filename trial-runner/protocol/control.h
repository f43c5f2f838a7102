/* The messages between the runner and a group in assay-train. They travel over the trainer's file
 * descriptor 0, a SOCK_STREAM Unix socket: lines of JSON in both directions, one object for each
 * line. Pure: these functions read and write the lines, not the socket.
 *
 *   runner to trainer   {"op": "add", "member": {…}}    a trial for a free slot
 *                       {"op": "stop", "id": "…"}       write a checkpoint, then end with 75
 *                       {"op": "cancel", "id": "…"}     end at once with 75, keep nothing
 *                       {"op": "close"}                 no more members: end when all have ended
 *   trainer to runner   {"event": "ready", "bytes_per_member": N, "bytes_shared": N,
 *                        "flops_per_step": N, "threads": T, "members": K}
 *                       {"event": "started", "id": "…", "step": N}
 *                       {"event": "ended", "id": "…", "exit": 0 | 1 | 75, "error": "…"}
 *                       {"event": "log", "id": "…", "text": "…"}
 *                       {"event": "throughput", "members": K, "rows_per_second": X}
 *
 * A member has the same form here and in the list `members` of JOB.json: {"id": "sweep/12.1",
 * "train": {…}, "seed": "123", "report": PATH, "checkpoints": PATH, "artifacts": PATH}. A path may
 * be missing; then nothing is written there. A member that other trials go on from (forks) has
 * "forks": {"every": 5, "until": 50, "may_differ": ["/optimizer/lr"]}: what it keeps for them
 * (checkpoint.h). A seed is decimal text from 0 to 2^64 - 1, because a
 * JSON number does not hold 64 bits.
 */
#ifndef ASSAY_TRIAL_RUNNER_PROTOCOL_CONTROL_H
#define ASSAY_TRIAL_RUNNER_PROTOCOL_CONTROL_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "base/str.h"
#include "trial-runner/protocol/line.h"

#define CONTROL_MAX_LINE LINE_MAX_BYTES
#define CONTROL_MAX_ID 200 /* bytes of a member's id, at least 1 */
#define CONTROL_MAX_SLOTS 64

/* ---- a member ---- */

/* What a trial keeps for its forks; zeroed: nothing. */
struct control_forks {
    int64_t every, until;     /* at multiples of `every` steps, below `until` */
    const json_t *may_differ; /* pointers of fields in which the document of its checkpoint may
                                 differ from its own (model/document/train_vary.h) */
};

/* Read it from a job or a member. `pointer` is that of the object. AS_E_INVAL. */
AS_MUST_CHECK as_status control_forks_parse(const json_t *obj, const char *pointer,
                                            struct control_forks *ret, struct as_err *err);

struct control_member {
    const char *id;
    const json_t *train; /* trial.train; its own parser checks it (train_spec.h) */
    uint64_t seed;
    const char *report, *checkpoints, *artifacts; /* NULL: not written */
    struct control_forks forks;
};

/* Read a member. `pointer` is its JSON pointer in the document, for error messages. Every field of
 * ret is a view of obj. AS_E_INVAL with the pointer of the field. */
AS_MUST_CHECK as_status control_member_parse(const json_t *obj, const char *pointer,
                                             struct control_member *ret, struct as_err *err);
/* Returns a new reference, or NULL if memory is out. */
json_t *control_member_to_json(const struct control_member *m);

/* ---- runner to trainer ---- */

typedef enum control_op { CONTROL_ADD, CONTROL_STOP, CONTROL_CANCEL, CONTROL_CLOSE } control_op;

struct control_request {
    control_op op;
    const char *id;               /* of the member; NULL: close */
    struct control_member member; /* add */
    json_t *doc; /* owned; the other fields are views of it; NULL if they are the caller's */
};

/* Parse one line, without its newline. The line may hold any bytes. ret is owned by the caller:
 * control_request_done(). AS_E_INVAL, AS_E_TOO_LARGE, AS_E_NOMEM. */
AS_MUST_CHECK as_status control_request_parse(const char *line, size_t len,
                                              struct control_request *ret, struct as_err *err);
void control_request_done(struct control_request *r);

/* Append the line and its newline to out. `doc` is ignored. AS_E_NOMEM; AS_E_TOO_LARGE: the line
 * would be longer than CONTROL_MAX_LINE (then nothing is appended). */
AS_MUST_CHECK as_status control_request_format(const struct control_request *r, struct str *out,
                                               struct as_err *err);

/* ---- trainer to runner ---- */

typedef enum control_event_kind {
    CONTROL_READY,     /* the data is loaded and memory is allocated: members begin. Sent again if
                        * the group had to become smaller */
    CONTROL_STARTED,   /* a member's first training step in this process is done */
    CONTROL_ENDED,     /* a member's files are complete and its slot is free */
    CONTROL_LOG,       /* a line for the log of one member alone */
    CONTROL_THROUGHPUT /* measured since the last one, or since the process began */
} control_event_kind;

struct control_event {
    control_event_kind kind;
    const char *id;           /* started, ended, log; else NULL */
    int64_t bytes_per_member; /* ready: parameters, optimizer state, activations, … */
    int64_t bytes_shared;     /* ready: the data, whose size does not grow with the members */
    int64_t flops_per_step;   /* ready: one micro-batch of one member, forward and backward */
    int64_t threads;          /* ready */
    int64_t step;             /* started: optimizer steps before it; not 0 after a resume */
    int64_t exit;             /* ended: 0, 1 or 75, like the exit code of a process */
    const char *error;        /* ended with 1, or with 75 after a fault: the reason; else NULL */
    const char *text;         /* log: lines without the last newline; else NULL */
    int64_t members;          /* throughput: the most members that trained side by side then;
                               * ready: for how many there is memory, 0: not said */
    double rows_per_second;   /* throughput: finite, >= 0 */
    json_t *doc;              /* as in control_request */
};

AS_MUST_CHECK as_status control_event_parse(const char *line, size_t len, struct control_event *ret,
                                            struct as_err *err);
void control_event_done(struct control_event *e);
AS_MUST_CHECK as_status control_event_format(const struct control_event *e, struct str *out,
                                             struct as_err *err);

/* ---- bytes into lines ---- */

/* Bytes that came over the socket, split into lines. Zeroed: empty. */
struct control_lines {
    struct str bytes;
    size_t taken; /* how many of `bytes` control_lines_next has returned */
};

void control_lines_done(struct control_lines *l);

/* Add received bytes. AS_E_NOMEM; AS_E_TOO_LARGE: a line has no end within CONTROL_MAX_LINE. Then
 * the caller must stop reading from the stream. */
AS_MUST_CHECK as_status control_lines_feed(struct control_lines *l, const char *bytes, size_t n,
                                           struct as_err *err);

/* Returns the next complete line without its newline, or NULL if there is none yet. A NUL follows
 * the line; the line may hold NULs itself. A view of l until the next control_lines_feed. */
const char *control_lines_next(struct control_lines *l, size_t *ret_len);

#endif
