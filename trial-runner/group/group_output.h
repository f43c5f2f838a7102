/* The output of a group's process, cut into lines. The lines belong to no member in particular, and
 * go, marked as the group's, to the log of each member that runs. What belongs to one member comes
 * over the socket instead (CONTROL_LOG of trial-runner/protocol/control.h). Pure. */
#ifndef ASSAY_TRIAL_RUNNER_GROUP_GROUP_OUTPUT_H
#define ASSAY_TRIAL_RUNNER_GROUP_GROUP_OUTPUT_H

#include <stddef.h>

#define GROUP_OUTPUT_MARK "[group] " /* before each line */
#define GROUP_OUTPUT_LINE 4096       /* bytes; longer lines are cut into several */

struct group_output {
    char line[GROUP_OUTPUT_LINE]; /* the line that has no end yet */
    size_t len;
    char last[GROUP_OUTPUT_LINE + 1]; /* the last line that is not blank, without the mark,
                                         with spaces for control characters */
};

/* Called for each line: mark, text and newline, not terminated by NUL; borrowed. */
typedef void group_output_line_fn(void *arg, const char *text, size_t len);

/* Add bytes: calls on_line for each line that is complete now. `o` begins zeroed. */
void group_output_add(struct group_output *o, const char *bytes, size_t n,
                      group_output_line_fn *on_line, void *arg);

/* No more bytes come: the rest is a line. */
void group_output_end(struct group_output *o, group_output_line_fn *on_line, void *arg);

#endif
