/* Trials that begin to run: the rows that statements read and write. */
#ifndef ASSAY_SCHEDULER_ROWS_ASSIGNMENT_ROW_H
#define ASSAY_SCHEDULER_ROWS_ASSIGNMENT_ROW_H

#include <stdbool.h>
#include <stdint.h>

/* Who runs an attempt: a runner, with the claim that gave it the attempt, a client, or a gang
 * (neither is set). */
struct owner {
    const char *runner; /* NULL: a client or a gang */
    int64_t epoch;
    const char *claim_id;
    const char *client; /* NULL: a runner or a gang */
    const char *secret; /* SHA-256 of the runner's; NULL: it has none */
    const char *token;  /* id of the client's; NULL: none is asked for */
};

struct queued_trial {
    int64_t number;
    int64_t attempt;   /* the latest; 0 before the first */
    const char *shape; /* NULL: it has none */
    int64_t bytes_per_member;
    bool may_share; /* it never ran, or its latest attempt was released or paused */
    bool is_ahead;  /* a suggestion that found no place when it was made; no promotion, no retry */
};

struct begun_trial {
    int64_t number;
    const char *group; /* NULL: alone */
};

/* A suggestion that becomes a trial. */
struct made_trial {
    int64_t number, seed, index;
    int64_t seen;                    /* -1: the method does not learn */
    const char *params, *suggestion; /* JSON */
    const char *shape;               /* NULL: it has none */
    int64_t bytes_per_member;
    const char *group; /* NULL: alone */
    bool runs;         /* false: it waits in the queue */
};

/* A group: its sweep, its shape, and how many of its members run. */
struct group_head {
    int64_t sweep_key; /* 0: no trial of this runner has this group as its latest */
    const char *shape;
    int64_t bytes_per_member;
    int64_t running;
};

#endif
