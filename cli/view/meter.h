/* Progress of reading or sending one file, on stderr: on a terminal a line that is drawn again in
 * place, otherwise a plain line now and then. Nothing appears within the first second. */
#ifndef ASSAY_CLI_VIEW_METER_H
#define ASSAY_CLI_VIEW_METER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"

struct meter {
    const char *name, *doing; /* borrowed */
    int64_t total_bytes;      /* -1: not known */
    int64_t start_ns, shown_ns;
    bool tty, shown;
};

/* Begin: `name` is the file's, `doing` is "reading", "sending", … */
void meter_start(struct meter *m, const char *name, const char *doing, int64_t total_bytes);
/* So many bytes are done. Cheap: it may be called for each piece. */
void meter_show(struct meter *m, int64_t done_bytes);
/* Remove the line from the terminal. */
void meter_end(struct meter *m);

/* Append "NAME: DOING, 1.5 MB of 3.0 MB (50 %)". */
void meter_format(const struct meter *m, int64_t done_bytes, struct str *b);

#endif
