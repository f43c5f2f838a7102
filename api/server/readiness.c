#include "api/server/readiness.h"

#include <pthread.h>

#include "base/clock.h"
#include "base/log.h"
#include "scheduler/services/migrate.h"

struct readiness {
    struct store *db;
    pthread_mutex_t lock; /* held during the query, so that one is made for all who ask */
    int64_t at_ns;        /* of the last answer; 0: none */
    as_status status;
    const char *public; /* a literal; NULL: ready */
    struct as_err err;
};

struct readiness *readiness_create(struct store *db)
{
    struct readiness *r = as_calloc(1, sizeof *r);
    if (!r)
        return NULL;
    r->db = db;
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

static void ask_locked(struct readiness *r)
{
    const char *before = r->public;
    r->err = (struct as_err){0};
    r->public = NULL;
    r->status = migrate_check(r->db, &r->err);
    if (r->status < 0)
        r->public = r->status == AS_E_CONFLICT
                        ? "the database does not have the schema of this server"
                        : "the database cannot be reached";
    else if ((r->status = migrate_check_writes(r->db, &r->err)) < 0)
        r->public = "the database does not take writes";
    r->at_ns = clock_mono_ns();
    if (r->public && r->public != before)
        log_write(LOG_WARN, "not ready", "reason=\"%s\" detail=\"%s\"", r->public, r->err.msg);
}

as_status readiness_check(struct readiness *r, const char **ret_public, struct as_err *err)
{
    pthread_mutex_lock(&r->lock);
    if (r->at_ns == 0 || clock_mono_ns() - r->at_ns > READINESS_KEEP_MS * NS_PER_MS)
        ask_locked(r);
    as_status st = AS_OK;
    *ret_public = r->public;
    if (r->status < 0) /* also for a schema of another version: this server is not ready then */
        st = as_fail(err, AS_E_UNAVAILABLE, "%s: %s", r->public, r->err.msg);
    pthread_mutex_unlock(&r->lock);
    return st;
}
