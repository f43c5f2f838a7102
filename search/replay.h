/* Replaying a sweep: every suggestion again from what was recorded, to see that it is the same.
 *
 * A suggestion is a pure function of the sweep's document, of the trials before it, of the results
 * that were known when it was made, and of the state that the one before it left (suggest.h). The
 * service records all of it: each trial has its `origin`, its `index`, and `seen`, the highest
 * `finish_seq` among the results that were known. So the replay of trial t sees the trials 0..t-1:
 * with their results where finish_seq <= seen, as pending where it is above or absent. Cancelled
 * trials are seen as pending until their end was known, and are left out from then on.
 *
 * The inputs are those of the API: the Sweep, and all its Trials. Equal bits are promised on one
 * machine with one version of the program and one thread of BLAS; on another machine the last bits
 * of the algebra may differ, and with them suggestions. */
#ifndef ASSAY_SEARCH_REPLAY_H
#define ASSAY_SEARCH_REPLAY_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/mem.h"
#include "base/status.h"

struct replay;

/* Read a sweep and its trials (an array, in any order). Both are borrowed until replay_free().
 * AS_E_INVAL says what is missing or wrong, with the pointer of the field (/sweep/…, /items/…): the
 * numbers must be 0, 1, 2, … without holes and no fewer than the sweep counts, each suggestion's
 * index the number of those before it, and no two trials end at the same place, or the history is
 * not whole. AS_E_NOMEM. */
AS_MUST_CHECK as_status replay_create(const json_t *sweep, const json_t *items, struct replay **ret,
                                      struct as_err *err);
void replay_free(struct replay *r);
AS_DEFINE_FREEP(struct replay, replay_free)

/* How many trials were suggested, and so are replayed; and how many were added by people. */
size_t replay_suggested(const struct replay *r);
size_t replay_added(const struct replay *r);

struct replay_step {
    uint64_t number;
    bool is_same; /* bit for bit: the parameters, and what its reason says */
    const json_t
        *stored;         /* the parameters as they were stored, and as they come out again: views */
    const json_t *again; /* until the next step. NULL: this time there was no suggestion (why) */
    const char *why;     /* view; NULL but then, and when only the reason is another one */
};

/* The next suggested trial, by number. AS_E_EXHAUSTED (err untouched) after the last;
 * AS_E_NOMEM. The cost of one suggestion. A difference does not end the replay: the history of the
 * later ones is what was stored. */
AS_MUST_CHECK as_status replay_next(struct replay *r, struct replay_step *ret, struct as_err *err);

#endif
