/* A fleet has a token of its own, in the folder that the user keeps of it, so that it is revoked
 * without harm to others. Whether the server takes it is asked before jobs are started: they would
 * die one after the other, and say why in their own logs alone. */
#include "cli/commands/fleet_token.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/json.h"
#include "base/str.h"
#include "cli/fleet/saved_fleet.h"
#include "cli/view/say.h"

#define TOKEN_MAX 4096
#define ASK_MS 10000

static as_status check_given(const char *path, char **ret, struct as_err *err)
{
    struct stat sb;
    char *whole = realpath(path, NULL);
    if (!whole)
        return as_fail(err, errno == ENOENT ? AS_E_NOT_FOUND : AS_E_IO, "--runner-token %s: %s",
                       path, strerror(errno));
    if (stat(whole, &sb) == 0 && (sb.st_mode & 077)) {
        as_status st = as_fail(err, AS_E_DENIED,
                               "--runner-token %s: others may read it (mode %03o); chmod 600 it",
                               path, (unsigned)(sb.st_mode & 0777));
        free(whole);
        return st;
    }
    *ret = whole;
    return AS_OK;
}

static as_status create_token(const struct session *s, const char *fleet, const char *path,
                              struct as_err *err)
{
    JSON_AUTO body =
        json_pack("{s:s, s:o}", "role", "runner", "name", json_sprintf("fleet %s", fleet));
    JSON_AUTO answer = NULL;
    AS_AUTO(str_done) struct str line = {0};
    if (!body)
        return as_fail_nomem(err);
    as_status st =
        client_call(s->client, "POST", "/v1/tokens", NULL, body, NULL, &answer, NULL, err);
    if (st == AS_E_DENIED)
        return as_err_prefix(err, st,
                             "a token for the runners cannot be made (give one with "
                             "--runner-token FILE)");
    if (st < 0)
        return st;
    const char *text = json_string_value(json_object_get(answer, "token"));
    str_printf(&line, "%s\n", text ? text : "");
    st = str_check(&line, err);
    if (st == AS_OK)
        st = file_replace(path, line.s, line.len, 0600, err);
    if (st == AS_OK)
        say("The token of the runners is in %s", path);
    return st;
}

/* The file of create_token() in the folder of the fleet; owned by the caller. */
static as_status own_file(const char *fleet, char **ret, struct as_err *err)
{
    AS_AUTO(as_freep) char *folder = NULL;
    as_status st = saved_fleet_folder(fleet, &folder, err);
    if (st < 0)
        return st;
    *ret = file_join(folder, "token");
    return *ret ? AS_OK : as_fail_nomem(err);
}

as_status fleet_token_file(const struct session *s, const char *fleet, const char *given,
                           char **ret, struct as_err *err)
{
    AS_AUTO(as_freep) char *path = NULL;
    struct stat sb;
    if (given)
        return check_given(given, ret, err);
    as_status st = own_file(fleet, &path, err);
    if (st < 0)
        return st;
    if (stat(path, &sb) != 0 && (st = create_token(s, fleet, path, err)) < 0)
        return st;
    *ret = as_steal(path);
    return AS_OK;
}

bool fleet_token_is_refused(const struct session *s, const char *token)
{
    AS_AUTO(client_freep) struct client *as_runner = NULL;
    JSON_AUTO answer = NULL;
    const struct client_opts opts = {.timeout_ms = ASK_MS};
    /* Any operation that a runner may do, and that changes nothing. */
    return client_create(s->url, token, "assay", &as_runner, NULL) == AS_OK &&
           client_call(as_runner, "GET", "/v1/datasets", "page_size=1", NULL, &opts, &answer, NULL,
                       NULL) == AS_E_DENIED;
}

/* Is it the file that create_token() made? A fleet that was saved names it, too. */
static bool is_own(const char *fleet, const char *file)
{
    AS_AUTO(as_freep) char *own = NULL;
    if (own_file(fleet, &own, NULL) < 0)
        return false;
    AS_AUTO(as_freep) char *whole = realpath(own, NULL);
    return as_streq(file, own) || as_streq(file, whole);
}

as_status fleet_token_ensure(const struct session *s, const char *fleet, const char *given,
                             char **ret_file, char **ret_token, struct as_err *err)
{
    AS_AUTO(as_freep) char *file = NULL;
    AS_AUTO(as_freep) char *token = NULL;
    as_status st = fleet_token_file(s, fleet, given, &file, err);
    if (st == AS_OK)
        st = fleet_token_read(file, &token, err);
    if (st == AS_OK && fleet_token_is_refused(s, token)) {
        if (!is_own(fleet, file))
            return as_fail(err, AS_E_DENIED, "the server refuses the token of the runners in %s",
                           file);
        as_freep(&token);
        st = create_token(s, fleet, file, err);
        if (st == AS_OK)
            st = fleet_token_read(file, &token, err);
    }
    if (st < 0)
        return st;
    *ret_file = as_steal(file);
    *ret_token = as_steal(token);
    return AS_OK;
}

as_status fleet_token_read(const char *path, char **ret, struct as_err *err)
{
    AS_AUTO(as_freep) char *text = NULL;
    size_t len = 0;
    as_status st = file_read(path, TOKEN_MAX, &text, &len, err);
    if (st < 0)
        return as_err_prefix(err, st, "the token of the runners");
    while (len > 0 && strchr(" \t\r\n", text[len - 1]))
        text[--len] = '\0';
    if (len == 0 || strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                 "._~+/=-") != len)
        return as_fail(err, AS_E_INVAL, "%s: it has no token", path);
    *ret = as_steal(text);
    return AS_OK;
}
