#include "scheduler/content/blob_file_priv.h"

#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "scheduler/content/blobs.h"

as_status spool_blob(struct store *db, const char *sha256, struct spool_file *ret,
                     struct as_err *err)
{
    AS_AUTO(file_closep) int fd = -1;
    as_status st = temp_file_create(ret->path, sizeof ret->path, &fd, err);
    if (st != AS_OK)
        return st;
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
