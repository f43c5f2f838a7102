/* Models that assay-train stored, beside the predictions that it recorded. A process of its own
 * trains each; the programs that include this do not link the trainer. A fault fails the running
 * test. */
#ifndef ASSAY_TESTS_MODEL_PREDICT_PREDICTED_H
#define ASSAY_TESTS_MODEL_PREDICT_PREDICTED_H

#include <stddef.h>

#include "data/dataset_read.h"
#include "model/file/model_file.h"
#include "tests/support/trained.h"

#define PREDICTED_MOST 4

extern struct child predicted_child[PREDICTED_MOST]; /* one for each model */

/* The fixture of each test. */
void predicted_setup(void);
void predicted_teardown(void);

/* Train model i: trained_model() in its child. */
void predicted_train(size_t i, const struct dataset_paths *paths, dataset_format format,
                     const char *target, dataset_task task, const char *fields);

/* The model file of model i; owned by the caller. */
struct model_file *predicted_read(size_t i);

struct predicted_rows {
    size_t n, width;
    float *x; /* [n, width], as predictor_run() takes them */
};

void predicted_rows_done(struct predicted_rows *r);

/* The held-out rows, in the order of the recorded predictions: the split is a function of its seed
 * and the number of rows. */
void predicted_held_rows(const struct model_file *f, const struct dataset_paths *paths,
                         struct predicted_rows *ret);

/* [rows, columns]: the predictions that the trainer of model i recorded; owned by the caller. */
float *predicted_recorded(size_t i, size_t rows, size_t columns);

void predicted_same_bits(const float *got, const float *expected, size_t n, const char *how);

/* The model gives these predictions, [rows->n, columns], however the rows are cut. */
void predicted_check(const struct model_file *f, const struct predicted_rows *rows,
                     const float *expected, size_t columns);

#endif
