/* The history of one sweep as its search sees it. It stays in memory, and a load reads only what is
 * new: trials never change their configuration. An end changes only when its trial is retried, and
 * the end that the retry took back stays known.
 *
 * Two numbers of the sweep's row, which a load reads first, determine what is visible: the trials
 * with a number below `total`, and of them the ends, retries, rung results and promotions with a
 * place up to `finish_seq` (search/trial_past.h, search/trial_rungs.h). A trial that ended later
 * counts as running. So the same two numbers give the same history on any server, cached or not.
 * One thread at a time. */
#ifndef ASSAY_SCHEDULER_SUGGESTER_SWEEP_HISTORY_H
#define ASSAY_SCHEDULER_SUGGESTER_SWEEP_HISTORY_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "base/mem.h"
#include "base/status.h"
#include "scheduler/sweep/sweep_doc.h"
#include "scheduler/sweep/trial_state.h"
#include "scheduler/store/store.h"
#include "search/suggest.h"

struct sweep_history;

/* Create an empty history of the sweep with that key; NULL when memory is out. Owned by the
 * caller. */
struct sweep_history *sweep_history_create(int64_t sweep_key);
void sweep_history_free(struct sweep_history *h);
AS_DEFINE_FREEP(struct sweep_history, sweep_history_free)

/* Read what is new, and forget what was supposed. AS_E_NOT_FOUND: the sweep was deleted.
 * AS_E_UNAVAILABLE, AS_E_NOMEM: it is unchanged, or it has read more than it shows; load again. */
AS_MUST_CHECK as_status sweep_history_load(struct store *db, struct sweep_history *h,
                                           struct as_err *err);

/* The first load of a history that is loaded once, of at most `most` trials: of every k-th one by
 * number (0, k, 2k, …), where *ret_every is the smallest k that suffices; 1: all trials. What is
 * read depends on the number of trials alone. Errors as above. AS_E_INTERNAL: not the first load.
 */
AS_MUST_CHECK as_status sweep_history_sample(struct store *db, struct sweep_history *h,
                                             int64_t most, int64_t *ret_every, struct as_err *err);

/* Where the sweep stood at the last load. */
struct history_place {
    sweep_state state;
    int64_t total;     /* trials of any origin: the number of the next one */
    int64_t suggested; /* trials that the method suggested: the index of the next one */
    int64_t planned;
    int64_t finish_seq;
    int64_t mark;           /* the mark of the last suggestion */
    const char *state_text; /* the search state that the last suggestion left: JSON or NULL; a
                               view until the next load */
};
const struct history_place *sweep_history_place(const struct sweep_history *h);

/* The search's input; a view of h. Only after a first load. */
/* The name of the first objective; a view of h. After a load. */
const char *sweep_history_metric(const struct sweep_history *h);
const struct search_spec *sweep_history_spec(const struct sweep_history *h);

/* Suppose that the next trial was suggested with this configuration and runs. Takes `c`.
 * AS_E_NOMEM. */
AS_MUST_CHECK as_status sweep_history_suppose(struct sweep_history *h, struct config *c,
                                              struct as_err *err);

/* The place in the order of ends at which the n-th trial (from 1) completed; 0: not so many have.
 * AS_E_NOMEM. */
AS_MUST_CHECK as_status sweep_history_completion(const struct sweep_history *h, int64_t n,
                                                 int64_t *ret_seq, struct as_err *err);

/* Go back to that place: show what had happened up to there, until the next load. Trials that were
 * made later count as running. AS_E_NOMEM. */
AS_MUST_CHECK as_status sweep_history_cut(struct sweep_history *h, int64_t seq, struct as_err *err);

/* The trials, with the supposed ones last; a view of h until the next load or supposition. */
struct history sweep_history_view(const struct sweep_history *h);

/* Parse the stored text of parameters. Owned by the caller. */
AS_MUST_CHECK as_status sweep_history_config(const struct sweep_history *h, const char *params,
                                             struct config **ret, struct as_err *err);

size_t sweep_history_bytes(const struct sweep_history *h); /* approximate memory that it holds */

#endif
