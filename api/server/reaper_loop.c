/* One thread, one mutex, one condition. A round runs every reaper_ms; between rounds the thread
 * wakes when a sweep's last trial has ended, or an ensemble is asked for (on_finishing(), called in
 * any thread after the commit), so that the sweep is finished, and the ensemble made, at once. The
 * wake-up is a hint: the next round finds them by their state, also after a crash. */
#include "api/server/reaper_loop.h"

#include <stdlib.h>

#include "api/server/periodic.h"
#include "base/log.h"
#include "base/mem.h"
#include "scheduler/lifecycle/reaper.h"

struct reaper_loop {
    struct reaper reaper;
    struct server *server;
    bool was_away;
    struct periodic *thread;
};

/* Run a whole round when it is due, else only what reaper_finish() does. While the database cannot
 * be reached, only the first failure is logged. True: more may wait. */
static bool reap_once(void *arg, bool is_due)
{
    struct reaper_loop *loop = arg;
    struct as_err err = {0};
    struct reaper_report r = {0};
    as_status st =
        is_due ? reaper_tick(&loop->reaper, &r, &err) : reaper_finish(&loop->reaper, &r, &err);
    if (st < 0 && !loop->was_away)
        log_write(LOG_WARN, "reaper", "status=%s detail=\"%s\"", as_status_name(st), err.msg);
    loop->was_away = st < 0;
    if (r.attempts_lost || r.trials_timed_out || r.sweeps_ended || r.ensembles)
        log_write(LOG_INFO, "reaper",
                  "runners_lost=%lld clients_lost=%lld attempts_lost=%lld timed_out=%lld "
                  "sweeps_ended=%lld ensembles=%lld",
                  (long long)r.runners_lost, (long long)r.clients_lost, (long long)r.attempts_lost,
                  (long long)r.trials_timed_out, (long long)r.sweeps_ended, (long long)r.ensembles);
    server_reaped(loop->server, r.runners_lost, r.clients_lost, r.gangs_changed);
    server_tidy(loop->server);
    return st == AS_OK && r.more_to_finish;
}

/* Called in any thread: reaper_finish() has work. */
static void on_finishing(void *ctx)
{
    struct reaper_loop *r = ctx;
    periodic_wake(r->thread);
}

as_status reaper_loop_start(struct store *db, struct server *s, struct reaper_loop **ret,
                            struct as_err *err)
{
    AS_AUTO(as_freep) struct reaper_loop *r = as_calloc(1, sizeof *r);
    if (!r)
        return as_fail(err, AS_E_NOMEM, "out of memory for the reaper");
    r->reaper = (struct reaper){.db = db};
    r->server = s;
    const struct periodic_task task = {.name = "the reaper",
                                       .every_ms = store_config(db)->reaper_ms,
                                       .round = reap_once,
                                       .arg = r};
    as_status st = periodic_start(&task, &r->thread, err);
    if (st < 0)
        return st;
    store_on_finishing(db, on_finishing, r);
    *ret = as_steal(r);
    return AS_OK;
}

void reaper_loop_request_stop(struct reaper_loop *r)
{
    periodic_request_stop(r->thread);
}

bool reaper_loop_end(struct reaper_loop *r, int64_t wait_ms)
{
    store_on_finishing(r->reaper.db, NULL, NULL); /* nobody wakes what is freed below */
    if (!periodic_end(r->thread, wait_ms))
        return false;
    free(r);
    return true;
}
