/* The last bytes of a trial's output, as text that JSON can carry.
 *
 * Not thread-safe: the attempt's lock guards it. */
#ifndef ASSAY_TRIAL_RUNNER_COLLECT_TAIL_H
#define ASSAY_TRIAL_RUNNER_COLLECT_TAIL_H

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"

#define TAIL_BYTES (64 << 10)

struct tail {
    char ring[TAIL_BYTES];
    size_t start, len;
    bool truncated;   /* bytes were dropped at the beginning */
    unsigned version; /* changes with every byte added */
};

void tail_add(struct tail *t, const char *bytes, size_t len);

/* Append the text to b: at most TAIL_BYTES of valid UTF-8 without NUL. Other bytes become U+FFFD.
 * If the beginning was dropped, the text starts with a complete line if it has one. Returns whether
 * anything was dropped. */
bool tail_text(const struct tail *t, struct str *b);

/* Append the last line that is not blank, cut to max bytes, with spaces for control characters.
 * Appends nothing if there is none. */
void tail_last_line(const struct tail *t, size_t max, struct str *b);

#define TAIL_LINES_MAX 8
#define TAIL_BETWEEN " | "
/* Append the last lines that are not blank, in their order, TAIL_BETWEEN between them: at most
 * `lines` (TAIL_LINES_MAX) and max bytes; a last line that is longer is cut. */
void tail_last_lines(const struct tail *t, size_t lines, size_t max, struct str *b);

#endif
