/* Claims.
 *
 * Three steps: look (no locks), take (a transaction per sweep), tell. What was taken is found again
 * by its claim_id, so a repeat and a fresh claim are told the same way. */
#include "scheduler/claims.h"

#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/spec/template.h"
#include "base/str.h"
#include "base/utf8.h"
#include "scheduler/handout_priv.h"
#include "scheduler/store/attempt_store.h"
#include "scheduler/store/dataset_store.h"
#include "scheduler/store/file_store.h"
#include "scheduler/store/runner_store.h"
#include "scheduler/store/sweep_store.h"
#include "scheduler/store/trial_store.h"

struct claim_arg {
    struct store *db;
    struct suggester *sg;
    struct arena *a;
    const struct claim_request *req;
    int64_t arrived_ns;
    struct holder holder;
    int64_t want, gpus; /* still to be had */
    int64_t *sweeps;    /* that have something, in the order of asking */
    size_t n_sweeps;
    struct claim_list list;

    /* of the sweep being asked */
    int64_t key, share;
    int64_t gpus_each;
    struct handout handout;
};

static as_status stale_epoch(const struct claim_request *req, struct as_err *err)
{
    return as_fail(err, AS_E_STALE, "epoch %lld of runner '%.63s' is not current: register again",
                   (long long)req->epoch, req->runner);
}

/* Telling: a claimed trial with all that its runner needs. */

/* The data set that this trial's parameters name; none for a command. */
static as_status fill_dataset(struct tx *t, struct arena *a, int64_t sweep_key, const json_t *doc,
                              const json_t *params, struct claimed_row *ret, struct as_err *err)
{
    json_t *train = json_object_get(json_object_get(doc, "trial"), "train");
    const char *text = json_string_value(json_object_get(train, "dataset"));
    if (!text)
        return AS_OK;
    AS_AUTO(as_freep) char *name = NULL;
    as_status st = template_apply_text(text, params, &name, err);
    struct dataset_row *row = arena_alloc(a, 1, sizeof *row);
    if (st != AS_OK || !row)
        return st != AS_OK ? st : as_fail(err, AS_E_NOMEM, "out of memory");
    st = store_dataset_get(t, a, name, false, row, err);
    if (st == AS_OK)
        st = store_dataset_expected(t, a, sweep_key, row, err);
    if (st == AS_OK)
        ret->dataset = row;
    return st == AS_E_NOT_FOUND ? AS_OK : st; /* the runner says so where people look: in the log */
}

static as_status fill_claimed(struct tx *t, struct arena *a, const struct attempt_claimed *c,
                              struct claimed_row *ret, struct as_err *err)
{
    JSON_AUTO doc = NULL;
    JSON_AUTO params = NULL;
    as_status st = json_parse(c->document, strlen(c->document), &doc, err);
    if (st == AS_OK)
        st = json_parse(c->row.params, strlen(c->row.params), &params, err);
    if (st != AS_OK)
        return st;
    AS_AUTO(as_freep) char *trial = json_format(json_object_get(doc, "trial"));
    *ret = c->row;
    ret->trial = arena_strdup(a, trial);
    if (!ret->trial)
        return as_fail(err, AS_E_NOMEM, "out of memory");
    st = inactive_names(a, doc, params, &ret->inactive, &ret->n_inactive, err);
    if (st == AS_OK)
        st = fill_dataset(t, a, c->sweep_key, doc, params, ret, err);
    if (st == AS_OK)
        st = store_file_list(t, a, c->sweep_key, ret->number, "checkpoint", &ret->files, err);
    return st;
}

static as_status tx_tell(struct tx *t, void *p, struct as_err *err)
{
    struct claim_arg *arg = p;
    const struct claim_request *req = arg->req;
    struct attempt_claimed *claimed = NULL;
    size_t n = 0;
    as_status st =
        store_attempt_claimed(t, arg->a, req->runner, req->epoch, req->claim_id, &claimed, &n, err);
    struct claimed_row *rows = arena_alloc(arg->a, n + 1, sizeof *rows);
    if (!rows)
        return as_fail(err, AS_E_NOMEM, "out of memory");
    for (size_t i = 0; i < n && st == AS_OK; i++)
        st = fill_claimed(t, arg->a, &claimed[i], &rows[i], err);
    arg->list = (struct claim_list){.rows = rows, .n = n};
    return st;
}

/* Looking: may this runner claim, did this claim get anything before, who has work? */
static as_status tx_look(struct tx *t, void *p, struct as_err *err)
{
    struct claim_arg *arg = p;
    const struct claim_request *req = arg->req;
    struct runner_head runner;
    as_status st = store_runner_get(t, arg->a, req->runner, &runner, err);
    if (st != AS_OK)
        return st;
    if (runner.epoch != req->epoch || !as_streq(runner.state, "live"))
        return stale_epoch(req, err);
    st = tx_tell(t, arg, err);
    if (st != AS_OK || arg->list.n > 0)
        return st;
    int64_t room = runner.slots - runner.running;
    arg->want = room < req->max_trials ? room : req->max_trials;
    arg->gpus = req->gpus;
    return store_sweep_claimable(t, arg->a, arg->gpus, &arg->sweeps, &arg->n_sweeps, err);
}

/* Taking. */

static int64_t min_i64(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* How many trials this sweep may give to this runner now. Its rows are held. */
static as_status allowance(struct tx *t, const struct claim_arg *arg, const struct sweep_head *s,
                           int64_t *ret, struct as_err *err)
{
    const struct claim_request *req = arg->req;
    struct runner_head runner;
    int64_t claimed = 0;
    as_status st = store_runner_get(t, arg->a, req->runner, &runner, err);
    if (st == AS_OK)
        st = store_attempt_claim_count(t, req->runner, req->epoch, req->claim_id, &claimed, err);
    if (st != AS_OK)
        return st;
    int64_t n = min_i64(arg->share, runner.slots - runner.running);
    n = min_i64(n, req->max_trials - claimed); /* the same claim may be under way twice */
    if (s->max_concurrent > 0)
        n = min_i64(n, s->max_concurrent - s->counts.by_state[TRIAL_RUNNING]);
    if (s->gpus > 0)
        n = min_i64(n, arg->gpus / s->gpus);
    *ret = s->state == SWEEP_RUNNING ? n : 0;
    return AS_OK;
}

static as_status tx_take(struct tx *t, void *p, struct as_err *err)
{
    struct claim_arg *arg = p;
    const struct claim_request *req = arg->req;
    bool live = false;
    struct sweep_head s;
    int64_t n = 0;
    arg->handout.got = arg->handout.n_taken = 0;
    arg->handout.lacking = 0;
    as_status st = store_runner_extend(t, req->runner, req->epoch,
                                       store_config(tx_store(t))->lease_ms, &live, err);
    if (st == AS_OK && !live)
        return stale_epoch(req, err);
    if (st == AS_OK)
        st = store_sweep_lock(t, arg->a, arg->key, &s, err);
    if (st == AS_OK)
        st = allowance(t, arg, &s, &n, err);
    if (st != AS_OK)
        return st == AS_E_NOT_FOUND ? AS_OK : st; /* the sweep was deleted */
    arg->gpus_each = s.gpus;
    return handout_take(t, &arg->handout, &s, n > 0 ? n : 0, err);
}

/* Ask one sweep for `share` trials. */
static as_status take_from(struct claim_arg *arg, int64_t *ret_got, struct as_err *err)
{
    struct handout *h = &arg->handout;
    *h = (struct handout){.db = arg->db,
                          .a = arg->a,
                          .sg = arg->sg,
                          .holder = &arg->holder,
                          .is_hasty = arg->list.is_preparing, /* it has waited already */
                          .arrived_ns = arg->arrived_ns};
    *ret_got = 0;
    as_status st = handout_open(h, arg->key, err);
    bool again = st == AS_OK && h->is_there;
    for (int i = 0; i < HANDOUT_LOOKS && again && st == AS_OK; i++) {
        st = store_run(arg->db, TX_WRITE, tx_take, arg, err);
        if (st != AS_OK)
            break;
        again = handout_done(h);
        *ret_got += h->got;
        arg->share -= h->got;
        arg->want -= h->got;
        arg->gpus -= h->got * arg->gpus_each;
        arg->list.is_preparing |= h->lacking > 0;
        atomic_fetch_add(&store_counters(arg->db)->trials_claimed, h->got);
    }
    handout_close(h);
    return st;
}

static as_status check(const struct claim_request *req, struct as_err *err)
{
    size_t id = as_utf8_length(req->claim_id);
    if (id < 1 || id > 64)
        return as_fail_at(err, AS_E_INVAL, "/claim_id", "%zu characters, expected 1 to 64", id);
    if (req->max_trials < 1 || req->max_trials > 64)
        return as_fail_at(err, AS_E_INVAL, "/max_trials", "found %lld, expected 1 to 64",
                          (long long)req->max_trials);
    if (req->gpus < 0)
        return as_fail_at(err, AS_E_INVAL, "/gpus", "found %lld, expected 0 or more",
                          (long long)req->gpus);
    return AS_OK;
}

/* A round: each sweep gives its share. A search that fails keeps no other sweep from giving; *why
 * is what the first of them said. */
static as_status take_round(struct claim_arg *arg, int64_t *taken, struct as_err *why,
                            struct as_err *err)
{
    as_status st = AS_OK;
    for (size_t i = 0; i < arg->n_sweeps && arg->want > 0 && st == AS_OK; i++) {
        int64_t left = (int64_t)(arg->n_sweeps - i), got = 0;
        struct as_err e = {0};
        arg->key = arg->sweeps[i];
        arg->share = (arg->want + left - 1) / left;
        st = take_from(arg, &got, &e);
        *taken += got;
        if (st != AS_OK && arg->handout.search_failed) {
            *why = why->code == AS_OK ? e : *why;
            st = AS_OK;
        } else if (st != AS_OK) {
            as_err_set(err, st, e.pointer, "%s", e.msg);
        }
    }
    return st;
}

as_status claim_trials(struct store *db, struct suggester *sg, struct arena *a,
                       const struct claim_request *req, struct claim_list *ret, struct as_err *err)
{
    struct claim_arg arg = {
        .db = db,
        .sg = sg,
        .a = a,
        .req = req,
        .arrived_ns = req->arrived_ns ? req->arrived_ns : clock_mono_ns(),
        .holder = {.runner = req->runner, .epoch = req->epoch, .claim_id = req->claim_id}};
    struct as_err why = {0};
    as_status st = check(req, err);
    if (st == AS_OK)
        st = store_run(db, TX_READ, tx_look, &arg, err);
    if (st != AS_OK)
        return st;
    int64_t taken = 0, before = -1;
    bool is_fresh = arg.list.n == 0;
    /* who has more to give is asked again */
    while (is_fresh && arg.want > 0 && arg.n_sweeps > 0 && taken > before && st == AS_OK) {
        before = taken;
        st = take_round(&arg, &taken, &why, err);
    }
    bool is_preparing = arg.list.is_preparing;
    if (st == AS_OK && taken > 0)
        st = store_run(db, TX_READ, tx_tell, &arg, err);
    else if (st == AS_OK && why.code != AS_OK && !is_preparing)
        st = as_fail_at(err, why.code, why.pointer, "%s", why.msg);
    if (st != AS_OK)
        return st;
    *ret = arg.list;
    ret->is_preparing = is_preparing && ret->n == 0;
    return AS_OK;
}

struct pending_arg {
    struct arena *a;
    struct sweep_room *rooms;
    size_t n;
};

static as_status tx_pending(struct tx *t, void *p, struct as_err *err)
{
    struct pending_arg *arg = p;
    return store_sweep_pending(t, arg->a, &arg->rooms, &arg->n, err);
}

as_status claims_pending(struct store *db, struct suggester *sg, int64_t *ret, struct as_err *err)
{
    AS_AUTO(arena_done) struct arena a = {0};
    struct pending_arg arg = {.a = &a};
    as_status st = store_run(db, TX_READ, tx_pending, &arg, err);
    if (st != AS_OK)
        return st;
    int64_t sum = 0;
    for (size_t i = 0; i < arg.n; i++) {
        const struct sweep_room *r = &arg.rooms[i];
        sum += sg && r->learns ? suggester_room(sg, r->key, r->queued, r->room) : r->room;
    }
    *ret = sum;
    return AS_OK;
}
