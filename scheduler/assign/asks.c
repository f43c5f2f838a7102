/* Ask and tell. What a client tells goes the way of what a runner tells (attempts.c): here it is
 * only found out which attempt it speaks of, and its lease extended. */
#include "scheduler/assign/asks.h"

#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/utf8.h"
#include "scheduler/assign/assignment_priv.h"
#include "scheduler/store/attempt_store.h"
#include "scheduler/store/client_store.h"
#include "scheduler/store/sweep_store.h"
#include "scheduler/store/trial_store.h"

/* Asking. */

struct ask_arg {
    struct arena *a;
    const struct ask_request *req;
    int64_t key;
    int64_t lease_until_ms;
    struct assignment assignment;
    sweep_state state;
    const char *document;
    struct trial_list_heads held;
    struct suggestion_row *rows;
};

static as_status check(const struct ask_request *req, struct as_err *err)
{
    size_t len = strlen(req->client);
    size_t chars = as_utf8_valid(req->client, len) ? as_utf8_length(req->client) : 0;
    if (chars < 1 || chars > 64)
        return as_fail_at(err, AS_E_INVAL, "/client", "/client: expected 1 to 64 characters");
    if (req->count < 1 || req->count > ASK_MAX_COUNT)
        return as_fail_at(err, AS_E_INVAL, "/count", "/count: found %lld, expected 1 to %d",
                          (long long)req->count, ASK_MAX_COUNT);
    if (req->lease_ms < ASK_LEASE_MIN_MS || req->lease_ms > ASK_LEASE_MAX_MS)
        return as_fail_at(err, AS_E_INVAL, "/lease_ms",
                          "/lease_ms: found %lld, expected %d to %lld", (long long)req->lease_ms,
                          ASK_LEASE_MIN_MS, (long long)ASK_LEASE_MAX_MS);
    return AS_OK;
}

static as_status tx_key(struct tx *t, void *p, struct as_err *err)
{
    struct ask_arg *arg = p;
    return store_sweep_key(t, arg->req->sweep, &arg->key, err);
}

static as_status tx_ask(struct tx *t, void *p, struct as_err *err)
{
    struct ask_arg *arg = p;
    const struct ask_request *req = arg->req;
    struct sweep_head s;
    arg->assignment.lacking = 0;
    arg->assignment.n_taken = 0;
    /* the lease before the sweep, as the reaper takes them */
    as_status st =
        store_client_lease(t, arg->key, req->client, req->lease_ms, &arg->lease_until_ms, err);
    if (st == AS_OK)
        st = store_sweep_lock(t, arg->a, arg->key, &s, err);
    if (st == AS_OK)
        st = store_trial_of_client(t, arg->a, arg->key, req->client, req->count, &arg->held, err);
    if (st != AS_OK)
        return st;
    int64_t n = req->count - (int64_t)arg->held.n;
    int64_t free_slots = s.max_concurrent - s.counts.by_state[TRIAL_RUNNING];
    if (s.max_concurrent > 0 && n > free_slots)
        n = free_slots;
    if (s.state != SWEEP_RUNNING)
        n = 0;
    st = assignment_take(t, &arg->assignment, &s, n, n, err);
    arg->state = s.state;
    if (st == AS_OK && arg->assignment.got > 0)
        st = store_trial_of_client(t, arg->a, arg->key, req->client, req->count, &arg->held, err);
    return st;
}

/* Telling what was handed out. */

static as_status fill(struct tx *t, struct ask_arg *arg, const json_t *doc, int64_t number,
                      struct suggestion_row *ret, struct as_err *err)
{
    struct trial_row row;
    JSON_AUTO params = NULL;
    as_status st = store_trial_get(t, arg->a, arg->key, number, &row, err);
    if (st == AS_OK)
        st = json_parse(row.params, strlen(row.params), &params, err);
    if (st != AS_OK)
        return st;
    *ret = (struct suggestion_row){.number = number,
                                   .attempt = row.attempt,
                                   .seed = row.seed,
                                   .params = row.params,
                                   .origin = row.origin,
                                   .reason = row.suggestion,
                                   .lease_until_ms = arg->lease_until_ms};
    return inactive_names(arg->a, doc, params, &ret->inactive, &ret->n_inactive, err);
}

static as_status tx_fill(struct tx *t, void *p, struct as_err *err)
{
    struct ask_arg *arg = p;
    JSON_AUTO doc = NULL;
    struct sweep_row now;
    as_status st = store_sweep_get(t, arg->a, arg->key, &now, err);
    if (st != AS_OK)
        return st;
    arg->state = now.state;
    arg->rows = arena_alloc(arg->a, arg->held.n + 1, sizeof *arg->rows);
    if (!arg->rows)
        return as_fail(err, AS_E_NOMEM, "out of memory");
    if (arg->held.n > 0)
        st = json_parse(now.document, strlen(now.document), &doc, err);
    for (size_t i = 0; i < arg->held.n && st == AS_OK; i++)
        st = fill(t, arg, doc, arg->held.rows[i].number, &arg->rows[i], err);
    return st;
}

static as_status take(struct store *db, struct ask_arg *arg, struct as_err *err)
{
    struct assignment *asg = &arg->assignment;
    as_status st = assignment_open(asg, arg->key, err);
    bool again = st == AS_OK;
    for (int i = 0; i < ASSIGNMENT_LOOKS && again && st == AS_OK; i++) {
        st = store_run(db, TX_WRITE, tx_ask, arg, err);
        again = st == AS_OK && assignment_done(asg);
    }
    assignment_close(asg);
    return st;
}

as_status ask_trials(struct store *db, struct suggester *sg, struct arena *a,
                     const struct ask_request *req, struct suggestion_list *ret, struct as_err *err)
{
    const struct owner owner = {.client = req->client};
    struct ask_arg arg = {
        .a = a,
        .req = req,
        .assignment = {.db = db,
                       .a = a,
                       .sg = sg,
                       .owner = &owner,
                       .policy = req->is_last ? ASSIGN_BRIEF_WAIT : ASSIGN_ALL,
                       .arrived_ns = req->arrived_ns ? req->arrived_ns : clock_mono_ns()}};
    as_status st = check(req, err);
    if (st == AS_OK)
        st = store_run(db, TX_READ, tx_key, &arg, err);
    if (st == AS_OK)
        st = take(db, &arg, err);
    if (st == AS_OK)
        st = store_run(db, TX_READ, tx_fill, &arg, err);
    if (st == AS_E_NOT_FOUND)
        return as_fail(err, st, "there is no sweep '%.80s'", req->sweep);
    if (st != AS_OK)
        return st;
    bool done = arg.state != SWEEP_RUNNING && arg.state != SWEEP_PAUSED;
    *ret = (struct suggestion_list){.rows = arg.rows,
                                    .n = arg.held.n,
                                    .state = arg.state,
                                    .done = done,
                                    .is_preparing = !done && arg.assignment.lacking > 0,
                                    .sweep_key = arg.key};
    return AS_OK;
}

struct pending_arg {
    struct arena *a;
    const int64_t *sweeps;
    size_t n;
    struct sweep_room *rooms;
};

static as_status tx_pending(struct tx *t, void *p, struct as_err *err)
{
    struct pending_arg *arg = p;
    return store_sweep_askable(t, arg->a, arg->sweeps, arg->n, &arg->rooms, err);
}

as_status asks_pending(struct store *db, struct suggester *sg, const int64_t *sweeps, size_t n,
                       bool *ret_worth, struct as_err *err)
{
    AS_AUTO(arena_done) struct arena a = {0};
    struct pending_arg arg = {.a = &a, .sweeps = sweeps, .n = n};
    as_status st = n > 0 ? store_run(db, TX_READ, tx_pending, &arg, err) : AS_OK;
    for (size_t i = 0; i < n && st == AS_OK; i++) {
        const struct sweep_room *r = &arg.rooms[i];
        int64_t room = sg && r->learns ? suggester_room(sg, r->key, r->queued, r->room) : r->room;
        ret_worth[i] = r->has_ended || room > 0;
    }
    return st;
}

/* Telling. */

struct tell_arg {
    const struct ask_ref *ref;
    int64_t lease_ms; /* -1: leave the lease alone; 0: as long as before */
    bool must_run;    /* the client holds it now */
    int64_t attempt;  /* found */
    int64_t until_ms; /* of the lease; 0: it has none */
};

/* `held`: the latest attempt that the client held; 0: none. */
static as_status not_held(const struct ask_ref *ref, const struct trial_head *x, int64_t held,
                          struct as_err *err)
{
    if (x->state == TRIAL_RUNNING && x->attempt == held)
        return as_fail(err, AS_E_STALE, "client '%.64s' holds attempt %lld of trial %lld, not %lld",
                       ref->client, (long long)held, (long long)ref->number,
                       (long long)ref->attempt);
    if (x->state == TRIAL_RUNNING)
        return as_fail(err, AS_E_STALE, "client '%.64s' does not hold trial %lld: another one does",
                       ref->client, (long long)ref->number);
    return as_fail(err, AS_E_STALE, "client '%.64s' does not hold trial %lld: it is %s",
                   ref->client, (long long)ref->number, trial_state_format(x->state));
}

static as_status tx_find(struct tx *t, void *p, struct as_err *err)
{
    struct tell_arg *arg = p;
    const struct ask_ref *ref = arg->ref;
    AS_AUTO(arena_done) struct arena a = {0};
    struct trial_head x;
    int64_t key = 0;
    as_status st = store_sweep_key(t, ref->sweep, &key, err);
    if (st == AS_OK && arg->lease_ms >= 0)
        st = store_client_extend(t, key, ref->client, arg->lease_ms, &arg->until_ms, err);
    if (st == AS_OK)
        st = store_trial_head(t, &a, key, ref->number, &x, err);
    if (st == AS_OK)
        st = store_attempt_of_client(t, key, ref->number, ref->client, &arg->attempt, err);
    if (st != AS_OK)
        return st;
    bool holds = x.state == TRIAL_RUNNING && x.attempt == arg->attempt &&
                 (ref->attempt == 0 || ref->attempt == arg->attempt);
    if (arg->attempt == 0 || ref->attempt > arg->attempt || (arg->must_run && !holds))
        return not_held(ref, &x, arg->attempt, err);
    if (ref->attempt > 0)
        arg->attempt = ref->attempt;
    return AS_OK;
}

static struct attempt_ref attempt_of(const struct tell_arg *arg)
{
    return (struct attempt_ref){arg->ref->sweep, arg->ref->number, arg->attempt};
}

as_status ask_measure(struct store *db, const struct ask_ref *ref, const struct measurement *points,
                      size_t n, int64_t *ret_recorded, struct as_err *err)
{
    struct tell_arg arg = {.ref = ref};
    as_status st = store_run(db, TX_SOFT, tx_find, &arg, err);
    struct attempt_ref at = attempt_of(&arg);
    return st == AS_OK ? attempt_measure(db, &at, points, n, ret_recorded, err) : st;
}

as_status ask_heartbeat(struct store *db, const struct ask_ref *ref, int64_t lease_ms,
                        int64_t *ret_lease_until_ms, struct as_err *err)
{
    if (lease_ms != 0 && (lease_ms < ASK_LEASE_MIN_MS || lease_ms > ASK_LEASE_MAX_MS))
        return as_fail_at(err, AS_E_INVAL, "/lease_ms",
                          "/lease_ms: found %lld, expected %d to %lld", (long long)lease_ms,
                          ASK_LEASE_MIN_MS, (long long)ASK_LEASE_MAX_MS);
    struct tell_arg arg = {.ref = ref, .lease_ms = lease_ms, .must_run = true};
    as_status st = store_run(db, TX_SOFT, tx_find, &arg, err);
    if (st == AS_OK)
        *ret_lease_until_ms = arg.until_ms;
    return st;
}

as_status ask_complete(struct store *db, struct arena *a, const struct ask_ref *ref,
                       const struct completion *c, struct trial_row *ret, struct as_err *err)
{
    if (c->outcome != OUTCOME_COMPLETED && c->outcome != OUTCOME_FAILED &&
        c->outcome != OUTCOME_RELEASED)
        return as_fail_at(err, AS_E_INVAL, "/outcome",
                          "/outcome: found '%s', expected completed, failed or released",
                          attempt_outcome_words[c->outcome]);
    struct tell_arg arg = {.ref = ref, .lease_ms = -1};
    as_status st = store_run(db, TX_READ, tx_find, &arg, err);
    struct attempt_ref at = attempt_of(&arg);
    return st == AS_OK ? attempt_complete(db, a, &at, c, ret, err) : st;
}
