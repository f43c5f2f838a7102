/* One transaction under the sweep's row: the sweep runs on first, if it has ended, then each trial
 * moves by the table of states. A trial takes its end back with a number in the order of ends
 * (decision 5008). A list is retried as a whole or not at all. */
#include "scheduler/services/trial_retry.h"

#include "scheduler/lifecycle/transition.h"
#include "scheduler/store/sweep_head_store.h"
#include "scheduler/store/sweep_row_store.h"
#include "scheduler/store/sweep_store.h"
#include "scheduler/store/trial_row_store.h"
#include "scheduler/store/trial_store.h"

/* Let the sweep run on, if it has ended, for n trials more of which n_failed count as failed
 * now. */
static as_status make_live(struct tx *t, struct arena *a, const struct sweep_head *s, int64_t n,
                           int64_t n_failed, struct as_err *err)
{
    struct sweep_standing standing = sweep_standing_of(s);
    if (s->state == SWEEP_RUNNING || s->state == SWEEP_PAUSED)
        return AS_OK;
    /* its other trials would run too, and that is not what was asked for */
    if (s->state == SWEEP_CANCELLED && standing.total < standing.planned)
        return as_fail(err, AS_E_CONFLICT,
                       "the sweep '%s' was cancelled before %lld of its trials began: resume it "
                       "first",
                       s->id, (long long)(standing.planned - standing.total));
    standing.live += n;
    standing.failed -= n_failed;
    sweep_end end = sweep_end_of(&standing);
    if (end == SWEEP_GOES_ON)
        return sweep_transition(t, a, s, SWEEP_EV_REOPEN, "it runs on: trials are tried again",
                                err);
    const char *why = sweep_end_advice(a, &standing, end);
    return why ? as_fail(err, AS_E_CONFLICT, "the sweep '%s' is %s and cannot run on: %s", s->id,
                         sweep_state_format(s->state), why)
               : as_fail_nomem(err);
}

/* Retry trials of a sweep whose row is held. */
static as_status retry_list(struct tx *t, struct arena *a, const struct sweep_head *s,
                            const struct trial_head *rows, size_t n, const char *by,
                            struct as_err *err)
{
    const struct trial_change change = {.event = TRIAL_EV_RETRY, .by = by};
    int64_t n_failed = 0;
    for (size_t i = 0; i < n; i++)
        n_failed += rows[i].state == TRIAL_FAILED;
    as_status st = make_live(t, a, s, (int64_t)n, n_failed, err);
    for (size_t i = 0; i < n && st == AS_OK; i++)
        st = trial_transition(t, a, s, &rows[i], &change, NULL, err);
    return st;
}

static as_status lock_sweep(struct tx *t, struct arena *a, const char *sweep,
                            struct sweep_head *ret, struct as_err *err)
{
    int64_t key = 0;
    as_status st = store_sweep_key(t, sweep, &key, err);
    return st == AS_OK ? store_sweep_lock(t, a, key, ret, err) : st;
}

static as_status retry_one(struct tx *t, struct arena *a, const char *sweep, int64_t number,
                           const char *by, struct trial_row *ret, struct as_err *err)
{
    struct sweep_head s;
    struct trial_head x;
    as_status st = lock_sweep(t, a, sweep, &s, err);
    if (st != AS_OK)
        return st;
    if ((st = store_trial_lock(t, a, s.key, number, &x, err)) != AS_OK)
        return st;
    if (x.state != TRIAL_FAILED && x.state != TRIAL_CANCELLED)
        return as_fail(err, AS_E_CONFLICT,
                       "trial %lld is %s: only a trial that failed or was cancelled can be retried",
                       (long long)number, trial_state_format(x.state));
    if (x.is_known)
        return as_fail(err, AS_E_CONFLICT,
                       "trial %lld was added with its result, and is not run here",
                       (long long)number);
    if ((st = retry_list(t, a, &s, &x, 1, by, err)) != AS_OK)
        return st;
    return store_trial_get(t, a, s.key, number, ret, err);
}

as_status trial_retry(struct store *db, struct arena *a, const char *sweep, int64_t number,
                      const char *by, struct trial_row *ret, struct as_err *err)
{
    struct trial_row row = {0};
    struct tx_run run = tx_run_start(db, TX_WRITE, err);
    while (tx_run_again(&run))
        run.status = retry_one(run.tx, a, sweep, number, by, &row, err);
    if (run.status == AS_OK)
        *ret = row;
    return run.status;
}

static as_status retry_all(struct tx *t, struct arena *a, const char *sweep, trial_state state,
                           const char *by, struct retried *ret, struct as_err *err)
{
    struct sweep_head s;
    struct trial_list_heads list = {0};
    as_status st = lock_sweep(t, a, sweep, &s, err);
    if (st != AS_OK)
        return st;
    if ((st = store_trial_ended(t, a, s.key, state, RETRY_MAX, &list, err)) != AS_OK)
        return st;
    ret->n = list.n;
    ret->numbers = arena_alloc(a, list.n + 1, sizeof *ret->numbers);
    if (!ret->numbers)
        return as_fail_nomem(err);
    for (size_t i = 0; i < list.n; i++)
        ret->numbers[i] = list.rows[i].number;
    if (list.n > 0 && (st = retry_list(t, a, &s, list.rows, list.n, by, err)) != AS_OK)
        return st;
    return store_sweep_get(t, a, s.key, &ret->sweep, err);
}

as_status trials_retry(struct store *db, struct arena *a, const char *sweep,
                       const struct retry_request *req, const char *by, struct retried *ret,
                       struct as_err *err)
{
    struct retried done = {0};
    struct tx_run run = tx_run_start(db, TX_WRITE, err);
    while (tx_run_again(&run))
        run.status = retry_all(run.tx, a, sweep, req->state, by, &done, err);
    if (run.status == AS_OK)
        *ret = done;
    return run.status;
}
