/* Claims.
 *
 * Three steps: look (no locks), take (a transaction per sweep), tell. What was taken is found again
 * by its claim_id, so a repeat and a fresh claim are told the same way. */
#include "scheduler/assign/claims.h"

#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/template.h"
#include "base/str.h"
#include "base/utf8.h"
#include "scheduler/assign/assignment_priv.h"
#include "scheduler/store/attempt_store.h"
#include "scheduler/store/dataset_store.h"
#include "scheduler/store/file_store.h"
#include "scheduler/store/assignment_store.h"
#include "scheduler/store/runner_store.h"
#include "scheduler/store/sweep_store.h"
#include "scheduler/store/trial_store.h"

#define TRIALS_MAX 1024 /* of one claim */

struct claim_arg {
    struct store *db;
    struct suggester *sg;
    struct arena *a;
    const struct claim_request *req;
    int64_t arrived_ns;
    struct owner owner;
    int64_t want, gpus; /* slots (of a fit: members), GPUs still to be had */
    int64_t *sweeps;    /* that have something, in the order of asking */
    size_t n_sweeps;
    struct claim_list list;

    /* of the sweep being asked */
    int64_t key, share;
    int64_t gpus_each;
    int64_t fit_key; /* claim_list.sweep_key */
    bool awaits_ends;
    struct assignment assignment;
};

static as_status stale_epoch(const struct claim_request *req, struct as_err *err)
{
    return as_fail(err, AS_E_STALE, "epoch %lld of runner '%.63s' is not current: register again",
                   (long long)req->epoch, req->runner);
}

/* Telling: a claimed trial with all that its runner needs. What the trials of a sweep have in
 * common is read once. */

struct teller {
    struct tx *t;
    struct arena *a;
    const struct claim_request *req;
    int64_t sweep_key;           /* of the sweep that the rows are at */
    json_t *doc;                 /* owned: its document */
    const char *trial;           /* its section */
    struct dataset_row *dataset; /* the last that was read */
};

static void teller_done(struct teller *x)
{
    json_decref(x->doc);
}

/* The data set that this trial's parameters name; none for a command. */
static as_status fill_dataset(struct teller *x, const json_t *params, struct claimed_row *ret,
                              struct as_err *err)
{
    json_t *train = json_object_get(json_object_get(x->doc, "trial"), "train");
    const char *text = json_string_value(json_object_get(train, "dataset"));
    if (!text)
        return AS_OK;
    AS_AUTO(as_freep) char *name = NULL;
    as_status st = template_apply_text(text, params, &name, err);
    if (st != AS_OK)
        return st;
    if (!x->dataset || !as_streq(x->dataset->name, name)) {
        struct dataset_row *row = arena_alloc(x->a, 1, sizeof *row);
        if (!row)
            return as_fail(err, AS_E_NOMEM, "out of memory");
        st = store_dataset_get(x->t, x->a, name, false, row, err);
        if (st != AS_OK) /* the runner says so where people look: in the log */
            return st == AS_E_NOT_FOUND ? AS_OK : st;
        st = store_dataset_expected(x->t, x->a, x->sweep_key, row, err);
        if (st != AS_OK)
            return st;
        x->dataset = row;
    }
    ret->dataset = x->dataset;
    return AS_OK;
}

static as_status next_sweep(struct teller *x, const struct attempt_claimed *c, struct as_err *err)
{
    const char *document = c->document;
    json_decref(x->doc);
    x->doc = NULL;
    x->dataset = NULL;
    x->sweep_key = c->sweep_key;
    as_status st = json_parse(document, strlen(document), &x->doc, err);
    if (st != AS_OK)
        return st;
    AS_AUTO(as_freep) char *trial = json_format(json_object_get(x->doc, "trial"));
    x->trial = arena_strdup(x->a, trial);
    return x->trial ? AS_OK : as_fail(err, AS_E_NOMEM, "out of memory");
}

static as_status fill_claimed(struct teller *x, const struct attempt_claimed *c,
                              struct claimed_row *ret, struct as_err *err)
{
    JSON_AUTO params = NULL;
    as_status st = c->document ? next_sweep(x, c, err) : AS_OK;
    if (st == AS_OK)
        st = json_parse(c->row.params, strlen(c->row.params), &params, err);
    if (st != AS_OK)
        return st;
    *ret = c->row;
    ret->trial = x->trial;
    const struct group_rule rule = {c->max_group, c->group_given};
    if (ret->group)
        ret->max_members = group_places(&x->req->groups, rule, ret->shape, ret->bytes_per_member);
    st = inactive_names(x->a, x->doc, params, &ret->inactive, &ret->n_inactive, err);
    if (st == AS_OK)
        st = fill_dataset(x, params, ret, err);
    if (st == AS_OK && ret->attempt > 1) /* before the first nothing is kept */
        st = store_file_list(x->t, x->a, c->sweep_key, ret->number, "checkpoint", &ret->files, err);
    return st;
}

static as_status tx_tell(struct tx *t, void *p, struct as_err *err)
{
    struct claim_arg *arg = p;
    const struct claim_request *req = arg->req;
    AS_AUTO(teller_done) struct teller x = {.t = t, .a = arg->a, .req = req};
    struct attempt_claimed *claimed = NULL;
    size_t n = 0;
    as_status st =
        store_attempt_claimed(t, arg->a, req->runner, req->epoch, req->claim_id, &claimed, &n, err);
    if (st != AS_OK)
        return st;
    struct claimed_row *rows = arena_alloc(arg->a, n + 1, sizeof *rows);
    if (!rows)
        return as_fail(err, AS_E_NOMEM, "out of memory");
    for (size_t i = 0; i < n && st == AS_OK; i++)
        st = fill_claimed(&x, &claimed[i], &rows[i], err);
    arg->list = (struct claim_list){.rows = rows, .n = n};
    return st;
}

/* A group is filled from its own sweep alone. */
static as_status look_at_group(struct tx *t, struct claim_arg *arg, struct as_err *err)
{
    struct group_head group;
    as_status st = store_assignment_group(t, arg->a, arg->req->groups.fit.group, arg->req->runner,
                                          &group, err);
    arg->sweeps = arena_alloc(arg->a, 1, sizeof *arg->sweeps);
    if (st == AS_OK && !arg->sweeps)
        return as_fail(err, AS_E_NOMEM, "out of memory");
    if (st == AS_OK && group.sweep_key) {
        arg->sweeps[0] = group.sweep_key;
        arg->n_sweeps = 1;
        arg->want = arg->req->groups.fit.members;
    }
    return st;
}

/* Looking: may this runner claim, did this claim get anything before, who has work? */
static as_status tx_look(struct tx *t, void *p, struct as_err *err)
{
    struct claim_arg *arg = p;
    const struct claim_request *req = arg->req;
    struct runner_head runner;
    struct runner_ending ending;
    as_status st = store_runner_claims(t, arg->a, req->runner, req->ending, req->n_ending, 0,
                                       &runner, &ending, err);
    if (st != AS_OK)
        return st;
    if (runner.epoch != req->epoch || !as_streq(runner.state, "live"))
        return stale_epoch(req, err);
    st = tx_tell(t, arg, err);
    if (st != AS_OK || arg->list.n > 0)
        return st;
    if (req->groups.fit.group)
        return look_at_group(t, arg, err);
    int64_t room = runner.slots - runner.used;
    arg->want = room < req->max_trials ? room : req->max_trials;
    arg->gpus = req->gpus;
    return store_sweep_claimable(t, arg->a, arg->gpus, ending.sweeps, &arg->sweeps, &arg->n_sweeps,
                                 err);
}

/* Taking. */

static int64_t min_i64(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* What this sweep may give to this runner now. Its rows are held. */
struct allowance {
    int64_t slots; /* new ones */
    int64_t room;  /* trials */
    bool awaits_ends;
};

static as_status allow(struct tx *t, const struct claim_arg *arg, const struct sweep_head *s,
                       struct allowance *ret, struct runner_head *ret_runner, struct as_err *err)
{
    const struct claim_request *req = arg->req;
    int64_t trials = 0, slots = 0;
    struct runner_ending ending;
    as_status st = store_runner_claims(t, arg->a, req->runner, req->ending, req->n_ending, s->key,
                                       ret_runner, &ending, err);
    if (st == AS_OK)
        st = store_attempt_claim_count(t, req->runner, req->epoch, req->claim_id, &trials, &slots,
                                       err);
    if (st != AS_OK)
        return st;
    int64_t n = min_i64(arg->share, ret_runner->slots - ret_runner->used);
    n = min_i64(n, req->max_trials - slots); /* the same claim may be under way twice */
    if (s->gpus > 0)
        n = min_i64(n, arg->gpus / s->gpus);
    int64_t room = min_i64(TRIALS_MAX - trials, RUNNER_HELD_MAX - ret_runner->running);
    if (req->groups.fit.group)
        room = min_i64(room, req->groups.fit.members - trials);
    if (s->max_concurrent > 0)
        room = min_i64(room, s->max_concurrent - s->counts.by_state[TRIAL_RUNNING]);
    bool awaits_ends = s->learns && ending.here > 0;
    bool gives = s->state == SWEEP_RUNNING && !awaits_ends;
    *ret = (struct allowance){
        .slots = gives ? n : 0, .room = gives ? room : 0, .awaits_ends = awaits_ends};
    return AS_OK;
}

/* The group to be filled, as it is now: with no free place when it is to end. */
static as_status open_group_of(struct tx *t, struct claim_arg *arg, const struct sweep_head *s,
                               const struct runner_head *runner, struct open_group *ret,
                               struct as_err *err)
{
    const struct claim_request *req = arg->req;
    struct group_head group;
    bool waits = false, is_full = runner->used >= runner->slots;
    as_status st =
        store_assignment_group(t, arg->a, req->groups.fit.group, req->runner, &group, err);
    if (st == AS_OK && is_full)
        st = store_sweep_ahead(t, s->key, s->counts.by_state[TRIAL_RUNNING] - group.running,
                               req->gpus + s->gpus, &waits, err);
    if (st != AS_OK)
        return st;
    bool is_mine = group.sweep_key == s->key && group.shape;
    bool ends = !is_mine || waits || (group.running == 0 && is_full);
    const struct group_rule rule = {s->max_group, s->group_given};
    int64_t places =
        is_mine ? group_places(&req->groups, rule, group.shape, group.bytes_per_member) : 1;
    int64_t free_places = min_i64(places - group.running, req->groups.fit.members);
    *ret = (struct open_group){.id = req->groups.fit.group,
                               .shape = is_mine ? group.shape : "",
                               .places = min_i64(places, group.running + req->groups.fit.members),
                               .free = ends || free_places < 0 ? 0 : free_places};
    return AS_OK;
}

static as_status tx_take(struct tx *t, void *p, struct as_err *err)
{
    struct claim_arg *arg = p;
    const struct claim_request *req = arg->req;
    bool live = false;
    struct sweep_head s;
    struct allowance allowed = {0};
    struct runner_head runner;
    struct assignment *asg = &arg->assignment;
    asg->got = asg->slots = asg->n_taken = 0;
    asg->lacking = 0;
    arg->awaits_ends = false;
    as_status st = store_runner_extend(t, req->runner, req->epoch,
                                       store_config(tx_store(t))->lease_ms, &live, err);
    if (st == AS_OK && !live)
        return stale_epoch(req, err);
    if (st == AS_OK)
        st = store_sweep_lock(t, arg->a, arg->key, &s, err);
    if (st == AS_OK)
        st = allow(t, arg, &s, &allowed, &runner, err);
    if (st == AS_OK && req->groups.fit.group)
        st = open_group_of(t, arg, &s, &runner, &asg->fit, err);
    if (st != AS_OK)
        return st == AS_E_NOT_FOUND ? AS_OK : st; /* the sweep was deleted */
    arg->gpus_each = s.gpus;
    bool may_come = s.state == SWEEP_RUNNING || s.state == SWEEP_PAUSED;
    arg->awaits_ends = allowed.awaits_ends;
    arg->fit_key = req->groups.fit.group && may_come ? s.key : 0;
    return assignment_take(t, asg, &s, allowed.slots, allowed.room, err);
}

static assign_policy policy_of(const struct claim_arg *arg)
{
    const struct claim_request *req = arg->req;
    bool has_waited = arg->list.is_preparing;
    if (req->groups.members > 1 && !req->groups.fit.group && !req->is_last)
        return has_waited ? ASSIGN_WHOLE_GROUP_READY : ASSIGN_WHOLE_GROUP;
    return has_waited ? ASSIGN_READY : ASSIGN_BRIEF_WAIT;
}

/* Ask one sweep for `share` trials. */
static as_status take_from(struct claim_arg *arg, int64_t *ret_got, struct as_err *err)
{
    struct assignment *asg = &arg->assignment;
    *asg = (struct assignment){.db = arg->db,
                               .a = arg->a,
                               .sg = arg->sg,
                               .owner = &arg->owner,
                               .policy = policy_of(arg),
                               .groups = arg->req->groups.members > 1 || arg->req->groups.fit.group
                                             ? &arg->req->groups
                                             : NULL,
                               .arrived_ns = arg->arrived_ns};
    *ret_got = 0;
    as_status st = assignment_open(asg, arg->key, err);
    bool again = st == AS_OK && asg->is_there;
    for (int i = 0; i < ASSIGNMENT_LOOKS && again && st == AS_OK; i++) {
        st = store_run(arg->db, TX_WRITE, tx_take, arg, err);
        if (st != AS_OK)
            break;
        again = assignment_done(asg);
        *ret_got += asg->got;
        arg->share -= asg->slots;
        arg->want -= arg->req->groups.fit.group ? asg->got : asg->slots;
        arg->gpus -= asg->slots * arg->gpus_each;
        arg->list.is_preparing |= asg->lacking > 0;
        arg->list.awaits_ends |= arg->awaits_ends;
        atomic_fetch_add(&store_counters(arg->db)->trials_claimed, asg->got);
    }
    assignment_close(asg);
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
    if (req->groups.members < 0 || req->groups.members > SWEEP_MAX_GROUP)
        return as_fail_at(err, AS_E_INVAL, "/members", "found %lld, expected 1 to %d",
                          (long long)req->groups.members, SWEEP_MAX_GROUP);
    if (req->n_ending > RUNNER_HELD_MAX)
        return as_fail_at(err, AS_E_TOO_LARGE, "/ending", "%zu attempts, at most %d", req->n_ending,
                          RUNNER_HELD_MAX);
    if (req->groups.fit.group &&
        (req->groups.fit.members < 1 || req->groups.fit.members > SWEEP_MAX_GROUP))
        return as_fail_at(err, AS_E_INVAL, "/fit/members", "found %lld, expected 1 to %d",
                          (long long)req->groups.fit.members, SWEEP_MAX_GROUP);
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
        if (st != AS_OK && arg->assignment.search_failed) {
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
        .owner = {.runner = req->runner, .epoch = req->epoch, .claim_id = req->claim_id}};
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
    bool is_preparing = arg.list.is_preparing, awaits_ends = arg.list.awaits_ends;
    if (st == AS_OK && taken > 0)
        st = store_run(db, TX_READ, tx_tell, &arg, err);
    else if (st == AS_OK && why.code != AS_OK && !is_preparing)
        st = as_fail_at(err, why.code, why.pointer, "%s", why.msg);
    if (st != AS_OK)
        return st;
    *ret = arg.list;
    ret->is_preparing = is_preparing && ret->n == 0;
    ret->awaits_ends = awaits_ends;
    ret->sweep_key = arg.fit_key;
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
