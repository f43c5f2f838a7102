/* What is counted for each name that a model is served under; it outlives the model's versions.
 * Thread-safe and without locks: each figure is exact, but figures that are read together may be
 * from slightly different times. */
#ifndef ASSAY_SERVE_STATS_H
#define ASSAY_SERVE_STATS_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

#define STATS_CODES 7    /* answers by status, see stats.c */
#define STATS_TIMES 14   /* bounds of the time of a request */
#define STATS_BATCHES 12 /* bounds of the rows that are computed together: 1, 2, 4, … */

struct stats {
    atomic_uint_fast64_t by_code[STATS_CODES];
    atomic_uint_fast64_t by_time[STATS_TIMES + 1]; /* not cumulative */
    atomic_uint_fast64_t time_us;
    atomic_uint_fast64_t rows;
    atomic_uint_fast64_t by_batch[STATS_BATCHES + 1];
    atomic_uint_fast64_t batch_rows;
    atomic_uint_fast64_t compute_us;
    atomic_uint_fast64_t loads, load_failures;
    atomic_uint_fast64_t queued; /* requests that wait now */
};

/* A request was answered with `status`, `ns` after its first line. */
void stats_request(struct stats *s, int status, int64_t ns);
/* `rows` of some requests were computed together in `ns`. */
void stats_batch(struct stats *s, size_t rows, int64_t ns);

/* Append the figures of n models in the text format of Prometheus. `version` is the one that is
 * served, "" for none. */
struct stats_of {
    const char *name, *version;
    const struct stats *stats;
};
void stats_write(const struct stats_of *models, size_t n, struct str *out);

#endif
