#include "scheduler/content/blob_file.h"

#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/temp_file.h"
#include "scheduler/content/blobs.h"

as_status blob_file_init(struct store *db, const char *sha256, struct blob_file *ret,
                         struct as_err *err)
{
    AS_AUTO(file_closep) int fd = -1;
    as_status st = temp_file_create(ret->path, sizeof ret->path, &fd, err);
    if (st != AS_OK) {
        ret->path[0] = '\0';
        return st;
    }
    st = blob_copy_to(db, sha256, fd, err);
    if (st != AS_OK)
        blob_file_done(ret);
    return st;
}

void blob_file_done(struct blob_file *f)
{
    if (f->path[0])
        unlink(f->path);
    f->path[0] = '\0';
}
