/* Results from elsewhere, in a file: CSV with a line of headers, or JSON. They become the trials
 * that POST /v1/sweeps/{sweep}/trials takes.
 *
 * CSV: a column is named by a parameter or by a metric of the sweep (an objective or a constrained
 * one); "param.NAME" and "metric.NAME" name one outright, any metric. "state" is completed or
 * failed, "reason" a text. What else `assay export --csv` writes is passed over. An empty cell of a
 * parameter: it is not active. A result that is not finite, or a state of failed or pruned: the
 * trial failed. Rows of other states (queued, cancelled, …) are passed over. In a file that has no
 * metric and no state at all, every row is a configuration to enqueue.
 *
 * JSON: {"items": […]} or the list alone, of objects with "params", and "metrics", "state",
 * "reason" as they stand above; other members are passed over. An export is such a file. */
#ifndef ASSAY_CLI_FILES_KNOWN_RESULTS_H
#define ASSAY_CLI_FILES_KNOWN_RESULTS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"

#define KNOWN_RESULTS_MAX_BYTES (256 << 20)

struct known_trial {
    json_t *body; /* owned: params, and metrics, state, reason where there are */
    size_t place; /* its line in a CSV file, from 1; its place in a JSON list, from 0 */
};

struct known_results {
    char *name; /* as given; all owned */
    struct known_trial *trials;
    size_t n;
    size_t n_skipped; /* rows without a result: queued, cancelled, … */
    bool is_csv;
    size_t cap;
};

/* Read and check all of it against the space of `sweep` (of the API), so that nothing is sent of a
 * file with an error. AS_E_INVAL: "FILE:LINE:COLUMN: item 3: …", or for CSV "FILE:LINE: column
 * 'lr': …"; AS_E_NOT_FOUND, AS_E_IO, AS_E_TOO_LARGE, AS_E_NOMEM. */
AS_MUST_CHECK as_status known_results_read(const char *path, const json_t *sweep,
                                           struct known_results *ret, struct as_err *err);
/* The same for text in memory; `name` tells which kind it is, and stands in errors. */
AS_MUST_CHECK as_status known_results_parse(const char *name, const char *text, size_t len,
                                            const json_t *sweep, struct known_results *ret,
                                            struct as_err *err);
void known_results_done(struct known_results *f);

/* Put "FILE:LINE: column 'lr': " or "FILE: item 3: " before the server's error about trial i.
 * Answers st. */
as_status known_results_explain(const struct known_results *f, size_t i, as_status st,
                                struct as_err *err);

#endif
