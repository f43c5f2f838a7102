/* Makes the folder of a trial inside the folder of its program.
 *
 * Ranks of one machine make it at the same time, and the first of them at the first attempt removes
 * what another trial of that name has left (a sweep was deleted, and its name used again). So the
 * folder is made under a lock, and the lock's file says for whom it was emptied. Links are
 * relative: they stay right where the project is mounted at another path. */
#include "trial-runner/process/own_folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/str.h"

#define PLACE ".assay"
#define UP "../../../" /* from SWEEP/NUMBER in it to the project */

static void close_dir(DIR **d)
{
    if (*d)
        (void)closedir(*d);
}

/* Whoever owns a link decides where files go, and which ones are removed. */
static as_status make_real_folder(const char *path, struct as_err *err)
{
    struct stat sb;
    as_status st = file_mkdirs(path, 0755, err);
    if (st == AS_OK && (lstat(path, &sb) < 0 || !S_ISDIR(sb.st_mode)))
        return as_fail(err, AS_E_IO, "%.200s is a link, expected a folder", path);
    return st;
}

/* What is made below the project is no part of it: version control leaves it out. */
static as_status make_place(const char *project, const char *sweep, char **ret, struct as_err *err)
{
    AS_AUTO(str_done) struct str place = {0};
    AS_AUTO(str_done) struct str ignore = {0};
    AS_AUTO(str_done) struct str folder = {0};
    str_printf(&place, "%s/" PLACE, project);
    str_printf(&ignore, "%s/" PLACE "/.gitignore", project);
    str_printf(&folder, "%s/" PLACE "/%s", project, sweep);
    as_status st = AS_OK;
    if ((st = str_check(&place, err)) != AS_OK || (st = str_check(&ignore, err)) != AS_OK ||
        (st = str_check(&folder, err)) != AS_OK || (st = make_real_folder(place.s, err)) != AS_OK ||
        (st = make_real_folder(folder.s, err)) != AS_OK)
        return st;
    AS_AUTO(file_closep)
    int fd = open(ignore.s, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (fd >= 0 && (st = file_write_all(fd, "*\n", 2, err)) != AS_OK)
        return st;
    *ret = str_take(&folder);
    return AS_OK;
}

/* Hold the lock until *ret_fd is closed. */
static as_status hold(const char *path, int *ret_fd, struct as_err *err)
{
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (fd < 0)
        return as_fail(err, AS_E_IO, "cannot open %.150s: %s", path, strerror(errno));
    while (flock(fd, LOCK_EX) < 0) {
        if (errno == EINTR)
            continue;
        as_status st = as_fail(err, AS_E_IO, "cannot lock %.150s: %s", path, strerror(errno));
        (void)close(fd);
        return st;
    }
    *ret_fd = fd;
    return AS_OK;
}

/* At the first attempt, unless another rank of it was here before: begin with nothing. */
static as_status begin_anew(int lock_fd, const struct own_folder_trial *t, const char *folder,
                            struct as_err *err)
{
    char mark[SHA256_HEX_SIZE], found[SHA256_HEX_SIZE] = "";
    if (!t->is_first)
        return AS_OK;
    as_status st = sha256_of(t->mark, strlen(t->mark), mark, err);
    if (st != AS_OK)
        return st;
    ssize_t n = pread(lock_fd, found, SHA256_HEX_SIZE - 1, 0);
    if (n == SHA256_HEX_SIZE - 1 && strcmp(found, mark) == 0)
        return AS_OK;
    if ((st = file_remove_tree(folder, err)) != AS_OK)
        return st;
    if (pwrite(lock_fd, mark, SHA256_HEX_SIZE - 1, 0) != SHA256_HEX_SIZE - 1)
        return as_fail(err, AS_E_IO, "cannot write beside %.150s: %s", folder, strerror(errno));
    return AS_OK;
}

static as_status add_link(int folder_fd, const char *name, struct as_err *err)
{
    AS_AUTO(str_done) struct str target = {0};
    str_printf(&target, UP "%s", name);
    as_status st = str_check(&target, err);
    if (st == AS_OK && symlinkat(target.s, folder_fd, name) < 0 && errno != EEXIST)
        return as_fail(err, AS_E_IO, "cannot link '%.100s': %s", name, strerror(errno));
    return st;
}

static as_status add_links(const char *project, const char *folder, struct as_err *err)
{
    AS_AUTO(file_closep) int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    AS_AUTO(close_dir) DIR *d = opendir(project);
    size_t n = 0;
    if (fd < 0 || !d)
        return as_fail(err, AS_E_IO, "cannot open %.150s: %s", fd < 0 ? folder : project,
                       strerror(errno));
    for (struct dirent *e; (e = readdir(d));) {
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0 ||
            strcmp(e->d_name, PLACE) == 0)
            continue;
        if (++n > OWN_FOLDER_MAX)
            return as_fail(err, AS_E_TOO_LARGE, "%.150s has more than %d entries", project,
                           OWN_FOLDER_MAX);
        as_status st = add_link(fd, e->d_name, err);
        if (st != AS_OK)
            return st;
    }
    return AS_OK;
}

as_status own_folder_make(const char *project, const struct own_folder_trial *t, char **ret,
                          struct as_err *err)
{
    AS_AUTO(as_freep) char *place = NULL;
    AS_AUTO(str_done) struct str folder = {0};
    AS_AUTO(str_done) struct str lock = {0};
    AS_AUTO(file_closep) int lock_fd = -1;
    as_status st = make_place(project, t->sweep, &place, err);
    if (st != AS_OK)
        return st;
    str_printf(&folder, "%s/%lld", place, (long long)t->number);
    str_printf(&lock, "%s/%lld.lock", place, (long long)t->number);
    if ((st = str_check(&folder, err)) != AS_OK || (st = str_check(&lock, err)) != AS_OK ||
        (st = hold(lock.s, &lock_fd, err)) != AS_OK ||
        (st = begin_anew(lock_fd, t, folder.s, err)) != AS_OK ||
        (st = file_mkdirs(folder.s, 0755, err)) != AS_OK ||
        (st = add_links(project, folder.s, err)) != AS_OK)
        return st;
    *ret = str_take(&folder);
    return *ret ? AS_OK : as_fail_nomem(err);
}
