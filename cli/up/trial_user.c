#include "cli/up/trial_user.h"

#include <errno.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli/view/say.h"

static void take_entry(const struct passwd *entry, struct trial_user *ret)
{
    ret->user = (struct system_user){.uid = entry->pw_uid, .gid = entry->pw_gid};
    (void)snprintf(ret->user.name, sizeof ret->user.name, "%s", entry->pw_name);
    (void)snprintf(ret->home, sizeof ret->home, "%s", entry->pw_dir ? entry->pw_dir : "/");
}

/* What the runners and trials of this user need: the data folder, the program, and the folder where
 * commands run. */
static as_status check_reach(const struct trial_user *u, const char *data, const char *program,
                             struct as_err *err)
{
    char here[PATH_MAX];
    if (!getcwd(here, sizeof here))
        return as_fail(err, AS_E_IO, "the current folder: %s", strerror(errno));
    const char *const needed[][2] = {
        {"enter the data folder", data}, {"enter the current folder", here}, {"run", program}};
    for (size_t i = 0; i < AS_ARRAY_LEN(needed); i++)
        if (!system_user_can_enter(&u->user, needed[i][1]))
            return as_fail(err, AS_E_DENIED, "the user %s cannot %s %.180s", u->user.name,
                           needed[i][0], needed[i][1]);
    return AS_OK;
}

static as_status take_given(const char *given, const char *data, const char *program,
                            struct trial_user *ret, struct as_err *err)
{
    const struct passwd *entry = getpwnam(given);
    if (!entry)
        return as_fail(err, AS_E_NOT_FOUND, "--trial-user: there is no user '%.60s'", given);
    if (entry->pw_uid == geteuid())
        return AS_OK;
    if (geteuid() != 0)
        return as_fail(err, AS_E_DENIED,
                       "--trial-user %.60s: only root can run trials as another user", given);
    take_entry(entry, ret);
    as_status st = check_reach(ret, data, program, err);
    return st < 0 ? as_err_prefix(err, st, "--trial-user") : AS_OK;
}

/* The user who called sudo; NULL: none, or root. */
static const struct passwd *find_caller(void)
{
    const char *text = getenv("SUDO_UID");
    int64_t uid = 0;
    if (!text || as_parse_i64(text, &uid, NULL) < 0 || uid <= 0 || uid >= UINT32_MAX)
        return NULL;
    return getpwuid((uid_t)uid);
}

as_status trial_user_choose(const char *given, const char *data, const char *program,
                            struct trial_user *ret, struct as_err *err)
{
    struct as_err why = {0};
    *ret = (struct trial_user){0};
    if (given)
        return take_given(given, data, program, ret, err);
    if (geteuid() != 0)
        return AS_OK;
    const struct passwd *caller = find_caller();
    if (caller) {
        take_entry(caller, ret);
        if (check_reach(ret, data, program, &why) == AS_OK)
            return AS_OK;
        *ret = (struct trial_user){0};
    }
    say("Trials run as root: whoever may create a sweep may do anything on this machine%s%s%s. "
        "--trial-user NAME runs them as another user",
        why.msg[0] ? " (" : "", why.msg, why.msg[0] ? ")" : "");
    return AS_OK;
}

as_status trial_user_folder(const struct trial_user *u, const char *data, char **ret,
                            struct as_err *err)
{
    struct str path = {0};
    if (u->user.name[0])
        str_printf(&path, "%s/user-%u", data, (unsigned)u->user.uid);
    else
        str_puts(&path, data);
    *ret = str_take(&path);
    if (!*ret)
        return as_fail_nomem(err);
    return u->user.name[0] ? file_own_folder_of(*ret, u->user.uid, u->user.gid, err) : AS_OK;
}
