/* One trial as a claim hands it out (ClaimedTrial of api/openapi.yaml), checked. */
#ifndef ASSAY_TRIAL_RUNNER_AGENT_CLAIMED_H
#define ASSAY_TRIAL_RUNNER_AGENT_CLAIMED_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/mem.h"
#include "base/status.h"

/* The group that the server put a trial into. */
struct claimed_group {
    const char *id, *shape;
    int64_t bytes_per_member;
    int64_t max_members; /* 0: no group */
};

struct claimed {
    json_t *json; /* owned; everything below is a view of it */
    const char *sweep, *seed;
    int64_t number, attempt;
    json_t *params, *trial, *metric, *files;
    json_t *dataset; /* NULL: none */
    int64_t gpus;
    int64_t timeout_ms; /* 0: none */
    int64_t grace_ms;
    struct claimed_group group;
};

/* Takes a reference of its own to j. AS_E_INVAL names the field that breaks the contract: among
 * others a sweep's id that could not be a folder's name. Fields that this version does not know are
 * skipped. On failure c is empty, but sweep, number and attempt stand when they could be read: then
 * they are views of j. */
AS_MUST_CHECK as_status claimed_parse(json_t *j, struct claimed *c, struct as_err *err);
void claimed_done(struct claimed *c);

/* May the text be a folder's name, made by somebody else? [A-Za-z0-9][A-Za-z0-9._-]{0,79} */
bool claimed_name_safe(const char *s);

/* May the text be the path of a file inside a folder? Relative, no empty, "." or ".." component, no
 * control character, at most 255 bytes. */
bool claimed_path_safe(const char *s);

#endif
