/* Claims.
 *
 * Three steps: look (no locks), take (a transaction per sweep), tell. What was taken is found again
 * by its claim_id, so a repeat and a fresh claim are told the same way. */
#include "scheduler/claims.h"

#include <string.h>

#include "base/json.h"
#include "base/rng.h"
#include "base/spec/template.h"
#include "base/str.h"
#include "base/utf8.h"
#include "scheduler/model/sweep_doc.h"
#include "scheduler/store/attempt_store.h"
#include "scheduler/store/dataset_store.h"
#include "scheduler/store/event_store.h"
#include "scheduler/store/file_store.h"
#include "scheduler/store/runner_store.h"
#include "scheduler/store/sweep_store.h"
#include "scheduler/store/trial_store.h"
#include "scheduler/transition_priv.h"

struct claim_arg {
    struct arena *a;
    const struct claim_request *req;
    int64_t want, gpus; /* still to be had */
    int64_t *sweeps;    /* that have something, in the order of asking */
    size_t n_sweeps;
    struct claim_list list;

    /* of the sweep being asked */
    int64_t key, share, got;
    int64_t gpus_each;
    const char *document;
    const struct sweep_doc *doc;
};

static as_status stale_epoch(const struct claim_request *req, struct as_err *err)
{
    return as_fail(err, AS_E_STALE, "epoch %lld of runner '%.63s' is not current: register again",
                   (long long)req->epoch, req->runner);
}

/* Telling: a claimed trial with all that its runner needs. */

/* Names of the document's parameters that the trial does not have. */
static as_status fill_inactive(struct arena *a, const json_t *doc, const json_t *params,
                               struct claimed_row *ret, struct as_err *err)
{
    json_t *all = json_object_get(doc, "parameters");
    const char **names = arena_alloc(a, json_object_size(all) + 1, sizeof *names);
    const char *name;
    json_t *v;
    if (!names)
        return as_fail(err, AS_E_NOMEM, "out of memory");
    json_object_foreach(all, name, v)
    {
        if (json_object_get(params, name))
            continue;
        names[ret->n_inactive] = arena_strdup(a, name);
        if (!names[ret->n_inactive++])
            return as_fail(err, AS_E_NOMEM, "out of memory");
    }
    ret->inactive = names;
    return AS_OK;
}

/* The data set that this trial's parameters name; none for a command. */
static as_status fill_dataset(struct tx *t, struct arena *a, const json_t *doc,
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
    st = fill_inactive(a, doc, params, ret, err);
    if (st == AS_OK)
        st = fill_dataset(t, a, doc, params, ret, err);
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
    arg->list = (struct claim_list){rows, n};
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

static as_status note_taken(struct tx *t, const struct claim_arg *arg, const struct sweep_head *s,
                            int64_t number, int64_t attempt, struct as_err *err)
{
    struct attempt_new n = {.sweep_key = s->key,
                            .number = number,
                            .attempt = attempt,
                            .runner = arg->req->runner,
                            .epoch = arg->req->epoch,
                            .claim_id = arg->req->claim_id};
    as_status st = store_attempt_add(t, &n, err);
    struct event_new e = {.type = "trial.changed",
                          .sweep_key = s->key,
                          .sweep = s->id,
                          .has_number = true,
                          .number = number,
                          .state = "running",
                          .attempt = attempt,
                          .runner = arg->req->runner};
    return st == AS_OK ? store_event_add(t, &e, err) : st;
}

/* The trial's own seed has 31 bits, because that is what every library's generator takes. */
static int64_t trial_seed(uint64_t sweep_seed, int64_t number)
{
    return (int64_t)(rng_mix(sweep_seed, (uint64_t)number) & 0x7fffffff);
}

/* Suggest and insert the trial of that number. AS_E_EXHAUSTED: the grid has no more. */
static as_status make_trial(struct tx *t, const struct claim_arg *arg, const struct sweep_head *s,
                            int64_t number, struct as_err *err)
{
    const struct sweep_doc *doc = arg->doc;
    AS_AUTO(config_freep) struct config *config = NULL;
    JSON_AUTO reason = NULL;
    as_status st = sampler_suggest(doc->space, doc->method, doc->seed, (uint64_t)number, NULL,
                                   &config, &reason, err);
    if (st != AS_OK)
        return st;
    JSON_AUTO params = config_to_json(doc->space, config);
    AS_AUTO(as_freep)
    char *params_text = params ? json_format_ordered(params) : NULL; /* as the document has them */
    AS_AUTO(as_freep) char *reason_text = json_format(reason);
    if (!params_text || !reason_text)
        return as_fail(err, AS_E_NOMEM, "out of memory");
    struct trial_new n = {.sweep_key = s->key,
                          .number = number,
                          .seed = trial_seed(doc->seed, number),
                          .params = params_text,
                          .suggestion = reason_text,
                          .runner = arg->req->runner,
                          .epoch = arg->req->epoch};
    return store_trial_add(t, &n, err);
}

/* One trial of a sweep whose row is held: of the queue, or the next suggestion. AS_E_EXHAUSTED when
 * there is neither. */
static as_status take_one(struct tx *t, const struct claim_arg *arg, const struct sweep_head *s,
                          int64_t *total, struct as_err *err)
{
    int64_t number = 0, attempt = 0;
    as_status st =
        store_trial_take(t, s->key, arg->req->runner, arg->req->epoch, &number, &attempt, err);
    if (st != AS_OK)
        return st;
    if (attempt == 0) {
        if (*total >= s->planned)
            return AS_E_EXHAUSTED;
        number = *total;
        attempt = 1;
        st = make_trial(t, arg, s, number, err);
        if (st == AS_E_EXHAUSTED) {
            as_status noted = store_sweep_exhausted(t, s->key, err);
            return noted == AS_OK ? AS_E_EXHAUSTED : noted;
        }
        if (st != AS_OK)
            return st;
        ++*total;
    }
    return note_taken(t, arg, s, number, attempt, err);
}

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
    arg->got = 0;
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
    int64_t total = s.counts.total;
    arg->gpus_each = s.gpus;
    while (arg->got < n && (st = take_one(t, arg, &s, &total, err)) == AS_OK)
        arg->got++;
    if (st == AS_E_EXHAUSTED)
        st = sweep_settle(t, arg->a, s.key, NULL, err);
    if (st == AS_OK && arg->got > 0)
        st = store_sweep_started(t, s.key, err);
    return st;
}

static as_status tx_document(struct tx *t, void *p, struct as_err *err)
{
    struct claim_arg *arg = p;
    as_status st = store_sweep_document(t, arg->a, arg->key, &arg->document, err);
    if (st == AS_E_NOT_FOUND) {
        arg->document = NULL;
        st = AS_OK;
    }
    return st;
}

/* Ask one sweep for `share` trials. The document is read and parsed before its row is held: what
 * the search takes from it never changes. */
static as_status take_from(struct store *db, struct claim_arg *arg, struct as_err *err)
{
    AS_AUTO(sweep_doc_freep) struct sweep_doc *doc = NULL;
    JSON_AUTO tree = NULL;
    arg->got = 0;
    as_status st = store_run(db, TX_READ, tx_document, arg, err);
    if (st != AS_OK || !arg->document)
        return st;
    st = json_parse(arg->document, strlen(arg->document), &tree, err);
    if (st == AS_OK)
        st = sweep_doc_parse(tree, 0, &doc, err);
    if (st != AS_OK)
        return as_err_prefix(err, st == AS_E_NOMEM ? st : AS_E_INTERNAL,
                             "the stored document cannot be read");
    arg->doc = doc;
    st = store_run(db, TX_WRITE, tx_take, arg, err);
    arg->doc = NULL;
    if (st == AS_OK) {
        arg->want -= arg->got;
        arg->gpus -= arg->got * arg->gpus_each;
        atomic_fetch_add(&store_counters(db)->trials_claimed, arg->got);
    }
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

as_status claim_trials(struct store *db, struct arena *a, const struct claim_request *req,
                       struct claim_list *ret, struct as_err *err)
{
    struct claim_arg arg = {.a = a, .req = req};
    as_status st = check(req, err);
    if (st == AS_OK)
        st = store_run(db, TX_READ, tx_look, &arg, err);
    if (st != AS_OK)
        return st;
    int64_t taken = 0, before = -1;
    /* Rounds: each sweep gives its share; who has more to give is asked again. */
    while (arg.list.n == 0 && arg.want > 0 && arg.n_sweeps > 0 && taken > before && st == AS_OK) {
        before = taken;
        for (size_t i = 0; i < arg.n_sweeps && arg.want > 0 && st == AS_OK; i++) {
            int64_t left = (int64_t)(arg.n_sweeps - i);
            arg.key = arg.sweeps[i];
            arg.share = (arg.want + left - 1) / left;
            st = take_from(db, &arg, err);
            taken += arg.got;
        }
    }
    if (st == AS_OK && taken > 0)
        st = store_run(db, TX_READ, tx_tell, &arg, err);
    if (st == AS_OK)
        *ret = arg.list;
    return st;
}

static as_status tx_pending(struct tx *t, void *p, struct as_err *err)
{
    return store_sweep_pending(t, p, err);
}

as_status claims_pending(struct store *db, int64_t *ret, struct as_err *err)
{
    return store_run(db, TX_READ, tx_pending, ret, err);
}
