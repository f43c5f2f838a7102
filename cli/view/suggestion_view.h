/* Suggestions for people and for shells: the parameters to try, and the end of the lease. */
#ifndef ASSAY_CLI_VIEW_SUGGESTION_VIEW_H
#define ASSAY_CLI_VIEW_SUGGESTION_VIEW_H

#include <jansson.h>

#include "base/status.h"
#include "base/str.h"
#include "cli/view/pairs.h"

/* Append lines for `eval` of a POSIX shell; all values are quoted:
 *   ASSAY_SWEEP='digits'  ASSAY_NUMBER=3  ASSAY_ATTEMPT=1  ASSAY_SEED='81'
 *   ASSAY_PARAMS='{"lr":0.01}'                the parameters as JSON
 *   ASSAY_PARAM_lr='0.01'                     one for each parameter
 *   unset ASSAY_PARAM_momentum                one for each that is not active, so that no value of
 *                                             the previous suggestion remains
 * A character that a shell does not allow in a name becomes _. AS_E_INVAL when two parameters would
 * be the same variable; AS_E_NOMEM. */
AS_MUST_CHECK as_status suggestion_view_shell(const char *sweep, const json_t *suggestion,
                                              struct str *b, struct as_err *err);

/* Rows: trial, param.NAME…, lease. */
void suggestion_view_pairs(const char *sweep, const json_t *suggestion, struct pairs *p);

#endif
