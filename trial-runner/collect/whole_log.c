/* A thread that writes output to files, each named by where it begins in the output.
 *
 * The first file takes the beginning, up to half of the limit. Then come files of a fixed size, of
 * which the oldest is removed when they have the other half together. So what a program prints
 * endlessly costs a bounded part of the disk, and most of it is removed before the system has
 * written it out. No index can disagree with the files: what is missing between two of them follows
 * from their names and sizes, also after the death of the runner.
 *
 * lock guards the buffer that others fill and the flags beside it; nobody waits under it for more
 * than a memcpy. All else belongs to the thread. */
#include "trial-runner/collect/whole_log.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/str.h"
#include "trial-runner/collect/tail.h"

#define WAITING_MAX (1 << 20) /* bytes that wait for the disk; more are left out */
#define SOON_MS 200           /* lines are written together with those that follow so soon */
#define SOON_BYTES (WAITING_MAX / 4)
#define PARTS_MAX 16  /* behind the first one */
#define PART_SHARE 16 /* a part has this share of the limit, so eight of them have half of it */
#define NAME_DIGITS 20
#define COPY_BYTES (64 << 10)

struct part {
    int64_t begin, bytes;
};

struct whole_log {
    char *folder;
    int64_t max_bytes;
    bool has_thread;
    pthread_t thread;

    /* The thread's own. */
    struct part first;
    bool has_first;
    struct part parts[PARTS_MAX]; /* behind it, by where they begin */
    size_t n;
    int dir; /* of the parts; -1: it is not open */
    int fd;  /* of the last part; -1: none is open */
    bool said_failed;

    pthread_mutex_t lock; /* guards all below */
    pthread_cond_t changed;
    struct str waiting; /* of the output, from `begin` on */
    struct str later;   /* likewise: what came when `waiting` was full */
    int64_t begin, later_begin;
    int64_t total; /* bytes added so far */
    bool is_busy;  /* the thread writes */
    bool is_hasty; /* somebody waits in whole_log_flush() */
    bool is_over;
};

/* ---- the thread ---- */

static void part_name(int64_t begin, char ret[NAME_DIGITS + 1])
{
    (void)snprintf(ret, NAME_DIGITS + 1, "%0*" PRId64, NAME_DIGITS, begin);
}

static void say_failed(struct whole_log *w, const char *why)
{
    file_closep(&w->fd);
    w->fd = -1;
    if (!w->said_failed)
        log_write(LOG_WARN, "output is not kept as a whole", "folder=%s error=\"%s\"", w->folder,
                  why);
    w->said_failed = true;
}

/* Open the folder of the parts. The trial may write to the folder above it: a link in its place
 * would lead anywhere. */
static bool open_folder(struct whole_log *w)
{
    AS_AUTO(str_done) struct str folder = {0};
    str_printf(&folder, "%s/" WHOLE_LOG_FOLDER, w->folder);
    if (w->dir >= 0 || folder.failed)
        return w->dir >= 0;
    if (mkdir(folder.s, 0700) == 0 || errno == EEXIST)
        w->dir = open(folder.s, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return w->dir >= 0;
}

/* Open the file of a part that begins. The trial may have put anything in its place. */
static bool open_part(struct whole_log *w, int64_t begin)
{
    char name[NAME_DIGITS + 1];
    part_name(begin, name);
    file_closep(&w->fd);
    w->fd = -1;
    if (open_folder(w))
        w->fd = openat(w->dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (w->fd < 0)
        say_failed(w, strerror(errno));
    return w->fd >= 0;
}

static void drop_oldest(struct whole_log *w)
{
    char name[NAME_DIGITS + 1];
    part_name(w->parts[0].begin, name);
    (void)unlinkat(w->dir, name, 0);
    memmove(w->parts, w->parts + 1, --w->n * sizeof *w->parts);
}

/* Make room for one more part of part_max bytes. */
static void make_room(struct whole_log *w, int64_t part_max)
{
    int64_t kept = part_max;
    for (size_t i = 0; i < w->n; i++)
        kept += w->parts[i].bytes;
    while (w->n > 0 && (w->n == PARTS_MAX || kept > w->max_bytes / 2)) {
        kept -= w->parts[0].bytes;
        drop_oldest(w);
    }
}

/* Begin a part at `at` of the output. NULL: its file cannot be made. */
static struct part *begin_part(struct whole_log *w, int64_t at)
{
    bool is_first = !w->has_first;
    if (!is_first)
        make_room(w, w->max_bytes / PART_SHARE);
    if (!open_part(w, at))
        return NULL;
    struct part *p = is_first ? &w->first : &w->parts[w->n++];
    w->has_first = true;
    *p = (struct part){.begin = at};
    return p;
}

/* The part to which the bytes at `at` of the output belong, and in *ret_room how many it takes;
 * NULL: it cannot be made. */
static struct part *part_for(struct whole_log *w, int64_t at, int64_t *ret_room)
{
    struct part *p = w->n ? &w->parts[w->n - 1] : &w->first;
    int64_t most = w->n ? w->max_bytes / PART_SHARE : w->max_bytes / 2;
    if (w->fd < 0 || at != p->begin + p->bytes || p->bytes == most) {
        if (!(p = begin_part(w, at)))
            return NULL;
        most = p == &w->first ? w->max_bytes / 2 : w->max_bytes / PART_SHARE;
    }
    *ret_room = most - p->bytes;
    return p;
}

static void write_bytes(struct whole_log *w, int64_t at, const char *bytes, size_t len)
{
    struct as_err err = {0};
    while (len > 0) {
        int64_t room = 0;
        struct part *p = part_for(w, at, &room);
        if (!p)
            return;
        size_t n = (int64_t)len < room ? len : (size_t)room;
        if (file_write_all(w->fd, bytes, n, &err) < 0) { /* the next bytes begin another part */
            say_failed(w, err.msg);
            return;
        }
        p->bytes += (int64_t)n;
        at += (int64_t)n;
        bytes += n;
        len -= n;
    }
}

/* Wait until there is something to write, and for a while longer, unless it is much. */
static void await_bytes_locked(struct whole_log *w)
{
    while (w->waiting.len == 0 && !w->is_over)
        pthread_cond_wait(&w->changed, &w->lock);
    int64_t until_ns = clock_mono_ns() + SOON_MS * NS_PER_MS;
    while (w->waiting.len < SOON_BYTES && !w->is_over && !w->is_hasty &&
           clock_cond_wait(&w->changed, &w->lock, until_ns))
        continue;
}

static void *writer_main(void *arg)
{
    struct whole_log *w = arg;
    struct str taken = {0};
    pthread_mutex_lock(&w->lock);
    for (;;) {
        await_bytes_locked(w);
        if (w->is_over)
            break;
        struct str empty = taken;
        int64_t at = w->begin;
        taken = w->waiting;
        w->waiting = w->later;
        w->begin = w->later_begin;
        w->later = empty;
        w->is_busy = true;
        pthread_mutex_unlock(&w->lock);
        write_bytes(w, at, taken.s, taken.len);
        str_clear(&taken);
        pthread_mutex_lock(&w->lock);
        w->is_busy = false;
        w->is_hasty = w->is_hasty && w->waiting.len > 0;
        pthread_cond_broadcast(&w->changed);
    }
    pthread_mutex_unlock(&w->lock);
    str_done(&taken);
    return NULL;
}

/* ---- for others ---- */

as_status whole_log_create(const char *folder, int64_t max_bytes, struct whole_log **ret,
                           struct as_err *err)
{
    struct whole_log *w = as_calloc(1, sizeof *w);
    if (!w || !(w->folder = as_strdup(folder))) {
        free(w);
        return as_fail_nomem(err);
    }
    w->max_bytes = max_bytes;
    w->dir = w->fd = -1;
    pthread_mutex_init(&w->lock, NULL);
    clock_cond_init(&w->changed);
    *ret = w;
    return AS_OK;
}

void whole_log_free(struct whole_log *w)
{
    if (!w)
        return;
    pthread_mutex_lock(&w->lock);
    w->is_over = true;
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->lock);
    if (w->has_thread)
        pthread_join(w->thread, NULL);
    file_closep(&w->fd);
    file_closep(&w->dir);
    str_done(&w->waiting);
    str_done(&w->later);
    pthread_cond_destroy(&w->changed);
    pthread_mutex_destroy(&w->lock);
    free(w->folder);
    free(w);
}

/* Without a thread the output is kept as far as the buffer reaches, and never written. */
static void start_thread_locked(struct whole_log *w)
{
    int rc = pthread_create(&w->thread, NULL, writer_main, w);
    w->has_thread = rc == 0;
    if (rc && !w->said_failed)
        say_failed(w, strerror(rc));
}

/* Add output that begins at `at`. What is in a full buffer is left out, and not what comes: the end
 * of the output counts more. */
static void add_to(struct str *b, int64_t *begin, int64_t at, const char *bytes, size_t len)
{
    size_t over = len > WAITING_MAX ? len - WAITING_MAX : 0;
    if (b->failed) /* memory was out: what waited is left out */
        str_done(b);
    if (b->len + len > WAITING_MAX)
        str_clear(b);
    if (b->len == 0)
        *begin = at + (int64_t)over;
    str_add(b, bytes + over, len - over);
}

void whole_log_add(struct whole_log *w, const char *bytes, size_t len)
{
    if (!w || len == 0)
        return;
    pthread_mutex_lock(&w->lock);
    if (w->later.len == 0 && w->waiting.len + len <= WAITING_MAX)
        add_to(&w->waiting, &w->begin, w->total, bytes, len);
    else
        add_to(&w->later, &w->later_begin, w->total, bytes, len);
    w->total += (int64_t)len;
    if (!w->has_thread && w->total > TAIL_BYTES)
        start_thread_locked(w);
    if (w->has_thread)
        pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->lock);
}

void whole_log_flush(struct whole_log *w)
{
    if (!w)
        return;
    pthread_mutex_lock(&w->lock);
    w->is_hasty = true;
    pthread_cond_broadcast(&w->changed);
    while (w->has_thread && (w->waiting.len > 0 || w->is_busy))
        pthread_cond_wait(&w->changed, &w->lock);
    w->is_hasty = false;
    pthread_mutex_unlock(&w->lock);
}

bool whole_log_exists(const char *folder)
{
    AS_AUTO(as_freep) char *path = file_join(folder, WHOLE_LOG_FOLDER);
    struct stat sb;
    return path && lstat(path, &sb) == 0 && S_ISDIR(sb.st_mode);
}

/* ---- one file ---- */

struct join {
    int dir, out;
    int64_t room, end; /* how much more may be copied; where the last part ended in the output */
    bool is_line;      /* what was copied last ended a line */
    char buf[COPY_BYTES];
};

static as_status write_gap(struct join *j, int64_t bytes, struct as_err *err)
{
    char line[120];
    int n = snprintf(line, sizeof line,
                     "%s[assay-runner] %" PRId64
                     " bytes of the output are left out here (assay-runner --log-size)\n",
                     j->is_line ? "" : "\n", bytes);
    return file_write_all(j->out, line, (size_t)n, err);
}

static as_status copy_part(struct join *j, const char *name, int64_t begin, struct as_err *err)
{
    struct stat sb;
    AS_AUTO(file_closep)
    int fd = openat(j->dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &sb) < 0 || !S_ISREG(sb.st_mode))
        return AS_OK;
    as_status st = begin > j->end ? write_gap(j, begin - j->end, err) : AS_OK;
    j->end = begin;
    while (st == AS_OK && j->room > 0) {
        size_t most = j->room < COPY_BYTES ? (size_t)j->room : COPY_BYTES;
        ssize_t n = read(fd, j->buf, most);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n == 0 ? AS_OK : as_fail(err, AS_E_IO, "%s: %s", name, strerror(errno));
        st = file_write_all(j->out, j->buf, (size_t)n, err);
        j->room -= n;
        j->end += n;
        j->is_line = j->buf[n - 1] == '\n';
    }
    return st;
}

/* A part is named by digits alone, and by so many that the order of names is that of numbers. */
static int is_part(const struct dirent *e)
{
    return strspn(e->d_name, "0123456789") == NAME_DIGITS && !e->d_name[NAME_DIGITS];
}

static as_status copy_parts(struct join *j, const char *folder, struct as_err *err)
{
    struct dirent **found = NULL;
    int n = scandirat(j->dir, ".", &found, is_part, alphasort);
    as_status st = n < 0 ? as_fail(err, AS_E_IO, "%s: %s", folder, strerror(errno)) : AS_OK;
    if (n == 0)
        st = as_fail(err, AS_E_NOT_FOUND, "%s has no output", folder);
    for (int i = 0; i < n; i++) {
        int64_t begin = 0;
        if (st == AS_OK && as_parse_i64(found[i]->d_name, &begin, NULL) == AS_OK)
            st = copy_part(j, found[i]->d_name, begin, err);
        free(found[i]);
    }
    free(found);
    return st;
}

as_status whole_log_join(const char *folder, int64_t max_bytes, char **ret_path, struct as_err *err)
{
    AS_AUTO(as_freep) char *parts = file_join(folder, WHOLE_LOG_FOLDER);
    AS_AUTO(as_freep) char *path = file_join(folder, WHOLE_LOG_NAME);
    AS_AUTO(as_freep) struct join *j = as_calloc(1, sizeof *j);
    if (!parts || !path || !j)
        return as_fail_nomem(err);
    AS_AUTO(file_closep) int dir = open(parts, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (dir < 0)
        return as_fail(err, errno == ENOENT ? AS_E_NOT_FOUND : AS_E_IO, "%s: %s", parts,
                       strerror(errno));
    (void)unlink(path);
    AS_AUTO(file_closep)
    int out = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (out < 0)
        return as_fail(err, AS_E_IO, "%s: %s", path, strerror(errno));
    j->dir = dir;
    j->out = out;
    j->room = max_bytes;
    j->is_line = true;
    as_status st = copy_parts(j, parts, err);
    if (st == AS_OK)
        *ret_path = as_steal(path);
    return st;
}
