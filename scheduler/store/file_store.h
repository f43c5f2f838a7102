/* Table trial_file: artifacts and checkpoints of trials, whose content is in blobs. */
#ifndef ASSAY_SCHEDULER_STORE_FILE_STORE_H
#define ASSAY_SCHEDULER_STORE_FILE_STORE_H

#include "base/arena.h"
#include "scheduler/rows/file_row.h"
#include "scheduler/store/tx.h"

/* Files in the order of paths. kind: "artifact", "checkpoint" or "log". */
AS_MUST_CHECK as_status store_file_list(struct tx *t, struct arena *a, int64_t sweep_key,
                                        int64_t number, const char *kind, struct file_list *ret,
                                        struct as_err *err);

/* Replace the set. *ret_missing is the index of the first file whose content is not stored with
 * that size (then nothing was changed), or -1. The caller holds the trial's row. */
AS_MUST_CHECK as_status store_file_replace(struct tx *t, int64_t sweep_key, int64_t number,
                                           const char *kind, const struct file_row *files, size_t n,
                                           int64_t *ret_missing, struct as_err *err);

/* The same for what is kept of the trial at this step. Once it has a result there, nothing changes:
 * forks of it are forks of what that result was measured with. */
AS_MUST_CHECK as_status store_file_keep(struct tx *t, int64_t sweep_key, int64_t number,
                                        int64_t step, const struct file_row *files, size_t n,
                                        int64_t *ret_missing, struct as_err *err);

/* The same for the output of an attempt, or of the rank in this seat of it (below 0: it has no
 * ranks). Nothing need be locked: it concerns no other attempt. */
AS_MUST_CHECK as_status store_file_put_log(struct tx *t, int64_t sweep_key, int64_t number,
                                           int64_t attempt, int64_t seat,
                                           const struct file_row *files, size_t n,
                                           int64_t *ret_missing, struct as_err *err);

/* Nothing of this sweep is forked any more: nothing is kept of its trials. */
AS_MUST_CHECK as_status store_file_drop_kept(struct tx *t, int64_t sweep_key, struct as_err *err);

#endif
