/* The writes of a running attempt: measurements, output, files, and its end.
 *
 * Every write is fenced: it counts only if the attempt is the trial's latest, and the trial runs,
 * or is in the queue because the attempt was declared lost.
 * The fence compares attempt numbers, never clocks. `by` is borrowed; NULL: a runner without a
 * secret. Every function:
 *   AS_E_NOT_FOUND    no such sweep or trial
 *   AS_E_DENIED       the attempt is another runner's, or a client's
 *   AS_E_STALE        another attempt is current, or the trial ended; nothing was changed
 *   AS_E_UNAVAILABLE  the database is away; repeat, it is safe */
#ifndef ASSAY_SCHEDULER_LIFECYCLE_ATTEMPTS_H
#define ASSAY_SCHEDULER_LIFECYCLE_ATTEMPTS_H

#include "base/arena.h"
#include "base/status.h"
#include "scheduler/lifecycle/attempt_rules.h"
#include "scheduler/rows/file_row.h"
#include "scheduler/rows/runner_row.h"
#include "scheduler/rows/series_row.h"
#include "scheduler/rows/trial_row.h"
#include "scheduler/store/store.h"

#define LOG_TAIL_MAX 65536 /* bytes of the kept tail */

/* The answer to a report. */
struct attempt_recorded {
    int64_t points;                        /* that are new */
    const struct directive_row *directive; /* what early stopping asks for; NULL: to go on */
};

/* Record a report, in one transaction. A point that exists for (trial, attempt, step, metric) stays
 * unchanged. The last text of each name is kept, for at most TRIAL_NOTES_MAX names. A report that
 * reaches a rung is decided about in the same transaction (rungs.h). `ret` lives in `a`.
 * AS_E_INVAL: a step, or the name of a metric; with pointer (/notes/NAME): the name of a note, or a
 * text of more than TRIAL_NOTE_TEXT_MAX characters. AS_E_TOO_LARGE past MEASUREMENTS_MAX. */
AS_MUST_CHECK as_status attempt_record(struct store *db, struct arena *a,
                                       const struct attempt_ref *ref,
                                       const struct attempt_writer *by,
                                       const struct attempt_report *report,
                                       struct attempt_recorded *ret, struct as_err *err);

/* Record a report that has points alone, for a caller that early stopping never asks for anything:
 * *ret_recorded is the number of new points. */
AS_MUST_CHECK static inline as_status attempt_measure(struct store *db,
                                                      const struct attempt_ref *ref,
                                                      const struct attempt_writer *by,
                                                      const struct measurement *points, size_t n,
                                                      int64_t *ret_recorded, struct as_err *err)
{
    AS_AUTO(arena_done) struct arena a = {0};
    const struct attempt_report report = {.points = points, .n_points = n};
    struct attempt_recorded got;
    as_status st = attempt_record(db, &a, ref, by, &report, &got, err);
    if (st == AS_OK)
        *ret_recorded = got.points;
    return st;
}

/* Replace the stored tail of the output. `text` is UTF-8, borrowed. AS_E_TOO_LARGE, AS_E_INVAL. */
AS_MUST_CHECK as_status attempt_log(struct store *db, const struct attempt_ref *ref,
                                    const struct attempt_writer *by, const char *text,
                                    bool truncated, struct as_err *err);

/* Replace what is stored of the use of its machine by the attempt, or by the rank that writes
 * (usage_row.h). It concerns no other attempt, so that no fence is asked: what a lost attempt used
 * is true too. `usage` is JSON that was checked. */
AS_MUST_CHECK as_status attempt_usage(struct store *db, const struct attempt_ref *ref,
                                      const struct attempt_writer *by, const char *usage,
                                      struct as_err *err);

/* FILE_KEPT: what was in the checkpoint folder at a rung, for forks (attempt_keep()). FILE_LOG: all
 * that the attempt printed, or the rank that writes. Like its use of the machine this concerns no
 * other attempt, and is true of a lost one too: no fence is asked. */
typedef enum file_kind { FILE_ARTIFACT, FILE_CHECKPOINT, FILE_KEPT, FILE_LOG } file_kind;

/* Replace the set of files of one kind, not FILE_KEPT. Paths are relative, without "." and ".."
 * parts, and unique. AS_E_INVAL with pointer (/files/3/path): a path, digest or size.
 * AS_E_UNSUPPORTED with pointer: content with that digest and size is not stored; upload it first
 * (the API answers 422). */
AS_MUST_CHECK as_status attempt_files(struct store *db, const struct attempt_ref *ref,
                                      const struct attempt_writer *by, file_kind kind,
                                      const struct file_row *files, size_t n, struct as_err *err);

/* Replace what is kept of the trial at this step, until the trial has a result there. Errors as
 * attempt_files(). */
AS_MUST_CHECK as_status attempt_keep(struct store *db, const struct attempt_ref *ref,
                                     const struct attempt_writer *by, int64_t step,
                                     const struct file_row *files, size_t n, struct as_err *err);

/* The checkpoint that the attempt was given cannot be used, because its content is gone or damaged:
 * the trial has none any more and begins again, and an event says why. */
AS_MUST_CHECK as_status attempt_lost_checkpoint(struct store *db, const struct attempt_ref *ref,
                                                const struct attempt_writer *by, const char *why,
                                                struct as_err *err);

/* End the attempt. What early stopping decided about it stands, however it ends. Else a trial that
 * completes with a value of an objective or a constrained metric that
 * is not finite fails. With finite ones, the trial is marked as feasible or not. A late end counts
 * while its attempt is the latest, also if the trial is in the queue again. A repeat with the same
 * outcome and values returns the trial as it is now. `ret` lives in `a`. Errors with pointer:
 *   AS_E_INVAL        a metric's name (/metrics/NAME)
 *   AS_E_UNSUPPORTED  it completes without a value of a metric that the sweep requires
 *                     (/metrics/NAME), or outcome timeout after less than trial_timeout (/ran_ms),
 *                     or outcome paused without being told so (/outcome); nothing was changed (the
 *                     API answers 422)
 *   AS_E_CONFLICT     another value is recorded (/metrics/NAME); nothing was changed */
AS_MUST_CHECK as_status attempt_complete(struct store *db, struct arena *a,
                                         const struct attempt_ref *ref,
                                         const struct attempt_writer *by,
                                         const struct completion *c, struct trial_row *ret,
                                         struct as_err *err);

#endif
