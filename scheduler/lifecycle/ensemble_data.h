/* The predictions and targets of trials, as an ensemble needs them. */
#ifndef ASSAY_SCHEDULER_LIFECYCLE_ENSEMBLE_DATA_H
#define ASSAY_SCHEDULER_LIFECYCLE_ENSEMBLE_DATA_H

#include <jansson.h>

#include "base/mem.h"
#include "base/status.h"
#include "scheduler/store/ensemble_store.h"
#include "scheduler/store/store.h"
#include "search/score.h"

#define ENSEMBLE_MAX_VALUES ((size_t)1 << 27) /* of all candidates together: 512 MiB of float32 */

struct ensemble_data {
    const struct ensemble_candidate *candidates; /* borrowed */
    size_t rows, outputs;
    int64_t *classes; /* owned; NULL for numbers */
    float *targets;   /* owned; NULL for classes */
    float *weights;   /* owned: [rows]; NULL: all rows count alike */
    /* For bucketing, owned: the bucket of each row, NULL: one holds all; [n_buckets] the values. */
    uint32_t *buckets;
    json_t *bucket_values;
    size_t n_buckets;
    char *bucket_column;
    float **taken; /* owned, each owned: predictions of the usable candidates */
    size_t *index; /* owned: the candidate of each of them */
    size_t n_taken;
    size_t n_no_room; /* candidates that ENSEMBLE_MAX_VALUES left out */
};

/* Read the targets and weights of the first candidate and the predictions of all. A candidate that
 * is not usable is left out and logged.
 *   ret  zeroed by the caller, who calls ensemble_data_done() in any case; candidates are borrowed
 * AS_E_INVAL, AS_E_TOO_LARGE, …: the targets or weights are wrong; the message names the file.
 * AS_E_UNAVAILABLE, AS_E_NOMEM. Memory: ENSEMBLE_MAX_VALUES float32, and the targets. */
AS_MUST_CHECK as_status ensemble_data_read(struct store *db,
                                           const struct ensemble_candidate *candidates, size_t n,
                                           struct ensemble_data *ret, struct as_err *err);

/* Read the buckets of the rows.
 *   column   the column whose values they are: of the first candidate that left them in
 *            buckets.json, else from the data set. NULL: the column of the first candidate that
 *            left one; without any all rows stay in one bucket
 *   is_test  the rows are those of the test set
 * AS_E_INVAL: a file is wrong. AS_E_UNAVAILABLE, AS_E_NOMEM, and the errors of
 * ensemble_column_read(). */
AS_MUST_CHECK as_status ensemble_data_read_buckets(struct store *db, size_t n, const char *column,
                                                   bool is_test, struct ensemble_data *d,
                                                   struct as_err *err);

/* The same from the text of the file, for d->rows. AS_E_INVAL, AS_E_NOMEM. */
AS_MUST_CHECK as_status ensemble_data_parse_buckets(const char *text, size_t len,
                                                    struct ensemble_data *d, struct as_err *err);
void ensemble_data_done(struct ensemble_data *d);

/* A view of it. */
struct score_truth ensemble_data_truth(const struct ensemble_data *d);

#endif
