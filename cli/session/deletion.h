/* Deletes one object of the API. On a terminal it first asks, and says what will be lost
 * (decision 9003). */
#ifndef ASSAY_CLI_SESSION_DELETION_H
#define ASSAY_CLI_SESSION_DELETION_H

#include <jansson.h>
#include <stdbool.h>

#include "base/str.h"
#include "cli/session/session.h"

/* The row of --yes in an option table. */
#define DELETION_OPT(yes)                                                                          \
    {                                                                                              \
        "yes", 'y', OPT_FLAG, (yes), NULL, NULL, "do not ask before a delete"                      \
    }

struct deletion {
    const char *path, *id; /* DELETE path/id */
    const char *done;      /* "deleted", "revoked" */
    bool yes;              /* ask nothing */
    bool is_in_list;       /* the API has no GET path/id: look for its id, or name, in the list */
    /* Append the question with what is lost ("Delete … with 12 trials?"). `object` is the answer of
     * the API. Returns false if there is nothing to ask, because the server will refuse. */
    bool (*ask)(const json_t *object, const char *id, struct str *b);
};

/* Ask if need be, delete, and print that it is `done`: a line, or {done: id}. Returns the exit
 * code: EXIT_CANCELLED when the answer is not yes. */
int deletion_run(const struct session *s, const struct deletion *d);

/* Is it a yes? "y" or "yes", in any case, with blanks around it. */
bool deletion_answer_is_yes(const char *line);

#endif
