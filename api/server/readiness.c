/* One request at a time asks the database; the others get the last answer. So a database that hangs
 * holds one worker, and a flood of /readyz costs a query a second. */
#include "api/server/readiness.h"

#include <pthread.h>
#include <stdbool.h>

#include "base/clock.h"
#include "base/disk_room.h"
#include "base/log.h"
#include "scheduler/services/migrate.h"

struct answer {
    as_status status;
    const char *public; /* a literal; NULL: ready */
    struct as_err err;
};

struct readiness {
    struct store *db;
    const char *disk;     /* NULL: the database is elsewhere */
    pthread_mutex_t lock; /* guards the rest; not held during the query */
    int64_t at_ns;        /* of the last answer; 0: none yet */
    bool is_asking;
    struct answer last;
};

struct readiness *readiness_create(struct store *db, const char *disk)
{
    struct readiness *r = as_calloc(1, sizeof *r);
    if (!r)
        return NULL;
    r->db = db;
    r->disk = disk;
    (void)pthread_mutex_init(&r->lock, NULL); /* cannot fail with default attributes on Linux */
    return r;
}

void readiness_free(struct readiness *r)
{
    if (!r)
        return;
    (void)pthread_mutex_destroy(&r->lock);
    free(r);
}

#define DISK_IS_FULL "the disk of the database is full"

/* Does its disk lack room, if we can see it? Only the disk says so before PostgreSQL fails, and why
 * it is away. */
static bool is_short_of_room(const char *disk, struct answer *ret)
{
    char text[300];
    if (!disk || !disk_room_is_short(disk, DISK_ROOM_POSTGRES, text, sizeof text))
        return false;
    ret->status = as_fail(&ret->err, AS_E_UNAVAILABLE, "%s", text);
    ret->public = DISK_IS_FULL;
    return true;
}

static struct answer ask_database(struct store *db, const char *disk)
{
    struct answer a = {0};
    if (is_short_of_room(disk, &a))
        return a;
    a.status = migrate_check(db, &a.err);
    if (a.status < 0)
        a.public = a.status == AS_E_CONFLICT
                       ? "the database does not have the schema of this server"
                       : "the database cannot be reached";
    else if ((a.status = migrate_check_room(db, &a.err)) < 0)
        a.public = a.status == AS_E_EXHAUSTED ? DISK_IS_FULL : "the database cannot be reached";
    else if ((a.status = migrate_check_writes(db, &a.err)) < 0)
        a.public = "the database does not take writes";
    return a;
}

static void ask(struct readiness *r)
{
    struct answer a = ask_database(r->db, r->disk);
    pthread_mutex_lock(&r->lock);
    if (a.public && a.public != r->last.public)
        log_write(LOG_WARN, "not ready", "reason=\"%s\" detail=\"%s\"", a.public, a.err.msg);
    r->last = a;
    r->at_ns = clock_mono_ns();
    r->is_asking = false;
    pthread_mutex_unlock(&r->lock);
}

as_status readiness_check(struct readiness *r, const char **ret_public, struct as_err *err)
{
    pthread_mutex_lock(&r->lock);
    bool is_old = r->at_ns == 0 || clock_mono_ns() - r->at_ns > READINESS_KEEP_MS * NS_PER_MS;
    bool asks = is_old && !r->is_asking;
    r->is_asking |= asks;
    pthread_mutex_unlock(&r->lock);
    if (asks)
        ask(r);
    pthread_mutex_lock(&r->lock);
    struct answer a = r->last;
    if (r->at_ns == 0)
        a = (struct answer){.status = AS_E_UNAVAILABLE, .public = "the database has not answered"};
    pthread_mutex_unlock(&r->lock);
    *ret_public = a.public;
    if (a.status < 0) /* also for a schema of another version: this server is not ready then */
        return as_fail(err, AS_E_UNAVAILABLE, "%s: %s", a.public, a.err.msg);
    return AS_OK;
}
