/* Cuts a CSV table in two by a column that says which rows are test rows. */
#ifndef ASSAY_CLI_FILES_TEST_CUT_H
#define ASSAY_CLI_FILES_TEST_CUT_H

#include <stddef.h>

#include "base/status.h"
#include "data/formats/csv_dialect.h"

struct test_cut {
    size_t n_train, n_test; /* rows */
};

/* Copy the lines of the table at `path` to the files train_fd and test_fd. What stands before the
 * first row (header, comments) is in both; the column stays. A row is a test row if its cell is
 *   1, true, t, yes, y, test, testing
 * in any case, and trains if it is
 *   0, false, f, no, n, train, training, val, valid, validation, dev, held-out, held_out, holdout
 *   dialect  of the table, as far as it is known; borrowed
 *   column   its name, or its index where there is no header
 * AS_E_INVAL: no such column; another word; one part has no row; the messages have path and line.
 * AS_E_NOT_FOUND, AS_E_IO, AS_E_TOO_LARGE, AS_E_NOMEM. */
AS_MUST_CHECK as_status test_cut_file(const char *path, const struct csv_dialect *dialect,
                                      const char *column, int train_fd, int test_fd,
                                      struct test_cut *ret, struct as_err *err);

#endif
