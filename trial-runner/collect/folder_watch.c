/* The kernel's queue of writes, read by a thread of its own: the main loop would look at all
 * attempts after each line that a trial writes, and a thread for each attempt would need an
 * instance for each.
 *
 * The thread rests a moment after each reading, so that a trial that writes without a pause costs a
 * bounded number of wake-ups: equal events in the queue are one. */
#include "trial-runner/collect/folder_watch.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stddef.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"

#define EVENTS_BYTES (16 << 10)
#define REST_MS 1
#define WRITES (IN_CREATE | IN_MODIFY | IN_MOVED_TO)

struct folder_watch {
    int fd, end_fd;
    pthread_t thread;
    bool has_thread;
    pthread_mutex_t lock; /* guards the list */
    struct folder_listener *first;
};

static void tell_locked(const struct folder_watch *w, int id, const char *name)
{
    for (struct folder_listener *l = w->first; l; l = l->next)
        if (l->id == id || id < 0)
            l->on_write(l->arg, name);
}

/* The folder is gone, and its number may name another one later. */
static void forget_locked(struct folder_watch *w, int id)
{
    for (struct folder_listener **at = &w->first; *at;) {
        struct folder_listener *l = *at;
        if (l->id != id) {
            at = &l->next;
            continue;
        }
        *at = l->next;
        l->next = NULL;
        l->id = 0;
    }
}

static void take_events(struct folder_watch *w, const char *bytes, size_t n)
{
    (void)pthread_mutex_lock(&w->lock);
    for (size_t at = 0; at + sizeof(struct inotify_event) <= n;) {
        struct inotify_event e;
        memcpy(&e, bytes + at, sizeof e);
        const char *name = e.len ? bytes + at + offsetof(struct inotify_event, name) : NULL;
        if (e.mask & IN_Q_OVERFLOW)
            tell_locked(w, -1, NULL);
        else if (e.mask & IN_IGNORED)
            forget_locked(w, e.wd);
        else
            tell_locked(w, e.wd, name);
        at += sizeof e + e.len;
    }
    (void)pthread_mutex_unlock(&w->lock);
}

static void *watch_main(void *arg)
{
    struct folder_watch *w = arg;
    char bytes[EVENTS_BYTES];
    struct pollfd fds[2] = {{.fd = w->fd, .events = POLLIN}, {.fd = w->end_fd, .events = POLLIN}};
    for (;;) {
        if (poll(fds, 2, -1) < 0 && errno != EINTR)
            return NULL;
        if (fds[1].revents)
            return NULL;
        ssize_t n = read(w->fd, bytes, sizeof bytes);
        if (n <= 0)
            continue;
        take_events(w, bytes, (size_t)n);
        clock_sleep_ms(REST_MS);
    }
}

as_status folder_watch_create(struct folder_watch **ret, struct as_err *err)
{
    AS_AUTO(folder_watch_freep) struct folder_watch *w = as_calloc(1, sizeof *w);
    if (!w)
        return as_fail_nomem(err);
    (void)pthread_mutex_init(&w->lock, NULL);
    w->fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    w->end_fd = w->fd < 0 ? -1 : eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (w->end_fd < 0)
        return as_fail(err, AS_E_IO, "inotify: %s", strerror(errno));
    w->has_thread = pthread_create(&w->thread, NULL, watch_main, w) == 0;
    if (!w->has_thread)
        return as_fail(err, AS_E_NOMEM, "cannot start a thread");
    *ret = as_steal(w);
    return AS_OK;
}

void folder_watch_free(struct folder_watch *w)
{
    uint64_t one = 1;
    if (!w)
        return;
    if (w->has_thread && write(w->end_fd, &one, sizeof one) == (ssize_t)sizeof one)
        (void)pthread_join(w->thread, NULL);
    file_closep(&w->fd);
    file_closep(&w->end_fd);
    (void)pthread_mutex_destroy(&w->lock);
    free(w);
}

as_status folder_watch_add(struct folder_watch *w, const char *folder, struct folder_listener *l,
                           struct as_err *err)
{
    as_status st = AS_OK;
    (void)pthread_mutex_lock(&w->lock);
    int id = inotify_add_watch(w->fd, folder, WRITES | IN_ONLYDIR);
    if (id < 0) {
        st = as_fail(err, AS_E_IO, "cannot watch %s: %s", folder, strerror(errno));
    } else {
        l->id = id;
        l->next = w->first;
        w->first = l;
    }
    (void)pthread_mutex_unlock(&w->lock);
    return st;
}

bool folder_watch_listens(struct folder_watch *w, const struct folder_listener *l)
{
    (void)pthread_mutex_lock(&w->lock);
    bool listens = l->id != 0;
    (void)pthread_mutex_unlock(&w->lock);
    return listens;
}

void folder_watch_remove(struct folder_watch *w, struct folder_listener *l)
{
    bool is_shared = false;
    if (!w)
        return;
    (void)pthread_mutex_lock(&w->lock);
    int id = l->id;
    for (struct folder_listener **at = &w->first; *at;) {
        is_shared = is_shared || (*at != l && (*at)->id == id);
        if (*at == l)
            *at = l->next;
        else
            at = &(*at)->next;
    }
    l->id = 0;
    l->next = NULL;
    if (id && !is_shared)
        (void)inotify_rm_watch(w->fd, id);
    (void)pthread_mutex_unlock(&w->lock);
}
