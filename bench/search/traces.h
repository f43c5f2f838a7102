/* Traces of sweeps: in memory, and as a CSV file that grows by whole sweeps.
 *
 *   problem,method,slots,seed,trial,regret,ms
 * and a comment `# peer VERSION` before the sweeps of a peer. trial counts from 1; a sweep's rows
 * are consecutive and appended in one write, so a killed run leaves no partial sweep. If a sweep
 * has two traces, the longer one counts. */
#ifndef ASSAY_BENCH_SEARCH_TRACES_H
#define ASSAY_BENCH_SEARCH_TRACES_H

#include <stddef.h>
#include <stdint.h>

#include "base/mem.h"
#include "base/status.h"

#define TRACE_NAME_SIZE 40

struct trace {
    char problem[TRACE_NAME_SIZE], method[TRACE_NAME_SIZE];
    size_t slots;
    uint64_t seed;
    size_t n;         /* trials */
    double *regret;   /* owned; best after 1..n trials */
    double *ms;       /* owned; of each suggestion */
    const char *peer; /* version of the peer that suggested, for traces_append; NULL: none */
};

struct traces {
    struct trace *all;
    size_t n, cap;
    char peer[64]; /* the last version found in a file; "": none */
};

void traces_done(struct traces *t);

/* Add every sweep of the file. A missing file counts as empty. AS_E_INVAL names the line. */
AS_MUST_CHECK as_status traces_load(struct traces *t, const char *path, struct as_err *err);

/* Append one sweep to the file, and create the file if it is missing. AS_E_IO, AS_E_NOMEM. */
AS_MUST_CHECK as_status traces_append(const char *path, const struct trace *one,
                                      struct as_err *err);

/* The longest trace of that sweep, or NULL. A view until the next load. */
const struct trace *traces_find(const struct traces *t, const char *problem, const char *method,
                                size_t slots, uint64_t seed);

#endif
