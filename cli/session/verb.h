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

/* The option table of a verb exists only while the verb runs, because its rows point at the verb's
 * variables. While a reader is set, verb_print_help() gives it the table (NULL: none) and prints
 * nothing; the table is a view for the call. NULL: no reader. */
typedef void (*verb_reader_fn)(void *arg, const struct verb *v, const struct opt *table);
void verb_set_reader(verb_reader_fn fn, void *arg);

#endif
