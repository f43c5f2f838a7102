/* Trials that people add: enqueued trials, and known results, one or many in a request.
 *
 * Work that needs no lock comes first: the document and the data sets are read, and every row is
 * checked (addition.c). Then one transaction locks the sweep's row, gives the trials the next
 * numbers, and writes them by a fixed number of statements. A known result increases the number of
 * planned trials, so that it takes nothing from the budget.
 *
 * A row of a list may have an idempotency key of its own. So a program that adds the rows of a
 * file can send it again, also longer or cut differently, and nothing is added twice. */
#include "base/json.h"
#include "scheduler/lifecycle/idempotency.h"
#include "scheduler/services/addition_priv.h"
#include "scheduler/services/trials.h"
#include "scheduler/store/assignment_store.h"
#include "scheduler/store/client_store.h"
#include "scheduler/store/dataset_store.h"
#include "scheduler/store/regret_store.h"
#include "scheduler/store/sweep_change_store.h"
#include "scheduler/store/sweep_head_store.h"
#include "scheduler/store/sweep_store.h"
#include "scheduler/store/trial_row_store.h"
#include "scheduler/store/trial_store.h"
#include "scheduler/sweep/trial_seed.h"

/* A request in progress. */
struct adding {
    struct arena *a;
    struct addition_target to;
    struct addition_list list;
    const struct idem_key *idem; /* NULL: none */
    const char *scope;           /* of the keys of rows */
    int64_t *numbers;            /* of each row; -1: not added yet */
    size_t n_added;
};

static as_status read_target(struct tx *t, struct arena *a, struct addition_target *to,
                             struct as_err *err)
{
    as_status st = store_sweep_key(t, to->id, &to->key, err);
    if (st != AS_OK)
        return st;
    st = store_sweep_document(t, a, to->key, &to->document, err);
    if (st != AS_OK)
        return st;
    return store_dataset_of_sweep(t, a, to->key, &to->datasets, &to->n_datasets, err);
}

static as_status check_room(const struct sweep_head *s, const struct added_trial *rows, size_t n,
                            struct as_err *err)
{
    int64_t left = s->planned - s->counts.total, wanted = 0;
    for (size_t i = 0; i < n; i++)
        wanted += rows[i].state == TRIAL_QUEUED;
    if (wanted == 0 && (s->state == SWEEP_COMPLETED || s->state == SWEEP_FINISHING))
        return AS_OK; /* results change nothing about its end, and are there if it runs on */
    if (s->state != SWEEP_RUNNING && s->state != SWEEP_PAUSED)
        return as_fail(err, AS_E_CONFLICT, "the sweep '%s' is %s and takes no more trials", s->id,
                       sweep_state_format(s->state));
    if (wanted > 0 && left <= 0)
        return as_fail(err, AS_E_CONFLICT,
                       "all %lld trials of the sweep '%s' exist: raise limits.max_trials first",
                       (long long)(s->planned - s->known), s->id);
    if (wanted > left)
        return as_fail(err, AS_E_CONFLICT,
                       "the sweep '%s' has room for %lld more trials, and %lld are to be enqueued: "
                       "raise limits.max_trials first",
                       s->id, (long long)left, (long long)wanted);
    return AS_OK;
}

/* Find the rows whose keys were used before. */
static as_status find_added(struct tx *t, struct adding *x, struct as_err *err)
{
    size_t n = x->list.n;
    for (size_t i = 0; i < n; i++)
        x->numbers[i] = -1;
    if (!x->list.keys)
        return AS_OK;
    bool *same = arena_alloc(x->a, n, sizeof *same);
    if (!same)
        return as_fail_nomem(err);
    as_status st =
        store_addition_find(t, x->scope, x->list.keys, x->list.digests, n, x->numbers, same, err);
    for (size_t i = 0; i < n && st == AS_OK; i++) {
        char row[AS_ERR_POINTER_MAX], at[AS_ERR_POINTER_MAX];
        if (x->numbers[i] < 0 || same[i])
            continue;
        json_pointer_index("", i, row);
        json_pointer_child(row, "key", at);
        return as_fail_at(err, AS_E_CONFLICT, at, "%s: '%s' was used for another trial", at,
                          x->list.keys[i]);
    }
    return st;
}

/* Number and insert the rows that are new, in their order. */
static as_status insert_new(struct tx *t, struct adding *x, const struct sweep_head *s,
                            struct as_err *err)
{
    size_t n = 0, all = x->list.n;
    struct added_trial *rows = arena_alloc(x->a, all, sizeof *rows);
    const char **keys = arena_alloc(x->a, all, sizeof *keys);
    const char **digests = arena_alloc(x->a, all, sizeof *digests);
    int64_t *numbers = arena_alloc(x->a, all, sizeof *numbers);
    if (!rows || !keys || !digests || !numbers)
        return as_fail_nomem(err);
    for (size_t i = 0; i < all; i++) {
        if (x->numbers[i] >= 0)
            continue;
        x->numbers[i] = numbers[n] = s->counts.total + (int64_t)n;
        rows[n] = x->list.rows[i];
        rows[n].number = numbers[n];
        rows[n].seed = trial_seed_of(s->seed, numbers[n]);
        keys[n] = x->list.keys ? x->list.keys[i] : NULL;
        digests[n] = x->list.digests[i];
        n++;
    }
    x->n_added = n;
    if (n == 0)
        return AS_OK;
    as_status st = check_room(s, rows, n, err);
    if (st != AS_OK)
        return st;
    if ((st = store_addition_insert(t, s, rows, n, err)) != AS_OK)
        return st;
    if (s->state == SWEEP_COMPLETED)
        st = store_regret_open(t, x->to.key, err);
    if (st != AS_OK || !x->list.keys)
        return st;
    return store_addition_keys(t, x->scope, s->id, keys, digests, numbers, n, err);
}

/* The request was repeated after the server died before its answer: its rows have the numbers from
 * `first` on, unless they have keys. */
static as_status find_repeated(struct tx *t, struct adding *x, int64_t first, struct as_err *err)
{
    if (x->list.keys)
        return find_added(t, x, err);
    for (size_t i = 0; i < x->list.n; i++)
        x->numbers[i] = first + (int64_t)i;
    return AS_OK;
}

static as_status add_all(struct tx *t, struct adding *x, struct as_err *err)
{
    struct idem_made made;
    struct sweep_head s;
    x->n_added = 0;
    as_status st = idempotency_begin(t, x->a, x->idem, x->to.id, &made, err);
    if (st != AS_OK)
        return st;
    if (made.sweep)
        return find_repeated(t, x, made.number, err);
    if ((st = store_sweep_lock(t, x->a, x->to.key, &s, err)) < 0 ||
        (st = find_added(t, x, err)) < 0 || (st = insert_new(t, x, &s, err)) < 0)
        return st;
    return idempotency_end(t, x->idem, s.id, x->numbers[0], err);
}

static as_status open_adding(struct store *db, struct adding *x, const json_t *body,
                             struct as_err *err)
{
    as_status st = additions_check_size(body, err);
    if (st != AS_OK)
        return st;
    struct tx_run run = tx_run_start(db, TX_READ, err);
    while (tx_run_again(&run))
        run.status = read_target(run.tx, x->a, &x->to, err);
    if (run.status != AS_OK)
        return run.status;
    st = additions_read(x->a, body, &x->to, &x->list, err);
    if (st != AS_OK)
        return st;
    x->numbers = arena_alloc(x->a, x->list.n, sizeof *x->numbers);
    return x->numbers ? AS_OK : as_fail_nomem(err);
}

static as_status add_one(struct tx *t, struct adding *x, struct trial_row *ret, struct as_err *err)
{
    as_status st = add_all(t, x, err);
    return st == AS_OK ? store_trial_get(t, x->a, x->to.key, x->numbers[0], ret, err) : st;
}

as_status trial_add(struct store *db, struct arena *a, const char *sweep, const json_t *body,
                    const struct idem_key *idem, struct trial_row *ret, struct as_err *err)
{
    struct adding x = {.a = a, .to = {.id = sweep}, .idem = idem};
    struct trial_row row = {0};
    as_status st = open_adding(db, &x, body, err);
    if (st != AS_OK)
        return st;
    struct tx_run run = tx_run_start(db, TX_WRITE, err);
    while (tx_run_again(&run))
        run.status = add_one(run.tx, &x, &row, err);
    if (run.status == AS_OK)
        *ret = row;
    return run.status;
}

as_status trials_add(struct store *db, struct arena *a, const char *sweep, const json_t *list,
                     const struct idem_key *idem, const char *scope, struct trials_added *ret,
                     struct as_err *err)
{
    struct adding x = {.a = a, .to = {.id = sweep}, .idem = idem, .scope = scope};
    as_status st = open_adding(db, &x, list, err);
    if (st != AS_OK)
        return st;
    struct tx_run run = tx_run_start(db, TX_WRITE, err);
    while (tx_run_again(&run))
        run.status = add_all(run.tx, &x, err);
    if (run.status == AS_OK)
        *ret = (struct trials_added){
            .sweep = sweep, .numbers = x.numbers, .n = x.list.n, .n_added = x.n_added};
    return run.status;
}

/* Begin. */

/* Insert the one row of the list, and let the client run it. The caller holds the sweep's row. */
static as_status insert_begun(struct tx *t, struct adding *x, const struct ask_request *req,
                              const struct sweep_head *s, struct as_err *err)
{
    const struct owner owner = {.client = req->client, .token = req->token};
    as_status st = insert_new(t, x, s, err);
    if (st != AS_OK)
        return st;
    const struct begun_trial begun = {.number = x->numbers[0]};
    st = store_assignment_begin(t, s, &owner, &begun, 1, err);
    return st == AS_OK && !s->has_started ? store_sweep_started(t, s->key, err) : st;
}

/* *ret_state, and *ret_holds: the client holds a trial now. The lease is locked before the sweep,
 * as in ask_trials(). */
static as_status begin_one(struct tx *t, struct adding *x, const struct ask_request *req,
                           sweep_state *ret_state, bool *ret_holds, struct as_err *err)
{
    struct sweep_head s;
    struct trial_list_heads held;
    int64_t until_ms = 0, steps_room = INT64_MAX;
    x->numbers[0] = -1;
    as_status st =
        store_client_lease(t, x->to.key, req->client, req->token, req->lease_ms, &until_ms, err);
    if (st < 0 || (st = store_sweep_lock(t, x->a, x->to.key, &s, err)) < 0 ||
        (st = store_trial_of_client(t, x->a, x->to.key, req->client, 1, &held, err)) < 0)
        return st;
    if (s.limits_steps && (st = store_sweep_steps_room(t, &s.key, 1, &steps_room, err)) != AS_OK)
        return st;
    bool is_full = steps_room == 0 ||
                   (s.max_concurrent > 0 && s.counts.by_state[TRIAL_RUNNING] >= s.max_concurrent);
    *ret_state = s.state;
    *ret_holds = held.n > 0;
    if (held.n > 0 || s.state == SWEEP_PAUSED || (s.state == SWEEP_RUNNING && is_full))
        return AS_OK;
    *ret_holds = true;
    return insert_begun(t, x, req, &s, err);
}

as_status trial_begin(struct store *db, struct suggester *sg, struct arena *a,
                      const struct ask_request *req, struct suggestion_list *ret,
                      struct as_err *err)
{
    struct adding x = {.a = a, .to = {.id = req->sweep}};
    struct ask_request held = *req;
    sweep_state state = SWEEP_RUNNING;
    bool holds = false;
    JSON_AUTO body = json_pack("{s:O}", "params", req->params);
    if (!body)
        return as_fail_nomem(err);
    as_status st = open_adding(db, &x, body, err);
    if (st == AS_E_NOT_FOUND)
        return as_fail(err, st, "there is no sweep '%.80s'", req->sweep);
    if (st != AS_OK)
        return st;
    struct tx_run run = tx_run_start(db, TX_WRITE, err);
    while (tx_run_again(&run))
        run.status = begin_one(run.tx, &x, req, &state, &holds, err);
    if (run.status != AS_OK)
        return run.status;
    *ret = (struct suggestion_list){.state = state, .sweep_key = x.to.key};
    held.is_last = true;
    return holds ? ask_trials(db, sg, a, &held, ret, err) : AS_OK;
}
