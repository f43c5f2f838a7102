#include "trial-runner/collective/shm_segment.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

as_status shm_segment_create(int *ret_fd, struct as_err *err)
{
    int fd = memfd_create("assay-rank", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0 || ftruncate(fd, sizeof(struct shm_segment)) < 0 ||
        fcntl(fd, F_ADD_SEALS, SEALS) < 0) {
        int why = errno;
        if (fd >= 0)
            (void)close(fd);
        return as_fail(err, AS_E_IO, "shared memory between ranks: %s", strerror(why));
    }
    *ret_fd = fd;
    return AS_OK;
}

as_status shm_segment_map(int fd, struct shm_segment **ret, struct as_err *err)
{
    struct stat is;
    if (fstat(fd, &is) < 0 || is.st_size != (off_t)sizeof(struct shm_segment) ||
        fcntl(fd, F_GET_SEALS) != SEALS)
        return as_fail(err, AS_E_INVAL, "a peer sent something that is no shared memory of ranks");
    void *at = mmap(NULL, sizeof(struct shm_segment), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (at == MAP_FAILED)
        return as_fail(err, AS_E_IO, "mapping shared memory between ranks: %s", strerror(errno));
    *ret = at;
    return AS_OK;
}

void shm_segment_unmap(struct shm_segment *s)
{
    if (s)
        (void)munmap(s, sizeof *s);
}
