#include "base/file_image.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"

void file_image_done(struct file_image *i)
{
    if (i->is_mapped)
        (void)munmap(i->at, i->len);
    else
        free(i->at);
    *i = (struct file_image){0};
}

as_status file_image_map(int fd, size_t max_bytes, struct file_image *ret, struct as_err *err)
{
    AS_AUTO(file_closep) int owned = fd;
    struct stat sb;
    if (fstat(owned, &sb) != 0 || sb.st_size <= 0)
        return as_fail(err, AS_E_INVAL, "the file is empty");
    if ((size_t)sb.st_size > max_bytes)
        return as_fail(err, AS_E_TOO_LARGE, "the file has %lld bytes, at most %zu are allowed",
                       (long long)sb.st_size, max_bytes);
    void *at = mmap(NULL, (size_t)sb.st_size, PROT_READ, MAP_PRIVATE | MAP_POPULATE, owned, 0);
    if (at == MAP_FAILED)
        return as_fail_nomem(err);
    *ret = (struct file_image){.at = at, .len = (size_t)sb.st_size, .is_mapped = true};
    return AS_OK;
}

/* A file in memory with the bytes of a file of a disk; -1: it is none, or it cannot be done. */
static int copy_into_memory(const char *path, size_t max_bytes)
{
    AS_AUTO(file_closep) int from = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    AS_AUTO(file_closep) int to = -1;
    struct stat sb;
    if (from < 0 || fstat(from, &sb) != 0 || !S_ISREG(sb.st_mode) || sb.st_size <= 0 ||
        (size_t)sb.st_size > max_bytes)
        return -1;
    to = memfd_create("assay-file", MFD_CLOEXEC);
    ssize_t n = 1;
    while (to >= 0 && n > 0) {
        n = sendfile(to, from, NULL, (size_t)1 << 30);
        if (n < 0 && errno == EINTR)
            n = 1;
    }
    if (to < 0 || n < 0)
        return -1;
    int done = to;
    to = -1;
    return done;
}

as_status file_image_read(const char *path, size_t max_bytes, struct file_image *ret,
                          struct as_err *err)
{
    int fd = copy_into_memory(path, max_bytes);
    if (fd >= 0 && file_image_map(fd, max_bytes, ret, NULL) == AS_OK)
        return AS_OK;
    char *bytes = NULL;
    size_t len = 0;
    as_status st = file_read(path, max_bytes, &bytes, &len, err);
    if (st == AS_OK)
        *ret = (struct file_image){.at = bytes, .len = len};
    return st;
}
