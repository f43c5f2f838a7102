/* Finds the server and the token of a verb, and creates its client.
 *
 * A note of `assay up` is only the last source, so that an explicit option or variable always wins.
 * The token of a note is used only for the server of that note: session_client() looks up the note
 * by the URL that find_server() chose. A token must never be sent to another server. */
#include "cli/session/session.h"

#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "cli/files/profiles.h"
#include "cli/files/running_server.h"
#include "cli/session/exit_code.h"
#include "cli/session/interrupt.h"
#include "cli/session/meant.h"
#include "cli/view/say.h"

#define TOKEN_MAX_BYTES 4096

static const char *variable(const char *name)
{
    const char *value = getenv(name);
    return value && *value ? value : NULL;
}

/* The first line of a token file. Owned by the caller. */
static as_status read_token(const char *path, char **ret, struct as_err *err)
{
    size_t len;
    AS_AUTO(as_freep) char *text = NULL;
    as_status st = file_read_input(path, TOKEN_MAX_BYTES, &text, &len, err);
    if (st < 0)
        return as_err_prefix(err, st == AS_E_NOT_FOUND ? AS_E_DENIED : st, "token file");
    text[strcspn(text, "\r\n")] = 0;
    if (!*text)
        return as_fail(err, AS_E_DENIED, "the token file %s is empty", path);
    *ret = as_steal(text);
    return AS_OK;
}

static as_status find_token(const struct session *s, const struct running_server *note, char **ret,
                            struct as_err *err)
{
    const char *env = getenv("ASSAY_TOKEN"), *env_file = getenv("ASSAY_TOKEN_FILE");
    const char *text = s->token ? s->token : NULL;
    const char *path = s->token_file;
    if (!text && !path)
        path = s->profile_token_file; /* a token of the environment may be another server's */
    if (!text && !path && env && *env)
        text = env;
    if (!text && !path && env_file && *env_file)
        path = env_file;
    if (!text && !path)
        path = note->token_file;
    if (!text && path)
        return read_token(path, ret, err);
    *ret = as_strdup(text ? text : "");
    return *ret ? AS_OK : as_fail_nomem(err);
}

as_status session_token(const struct session *s, char **ret, struct as_err *err)
{
    AS_AUTO(running_server_done) struct running_server note = {0};
    (void)!running_server_read(s->url, NULL, &note, NULL); /* no note is no error: other sources */
    return find_token(s, &note, ret, err);
}

as_status session_client(const struct session *s, struct client **ret, struct as_err *err)
{
    AS_AUTO(as_freep) char *token = NULL;
    as_status st = session_token(s, &token, err);
    if (st < 0)
        return st;
    return client_create(s->url, token, "assay", ret, err);
}

/* The server of a profile. */
static as_status use_profile(struct session *s, const char *name, struct as_err *err)
{
    struct profile p = {0};
    as_status st = profiles_read(name, &p, err);
    if (st < 0)
        return st;
    s->url = p.url;
    s->profile_token_file = p.token_file;
    return AS_OK;
}

static as_status fail_no_server(struct as_err *err)
{
    JSON_AUTO names = NULL;
    struct str known = {0};
    size_t i;
    json_t *name;
    (void)!profiles_names(&names, NULL); /* only for the message */
    json_array_foreach(names, i, name)
        str_printf(&known, "%s%s", i ? ", " : " (", json_string_value(name));
    as_status st =
        as_fail(err, AS_E_UNAVAILABLE,
                "no server is known: start one with `assay up`, or name one with --server or "
                "ASSAY_SERVER, or with --profile%.200s%s",
                str_cstr(&known), known.len ? ")" : "");
    str_done(&known);
    return st;
}

/* The `assay up` of this user whose data folder ASSAY_DATA names. Without the variable the newest,
 * with a word about it if it is not the only one. */
static as_status use_running(struct session *s, struct as_err *err)
{
    AS_AUTO(running_server_done) struct running_server note = {0};
    const char *data = variable("ASSAY_DATA");
    as_status st = running_server_read(NULL, data, &note, err);
    if (st == AS_E_NOT_FOUND && data)
        return as_fail(
            err, AS_E_UNAVAILABLE,
            "no `assay up` runs on the data folder %.100s (ASSAY_DATA): start it, or name "
            "a server with --server, --profile or ASSAY_SERVER",
            data);
    if (st == AS_E_NOT_FOUND)
        return fail_no_server(err);
    if (st < 0)
        return st;
    if (note.n_running > 1)
        say("%zu `assay up` run; this is the newest, %s (ASSAY_DATA or --server names "
            "another).",
            note.n_running, note.url);
    s->url = as_strdup(note.url);
    return s->url ? AS_OK : as_fail_nomem(err);
}

static as_status find_server(struct session *s, struct as_err *err)
{
    AS_AUTO(running_server_done) struct running_server note = {0};
    const char *profile = s->server ? NULL : s->profile;
    const char *url = s->server ? s->server : profile ? NULL : variable("ASSAY_SERVER");
    if (!url && !profile)
        profile = variable("ASSAY_PROFILE");
    as_status st = AS_OK;
    if (url) {
        s->url = as_strdup(url);
        st = s->url ? AS_OK : as_fail_nomem(err);
    } else {
        st = profile ? use_profile(s, profile, err) : use_running(s, err);
    }
    if (st < 0)
        return st;
    for (size_t n = strlen(s->url); n > 0 && s->url[n - 1] == '/'; n--)
        s->url[n - 1] = 0;
    s->local = running_server_read(s->url, NULL, &note, NULL) == AS_OK;
    return AS_OK;
}

/* Parse the command line. True: *ret_n_args arguments are left for the verb. */
static bool parse_args(struct session *s, const struct opt *table, int argc, char **argv,
                       int min_args, int max_args, int *ret_n_args, int *ret_code)
{
    struct as_err err = {0};
    const struct verb *v = s->verb;
    if (opt_parse(table, argc, argv, ret_n_args, &err) < 0) {
        *ret_code = exit_with_usage(v->name, "%s", err.msg);
    } else if (s->help) {
        verb_print_help(v, table, stdout);
        *ret_code = exit_after_output(v->name, EXIT_OK);
    } else if (s->server && s->profile) {
        *ret_code = exit_with_usage(v->name, "choose one of --server and --profile");
    } else if (*ret_n_args < min_args) {
        *ret_code = exit_with_usage(v->name, "too few arguments; expected: assay %s", v->synopsis);
    } else if (*ret_n_args > max_args) {
        *ret_code =
            exit_with_usage(v->name, "too many arguments, the first is '%.60s'; expected: assay %s",
                            argv[1 + max_args], v->synopsis);
    } else {
        return true;
    }
    return false;
}

as_status session_verb_first(int argc, char **argv, struct as_err *err)
{
    struct session unused = {0};
    const struct opt table[] = {SESSION_OPTS(&unused)};
    int at = 1;
    as_status st = opt_skip(table, argc, argv, &at, err);
    if (st < 0 || at >= argc)
        return st;
    char *verb = argv[at];
    memmove(argv + 2, argv + 1, (size_t)(at - 1) * sizeof *argv);
    argv[1] = verb;
    return AS_OK;
}

as_status session_connect(struct session *s, struct as_err *err)
{
    as_status st = find_server(s, err);
    if (st == AS_OK)
        st = client_trust(s->ca_file, err);
    if (st < 0)
        return st;
    st = session_client(s, &s->client, err);
    if (st < 0)
        return st;
    interrupt_watch(s->client);
    return AS_OK;
}

bool session_begin(struct session *s, const struct verb *verb, const struct opt *table, int argc,
                   char **argv, int min_args, int max_args, int *ret_n_args, int *ret_code)
{
    struct as_err err = {0};
    int n = 0;
    s->verb = verb;
    if (!parse_args(s, table, argc, argv, min_args, max_args, &n, ret_code))
        return false;
    s->args = (const char *const *)argv + 1;
    s->n_args = (size_t)n;
    s->terminal = terminal_of(stdout);
    if (s->wide)
        s->terminal.width = SIZE_MAX;
    bool needs_server = !s->instead || !*s->instead;
    as_status st = needs_server ? session_connect(s, &err) : AS_OK;
    if (st < 0) {
        *ret_code = exit_with_error(verb->name, st, &err);
        return false;
    }
    *ret_n_args = n;
    return true;
}

void session_done(struct session *s)
{
    if (s->client)
        interrupt_unwatch(s->client);
    client_free(s->client);
    s->client = NULL;
    as_freep(&s->url);
    as_freep(&s->profile_token_file);
}

int session_end(const struct session *s, as_status st, const struct as_err *err)
{
    if (interrupt_seen())
        return exit_after_output(s->verb->name, EXIT_CANCELLED);
    if (st == AS_OK)
        return exit_after_output(s->verb->name, EXIT_OK);
    (void)fflush(stdout);
    const char *code_word = s->client ? client_problem_code(s->client) : "";
    int code = exit_with_problem(s->verb->name, st, code_word, err);
    if (st == AS_E_UNAVAILABLE && s->url)
        say("The server is %s; is `assay up` running?", s->url);
    else if (st == AS_E_DENIED)
        say("Name a token with --token-file or ASSAY_TOKEN_FILE.");
    else if (st == AS_E_NOT_FOUND && s->client)
        meant_say(s->verb->synopsis, s->args, s->n_args, s->client);
    else if (st == AS_E_USAGE)
        say("See `assay help %s`.", s->verb->name);
    return code;
}

as_status session_print_text(const struct str *b, struct as_err *err)
{
    if (str_check(b, err) < 0)
        return AS_E_NOMEM;
    if (fwrite(str_cstr(b), 1, b->len, stdout) != b->len)
        return as_fail(err, AS_E_IO, "cannot write the output");
    return AS_OK;
}

static as_status write_json_text(char *text, struct as_err *err)
{
    AS_AUTO(as_freep) char *owned = text;
    if (!owned)
        return as_fail_nomem(err);
    if (fputs(owned, stdout) < 0 || fputc('\n', stdout) < 0)
        return as_fail(err, AS_E_IO, "cannot write the output");
    return AS_OK;
}

as_status session_print_json(const json_t *j, struct as_err *err)
{
    return write_json_text(json_format_pretty(j), err);
}

as_status session_print_json_line(const json_t *j, struct as_err *err)
{
    as_status st = write_json_text(json_format(j), err);
    if (st < 0)
        return st;
    if (fflush(stdout) != 0)
        return as_fail(err, AS_E_IO, "cannot write the output");
    return AS_OK;
}

void session_say_hidden(const struct str *hidden)
{
    if (hidden->len > 0)
        say("The terminal is too narrow for these columns: %s (--wide shows all)",
            str_cstr(hidden));
}

as_status session_print_table(const struct session *s, struct table *t, struct as_err *err)
{
    AS_AUTO(str_done) struct str b = {0}, hidden = {0};
    as_status st = table_format(t, &s->terminal, &b, &hidden, err);
    if (st < 0)
        return st;
    st = session_print_text(&b, err);
    if (st < 0)
        return st;
    session_say_hidden(&hidden);
    return AS_OK;
}
