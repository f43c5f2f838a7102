/* What an `assay up` that was killed left behind on its data folder. Its children get a signal from
 * the kernel when it dies; this waits until they are gone, and insists. Call with the folder's lock
 * held. */
#ifndef ASSAY_CLI_UP_LEFTOVER_H
#define ASSAY_CLI_UP_LEFTOVER_H

#include "base/status.h"

/* The children of a predecessor by its notes ("NAME PID START" lines; pid and start time together
 * name one process, so a pid that was given away again is left alone): first, all at once, those
 * that are not postgres, then postgres. AS_E_TIMEOUT when one stays.
 */
AS_MUST_CHECK as_status leftover_stop(const char *notes_path, struct as_err *err);

/* The postmaster that serves the cluster folder by its postmaster.pid, if it is one: a process that
 * runs a program named postgres with this folder on its command line. AS_E_TIMEOUT when it stays.
 */
AS_MUST_CHECK as_status leftover_stop_postmaster(const char *cluster, struct as_err *err);

#endif
