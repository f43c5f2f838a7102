/* Faults of a machine, preloaded (LD_PRELOAD) into PostgreSQL, runners and their trials: writes
 * that a power cut takes back, a full disk, and a wall clock that jumps.
 *
 * Power cuts. A program may rely on what it wrote only after fsync or fdatasync of the file. So
 * before each write to a file below $CHAOS_SYNC_ROOT, the bytes that the write replaces are
 * appended to CHAOS_UNDO/INODE, a log that is emptied when the file is synced. cluster.py kills
 * every process and then plays the logs back: the files are what the disk was told to keep. All
 * other writes and all changes of names count as kept, which is one of the outcomes that a power
 * cut may have.
 *
 *   log: int64 first, int64 size, then records: int64 offset, int64 length, bytes
 *   first: where the records begin that are not synced; size: of the file when it was last synced
 *   CHAOS_UNDO/syncs has a byte for each sync that has begun
 *
 * Each write opens its log and locks it, because processes share files and descriptors come and
 * go. Writes inside of libc (stdio) and through mmap are not seen: they count as kept, too.
 *
 * A full disk. While the control file says so, a write that would make a file below
 * $CHAOS_FULL_ROOT longer fails with ENOSPC, and statvfs finds no room.
 *
 * The clock. The control file has an offset for CLOCK_REALTIME. CLOCK_MONOTONIC never jumps.
 *
 * The control file is mapped, so that a fault costs no system call where there is none. Without
 * $CHAOS_CONTROL and the roots this library changes nothing. */
#undef _FILE_OFFSET_BITS /* which gives pwrite the name of pwrite64; both are here */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

/* The function of this name that this library stands before. The constructor finds them all,
 * because a child of a process with threads must not call dlsym. */
#define NEXT(name) ((__typeof__(&(name)))next_function(&next_##name, #name))
#define EACH_FUNCTION(f)                                                                           \
    f(write) f(writev) f(pwrite) f(pwritev) f(fsync) f(fdatasync) f(unlink) f(unlinkat) f(rename)  \
        f(statvfs) f(statvfs64) f(clock_gettime)
#define DECLARE(name) static void *next_##name;
#define FIND(name) (void)NEXT(name);
EACH_FUNCTION(DECLARE)

static void *next_function(void **slot, const char *name)
{
    if (!*slot)
        *slot = dlsym(RTLD_NEXT, name);
    return *slot;
}

/* What fleet.py and cluster.py write; mapped read-only. */
struct control {
    int64_t clock_offset_ns;
    int64_t disk_is_full;
};

struct undo_head {
    int64_t first, size;
};

struct undo_record {
    int64_t offset, length;
};

static const struct control quiet;
static const struct control *control = &quiet;
static const char *sync_root, *full_root, *undo_folder;

/* A copy: PostgreSQL writes its title over its environment. */
static const char *variable(const char *name)
{
    const char *value = getenv(name);
    return value ? strdup(value) : NULL;
}

__attribute__((constructor)) static void read_environment(void)
{
    EACH_FUNCTION(FIND)
    const char *path = getenv("CHAOS_CONTROL");
    int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (fd >= 0) {
        void *p = mmap(NULL, sizeof *control, PROT_READ, MAP_SHARED, fd, 0);
        if (p != MAP_FAILED)
            control = p;
        close(fd);
    }
    undo_folder = variable("CHAOS_UNDO");
    sync_root = undo_folder ? variable("CHAOS_SYNC_ROOT") : NULL;
    full_root = variable("CHAOS_FULL_ROOT");
}

static bool is_below(const char *path, const char *root)
{
    size_t n = root ? strlen(root) : 0;
    return n > 0 && strncmp(path, root, n) == 0 && path[n] == '/';
}

/* The path of a descriptor; empty if it is no file. */
static void path_of(int fd, char ret[PATH_MAX])
{
    char link[40];
    (void)snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, ret, PATH_MAX - 1);
    ret[n > 0 && ret[0] == '/' ? n : 0] = '\0';
}

/* The undo log of an inode, locked; -1 on failure. Its lock ends when it is closed. */
static int undo_open(ino_t inode)
{
    char path[PATH_MAX];
    (void)snprintf(path, sizeof path, "%s/%llu", undo_folder, (unsigned long long)inode);
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (fd >= 0 && flock(fd, LOCK_EX) < 0) {
        close(fd);
        return -1;
    }
    return fd;
}

static bool pread_all(int fd, void *p, size_t n, off_t at)
{
    while (n > 0) {
        ssize_t got = pread(fd, p, n, at);
        if (got <= 0)
            return false;
        p = (char *)p + got;
        n -= (size_t)got;
        at += got;
    }
    return true;
}

static bool pwrite_log(int fd, const void *p, size_t n, off_t at)
{
    return NEXT(pwrite)(fd, p, n, at) == (ssize_t)n;
}

/* Append the bytes that a write of n bytes at `at` replaces. */
static void undo_append(int log, int fd, const struct stat *file, off_t at, size_t n)
{
    struct stat st;
    if (fstat(log, &st) < 0)
        return;
    if (st.st_size == 0) {
        struct undo_head head = {.first = sizeof head, .size = file->st_size};
        (void)pwrite_log(log, &head, sizeof head, 0);
        st.st_size = sizeof head;
    }
    if (at >= file->st_size)
        return;
    if ((off_t)n > file->st_size - at)
        n = (size_t)(file->st_size - at);
    char path[40];
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd); /* fd may be for writing alone */
    int from = open(path, O_RDONLY | O_CLOEXEC);
    char *old = malloc(n);
    struct undo_record r = {.offset = at, .length = (int64_t)n};
    if (from >= 0 && old && pread_all(from, old, n, at) &&
        pwrite_log(log, old, n, st.st_size + (off_t)sizeof r))
        (void)pwrite_log(log, &r, sizeof r, st.st_size);
    free(old);
    if (from >= 0)
        close(from);
}

/* Called before each write; at < 0: at the descriptor's own place. False, with errno: the disk is
 * full. *ret_log: the locked log of the file, to be closed after the write; -1: none. */
static bool before_write(int fd, off_t at, size_t n, int *ret_log)
{
    char path[PATH_MAX];
    struct stat st;
    *ret_log = -1;
    if (!sync_root && !full_root)
        return true;
    int saved = errno;
    path_of(fd, path);
    bool is_synced = is_below(path, sync_root), may_be_full = is_below(path, full_root);
    if ((is_synced || may_be_full) && fstat(fd, &st) == 0 && S_ISREG(st.st_mode)) {
        if (is_synced)
            *ret_log = undo_open(st.st_ino);
        if (at < 0)
            at = fcntl(fd, F_GETFL) & O_APPEND ? st.st_size : lseek(fd, 0, SEEK_CUR);
        if (may_be_full && control->disk_is_full && at + (off_t)n > st.st_size) {
            if (*ret_log >= 0)
                close(*ret_log);
            *ret_log = -1;
            errno = ENOSPC;
            return false;
        }
        if (*ret_log >= 0)
            undo_append(*ret_log, fd, &st, at, n);
    }
    errno = saved;
    return true;
}

static ssize_t after_write(int log, ssize_t result)
{
    int saved = errno;
    if (log >= 0)
        close(log);
    errno = saved;
    return result;
}

static size_t total(const struct iovec *v, int n)
{
    size_t sum = 0;
    for (int i = 0; i < n; i++)
        sum += v[i].iov_len;
    return sum;
}

ssize_t write(int fd, const void *p, size_t n)
{
    int log;
    return before_write(fd, -1, n, &log) ? after_write(log, NEXT(write)(fd, p, n)) : -1;
}

ssize_t writev(int fd, const struct iovec *v, int count)
{
    int log;
    return before_write(fd, -1, total(v, count), &log)
               ? after_write(log, NEXT(writev)(fd, v, count))
               : -1;
}

ssize_t pwrite(int fd, const void *p, size_t n, off_t at)
{
    int log;
    return before_write(fd, at, n, &log) ? after_write(log, NEXT(pwrite)(fd, p, n, at)) : -1;
}

ssize_t pwrite64(int fd, const void *p, size_t n, off64_t at)
{
    return pwrite(fd, p, n, at);
}

ssize_t pwritev(int fd, const struct iovec *v, int count, off_t at)
{
    int log;
    return before_write(fd, at, total(v, count), &log)
               ? after_write(log, NEXT(pwritev)(fd, v, count, at))
               : -1;
}

ssize_t pwritev64(int fd, const struct iovec *v, int count, off64_t at)
{
    return pwritev(fd, v, count, at);
}

/* The end of the log and the size of the file before a sync: what came before is kept by it. */
struct sync_mark {
    bool is_tracked;
    ino_t inode;
    int64_t end, size;
};

static void count_sync(void)
{
    char path[PATH_MAX];
    (void)snprintf(path, sizeof path, "%s/syncs", undo_folder);
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (fd >= 0) {
        (void)!NEXT(write)(fd, "", 1);
        close(fd);
    }
}

static struct sync_mark before_sync(int fd)
{
    struct sync_mark mark = {0};
    char path[PATH_MAX];
    struct stat st, log_st;
    if (!sync_root)
        return mark;
    path_of(fd, path);
    if (!is_below(path, sync_root) || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
        return mark;
    count_sync();
    int log = undo_open(st.st_ino);
    if (log >= 0 && fstat(log, &log_st) == 0 && fstat(fd, &st) == 0)
        mark = (struct sync_mark){
            .is_tracked = true, .inode = st.st_ino, .end = log_st.st_size, .size = st.st_size};
    if (log >= 0)
        close(log);
    return mark;
}

static int after_sync(const struct sync_mark *mark, int result)
{
    struct stat st;
    int saved = errno;
    int log = mark->is_tracked && result == 0 ? undo_open(mark->inode) : -1;
    if (log >= 0 && fstat(log, &st) == 0) {
        struct undo_head head = {.first = mark->end, .size = mark->size};
        if (st.st_size <= mark->end)
            (void)ftruncate(log, 0);
        else if (mark->end > 0)
            (void)pwrite_log(log, &head, sizeof head, 0);
    }
    if (log >= 0)
        close(log);
    errno = saved;
    return result;
}

int fsync(int fd)
{
    struct sync_mark mark = before_sync(fd);
    return after_sync(&mark, NEXT(fsync)(fd));
}

int fdatasync(int fd)
{
    struct sync_mark mark = before_sync(fd);
    return after_sync(&mark, NEXT(fdatasync)(fd));
}

/* A new file may get the inode of one that is gone, so a log goes with its file. */
static void forget(int at, const char *path)
{
    struct stat st;
    char log[PATH_MAX];
    if (!sync_root || fstatat(at, path, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode) ||
        st.st_nlink > 1)
        return;
    (void)snprintf(log, sizeof log, "%s/%llu", undo_folder, (unsigned long long)st.st_ino);
    (void)NEXT(unlink)(log);
}

int unlink(const char *path)
{
    int saved = errno;
    forget(AT_FDCWD, path);
    errno = saved;
    return NEXT(unlink)(path);
}

int unlinkat(int at, const char *path, int flags)
{
    int saved = errno;
    forget(at, path);
    errno = saved;
    return NEXT(unlinkat)(at, path, flags);
}

int rename(const char *from, const char *to)
{
    int saved = errno;
    forget(AT_FDCWD, to);
    errno = saved;
    return NEXT(rename)(from, to);
}

int statvfs(const char *path, struct statvfs *ret)
{
    int result = NEXT(statvfs)(path, ret);
    if (result == 0 && control->disk_is_full && full_root)
        ret->f_bavail = ret->f_bfree = 0;
    return result;
}

int statvfs64(const char *path, struct statvfs64 *ret)
{
    int result = NEXT(statvfs64)(path, ret);
    if (result == 0 && control->disk_is_full && full_root)
        ret->f_bavail = ret->f_bfree = 0;
    return result;
}

int clock_gettime(clockid_t id, struct timespec *ret)
{
    int result = NEXT(clock_gettime)(id, ret);
    if (result == 0 && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE)) {
        int64_t ns = ret->tv_sec * INT64_C(1000000000) + ret->tv_nsec + control->clock_offset_ns;
        ret->tv_sec = ns / 1000000000;
        ret->tv_nsec = ns % 1000000000;
    }
    return result;
}

int gettimeofday(struct timeval *restrict ret, void *restrict zone)
{
    struct timespec now;
    (void)zone;
    int result = clock_gettime(CLOCK_REALTIME, &now);
    if (result == 0)
        *ret = (struct timeval){.tv_sec = now.tv_sec, .tv_usec = now.tv_nsec / 1000};
    return result;
}

time_t time(time_t *ret)
{
    struct timespec now;
    if (clock_gettime(CLOCK_REALTIME, &now) != 0)
        return (time_t)-1;
    if (ret)
        *ret = now.tv_sec;
    return now.tv_sec;
}
