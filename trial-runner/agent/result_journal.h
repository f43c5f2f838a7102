/* What a runner keeps on disk about its attempts, so that a result survives its death.
 *
 *   WORK/lock                                held while a runner uses WORK
 *   WORK/trials/SWEEP/NUMBER/ATTEMPT/        the attempt's folder:
 *     params.json job.json report.jsonl checkpoints/ artifacts/ data/
 *     result.json                            written, fsynced, when the child has ended: from then
 * on a runner started on WORK delivers it
 *
 * Folders without result.json belong to attempts that died with their runner: they are removed. */
#ifndef ASSAY_TRIAL_RUNNER_AGENT_RESULT_JOURNAL_H
#define ASSAY_TRIAL_RUNNER_AGENT_RESULT_JOURNAL_H

#include <jansson.h>
#include <sys/statvfs.h>

#include "trial-runner/agent/verdict.h"

#define RESULT_JOURNAL_ROOM_BYTES (UINT64_C(64) << 20)

/* The end of an attempt, as kept in result.json. */
struct trial_end {
    outcome outcome;
    int64_t exit_code;
    bool has_exit_code;
    char *reason;   /* owned; NULL: none */
    char *log;      /* the tail of output; owned */
    bool truncated; /* of the log */
};

void trial_end_done(struct trial_end *r);

/* Write dir/result.json durably. AS_E_IO; AS_E_NOMEM. */
AS_MUST_CHECK as_status result_journal_write(const char *dir, const struct trial_end *r,
                                             struct as_err *err);
/* r must be zeroed. AS_E_NOT_FOUND; AS_E_INVAL when the file is not what result_journal_write
 * writes. */
AS_MUST_CHECK as_status result_journal_read(const char *dir, struct trial_end *r,
                                            struct as_err *err);

/* Make WORK and WORK/trials, and hold its lock: *ret_fd keeps it until closed.
 * AS_E_CONFLICT when another runner holds it. */
AS_MUST_CHECK as_status result_journal_lock(const char *work, int *ret_fd, struct as_err *err);

/* Is there room for another attempt? Less than RESULT_JOURNAL_ROOM_BYTES or a twentieth of the file
 * system, whichever is less, or no inode is none. A folder that cannot be asked about has room. */
bool result_journal_has_room(const char *work);
bool result_journal_is_room(const struct statvfs *fs);

/* The attempt's folder; owned by the caller, NULL when memory is out. */
char *result_journal_dir(const char *work, const char *sweep, int64_t number, int64_t attempt);

/* Write dir/name anew. Not durable: a crash of the machine ends the attempt anyway. AS_E_IO,
 * AS_E_NOMEM. */
AS_MUST_CHECK as_status result_journal_write_json(const char *dir, const char *name,
                                                  const json_t *j, struct as_err *err);

/* Remove an attempt's folder and the parents that it leaves empty. Failures only leave files. */
void result_journal_remove(const char *work, const char *sweep, int64_t number, int64_t attempt);

/* One attempt found on disk with its result; r may be taken over by emptying it. */
typedef as_status (*result_journal_found_fn)(void *arg, const char *sweep, int64_t number,
                                             int64_t attempt, struct trial_end *r,
                                             struct as_err *err);

/* After result_journal_lock: call found() for each attempt with a result, remove every other. */
AS_MUST_CHECK as_status result_journal_recover(const char *work, result_journal_found_fn found,
                                               void *arg, struct as_err *err);

#endif
