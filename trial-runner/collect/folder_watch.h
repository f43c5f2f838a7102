/* Tells when files in folders are written: one thread, and one inotify instance, for all attempts
 * of a runner (a user may have few of them).
 *
 * It hears what processes of this machine write, and neither what is written through a memory map,
 * nor what other machines write to a shared folder. So whoever listens looks at intervals too. */
#ifndef ASSAY_TRIAL_RUNNER_COLLECT_FOLDER_WATCH_H
#define ASSAY_TRIAL_RUNNER_COLLECT_FOLDER_WATCH_H

#include <stdbool.h>

#include "base/mem.h"
#include "base/status.h"

struct folder_watch;

/* Start the thread. AS_E_IO: the system allows no more instances; AS_E_NOMEM. */
AS_MUST_CHECK as_status folder_watch_create(struct folder_watch **ret, struct as_err *err);
/* End it. Nobody may listen any more. NULL is fine. */
void folder_watch_free(struct folder_watch *w);
AS_DEFINE_FREEP(struct folder_watch, folder_watch_free)

/* Who listens; owned by the caller until folder_watch_remove(). */
struct folder_listener {
    /* A file of this name was created, written, or moved there; NULL: perhaps one was. From the
     * watch's thread, under its lock: it must not wait, nor call these functions. */
    void (*on_write)(void *arg, const char *name);
    void *arg;
    int id; /* private; 0: it does not listen */
    struct folder_listener *next;
};

/* Listen to a folder. One folder may have many listeners. l->on_write and l->arg are set, all else
 * is zero. AS_E_IO: there is no such folder, or the system watches too many. */
AS_MUST_CHECK as_status folder_watch_add(struct folder_watch *w, const char *folder,
                                         struct folder_listener *l, struct as_err *err);
/* Does it listen? No more if its folder was removed. */
bool folder_watch_listens(struct folder_watch *w, const struct folder_listener *l);
/* When it returns, on_write is not called any more. Without effect if it does not listen. */
void folder_watch_remove(struct folder_watch *w, struct folder_listener *l);

#endif
