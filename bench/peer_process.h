/* A child process that answers lines with lines. */
#ifndef ASSAY_BENCH_PEER_PROCESS_H
#define ASSAY_BENCH_PEER_PROCESS_H

#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

#include "base/mem.h"
#include "base/status.h"

struct peer_process {
    pid_t pid; /* 0: none */
    int to;    /* its stdin */
    FILE *from;
    pid_t parent; /* who started it: a fork of that process must not use it */
};

/* Start argv[0], found in PATH. `quiet`: its stderr goes nowhere. Ignores SIGPIPE from now on.
 * AS_E_UNAVAILABLE: it does not start. AS_E_IO: no pipe. *ret is set on success. */
AS_MUST_CHECK as_status peer_process_start(char *const argv[], bool quiet, struct peer_process *ret,
                                           struct as_err *err);

/* Close its stdin and wait for its end. In a fork of the parent: forget it, nothing else. Accepts a
 * zeroed one. */
void peer_process_end(struct peer_process *c);

#endif
