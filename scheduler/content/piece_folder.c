/* A folder of files, each named by the digest of its content: DIR/ab/abcdef….
 *
 * A piece is written to DIR/draft/NAME, synced, and renamed to its place; then the folder is
 * synced. So a file under a digest is whole, whatever crashed. Everything goes through open
 * folders, and no link is followed: somebody who can write in DIR cannot lead us out of it.
 *
 * The marker DIR/assay-blob-store says that the folder is ours. A folder with other files and
 * without the marker is refused, so that a mistyped path mixes nothing into somebody's files. */
#include "scheduler/content/piece_kinds_priv.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/str.h"

#define MARKER "assay-blob-store"
#define DRAFTS "draft"
#define OPEN_FOLDER (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

struct folder {
    char *path;        /* owned; for messages */
    int fd, drafts_fd; /* open folders; -1: none */
};

static void folder_close(void *self)
{
    struct folder *f = self;
    if (!f)
        return;
    file_closep(&f->fd);
    file_closep(&f->drafts_fd);
    free(f->path);
    free(f);
}

static void folder_closep(struct folder **f)
{
    folder_close(*f);
}

static as_status failed(const struct folder *f, const char *what, const char *name,
                        struct as_err *err)
{
    int why = errno;
    return as_fail(err, AS_E_IO, "%.100s/%s: cannot %s: %s", f->path, name, what, strerror(why));
}

/* Open a folder in a folder; make it if it is absent. */
static as_status sub_folder(const struct folder *f, const char *name, int *ret, struct as_err *err)
{
    if (mkdirat(f->fd, name, 0700) == 0) {
        if (fsync(f->fd) < 0)
            return failed(f, "sync the folder of", name, err);
    } else if (errno != EEXIST) {
        return failed(f, "make the folder", name, err);
    }
    *ret = openat(f->fd, name, OPEN_FOLDER);
    return *ret < 0 ? failed(f, "open the folder", name, err) : AS_OK;
}

/* Has the folder our marker, or nothing at all? *ret_marked. */
static as_status look_inside(const struct folder *f, bool *ret_marked, struct as_err *err)
{
    struct stat sb;
    *ret_marked = fstatat(f->fd, MARKER, &sb, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(sb.st_mode);
    if (*ret_marked)
        return AS_OK;
    int copy = fcntl(f->fd, F_DUPFD_CLOEXEC, 0);
    DIR *d = copy < 0 ? NULL : fdopendir(copy);
    if (!d) {
        file_closep(&copy);
        return failed(f, "list", "", err);
    }
    as_status st = AS_OK;
    for (struct dirent *e; st == AS_OK && (e = readdir(d));)
        if (!as_streq(e->d_name, ".") && !as_streq(e->d_name, ".."))
            st = as_fail(err, AS_E_CONFLICT,
                         "--blob-store %.100s has '%.40s' and no file " MARKER
                         ": expected an empty folder, or one that assayd uses",
                         f->path, e->d_name);
    (void)closedir(d);
    return st;
}

static as_status put_marker(const struct folder *f, struct as_err *err)
{
    static const char text[] = "Content of assayd --blob-store, named by SHA-256. The database has "
                               "the names of the files.\n";
    AS_AUTO(file_closep)
    int fd = openat(f->fd, MARKER, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return errno == EEXIST ? AS_OK : failed(f, "write", MARKER, err);
    as_status st = file_write_all(fd, text, sizeof text - 1, err);
    if (st == AS_OK && (fsync(fd) < 0 || fsync(f->fd) < 0))
        st = failed(f, "sync", MARKER, err);
    return st;
}

as_status folder_open(const struct piece_place *place, void **ret, struct as_err *err)
{
    AS_AUTO(folder_closep) struct folder *f = as_calloc(1, sizeof *f);
    bool marked = false;
    if (!f)
        return as_fail_nomem(err);
    f->fd = f->drafts_fd = -1;
    if (!(f->path = as_strdup(place->where)))
        return as_fail_nomem(err);
    if (!*f->path)
        return as_fail(err, AS_E_INVAL, "--blob-store is empty, expected a folder or s3://BUCKET");
    if (mkdir(f->path, 0700) < 0 && errno != EEXIST)
        return as_fail(err, AS_E_IO, "--blob-store %.100s: %s", f->path, strerror(errno));
    f->fd = open(f->path, OPEN_FOLDER);
    if (f->fd < 0)
        return as_fail(err, AS_E_IO, "--blob-store %.100s: %s; expected a folder, and no link",
                       f->path, strerror(errno));
    as_status st = look_inside(f, &marked, err);
    if (st == AS_OK && !marked)
        st = put_marker(f, err);
    if (st == AS_OK)
        st = sub_folder(f, DRAFTS, &f->drafts_fd, err);
    if (st == AS_OK)
        *ret = as_steal(f);
    return st;
}

/* The two letters of a piece's folder. */
static const char *shard_of(const char *sha256, char ret[3])
{
    (void)snprintf(ret, 3, "%.2s", sha256);
    return ret;
}

static as_status write_draft(const struct folder *f, const char *name, const void *bytes,
                             size_t len, struct as_err *err)
{
    AS_AUTO(file_closep)
    int fd = openat(f->drafts_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return failed(f, "write the draft", name, err);
    as_status st = file_write_all(fd, bytes, len, err);
    if (st != AS_OK)
        return as_err_prefix(err, st, "%.100s", f->path);
    return fsync(fd) < 0 ? failed(f, "sync the draft", name, err) : AS_OK;
}

static as_status folder_put(void *self, const char *sha256, const void *bytes, size_t len,
                            struct as_err *err)
{
    struct folder *f = self;
    AS_AUTO(file_closep) int shard_fd = -1;
    char shard[3], draft[SHA256_HEX_SIZE + 20];
    uint64_t nonce = 0;
    random_bytes(&nonce, sizeof nonce); /* two uploads of the same content */
    (void)snprintf(draft, sizeof draft, "%s.%016llx", sha256, (unsigned long long)nonce);
    as_status st = sub_folder(f, shard_of(sha256, shard), &shard_fd, err);
    if (st == AS_OK)
        st = write_draft(f, draft, bytes, len, err);
    if (st == AS_OK && renameat(f->drafts_fd, draft, shard_fd, sha256) < 0)
        st = failed(f, "give its name to", draft, err);
    if (st == AS_OK && fsync(shard_fd) < 0)
        st = failed(f, "sync the folder of", sha256, err);
    if (st != AS_OK)
        (void)unlinkat(f->drafts_fd, draft, 0); /* it may be gone */
    return st;
}

/* Open the folder of a piece. -1: there is none. */
static int open_shard(const struct folder *f, const char *sha256)
{
    char shard[3];
    return openat(f->fd, shard_of(sha256, shard), OPEN_FOLDER);
}

static as_status read_whole(const struct folder *f, int fd, const char *sha256, char *buf,
                            size_t size, size_t *ret_len, struct as_err *err)
{
    size_t have = 0;
    while (have < size) {
        ssize_t n = pread(fd, buf + have, size - have, (off_t)have);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return failed(f, "read", sha256, err);
        if (n == 0)
            break;
        have += (size_t)n;
    }
    *ret_len = have;
    return AS_OK;
}

static as_status folder_get(void *self, const char *sha256, void *buf, size_t size, size_t *ret_len,
                            struct as_err *err)
{
    struct folder *f = self;
    struct stat sb;
    AS_AUTO(file_closep) int shard_fd = open_shard(f, sha256);
    AS_AUTO(file_closep) int fd = -1;
    if (shard_fd >= 0) /* O_NONBLOCK: a pipe in its place is no reason to wait */
        fd = openat(shard_fd, sha256, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0 && (errno == ENOENT || errno == ELOOP || errno == ENOTDIR))
        return as_fail(err, AS_E_NOT_FOUND, "no piece %s", sha256);
    if (fd < 0 || fstat(fd, &sb) < 0)
        return failed(f, "open", sha256, err);
    if (!S_ISREG(sb.st_mode))
        return as_fail(err, AS_E_NOT_FOUND, "no piece %s", sha256);
    if (sb.st_size > (off_t)size)
        return as_fail(err, AS_E_TOO_LARGE, "the piece %s has %lld bytes", sha256,
                       (long long)sb.st_size);
    return read_whole(f, fd, sha256, buf, size, ret_len, err);
}

static as_status folder_remove(void *self, const char *sha256, struct as_err *err)
{
    struct folder *f = self;
    AS_AUTO(file_closep) int shard_fd = open_shard(f, sha256);
    if (shard_fd < 0)
        return errno == ENOENT ? AS_OK : failed(f, "open the folder of", sha256, err);
    if (unlinkat(shard_fd, sha256, 0) < 0 && errno != ENOENT)
        return failed(f, "remove", sha256, err);
    return AS_OK;
}

/* Remove old drafts: a server that was killed left them. */
static as_status folder_tidy(void *self, int64_t keep_ms, struct as_err *err)
{
    struct folder *f = self;
    struct stat sb;
    int fd = openat(f->fd, DRAFTS, OPEN_FOLDER);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    if (!d) {
        file_closep(&fd);
        return failed(f, "list", DRAFTS, err);
    }
    for (struct dirent *e; (e = readdir(d));) {
        if (fstatat(f->drafts_fd, e->d_name, &sb, AT_SYMLINK_NOFOLLOW) == 0 &&
            S_ISREG(sb.st_mode) && (time(NULL) - sb.st_mtime) * 1000 >= keep_ms)
            (void)unlinkat(f->drafts_fd, e->d_name, 0); /* another server may be faster */
    }
    (void)closedir(d);
    return AS_OK;
}

const struct piece_ops folder_ops = {.put = folder_put,
                                     .get = folder_get,
                                     .remove = folder_remove,
                                     .tidy = folder_tidy,
                                     .close = folder_close};
