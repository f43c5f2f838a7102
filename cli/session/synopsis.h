/* What may stand next on a command line, by the synopsis of its verb: "trials SWEEP [--limit N] |
 * trials add SWEEP". Alternatives are separated by " | ". A word in lower case stands for itself, a
 * word in capitals for a value; [WORD] may be absent, WORD… may repeat; options are skipped. */
#ifndef ASSAY_CLI_SESSION_SYNOPSIS_H
#define ASSAY_CLI_SESSION_SYNOPSIS_H

#include <stdbool.h>
#include <stddef.h>

#define SYNOPSIS_MAX 16

struct synopsis_word {
    const char *s; /* a view of the synopsis, len bytes: "add", "SWEEP/NUMBER" */
    size_t len;
};

struct synopsis_words {
    size_t n;
    struct synopsis_word words[SYNOPSIS_MAX];
};

/* The words that may follow `args`, which are the n_args arguments after the verb, without options;
 * each word once. */
void synopsis_next(const char *synopsis, const char *const *args, size_t n_args,
                   struct synopsis_words *ret);

/* Does the word stand for itself? */
bool synopsis_is_literal(const struct synopsis_word *w);

#endif
