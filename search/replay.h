/* Replay a sweep: make every suggestion again from the recorded data and check that it is the same.
 *
 * A suggestion is a pure function of the sweep's document, of the trials before it, of the results
 * that were known when it was made, and of the state that the previous suggestion left (suggest.h).
 * The service records all of it: each trial has its `origin`, its `index`, and `seen`, the highest
 * `finish_seq` among the results that were known. So the replay of trial t sees the trials 0..t-1:
 * with their results where finish_seq <= seen, as pending where it is above or absent. The replay
 * sees a cancelled trial as pending until its end was known, and skips it from then on. A trial
 * that was retried has its earlier ends in `retries` (trial_past.h). With early stopping the replay
 * sees of a trial the rung results up to `seen` (trial_rungs.h); a pruned one is partial, not
 * failed. Limits of the sweep are no input, so that they may change.
 *
 * The inputs are those of the API: the Sweep, and all its Trials. Equal bits are promised on one
 * machine with one version of the program and one thread of BLAS. On another machine the last bits
 * of the linear algebra may differ, and suggestions may differ with them. */
#ifndef ASSAY_SEARCH_REPLAY_H
#define ASSAY_SEARCH_REPLAY_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/mem.h"
#include "base/status.h"
#include "search/incumbent.h"
#include "search/regret_bound.h"

struct replay;

/* Read a sweep and its trials (an array, in any order). Both are borrowed until replay_free().
 * AS_E_INVAL: something is missing or wrong; err has the pointer of the field (/sweep/…, /items/…).
 * The history is whole when the numbers are 0, 1, 2, … without gaps and as many as the sweep
 * counts, each suggestion's index is the number of suggestions before it, and no two trials have
 * the same finish_seq. AS_E_NOMEM. */
AS_MUST_CHECK as_status replay_create(const json_t *sweep, const json_t *items, struct replay **ret,
                                      struct as_err *err);
void replay_free(struct replay *r);
AS_DEFINE_FREEP(struct replay, replay_free)

/* How many trials were suggested (these are replayed), were added by users, and are forks (whose
 * decisions are replayed, stop_replay.h). */
size_t replay_suggested(const struct replay *r);
size_t replay_added(const struct replay *r);
size_t replay_forked(const struct replay *r);

struct replay_step {
    uint64_t number;
    bool is_same;         /* bit for bit: the parameters and the reason */
    const json_t *stored; /* the parameters as stored, and as suggested again: views */
    /* until the next step. NULL: there was no suggestion this time (see why) */
    const json_t *again;
    const char *why; /* view; set only if there was no suggestion, or only the reason differs */
};

/* The next suggested trial, by number. AS_E_EXHAUSTED (err untouched) after the last;
 * AS_E_NOMEM. Costs as much as one suggestion. A difference does not end the replay, because later
 * suggestions use the stored history. */
AS_MUST_CHECK as_status replay_next(struct replay *r, struct replay_step *ret, struct as_err *err);

/* The bound of what is left to gain and the best trial as they were at the place `seq` of the
 * order, and how many trials had completed. May be called between steps. AS_E_NOMEM. Costs as much
 * as a few fits. */
AS_MUST_CHECK as_status replay_bound(struct replay *r, int64_t seq, size_t *ret_completed,
                                     struct regret_bound *ret, struct incumbent *ret_best,
                                     struct as_err *err);

#endif
