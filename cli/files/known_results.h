/* Files of known results: CSV with a line of headers, or JSON. The results become trials for
 * POST /v1/sweeps/{sweep}/trials.
 *
 * CSV columns
 *   NAME          a parameter or a metric of the sweep (an objective or a constrained metric)
 *   param.NAME    a parameter; an empty cell: the parameter is not active
 *   metric.NAME   any metric
 *   state         completed or failed
 *   reason        a text
 *   others        ignored if `assay export --csv` writes them, else AS_E_INVAL
 * A trial failed if a metric is not finite or if its state is failed. Rows with other states
 * (queued, cancelled, … and pruned, which was stopped early and did not fail) are skipped. If the
 * file has neither a metric nor a state, every row is a configuration to enqueue.
 *
 * JSON: {"items": […]}, or the list alone. An item is an object with "params", and optionally
 * "metrics", "state" and "reason" with the meaning above; other members are ignored. An export is
 * such a file. */
#ifndef ASSAY_CLI_FILES_KNOWN_RESULTS_H
#define ASSAY_CLI_FILES_KNOWN_RESULTS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"

#define KNOWN_RESULTS_MAX_BYTES (256 << 20)

struct known_trial {
    json_t *body; /* owned: params, and optionally metrics, state, reason */
    size_t place; /* its line in a CSV file, from 1; its index in a JSON list, from 0 */
};

struct known_results {
    char *name; /* name of the file, as given; all owned */
    struct known_trial *trials;
    size_t n;
    size_t n_skipped; /* rows without a result: queued, cancelled, … */
    bool is_csv;
    size_t cap;
};

/* Read the file and check all of it against the space of `sweep` (a Sweep of the API), so that no
 * trial of a file with an error is sent. AS_E_INVAL: "FILE:LINE:COLUMN: item 3: …", or for CSV
 * "FILE:LINE: column 'lr': …"; AS_E_NOT_FOUND, AS_E_IO, AS_E_TOO_LARGE, AS_E_NOMEM. */
AS_MUST_CHECK as_status known_results_read(const char *path, const json_t *sweep,
                                           struct known_results *ret, struct as_err *err);
/* The same for text in memory. `name` determines the format (.json or CSV); errors contain it. */
AS_MUST_CHECK as_status known_results_parse(const char *name, const char *text, size_t len,
                                            const json_t *sweep, struct known_results *ret,
                                            struct as_err *err);
void known_results_done(struct known_results *f);

/* Put "FILE:LINE: column 'lr': " or "FILE: item 3: " before the server's error about trial i.
 * Returns st. */
as_status known_results_explain(const struct known_results *f, size_t i, as_status st,
                                struct as_err *err);

#endif
