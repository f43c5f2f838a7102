/* Temporary files: unlinked ones for uploads, named ones for what reads files. */
#include "scheduler/content/blob_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "scheduler/content/blobs.h"

static as_status make_temporary(char *path, size_t size, int *ret_fd, struct as_err *err)
{
    const char *dir = getenv("TMPDIR");
    int n = snprintf(path, size, "%s/assay-spool-XXXXXX", dir && *dir ? dir : "/tmp");
    if (n < 0 || (size_t)n >= size)
        return as_fail(err, AS_E_IO, "TMPDIR is too long");
    int fd = mkostemp(path, O_CLOEXEC);
    if (fd < 0)
        return as_fail(err, AS_E_IO, "no temporary file %s: %s", path, strerror(errno));
    *ret_fd = fd;
    return AS_OK;
}

as_status spool_open(int *ret_fd, struct as_err *err)
{
    char path[256];
    as_status st = make_temporary(path, sizeof path, ret_fd, err);
    if (st != AS_OK)
        return st;
    unlink(path);
    return AS_OK;
}

as_status spool_blob(struct store *db, const char *sha256, struct spool_file *ret,
                     struct as_err *err)
{
    AS_AUTO(file_closep) int fd = -1;
    as_status st = make_temporary(ret->path, sizeof ret->path, &fd, err);
    if (st != AS_OK) {
        ret->path[0] = '\0';
        return st;
    }
    st = blob_copy_to(db, sha256, fd, err);
    if (st != AS_OK)
        spool_file_done(ret);
    return st;
}

void spool_file_done(struct spool_file *f)
{
    if (f->path[0])
        unlink(f->path);
    f->path[0] = '\0';
}
