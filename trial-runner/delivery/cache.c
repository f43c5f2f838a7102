/* The cache of data sets and checkpoints.
 *
 * Several runners and many threads use it at once, without a server between them. Three rules make
 * this safe. A file is complete when it has its name. A lock file beside it lets one of them
 * download it while the others wait. A hard link keeps a file alive for a trial after eviction.
 *
 * Between the look at a file and the link() to it, another runner may evict the file. Then hand_out
 * returns AS_E_NOT_FOUND and cache_get fetches it again.
 *
 * A checkpoint was written by a trial, of which a process may have escaped that writes to it still.
 * So its digest is checked again when it is copied. */
#include "trial-runner/delivery/cache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"

#define TEMPORARY_OLD_S (24 * 3600)
#define LOCK_WAIT_MS 5

/* Link or copy a cached file to dest. AS_E_NOT_FOUND if it is not cached. */
static as_status hand_out(const char *cached, int64_t size, const char *dest, struct as_err *err)
{
    struct stat sb;
    if (stat(cached, &sb) < 0 || sb.st_size != size)
        return as_fail(err, AS_E_NOT_FOUND, "%s is not cached", cached);
    utimensat(AT_FDCWD, cached, NULL,
              0); /* marks it as used now; a failure only makes it look older */
    unlink(dest);
    return file_link_or_copy(cached, dest, err);
}

/* Fetch a file that is not cached. If another thread or runner is fetching it, wait a little
 * instead. Only one may fetch it, because a second download that replaces the first by rename makes
 * a link() in progress fail with ENOENT. The members of a group all ask for the same file at
 * once. */
static as_status fetch_or_wait(struct client *c, const char *sha256, int64_t size, const char *path,
                               const struct client_opts *opts, bool *ret_fetched,
                               struct as_err *err)
{
    struct stat sb;
    AS_AUTO(str_done) struct str name = {0};
    str_printf(&name, "%s.tmplock",
               path); /* cache_shrink removes it as a temporary when it is old */
    if (str_check(&name, err) != AS_OK)
        return AS_E_NOMEM;
    AS_AUTO(file_closep) int fd = open(name.s, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    if (fd < 0)
        return as_fail(err, AS_E_IO, "%s: %s", name.s, strerror(errno));
    if (flock(fd, LOCK_EX | LOCK_NB) == 0) {
        *ret_fetched =
            stat(path, &sb) < 0 || sb.st_size != size; /* else it was downloaded meanwhile */
        return *ret_fetched ? client_download_blob(c, sha256, path, 0, opts, err) : AS_OK;
    }
    if (!client_wait(c, LOCK_WAIT_MS))
        return as_fail(err, AS_E_UNAVAILABLE, "interrupted");
    return AS_OK;
}

/* The folder and the path of a blob. */
static as_status place_of(const char *cache_dir, const char *sha256, struct str *dir,
                          struct str *path, struct as_err *err)
{
    if (!sha256_hex_valid(sha256))
        return as_fail(err, AS_E_INVAL, "'%.80s' is not a SHA-256 digest", sha256);
    str_printf(dir, "%s/%.2s", cache_dir, sha256);
    str_printf(path, "%s/%.2s/%s", cache_dir, sha256, sha256);
    as_status st = str_check(path, err);
    return st < 0 ? st : str_check(dir, err);
}

as_status cache_get(const char *cache_dir, int64_t max_bytes, struct client *c, const char *sha256,
                    int64_t size, const char *dest, const struct client_opts *opts,
                    struct as_err *err)
{
    AS_AUTO(str_done) struct str dir = {0}, path = {0};
    as_status st = place_of(cache_dir, sha256, &dir, &path, err);
    if (st < 0)
        return st;
    if ((st = hand_out(path.s, size, dest, err)) != AS_E_NOT_FOUND)
        return st;
    if ((st = file_mkdirs(dir.s, 0755, err)) < 0)
        return st;
    /* Whoever holds the lock downloads; the others come here again until the file can be linked. */
    for (bool fetched = false; !fetched;) {
        if ((st = fetch_or_wait(c, sha256, size, path.s, opts, &fetched, err)) < 0)
            return st;
        if ((st = hand_out(path.s, size, dest, err)) != AS_E_NOT_FOUND)
            break;
    }
    if (st < 0)
        return st;
    if (max_bytes)
        cache_shrink(cache_dir, max_bytes);
    return AS_OK;
}

/* Copy a file whose name is of another file system, under a temporary name first. */
static as_status keep_copy(const char *from, const char *path, struct as_err *err)
{
    AS_AUTO(str_done) struct str name = {0};
    str_printf(&name, "%s.tmp%ld.%p", path, (long)getpid(), (const void *)&name);
    as_status st = str_check(&name, err);
    if (st < 0)
        return st;
    st = file_copy(from, name.s, err);
    if (st == AS_OK && (chmod(name.s, 0600) < 0 || rename(name.s, path) < 0))
        st = as_fail(err, AS_E_IO, "%s: %s", path, strerror(errno));
    if (st < 0)
        (void)unlink(name.s);
    return st;
}

as_status cache_keep(const char *cache_dir, int64_t max_bytes, const char *sha256, const char *path,
                     struct as_err *err)
{
    AS_AUTO(str_done) struct str dir = {0}, cached = {0};
    as_status st = place_of(cache_dir, sha256, &dir, &cached, err);
    if (st < 0 || (st = file_mkdirs(dir.s, 0755, err)) < 0)
        return st;
    if (chmod(path, 0600) < 0)
        return as_fail(err, AS_E_IO, "%s: %s", path, strerror(errno));
    if (link(path, cached.s) < 0) {
        if (errno == EEXIST)
            return AS_OK;
        if ((st = keep_copy(path, cached.s, err)) < 0)
            return st;
    }
    utimensat(AT_FDCWD, cached.s, NULL, 0);
    if (max_bytes)
        cache_shrink(cache_dir, max_bytes);
    return AS_OK;
}

as_status cache_copy(const char *cache_dir, const char *sha256, const char *dest, bool *ret_found,
                     struct as_err *err)
{
    AS_AUTO(str_done) struct str dir = {0}, cached = {0};
    char got[SHA256_HEX_SIZE];
    int64_t size = 0;
    *ret_found = false;
    as_status st = place_of(cache_dir, sha256, &dir, &cached, err);
    if (st < 0)
        return st;
    if (access(cached.s, F_OK) < 0)
        return AS_OK;
    utimensat(AT_FDCWD, cached.s, NULL, 0);
    if ((st = file_copy(cached.s, dest, err)) < 0 ||
        (st = sha256_of_file(dest, got, &size, err)) < 0) {
        bool is_gone = access(cached.s, F_OK) < 0; /* another runner has evicted it meanwhile */
        (void)unlink(dest);
        return is_gone ? AS_OK : st;
    }
    *ret_found = strcmp(got, sha256) == 0;
    if (*ret_found)
        return AS_OK;
    (void)unlink(dest);
    (void)unlink(cached.s);
    return AS_OK;
}

as_status cache_decoded_path(const char *cache_dir, const char *sha256, struct str *ret,
                             struct as_err *err)
{
    AS_AUTO(str_done) struct str text = {0}, dir = {0};
    char name[SHA256_HEX_SIZE];
    if (!sha256_hex_valid(sha256))
        return as_fail(err, AS_E_INVAL, "'%.80s' is not a SHA-256 digest", sha256);
    str_printf(&text, "decoded %s",
               sha256); /* the digest of this text is its name: no content has it */
    as_status st = str_check(&text, err);
    if (st < 0)
        return st;
    st = sha256_of(text.s, text.len, name, err);
    if (st < 0)
        return st;
    str_printf(&dir, "%s/%.2s", cache_dir, name);
    str_printf(ret, "%s/%.2s/%s", cache_dir, name, name);
    if ((st = str_check(&dir, err)) != AS_OK || (st = str_check(ret, err)) != AS_OK)
        return st;
    return file_mkdirs(dir.s, 0755, err);
}

struct cached {
    char path[512];
    int64_t size;
    struct timespec used;
};

struct cached_list {
    struct cached *v;
    size_t n, cap;
    int64_t bytes;
};

static void list_file(struct cached_list *l, const char *dir, const char *name)
{
    struct stat sb;
    struct cached f = {0};
    snprintf(f.path, sizeof f.path, "%s/%s", dir, name);
    if (lstat(f.path, &sb) < 0 || !S_ISREG(sb.st_mode))
        return;
    if (!sha256_hex_valid(name)) {
        if (strstr(name, ".tmp") && time(NULL) - sb.st_mtime > TEMPORARY_OLD_S)
            unlink(f.path);
        return;
    }
    f.size = sb.st_size;
    f.used = sb.st_mtim;
    if (as_reserve_one(&l->v, l->n, &l->cap, sizeof *l->v, NULL) < 0)
        return;
    l->v[l->n++] = f;
    l->bytes += f.size;
}

static void list_all(struct cached_list *l, const char *cache_dir)
{
    DIR *top = opendir(cache_dir);
    for (struct dirent *e; top && (e = readdir(top));) {
        char dir[400];
        if (strlen(e->d_name) != 2 || e->d_name[0] == '.')
            continue;
        snprintf(dir, sizeof dir, "%s/%s", cache_dir, e->d_name);
        DIR *d = opendir(dir);
        for (struct dirent *f; d && (f = readdir(d));)
            list_file(l, dir, f->d_name);
        if (d)
            closedir(d);
    }
    if (top)
        closedir(top);
}

static int by_use(const void *a, const void *b)
{
    const struct timespec *x = &((const struct cached *)a)->used;
    const struct timespec *y = &((const struct cached *)b)->used;
    if (x->tv_sec != y->tv_sec)
        return x->tv_sec < y->tv_sec ? -1 : 1;
    return x->tv_nsec < y->tv_nsec ? -1 : x->tv_nsec > y->tv_nsec;
}

void cache_shrink(const char *cache_dir, int64_t max_bytes)
{
    struct cached_list l = {0};
    list_all(&l, cache_dir);
    if (l.n > 1 && l.bytes > max_bytes)
        qsort(l.v, l.n, sizeof *l.v, by_use);
    for (size_t i = 0; i < l.n && l.bytes > max_bytes; i++)
        if (unlink(l.v[i].path) == 0 || errno == ENOENT)
            l.bytes -= l.v[i].size;
    free(l.v);
}
