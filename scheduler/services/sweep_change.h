/* Changes of a sweep that people make: its state, its limits, its tags and remarks, while it runs
 * and after it has ended.
 *
 * Every function: AS_E_UNAVAILABLE when the database is away, AS_E_NOMEM. Rows live in `a`. */
#ifndef ASSAY_SCHEDULER_SERVICES_SWEEP_CHANGE_H
#define ASSAY_SCHEDULER_SERVICES_SWEEP_CHANGE_H

#include <jansson.h>

#include "base/arena.h"
#include "base/status.h"
#include "scheduler/rows/sweep_row.h"
#include "scheduler/store/store.h"

#define SWEEP_NOTES_MAX 8
#define SWEEP_REMARKS_MAX 65536 /* characters */
/* That sweep_changes() returns. A change has short values, below 1 KB, so they fit
 * PAGE_BYTES_MAX. */
#define SWEEP_CHANGES_MAX 1000

/* A merge patch, as the API's SweepPatch. */
struct sweep_patch {
    const sweep_state *state; /* RUNNING (resume), PAUSED or CANCELLED; NULL: unchanged */
    const json_t *limits; /* borrowed from the document; null removes a limit. NULL: unchanged */
    bool has_priority;    /* false: unchanged */
    int64_t priority;
    const sweep_state *if_state; /* only of a sweep in this state; NULL: of any */
    int64_t if_max_trials;       /* only of a sweep with this limit; 0: with any */
    const json_t *tags;          /* borrowed from the document: a list; NULL: unchanged */
    bool has_remarks;            /* false: unchanged */
    const char *remarks;         /* borrowed from the document: Markdown; NULL: none any more */
};

/* The sweep after a change. */
struct sweep_changed {
    struct sweep_row sweep;
    const char *notes[SWEEP_NOTES_MAX]; /* what the change did not do, or does later; sentences */
    size_t n_notes;
};

/* Read a SweepPatch. AS_E_INVAL: a field, with its pointer, or the patch is empty. */
AS_MUST_CHECK as_status sweep_patch_parse(const json_t *doc, struct sweep_patch *ret,
                                          struct as_err *err);

/* Apply all of the patch or nothing, and record it with `by` (the id of a token; NULL: none).
 *
 * It is allowed to ask for the state that the sweep has. Cancelling ends queued and running trials
 * in the same transaction; their runners are informed by their next heartbeat.
 *
 * Limits may be raised and lowered in any state. max_trials below the number of trials: no more are
 * made, and those that exist go on. A sweep that has ended runs on if its limits leave it work,
 * unless a user cancelled it; a cancelled one runs on when it is resumed.
 *
 * AS_E_NOT_FOUND. AS_E_CONFLICT: the state is not if_state, or max_trials is not if_max_trials, or
 * the state cannot be reached from the present one, or a sweep that has ended is resumed and has
 * nothing to do. AS_E_INVAL: a limit or a tag. */
AS_MUST_CHECK as_status sweep_change(struct store *db, struct arena *a, const char *id,
                                     const struct sweep_patch *patch, const char *by,
                                     struct sweep_changed *ret, struct as_err *err);

/* The latest changes of a sweep, at most SWEEP_CHANGES_MAX, newest first. AS_E_NOT_FOUND. */
AS_MUST_CHECK as_status sweep_changes(struct store *db, struct arena *a, const char *id,
                                      struct sweep_change_list *ret, struct as_err *err);

#endif
