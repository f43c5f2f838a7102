/* The trials of a sweep as `assay export --csv` prints them. */
#ifndef ASSAY_TESTS_CLI_VIEW_WHOLE_CSV_H
#define ASSAY_TESTS_CLI_VIEW_WHOLE_CSV_H

#include "cli/view/export_csv.h"

/* Appends the head and all rows to `b`. sweep, items: borrowed. */
AS_MUST_CHECK as_status whole_csv(const json_t *sweep, const json_t *items, struct str *b,
                                  struct as_err *err);

#endif
