/* One round of the reaper.
 *
 * The parts of a round are independent: leases of runners, ranks of gangs, leases of clients,
 * timeouts, sweeps that are over, old rows. Each part reads a list without locks and then handles
 * each entry in its own guarded transaction, because another server may do the same, and because an
 * owner may come back between the two. A round ends at the first error; the next round does the
 * rest. The report counts also what an incomplete round did. */
#include "scheduler/lifecycle/reaper.h"

#include "base/clock.h"
#include "base/log.h"
#include "scheduler/lifecycle/ensemble_requests.h"
#include "scheduler/lifecycle/ensembles.h"
#include "scheduler/lifecycle/feasibility.h"
#include "scheduler/lifecycle/gang_repair.h"
#include "scheduler/lifecycle/rungs_over.h"
#include "scheduler/store/client_store.h"
#include "scheduler/store/event_store.h"
#include "scheduler/store/idempotency_store.h"
#include "scheduler/store/runner_store.h"
#include "scheduler/store/sweep_head_store.h"
#include "scheduler/store/trial_held_store.h"
#include "scheduler/store/trial_store.h"
#include "scheduler/lifecycle/transition.h"

#define ENSEMBLES_PER_TICK 4

/* A round in progress. */
struct round {
    struct reaper *reaper;
    struct arena *a;
    struct reaper_report *report;
    int64_t as_of_ms; /* what has expired had expired at this time of the database's clock */
    bool hears;       /* until then everybody could be heard for a lease (lease_clock.h) */
};

/* Runners whose lease ran out. */

/* *ret_attempts: how many attempts it lost; -1 if the runner was heard meanwhile. */
static as_status lose_runner(struct tx *t, struct arena *a, const char *name, int64_t *ret_attempts,
                             struct as_err *err)
{
    struct trial_list_heads held = {0};
    bool lost = false;
    *ret_attempts = -1;
    as_status st = store_runner_lose(t, name, &lost, err);
    if (st != AS_OK || !lost)
        return st;
    const char *reason = arena_printf(a, "the lease of runner %s ran out", name);
    if ((st = store_trial_held(t, a, name, NULL, 0, &held, err)) != AS_OK)
        return st;
    if ((st = trials_lose(t, a, &held, "lost", reason, ret_attempts, err)) != AS_OK)
        return st;
    struct event_new e = {
        .type = "runner.changed", .runner = name, .state = "lost", .reason = reason};
    return store_event_add(t, &e, err);
}

static as_status lose_runners(struct round *r, const char *const *names, size_t n,
                              struct as_err *err)
{
    for (size_t i = 0; i < n; i++) {
        int64_t attempts = -1;
        struct tx_run run = tx_run_start(r->reaper->db, TX_WRITE, err);
        while (tx_run_again(&run))
            run.status = lose_runner(run.tx, r->a, names[i], &attempts, err);
        if (run.status != AS_OK)
            return run.status;
        if (attempts < 0)
            continue;
        r->report->runners_lost++;
        r->report->attempts_lost += attempts;
        log_write(LOG_WARN, "runner lost", "runner=%s attempts=%lld", names[i],
                  (long long)attempts);
    }
    return AS_OK;
}

/* Clients whose lease ran out. */

/* *ret_attempts: how many attempts it lost; 0 also if the client was heard meanwhile. */
static as_status lose_client(struct tx *t, struct arena *a, const struct client_head *client,
                             int64_t *ret_attempts, struct as_err *err)
{
    struct trial_list_heads held = {0};
    bool lost = false;
    *ret_attempts = 0;
    as_status st = store_client_lose(t, client->sweep_key, client->name, &lost, err);
    if (st != AS_OK || !lost)
        return st;
    const char *reason = arena_printf(a, "the lease of client %s ran out", client->name);
    st = store_trial_of_client(t, a, client->sweep_key, client->name, INT32_MAX, &held, err);
    if (st != AS_OK)
        return st;
    return trials_lose(t, a, &held, "lost", reason, ret_attempts, err);
}

static as_status lose_clients(struct round *r, struct as_err *err)
{
    struct client_head *clients = NULL;
    size_t n = 0;
    struct tx_run look = tx_run_start(r->reaper->db, TX_READ, err);
    while (tx_run_again(&look))
        look.status = store_client_expired(look.tx, r->a, r->as_of_ms, &clients, &n, err);
    if (look.status != AS_OK)
        return look.status;
    for (size_t i = 0; i < n; i++) {
        int64_t attempts = 0;
        struct tx_run run = tx_run_start(r->reaper->db, TX_WRITE, err);
        while (tx_run_again(&run))
            run.status = lose_client(run.tx, r->a, &clients[i], &attempts, err);
        if (run.status != AS_OK)
            return run.status;
        if (attempts == 0)
            continue;
        r->report->clients_lost++;
        r->report->attempts_lost += attempts;
        log_write(LOG_WARN, "client lost", "client=\"%s\" attempts=%lld", clients[i].name,
                  (long long)attempts);
    }
    return AS_OK;
}

/* Runners and clients could not be heard while the database or this process was away. They get one
 * lease to be heard, and the whole round ends nothing that ran out after this look: the database or
 * this process may be stopped between any two statements. */
static as_status lose_owners(struct round *r, struct as_err *err)
{
    struct store *db = r->reaper->db;
    int64_t lease_ms = store_config(db)->lease_ms;
    const char **names = NULL;
    size_t n = 0;
    struct tx_run look = tx_run_start(db, TX_READ, err);
    while (tx_run_again(&look))
        look.status = store_runner_expired(look.tx, r->a, &r->as_of_ms, &names, &n, err);
    if (look.status != AS_OK)
        return look.status;
    r->hears = lease_clock_hears(&r->reaper->clock, lease_ms, r->as_of_ms) &&
               store_up_ns(db) >= lease_ms * NS_PER_MS;
    if (!r->hears)
        return AS_OK;
    as_status st = lose_runners(r, names, n, err);
    if (st == AS_OK)
        st = gangs_tend(db, &r->report->gangs_changed, err);
    return st == AS_OK ? lose_clients(r, err) : st;
}

/* Trials past their timeout. Their runner should have ended them.
 *
 * A result that is on its way is no timeout. If its runner can be heard, the runner says that the
 * process has ended; a runner that cannot be heard loses its lease first, because a lease is a part
 * of the patience here. While nobody can be heard, the same rule as for leases applies. */

static as_status time_out(struct tx *t, struct round *r, const struct trial_head *trial,
                          bool *ret_done, struct as_err *err)
{
    struct trial_change change = {.outcome = "timeout"};
    struct arena *a = r->a;
    struct sweep_head s;
    struct trial_head now;
    bool overdue = false;
    *ret_done = false;
    as_status st = store_sweep_lock(t, a, trial->sweep_key, &s, err);
    if (st == AS_OK)
        st = store_trial_lock(t, a, s.key, trial->number, &now, err);
    if (st != AS_OK)
        return st == AS_E_NOT_FOUND ? AS_OK : st;
    if (now.state != TRIAL_RUNNING || now.attempt != trial->attempt)
        return AS_OK;
    st = store_trial_is_overdue(t, s.key, now.number, r->as_of_ms,
                                store_config(r->reaper->db)->lease_ms, &overdue, err);
    if (st != AS_OK || !overdue) /* its runner said meanwhile that it has ended */
        return st;
    if ((st = trial_judge_timeout(t, a, &s, &now, &change, err)) != AS_OK)
        return st;
    if ((st = trial_transition(t, a, &s, &now, &change, NULL, err)) != AS_OK)
        return st;
    *ret_done = true;
    return sweep_settle(t, a, s.key, NULL, err);
}

static as_status time_out_trials(struct round *r, struct as_err *err)
{
    struct store *db = r->reaper->db;
    struct trial_list_heads trials = {0};
    if (!r->hears)
        return AS_OK;
    struct tx_run look = tx_run_start(db, TX_READ, err);
    while (tx_run_again(&look))
        look.status = store_trial_overdue(look.tx, r->a, r->as_of_ms, store_config(db)->lease_ms,
                                          &trials, err);
    if (look.status != AS_OK)
        return look.status;
    for (size_t i = 0; i < trials.n; i++) {
        bool done = false;
        struct tx_run run = tx_run_start(db, TX_WRITE, err);
        while (tx_run_again(&run))
            run.status = time_out(run.tx, r, &trials.rows[i], &done, err);
        if (run.status != AS_OK)
            return run.status;
        r->report->trials_timed_out += done;
    }
    return AS_OK;
}

/* Sweeps that are over. */

static as_status settle_sweep(struct tx *t, struct arena *a, int64_t key, bool *ret_ended,
                              struct as_err *err)
{
    *ret_ended = false;
    as_status st = sweep_settle(t, a, key, ret_ended, err);
    return st == AS_E_NOT_FOUND ? AS_OK : st;
}

static as_status settle_sweeps(struct round *r, struct as_err *err)
{
    struct store *db = r->reaper->db;
    int64_t *keys = NULL;
    size_t n = 0;
    struct tx_run look = tx_run_start(db, TX_READ, err);
    while (tx_run_again(&look))
        look.status = store_sweep_due(look.tx, r->a, &keys, &n, err);
    if (look.status != AS_OK)
        return look.status;
    for (size_t i = 0; i < n; i++) {
        bool ended = false;
        struct tx_run run = tx_run_start(db, TX_WRITE, err);
        while (tx_run_again(&run))
            run.status = settle_sweep(run.tx, r->a, keys[i], &ended, err);
        if (run.status != AS_OK)
            return run.status;
        r->report->sweeps_ended += ended;
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

/* One in each round: it may take seconds, and leases must be watched. */
static as_status make_asked(struct store *db, struct reaper_report *report, struct as_err *err)
{
    bool worked = false;
    as_status st = ensemble_requests_tick(db, &worked, err);
    if (st != AS_OK || !worked)
        return st;
    report->ensembles++;
    report->more_to_finish = true;
    return AS_OK;
}

as_status reaper_finish(struct reaper *reaper, struct reaper_report *ret, struct as_err *err)
{
    struct reaper_report report = {0};
    as_status st = finish_sweeps(reaper->db, &report, err);
    if (st == AS_OK)
        st = make_asked(reaper->db, &report, err);
    *ret = report;
    return st;
}

/* Old rows, a limited number each time. */

static as_status prune_some(struct tx *t, int64_t *ret_removed, struct as_err *err)
{
    const struct sched_config *config = store_config(tx_store(t));
    int64_t keys = 0, events = 0, runners = 0;
    as_status st = store_idempotency_prune(t, &keys, err);
    if (st != AS_OK)
        return st;
    if ((st = store_event_prune(t, config->event_keep_ms, &events, err)) != AS_OK)
        return st;
    if ((st = store_runner_prune(t, config->runner_keep_ms, &runners, err)) != AS_OK)
        return st;
    *ret_removed = keys + events + runners;
    return AS_OK;
}

/* Trials that wait at a rung for nothing. */
static as_status prune_hopeless(struct round *r, struct as_err *err)
{
    struct store *db = r->reaper->db;
    int64_t *keys = NULL;
    size_t n = 0;
    struct tx_run look = tx_run_start(db, TX_READ, err);
    while (tx_run_again(&look))
        look.status = store_sweep_waiting(look.tx, r->a, &keys, &n, err);
    if (look.status != AS_OK)
        return look.status;
    for (size_t i = 0; i < n; i++) {
        int64_t pruned = 0;
        struct tx_run run = tx_run_start(db, TX_WRITE, err);
        while (tx_run_again(&run))
            run.status = rungs_prune(run.tx, r->a, keys[i], &pruned, err);
        if (run.status != AS_OK)
            return run.status;
        r->report->hopeless += pruned;
    }
    return AS_OK;
}

static as_status prune_old_rows(struct round *r, struct as_err *err)
{
    struct store *db = r->reaper->db;
    int64_t removed = 0;
    if (!lease_clock_prunes(&r->reaper->clock, store_config(db)->prune_ms, clock_mono_ns()))
        return AS_OK;
    as_status st = prune_hopeless(r, err);
    if (st != AS_OK)
        return st;
    struct tx_run run = tx_run_start(db, TX_SOFT, err);
    while (tx_run_again(&run))
        run.status = prune_some(run.tx, &removed, err);
    if (run.status == AS_OK)
        r->report->removed = removed;
    return run.status;
}

static as_status run_round(struct round *r, struct as_err *err)
{
    as_status st = lose_owners(r, err);
    if (st != AS_OK)
        return st;
    if ((st = time_out_trials(r, err)) != AS_OK)
        return st;
    if ((st = settle_sweeps(r, err)) != AS_OK)
        return st;
    if ((st = finish_sweeps(r->reaper->db, r->report, err)) != AS_OK)
        return st;
    if ((st = make_asked(r->reaper->db, r->report, err)) != AS_OK)
        return st;
    return prune_old_rows(r, err);
}

as_status reaper_tick(struct reaper *reaper, struct reaper_report *ret, struct as_err *err)
{
    AS_AUTO(arena_done) struct arena a = {0};
    struct reaper_report report = {0};
    struct round r = {.reaper = reaper, .a = &a, .report = &report};
    as_status st = run_round(&r, err);
    *ret = report; /* also for a round that ended early */
    return st;
}
