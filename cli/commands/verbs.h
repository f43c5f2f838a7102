/* The table of verbs: the whole command line in one place. */
#ifndef ASSAY_CLI_VERBS_H
#define ASSAY_CLI_VERBS_H

#include <stdio.h>

#include "base/opt.h"

struct verb {
    const char *name;
    const char *synopsis; /* what follows "assay " */
    const char *summary;  /* one line */
    const char *details;  /* paragraphs, or NULL */
    /* argv[0] is the verb. Answers the exit code. */
    int (*run)(int argc, char **argv);
};

/* NULL when there is none. */
const struct verb *verbs_find(const char *name);

/* The nearest verb to a mistyped one, or NULL when none is near. */
const char *verbs_suggest(const char *name);

const char *verbs_synopsis(const char *name); /* "" when there is none */

/* Help of one verb with its options, and of all. */
void verbs_print_help(const char *name, const struct opt *table, FILE *out);
void verbs_print_overview(FILE *out);

#endif
