/* One sweep gives trials to one claim: what it may give to this runner now, and the transaction
 * that takes it. The rows of both are locked, so every quantity here is exact until the commit.
 *
 *   slots   new slots on the runner: the least of the sweep's share of this claim, the runner's
 *           free slots (with those whose process has ended), what the claim asked for and has not
 *           got yet, and how many of its trials fit the free cores, memory and GPUs
 *   room    trials: a group has several in a slot. The least of what one claim and one runner may
 *           hold, the free places of the group that is filled, and max_concurrent_trials
 *   share   what the claim wants of this sweep, by the order of sweeps (decision 5012)
 *   places  members that the group may have; free = places - running, 0 if the group must end
 *
 * Several looks follow one another while suggestions arrive (ASSIGNMENT_LOOKS), each a transaction
 * of its own: what a look took is taken, whatever the next one finds. */
#include "base/number.h"
#include "scheduler/assign/claims_priv.h"
#include "scheduler/store/attempt_store.h"
#include "scheduler/store/assignment_store.h"
#include "scheduler/store/runner_store.h"
#include "scheduler/store/seat_store.h"
#include "scheduler/store/sweep_head_store.h"
#include "scheduler/store/turn_store.h"

#define TRIALS_MAX 1024 /* of one claim */

struct runner_id claiming_runner(const struct claim_request *req)
{
    return (struct runner_id){req->runner, req->epoch, req->secret};
}

as_status claiming_stale_epoch(const struct claim_request *req, struct as_err *err)
{
    return as_fail(err, AS_E_STALE, "epoch %lld of runner '%.63s' is not current: register again",
                   (long long)req->epoch, req->runner);
}

/* What this sweep may give to this runner now. The rows of both are locked. */
struct allowance {
    int64_t slots;    /* new slots; may be negative, when more is held than the runner now has */
    int64_t room;     /* trials, in these slots or in the group that is filled */
    bool awaits_ends; /* nothing is given until the results of ended attempts have arrived */
};

/* How many trials of the sweep fit in what is free on the runner, at most n. */
static int64_t bound_by_needs(const struct sweep_head *s, const struct runner_head *r, int64_t gpus,
                              int64_t n)
{
    if (s->gpus > 0)
        n = as_min_i64(n, gpus / s->gpus);
    if (s->cpus > 0)
        n = as_min_i64(n, (r->cpus - r->cpus_used) / s->cpus);
    if (s->memory_bytes > 0)
        n = as_min_i64(n, (r->memory_bytes - r->memory_used) / s->memory_bytes);
    return r->is_shut ? 0 : n;
}

/* A trial that needs its machine to itself begins where nothing else runs. The rows of all runners
 * of the machine are locked. */
static as_status bound_by_machine(struct tx *t, struct claiming *c, const struct sweep_head *s,
                                  int64_t *n, struct as_err *err)
{
    bool is_idle = false;
    if (!s->exclusive || c->req->groups.fit.group)
        return AS_OK;
    as_status st =
        store_turn_is_idle(t, c->req->runner, c->req->ending, c->req->n_ending, &is_idle, err);
    c->lacks_room = !is_idle;
    *n = is_idle ? as_min_i64(*n, 1) : 0;
    return st;
}

static as_status compute_allowance(struct tx *t, struct claiming *c, const struct sweep_head *s,
                                   struct allowance *ret, struct runner_head *ret_runner,
                                   struct as_err *err)
{
    const struct claim_request *req = c->req;
    int64_t trials = 0, slots = 0;
    struct runner_ending ending;
    as_status st = store_runner_claims(t, c->a, req->runner, req->ending, req->n_ending, s->key,
                                       ret_runner, &ending, err);
    if (st != AS_OK)
        return st;
    st = store_attempt_claim_count(t, req->runner, req->epoch, req->claim_id, &trials, &slots, err);
    if (st != AS_OK)
        return st;
    int64_t ended = 0;
    st = store_seat_holds(t, req->runner, req->ending_seats, req->n_ending_seats, &ended, err);
    if (st != AS_OK)
        return st;
    int64_t n = as_min_i64(c->share, ret_runner->slots - ret_runner->used + ended);
    n = as_min_i64(n, req->max_trials - slots); /* the same claim may be running twice */
    n = bound_by_needs(s, ret_runner, c->gpus, n);
    if ((st = bound_by_machine(t, c, s, &n, err)) != AS_OK)
        return st;
    int64_t room = as_min_i64(TRIALS_MAX - trials, RUNNER_HELD_MAX - ret_runner->running);
    if (req->groups.fit.group)
        room = as_min_i64(room, req->groups.fit.members - trials);
    if (s->max_concurrent > 0)
        room = as_min_i64(room, s->max_concurrent - s->counts.by_state[TRIAL_RUNNING]);
    /* A sweep that learns waits for the results of this runner's ended attempts: a suggestion
     * that knows them is worth more than the short time that the slot is idle. */
    bool awaits_ends = s->learns && ending.here > 0;
    bool gives = s->state == SWEEP_RUNNING && !awaits_ends;
    *ret = (struct allowance){
        .slots = gives ? n : 0, .room = gives ? room : 0, .awaits_ends = awaits_ends};
    return AS_OK;
}

/* The group to be filled, as it is now. It has no free place if it must end. */
static as_status open_group_of(struct tx *t, const struct claiming *c, const struct sweep_head *s,
                               const struct runner_head *runner, struct open_group *ret,
                               struct as_err *err)
{
    const struct claim_request *req = c->req;
    const struct group_fit *fit = &req->groups.fit;
    struct group_head group;
    bool waits = false, is_full = runner->used >= runner->slots;
    as_status st = store_assignment_group(t, c->a, fit->group, req->runner, &group, err);
    if (st != AS_OK)
        return st;
    /* Without a free slot the group may only go on if its sweep would get the slot again. So
     * compare the sweeps as if the group had ended: without its running members, and with its
     * GPUs free. */
    if (is_full) {
        int64_t others = s->counts.by_state[TRIAL_RUNNING] - group.running;
        st = store_turn_ahead(t, s, others, req->gpus + s->gpus, req->runner, &waits, err);
        if (st != AS_OK)
            return st;
    }
    bool is_mine = group.sweep_key == s->key && group.shape;
    bool ends = !is_mine || waits || (group.running == 0 && is_full);
    const struct group_rule rule = {s->max_group, s->group_given, s->gpus > 0};
    int64_t places =
        is_mine ? group_places(&req->groups, rule, group.shape, group.bytes_per_member) : 1;
    int64_t free_places = as_min_i64(places - group.running, fit->members);
    *ret = (struct open_group){.id = fit->group,
                               .shape = is_mine ? group.shape : "",
                               .places = as_min_i64(places, group.running + fit->members),
                               .free = ends || free_places < 0 ? 0 : free_places};
    return AS_OK;
}

/* Extend the runner's lease, lock the sweep's row, and compute what it may give. AS_E_NOT_FOUND:
 * the sweep was deleted. */
static as_status lock_and_allow(struct tx *t, struct claiming *c, struct sweep_head *ret,
                                struct allowance *ret_allowed, struct as_err *err)
{
    const struct claim_request *req = c->req;
    int64_t lease_ms = store_config(tx_store(t))->lease_ms;
    struct runner_head runner;
    bool live = false;
    const struct runner_id id = claiming_runner(req);
    as_status st = AS_OK;
    if (c->turn->has_needs) /* runners of its machine may share what they have */
        st = store_turn_lock_machine(t, req->runner, err);
    if (st == AS_OK)
        st = store_runner_extend(t, &id, lease_ms, &live, err);
    if (st != AS_OK)
        return st;
    if (!live)
        return claiming_stale_epoch(req, err);
    st = store_sweep_lock(t, c->a, c->key, ret, err);
    if (st != AS_OK)
        return st;
    st = compute_allowance(t, c, ret, ret_allowed, &runner, err);
    if (st != AS_OK || !req->groups.fit.group)
        return st;
    return open_group_of(t, c, ret, &runner, &c->assignment.fit, err);
}

/* One look at the sweep. */
static as_status take_from_locked(struct tx *t, struct claiming *c, struct as_err *err)
{
    struct sweep_head s;
    struct allowance allowed = {0};
    struct assignment *asg = &c->assignment;
    asg->got = asg->slots = asg->n_taken = 0;
    asg->lacking = 0;
    c->awaits_ends = c->lacks_room = false;
    as_status st = lock_and_allow(t, c, &s, &allowed, err);
    if (st == AS_E_NOT_FOUND)
        return AS_OK;
    if (st != AS_OK)
        return st;
    c->gpus_each = s.gpus;
    bool may_come = s.state == SWEEP_RUNNING || s.state == SWEEP_PAUSED;
    c->awaits_ends = allowed.awaits_ends;
    c->fit_key = c->req->groups.fit.group && may_come ? s.key : 0;
    st = assignment_take(t, asg, &s, allowed.slots, allowed.room, err);
    if (st != AS_OK || asg->got == 0 || !(c->turn->waits || c->turn->closes))
        return st;
    return store_turn_taken(t, c->req->runner, c->key, err);
}

static assign_policy policy_of(const struct claiming *c)
{
    const struct claim_request *req = c->req;
    bool has_waited = c->list.is_preparing;
    if (req->groups.members > 1 && !req->groups.fit.group && !req->is_last)
        return has_waited ? ASSIGN_WHOLE_GROUP_READY : ASSIGN_WHOLE_GROUP;
    return has_waited ? ASSIGN_READY : ASSIGN_BRIEF_WAIT;
}

static struct assignment begin_assignment(const struct claiming *c)
{
    const struct group_limits *groups = &c->req->groups;
    return (struct assignment){.db = c->db,
                               .a = c->a,
                               .sg = c->sg,
                               .owner = &c->owner,
                               .policy = policy_of(c),
                               .groups = groups->members > 1 || groups->fit.group ? groups : NULL,
                               .arrived_ns = c->arrived_ns};
}

/* Count what a committed look took. */
static void count_taken(struct claiming *c)
{
    const struct assignment *asg = &c->assignment;
    c->share -= asg->slots;
    c->want -= c->req->groups.fit.group ? asg->got : asg->slots;
    c->gpus -= asg->slots * c->gpus_each;
    c->turn->running += asg->got;
    c->turn->ahead_room -= asg->got;
    if (c->turn->is_exclusive && asg->slots > 0)
        c->want = 0; /* nothing else begins on its machine */
    c->list.is_preparing |= asg->lacking > 0;
    c->list.awaits_ends |= c->awaits_ends;
    atomic_fetch_add(&store_counters(c->db)->trials_claimed, asg->got);
}

as_status claiming_take(struct claiming *c, int64_t *ret_got, struct as_err *err)
{
    struct assignment *asg = &c->assignment;
    *asg = begin_assignment(c);
    *ret_got = 0;
    as_status st = assignment_open(asg, c->key, err);
    bool again = st == AS_OK && asg->is_there;
    for (int i = 0; i < ASSIGNMENT_LOOKS && again; i++) {
        struct tx_run run = tx_run_start(c->db, TX_WRITE, err);
        while (tx_run_again(&run))
            run.status = take_from_locked(run.tx, c, err);
        st = run.status;
        if (st != AS_OK)
            break;
        again = assignment_done(asg);
        *ret_got += asg->got;
        count_taken(c);
    }
    assignment_close(asg);
    return st;
}
