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
    if ((st = store_trial_held(t, r->a, r->name, NULL, 0, &held, err)) != AS_OK)
        return st;
    if ((st = trials_lose(t, r->a, &held, "lost", reason, &r->n, err)) != AS_OK)
        return st;
    struct event_new e = {
        .type = "runner.changed", .runner = r->name, .state = "lost", .reason = reason};
    return store_event_add(t, &e, err);
}

static as_status lose_runners(struct store *db, struct round *r, struct reaper_report *report,
                              struct as_err *err)
{
    for (size_t i = 0; i < r->n_names; i++) {
        r->name = r->names[i];
        as_status st = store_run(db, TX_WRITE, tx_lose_runner, r, err);
        if (st != AS_OK)
            return st;
        if (r->n < 0)
            continue;
        report->runners_lost++;
        report->attempts_lost += r->n;
        log_write(LOG_WARN, "runner lost", "runner=%s attempts=%lld", r->name, (long long)r->n);
    }
    return AS_OK;
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
    if (st != AS_OK)
        return st;
    return trials_lose(t, r->a, &held, "lost", reason, &r->n, err);
}

static as_status lose_clients(struct store *db, struct round *r, struct reaper_report *report,
                              struct as_err *err)
{
    as_status st = store_run(db, TX_READ, tx_clients, r, err);
    if (st != AS_OK)
        return st;
    for (size_t i = 0; i < r->n_clients; i++) {
        r->client = &r->clients[i];
        if ((st = store_run(db, TX_WRITE, tx_lose_client, r, err)) != AS_OK)
            return st;
        if (r->n == 0)
            continue;
        report->clients_lost++;
        report->attempts_lost += r->n;
        log_write(LOG_WARN, "client lost", "client=\"%s\" attempts=%lld", r->client->name,
                  (long long)r->n);
    }
    return AS_OK;
}

/* Those who could not be heard, because the database or this process was away, get one lease to be.
 */
static as_status lose_owners(struct reaper *reaper, struct round *r, struct reaper_report *report,
                             struct as_err *err)
{
    struct store *db = reaper->db;
    int64_t lease_ms = store_config(db)->lease_ms;
    as_status st = store_run(db, TX_READ, tx_expired, r, err);
    if (st != AS_OK)
        return st;
    if (!lease_clock_hears(&reaper->clock, lease_ms, r->now_ms) ||
        store_up_ns(db) < lease_ms * NS_PER_MS)
        return AS_OK;
    if ((st = lose_runners(db, r, report, err)) != AS_OK)
        return st;
    return lose_clients(db, r, report, err);
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
    if ((st = trial_transition(t, r->a, &s, &now, &change, NULL, err)) != AS_OK)
        return st;
    r->n = 1;
    return sweep_settle(t, r->a, s.key, NULL, err);
}

static as_status time_out_trials(struct store *db, struct round *r, struct reaper_report *report,
                                 struct as_err *err)
{
    as_status st = store_run(db, TX_READ, tx_overdue, r, err);
    if (st != AS_OK)
        return st;
    for (size_t i = 0; i < r->trials.n; i++) {
        r->trial = &r->trials.rows[i];
        if ((st = store_run(db, TX_WRITE, tx_time_out, r, err)) != AS_OK)
            return st;
        report->trials_timed_out += r->n;
    }
    return AS_OK;
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
    if (st != AS_OK)
        return st;
    for (size_t i = 0; i < r->n_sweeps; i++) {
        r->key = r->sweeps[i];
        if ((st = store_run(db, TX_WRITE, tx_settle, r, err)) != AS_OK)
            return st;
        report->sweeps_ended += r->n;
    }
    return AS_OK;
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

as_status reaper_finish(struct reaper *reaper, struct reaper_report *ret, struct as_err *err)
{
    struct reaper_report report = {0};
    as_status st = finish_sweeps(reaper->db, &report, err);
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
    if (st != AS_OK)
        return st;
    if ((st = store_event_prune(t, config->event_keep_ms, &events, err)) != AS_OK)
        return st;
    if ((st = store_blob_prune(t, config->blob_keep_ms, &blobs, err)) != AS_OK)
        return st;
    r->n = keys + events + blobs;
    return AS_OK;
}

/* Is it time for old rows? *ret_removed: how many went. */
static as_status prune(struct reaper *reaper, struct round *r, int64_t *ret_removed,
                       struct as_err *err)
{
    if (!lease_clock_prunes(&reaper->clock, store_config(reaper->db)->prune_ms, clock_mono_ns()))
        return AS_OK;
    r->n = 0;
    as_status st = store_run(reaper->db, TX_SOFT, tx_prune, r, err);
    *ret_removed = r->n;
    return st;
}

static as_status run_round(struct reaper *reaper, struct round *r, struct reaper_report *report,
                           struct as_err *err)
{
    as_status st = lose_owners(reaper, r, report, err);
    if (st != AS_OK)
        return st;
    if ((st = time_out_trials(reaper->db, r, report, err)) != AS_OK)
        return st;
    if ((st = settle_sweeps(reaper->db, r, report, err)) != AS_OK)
        return st;
    if ((st = finish_sweeps(reaper->db, report, err)) != AS_OK)
        return st;
    return prune(reaper, r, &report->removed, err);
}

as_status reaper_tick(struct reaper *reaper, struct reaper_report *ret, struct as_err *err)
{
    AS_AUTO(arena_done) struct arena a = {0};
    struct round r = {.a = &a};
    struct reaper_report report = {0};
    as_status st = run_round(reaper, &r, &report, err);
    *ret = report; /* also of a round that did not come to its end */
    return st;
}
