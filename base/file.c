/* Files: read whole, replace, make and remove folders.
 *
 * A file is replaced through a temporary file in the same folder, because rename(2) replaces a
 * file in one step only within a file system. A durable replacement syncs twice. The file is synced
 * before the rename: otherwise a crash could leave the new name without content. The folder is
 * synced after it: otherwise a crash could bring the old file back. file_publishv() omits both, for
 * callers that sync later or can write the file again.
 *
 * file_draft is the one way to put a file in the place of another; file_output adds what is written
 * to as it is (standard output, devices, pipes).
 *
 * file_read() grows a buffer instead of asking for the size first: files of /proc and pipes report
 * the size 0, and a file may grow while it is read. */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/str.h"

void file_closep(int *fd)
{
    if (*fd >= 0)
        (void)close(*fd);
    *fd = -1;
}

static as_status fail_errno(struct as_err *err, const char *doing, const char *path)
{
    int e = errno;
    as_status st = e == ENOENT ? AS_E_NOT_FOUND : e == ENOMEM ? AS_E_NOMEM : AS_E_IO;
    return as_fail(err, st, "cannot %s %.200s: %s", doing, path, strerror(e));
}

static const char *kind_of(mode_t mode)
{
    return S_ISDIR(mode)    ? "a folder"
           : S_ISCHR(mode)  ? "a character device"
           : S_ISBLK(mode)  ? "a block device"
           : S_ISFIFO(mode) ? "a pipe"
           : S_ISSOCK(mode) ? "a socket"
                            : "no regular file";
}

/* The rest of a descriptor. `retry`: a signal does not end it. */
static as_status read_rest(int fd, const char *name, size_t max_bytes, bool retry, char **ret,
                           size_t *ret_len, struct as_err *err)
{
    AS_AUTO(str_done) struct str b = {0};
    char chunk[65536];
    for (;;) {
        ssize_t n = read(fd, chunk, sizeof chunk);
        if (n < 0 && errno == EINTR && retry)
            continue;
        if (n < 0)
            return fail_errno(err, "read", name);
        if (n == 0)
            break;
        if ((size_t)n > max_bytes - b.len)
            return as_fail(err, AS_E_TOO_LARGE, "%.200s is larger than %zu bytes", name, max_bytes);
        str_add(&b, chunk, (size_t)n);
    }
    as_status st = str_check(&b, err);
    if (st < 0)
        return st;
    size_t len = b.len;
    char *s = str_take(&b);
    if (!s)
        return as_fail(err, AS_E_NOMEM, "out of memory for %.200s", name);
    *ret = s;
    if (ret_len)
        *ret_len = len;
    return AS_OK;
}

as_status file_read(const char *path, size_t max_bytes, char **ret, size_t *ret_len,
                    struct as_err *err)
{
    AS_AUTO(file_closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return fail_errno(err, "open", path);
    return read_rest(fd, path, max_bytes, true, ret, ret_len, err);
}

as_status file_read_input(const char *path, size_t max_bytes, char **ret, size_t *ret_len,
                          struct as_err *err)
{
    struct stat sb;
    if (as_streq(path, "-"))
        return read_rest(STDIN_FILENO, "standard input", max_bytes, false, ret, ret_len, err);
    if (stat(path, &sb) != 0)
        return fail_errno(err, "open", path);
    if (!S_ISREG(sb.st_mode) && !S_ISFIFO(sb.st_mode))
        return as_fail(err, AS_E_INVAL,
                       "%.200s is %s, expected a file or a pipe, or - for standard input", path,
                       kind_of(sb.st_mode));
    AS_AUTO(file_closep) int fd = open(path, O_RDONLY | O_NOCTTY | O_CLOEXEC);
    if (fd < 0)
        return fail_errno(err, "open", path);
    return read_rest(fd, path, max_bytes, false, ret, ret_len, err);
}

as_status file_open_regular(const char *path, int *ret_fd, struct as_err *err)
{
    struct stat sb;
    if (stat(path, &sb) != 0)
        return fail_errno(err, "open", path);
    AS_AUTO(file_closep) int fd = -1;
    if (S_ISREG(sb.st_mode)) { /* opening a pipe or a device may wait or have effects */
        fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
        if (fd < 0 || fstat(fd, &sb) != 0)
            return fail_errno(err, "open", path);
    }
    if (!S_ISREG(sb.st_mode))
        return as_fail(err, AS_E_INVAL, "%.200s is %s, expected a regular file", path,
                       kind_of(sb.st_mode));
    *ret_fd = fd;
    fd = -1;
    return AS_OK;
}

as_status file_write_all(int fd, const void *bytes, size_t len, struct as_err *err)
{
    const char *p = bytes;
    while (len) {
        ssize_t n = write(fd, p, len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return as_fail(err, AS_E_IO, "cannot write: %s", strerror(errno));
        p += n;
        len -= (size_t)n;
    }
    return AS_OK;
}

static as_status sync_folder_of(const char *path, struct as_err *err)
{
    char dir[4096];
    (void)snprintf(dir, sizeof dir, "%s", path);
    char *slash = strrchr(dir, '/');
    if (slash)
        slash[slash == dir] = 0;
    AS_AUTO(file_closep) int fd = open(slash ? dir : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || fsync(fd) != 0)
        return fail_errno(err, "sync the folder of", path);
    return AS_OK;
}

as_status file_sync(const char *path, struct as_err *err)
{
    AS_AUTO(file_closep) int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    return fd >= 0 && fsync(fd) == 0 ? AS_OK : fail_errno(err, "sync", path);
}

/* What rename() would replace. *ret_sb has st_mode 0 when nothing is there. stat() goes first,
 * because the kernel refuses to follow a link that another user planted in a shared folder, and
 * realpath() does not. */
static as_status find_target(const char *path, char target[PATH_MAX], struct stat *ret_sb,
                             struct as_err *err)
{
    struct stat link;
    if (stat(path, ret_sb) == 0)
        return realpath(path, target) ? AS_OK : fail_errno(err, "find", path);
    if (errno != ENOENT)
        return fail_errno(err, "look at", path);
    if (lstat(path, &link) == 0)
        return as_fail(err, AS_E_IO, "%.200s is a link to nothing", path);
    *ret_sb = (struct stat){0};
    int n = snprintf(target, PATH_MAX, "%s", path);
    return n < PATH_MAX ? AS_OK : as_fail(err, AS_E_IO, "the path %.200s is too long", path);
}

static as_status check_regular(const char *path, const struct stat *sb, struct as_err *err)
{
    if (sb->st_mode == 0 || S_ISREG(sb->st_mode))
        return AS_OK;
    return as_fail(err, AS_E_IO, "%.200s is %s, not a regular file; it is not replaced", path,
                   kind_of(sb->st_mode));
}

as_status file_draft_open(struct file_draft *d, const char *named, struct as_err *err)
{
    char path[PATH_MAX];
    struct stat sb;
    AS_AUTO(str_done) struct str temp = {0};
    as_status st = find_target(named, path, &sb, err);
    if (st < 0)
        return st;
    st = check_regular(named, &sb, err);
    if (st < 0)
        return st;
    str_printf(&temp, "%s.tmp-XXXXXX", path);
    AS_AUTO(as_freep) char *copy = as_strdup(path);
    st = copy ? str_check(&temp, err) : as_fail_nomem(err);
    if (st < 0)
        return st;
    int fd = mkostemp(temp.s, O_CLOEXEC);
    if (fd < 0)
        return fail_errno(err, "create a file beside", path);
    *d = (struct file_draft){.fd = fd, .path = as_steal(copy), .temp = str_take(&temp)};
    return AS_OK;
}

as_status file_draft_commit(struct file_draft *d, mode_t mode, bool durably, struct as_err *err)
{
    if (fchmod(d->fd, mode) != 0 || (durably && fsync(d->fd) != 0) || rename(d->temp, d->path) != 0)
        return fail_errno(err, "replace", d->path);
    as_freep(&d->temp);
    return durably ? sync_folder_of(d->path, err) : AS_OK;
}

void file_draft_done(struct file_draft *d)
{
    if (!d->path)
        return;
    (void)close(d->fd);
    if (d->temp)
        (void)unlink(d->temp);
    free(d->temp);
    free(d->path);
    *d = (struct file_draft){0};
}

static as_status replace_file(const char *path, const struct iovec *parts, size_t n_parts,
                              mode_t mode, bool durably, struct as_err *err)
{
    AS_AUTO(file_draft_done) struct file_draft d = {0};
    as_status st = file_draft_open(&d, path, err);
    if (st < 0)
        return st;
    for (size_t i = 0; st == AS_OK && i < n_parts; i++)
        st = file_write_all(d.fd, parts[i].iov_base, parts[i].iov_len, err);
    if (st < 0)
        return as_err_prefix(err, st, "%.200s", path);
    return file_draft_commit(&d, mode, durably, err);
}

as_status file_replace(const char *path, const void *bytes, size_t len, mode_t mode,
                       struct as_err *err)
{
    const struct iovec part = {(void *)bytes, len};
    return replace_file(path, &part, 1, mode, true, err);
}

/* Not O_CREAT: a path that vanished meanwhile is an error, not a new file. */
static as_status open_device(struct file_output *o, const char *path, struct as_err *err)
{
    int fd = open(path, O_WRONLY | O_NOCTTY | O_CLOEXEC);
    if (fd < 0)
        return fail_errno(err, "open", path);
    *o = (struct file_output){.fd = fd, .close = true};
    return AS_OK;
}

as_status file_output_open(struct file_output *o, const char *path, mode_t mode, struct as_err *err)
{
    struct stat sb;
    if (as_streq(path, "-")) {
        *o = (struct file_output){.fd = STDOUT_FILENO};
        return AS_OK;
    }
    bool is_there =
        stat(path, &sb) == 0; /* file_draft_open() reports what is wrong with the path */
    if (is_there && (S_ISCHR(sb.st_mode) || S_ISFIFO(sb.st_mode)))
        return open_device(o, path, err);
    struct file_draft d = {0};
    as_status st = file_draft_open(&d, path, err);
    if (st < 0)
        return st;
    if (is_there)
        mode = sb.st_mode & (mode & 077 ? 07777 : 07700);
    *o = (struct file_output){.fd = d.fd, .mode = mode, .draft = d};
    return AS_OK;
}

as_status file_output_commit(struct file_output *o, struct as_err *err)
{
    return o->draft.path ? file_draft_commit(&o->draft, o->mode, true, err) : AS_OK;
}

void file_output_done(struct file_output *o)
{
    if (o->close)
        (void)close(o->fd);
    file_draft_done(&o->draft);
    *o = (struct file_output){0};
}

as_status file_write_output(const char *path, const void *bytes, size_t len, mode_t mode,
                            struct as_err *err)
{
    AS_AUTO(file_output_done) struct file_output o = {0};
    as_status st = file_output_open(&o, path, mode, err);
    if (st < 0)
        return st;
    st = file_write_all(o.fd, bytes, len, err);
    return st < 0 ? as_err_prefix(err, st, "%.200s", path) : file_output_commit(&o, err);
}

as_status file_publishv(const char *path, const struct iovec *parts, size_t n_parts, mode_t mode,
                        struct as_err *err)
{
    return replace_file(path, parts, n_parts, mode, false, err);
}

bool file_is_folder(const char *path)
{
    struct stat sb;
    return stat(path, &sb) == 0 && S_ISDIR(sb.st_mode);
}

#define MKDIRS_TRIES 1000

/* The last one alone where its parent is there, which is most often so; else all of them from the
 * top. *ret_gone: one that was there, or was made, has gone meanwhile. */
static as_status make_folders(char *p, mode_t mode, bool *ret_gone, struct as_err *err)
{
    *ret_gone = false;
    if (mkdir(p, mode) == 0)
        return AS_OK;
    for (char *s = errno == EEXIST ? p + strlen(p) : p + 1;; s++) {
        bool is_last = !*s;
        if (!is_last && *s != '/')
            continue;
        *s = 0;
        int failure = mkdir(p, is_last ? mode : 0777) == 0 ? 0 : errno;
        *ret_gone = failure == ENOENT;
        if (failure != 0 && failure != EEXIST)
            return fail_errno(err, "make the folder", p);
        if (is_last)
            break;
        *s = '/';
    }
    struct stat sb;
    bool is_there = stat(p, &sb) == 0;
    *ret_gone = !is_there && errno == ENOENT;
    if (!is_there || !S_ISDIR(sb.st_mode))
        return as_fail(err, AS_E_IO, "%.200s exists and is not a folder", p);
    return AS_OK;
}

as_status file_mkdirs(const char *path, mode_t mode, struct as_err *err)
{
    if (!*path)
        return as_fail(err, AS_E_IO, "cannot make a folder without a name");
    for (int try = 1;; try++) {
        bool gone = false;
        AS_AUTO(as_freep) char *p = as_strdup(path);
        if (!p)
            return as_fail_nomem(err);
        as_status st = make_folders(p, mode, &gone, err);
        if (!gone || try == MKDIRS_TRIES) /* a link to nothing is gone each time */
            return st;
    }
}

as_status file_own_folder(const char *path, struct as_err *err)
{
    return file_own_folder_of(path, geteuid(), getegid(), err);
}

static as_status fail_link(const char *path, struct as_err *err)
{
    AS_AUTO(as_freep) char *target = realpath(path, NULL);
    struct stat sb;
    if (target && lstat(path, &sb) == 0 && S_ISLNK(sb.st_mode))
        return as_fail(err, AS_E_IO, "%.100s is a link; give the path that it leads to, %.100s",
                       path, target);
    return as_fail(err, AS_E_IO, "%.200s is a link, or not a folder", path);
}

/* The folder `name` in the folder `at`; `path` is for messages. All after mkdir() goes through one
 * descriptor, so that nobody can put another folder in its place between the check and the
 * change. */
static as_status own_folder_at(int at, const char *name, const char *path, uid_t uid, gid_t gid,
                               struct as_err *err)
{
    struct stat sb;
    if (mkdirat(at, name, 0700) != 0 && errno != EEXIST)
        return fail_errno(err, "make the folder", path);
    AS_AUTO(file_closep) int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 && (errno == ENOTDIR || errno == ELOOP))
        return fail_link(path, err);
    if (fd < 0 && errno == EACCES)
        return as_fail(err, AS_E_DENIED, "%.200s belongs to another user, expected user %u", path,
                       (unsigned)uid);
    if (fd < 0 || fstat(fd, &sb) != 0)
        return fail_errno(err, "open the folder", path);
    if (sb.st_uid != uid && sb.st_uid == geteuid() && fchown(fd, uid, gid) == 0)
        sb.st_uid = uid;
    if (sb.st_uid != uid)
        return as_fail(err, AS_E_DENIED,
                       "%.200s belongs to user %u, expected %u; start as the user who made it, or "
                       "choose another folder",
                       path, (unsigned)sb.st_uid, (unsigned)uid);
    if ((sb.st_mode & 0777) != 0700 && fchmod(fd, 0700) != 0)
        return fail_errno(err, "protect the folder", path);
    return AS_OK;
}

as_status file_own_folder_of(const char *path, uid_t uid, gid_t gid, struct as_err *err)
{
    return own_folder_at(AT_FDCWD, path, path, uid, gid, err);
}

/* Go from the folder *at, which is replaced, to the folder `name` in it. */
static as_status enter_folder(int *at, const char *name, const char *path, struct as_err *err)
{
    if (mkdirat(*at, name, 0777) != 0 && errno != EEXIST)
        return fail_errno(err, "make the folder", path);
    int fd = openat(*at, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOTDIR || errno == ELOOP ? fail_link(path, err)
                                                  : fail_errno(err, "open the folder", path);
    file_closep(at);
    *at = fd;
    return AS_OK;
}

as_status file_own_path(const char *path, struct as_err *err)
{
    AS_AUTO(as_freep) char *p = as_strdup(path);
    if (!p)
        return as_fail_nomem(err);
    for (size_t n = strlen(p); n > 1 && p[n - 1] == '/'; n--)
        p[n - 1] = '\0';
    if (!*p)
        return as_fail(err, AS_E_IO, "cannot make a folder without a name");
    AS_AUTO(file_closep) int at = open(*p == '/' ? "/" : ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (at < 0)
        return fail_errno(err, "open", *p == '/' ? "/" : ".");
    char *name = p + strspn(p, "/");
    for (char *slash; (slash = strchr(name, '/')); name = slash + 1 + strspn(slash + 1, "/")) {
        *slash = '\0';
        as_status st = enter_folder(&at, name, p, err);
        *slash = '/';
        if (st < 0)
            return st;
    }
    return own_folder_at(at, *name ? name : ".", path, geteuid(), getegid(), err);
}

static int remove_one(const char *path, const struct stat *sb, int type, struct FTW *ftw)
{
    (void)sb, (void)type, (void)ftw;
    return remove(path);
}

as_status file_remove_tree(const char *path, struct as_err *err)
{
    if (nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS) != 0 && errno != ENOENT)
        return fail_errno(err, "remove", path);
    return AS_OK;
}

char *file_join(const char *dir, const char *name)
{
    struct str b = {0};
    str_printf(&b, "%s/%s", dir, name);
    return str_take(&b);
}

bool file_path_is_inner(const char *s)
{
    if (!*s || strlen(s) > 255)
        return false;
    for (const char *part = s;;) {
        size_t n = strcspn(part, "/");
        if (n == 0 || (n == 1 && part[0] == '.') || (n == 2 && part[0] == '.' && part[1] == '.'))
            return false;
        for (size_t i = 0; i < n; i++)
            if ((unsigned char)part[i] < ' ' || part[i] == 0x7f)
                return false;
        if (!part[n])
            return true;
        part += n + 1;
    }
}

#define LIMIT_MAX 65536

void file_raise_limit(void)
{
    struct rlimit lim;
    if (getrlimit(RLIMIT_NOFILE, &lim) != 0)
        return;
    lim.rlim_cur = lim.rlim_max < LIMIT_MAX ? lim.rlim_max : LIMIT_MAX;
    (void)setrlimit(RLIMIT_NOFILE, &lim);
}

#define COPY_BYTES (1 << 20)

as_status file_copy(const char *from, const char *to, struct as_err *err)
{
    AS_AUTO(file_closep) int in = open(from, O_RDONLY | O_CLOEXEC);
    AS_AUTO(file_closep) int out = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    AS_AUTO(as_freep) char *buf = as_calloc(1, COPY_BYTES);
    if (!buf)
        return as_fail_nomem(err);
    if (in < 0 || out < 0)
        return as_fail(err, AS_E_IO, "%s: %s", in < 0 ? from : to, strerror(errno));
    for (;;) {
        ssize_t n = read(in, buf, COPY_BYTES);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return as_fail(err, AS_E_IO, "%s: %s", from, strerror(errno));
        if (n == 0)
            return AS_OK;
        as_status st = file_write_all(out, buf, (size_t)n, err);
        if (st < 0)
            return st;
    }
}

as_status file_link_or_copy(const char *from, const char *to, struct as_err *err)
{
    if (link(from, to) == 0)
        return AS_OK;
    if (errno == ENOENT)
        return as_fail(err, AS_E_NOT_FOUND, "%s: %s", from, strerror(errno));
    return file_copy(from, to, err);
}
