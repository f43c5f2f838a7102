/* Runners: their epochs, their leases, and what they hold. */
#include "scheduler/services/runners.h"

#include <jansson.h>

#include "base/json.h"
#include "base/str.h"
#include "scheduler/services/cursor_priv.h"
#include "scheduler/store/event_store.h"
#include "scheduler/store/runner_store.h"
#include "scheduler/store/trial_store.h"
#include "scheduler/lifecycle/transition.h"

#define RUNNER_SLOTS_MAX 1024
#define RUNNER_GPUS_MAX 64

static as_status runner_event(struct tx *t, const char *name, const char *state, struct as_err *err)
{
    struct event_new e = {.type = "runner.changed", .runner = name, .state = state};
    return store_event_add(t, &e, err);
}

/* Register. */

struct register_arg {
    struct arena *a;
    const struct runner_register *req;
    const char *gpus; /* JSON */
    struct registration ret;
};

static as_status tx_register(struct tx *t, void *p, struct as_err *err)
{
    struct register_arg *arg = p;
    const struct runner_register *req = arg->req;
    const struct sched_config *config = store_config(tx_store(t));
    struct runner_new n = {.name = req->name,
                           .host = req->host,
                           .version = req->version,
                           .gpus = arg->gpus,
                           .slots = req->slots,
                           .lease_ms = config->lease_ms};
    struct trial_list_heads gone = {0};
    int64_t lost = 0;
    arg->ret =
        (struct registration){.lease_ms = config->lease_ms, .heartbeat_ms = config->heartbeat_ms};
    as_status st = store_runner_register(t, &n, &arg->ret.epoch, err);
    if (st == AS_OK)
        st = store_trial_held(t, arg->a, req->name, req->resume, req->n_resume, &gone, err);
    if (st == AS_OK)
        st = trials_lose(t, arg->a, &gone, "lost",
                         "its runner registered again and no longer runs it", &lost, err);
    if (st == AS_OK)
        st = store_trial_resume(t, req->name, arg->ret.epoch, req->resume, req->n_resume, err);
    if (st == AS_OK)
        st = store_trial_not_current(t, arg->a, req->name, req->resume, req->n_resume,
                                     &arg->ret.directives, err);
    return st == AS_OK ? runner_event(t, req->name, "live", err) : st;
}

static as_status register_check(const struct runner_register *req, struct as_err *err)
{
    if (!as_slug_valid(req->name))
        return as_fail_at(err, AS_E_INVAL, "/name",
                          "'%.63s' is not a name: lower-case letters, digits, '.', '_', '-', at "
                          "most 63",
                          req->name);
    if (req->slots < 1 || req->slots > RUNNER_SLOTS_MAX)
        return as_fail_at(err, AS_E_INVAL, "/slots", "found %lld, expected 1 to %d",
                          (long long)req->slots, RUNNER_SLOTS_MAX);
    if (req->n_gpus > RUNNER_GPUS_MAX)
        return as_fail_at(err, AS_E_INVAL, "/gpus", "%zu GPUs, expected at most %d", req->n_gpus,
                          RUNNER_GPUS_MAX);
    return AS_OK;
}

as_status runner_register(struct store *db, struct arena *a, const struct runner_register *req,
                          struct registration *ret, struct as_err *err)
{
    as_status st = register_check(req, err);
    if (st != AS_OK)
        return st;
    JSON_AUTO gpus = json_array();
    for (size_t i = 0; i < req->n_gpus; i++)
        json_array_append_new(gpus, json_string(req->gpus[i]));
    if (!gpus || json_array_size(gpus) != req->n_gpus)
        return as_fail(err, AS_E_NOMEM, "out of memory");
    AS_AUTO(as_freep) char *text = json_format(gpus);
    if (!text)
        return as_fail(err, AS_E_NOMEM, "out of memory");
    struct register_arg arg = {.a = a, .req = req, .gpus = text};
    st = store_run(db, TX_WRITE, tx_register, &arg, err);
    if (st == AS_OK)
        *ret = arg.ret;
    return st;
}

/* Heartbeat. */

struct beat_arg {
    struct arena *a;
    const char *name;
    int64_t epoch;
    const struct attempt_ref *attempts;
    size_t n;
    struct directive_list directives;
    struct trial_list_heads missing;
    int64_t lost;
};

/* Why was the lease not extended? A lost runner lives again. */
static as_status revive(struct tx *t, struct beat_arg *arg, struct as_err *err)
{
    struct runner_head runner;
    bool done = false;
    as_status st = store_runner_get(t, arg->a, arg->name, &runner, err);
    if (st == AS_OK)
        st = store_runner_revive(t, arg->name, arg->epoch, store_config(tx_store(t))->lease_ms,
                                 &done, err);
    if (st != AS_OK)
        return st;
    if (!done)
        return as_fail(err, AS_E_STALE, "runner '%s' is %s at epoch %lld, not %lld: register again",
                       arg->name, runner.state, (long long)runner.epoch, (long long)arg->epoch);
    return runner_event(t, arg->name, "live", err);
}

static as_status tx_beat(struct tx *t, void *p, struct as_err *err)
{
    struct beat_arg *arg = p;
    int64_t lease_ms = store_config(tx_store(t))->lease_ms;
    bool live = false;
    as_status st = store_runner_extend(t, arg->name, arg->epoch, lease_ms, &live, err);
    if (st == AS_OK && !live)
        st = revive(t, arg, err);
    if (st == AS_OK)
        st = store_trial_missing(t, arg->a, arg->name, arg->attempts, arg->n, lease_ms,
                                 &arg->missing, err);
    if (st == AS_OK)
        st = store_trial_not_current(t, arg->a, arg->name, arg->attempts, arg->n, &arg->directives,
                                     err);
    return st;
}

static as_status tx_lose_missing(struct tx *t, void *p, struct as_err *err)
{
    struct beat_arg *arg = p;
    return trials_lose(t, arg->a, &arg->missing, "lost", "its runner no longer runs it", &arg->lost,
                       err);
}

as_status runner_heartbeat(struct store *db, struct arena *a, const char *name, int64_t epoch,
                           const struct attempt_ref *attempts, size_t n, struct directive_list *ret,
                           struct as_err *err)
{
    struct beat_arg arg = {.a = a, .name = name, .epoch = epoch, .attempts = attempts, .n = n};
    as_status st = store_run(db, TX_SOFT, tx_beat, &arg, err);
    if (st == AS_OK && arg.missing.n > 0)
        st = store_run(db, TX_WRITE, tx_lose_missing, &arg, err);
    if (st == AS_OK)
        *ret = arg.directives;
    return st;
}

/* Leave. */

static as_status tx_leave(struct tx *t, void *p, struct as_err *err)
{
    struct beat_arg *arg = p;
    struct trial_list_heads held = {0};
    struct runner_head runner;
    bool done = false;
    as_status st = store_runner_leave(t, arg->name, arg->epoch, &done, err);
    if (st == AS_OK && !done) {
        st = store_runner_get(t, arg->a, arg->name, &runner, err);
        if (st == AS_OK && runner.epoch != arg->epoch)
            return as_fail(err, AS_E_STALE, "runner '%s' is at epoch %lld, not %lld", arg->name,
                           (long long)runner.epoch, (long long)arg->epoch);
        return st;
    }
    if (st == AS_OK)
        st = store_trial_held(t, arg->a, arg->name, NULL, 0, &held, err);
    if (st == AS_OK)
        st = trials_lose(t, arg->a, &held, "released", "its runner left", &arg->lost, err);
    return st == AS_OK ? runner_event(t, arg->name, "left", err) : st;
}

as_status runner_leave(struct store *db, const char *name, int64_t epoch, struct as_err *err)
{
    AS_AUTO(arena_done) struct arena a = {0};
    struct beat_arg arg = {.a = &a, .name = name, .epoch = epoch};
    return store_run(db, TX_WRITE, tx_leave, &arg, err);
}

/* List. */

struct list_arg {
    struct arena *a;
    int64_t rank, size, next_rank;
    const char *name;
    struct runner_page page;
};

static as_status tx_list(struct tx *t, void *p, struct as_err *err)
{
    struct list_arg *arg = p;
    return store_runner_list(t, arg->a, arg->rank, arg->name, arg->size, &arg->page.rows,
                             &arg->page.n, &arg->next_rank, err);
}

as_status runner_list(struct store *db, struct arena *a, const struct page_req *page,
                      struct runner_page *ret, struct as_err *err)
{
    struct list_arg arg = {.a = a, .name = ""};
    const char *f[2];
    as_status st = page_size(page, &arg.size, err);
    if (st == AS_OK && page->cursor) {
        st = cursor_read(a, page->cursor, "runners", f, 2, err);
        if (st == AS_OK) {
            arg.rank = as_streq(f[0], "1");
            arg.name = f[1];
        }
    }
    if (st == AS_OK)
        st = store_run(db, TX_READ, tx_list, &arg, err);
    if (st == AS_OK && arg.next_rank >= 0) {
        const char *const place[] = {arg.next_rank ? "1" : "0", arg.page.rows[arg.page.n - 1].name};
        arg.page.next_cursor = cursor_make(a, "runners", place, 2);
        if (!arg.page.next_cursor)
            return as_fail(err, AS_E_NOMEM, "out of memory");
    }
    if (st == AS_OK)
        *ret = arg.page;
    return st;
}
