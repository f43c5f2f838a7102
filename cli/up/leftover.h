/* Stops the processes that a killed `assay up` left behind on its data folder. The kernel sends
 * them a signal when their parent dies; this code waits until they have ended and sends stronger
 * signals if needed. Call it with the folder's lock held. */
#ifndef ASSAY_CLI_UP_LEFTOVER_H
#define ASSAY_CLI_UP_LEFTOVER_H

#include "base/status.h"

/* Stop the children of the previous `assay up` by its notes, lines of "NAME PID START". A process
 * must match pid and start time, because the kernel reuses pids. First all programs at once, then
 * postgres. AS_E_TIMEOUT when a process does not end. */
AS_MUST_CHECK as_status leftover_stop(const char *notes_path, struct as_err *err);

/* Stop the postmaster of the cluster folder by its postmaster.pid. The process must run a program
 * named postgres with this folder on its command line. AS_E_TIMEOUT when it does not end. */
AS_MUST_CHECK as_status leftover_stop_postmaster(const char *cluster, struct as_err *err);

#endif
