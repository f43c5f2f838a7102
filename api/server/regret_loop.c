#include "api/server/regret_loop.h"

#include <stdlib.h>

#include "api/server/periodic.h"
#include "base/log.h"
#include "scheduler/services/regret_checks.h"

#define EVERY_MS 500

struct regret_loop {
    struct regret_checks *checks; /* owned */
    atomic_bool is_stopping;
    bool has_failed;
    struct periodic *thread;
};

/* While rounds fail, only the first failure is logged. */
static bool check_once(void *arg, bool is_due)
{
    (void)is_due;
    struct regret_loop *r = arg;
    struct as_err err = {0};
    struct regret_report report = {0};
    as_status st = regret_checks_round(r->checks, &r->is_stopping, &report, &err);
    if (st < 0 && !r->has_failed)
        log_write(LOG_WARN, "what is left to gain", "status=%s detail=\"%s\"", as_status_name(st),
                  err.msg);
    r->has_failed = st < 0;
    if (report.sweeps_ended > 0)
        log_write(LOG_INFO, "little is left to gain", "sweeps_ended=%lld",
                  (long long)report.sweeps_ended);
    return st == AS_OK && report.kept > 0;
}

static void loop_free(struct regret_loop *r)
{
    regret_checks_free(r->checks);
    free(r);
}

as_status regret_loop_start(struct store *db, struct regret_loop **ret, struct as_err *err)
{
    struct regret_loop *r = as_calloc(1, sizeof *r);
    if (!r)
        return as_fail_nomem(err);
    r->checks = regret_checks_create(db, true);
    const struct periodic_task task = {.name = "the bounds of what is left to gain",
                                       .every_ms = EVERY_MS,
                                       .round = check_once,
                                       .arg = r};
    as_status st = r->checks ? periodic_start(&task, &r->thread, err) : as_fail_nomem(err);
    if (st < 0) {
        loop_free(r);
        return st;
    }
    *ret = r;
    return AS_OK;
}

void regret_loop_request_stop(struct regret_loop *r)
{
    if (!r)
        return;
    atomic_store(&r->is_stopping, true);
    periodic_request_stop(r->thread);
}

bool regret_loop_end(struct regret_loop *r, int64_t wait_ms)
{
    regret_loop_request_stop(r);
    if (r && !periodic_end(r->thread, wait_ms))
        return false;
    if (r)
        loop_free(r);
    return true;
}
