#include "cli/files/artifact_path.h"

#include <string.h>

#include "base/file.h"
#include "base/str.h"

bool artifact_path_valid(const char *path)
{
    for (const char *part = path;; part++) {
        size_t len = strcspn(part, "/");
        bool dots = len <= 2 && strspn(part, ".") >= len;
        if (len == 0 || dots)
            return false;
        part += len;
        if (!*part)
            return true;
    }
}

bool artifact_path_matches(const char *path, const char *wanted)
{
    size_t len = strlen(wanted);
    bool is_folder = len > 0 && wanted[len - 1] == '/';
    len -= is_folder;
    if (strncmp(path, wanted, len) != 0)
        return false;
    return path[len] == '/' || (!is_folder && !path[len]);
}

const char *artifact_path_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

as_status artifact_path_prepare(const char *folder, const char *path, char **ret,
                                struct as_err *err)
{
    if (!artifact_path_valid(path))
        return as_fail(err, AS_E_INVAL,
                       "the artifact's name '%.200s' is no path below a folder; it is not written",
                       path);
    AS_AUTO(as_freep) char *full = file_join(folder, path);
    AS_AUTO(as_freep) char *parent = as_strdup(full);
    if (!full || !parent)
        return as_fail_nomem(err);
    *strrchr(parent, '/') = '\0';
    as_status st = file_mkdirs(*parent ? parent : "/", 0777, err);
    if (st < 0)
        return st;
    *ret = as_steal(full);
    return AS_OK;
}
