/* Follows a file by looking at it again and again.
 *
 * A file that changed has grown, or was cut, replaced or written again. It was replaced if it is
 * another inode, cut if it is shorter than what was read, and written again if its first bytes or
 * those before the place of reading are others than before. A program that writes the same
 * beginning again, as some loggers do for each row, has grown its file.
 *
 * What was there before the program started is another run's. If the program appends, only what it
 * adds is new. A file that has the old size and a newer time was written again with the same
 * length. */
#include "trial-runner/collect/follow.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"

#define READ_BYTES (64 << 10)

static bool same_inode(const struct stat *a, const struct stat *b)
{
    return a->st_ino == b->st_ino && a->st_dev == b->st_dev;
}

static bool same_time(const struct stat *a, const struct stat *b)
{
    return a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

int follow_open(int dir, const char *path)
{
    struct open_how how = {.flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK, .resolve = RESOLVE_BENEATH};
    int fd = (int)syscall(SYS_openat2, dir, path, &how, sizeof how);
    if (fd < 0 && (errno == ENOSYS || errno == EPERM)) /* an old kernel, or a filter of calls */
        fd = openat(dir, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
    return fd;
}

void follow_mark_old(struct follow *f, int dir, const char *path)
{
    struct stat now;
    AS_AUTO(file_closep) int fd = follow_open(dir, path);
    if (fd < 0 || fstat(fd, &now) < 0 || !S_ISREG(now.st_mode))
        return;
    f->held = now;
    f->old = now.st_size;
}

/* Are `n` bytes at `at` still these? */
static bool still_there(int fd, int64_t at, const char *bytes, size_t n)
{
    char now[FOLLOW_HEAD];
    return n == 0 || (pread(fd, now, n, (off_t)at) == (ssize_t)n && memcmp(now, bytes, n) == 0);
}

static bool begins_again(const struct follow *f, int fd, const struct stat *now)
{
    if (!f->seen) /* what was there before */
        return f->old && (!same_inode(&f->held, now) || now->st_size < f->old ||
                          (now->st_size == f->old && !same_time(&f->held, now)));
    return !same_inode(&f->held, now) || now->st_size < f->offset ||
           (f->offset == f->old && now->st_size == f->old && !same_time(&f->held, now)) ||
           !still_there(fd, 0, f->head, f->n_head) ||
           !still_there(fd, f->offset - (int64_t)f->n_last, f->last, f->n_last);
}

static void remember(struct follow *f, const char *bytes, size_t n)
{
    size_t head = FOLLOW_HEAD - f->n_head < n ? FOLLOW_HEAD - f->n_head : n;
    memcpy(f->head + f->n_head, bytes, head);
    f->n_head += head;
    if (n >= FOLLOW_LAST) {
        memcpy(f->last, bytes + n - FOLLOW_LAST, FOLLOW_LAST);
        f->n_last = FOLLOW_LAST;
        return;
    }
    size_t keep = f->n_last + n > FOLLOW_LAST ? FOLLOW_LAST - n : f->n_last;
    memmove(f->last, f->last + f->n_last - keep, keep);
    memcpy(f->last + keep, bytes, n);
    f->n_last = keep + n;
}

static as_status read_on(struct follow *f, int fd, const char *path, const struct follow_fns *fns,
                         struct as_err *err)
{
    AS_AUTO(as_freep) char *buf = malloc(READ_BYTES);
    if (!buf)
        return as_fail_nomem(err);
    for (;;) {
        int64_t old = f->old - f->offset;
        size_t want = old > 0 && old < READ_BYTES ? (size_t)old : READ_BYTES;
        ssize_t n = pread(fd, buf, want, (off_t)f->offset);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n == 0 ? AS_OK : as_fail(err, AS_E_IO, "%s: %s", path, strerror(errno));
        f->offset += n;
        remember(f, buf, (size_t)n);
        as_status st = fns->feed(fns->arg, buf, (size_t)n, old > 0, err);
        if (st < 0)
            return st;
    }
}

as_status follow_read(struct follow *f, int dir, const char *path, const struct follow_fns *fns,
                      struct as_err *err)
{
    struct stat now;
    if (fstatat(dir, path, &now, 0) < 0)
        return AS_OK;
    if (!S_ISREG(now.st_mode))
        return as_fail(err, AS_E_INVAL, "%s is not a regular file", path);
    if (f->seen && same_inode(&f->held, &now) && same_time(&f->held, &now) &&
        now.st_size == f->offset)
        return AS_OK;
    AS_AUTO(file_closep) int fd = follow_open(dir, path);
    if (fd < 0 && (errno == EXDEV || errno == ELOOP))
        return as_fail(err, AS_E_INVAL, "%s leads out of the program's folder", path);
    if (fd < 0)
        return errno == ENOENT ? AS_OK : as_fail(err, AS_E_IO, "%s: %s", path, strerror(errno));
    if (fstat(fd, &now) < 0 || !S_ISREG(now.st_mode))
        return as_fail(err, AS_E_INVAL, "%s is not a regular file", path);
    if (begins_again(f, fd, &now)) {
        f->offset = f->old = 0;
        f->n_head = f->n_last = 0;
        fns->restart(fns->arg);
    }
    f->seen = true;
    f->held = now;
    return read_on(f, fd, path, fns, err);
}
