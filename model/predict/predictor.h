/* Predicts with a model file: rows as they are in a data set go in, predictions come out.
 *
 * A row is what dataset_load() gives: a number for each feature of model_file_data() in the order
 * of its file, without targets. A missing number is NaN; a category is its index in the column's
 * values (n_values: another one, n_values + 1: missing). Images are their pixels, channels last, in
 * the unit of the data set's files. predictor_cell() makes such numbers of a cell.
 *
 * A prediction is the probability of each class, or a number for each target in its own unit. The
 * members' predictions are combined as the model file says (model_file.h: `combine`), in double and
 * in the order of the members.
 *
 * Bits. On a machine with AVX2 the prediction of a row depends on the row alone, not on the rows
 * beside it or how rows are cut into calls. It has the same bits as the trainer's predictions.npy,
 * if that was written by the CPU of the same kind of machine.
 *
 * Threads. A predictor is for one thread at a time; each thread makes its own of one model file. */
#ifndef ASSAY_MODEL_PREDICT_PREDICTOR_H
#define ASSAY_MODEL_PREDICT_PREDICTOR_H

#include <stdbool.h>
#include <stddef.h>

#include "base/mem.h"
#include "base/status.h"
#include "model/file/model_file.h"

struct predictor;

/* Make the networks of all members and set their weights.
 *   f         borrowed until predictor_free()
 *   max_rows  rows that go through the networks at once, at most; 0: chosen by their size
 *   ret       owned by the caller
 * AS_E_UNSUPPORTED: the model continues text, which has no rows; or a member is trees, and
 * XGBoost's library is not there. AS_E_INVAL: a tensor is not there
 * or does not fit the member's document, or the document does not fit the data set. AS_E_NOMEM,
 * AS_E_TOO_LARGE. */
AS_MUST_CHECK as_status predictor_create(const struct model_file *f, size_t max_rows,
                                         struct predictor **ret, struct as_err *err);
void predictor_free(struct predictor *p);
AS_DEFINE_FREEP(struct predictor, predictor_free)

size_t predictor_inputs(const struct predictor *p);  /* numbers in a row */
size_t predictor_outputs(const struct predictor *p); /* classes, or targets */

/* Predict rows.
 *   raw  [rows, predictor_inputs()], borrowed
 *   ret  [rows, predictor_outputs()]
 * AS_E_INVAL: a value that predictor_check() refuses; the message has the row, from 0. */
AS_MUST_CHECK as_status predictor_run(struct predictor *p, const float *raw, size_t rows,
                                      float *ret, struct as_err *err);

/* ---- columns ---- */

/* The name of a column for messages: the header's, or the index as text. `buf` has 24 bytes or
 * more; the returned text may be elsewhere. */
const char *predictor_column(const struct predictor *p, size_t column, char *buf, size_t size);

/* The numbers in a row for the text of a cell (without quotes), as data sets are read: empty, NA,
 * N/A, NaN, null, ? and the codes of the data set (`missing`) are missing. A category that training
 * did not see becomes "another one".
 *   column  the first feature of a column of the file
 *   ret     [dataset_column_width()]: one number, of dates and texts several
 * AS_E_INVAL: no number or one that is not finite in a column of numbers, no date in one of dates;
 * a missing number or date in a column that had none in the data set, if the model is from before
 * 2026-11-28 or its columns have no names. The message has the column, what was found and what was
 * expected. */
AS_MUST_CHECK as_status predictor_cell(const struct predictor *p, size_t column, const char *text,
                                       size_t len, float *ret, struct as_err *err);

/* Does the model take this value as "another one": a category that is not among those that training
 * saw, or a missing one in a column that had none? */
bool predictor_is_unknown(const struct predictor *p, size_t column, float value);

/* Is this a number that is missing in a column which had none in the data set? What the members
 * learnt as the column's median stands for it. */
bool predictor_is_imputed(const struct predictor *p, size_t column, float value);
/* That median, of the first of them; NaN: of no such column, or not known. */
float predictor_median(const struct predictor *p, size_t column);

/* May a row have this value here? AS_E_INVAL as for predictor_cell(); also for a category that is
 * no whole number from 0 to n_values + 1. */
AS_MUST_CHECK as_status predictor_check(const struct predictor *p, size_t column, float value,
                                        struct as_err *err);

#endif
