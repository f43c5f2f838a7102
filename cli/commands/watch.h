/* Follows a sweep to its end: the live display while it runs, the summary when it has ended. */
#ifndef ASSAY_CLI_COMMANDS_WATCH_H
#define ASSAY_CLI_COMMANDS_WATCH_H

#include <stdint.h>

#include "cli/session/session.h"

struct watch_opts {
    int64_t timeout_ms; /* 0: none */
    int64_t top;        /* rows of the table at the end; below 0: no summary at the end */
    int64_t look_ms;    /* after so long return EXIT_TIMEOUT, in silence; 0: never */
    int64_t ends_ms; /* Unix time at which it ends at the latest, for the time left; 0: unknown */
};

/* Show the progress of the sweep `id` on stderr until it ends, then the best trials, the best
 * single model and the ensemble on stdout. With s->json instead: a line of JSON on stdout for each
 * change, and a last one with "best" and "ensemble". The server may be unreachable for up to ten
 * minutes. Prints its own errors. Returns the exit code, which depends on the end of the sweep. */
int watch_sweep(struct session *s, const char *id, const struct watch_opts *opts);

#endif
