/* One thread, one mutex, one condition. A round runs every reaper_ms; between rounds the thread
 * wakes when a sweep's last trial has ended (on_finishing(), called in any thread after the
 * commit), so that a sweep is finished at once. The wake-up is a hint: the next round finds every
 * sweep by its state, also after a crash. */
#include "api/server/reaper_loop.h"

#include <errno.h>
#include <pthread.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "scheduler/lifecycle/reaper.h"

struct reaper_loop {
    struct reaper reaper;
    struct server *server;
    pthread_mutex_t lock; /* guards the flags */
    pthread_cond_t change;
    bool is_stopping, is_over;
    bool has_finishing; /* a sweep waits for its end */
    pthread_t thread;
};

/* Run a whole round, or only end the finished sweeps. While the database cannot be reached, only
 * the first failure is logged (`was_away`). *ret_more: more sweeps wait for their end. */
static void reap_once(struct reaper_loop *loop, bool whole, bool *was_away, bool *ret_more)
{
    struct as_err err = {0};
    struct reaper_report r = {0};
    as_status st =
        whole ? reaper_tick(&loop->reaper, &r, &err) : reaper_finish(&loop->reaper, &r, &err);
    if (st < 0 && !*was_away)
        log_write(LOG_WARN, "reaper", "status=%s detail=\"%s\"", as_status_name(st), err.msg);
    *was_away = st < 0;
    *ret_more = st == AS_OK && r.more_to_finish;
    if (r.attempts_lost || r.trials_timed_out || r.sweeps_ended || r.ensembles)
        log_write(LOG_INFO, "reaper",
                  "runners_lost=%lld clients_lost=%lld attempts_lost=%lld timed_out=%lld "
                  "sweeps_ended=%lld ensembles=%lld",
                  (long long)r.runners_lost, (long long)r.clients_lost, (long long)r.attempts_lost,
                  (long long)r.trials_timed_out, (long long)r.sweeps_ended, (long long)r.ensembles);
    server_reaped(loop->server, r.runners_lost, r.clients_lost, r.gangs_changed);
}

/* Wait for a change until `until_ns` (monotonic), with the lock held. Returns false if the time has
 * passed. */
static bool wait_locked(struct reaper_loop *r, int64_t until_ns)
{
    return clock_cond_wait(&r->change, &r->lock, until_ns);
}

/* Run a whole round every reaper_ms, and between rounds end each sweep as soon as it is
 * finished. */
static void *run_reaper(void *arg)
{
    struct reaper_loop *r = arg;
    bool was_away = false;
    int64_t every_ns = store_config(r->reaper.db)->reaper_ms * NS_PER_MS, next_ns = 0;
    pthread_mutex_lock(&r->lock);
    while (!r->is_stopping) {
        bool whole = clock_mono_ns() >= next_ns, more = false;
        if (!whole && !r->has_finishing) {
            (void)wait_locked(r, next_ns);
            continue;
        }
        r->has_finishing = false;
        pthread_mutex_unlock(&r->lock);
        reap_once(r, whole, &was_away, &more);
        server_tidy(r->server);
        if (whole)
            next_ns = clock_mono_ns() + every_ns;
        pthread_mutex_lock(&r->lock);
        r->has_finishing |= more;
    }
    r->is_over = true;
    pthread_cond_broadcast(&r->change);
    pthread_mutex_unlock(&r->lock);
    return NULL;
}

/* Called in any thread: the last trial of a sweep has ended. */
static void on_finishing(void *ctx)
{
    struct reaper_loop *r = ctx;
    pthread_mutex_lock(&r->lock);
    r->has_finishing = true;
    pthread_cond_broadcast(&r->change);
    pthread_mutex_unlock(&r->lock);
}

as_status reaper_loop_start(struct store *db, struct server *s, struct reaper_loop **ret,
                            struct as_err *err)
{
    struct reaper_loop *r = as_calloc(1, sizeof *r);
    if (!r)
        return as_fail(err, AS_E_NOMEM, "out of memory for the reaper");
    r->reaper = (struct reaper){.db = db};
    r->server = s;
    (void)pthread_mutex_init(&r->lock, NULL); /* none of these can fail on Linux */
    clock_cond_init(&r->change);
    if (pthread_create(&r->thread, NULL, run_reaper, r) != 0) {
        free(r);
        return as_fail(err, AS_E_NOMEM, "cannot start the thread of the reaper");
    }
    store_on_finishing(db, on_finishing, r);
    *ret = r;
    return AS_OK;
}

void reaper_loop_request_stop(struct reaper_loop *r)
{
    pthread_mutex_lock(&r->lock);
    r->is_stopping = true;
    pthread_cond_broadcast(&r->change);
    pthread_mutex_unlock(&r->lock);
}

bool reaper_loop_end(struct reaper_loop *r, int64_t wait_ms)
{
    int64_t until_ns = clock_mono_ns() + wait_ms * NS_PER_MS;
    pthread_mutex_lock(&r->lock);
    while (!r->is_over && wait_locked(r, until_ns))
        ;
    bool is_over = r->is_over;
    pthread_mutex_unlock(&r->lock);
    if (!is_over)
        return false;
    store_on_finishing(r->reaper.db, NULL, NULL);
    (void)pthread_join(r->thread, NULL);
    (void)pthread_cond_destroy(&r->change);
    (void)pthread_mutex_destroy(&r->lock);
    free(r);
    return true;
}
