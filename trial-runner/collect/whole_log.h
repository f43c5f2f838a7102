/* All that an attempt prints, on disk, bounded: the beginning and the end are kept, and of what is
 * between them how much it was.
 *
 * Nothing is written until more was printed than the server's tail of the output holds (tail.h).
 * From then on a thread of its own writes, because the thread that reads pipes never waits for a
 * disk, and the one that speaks with the server may wait for that. If the disk is slower than the
 * program, bytes are left out. If the runner dies, what was written is there for the next one. */
#ifndef ASSAY_TRIAL_RUNNER_COLLECT_WHOLE_LOG_H
#define ASSAY_TRIAL_RUNNER_COLLECT_WHOLE_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/mem.h"
#include "base/status.h"

#define WHOLE_LOG_FOLDER "output"   /* in the attempt's folder: parts, named by where they begin */
#define WHOLE_LOG_NAME "output.log" /* likewise: the parts as one file (whole_log_join) */

struct whole_log;

/* Keep the output of an attempt below `folder`, which may not be made yet; borrowed. At most
 * max_bytes are on disk. Owned by the caller. AS_E_NOMEM. */
AS_MUST_CHECK as_status whole_log_create(const char *folder, int64_t max_bytes,
                                         struct whole_log **ret, struct as_err *err);
/* Writes nothing more. NULL is fine. */
void whole_log_free(struct whole_log *w);

/* Add output. Thread-safe; never waits for the disk. */
void whole_log_add(struct whole_log *w, const char *bytes, size_t len);

/* Wait until all that was added before is written, or cannot be. NULL is fine. */
void whole_log_flush(struct whole_log *w);

/* Does the folder of an attempt hold output, of this runner or of the one before? */
bool whole_log_exists(const char *folder);

/* Make one file of the parts, WHOLE_LOG_NAME: where something is left out between two of them, a
 * line says how many bytes. The trial may have changed anything in its folder: links are not
 * followed, and the file has at most max_bytes and these lines. *ret_path is owned by the caller.
 * AS_E_NOT_FOUND: there are no parts; AS_E_IO, AS_E_NOMEM. */
AS_MUST_CHECK as_status whole_log_join(const char *folder, int64_t max_bytes, char **ret_path,
                                       struct as_err *err);

#endif
