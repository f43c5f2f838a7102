/* Data sets as statements return them. Conventions: "Rows" in scheduler/README.md. */
#ifndef ASSAY_SCHEDULER_ROWS_DATASET_ROW_H
#define ASSAY_SCHEDULER_ROWS_DATASET_ROW_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "data/dataset.h"

struct dataset_file_row {
    const char *role; /* table, features, targets; test, test_features, test_targets */
    const char *sha256;
    int64_t size;
};

struct dataset_row {
    const char *name;
    const char *format; /* csv, npy, … */
    const char *task;   /* classification, regression, language_modeling */
    const char *input;  /* table, image, tokens */
    const char *target; /* JSON: a string or a whole number; NULL */
    int64_t n_rows, n_features, n_outputs;
    int64_t test_rows;                     /* 0: there are none */
    const char *train_sha256;              /* with test rows: the digest without them; NULL */
    const char *classes;                   /* JSON list of strings; NULL except for
                                              classification */
    const char *options, *image, *columns; /* JSON; NULL */
    const char *sha256;
    struct dataset_file_row files[4];
    size_t n_files;
    const char *description;
    int64_t created_ms;
    /* In a claim: the data set as it was when the sweep was created, if the name holds other
     * content now. NULL: unchanged. */
    const char *expected_sha256;
    int64_t expected_rows, expected_features;
};

struct dataset_page {
    struct dataset_row *rows;
    size_t n;
    const char *next_cursor;
};

/* Convert the row to a description of the data; owned by the caller (dataset_info_done).
 * AS_E_INVAL: the row has a form that this version does not write. AS_E_NOMEM. */
AS_MUST_CHECK as_status dataset_row_info(const struct dataset_row *d, struct dataset_info *ret,
                                         struct as_err *err);

#endif
