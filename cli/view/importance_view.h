/* Importance as a table with bars: the share of the variance that each parameter explains, and its
 * interval. */
#ifndef ASSAY_CLI_VIEW_IMPORTANCE_VIEW_H
#define ASSAY_CLI_VIEW_IMPORTANCE_VIEW_H

#include <jansson.h>

#include "base/status.h"
#include "cli/view/terminal.h"
#include "cli/view/text_table.h"

#define IMPORTANCE_BAR_WIDTH 30

/* Append a bar of exactly `width` columns for a share in [0,1] with its interval: full up to `low`,
 * lighter up to `value`, faint up to `high`, and blank after it. A value outside of [0,1] counts as
 * the nearest end, NaN as 0. The bar uses "█▓░" if the terminal has them, otherwise "#=-". */
void importance_view_bar(double low, double value, double high, size_t width, bool unicode,
                         struct str *b);

/* A row per parameter of the API's Importance. On a terminal: name, total share, its interval,
 * first, top, and a bar of the total. In a pipe: all fields, with exact numbers. AS_E_NOMEM. Owned
 * by the caller. */
AS_MUST_CHECK as_status importance_view_table(const json_t *importance,
                                              const struct terminal *terminal, struct table **ret,
                                              struct as_err *err);

#endif
