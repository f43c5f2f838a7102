/* A folder for each fleet, which nobody else may enter: the spec as JSON, a lock, and perhaps a
 * token and logs. A spec is checked again when it is read, because what a person changed in the
 * file goes into scripts. */
#include "cli/fleet/saved_fleet.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"
#include "cli/files/user_folder.h"

#define SPEC_MAX (1 << 20)

/* A name becomes a part of a path. */
static as_status check_name(const char *name, struct as_err *err)
{
    struct fleet_spec s = {
        .slots = 1, .ranks = 1, .name = name, .server = "http://h", .engine = FLEET_SLURM};
    return fleet_spec_check(&s, err);
}

as_status saved_fleet_folder(const char *name, char **ret, struct as_err *err)
{
    AS_AUTO(as_freep) char *of_user = NULL;
    AS_AUTO(str_done) struct str path = {0};
    as_status st = check_name(name, err);
    if (st == AS_OK)
        st = user_folder_find("XDG_STATE_HOME", ".local/state", &of_user, err);
    if (st < 0)
        return st;
    str_printf(&path, "%s/fleets/%s", of_user, name);
    st = str_check(&path, err);
    if (st == AS_OK)
        st = file_mkdirs(path.s, 0700, err);
    if (st == AS_OK)
        st = file_own_folder(path.s, err);
    if (st == AS_OK)
        *ret = str_take(&path);
    return st;
}

static as_status path_in(const char *name, const char *leaf, char **ret, struct as_err *err)
{
    AS_AUTO(as_freep) char *folder = NULL;
    as_status st = saved_fleet_folder(name, &folder, err);
    if (st < 0)
        return st;
    *ret = file_join(folder, leaf);
    return *ret ? AS_OK : as_fail_nomem(err);
}

as_status saved_fleet_write(const struct fleet_spec *s, struct as_err *err)
{
    JSON_AUTO tree = NULL;
    AS_AUTO(as_freep) char *path = NULL;
    as_status st = fleet_spec_json(s, &tree, err);
    if (st == AS_OK)
        st = path_in(s->name, "fleet.json", &path, err);
    if (st < 0)
        return st;
    AS_AUTO(as_freep) char *text = json_dumps(tree, JSON_INDENT(2));
    return text ? file_replace(path, text, strlen(text), 0600, err) : as_fail_nomem(err);
}

as_status saved_fleet_read(const char *name, struct fleet_spec *ret, json_t **ret_tree,
                           struct as_err *err)
{
    AS_AUTO(as_freep) char *path = NULL;
    AS_AUTO(as_freep) char *text = NULL;
    JSON_AUTO tree = NULL;
    struct fleet_spec s;
    size_t len = 0;
    as_status st = path_in(name, "fleet.json", &path, err);
    if (st < 0)
        return st;
    st = file_read(path, SPEC_MAX, &text, &len, err);
    if (st == AS_E_NOT_FOUND)
        return as_fail(err, st, "no fleet %s was launched by this user from here", name);
    if (st == AS_OK)
        st = json_parse(text, len, &tree, err);
    if (st == AS_OK)
        st = fleet_spec_parse(tree, &s, err);
    if (st == AS_OK)
        st = fleet_spec_check(&s, err);
    if (st < 0)
        return as_err_prefix(err, st, "%s", path);
    *ret = s;
    *ret_tree = as_steal(tree);
    return AS_OK;
}

as_status saved_fleet_lock(const char *name, int *ret_fd, struct as_err *err)
{
    AS_AUTO(as_freep) char *path = NULL;
    as_status st = path_in(name, "lock", &path, err);
    if (st < 0)
        return st;
    AS_AUTO(file_closep) int fd = open(path, O_CREAT | O_RDWR | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return as_fail(err, AS_E_IO, "%s: %s", path, strerror(errno));
    if (flock(fd, LOCK_EX | LOCK_NB) != 0)
        return as_fail(err, AS_E_CONFLICT, "another assay autoscale keeps the fleet %s", name);
    *ret_fd = fd;
    fd = -1;
    return AS_OK;
}
