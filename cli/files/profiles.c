/* The file is read each time that a profile is asked for; it is small. All profiles are checked,
 * also those that are not asked for, so that a mistake shows before the profile is needed. */
#include "cli/files/profiles.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/str.h"
#include "cli/files/document.h"
#include "cli/files/user_folder.h"

void profile_done(struct profile *p)
{
    free(p->url);
    free(p->token_file);
    *p = (struct profile){0};
}

static char *token_path(const char *path, const char *folder, const char *home)
{
    if (path[0] == '/')
        return as_strdup(path);
    if (as_starts_with(path, "~/") && home)
        return file_join(home, path + 2);
    return file_join(folder, path);
}

static as_status parse_profile(const json_t *obj, const char *pointer, const char *folder,
                               const char *home, struct profile *ret, struct as_err *err)
{
    struct json_fields f;
    const char *url = NULL, *token_file = NULL;
    as_status st = json_fields_init(&f, obj, pointer, err);
    if (st == AS_OK)
        st = json_fields_text(&f, "url", JSON_REQUIRED, 1, 2000, &url, err);
    if (st == AS_OK)
        st = json_fields_text(&f, "token_file", JSON_OPTIONAL, 1, 4000, &token_file, err);
    if (st == AS_OK)
        st = json_fields_end(&f, err);
    if (st < 0)
        return st;
    if (!as_starts_with(url, "http://") && !as_starts_with(url, "https://"))
        return as_fail_at(err, AS_E_INVAL, pointer,
                          "%s/url: found '%.80s', expected http://… or https://…", pointer, url);
    if (!ret)
        return AS_OK;
    struct profile p = {.url = as_strdup(url),
                        .token_file = token_file ? token_path(token_file, folder, home) : NULL};
    if (!p.url || (token_file && !p.token_file)) {
        profile_done(&p);
        return as_fail_nomem(err);
    }
    for (size_t n = strlen(p.url); n > 0 && p.url[n - 1] == '/'; n--)
        p.url[n - 1] = '\0';
    *ret = p;
    return AS_OK;
}

static as_status fail_unknown(const json_t *profiles, const char *name, struct as_err *err)
{
    struct str known = {0};
    const char *other;
    json_t *v;
    json_object_foreach((json_t *)profiles, other, v)
        str_printf(&known, "%s%s", known.len ? ", " : "", other);
    as_status st = as_fail(err, AS_E_NOT_FOUND, "there is no profile '%.63s'; %s%.200s", name,
                           known.len ? "known are " : "none is configured", str_cstr(&known));
    str_done(&known);
    return st;
}

/* Check the whole configuration. *ret_profiles is a view of it. */
static as_status check_config(const json_t *config, const char *folder, const char *home,
                              json_t **ret_profiles, struct as_err *err)
{
    struct json_fields f;
    json_t *profiles = NULL, *profile;
    const char *name;
    as_status st = json_fields_init(&f, config, "", err);
    if (st == AS_OK)
        st = json_fields_object(&f, "profiles", JSON_REQUIRED, &profiles, err);
    if (st == AS_OK)
        st = json_fields_end(&f, err);
    if (st < 0)
        return st;
    json_object_foreach(profiles, name, profile)
    {
        char pointer[AS_ERR_POINTER_MAX];
        json_pointer_child("/profiles", name, pointer);
        if (!as_slug_valid(name))
            return as_fail_at(err, AS_E_INVAL, pointer,
                              "%s: found the name '%.63s', expected a-z, 0-9, ., _ and -", pointer,
                              name);
        st = parse_profile(profile, pointer, folder, home, NULL, err);
        if (st < 0)
            return st;
    }
    *ret_profiles = profiles;
    return AS_OK;
}

as_status profiles_find(const json_t *config, const char *name, const char *folder,
                        const char *home, struct profile *ret, struct as_err *err)
{
    json_t *profiles;
    as_status st = check_config(config, folder, home, &profiles, err);
    if (st < 0)
        return st;
    const json_t *profile = json_object_get(profiles, name);
    return profile ? parse_profile(profile, "/profiles", folder, home, ret, err)
                   : fail_unknown(profiles, name, err);
}

static as_status read_config(char **ret_folder, struct document *ret, struct as_err *err)
{
    AS_AUTO(as_freep) char *folder = NULL;
    as_status st = user_folder_find("XDG_CONFIG_HOME", ".config", &folder, err);
    if (st < 0)
        return st;
    AS_AUTO(as_freep) char *path = file_join(folder, "config");
    if (!path)
        return as_fail_nomem(err);
    st = document_read(path, ret, err);
    if (st == AS_OK)
        *ret_folder = as_steal(folder);
    return st;
}

as_status profiles_read(const char *name, struct profile *ret, struct as_err *err)
{
    AS_AUTO(as_freep) char *folder = NULL;
    AS_AUTO(document_done) struct document d = {0};
    as_status st = read_config(&folder, &d, err);
    if (st < 0)
        return as_err_prefix(err, st, "the profile '%.63s'", name);
    st = profiles_find(d.tree, name, folder, getenv("HOME"), ret, err);
    return st < 0 ? document_explain(&d, st, err) : AS_OK;
}

as_status profiles_names(json_t **ret, struct as_err *err)
{
    AS_AUTO(as_freep) char *folder = NULL;
    AS_AUTO(document_done) struct document d = {0};
    JSON_AUTO names = json_array();
    json_t *profiles = NULL, *profile;
    const char *name;
    as_status st = read_config(&folder, &d, err);
    if (st == AS_OK && (st = check_config(d.tree, folder, NULL, &profiles, err)) < 0)
        return document_explain(&d, st, err);
    if (st < 0 && st != AS_E_NOT_FOUND)
        return st;
    json_object_foreach(profiles, name,
                        profile) if (json_array_append_new(names, json_string(name)) !=
                                     0) return as_fail_nomem(err);
    if (!names)
        return as_fail_nomem(err);
    *ret = as_steal(names);
    return AS_OK;
}
