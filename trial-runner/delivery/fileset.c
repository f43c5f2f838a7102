/* Lists and compares the files below a folder of a trial.
 *
 * The trial owns the folder and may change it at any moment, or put anything in its place. So every
 * step works relative to an open directory and follows no link, a file that disappears is no error,
 * and depth, number and size are limited. A folder that the trial made unreadable is AS_E_INVAL;
 * AS_E_IO is trouble of the machine.
 *
 * Two listings of the same folder are compared by size, mtime and inode, not by content: this is
 * done every few seconds for checkpoints, and reading gigabytes each time would cost too much. */
#include "trial-runner/delivery/fileset.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/str.h"
#include "trial-runner/attempt/claimed.h"

struct scan {
    struct fileset *set;
    fileset_skip_fn skip;
    void *arg;
};

void fileset_done(struct fileset *s)
{
    for (size_t i = 0; i < s->n; i++)
        free(s->files[i].path);
    free(s->files);
    *s = (struct fileset){0};
}

static as_status skip_entry(const struct scan *sc, const char *path, const char *why)
{
    if (sc->skip)
        sc->skip(sc->arg, path, why);
    return AS_OK;
}

static as_status add_file(const struct scan *sc, const char *path, const struct stat *sb,
                          struct as_err *err)
{
    struct fileset *s = sc->set;
    if (!file_path_is_inner(path) || !as_utf8_valid(path, strlen(path)))
        return skip_entry(sc, path, "its path is longer than 255 bytes or not plain UTF-8");
    if (sb->st_size > FILESET_MAX_FILE_BYTES)
        return skip_entry(sc, path, "it is larger than 4 GiB");
    if (s->n == FILESET_MAX_FILES)
        return skip_entry(sc, path, "there are more than 1000 files");
    as_status st = as_reserve_one(&s->files, s->n, &s->cap, sizeof *s->files, err);
    if (st < 0)
        return st;
    struct fileset_file *f = &s->files[s->n];
    *f = (struct fileset_file){.path = as_strdup(path),
                               .size = sb->st_size,
                               .mtime_ns =
                                   (int64_t)sb->st_mtim.tv_sec * NS_PER_S + sb->st_mtim.tv_nsec,
                               .inode = sb->st_ino};
    if (!f->path)
        return as_fail_nomem(err);
    s->n++;
    return AS_OK;
}

static as_status scan_dir(const struct scan *sc, int dir_fd, const char *prefix, int depth,
                          struct as_err *err);

static as_status scan_entry(const struct scan *sc, int dir_fd, const char *prefix, const char *name,
                            int depth, struct as_err *err)
{
    AS_AUTO(str_done) struct str path = {0};
    struct stat sb;
    if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || fnmatch("*.tmp*", name, 0) == 0)
        return AS_OK;
    str_printf(&path, "%s%s%s", prefix, *prefix ? "/" : "", name);
    as_status st = str_check(&path, err);
    if (st < 0)
        return st;
    if (fstatat(dir_fd, name, &sb, AT_SYMLINK_NOFOLLOW) < 0)
        return AS_OK; /* removed meanwhile */
    if (S_ISREG(sb.st_mode))
        return add_file(sc, path.s, &sb, err);
    if (!S_ISDIR(sb.st_mode))
        return skip_entry(sc, path.s, "it is neither a file nor a folder");
    if (depth == FILESET_MAX_DEPTH)
        return skip_entry(sc, path.s, "it is too deep");
    int fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return fd < 0 ? AS_OK : scan_dir(sc, fd, path.s, depth + 1, err);
}

/* Takes dir_fd. */
static as_status scan_dir(const struct scan *sc, int dir_fd, const char *prefix, int depth,
                          struct as_err *err)
{
    DIR *d = fdopendir(dir_fd);
    as_status st = AS_OK;
    if (!d) {
        close(dir_fd);
        return as_fail_nomem(err);
    }
    for (struct dirent *e; st == AS_OK && (e = readdir(d));)
        st = scan_entry(sc, dir_fd, prefix, e->d_name, depth, err);
    closedir(d);
    return st;
}

static int by_path(const void *a, const void *b)
{
    return strcmp(((const struct fileset_file *)a)->path, ((const struct fileset_file *)b)->path);
}

/* Distinguish errors that the trial caused (it may replace its folder by anything) from errors of
 * the machine. */
static as_status cannot_open(const char *dir, struct as_err *err)
{
    bool of_the_trial =
        errno == ENOTDIR || errno == ELOOP || errno == EACCES || errno == ENAMETOOLONG;
    return as_fail(err, of_the_trial ? AS_E_INVAL : AS_E_IO, "%s: %s", dir, strerror(errno));
}

as_status fileset_scan(const char *dir, struct fileset *s, fileset_skip_fn skip_fn, void *arg,
                       struct as_err *err)
{
    struct scan sc = {s, skip_fn, arg};
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT ? AS_OK : cannot_open(dir, err);
    as_status st = scan_dir(&sc, fd, "", 0, err);
    if (st < 0)
        return st;
    if (s->n)
        qsort(s->files, s->n, sizeof *s->files, by_path);
    return AS_OK;
}

static bool same_file(const struct fileset_file *a, const struct fileset_file *b)
{
    return a->size == b->size && a->mtime_ns == b->mtime_ns && a->inode == b->inode &&
           strcmp(a->path, b->path) == 0;
}

/* Start writing a file out without waiting. After this has been done for all files, the waits of
 * fileset_sync commit the file system's journal once, and not once for each file. */
static void start_sync(const char *path)
{
    AS_AUTO(file_closep) int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd >= 0)
        (void)sync_file_range(fd, 0, 0, SYNC_FILE_RANGE_WRITE);
}

as_status fileset_sync(const struct fileset *s, const char *dir, struct as_err *err)
{
    for (int round = 0; round < 2; round++)
        for (size_t i = 0; i < s->n; i++) {
            AS_AUTO(as_freep) char *path = file_join(dir, s->files[i].path);
            if (!path)
                return as_fail_nomem(err);
            if (round == 0) {
                start_sync(path);
                continue;
            }
            as_status st = file_sync(path, err);
            if (st < 0)
                return st;
        }
    return file_sync(dir, err);
}

bool fileset_same(const struct fileset *a, const struct fileset *b)
{
    if (a->n != b->n)
        return false;
    for (size_t i = 0; i < a->n; i++)
        if (!same_file(&a->files[i], &b->files[i]))
            return false;
    return true;
}

void fileset_copy_digests(struct fileset *s, const struct fileset *known)
{
    for (size_t i = 0, k = 0; i < s->n; i++) { /* both are sorted */
        while (k < known->n && strcmp(known->files[k].path, s->files[i].path) < 0)
            k++;
        if (k < known->n && same_file(&known->files[k], &s->files[i]))
            memcpy(s->files[i].sha256, known->files[k].sha256, SHA256_HEX_SIZE);
    }
}

json_t *fileset_to_json(const struct fileset *s, const char *kind)
{
    json_t *files = json_array(), *set = json_pack("{s:s}", "kind", kind);
    bool ok = files && set;
    for (size_t i = 0; ok && i < s->n; i++) {
        const struct fileset_file *f = &s->files[i];
        if (f->sha256[0])
            ok = json_array_append_new(files,
                                       json_pack("{s:s,s:I,s:s}", "path", f->path, "size",
                                                 (json_int_t)f->size, "sha256", f->sha256)) == 0;
    }
    if (!ok || json_object_set(set, "files", files) < 0) {
        json_decref(set);
        set = NULL;
    }
    json_decref(files);
    return set;
}
