/* One trial from the answer to a claim (ClaimedTrial of api/openapi.yaml), checked. */
#ifndef ASSAY_TRIAL_RUNNER_ATTEMPT_CLAIMED_H
#define ASSAY_TRIAL_RUNNER_ATTEMPT_CLAIMED_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/mem.h"
#include "base/status.h"
#include "trial-runner/attempt/attempt_id.h"

#define CLAIMED_MAX_KEPT 64 /* steps at which something is kept for forks */

/* The group that the server put a trial into. */
struct claimed_group {
    const char *id, *shape;
    int64_t bytes_per_member;
    int64_t max_members; /* 0: no group */
};

/* The gang that a claimed rank belongs to. */
struct claimed_gang {
    int64_t ranks; /* 0: no gang */
    int64_t seat, min_ranks;
    bool elastic; /* its world may change */
    bool first;   /* only the process of rank 0 is started */
};

/* What is kept for forks of a trial: what its checkpoint folder holds at multiples of `every`
 * steps, below `until`. */
struct claimed_forks {
    const json_t *json; /* for the job of the built-in trainer; NULL: nothing is kept */
    int64_t every, until;
};

struct claimed {
    json_t *json; /* owned; everything below is a view of it */
    const char *sweep, *seed;
    const char *token; /* of this attempt, for its process; NULL: the server gives none */
    int64_t number, attempt;
    json_t *params, *trial, *metric, *files;
    json_t *dataset; /* NULL: none */
    int64_t gpus;
    int64_t cpus;       /* 0: not said */
    int64_t timeout_ms; /* 0: none */
    int64_t grace_ms;
    bool early_stopping; /* it may end the trial: a measurement may decide that */
    bool gives_ahead;    /* the next trial of its sweep may be claimed while it runs */
    struct claimed_group group;
    struct claimed_gang gang;
    struct claimed_forks forks;
};

/* Check j and fill c, which keeps a reference to j. Unknown fields are ignored, because the server
 * may be newer. AS_E_INVAL names the wrong field, for example a sweep's id that cannot be the name
 * of a folder. On failure c is empty, except that sweep, number and attempt are set as far as they
 * could be read; then they are views of j. */
AS_MUST_CHECK as_status claimed_parse(json_t *j, struct claimed *c, struct as_err *err);
void claimed_done(struct claimed *c);

/* Which attempt it is; a view of c. */
struct attempt_id claimed_id(const struct claimed *c);

/* Is a text from outside safe as the name of a folder? [A-Za-z0-9][A-Za-z0-9._-]{0,79} */
bool claimed_name_safe(const char *s);

#endif
