/* The thread that removes content without references and gives its space back (decision 5013): one
 * round a second. It is apart from the reaper, because a round may wait for a disk or for S3, and
 * leases must be watched meanwhile. A failure that lasts is logged once, when it begins. A stop
 * ends the pause at once and waits for a round that runs, for as long as the caller allows. */
#include "api/server/care_loop.h"

#include <errno.h>
#include <pthread.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "scheduler/content/content_care.h"

#define EVERY_MS 1000

struct care_loop {
    struct content_care care;
    pthread_mutex_t lock; /* guards the flags */
    pthread_cond_t change;
    bool is_stopping, is_over;
    pthread_t thread;
};

/* While the database or the blob store cannot be reached, only the first failure is logged. */
static void care_once(struct care_loop *c, bool *was_away)
{
    struct as_err err = {0};
    struct content_report r = {0};
    as_status st = content_care_tick(&c->care, &r, &err);
    if (st < 0 && !*was_away)
        log_write(LOG_WARN, "care of content", "status=%s detail=\"%s\"", as_status_name(st),
                  err.msg);
    *was_away = st < 0;
    if (r.removed || r.outside)
        log_write(LOG_INFO, "content removed", "blobs=%lld bytes=%lld outside=%lld",
                  (long long)r.removed, (long long)r.bytes, (long long)r.outside);
    if (r.vacuumed)
        log_write(LOG_INFO, "space is free again",
                  "detail=\"PostgreSQL reuses the space of removed content, and gave back what was "
                  "free at the end of its files\"");
}

static bool wait_locked(struct care_loop *c, int64_t until_ns)
{
    return clock_cond_wait(&c->change, &c->lock, until_ns);
}

static void *run_care(void *arg)
{
    struct care_loop *c = arg;
    bool was_away = false;
    pthread_mutex_lock(&c->lock);
    while (!c->is_stopping) {
        pthread_mutex_unlock(&c->lock);
        care_once(c, &was_away);
        int64_t until_ns = clock_mono_ns() + EVERY_MS * NS_PER_MS;
        pthread_mutex_lock(&c->lock);
        while (!c->is_stopping && wait_locked(c, until_ns))
            ;
    }
    c->is_over = true;
    pthread_cond_broadcast(&c->change);
    pthread_mutex_unlock(&c->lock);
    return NULL;
}

as_status care_loop_start(struct store *db, struct care_loop **ret, struct as_err *err)
{
    struct care_loop *c = as_calloc(1, sizeof *c);
    if (!c)
        return as_fail_nomem(err);
    c->care = (struct content_care){.db = db};
    (void)pthread_mutex_init(&c->lock, NULL); /* none of these can fail on Linux */
    clock_cond_init(&c->change);
    if (pthread_create(&c->thread, NULL, run_care, c) != 0) {
        free(c);
        return as_fail(err, AS_E_NOMEM, "cannot start the thread that takes care of content");
    }
    *ret = c;
    return AS_OK;
}

bool care_loop_end(struct care_loop *c, int64_t wait_ms)
{
    int64_t until_ns = clock_mono_ns() + wait_ms * NS_PER_MS;
    if (!c)
        return true;
    pthread_mutex_lock(&c->lock);
    c->is_stopping = true;
    pthread_cond_broadcast(&c->change);
    while (!c->is_over && wait_locked(c, until_ns))
        ;
    bool is_over = c->is_over;
    pthread_mutex_unlock(&c->lock);
    if (!is_over)
        return false;
    (void)pthread_join(c->thread, NULL);
    (void)pthread_cond_destroy(&c->change);
    (void)pthread_mutex_destroy(&c->lock);
    free(c);
    return true;
}
