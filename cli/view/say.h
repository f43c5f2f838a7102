/* Messages for people. They go to stderr, so that stdout holds data only. */
#ifndef ASSAY_CLI_VIEW_SAY_H
#define ASSAY_CLI_VIEW_SAY_H

#include "base/status.h"

/* Print one line on stderr, at most 999 bytes, with control characters escaped (text_escape). */
void say(const char *fmt, ...) AS_PRINTF(1, 2);

#endif
