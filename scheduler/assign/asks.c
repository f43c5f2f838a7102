/* Ask and tell.
 *
 * An ask is three transactions: find the sweep, take trials (again while suggestions arrive), and
 * read back what the client holds. A repeated ask and a new one get their answer the same way, from
 * what the client holds. A tell uses the functions for runners (lifecycle/attempts.h). This file
 * only finds the attempt that the client names, and extends its lease. */
#include "scheduler/assign/asks.h"

#include <assert.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "scheduler/assign/assignment_priv.h"
#include "scheduler/store/attempt_store.h"
#include "scheduler/store/client_store.h"
#include "scheduler/store/capacity_store.h"
#include "scheduler/store/sweep_head_store.h"
#include "scheduler/store/sweep_store.h"
#include "scheduler/store/trial_row_store.h"
#include "scheduler/store/trial_store.h"
#include "scheduler/sweep/doc_cache.h"

/* Ask. */

/* An ask in progress. */
struct asking {
    struct arena *a;
    const struct ask_request *req;
    int64_t key;
    int64_t lease_until_ms;
    struct assignment assignment;
    sweep_state state;
    struct trial_list_heads held; /* unfinished trials that the client holds */
    struct suggestion_row *rows;  /* the rows of `held` */
};

static bool is_client_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (c && strchr("._:@-", c));
}

as_status ask_check_client(const char *name, struct as_err *err)
{
    size_t n = strlen(name), good = 0;
    while (is_client_char(name[good]))
        good++;
    if (n < 1 || n > CLIENT_NAME_MAX || good < n || strchr("._:@-", name[0]))
        return as_fail_at(err, AS_E_INVAL, "/client",
                          "/client: found \"%.70s\", expected a name of your choice: 1 to %d "
                          "letters, digits and . _ : @ -, a letter or digit first",
                          name, CLIENT_NAME_MAX);
    return AS_OK;
}

static as_status check_request(const struct ask_request *req, struct as_err *err)
{
    as_status st = ask_check_client(req->client, err);
    if (st != AS_OK)
        return st;
    if (req->count < 1 || req->count > ASK_MAX_COUNT)
        return as_fail_at(err, AS_E_INVAL, "/count", "/count: found %lld, expected 1 to %d",
                          (long long)req->count, ASK_MAX_COUNT);
    if (req->lease_ms < ASK_LEASE_MIN_MS || req->lease_ms > ASK_LEASE_MAX_MS)
        return as_fail_at(err, AS_E_INVAL, "/lease_ms",
                          "/lease_ms: found %lld, expected %d to %lld", (long long)req->lease_ms,
                          ASK_LEASE_MIN_MS, (long long)ASK_LEASE_MAX_MS);
    return AS_OK;
}

/* The trials that the client holds, at most as many as it asks for. */
static as_status read_held(struct tx *t, struct asking *x, struct as_err *err)
{
    return store_trial_of_client(t, x->a, x->key, x->req->client, x->req->count, &x->held, err);
}

/* How many more trials the client may have now. */
static int64_t room_of(const struct asking *x, const struct sweep_head *s)
{
    int64_t n = x->req->count - (int64_t)x->held.n;
    int64_t free_slots = s->max_concurrent - s->counts.by_state[TRIAL_RUNNING];
    if (s->state != SWEEP_RUNNING)
        return 0;
    return s->max_concurrent > 0 && n > free_slots ? free_slots : n;
}

/* One look. The lease is locked before the sweep, as in the reaper. */
static as_status look_at_sweep(struct tx *t, struct asking *x, struct as_err *err)
{
    const struct ask_request *req = x->req;
    struct sweep_head s;
    x->assignment.lacking = 0;
    x->assignment.n_taken = 0;
    as_status st = store_client_lease(t, x->key, req->client, req->token, req->lease_ms,
                                      &x->lease_until_ms, err);
    if (st != AS_OK)
        return st;
    st = store_sweep_lock(t, x->a, x->key, &s, err);
    if (st != AS_OK)
        return st;
    st = read_held(t, x, err);
    if (st != AS_OK)
        return st;
    int64_t n = room_of(x, &s);
    st = assignment_take(t, &x->assignment, &s, n, n, err);
    x->state = s.state;
    if (st != AS_OK || x->assignment.got == 0)
        return st;
    return read_held(t, x, err);
}

static as_status take_trials(struct store *db, struct asking *x, struct as_err *err)
{
    struct assignment *asg = &x->assignment;
    as_status st = assignment_open(asg, x->key, err);
    bool again = st == AS_OK;
    for (int i = 0; i < ASSIGNMENT_LOOKS && again; i++) {
        struct tx_run run = tx_run_start(db, TX_WRITE, err);
        while (tx_run_again(&run))
            run.status = look_at_sweep(run.tx, x, err);
        st = run.status;
        again = st == AS_OK && assignment_done(asg);
    }
    assignment_close(asg);
    return st;
}

/* Read back what was handed out. */

static as_status fill_suggestion(struct tx *t, struct asking *x, const json_t *doc, int64_t number,
                                 struct suggestion_row *ret, struct as_err *err)
{
    struct trial_row row;
    JSON_AUTO params = NULL;
    as_status st = store_trial_get(t, x->a, x->key, number, &row, err);
    if (st != AS_OK)
        return st;
    st = json_parse(row.params, strlen(row.params), &params, err);
    if (st != AS_OK)
        return st;
    *ret = (struct suggestion_row){.number = number,
                                   .attempt = row.attempt,
                                   .seed = row.seed,
                                   .params = row.params,
                                   .origin = row.origin,
                                   .reason = row.suggestion,
                                   .lease_until_ms = x->lease_until_ms};
    return inactive_names(x->a, doc, params, &ret->inactive, &ret->n_inactive, err);
}

static as_status fill_all(struct tx *t, struct asking *x, struct as_err *err)
{
    AS_AUTO(doc_ref_done) struct doc_ref doc = {0};
    const char *document = NULL;
    as_status st = store_sweep_standing(t, x->a, x->key, &x->state, &document, err);
    if (st != AS_OK)
        return st;
    x->rows = arena_alloc(x->a, x->held.n + 1, sizeof *x->rows);
    if (!x->rows)
        return as_fail_nomem(err);
    if (x->held.n == 0)
        return AS_OK;
    st = doc_cache_read(store_docs(tx_store(t)), document, false, &doc, err);
    for (size_t i = 0; i < x->held.n && st == AS_OK; i++)
        st = fill_suggestion(t, x, doc.tree, x->held.rows[i].number, &x->rows[i], err);
    return st;
}

static as_status find_sweep(struct store *db, struct asking *x, struct as_err *err)
{
    struct tx_run run = tx_run_start(db, TX_READ, err);
    while (tx_run_again(&run))
        run.status = store_sweep_key(run.tx, x->req->sweep, &x->key, err);
    return run.status;
}

static as_status read_back(struct store *db, struct asking *x, struct as_err *err)
{
    struct tx_run run = tx_run_start(db, TX_READ, err);
    while (tx_run_again(&run))
        run.status = fill_all(run.tx, x, err);
    return run.status;
}

static as_status run_ask(struct store *db, struct asking *x, struct as_err *err)
{
    as_status st = find_sweep(db, x, err);
    if (st != AS_OK)
        return st;
    st = take_trials(db, x, err);
    if (st != AS_OK)
        return st;
    return read_back(db, x, err);
}

as_status ask_trials(struct store *db, struct suggester *sg, struct arena *a,
                     const struct ask_request *req, struct suggestion_list *ret, struct as_err *err)
{
    const struct owner owner = {.client = req->client, .token = req->token};
    struct asking x = {
        .a = a,
        .req = req,
        .assignment = {.db = db,
                       .a = a,
                       .sg = sg,
                       .owner = &owner,
                       .policy = req->is_last ? ASSIGN_BRIEF_WAIT : ASSIGN_ALL,
                       .arrived_ns = req->arrived_ns ? req->arrived_ns : clock_mono_ns()}};
    as_status st = check_request(req, err);
    if (st != AS_OK)
        return st;
    st = run_ask(db, &x, err);
    if (st == AS_E_NOT_FOUND)
        return as_fail(err, st, "there is no sweep '%.80s'", req->sweep);
    if (st != AS_OK)
        return st;
    bool done = x.state != SWEEP_RUNNING && x.state != SWEEP_PAUSED;
    *ret = (struct suggestion_list){.rows = x.rows,
                                    .n = x.held.n,
                                    .state = x.state,
                                    .done = done,
                                    .is_preparing = !done && x.assignment.lacking > 0,
                                    .sweep_key = x.key};
    return AS_OK;
}

as_status asks_pending(struct store *db, struct suggester *sg, const int64_t *sweeps, size_t n,
                       bool *ret_worth, struct as_err *err)
{
    AS_AUTO(arena_done) struct arena a = {0};
    struct sweep_capacity *rooms = NULL;
    if (n == 0)
        return AS_OK;
    struct tx_run run = tx_run_start(db, TX_READ, err);
    while (tx_run_again(&run))
        run.status = store_capacity_askable(run.tx, &a, sweeps, n, &rooms, err);
    if (run.status != AS_OK)
        return run.status;
    assert(rooms); /* one for each sweep */
    for (size_t i = 0; i < n; i++) {
        const struct sweep_capacity *r = &rooms[i];
        int64_t room =
            sg && r->learns ? suggester_capacity(sg, r->key, r->queued, r->room) : r->room;
        ret_worth[i] = r->has_ended || room > 0;
    }
    return AS_OK;
}

/* Tell. */

struct telling {
    const struct ask_ref *ref;
    int64_t lease_ms; /* -1: leave the lease alone; 0: as long as before */
    bool must_run;    /* the client must hold it now */
    int64_t attempt;  /* the attempt that was found */
    int64_t until_ms; /* end of the lease; 0: it has none */
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

as_status ask_check_held(const struct ask_ref *ref, const struct trial_head *x, int64_t latest,
                         bool is_anothers, bool must_run, int64_t *ret_attempt, struct as_err *err)
{
    bool holds = x->state == TRIAL_RUNNING && x->attempt == latest &&
                 (ref->attempt == 0 || ref->attempt == latest);
    if (is_anothers)
        return as_fail(err, AS_E_DENIED,
                       "the client '%.64s' that got trial %lld asked for it with another token",
                       ref->client, (long long)ref->number);
    if (latest == 0 || ref->attempt > latest || (must_run && !holds))
        return not_held(ref, x, latest, err);
    *ret_attempt = ref->attempt > 0 ? ref->attempt : latest;
    return AS_OK;
}

as_status ask_check_outcome(const struct completion *c, struct as_err *err)
{
    if (c->outcome != OUTCOME_RETRY && c->outcome != OUTCOME_TIMEOUT)
        return AS_OK;
    return as_fail_at(
        err, AS_E_INVAL, "/outcome",
        "/outcome: found '%s', expected completed, failed, released, paused or pruned",
        attempt_outcome_words[c->outcome]);
}

static as_status find_held_attempt(struct tx *t, struct telling *x, struct as_err *err)
{
    const struct ask_ref *ref = x->ref;
    AS_AUTO(arena_done) struct arena a = {0};
    struct trial_head head;
    int64_t key = 0, latest = 0;
    bool is_anothers = false;
    as_status st = store_sweep_key(t, ref->sweep, &key, err);
    if (st != AS_OK)
        return st;
    if (x->lease_ms >= 0) {
        st = store_client_extend(t, key, ref->client, x->lease_ms, &x->until_ms, err);
        if (st != AS_OK)
            return st;
    }
    st = store_trial_head(t, &a, key, ref->number, &head, err);
    if (st == AS_OK)
        st = store_attempt_of_client(t, key, ref->number, ref->client, ref->token, &latest,
                                     &is_anothers, err);
    if (st != AS_OK)
        return st;
    return ask_check_held(ref, &head, latest, is_anothers, x->must_run, &x->attempt, err);
}

/* Find the attempt that the client names. */
static as_status find_attempt(struct store *db, tx_kind kind, struct telling *x,
                              struct attempt_ref *ret, struct as_err *err)
{
    struct tx_run run = tx_run_start(db, kind, err);
    while (tx_run_again(&run))
        run.status = find_held_attempt(run.tx, x, err);
    if (run.status == AS_OK)
        *ret = (struct attempt_ref){x->ref->sweep, x->ref->number, x->attempt};
    return run.status;
}

as_status ask_measure(struct store *db, struct arena *a, const struct ask_ref *ref,
                      const struct measurement *points, size_t n, struct attempt_recorded *ret,
                      struct as_err *err)
{
    struct telling x = {.ref = ref};
    struct attempt_ref at;
    as_status st =
        attempt_check_report(&(struct attempt_report){.points = points, .n_points = n}, err);
    if (st == AS_OK)
        st = find_attempt(db, TX_SOFT, &x, &at, err);
    if (st != AS_OK)
        return st;
    const struct attempt_writer by = {.client = ref->client};
    const struct attempt_report report = {.points = points, .n_points = n};
    return attempt_record(db, a, &at, &by, &report, ret, err);
}

as_status ask_heartbeat(struct store *db, const struct ask_ref *ref, int64_t lease_ms,
                        int64_t *ret_lease_until_ms, struct as_err *err)
{
    if (lease_ms != 0 && (lease_ms < ASK_LEASE_MIN_MS || lease_ms > ASK_LEASE_MAX_MS))
        return as_fail_at(err, AS_E_INVAL, "/lease_ms",
                          "/lease_ms: found %lld, expected %d to %lld", (long long)lease_ms,
                          ASK_LEASE_MIN_MS, (long long)ASK_LEASE_MAX_MS);
    struct telling x = {.ref = ref, .lease_ms = lease_ms, .must_run = true};
    struct attempt_ref at;
    as_status st = find_attempt(db, TX_SOFT, &x, &at, err);
    if (st != AS_OK)
        return st;
    *ret_lease_until_ms = x.until_ms;
    return AS_OK;
}

as_status ask_complete(struct store *db, struct arena *a, const struct ask_ref *ref,
                       const struct completion *c, struct trial_row *ret, struct as_err *err)
{
    struct telling x = {.ref = ref, .lease_ms = -1};
    struct attempt_ref at;
    as_status st = ask_check_outcome(c, err);
    if (st == AS_OK)
        st = attempt_check_completion(c, err);
    if (st == AS_OK)
        st = find_attempt(db, TX_READ, &x, &at, err);
    if (st != AS_OK)
        return st;
    const struct attempt_writer by = {.client = ref->client};
    return attempt_complete(db, a, &at, &by, c, ret, err);
}
