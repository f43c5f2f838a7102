/* Rows of a test file that are copies of rows that a model learns from: they say nothing about new
 * rows, and a file that is given as both is a slip that no figure shows. */
#ifndef ASSAY_DATA_TEST_COPIES_H
#define ASSAY_DATA_TEST_COPIES_H

#include <stddef.h>

#include "base/status.h"
#include "data/dataset.h"

/* Count the rows of `test` that have the inputs and targets of a row of `table`, as texts without
 * blanks around them. Rows without a target are none in either file.
 *   target, o   as for dataset_inspect(); columns that o leaves out are not compared. Borrowed
 *   ret_rows    rows of the test file
 *   ret_copies  how many of them are copies; both untouched on failure
 * Errors are those of csv_table_open(); AS_E_INVAL: an input lacks in the test file. The message
 * begins with the file's name. Memory for a hash of each row of the table. */
AS_MUST_CHECK as_status test_copies_count(const char *table, const char *test, const char *target,
                                          const struct dataset_options *o, size_t *ret_rows,
                                          size_t *ret_copies, struct as_err *err);

#endif
