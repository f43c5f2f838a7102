/* The world of a gang as the server answers it (World of api/openapi.yaml): the members of an
 * epoch, in the order of their seats. A member's rank is its place in that order; rank 0 leads.
 * Pure. */
#ifndef ASSAY_TRIAL_RUNNER_RANK_RANK_WORLD_H
#define ASSAY_TRIAL_RUNNER_RANK_RANK_WORLD_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/mem.h"
#include "base/status.h"

#define GANG_SECRET_BYTES 32

typedef enum gang_state {
    GANG_GATHERING, /* no epoch yet */
    GANG_RUNNING,
    GANG_WAITING, /* too few members: no training until more have come */
    GANG_OVER,    /* the attempt has ended for the server */
} gang_state;

struct gang_member {
    int64_t seat, port;
    const char *runner, *host, *endpoint, *address;
};

struct rank_world {
    json_t *json; /* owned; the texts are views of it; NULL: none yet */
    gang_state state;
    int64_t epoch;        /* 0: none */
    int64_t restarts;     /* how many the trial has used */
    int64_t max_restarts; /* 0 where the server does not say */
    bool has_secret;
    uint8_t secret[GANG_SECRET_BYTES]; /* of the attempt, which ranks prove to each other */
    struct gang_member *members;       /* owned; n of them */
    size_t n;
};

/* Read an answer. Unknown fields are ignored, because the server may be newer. ret keeps a
 * reference to j; free it with rank_world_done(); untouched on failure. AS_E_INVAL names the
 * field. */
AS_MUST_CHECK as_status rank_world_parse(json_t *j, struct rank_world *ret, struct as_err *err);
void rank_world_done(struct rank_world *w);

/* The rank of a seat, or -1 if it is no member. */
int64_t rank_world_rank(const struct rank_world *w, int64_t seat);

#endif
