/* One round of what time does. A failure of one part does not keep the others from their turn, but
 * the database being away ends the round. */
#include "scheduler/lifecycle/reaper.h"

#include "base/clock.h"
#include "base/log.h"
#include "scheduler/lifecycle/ensembles.h"
#include "scheduler/store/blob_store.h"
#include "scheduler/store/client_store.h"
#include "scheduler/store/event_store.h"
#include "scheduler/store/idempotency_store.h"
#include "scheduler/store/runner_store.h"
#include "scheduler/store/sweep_store.h"
#include "scheduler/store/trial_store.h"
#include "scheduler/lifecycle/transition.h"

#define ENSEMBLES_PER_TICK 4

struct round {
    struct arena *a;
    const char **names;
    size_t n_names;
    struct client_head *clients;
    size_t n_clients;
    int64_t now_ms; /* the database's, when it was asked for the names */
    struct trial_list_heads trials;
    int64_t *sweeps;
    size_t n_sweeps;

    const char *name;                 /* of the runner at hand */
    const struct client_head *client; /* at hand */
    const struct trial_head *trial;   /* at hand */
    int64_t key;                      /* of the sweep at hand */
    int64_t n;                        /* what the step did */
};

/* Runners whose lease ran out. */

static as_status tx_expired(struct tx *t, void *p, struct as_err *err)
{
    struct round *r = p;
    return store_runner_expired(t, r->a, &r->now_ms, &r->names, &r->n_names, err);
}

static as_status tx_lose_runner(struct tx *t, void *p, struct as_err *err)
{
    struct round *r = p;
    struct trial_list_heads held = {0};
    bool lost = false;
    r->n = -1;
    as_status st = store_runner_lose(t, r->name, &lost, err);
    if (st != AS_OK || !lost)
        return st; /* it was heard of meanwhile */
    const char *reason = arena_printf(r->a, "the lease of runner %s ran out", r->name);
    st = store_trial_held(t, r->a, r->name, NULL, 0, &held, err);
    if (st == AS_OK)
        st = trials_lose(t, r->a, &held, "lost", reason, &r->n, err);
    struct event_new e = {
        .type = "runner.changed", .runner = r->name, .state = "lost", .reason = reason};
    return st == AS_OK ? store_event_add(t, &e, err) : st;
}

static as_status lose_runners(struct store *db, struct round *r, struct reaper_report *report,
                              struct as_err *err)
{
    as_status st = AS_OK;
    for (size_t i = 0; i < r->n_names && st == AS_OK; i++) {
        r->name = r->names[i];
        st = store_run(db, TX_WRITE, tx_lose_runner, r, err);
        if (st != AS_OK || r->n < 0)
            continue;
        report->runners_lost++;
        report->attempts_lost += r->n;
        log_write(LOG_WARN, "runner lost", "runner=%s attempts=%lld", r->name, (long long)r->n);
    }
    return st;
}

/* Clients whose lease ran out. */

static as_status tx_clients(struct tx *t, void *p, struct as_err *err)
{
    struct round *r = p;
    return store_client_expired(t, r->a, &r->clients, &r->n_clients, err);
}

static as_status tx_lose_client(struct tx *t, void *p, struct as_err *err)
{
    struct round *r = p;
    struct trial_list_heads held = {0};
    bool lost = false;
    r->n = 0;
    as_status st = store_client_lose(t, r->client->sweep_key, r->client->name, &lost, err);
    if (st != AS_OK || !lost)
        return st; /* it was heard of meanwhile */
    const char *reason = arena_printf(r->a, "the lease of client %s ran out", r->client->name);
    st = store_trial_of_client(t, r->a, r->client->sweep_key, r->client->name, INT32_MAX, &held,
                               err);
    return st == AS_OK ? trials_lose(t, r->a, &held, "lost", reason, &r->n, err) : st;
}

static as_status lose_clients(struct store *db, struct round *r, struct reaper_report *report,
                              struct as_err *err)
{
    as_status st = store_run(db, TX_READ, tx_clients, r, err);
    for (size_t i = 0; i < r->n_clients && st == AS_OK; i++) {
        r->client = &r->clients[i];
        st = store_run(db, TX_WRITE, tx_lose_client, r, err);
        if (st != AS_OK || r->n == 0)
            continue;
        report->clients_lost++;
        report->attempts_lost += r->n;
        log_write(LOG_WARN, "client lost", "client=\"%s\" attempts=%lld", r->client->name,
                  (long long)r->n);
    }
    return st;
}

/* Those who could not be heard, because the database or this process was away, get one lease to be.
 */
static as_status lose_holders(struct store *db, struct round *r, struct reaper_report *report,
                              struct as_err *err)
{
    as_status st = store_run(db, TX_READ, tx_expired, r, err);
    if (st == AS_OK &&
        (!store_hears(db, r->now_ms) || store_up_ns(db) < store_config(db)->lease_ms * NS_PER_MS))
        return AS_OK;
    if (st == AS_OK)
        st = lose_runners(db, r, report, err);
    return st == AS_OK ? lose_clients(db, r, report, err) : st;
}

/* Trials past their timeout, whose runner should have ended them. */

static as_status tx_overdue(struct tx *t, void *p, struct as_err *err)
{
    struct round *r = p;
    return store_trial_overdue(t, r->a, store_config(tx_store(t))->lease_ms, &r->trials, err);
}

static as_status tx_time_out(struct tx *t, void *p, struct as_err *err)
{
    static const struct trial_change change = {.event = TRIAL_EV_TIMEOUT, .outcome = "timeout"};
    struct round *r = p;
    struct sweep_head s;
    struct trial_head now;
    r->n = 0;
    as_status st = store_sweep_lock(t, r->a, r->trial->sweep_key, &s, err);
    if (st == AS_OK)
        st = store_trial_lock(t, r->a, s.key, r->trial->number, &now, err);
    if (st != AS_OK)
        return st == AS_E_NOT_FOUND ? AS_OK : st;
    if (now.state != TRIAL_RUNNING || now.attempt != r->trial->attempt)
        return AS_OK;
    st = trial_transition(t, r->a, &s, &now, &change, NULL, err);
    r->n = 1;
    return st == AS_OK ? sweep_settle(t, r->a, s.key, NULL, err) : st;
}

static as_status time_out_trials(struct store *db, struct round *r, struct reaper_report *report,
                                 struct as_err *err)
{
    as_status st = store_run(db, TX_READ, tx_overdue, r, err);
    for (size_t i = 0; i < r->trials.n && st == AS_OK; i++) {
        r->trial = &r->trials.rows[i];
        st = store_run(db, TX_WRITE, tx_time_out, r, err);
        report->trials_timed_out += st == AS_OK ? r->n : 0;
    }
    return st;
}

/* Sweeps that are over. */

static as_status tx_due(struct tx *t, void *p, struct as_err *err)
{
    struct round *r = p;
    return store_sweep_due(t, r->a, &r->sweeps, &r->n_sweeps, err);
}

static as_status tx_settle(struct tx *t, void *p, struct as_err *err)
{
    struct round *r = p;
    bool ended = false;
    as_status st = sweep_settle(t, r->a, r->key, &ended, err);
    r->n = ended;
    return st == AS_E_NOT_FOUND ? AS_OK : st;
}

static as_status settle_sweeps(struct store *db, struct round *r, struct reaper_report *report,
                               struct as_err *err)
{
    as_status st = store_run(db, TX_READ, tx_due, r, err);
    for (size_t i = 0; i < r->n_sweeps && st == AS_OK; i++) {
        r->key = r->sweeps[i];
        st = store_run(db, TX_WRITE, tx_settle, r, err);
        report->sweeps_ended += st == AS_OK ? r->n : 0;
    }
    return st;
}

static as_status finish_sweeps(struct store *db, struct reaper_report *report, struct as_err *err)
{
    for (int i = 0; i < ENSEMBLES_PER_TICK; i++) {
        bool worked = false;
        as_status st = ensembles_tick(db, &worked, err);
        if (st != AS_OK || !worked)
            return st;
        report->ensembles++;
    }
    report->more_to_finish = true;
    return AS_OK;
}

as_status reaper_finish(struct store *db, struct reaper_report *ret, struct as_err *err)
{
    struct reaper_report report = {0};
    as_status st = finish_sweeps(db, &report, err);
    *ret = report;
    return st;
}

/* Old rows, a few at a time. */

static as_status tx_prune(struct tx *t, void *p, struct as_err *err)
{
    struct round *r = p;
    const struct sched_config *config = store_config(tx_store(t));
    int64_t keys = 0, events = 0, blobs = 0;
    as_status st = store_idempotency_prune(t, &keys, err);
    if (st == AS_OK)
        st = store_event_prune(t, config->event_keep_ms, &events, err);
    if (st == AS_OK)
        st = store_blob_prune(t, config->blob_keep_ms, &blobs, err);
    r->n = keys + events + blobs;
    return st;
}

as_status reaper_tick(struct store *db, struct reaper_report *ret, struct as_err *err)
{
    AS_AUTO(arena_done) struct arena a = {0};
    struct round r = {.a = &a};
    struct reaper_report report = {0};
    as_status st = lose_holders(db, &r, &report, err);
    if (st == AS_OK)
        st = time_out_trials(db, &r, &report, err);
    if (st == AS_OK)
        st = settle_sweeps(db, &r, &report, err);
    if (st == AS_OK)
        st = finish_sweeps(db, &report, err);
    r.n = 0;
    if (st == AS_OK && store_prune_due(db))
        st = store_run(db, TX_SOFT, tx_prune, &r, err);
    report.removed = r.n;
    *ret = report;
    return st;
}
