/* The rows to predict, from a CSV table, an array or images, one block after the other. */
#ifndef ASSAY_CLI_PREDICT_INPUT_H
#define ASSAY_CLI_PREDICT_INPUT_H

#include "cli/predict/input_columns.h"
#include "cli/predict/images.h"
#include "data/formats/csv_blocks.h"
#include "model/file/model_file.h"

/* Rows as they were read; a zeroed struct is empty and keeps its memory from one to the next. */
struct predict_block {
    struct csv_block csv; /* a table: its records */
    bool header;          /* the first of them is the header */
    float *raw;           /* an array: [rows, n_features], in the model's order */
    char *const *files;   /* images: [rows] their paths; views of the input */
    size_t rows, first;   /* an array, images: how many, and the number of the first, from 0 */
};

void predict_block_done(struct predict_block *b);

struct predict_input;

/* Open the data and match its columns. The first block is read. `written`: how a table is written;
 * where it says 0, as the model's data set was, but for the decimal sign of another separator,
 * which the first records show. Errors as predict_file(). */
AS_MUST_CHECK as_status predict_input_open(const struct model_file *f, const char *path,
                                           const struct csv_dialect *written,
                                           struct predict_input **ret, struct as_err *err);
void predict_input_free(struct predict_input *in);
AS_DEFINE_FREEP(struct predict_input, predict_input_free)

/* Views of in. */
const struct predict_columns *predict_input_columns(const struct predict_input *in);
const char *predict_input_name(const struct predict_input *in); /* of the file, for messages */
const struct csv *predict_input_table(const struct predict_input *in); /* NULL: no table */
bool predict_input_has_images(const struct predict_input *in);

/* The next rows; *ret_bytes more bytes of the file were read. AS_E_EXHAUSTED at the end. */
AS_MUST_CHECK as_status predict_input_next(struct predict_input *in, struct predict_block *ret,
                                           int64_t *ret_bytes, struct as_err *err);

#endif
