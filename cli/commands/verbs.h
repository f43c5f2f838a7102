/* The table of verbs: the whole command line in one place. */
#ifndef ASSAY_CLI_COMMANDS_VERBS_H
#define ASSAY_CLI_COMMANDS_VERBS_H

#include <stdbool.h>
#include <stdio.h>

#include "cli/session/verb.h"

/* The verb at index i, in the order of the overview; NULL past the last. */
const struct verb *verbs_at(size_t i);

/* NULL when there is none. */
const struct verb *verbs_find(const char *name);

/* The nearest verb to a mistyped one, or NULL when none is near. */
const char *verbs_suggest(const char *name);

/* Give the option table of a verb to fn, which is called during this call; false: it was not. */
bool verbs_read_table(const struct verb *v, verb_reader_fn fn, void *arg);

/* Environment variables that all verbs read; a row with names NULL ends the table. */
struct verbs_variable {
    const char *names;
    const char *meaning;
};
extern const struct verbs_variable verbs_environment[];

/* Print the summary of each verb, and what all verbs have in common. */
void verbs_print_overview(FILE *out);

#endif
