#include "cli/current.h"

#include <errno.h>
#include <jansson.h>
#include <pwd.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"

as_status current_folder(const char *variable, const char *below_home, char **ret,
                         struct as_err *err)
{
    struct str b = {0};
    const char *base = getenv(variable), *home = getenv("HOME");
    if (base && base[0] == '/') {
        str_printf(&b, "%s/assay", base);
    } else {
        const struct passwd *user = home && *home ? NULL : getpwuid(getuid());
        if (user)
            home = user->pw_dir;
        if (!home || home[0] != '/')
            return as_fail(err, AS_E_NOT_FOUND, "there is no home folder; set HOME or %s",
                           variable);
        str_printf(&b, "%s/%s/assay", home, below_home);
    }
    *ret = str_take(&b);
    return *ret ? AS_OK : as_fail(err, AS_E_NOMEM, "out of memory");
}

static as_status note_path(char **ret, struct as_err *err)
{
    AS_AUTO(as_freep) char *folder = NULL;
    as_status st = current_folder("XDG_STATE_HOME", ".local/state", &folder, err);
    if (st < 0)
        return st;
    *ret = file_join(folder, "current.json");
    return *ret ? AS_OK : as_fail(err, AS_E_NOMEM, "out of memory");
}

void current_done(struct current *c)
{
    free(c->url);
    free(c->token_file);
    *c = (struct current){0};
}

static as_status parse(const char *text, size_t len, struct current *c, struct as_err *err)
{
    JSON_AUTO j = NULL;
    as_status st = json_parse(text, len, &j, err);
    if (st < 0)
        return st;
    const char *url = json_string_value(json_object_get(j, "url"));
    const char *token_file = json_string_value(json_object_get(j, "token_file"));
    if (!url || !token_file)
        return as_fail(err, AS_E_INVAL, "url or token_file is missing");
    c->url = as_strdup(url);
    c->token_file = as_strdup(token_file);
    c->pid = json_integer_value(json_object_get(j, "pid"));
    return c->url && c->token_file ? AS_OK : as_fail(err, AS_E_NOMEM, "out of memory");
}

as_status current_read(struct current *ret, struct as_err *err)
{
    AS_AUTO(as_freep) char *path = NULL;
    AS_AUTO(as_freep) char *text = NULL;
    AS_AUTO(current_done) struct current c = {0};
    size_t len;
    as_status st = note_path(&path, err);
    if (st == AS_OK)
        st = file_read(path, 65536, &text, &len, err);
    if (st < 0)
        return st;
    st = parse(text, len, &c, err);
    if (st < 0)
        return as_err_prefix(err, st, "%s", path);
    if (c.pid <= 0 || (kill((pid_t)c.pid, 0) != 0 && errno == ESRCH))
        return as_fail(err, AS_E_NOT_FOUND, "the assay up that left %s has ended", path);
    *ret = c;
    c = (struct current){0};
    return AS_OK;
}

as_status current_write(const char *url, const char *token_file, struct as_err *err)
{
    AS_AUTO(as_freep) char *folder = NULL;
    AS_AUTO(as_freep) char *path = NULL;
    as_status st = current_folder("XDG_STATE_HOME", ".local/state", &folder, err);
    if (st == AS_OK)
        st = file_mkdirs(folder, 0700, err);
    if (st == AS_OK)
        st = note_path(&path, err);
    if (st < 0)
        return st;
    JSON_AUTO j = json_pack("{s:s, s:s, s:I}", "url", url, "token_file", token_file, "pid",
                            (json_int_t)getpid());
    AS_AUTO(as_freep) char *text = j ? json_format_pretty(j) : NULL;
    if (!text)
        return as_fail(err, AS_E_NOMEM, "out of memory");
    return file_replace(path, text, strlen(text), 0600, err);
}

void current_remove(void)
{
    AS_AUTO(as_freep) char *path = NULL;
    AS_AUTO(current_done) struct current c = {0};
    if (current_read(&c, NULL) == AS_OK && c.pid == getpid() && note_path(&path, NULL) == AS_OK)
        (void)unlink(path);
}
