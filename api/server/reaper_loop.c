#include "api/server/reaper_loop.h"

#include <errno.h>
#include <pthread.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "scheduler/reaper.h"

struct reaper_loop {
    struct store *db;
    struct server *server;
    pthread_mutex_t lock; /* guards the flags */
    pthread_cond_t change;
    bool is_stopping, is_over;
    pthread_t thread;
};

/* `was_away` keeps a database that is gone from filling the log. */
static void reap_once(struct reaper_loop *loop, bool *was_away)
{
    struct as_err err = {0};
    struct reaper_report r = {0};
    as_status st = reaper_tick(loop->db, &r, &err);
    if (st < 0 && !*was_away)
        log_write(LOG_WARN, "reaper", "status=%s detail=\"%s\"", as_status_name(st), err.msg);
    *was_away = st < 0;
    if (r.attempts_lost || r.trials_timed_out || r.sweeps_ended || r.ensembles)
        log_write(LOG_INFO, "reaper",
                  "runners_lost=%lld clients_lost=%lld attempts_lost=%lld timed_out=%lld "
                  "sweeps_ended=%lld ensembles=%lld",
                  (long long)r.runners_lost, (long long)r.clients_lost, (long long)r.attempts_lost,
                  (long long)r.trials_timed_out, (long long)r.sweeps_ended, (long long)r.ensembles);
    server_reaped(loop->server, r.runners_lost, r.clients_lost);
}

/* Wait until *flag or the time is over; the lock is held. */
static void wait_flag_locked(struct reaper_loop *r, const bool *flag, int64_t wait_ms)
{
    int64_t at = clock_mono_ns() + wait_ms * NS_PER_MS;
    const struct timespec until = {.tv_sec = at / NS_PER_S, .tv_nsec = at % NS_PER_S};
    int rc = 0;
    while (!*flag && rc != ETIMEDOUT)
        rc = pthread_cond_timedwait(&r->change, &r->lock, &until);
}

static void *run(void *arg)
{
    struct reaper_loop *r = arg;
    bool was_away = false;
    int64_t every_ms = store_config(r->db)->reaper_ms;
    pthread_mutex_lock(&r->lock);
    while (!r->is_stopping) {
        pthread_mutex_unlock(&r->lock);
        reap_once(r, &was_away);
        pthread_mutex_lock(&r->lock);
        wait_flag_locked(r, &r->is_stopping, every_ms);
    }
    r->is_over = true;
    pthread_cond_broadcast(&r->change);
    pthread_mutex_unlock(&r->lock);
    return NULL;
}

as_status reaper_loop_start(struct store *db, struct server *s, struct reaper_loop **ret,
                            struct as_err *err)
{
    pthread_condattr_t attr;
    struct reaper_loop *r = as_calloc(1, sizeof *r);
    if (!r)
        return as_fail(err, AS_E_NOMEM, "out of memory for the reaper");
    r->db = db;
    r->server = s;
    (void)pthread_mutex_init(&r->lock, NULL); /* none of these can fail on Linux */
    (void)pthread_condattr_init(&attr);
    (void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&r->change, &attr);
    (void)pthread_condattr_destroy(&attr);
    if (pthread_create(&r->thread, NULL, run, r) != 0) {
        free(r);
        return as_fail(err, AS_E_NOMEM, "cannot start the thread of the reaper");
    }
    *ret = r;
    return AS_OK;
}

void reaper_loop_tell(struct reaper_loop *r)
{
    pthread_mutex_lock(&r->lock);
    r->is_stopping = true;
    pthread_cond_broadcast(&r->change);
    pthread_mutex_unlock(&r->lock);
}

bool reaper_loop_end(struct reaper_loop *r, int64_t wait_ms)
{
    pthread_mutex_lock(&r->lock);
    wait_flag_locked(r, &r->is_over, wait_ms);
    bool is_over = r->is_over;
    pthread_mutex_unlock(&r->lock);
    if (!is_over)
        return false;
    (void)pthread_join(r->thread, NULL);
    (void)pthread_cond_destroy(&r->change);
    (void)pthread_mutex_destroy(&r->lock);
    free(r);
    return true;
}
