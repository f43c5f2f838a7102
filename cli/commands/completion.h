/* What a shell may complete a word of an `assay` command line to. */
#ifndef ASSAY_CLI_COMMANDS_COMPLETION_H
#define ASSAY_CLI_COMMANDS_COMPLETION_H

#include "base/str.h"

/* Append a line "CANDIDATE" or "CANDIDATE\tDESCRIPTION" for each word that may stand in the place
 * of words[n - 1], which may be empty or begun; words[0] is the verb. None: the shell completes
 * names of files. Names of sweeps, trials, data sets and tokens come from the server, which has
 * two seconds to answer; without it there are none. */
void completion_words(const char *const *words, size_t n, struct str *b);

/* The script for "bash", "zsh" or "fish"; NULL: another shell. */
const char *completion_script(const char *shell);

#endif
