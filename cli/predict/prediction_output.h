/* Where predictions go: CSV, or an array in a .npy file. */
#ifndef ASSAY_CLI_PREDICT_PREDICTION_OUTPUT_H
#define ASSAY_CLI_PREDICT_PREDICTION_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/file.h"
#include "base/str.h"
#include "model/file/model_file.h"

/* Zeroed: not open. Formatting only reads it, so threads may share it. */
struct predict_output {
    const struct dataset_info *info; /* borrowed, as `combine` */
    const struct model_combine *combine;
    bool npy, proba, files;
    size_t columns; /* numbers of a prediction */
    size_t rows;    /* written so far */
    char **labels;  /* classes as cells of CSV; owned */
    struct file_output file;
};

/* Open the output of a model's predictions and begin it. `files`: rows have names, which are the
 * first column of CSV. AS_E_INVAL: .npy on a pipe or device; AS_E_IO, AS_E_NOMEM. */
AS_MUST_CHECK as_status predict_output_open(struct predict_output *o,
                                            const struct model_file *model, const char *path,
                                            bool proba, bool files, struct as_err *err);
void predict_output_done(struct predict_output *o);

/* Append rows of predictions [rows, columns] as they stand in the output. The caller checks b.
 *   files  [rows] their names; NULL unless the output was opened for these */
void predict_output_format(const struct predict_output *o, const float *predictions,
                           char *const *files, size_t rows, struct str *b);

/* Write what was formatted of so many rows. AS_E_IO. */
AS_MUST_CHECK as_status predict_output_write(struct predict_output *o, const struct str *b,
                                             size_t rows, struct as_err *err);

/* Finish the output and give it its name. AS_E_IO. */
AS_MUST_CHECK as_status predict_output_commit(struct predict_output *o, struct as_err *err);

#endif
