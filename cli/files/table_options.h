/* The options that say how a table is written, of all commands that read one. */
#ifndef ASSAY_CLI_FILES_TABLE_OPTIONS_H
#define ASSAY_CLI_FILES_TABLE_OPTIONS_H

#include <stddef.h>

#include "base/status.h"
#include "data/formats/csv_dialect.h"

/* Parse --separator ("tab" and "\\t" are a tab), --decimal and --comment; NULL: the file shows it.
 * ret is untouched on failure. AS_E_USAGE: the message names the option, what was found and what
 * was expected. */
AS_MUST_CHECK as_status table_options_parse(const char *separator, const char *decimal,
                                            const char *comment, struct csv_dialect *ret,
                                            struct as_err *err);

/* Parse --missing: numbers with commas between them. NULL: there are none.
 *   ret  [most]: *ret_n are set; on failure they are not defined
 * AS_E_USAGE, as above. */
AS_MUST_CHECK as_status table_codes_parse(const char *list, size_t most, double *ret, size_t *ret_n,
                                          struct as_err *err);

#endif
