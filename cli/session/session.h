/* The common part of all verbs that talk to a server: options, connection, output.
 *
 * The first source that is present determines the server and the token:
 *   server  --server, --profile (profiles.h), ASSAY_SERVER, ASSAY_PROFILE, the note of `assay up`
 *           (running_server.h)
 *   token   --token, --token-file, that of the profile if the server is one, ASSAY_TOKEN,
 *           ASSAY_TOKEN_FILE, the note of `assay up` if it is the note of this server */
#ifndef ASSAY_CLI_SESSION_SESSION_H
#define ASSAY_CLI_SESSION_SESSION_H

#include <jansson.h>
#include <stdbool.h>

#include "api/client/client.h"
#include "base/opt.h"
#include "base/status.h"
#include "cli/session/verb.h"
#include "cli/view/terminal.h"
#include "cli/view/text_table.h"

struct session {
    const struct verb *verb; /* borrowed */
    const char *const *args; /* without the options; views of argv */
    size_t n_args;
    const char *server; /* options; views of argv */
    const char *profile;
    const char *token;
    const char *token_file;
    const char *ca_file;
    bool json;
    bool wide;
    bool help;
    const char *const *instead; /* an option that makes the server unnecessary; NULL: none */
    struct terminal terminal;   /* of stdout */
    bool local;                 /* an `assay up` of this user on this machine runs the server */
    char *url;                  /* owned; no slash at its end */
    char *profile_token_file;   /* owned; NULL: the server is no profile, or the profile has none */
    struct client *client;      /* NULL when no server is needed */
};

/* The rows that the option tables of all these verbs have in common. */
#define SESSION_OPTS(s)                                                                            \
    {"server", 0, OPT_STRING, &(s)->server, "URL", NULL, "the server (ASSAY_SERVER)"},             \
        {"profile",                                                                                \
         0,                                                                                        \
         OPT_STRING,                                                                               \
         &(s)->profile,                                                                            \
         "NAME",                                                                                   \
         NULL,                                                                                     \
         "a server of the configuration file (ASSAY_PROFILE)"},                                    \
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
        {"ca-file",                                                                                \
         0,                                                                                        \
         OPT_STRING,                                                                               \
         &(s)->ca_file,                                                                            \
         "PATH",                                                                                   \
         "ASSAY_CA_FILE",                                                                          \
         "trust these authorities for https, and no others"},                                      \
        {"json", 0, OPT_FLAG, &(s)->json, NULL, NULL, "print JSON"},                               \
        {"wide", 0, OPT_FLAG, &(s)->wide, NULL, NULL, "do not cut tables to the terminal"},        \
        {"help", 'h', OPT_FLAG, &(s)->help, NULL, NULL, "show this help"},                         \
    {                                                                                              \
        .name = NULL                                                                               \
    }

/* Move options of SESSION_OPTS that stand before the verb behind it: "--server URL sweeps" becomes
 * "sweeps --server URL". AS_E_INVAL: another option, or a value is missing. */
AS_MUST_CHECK as_status session_verb_first(int argc, char **argv, struct as_err *err);

/* Parse the command line of a verb by its table, check that it has min to max arguments (argv[1…]),
 * and create the client. With --help it only prints the help. True: *ret_n_args is set and the verb
 * continues. False: the verb ends with *ret_code. */
bool session_begin(struct session *s, const struct verb *verb, const struct opt *table, int argc,
                   char **argv, int min_args, int max_args, int *ret_n_args, int *ret_code);
void session_done(struct session *s);

/* Find the server and create the client, by the options in `s`; session_begin() does this. */
AS_MUST_CHECK as_status session_connect(struct session *s, struct as_err *err);

/* Another client for the same server and token. Owned by the caller. */
AS_MUST_CHECK as_status session_client(const struct session *s, struct client **ret,
                                       struct as_err *err);

/* The token for the server, "" if there is none; owned by the caller. AS_E_DENIED: a token file
 * cannot be used; AS_E_NOMEM. */
AS_MUST_CHECK as_status session_token(const struct session *s, char **ret, struct as_err *err);

/* End a verb with the status `st`: print the error, with a hint about the server, the token or a
 * name that was perhaps meant, or check that all output was written. Returns the exit code. */
int session_end(const struct session *s, as_status st, const struct as_err *err);

/* Print one JSON document, a line of JSON, a text as it is, or a table, on stdout. */
AS_MUST_CHECK as_status session_print_json(const json_t *j, struct as_err *err);
AS_MUST_CHECK as_status session_print_json_line(const json_t *j, struct as_err *err);
/* The text to standard output. AS_E_IO; AS_E_NOMEM: `b` is not whole. */
AS_MUST_CHECK as_status session_print_text(const struct str *b, struct as_err *err);
AS_MUST_CHECK as_status session_print_table(const struct session *s, struct table *t,
                                            struct as_err *err);
/* Say which columns the terminal is too narrow for; nothing if `hidden` is empty. */
void session_say_hidden(const struct str *hidden);

#endif
