/* What a program writes to a pipe until it closes it. */
#ifndef ASSAY_TESTS_SUPPORT_PIPE_END_H
#define ASSAY_TESTS_SUPPORT_PIPE_END_H

#include "base/str.h"

/* Appends it to `out`; waits for it. fd may be non-blocking; it stays open. */
void read_to_end(int fd, struct str *out);

#endif
