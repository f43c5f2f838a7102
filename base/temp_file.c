#include "base/temp_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *folder(void)
{
    const char *dir = getenv("TMPDIR");
    return dir && *dir ? dir : "/tmp";
}

as_status temp_file_fail(struct as_err *err)
{
    return as_fail(err, AS_E_IO, "a temporary file in %.120s (TMPDIR) cannot be written: %s",
                   folder(), strerror(errno));
}

as_status temp_file_create(char *path, size_t size, int *ret_fd, struct as_err *err)
{
    int n = snprintf(path, size, "%s/assay-temp-XXXXXX", folder());
    if (n < 0 || (size_t)n >= size)
        return as_fail(err, AS_E_IO, "TMPDIR is too long");
    int fd = mkostemp(path, O_CLOEXEC);
    if (fd < 0)
        return as_fail(err, AS_E_IO, "cannot create the temporary file %s: %s", path,
                       strerror(errno));
    *ret_fd = fd;
    return AS_OK;
}

as_status temp_file_open(int *ret_fd, struct as_err *err)
{
    char path[256];
    as_status st = temp_file_create(path, sizeof path, ret_fd, err);
    if (st != AS_OK)
        return st;
    unlink(path);
    return AS_OK;
}
