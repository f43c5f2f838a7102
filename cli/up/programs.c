#include "cli/up/programs.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"

/* The path dir/REST NAME if it is executable, else NULL. Owned by the caller. */
static char *find_executable(const char *dir, size_t dir_len, const char *rest, const char *name)
{
    struct str b = {0};
    str_add(&b, dir, dir_len);
    str_printf(&b, "/%s%s", rest, name);
    AS_AUTO(as_freep) char *path = str_take(&b);
    return path && access(path, X_OK) == 0 ? realpath(path, NULL) : NULL;
}

static char *find_in_path(const char *name)
{
    const char *p = getenv("PATH");
    while (p && *p) {
        size_t len = strcspn(p, ":");
        char *found = len && p[0] == '/' ? find_executable(p, len, "", name) : NULL;
        if (found)
            return found;
        p += len + (p[len] == ':');
    }
    return NULL;
}

as_status program_find(const char *name, char **ret, struct as_err *err)
{
    /* Relative to the folder of this program: "" in an installation, the others in a build tree. */
    static const char *const places[] = {"", "../api/server/", "../trial-runner/agent/",
                                         "../trial-runner/", "../serve/"};
    char self[PATH_MAX];
    char *found = NULL;
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    if (n > 0) {
        self[n] = 0;
        const char *slash = strrchr(self, '/');
        for (size_t i = 0; slash && i < AS_ARRAY_LEN(places) && !found; i++)
            found = find_executable(self, (size_t)(slash - self), places[i], name);
    }
    if (!found)
        found = find_in_path(name);
    if (!found)
        return as_fail(err, AS_E_NOT_FOUND,
                       "the program %s is neither beside assay nor in PATH; is it installed?",
                       name);
    *ret = found;
    return AS_OK;
}
