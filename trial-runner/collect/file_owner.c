/* Whose a file is, by two signs. Who writes it: processes and their descriptors in /proc, where the
 * environment tells those of a trial from others, since children inherit it. Who else reads it: a
 * read lock behind every byte, which is gone with its descriptor, so that nothing is left by a
 * runner that was killed. */
#include "trial-runner/collect/file_owner.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"

#define ENVIRON_MAX (4 << 20)
#define EXEC_LOOKS 20              /* a millisecond apart, while a process has no environment */
#define MARK_AT (INT64_C(1) << 62) /* no file is so long */

/* A process that is beginning another program has no environment until that is in place. */
static as_status read_environ(const char *pid, char **ret, size_t *ret_len)
{
    char path[300];
    (void)snprintf(path, sizeof path, "/proc/%s/environ", pid);
    for (int looks = 1;; looks++) {
        as_status st = file_read(path, ENVIRON_MAX, ret, ret_len, NULL);
        if (st < 0 || *ret_len > 0 || looks == EXEC_LOOKS)
            return st;
        as_freep(ret);
        clock_sleep_ms(1);
    }
}

static bool has_marker(const char *pid, const char *marker)
{
    static const char name[] = "ASSAY_REPORT=";
    AS_AUTO(as_freep) char *text = NULL;
    size_t len = 0;
    if (read_environ(pid, &text, &len) < 0)
        return false;
    for (size_t at = 0; at < len; at += strlen(text + at) + 1)
        if (strncmp(text + at, name, strlen(name)) == 0 &&
            strcmp(text + at + strlen(name), marker) == 0)
            return true;
    return false;
}

/* Was descriptor `fd` of the process opened for writing? The link in /proc has the mode of the
 * descriptor, not of the file. */
static bool is_writable(int fds, const char *fd)
{
    struct stat link;
    return fstatat(fds, fd, &link, AT_SYMLINK_NOFOLLOW) == 0 && (link.st_mode & S_IWUSR);
}

static bool has_open(const char *pid, const struct stat *file)
{
    char path[300];
    struct stat now;
    bool found = false;
    (void)snprintf(path, sizeof path, "/proc/%s/fd", pid);
    DIR *d = opendir(path);
    for (struct dirent *e; d && !found && (e = readdir(d));)
        found = e->d_name[0] != '.' && is_writable(dirfd(d), e->d_name) &&
                fstatat(dirfd(d), e->d_name, &now, 0) == 0 && now.st_ino == file->st_ino &&
                now.st_dev == file->st_dev;
    if (d)
        closedir(d);
    return found;
}

file_owner file_owner_find(int dir, const char *path, const char *marker)
{
    struct stat file;
    file_owner who = FILE_OWNER_NONE;
    DIR *d = fstatat(dir, path, &file, 0) == 0 ? opendir("/proc") : NULL;
    for (struct dirent *e; d && who != FILE_OWNER_OURS && (e = readdir(d));) {
        if (strspn(e->d_name, "0123456789") != strlen(e->d_name) || !has_open(e->d_name, &file))
            continue;
        who = has_marker(e->d_name, marker) ? FILE_OWNER_OURS : FILE_OWNER_OTHER;
    }
    if (d)
        closedir(d);
    return who;
}

static struct flock mark_of(short type)
{
    return (struct flock){.l_type = type, .l_whence = SEEK_SET, .l_start = MARK_AT, .l_len = 1};
}

void file_owner_mark(int fd)
{
    struct flock mark = mark_of(F_RDLCK);
    (void)fcntl(fd, F_OFD_SETLK, &mark); /* a file system without locks: nobody is warned */
}

bool file_owner_is_shared(int fd)
{
    struct flock other = mark_of(F_WRLCK); /* would meet every read lock but our own */
    return fcntl(fd, F_OFD_GETLK, &other) == 0 && other.l_type != F_UNLCK;
}
