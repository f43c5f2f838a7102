/* Messages for people. They go to stderr, so that stdout holds data only. */
#ifndef ASSAY_CLI_VIEW_SAY_H
#define ASSAY_CLI_VIEW_SAY_H

#include <stdbool.h>

#include "base/status.h"

/* Print one line on stderr, at most 999 bytes, with control characters escaped (text_escape). */
void say(const char *fmt, ...) AS_PRINTF(1, 2);

/* Print no messages from now on: under --json, stderr has the document of an error and nothing
 * else. */
void say_set_quiet(bool quiet);
bool say_is_quiet(void);

#endif
