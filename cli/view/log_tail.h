/* Following the output of a trial. The server stores only the last bytes of the output and replaces
 * them as a whole. The new part is the part that does not overlap with the previous answer. */
#ifndef ASSAY_CLI_VIEW_LOG_TAIL_H
#define ASSAY_CLI_VIEW_LOG_TAIL_H

#include <stddef.h>

#include "base/status.h"

/* *ret is the number of bytes at the beginning of `now` that are also the end of `before`: the
 * longest such overlap. O(n + m). AS_E_NOMEM. */
AS_MUST_CHECK as_status log_tail_overlap(const char *before, size_t before_len, const char *now,
                                         size_t now_len, size_t *ret, struct as_err *err);

#endif
