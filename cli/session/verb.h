/* A verb of the command line: one row of the table of verbs. */
#ifndef ASSAY_CLI_SESSION_VERB_H
#define ASSAY_CLI_SESSION_VERB_H

#include <stdio.h>

#include "base/opt.h"

struct verb {
    const char *name;
    const char *synopsis; /* the command line after "assay " */
    const char *summary;  /* one line */
    const char *details;  /* paragraphs, or NULL */
    /* Run the verb. `self` is this row; argv[0] is the verb's name. Returns the exit code. */
    int (*run)(const struct verb *self, int argc, char **argv);
};

/* Print the help of a verb: synopsis, summary, details, and the options of `table` (NULL: none). */
void verb_print_help(const struct verb *v, const struct opt *table, FILE *out);

#endif
