/* What every verb that talks to a server has in common: its options, its connection, its output.
 *
 * Where the server and the token come from, first found wins:
 *   server  --server, ASSAY_SERVER, the note of `assay up` (running_server.h)
 *   token   --token, --token-file, ASSAY_TOKEN, ASSAY_TOKEN_FILE, the note when its server is the
 * one */
#ifndef ASSAY_CLI_SESSION_SESSION_H
#define ASSAY_CLI_SESSION_SESSION_H

#include <jansson.h>
#include <stdbool.h>

#include "api/client/client.h"
#include "base/opt.h"
#include "base/status.h"
#include "cli/session/verb.h"
#include "cli/view/terminal.h"
#include "cli/view/table.h"

struct session {
    const struct verb *verb; /* borrowed */
    const char *server;      /* options; views of argv */
    const char *token;
    const char *token_file;
    bool json;
    bool wide;
    bool help;
    const char *const *instead; /* an option with which no server is needed; NULL: none */
    struct terminal terminal;   /* of stdout */
    bool local;            /* the server is that of an `assay up` of this user on this machine */
    char *url;             /* owned; no slash at its end */
    struct client *client; /* NULL when no server is needed */
};

/* The rows of an option table that every such verb has. */
#define SESSION_OPTS(s)                                                                            \
    {"server", 0, OPT_STRING, &(s)->server, "URL", NULL, "the server (ASSAY_SERVER)"},             \
        {"token",                                                                                  \
         0,                                                                                        \
         OPT_STRING,                                                                               \
         &(s)->token,                                                                              \
         "TOKEN",                                                                                  \
         NULL,                                                                                     \
         "the token; better in a file (ASSAY_TOKEN)"},                                             \
        {"token-file",                                                                             \
         0,                                                                                        \
         OPT_STRING,                                                                               \
         &(s)->token_file,                                                                         \
         "PATH",                                                                                   \
         NULL,                                                                                     \
         "a file with the token (ASSAY_TOKEN_FILE)"},                                              \
        {"json", 0, OPT_FLAG, &(s)->json, NULL, NULL, "print JSON"},                               \
        {"wide", 0, OPT_FLAG, &(s)->wide, NULL, NULL, "do not cut tables to the terminal"},        \
        {"help", 'h', OPT_FLAG, &(s)->help, NULL, NULL, "show this help"},                         \
    {                                                                                              \
        .name = NULL                                                                               \
    }

/* Parse the command line of a verb by its table and, unless --help was asked for, check that there
 * are min to max arguments (argv[1…]) and make the client. True: go on, *ret_n_args is set. False:
 * the verb is done, with *ret_code. */
bool session_begin(struct session *s, const struct verb *verb, const struct opt *table, int argc,
                   char **argv, int min_args, int max_args, int *ret_n_args, int *ret_code);
void session_done(struct session *s);

/* Another client for the same server and token. Owned by the caller. */
AS_MUST_CHECK as_status session_client(const struct session *s, struct client **ret,
                                       struct as_err *err);

/* Answer `st` of a verb: prints the error (with a hint where the server was looked for) or checks
 * that all output was written. The exit code. */
int session_end(const struct session *s, as_status st, const struct as_err *err);

/* Print one JSON document, a line of JSON, a text as it is, or a table, on stdout. */
AS_MUST_CHECK as_status session_print_json(const json_t *j, struct as_err *err);
AS_MUST_CHECK as_status session_print_json_line(const json_t *j, struct as_err *err);
AS_MUST_CHECK as_status session_print_table(const struct session *s, const struct table *t,
                                            struct as_err *err);

#endif
