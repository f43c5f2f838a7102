/* Trials that leave predictions for an ensemble. */
#ifndef ASSAY_TESTS_SCHEDULER_LIFECYCLE_PREDICTIONS_H
#define ASSAY_TESTS_SCHEDULER_LIFECYCLE_PREDICTIONS_H

#include "tests/support/service.h"

#define PREDICTED_ROWS 600

/* Trial k of the sweep predicts correctly except in each row where (row + k) % 3 is 0. Its
 * predictions have `rows` rows; targets have PREDICTED_ROWS. For classes, trial 100 + k has the
 * same predictions and other targets: all classes are swapped. */
void leave_predictions(struct service *s, struct attempt_ref ref, int k, bool classification,
                       size_t rows);

/* Store a weights.npy of PREDICTED_ROWS, where row i weighs weights[i % 3]. */
struct file_row put_weights(struct service *s, const float weights[3]);

/* Store a buckets.json of the column "region": that of PREDICTED_ROWS whose row i has names[i %
 * 3]. */
struct file_row put_buckets(struct service *s, const char *const names[3]);
struct file_row put_text(struct service *s, const char *name, const char *text);

/* The same, with one more file of the trial, whose content is stored. NULL: none. */
void leave_predictions_and(struct service *s, struct attempt_ref ref, int k, bool classification,
                           size_t rows, const struct file_row *more);

/* The same with at most four more files. */
void leave_predictions_with(struct service *s, struct attempt_ref ref, int k, bool classification,
                            size_t rows, const struct file_row *more, size_t n_more);

/* The same as leave_predictions(), of classes, with test files too: the trial's test predictions
 * are right except in each row where (row + k) % 4 is 0. `without`: it has no test_targets.npy. */
void leave_test_predictions(struct service *s, struct attempt_ref ref, int k, bool without);

#endif
