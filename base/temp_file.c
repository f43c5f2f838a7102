#include "base/temp_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

as_status temp_file_create(char *path, size_t size, int *ret_fd, struct as_err *err)
{
    const char *dir = getenv("TMPDIR");
    int n = snprintf(path, size, "%s/assay-temp-XXXXXX", dir && *dir ? dir : "/tmp");
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
