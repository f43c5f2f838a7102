/* Tags of trials: short texts by which people group the trials of a sweep. */
#ifndef ASSAY_SCHEDULER_SERVICES_TRIAL_TAGS_H
#define ASSAY_SCHEDULER_SERVICES_TRIAL_TAGS_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/status.h"
#include "scheduler/store/store.h"

#define TRIAL_TAGS_MAX 32        /* of one trial */
#define TRIAL_TAG_TEXT_MAX 64    /* characters of a tag */
#define TRIAL_TAGS_AT_ONCE 10000 /* trials of one request */

/* The body of the API's tagTrials. */
struct tags_request {
    const int64_t *numbers;
    size_t n_numbers;
    const char **add, **remove; /* views of the body */
    size_t n_add, n_remove;
};

/* Read it; lists are in the arena. AS_E_INVAL with the pointer of the field: nothing to do, a
 * number that is none, a tag with a comma or a control character, a tag that is added and removed.
 * AS_E_TOO_LARGE: too many. AS_E_NOMEM. */
AS_MUST_CHECK as_status tags_request_parse(const json_t *body, struct arena *a,
                                           struct tags_request *ret, struct as_err *err);

/* Give the tags to these trials and take others away, in any state of the trials. Numbers that the
 * sweep does not have are ignored. All or nothing; an event tells of each trial that changed.
 *   ret_changed  how many trials have other tags now
 * AS_E_NOT_FOUND. AS_E_INVAL: a trial would have more than TRIAL_TAGS_MAX. AS_E_UNAVAILABLE. */
AS_MUST_CHECK as_status trials_tag(struct store *db, const char *sweep,
                                   const struct tags_request *q, int64_t *ret_changed,
                                   struct as_err *err);

#endif
