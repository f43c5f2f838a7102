/* Two looks at a file must agree before it is loaded, so that a file that is being copied is not
 * read in the middle; if it is all the same, its checksum refuses it, and the next change is
 * another try. */
#include "serve/source_files.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "serve/options/serve_options.h"

/* What changes when a file is written or replaced. */
struct look {
    dev_t dev;
    ino_t ino;
    off_t size;
    struct timespec mtime;
};

struct watched {
    char *name, *path; /* owned */
    bool of_folder;    /* is dropped when its file is gone */
    bool is_refused;   /* its name is none: logged once */
    bool is_gone;      /* logged once */
    struct look tried; /* when it was loaded, or refused, last */
    struct look last;  /* the last look */
};

struct source_files {
    struct model_cache *cache;
    char **folders;
    size_t n_folders, folders_cap;
    struct watched *files;
    size_t n_files, files_cap;
    int64_t poll_ms;
    pthread_mutex_t lock; /* guards is_stopping; the lists belong to the thread */
    pthread_cond_t stop;
    bool is_stopping, has_thread;
    pthread_t thread;
};

static bool look_at(const char *path, struct look *ret)
{
    struct stat st;
    if (stat(path, &st) != 0)
        return false;
    *ret = (struct look){st.st_dev, st.st_ino, st.st_size, st.st_mtim};
    return true;
}

static bool looks_equal(const struct look *a, const struct look *b)
{
    return a->dev == b->dev && a->ino == b->ino && a->size == b->size &&
           a->mtime.tv_sec == b->mtime.tv_sec && a->mtime.tv_nsec == b->mtime.tv_nsec;
}

as_status source_files_create(struct model_cache *cache, struct source_files **ret,
                              struct as_err *err)
{
    struct source_files *s = as_calloc(1, sizeof *s);
    if (!s)
        return as_fail_nomem(err);
    s->cache = cache;
    (void)pthread_mutex_init(&s->lock, NULL); /* cannot fail with default attributes on Linux */
    clock_cond_init(&s->stop);
    *ret = s;
    return AS_OK;
}

static as_status load(struct source_files *s, struct watched *w, struct as_err *err)
{
    AS_AUTO(file_closep) int fd = -1;
    struct file_image image = {0};
    as_status st = file_open_regular(w->path, &fd, err); /* no device: it may have no end */
    if (st == AS_OK)
        st = file_image_read(w->path, MODEL_FILE_MAX_BYTES, &image, err);
    if (st < 0)
        return st;
    st = model_cache_load(s->cache, w->name, NULL, &image, err);
    return st < 0 ? as_err_prefix(err, st, "%s", w->path) : AS_OK;
}

static as_status watch(struct source_files *s, const char *name, const char *path, bool of_folder,
                       struct watched **ret, struct as_err *err)
{
    as_status st = as_reserve_one(&s->files, s->n_files, &s->files_cap, sizeof *s->files, err);
    if (st < 0)
        return st;
    struct watched w = {as_strdup(name), as_strdup(path), of_folder};
    if (!w.name || !w.path) {
        free(w.name);
        free(w.path);
        return as_fail_nomem(err);
    }
    s->files[s->n_files] = w;
    *ret = &s->files[s->n_files++];
    return AS_OK;
}

as_status source_files_add(struct source_files *s, const char *name, const char *path,
                           struct as_err *err)
{
    struct watched *w = NULL;
    as_status st = model_cache_expect(s->cache, name, err);
    if (st == AS_OK)
        st = watch(s, name, path, false, &w, err);
    if (st < 0)
        return st;
    if (look_at(path, &w->last))
        w->tried = w->last;
    return load(s, w, err);
}

/* Load what changed. `at_once`: without a second look. */
static void look_again(struct source_files *s, struct watched *w, bool at_once)
{
    struct look now;
    struct as_err err = {0};
    if (!look_at(w->path, &now)) {
        if (!w->is_gone)
            log_write(LOG_WARN, "model file is gone", "model=%s path=\"%s\" detail=\"%m\"", w->name,
                      w->path);
        w->is_gone = true;
        return;
    }
    w->is_gone = false;
    bool is_still = at_once || looks_equal(&now, &w->last);
    w->last = now;
    if (!is_still || looks_equal(&now, &w->tried))
        return;
    w->tried = now;
    if (load(s, w, &err) < 0)
        model_cache_failed(s->cache, w->name, w->path, &err);
}

static struct watched *find_watched(const struct source_files *s, const char *path)
{
    for (size_t i = 0; i < s->n_files; i++)
        if (strcmp(s->files[i].path, path) == 0)
            return &s->files[i];
    return NULL;
}

/* The model of a new file in a folder. */
static void notice(struct source_files *s, const char *folder, const char *file, bool at_once)
{
    size_t len = strlen(file), suffix = strlen(SERVE_FILE_SUFFIX);
    struct watched *w = NULL;
    struct as_err err = {0};
    if (file[0] == '.' || len <= suffix || !as_ends_with(file, SERVE_FILE_SUFFIX))
        return;
    AS_AUTO(as_freep) char *path = file_join(folder, file);
    AS_AUTO(as_freep) char *name = as_strdup(file);
    if (!path || !name || find_watched(s, path))
        return;
    name[len - suffix] = '\0';
    bool known = false;
    struct served *other = model_cache_take(s->cache, name, &known);
    served_unref(other);
    if (watch(s, name, path, true, &w, &err) < 0)
        return;
    w->is_refused = known;
    if (known)
        log_write(LOG_WARN, "model file is not served",
                  "path=\"%s\" detail=\"%s is served already\"", path, name);
    else if (at_once)
        look_again(s, w, true);
}

static as_status scan_folder(struct source_files *s, const char *folder, bool at_once,
                             struct as_err *err)
{
    DIR *dir = opendir(folder);
    if (!dir)
        return as_fail(err, AS_E_IO, "cannot read the folder %s: %m", folder);
    for (const struct dirent *e; (e = readdir(dir));)
        notice(s, folder, e->d_name, at_once);
    (void)closedir(dir);
    return AS_OK;
}

as_status source_files_add_folder(struct source_files *s, const char *path, struct as_err *err)
{
    as_status st =
        as_reserve_one(&s->folders, s->n_folders, &s->folders_cap, sizeof *s->folders, err);
    char *copy = st == AS_OK ? as_strdup(path) : NULL;
    if (st == AS_OK && !copy)
        st = as_fail_nomem(err);
    if (st < 0)
        return st;
    s->folders[s->n_folders++] = copy;
    return scan_folder(s, path, true, err);
}

/* Stop serving the files of folders that are gone. */
static void drop_gone(struct source_files *s)
{
    for (size_t i = 0; i < s->n_files;) {
        struct watched *w = &s->files[i];
        if (!w->of_folder || !w->is_gone) {
            i++;
            continue;
        }
        if (!w->is_refused)
            model_cache_remove(s->cache, w->name);
        free(w->name);
        free(w->path);
        *w = s->files[--s->n_files];
    }
}

static void look_at_all(struct source_files *s)
{
    for (size_t i = 0; i < s->n_folders; i++) {
        struct as_err err = {0};
        if (scan_folder(s, s->folders[i], false, &err) < 0)
            log_write(LOG_WARN, "folder of models", "detail=\"%s\"", err.msg);
    }
    for (size_t i = 0; i < s->n_files; i++) {
        struct watched *w = &s->files[i];
        struct look now;
        if (!w->is_refused)
            look_again(s, w, false);
        else
            w->is_gone = !look_at(w->path, &now);
    }
    drop_gone(s);
}

static void *run(void *arg)
{
    struct source_files *s = arg;
    pthread_mutex_lock(&s->lock);
    while (!s->is_stopping) {
        if (clock_cond_wait(&s->stop, &s->lock, clock_mono_ns() + s->poll_ms * NS_PER_MS))
            continue;
        pthread_mutex_unlock(&s->lock);
        look_at_all(s);
        pthread_mutex_lock(&s->lock);
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

as_status source_files_start(struct source_files *s, int64_t poll_ms, struct as_err *err)
{
    s->poll_ms = poll_ms;
    s->has_thread = pthread_create(&s->thread, NULL, run, s) == 0;
    return s->has_thread ? AS_OK : as_fail(err, AS_E_NOMEM, "cannot start the watcher of files");
}

void source_files_free(struct source_files *s)
{
    if (!s)
        return;
    pthread_mutex_lock(&s->lock);
    s->is_stopping = true;
    pthread_cond_signal(&s->stop);
    pthread_mutex_unlock(&s->lock);
    if (s->has_thread)
        (void)pthread_join(s->thread, NULL);
    for (size_t i = 0; i < s->n_files; i++) {
        free(s->files[i].name);
        free(s->files[i].path);
    }
    for (size_t i = 0; i < s->n_folders; i++)
        free(s->folders[i]);
    free(s->files);
    free(s->folders);
    (void)pthread_mutex_destroy(&s->lock);
    (void)pthread_cond_destroy(&s->stop);
    free(s);
}
