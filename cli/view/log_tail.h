/* Following a kept tail: the server keeps the last bytes of a trial's output and replaces them as a
 * whole; what is new is what does not overlap with what was there before. */
#ifndef ASSAY_CLI_VIEW_LOG_TAIL_H
#define ASSAY_CLI_VIEW_LOG_TAIL_H

#include <stddef.h>

#include "base/status.h"

/* How many bytes at the beginning of `now` were seen already as the end of `before`: the longest
 * such overlap. O(n + m). AS_E_NOMEM. */
AS_MUST_CHECK as_status log_tail_overlap(const char *before, size_t before_len, const char *now,
                                         size_t now_len, size_t *ret, struct as_err *err);

#endif
