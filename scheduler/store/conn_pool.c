/* The pool of connections, and the connection that waits for the disk.
 *
 * A broken connection closes all idle ones too, because a restart of the database breaks them all.
 * Attempts to connect are separated by a jittered back-off, so that many servers do not all connect
 * at the same moment when the database is back. */
#include "scheduler/store/conn_pool_priv.h"

#include <stdio.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/str.h"

#define POOL_WAIT_MS 5000 /* for a connection, before the error is "busy" */
#define BACKOFF_MIN_MS 100
#define BACKOFF_MAX_MS 1000 /* every request waits for as long when the database is back */

/* The statements of a batch work on sets of a few hundred rows that they name by key. A plan by
 * statistics may choose otherwise on tables that nobody has analysed, so these connections only
 * have the plan that is right: each row by its index. None of their commits waits for the disk. */
static const char *const lane_options[LANES] = {
    [LANE_SHARED] = "",
    [LANE_BATCH] = " -c synchronous_commit=off -c plan_cache_mode=force_generic_plan -c "
                   "enable_hashjoin=off -c "
                   "enable_mergejoin=off -c enable_seqscan=off -c enable_bitmapscan=off -c "
                   "enable_material=off -c enable_memoize=off -c jit=off -c "
                   "max_parallel_workers_per_gather=0"};

void store_pool_get(struct store *db, struct store_pool *ret)
{
    pthread_mutex_lock(&db->mu);
    *ret = (struct store_pool){0};
    for (const struct lane *l = db->lanes; l < db->lanes + LANES; l++) {
        ret->open += l->n_open;
        ret->in_use += l->n_open - l->n_idle;
        ret->max += l->max;
    }
    pthread_mutex_unlock(&db->mu);
}

int64_t store_up_ns(struct store *db)
{
    pthread_mutex_lock(&db->mu);
    int64_t since = db->up_since_ns;
    pthread_mutex_unlock(&db->mu);
    return since ? clock_mono_ns() - since : 0;
}

int64_t conn_pool_jitter_ms(int64_t ms)
{
    uint32_t r = 0;
    random_bytes(&r, sizeof r);
    return ms / 2 + (int64_t)(r % (uint32_t)(ms / 2 + 1));
}

/* Record the end of an attempt to connect. After a failure its place in the pool is free again.
 * lane NULL: the connection of store_sync(). */
static void connect_ended(struct store *db, struct lane *lane, as_status st,
                          const struct as_err *why)
{
    pthread_mutex_lock(&db->mu);
    bool was_up = db->up_since_ns != 0;
    if (st == AS_OK) {
        db->backoff_ms = 0;
        db->up_since_ns = was_up ? db->up_since_ns : clock_mono_ns();
        atomic_fetch_add(&db->counters.connects, 1);
    } else {
        if (lane)
            lane->n_open--;
        db->up_since_ns = 0;
        db->backoff_ms = db->backoff_ms ? db->backoff_ms * 2 : BACKOFF_MIN_MS;
        if (db->backoff_ms > BACKOFF_MAX_MS)
            db->backoff_ms = BACKOFF_MAX_MS;
        db->retry_at_ns = clock_mono_ns() + conn_pool_jitter_ms(db->backoff_ms) * NS_PER_MS;
        db->down_code = st;
        snprintf(db->down_msg, sizeof db->down_msg, "%s", why->msg);
        pthread_cond_broadcast(&db->freed);
    }
    pthread_mutex_unlock(&db->mu);
    if (st != AS_OK && was_up)
        log_write(LOG_WARN, "database lost", "error=\"%s\"", why->msg);
    else if (st == AS_OK && !was_up)
        log_write(LOG_INFO, "database connected", "application=%s", db->app);
}

/* Is it too early for another attempt to connect? */
static as_status check_backoff_locked(const struct store *db, struct as_err *err)
{
    if (db->backoff_ms > 0 && clock_mono_ns() < db->retry_at_ns)
        return as_fail(err, db->down_code, "%s", db->down_msg);
    return AS_OK;
}

/* Wait for an idle connection, or for room to open one. AS_OK with *ret NULL: the caller must open
 * one. */
static as_status pool_take_locked(struct store *db, struct lane *lane, struct conn **ret,
                                  struct as_err *err)
{
    int64_t until_ns = clock_mono_ns() + POOL_WAIT_MS * NS_PER_MS;
    while (lane->n_idle == 0 && lane->n_open >= lane->max) {
        if (!clock_cond_wait(&db->freed, &db->mu, until_ns) && lane->n_idle == 0 &&
            lane->n_open >= lane->max)
            return as_fail(err, AS_E_UNAVAILABLE, "all %d database connections are busy",
                           lane->max);
    }
    if (lane->n_idle > 0) {
        *ret = lane->idle[--lane->n_idle];
        return AS_OK;
    }
    as_status st = check_backoff_locked(db, err);
    if (st != AS_OK)
        return st;
    lane->n_open++;
    *ret = NULL;
    return AS_OK;
}

as_status conn_pool_take(struct store *db, int which, struct conn **ret, struct as_err *err)
{
    struct lane *lane = &db->lanes[which];
    struct conn *c = NULL;
    pthread_mutex_lock(&db->mu);
    as_status st = pool_take_locked(db, lane, &c, err);
    pthread_mutex_unlock(&db->mu);
    if (st == AS_OK && !c) {
        struct as_err why = {0};
        st = conn_open(db->url, db->app, lane_options[which], &c, &why);
        connect_ended(db, lane, st, &why);
        if (st != AS_OK)
            return as_fail(err, st, "%s", why.msg);
        c->lane = which;
    }
    if (st == AS_OK)
        *ret = c;
    return st;
}

void conn_pool_give(struct store *db, struct conn *c)
{
    struct conn *dead[LANES * CONN_MAX + 2];
    int n_dead = 0;
    pthread_mutex_lock(&db->mu);
    if (c->broken) {
        dead[n_dead++] = c;
        db->lanes[c->lane].n_open--;
        for (struct lane *l = db->lanes; l < db->lanes + LANES; l++) {
            while (l->n_idle > 0) {
                dead[n_dead++] = l->idle[--l->n_idle];
                l->n_open--;
            }
        }
        if (db->disk && !db->disk_in_use) {
            dead[n_dead++] = db->disk;
            db->disk = NULL;
        }
    } else {
        struct lane *l = &db->lanes[c->lane];
        l->idle[l->n_idle++] = c;
    }
    pthread_cond_broadcast(&db->freed);
    pthread_mutex_unlock(&db->mu);
    for (int i = 0; i < n_dead; i++)
        conn_close(dead[i]);
}

/* Waiting for the disk.
 *
 * What committed with TX_BATCH is on disk when a later commit, of any connection, was waited for.
 * That holds only while PostgreSQL runs on: if it crashed and is back, what was not on disk is
 * lost, and a commit on a new connection says nothing about it. A crash ends all connections, so
 * the connection that waits must be older than the COMMIT that it waits for. */

/* Use the connection of the disk, alone. False: it is not open, or in use. */
static bool disk_take(struct store *db, bool is_open, int64_t before_ns)
{
    pthread_mutex_lock(&db->mu);
    bool can = !db->disk_in_use && (db->disk != NULL) == is_open &&
               (!is_open || db->disk_since_ns < before_ns);
    db->disk_in_use |= can;
    pthread_mutex_unlock(&db->mu);
    return can;
}

static void disk_give(struct store *db, struct conn *c)
{
    struct conn *dead = c && c->broken ? c : NULL;
    pthread_mutex_lock(&db->mu);
    if (!db->disk && c)
        db->disk_since_ns = clock_mono_ns();
    db->disk = dead ? NULL : c;
    db->disk_in_use = false;
    pthread_mutex_unlock(&db->mu);
    conn_close(dead);
}

as_status conn_pool_open_disk(struct store *db, struct as_err *err)
{
    struct conn *c = NULL;
    struct as_err why = {0};
    if (!disk_take(db, false, 0))
        return AS_OK;
    pthread_mutex_lock(&db->mu);
    as_status st = check_backoff_locked(db, err);
    pthread_mutex_unlock(&db->mu);
    if (st == AS_OK) {
        st = conn_open(db->url, db->app, "", &c, &why);
        connect_ended(db, NULL, st, &why);
        if (st != AS_OK)
            st = as_fail(err, st, "%s", why.msg);
    }
    disk_give(db, c);
    return st;
}

as_status store_sync(struct store *db, int64_t sent_ns, struct as_err *err)
{
    if (!disk_take(db, true, sent_ns))
        return as_fail(err, AS_E_UNAVAILABLE,
                       "the database connection was lost before the commit was on disk");
    struct conn *c = db->disk;
    as_status st = conn_exec(c, WAIT_FOR_DISK, err);
    if (st != AS_OK)
        c->broken = true;
    disk_give(db, c);
    return st;
}
