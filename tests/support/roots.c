#include "tests/support/roots.h"

#include <limits.h>
#include <stdlib.h>

#include "tests/support/check_main.h"

static const char *absolute(const char *variable, const char *otherwise, char ret[PATH_MAX])
{
    const char *set = getenv(variable);
    ck_assert_msg(realpath(set ? set : otherwise, ret) != NULL, "%s: there is no folder %s",
                  variable, set ? set : otherwise);
    return ret;
}

const char *source_root(void)
{
    static _Thread_local char path[PATH_MAX];
    return absolute("ASSAY_SOURCE_ROOT", ".", path);
}

const char *build_root(void)
{
    static _Thread_local char path[PATH_MAX];
    return absolute("ASSAY_BUILD_ROOT", "build", path);
}
