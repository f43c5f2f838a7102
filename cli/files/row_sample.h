/* A part of the rows of a CSV table. */
#ifndef ASSAY_CLI_FILES_ROW_SAMPLE_H
#define ASSAY_CLI_FILES_ROW_SAMPLE_H

#include <stddef.h>

#include "base/status.h"
#include "data/formats/csv_dialect.h"

/* Copy the lines of the table at `path` to fd: what stands before the first row, and about
 * `share` of the rows, each drawn by its number, in their order. Equal files give equal
 * samples, packed or not.
 *   dialect  of the table, as far as it is known; borrowed
 *   ret      the rows that were copied
 * AS_E_NOT_FOUND, AS_E_IO, AS_E_INVAL, AS_E_TOO_LARGE, AS_E_NOMEM. */
AS_MUST_CHECK as_status row_sample_file(const char *path, const struct csv_dialect *dialect,
                                        double share, int fd, size_t *ret, struct as_err *err);

#endif
