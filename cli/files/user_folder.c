#include "cli/files/user_folder.h"

#include <pwd.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/str.h"

as_status user_folder_find(const char *variable, const char *below_home, char **ret,
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
    return *ret ? AS_OK : as_fail_nomem(err);
}
