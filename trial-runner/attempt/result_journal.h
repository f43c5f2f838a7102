/* What a runner keeps on disk about its attempts, so that a result survives its death.
 *
 *   WORK/lock                                held while a runner uses WORK
 *   WORK/secret                              what makes it the same runner for the server
 *                                            (identity.h)
 *   WORK/trials/SWEEP/NUMBER/ATTEMPT/        the attempt's folder (a rank's: ATTEMPT.SEAT):
 *     params.json job.json report.jsonl checkpoints/ artifacts/ data/
 *     output/                              what it printed (whole_log.h)
 *     result.json                          written and fsynced when the child has ended; from then
 *                                          on, any runner that starts on WORK delivers it
 *
 * A folder without result.json belongs to an attempt that died with its runner: its output is
 * delivered, if more of it was kept than the server has, and it is removed. */
#ifndef ASSAY_TRIAL_RUNNER_ATTEMPT_RESULT_JOURNAL_H
#define ASSAY_TRIAL_RUNNER_ATTEMPT_RESULT_JOURNAL_H

#include <jansson.h>
#include <sys/statvfs.h>

#include "trial-runner/attempt/attempt_id.h"
#include "trial-runner/process/verdict.h"

#define RESULT_JOURNAL_ROOM_BYTES (UINT64_C(64) << 20)

/* The end of an attempt, as stored in result.json. */
struct trial_end {
    outcome outcome;
    int64_t exit_code;
    bool has_exit_code;
    char *reason;      /* owned; NULL: none */
    char *log;         /* the tail of output; owned */
    bool truncated;    /* of the log */
    bool has_ran;      /* false only in results that an older runner wrote */
    int64_t ran_ms;    /* how long the process ran, by this machine's monotonic clock */
    int64_t waited_ms; /* before that it waited for a slot (agent/ahead.c) */
    int64_t world; /* of a rank: the epoch in which it led its gang, so that the result is its to
                     * send; 0: no rank */
};

void trial_end_done(struct trial_end *r);

/* Write dir/result.json whole. Not `durably`: a crash of the machine may lose it, the end of this
 * process not. AS_E_IO; AS_E_NOMEM. */
AS_MUST_CHECK as_status result_journal_write(const char *dir, const struct trial_end *r,
                                             bool durably, struct as_err *err);
/* Read dir/result.json. r must be zeroed. AS_E_NOT_FOUND; AS_E_INVAL: result_journal_write did not
 * write this file. */
AS_MUST_CHECK as_status result_journal_read(const char *dir, struct trial_end *r,
                                            struct as_err *err);

/* Create WORK and WORK/trials and lock WORK. The lock is held until *ret_fd is closed.
 * AS_E_CONFLICT: another runner holds it. */
AS_MUST_CHECK as_status result_journal_lock(const char *work, int *ret_fd, struct as_err *err);

/* Is there room on the disk for another attempt? There is none if less than
 * RESULT_JOURNAL_ROOM_BYTES and less than a twentieth of the file system is free, or no inode. A
 * folder whose file system cannot be queried has room. */
bool result_journal_has_room(const char *work);
bool result_journal_is_room(const struct statvfs *fs);

/* Returns the path of the attempt's folder, owned by the caller, or NULL if memory is out. */
char *result_journal_dir(const char *work, const struct attempt_id *id);

/* Write dir/name, replacing its content. It is not durable, because a crash of the machine ends the
 * attempt anyway. AS_E_IO, AS_E_NOMEM. */
AS_MUST_CHECK as_status result_journal_write_json(const char *dir, const char *name,
                                                  const json_t *j, struct as_err *err);

/* Remove an attempt's folder, and its parents if they are empty. A failure leaves files and is not
 * reported. */
void result_journal_remove(const char *work, const struct attempt_id *id);

/* Called for an attempt that was found on disk with its result; or with output alone, then r's
 * outcome is OUTCOME_NONE. It may move r away and empty it. */
typedef as_status (*result_journal_found_fn)(void *arg, const struct attempt_id *id,
                                             struct trial_end *r, struct as_err *err);

/* After result_journal_lock: call found() for each attempt with a result or output, and remove all
 * others. */
AS_MUST_CHECK as_status result_journal_recover(const char *work, result_journal_found_fn found,
                                               void *arg, struct as_err *err);

#endif
