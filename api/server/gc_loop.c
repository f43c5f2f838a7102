/* The thread that removes content without references and gives its space back (decision 5013): one
 * round a second. It is apart from the reaper, because a round may wait for a disk or for S3, and
 * leases must be watched meanwhile. A failure that lasts is logged once, when it begins. A stop
 * ends the pause at once and waits for a round that runs, for as long as the caller allows. */
#include "api/server/gc_loop.h"

#include <stdlib.h>

#include "api/server/periodic.h"
#include "base/log.h"
#include "scheduler/content/content_gc.h"

#define EVERY_MS 1000

struct gc_loop {
    struct content_gc gc;
    bool was_away;
    struct periodic *thread;
};

/* While the database or the blob store cannot be reached, only the first failure is logged. */
static bool collect_once(void *arg, bool is_due)
{
    struct gc_loop *c = arg;
    struct as_err err = {0};
    struct content_report r = {0};
    (void)is_due;
    as_status st = content_gc_tick(&c->gc, &r, &err);
    if (st < 0 && !c->was_away)
        log_write(LOG_WARN, "garbage collection", "status=%s detail=\"%s\"", as_status_name(st),
                  err.msg);
    c->was_away = st < 0;
    if (r.removed || r.outside)
        log_write(LOG_INFO, "content removed", "blobs=%lld bytes=%lld outside=%lld",
                  (long long)r.removed, (long long)r.bytes, (long long)r.outside);
    if (r.vacuumed)
        log_write(LOG_INFO, "space is free again",
                  "detail=\"PostgreSQL reuses the space of removed content, and gave back what was "
                  "free at the end of its files\"");
    return false;
}

as_status gc_loop_start(struct store *db, struct gc_loop **ret, struct as_err *err)
{
    AS_AUTO(as_freep) struct gc_loop *c = as_calloc(1, sizeof *c);
    if (!c)
        return as_fail_nomem(err);
    c->gc = (struct content_gc){.db = db};
    const struct periodic_task task = {
        .name = "garbage collection", .every_ms = EVERY_MS, .round = collect_once, .arg = c};
    as_status st = periodic_start(&task, &c->thread, err);
    if (st < 0)
        return st;
    *ret = as_steal(c);
    return AS_OK;
}

bool gc_loop_end(struct gc_loop *c, int64_t wait_ms)
{
    if (c && !periodic_end(c->thread, wait_ms))
        return false;
    free(c);
    return true;
}
