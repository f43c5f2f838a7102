/* The decisions of early stopping of a recorded sweep, made again: the input is that of a replay of
 * its suggestions (replay.h), the rest is search/stopping/decision_replay.h. */
#ifndef ASSAY_SEARCH_STOP_REPLAY_H
#define ASSAY_SEARCH_STOP_REPLAY_H

#include <jansson.h>

#include "search/stopping/decision_replay.h"

struct stop_replay;

/* Read a sweep and its trials; both are borrowed until stop_replay_free().
 *   ret  NULL for a sweep without early stopping
 * AS_E_INVAL: something is missing or wrong; err has the pointer of the field (/sweep/…, /items/…).
 * AS_E_NOMEM. */
AS_MUST_CHECK as_status stop_replay_create(const json_t *sweep, const json_t *items,
                                           struct stop_replay **ret, struct as_err *err);
void stop_replay_free(struct stop_replay *r);
AS_DEFINE_FREEP(struct stop_replay, stop_replay_free)

/* A view until stop_replay_free(). */
struct decision_replay *stop_replay_decisions(struct stop_replay *r);

#endif
