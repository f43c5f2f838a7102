/* Predicts the rows of a file with a model, block by block: memory does not grow with the file.
 *
 * This thread reads blocks and writes predictions in their order; others convert the cells of a
 * block, compute, and format. Each of them has a predictor of its own. */
#ifndef ASSAY_CLI_PREDICT_PREDICT_FILE_H
#define ASSAY_CLI_PREDICT_PREDICT_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "data/formats/csv_dialect.h"
#include "model/file/model_file.h"

struct predict_opts {
    const char
        *data; /* .npy, .npz, .idx, .safetensors: an array; a folder, .png, .jpg: images; else
                       * CSV; "-": standard input */
    const char *output;         /* NULL or "-": standard output; .npy: an array; else CSV */
    struct csv_dialect written; /* of a CSV table: 0 where it is as the model's data set was */
    bool proba;                 /* CSV of classes: a column for each class, too */
    bool strict; /* an error: a category that training did not see, or a number that is missing in a
                  * column which lacked none */
    size_t threads;                                /* that compute, at least 1 */
    bool (*stop)(void);                            /* true: end with AS_E_CONFLICT; NULL: never */
    void (*on_progress)(void *arg, int64_t bytes); /* of the data, so far; NULL: not called */
    void *arg;
};

/* What there is to tell about a file that was predicted. */
struct predict_summary {
    size_t rows, unknown; /* cells whose category training did not see */
    char first[240];      /* the first of them: "line 3, column 'colour': 'pink'" */
    /* Of each feature of the model: how many numbers were missing where no row of the training data
     * lacks one, and what stood for them. [n_columns]; 0 without named columns. Owned. */
    size_t n_columns, *imputed;
    float *medians;
    char *ignored; /* the columns that are not the model's, "a, b"; NULL: none. Owned */
};

void predict_summary_done(struct predict_summary *s);

/* Predict all rows.
 *   on_ignored  called once before any row, if there are columns that are not the model's; or NULL
 *   ret         owned by the caller, on failure too: predict_summary_done()
 * AS_E_INVAL: the message has the file, the line (row), the column, what was found and what was
 * expected. AS_E_UNSUPPORTED: a model of text. AS_E_NOT_FOUND, AS_E_IO, AS_E_TOO_LARGE, AS_E_NOMEM.
 * The output takes its name at the end, so after a failure what was there before still is; standard
 * output and pipes have got the rows before the fault. */
AS_MUST_CHECK as_status predict_file(const struct model_file *f, const struct predict_opts *opts,
                                     void (*on_ignored)(const char *columns),
                                     struct predict_summary *ret, struct as_err *err);

#endif
