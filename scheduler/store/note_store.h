/* Table trial_note: texts of trials, the last one of each name. */
#ifndef ASSAY_SCHEDULER_STORE_NOTE_STORE_H
#define ASSAY_SCHEDULER_STORE_NOTE_STORE_H

#include "base/arena.h"
#include "scheduler/rows/trial_row.h"
#include "scheduler/store/tx.h"

/* Replace the texts of these names. A new name past TRIAL_NOTES_MAX is left out. The caller holds
 * the trial's row and has checked names and texts; no name stands twice. */
AS_MUST_CHECK as_status store_note_put(struct tx *t, int64_t sweep_key, int64_t number,
                                       const struct trial_note *notes, size_t n,
                                       struct as_err *err);

/* Texts of one trial; borrowed. */
struct trial_notes {
    int64_t sweep_key, number;
    const struct trial_note *notes;
    size_t n;
};

/* The same for n sets, in one statement, with the effect of store_note_put() for one after the
 * other. A trial may stand in several sets. */
AS_MUST_CHECK as_status store_note_put_many(struct tx *t, const struct trial_notes *sets, size_t n,
                                            struct as_err *err);

/* The notes of a trial, by name. */
AS_MUST_CHECK as_status store_note_list(struct tx *t, struct arena *a, int64_t sweep_key,
                                        int64_t number, struct trial_note **ret, size_t *ret_n,
                                        struct as_err *err);

#endif
