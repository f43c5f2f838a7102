/* Exit codes, and the only code that prints an error. docs/cli.md lists the exit codes. */
#ifndef ASSAY_CLI_SESSION_EXIT_CODE_H
#define ASSAY_CLI_SESSION_EXIT_CODE_H

#include "base/status.h"

enum exit_code {
    EXIT_OK = 0,
    EXIT_FAIL = 1,        /* any other error; under --watch: the sweep failed */
    EXIT_CANCELLED = 2,   /* Ctrl-C; under --watch: the sweep was cancelled */
    EXIT_NOT_FOUND = 3,   /* no such sweep, trial, file, … */
    EXIT_DENIED = 4,      /* no token, or one whose role does not allow this */
    EXIT_CONFLICT = 5,    /* the state of the sweep or trial does not allow it */
    EXIT_TIMEOUT = 6,     /* the time allowed with --timeout ran out */
    EXIT_UNAVAILABLE = 7, /* the server cannot be reached */
    EXIT_DONE = 8,        /* `ask`: the sweep has ended, nothing is left to ask for */
    EXIT_USAGE = 64,      /* the command line is wrong */
};

/* The meanings of the exit codes, for help and manual; a row with meaning NULL ends the table. */
struct exit_meaning {
    int code;
    const char *meaning;
};
extern const struct exit_meaning exit_meanings[];

int exit_code_of(as_status st);

/* Print "assay VERB: pointer: message" on stderr, escaped, and return the exit code. After Ctrl-C
 * it prints nothing and returns EXIT_CANCELLED. */
int exit_with_error(const char *verb, as_status st, const struct as_err *err);

/* The same for an error of the server with the `code` of its problem ("": none). */
int exit_with_problem(const char *verb, as_status st, const char *code, const struct as_err *err);

/* From now on print each error as one line of JSON, a problem document (RFC 9457) with `title`,
 * `detail`, `exit_code` and, where they are known, `code` and `errors` with `pointer`; print no
 * messages (say.h). */
void exit_with_json(void);

/* Report a wrong command line: print the message and how to get help on stderr. Returns
 * EXIT_USAGE. */
int exit_with_usage(const char *verb, const char *fmt, ...) AS_PRINTF(2, 3);

/* Flush stdout and return `code`. If output was lost (a full disk), print a message and return
 * EXIT_FAIL. */
int exit_after_output(const char *verb, int code);

#endif
