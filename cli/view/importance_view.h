/* Importance as bars: how much each parameter explains, and how sure that is. */
#ifndef ASSAY_CLI_VIEW_IMPORTANCE_VIEW_H
#define ASSAY_CLI_VIEW_IMPORTANCE_VIEW_H

#include <jansson.h>

#include "base/status.h"
#include "cli/view/terminal.h"
#include "cli/view/table.h"

#define IMPORTANCE_BAR_WIDTH 30

/* Append a bar of exactly `width` columns for a share in [0,1] with its interval: full as far as it
 * is sure (low), lighter up to the value, faint up to high, and blank after it. Values outside, and
 * NaN, are taken for the nearest end. "█▓░" where the terminal has them, "#=-" elsewhere. */
void importance_view_bar(double low, double value, double high, size_t width, bool unicode,
                         struct str *b);

/* A row per parameter of the API's Importance. On a terminal: name, total share, its interval,
 * first, top, bar of the total; in a pipe all that there is, numbers exactly. AS_E_NOMEM. Owned by
 * the caller. */
AS_MUST_CHECK as_status importance_view_table(const json_t *importance,
                                              const struct terminal *terminal, struct table **ret,
                                              struct as_err *err);

#endif
