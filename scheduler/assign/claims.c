/* Claims.
 *
 * A claim has three steps: look (one read without locks), take (one transaction for each sweep, so
 * that a claim holds one sweep's row at a time), and read back. The read finds the trials by the
 * claim_id. So a repeated claim and a new one get their answer the same way, and a claim whose
 * answer was lost is safe to repeat.
 *
 * Sweeps share the slots of a claim as if the slots were handed out one after another, each to the sweep
 * whose turn it is (turn_store.h): a round computes how many that are for each sweep, so that a sweep's
 * row is held once. Sweeps with more work are asked again for what others did not use.
 *
 * A sweep whose trial does not fit in what is free on the runner is noted when its turn comes. After a
 * while the sweeps that come after it get nothing there, until there is room for it. */
#include "scheduler/assign/claims.h"

#include <string.h>

#include "base/clock.h"
#include "base/str.h"
#include "base/utf8.h"
#include "scheduler/assign/assignment_priv.h"
#include "scheduler/assign/claimed_priv.h"
#include "scheduler/assign/gathering.h"
#include "scheduler/assign/sharing.h"
#include "scheduler/store/attempt_store.h"
#include "scheduler/store/assignment_store.h"
#include "scheduler/store/runner_store.h"
#include "scheduler/store/seat_store.h"
#include "scheduler/store/sweep_store.h"
#include "scheduler/store/trial_store.h"
#include "scheduler/store/turn_store.h"

#define TRIALS_MAX 1024 /* of one claim */

/* A claim in progress. */
struct claiming {
    struct store *db;
    struct suggester *sg;
    struct arena *a;
    const struct claim_request *req;
    int64_t arrived_ns;
    struct owner owner;
    int64_t want, gpus;             /* slots (for a fit: members) and GPUs that are still wanted */
    struct claimable_sweep *sweeps; /* sweeps with work, in the order of asking */
    size_t n_sweeps;
    struct gathering_news news;
    struct seats_taken seats;
    struct claim_list list;

    /* the sweep that is being asked */
    struct claimable_sweep *turn;
    int64_t key, share;
    bool lacks_room; /* something else runs on the machine that it needs to itself */
    int64_t gpus_each;
    int64_t fit_key; /* claim_list.sweep_key */
    bool awaits_ends;
    struct assignment assignment;
};

static int64_t min_i64(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static struct runner_id id_of(const struct claim_request *req)
{
    return (struct runner_id){req->runner, req->epoch, req->secret};
}

static as_status stale_epoch(const struct claim_request *req, struct as_err *err)
{
    return as_fail(err, AS_E_STALE, "epoch %lld of runner '%.63s' is not current: register again",
                   (long long)req->epoch, req->runner);
}

/* The trials that this claim got and still holds. */
static as_status read_claimed(struct tx *t, struct claiming *c, struct as_err *err)
{
    const struct claim_request *req = c->req;
    const struct runner_id id = id_of(req);
    struct claimed_row *rows = NULL;
    size_t n = 0;
    as_status st = claimed_read(t, c->a, &id, req->claim_id, &req->groups, &rows, &n, err);
    if (st == AS_OK)
        c->list = (struct claim_list){.rows = rows, .n = n};
    return st;
}

/* Only the sweep of a group can fill it. */
static as_status look_at_group(struct tx *t, struct claiming *c, struct as_err *err)
{
    const struct group_fit *fit = &c->req->groups.fit;
    struct group_head group;
    as_status st = store_assignment_group(t, c->a, fit->group, c->req->runner, &group, err);
    if (st != AS_OK || group.sweep_key == 0)
        return st;
    c->sweeps = arena_alloc(c->a, 1, sizeof *c->sweeps);
    if (!c->sweeps)
        return as_fail_nomem(err);
    c->sweeps[0] = (struct claimable_sweep){.key = group.sweep_key, .fits = true};
    c->n_sweeps = 1;
    c->want = fit->members;
    return AS_OK;
}

/* Look: may this runner claim, did this claim get trials before, which sweeps have work? */
static as_status look_for_sweeps(struct tx *t, struct claiming *c, struct as_err *err)
{
    const struct claim_request *req = c->req;
    struct runner_head runner;
    struct runner_ending ending;
    int64_t ended = 0;
    c->n_sweeps = 0;
    c->want = 0;
    as_status st = store_runner_claims(t, c->a, req->runner, req->ending, req->n_ending, 0, &runner,
                                       &ending, err);
    if (st != AS_OK)
        return st;
    const struct runner_id id = id_of(req);
    st = runner_id_check(&id, &runner, err);
    if (st != AS_OK)
        return st;
    if (runner.epoch != req->epoch || !as_streq(runner.state, "live"))
        return stale_epoch(req, err);
    c->owner.secret = runner.secret;
    st = read_claimed(t, c, err);
    if (st != AS_OK || c->list.n > 0)
        return st;
    if (req->groups.fit.group)
        return look_at_group(t, c, err);
    st = store_seat_holds(t, req->runner, req->ending_seats, req->n_ending_seats, &ended, err);
    if (st == AS_OK)
        st = store_gathering_news(t, &id, &c->news, err);
    if (st != AS_OK)
        return st;
    if (runner.is_shut)
        return AS_OK;
    c->want = min_i64(runner.slots - runner.used + ended, req->max_trials);
    c->gpus = req->gpus;
    const struct claimable_query q = {.runner = req->runner,
                                      .gpus = c->gpus,
                                      .cpus = runner.cpus - runner.cpus_used,
                                      .memory_bytes = runner.memory_bytes - runner.memory_used,
                                      .ending = ending.sweeps,
                                      .takes_seats = req->seats > 0};
    st = store_turn_list(t, c->a, &q, &c->sweeps, &c->n_sweeps, err);
    for (size_t i = 0; st == AS_OK && i < c->n_sweeps; i++)
        if (c->sweeps[i].closes)
            c->n_sweeps = i + 1; /* the others come after it */
    return st;
}

/* Take. */

/* What this sweep may give to this runner now. The rows of both are locked. */
struct allowance {
    int64_t slots; /* new slots */
    int64_t room;  /* trials */
    bool awaits_ends;
};

/* How many trials of the sweep fit in what is free on the runner, at most n. */
static int64_t bound_by_needs(const struct sweep_head *s, const struct runner_head *r, int64_t gpus,
                              int64_t n)
{
    if (s->gpus > 0)
        n = min_i64(n, gpus / s->gpus);
    if (s->cpus > 0)
        n = min_i64(n, (r->cpus - r->cpus_used) / s->cpus);
    if (s->memory_bytes > 0)
        n = min_i64(n, (r->memory_bytes - r->memory_used) / s->memory_bytes);
    return r->is_shut ? 0 : n;
}

/* A trial that needs its machine to itself begins where nothing else runs. The rows of all runners of
 * the machine are locked. */
static as_status bound_by_machine(struct tx *t, struct claiming *c, const struct sweep_head *s,
                                  int64_t *n, struct as_err *err)
{
    bool is_idle = false;
    if (!s->exclusive || c->req->groups.fit.group)
        return AS_OK;
    as_status st =
        store_turn_is_idle(t, c->req->runner, c->req->ending, c->req->n_ending, &is_idle, err);
    c->lacks_room = !is_idle;
    *n = is_idle ? min_i64(*n, 1) : 0;
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
    int64_t n = min_i64(c->share, ret_runner->slots - ret_runner->used + ended);
    n = min_i64(n, req->max_trials - slots); /* the same claim may be running twice */
    n = bound_by_needs(s, ret_runner, c->gpus, n);
    if ((st = bound_by_machine(t, c, s, &n, err)) != AS_OK)
        return st;
    int64_t room = min_i64(TRIALS_MAX - trials, RUNNER_HELD_MAX - ret_runner->running);
    if (req->groups.fit.group)
        room = min_i64(room, req->groups.fit.members - trials);
    if (s->max_concurrent > 0)
        room = min_i64(room, s->max_concurrent - s->counts.by_state[TRIAL_RUNNING]);
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
    int64_t free_places = min_i64(places - group.running, fit->members);
    *ret = (struct open_group){.id = fit->group,
                               .shape = is_mine ? group.shape : "",
                               .places = min_i64(places, group.running + fit->members),
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
    const struct runner_id id = id_of(req);
    as_status st = AS_OK;
    if (c->turn->has_needs) /* runners of its machine may share what they have */
        st = store_turn_lock_machine(t, req->runner, err);
    if (st == AS_OK)
        st = store_runner_extend(t, &id, lease_ms, &live, err);
    if (st != AS_OK)
        return st;
    if (!live)
        return stale_epoch(req, err);
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
    struct allowance allowed;
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
    if (c->turn->is_exclusive && asg->slots > 0)
        c->want = 0; /* nothing else begins on its machine */
    c->list.is_preparing |= asg->lacking > 0;
    c->list.awaits_ends |= c->awaits_ends;
    atomic_fetch_add(&store_counters(c->db)->trials_claimed, asg->got);
}

/* Ask one sweep for `share` trials. */
static as_status take_from(struct claiming *c, int64_t *ret_got, struct as_err *err)
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

static as_status check_request(const struct claim_request *req, struct as_err *err)
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
    if (req->seats < 0 || req->seats > req->max_trials)
        return as_fail_at(err, AS_E_INVAL, "/seats", "found %lld, expected 0 to max_trials, %lld",
                          (long long)req->seats, (long long)req->max_trials);
    if (req->n_ending > RUNNER_HELD_MAX)
        return as_fail_at(err, AS_E_TOO_LARGE, "/ending", "%zu attempts, at most %d", req->n_ending,
                          RUNNER_HELD_MAX);
    if (req->groups.fit.group &&
        (req->groups.fit.members < 1 || req->groups.fit.members > SWEEP_MAX_GROUP))
        return as_fail_at(err, AS_E_INVAL, "/fit/members", "found %lld, expected 1 to %d",
                          (long long)req->groups.fit.members, SWEEP_MAX_GROUP);
    return AS_OK;
}

/* Ranks of gangs. */

static struct seat_request seats_of(const struct claiming *c)
{
    const struct claim_request *req = c->req;
    return (struct seat_request){.runner = id_of(req),
                                 .claim_id = req->claim_id,
                                 .max_trials = req->max_trials,
                                 .seats = req->seats,
                                 .gpus = req->gpus,
                                 .wait_ms = req->wait_ms,
                                 .ending = req->ending,
                                 .n_ending = req->n_ending,
                                 .ending_seats = req->ending_seats,
                                 .n_ending_seats = req->n_ending_seats,
                                 .arrived_ns = c->arrived_ns};
}

/* Slots and GPUs that gangs took are not for other trials. */
static void count_seats(struct claiming *c, const struct seats_taken *before)
{
    c->want -= c->seats.got + c->seats.kept - before->got - before->kept;
    c->gpus = min_i64(c->gpus, c->req->gpus - c->seats.kept_gpus);
    c->list.has_begun = c->seats.has_begun;
    c->list.has_kept = c->seats.has_kept;
    c->list.is_preparing |= c->seats.is_preparing;
}

/* It is the turn of a sweep whose trials have ranks. */
static as_status take_turn(struct claiming *c, int64_t key, struct as_err *why, struct as_err *err)
{
    const struct seat_request req = seats_of(c);
    const struct seats_taken before = c->seats;
    if (c->news.gathers || c->seats.has_begun)
        return AS_OK; /* one at a time */
    as_status st = seats_gather(c->db, c->sg, c->a, &req, key, &c->seats, err);
    c->news.gathers = true;
    if (st == AS_OK && why->code == AS_OK)
        *why = c->seats.why;
    if (st == AS_OK)
        count_seats(c, &before);
    return st;
}

/* What gangs have for this claim comes before other trials; and a gang that waited too long for its
 * turn. */
static as_status take_seats(struct claiming *c, struct as_err *why, struct as_err *err)
{
    const struct seat_request req = seats_of(c);
    const struct seats_taken before = c->seats;
    if (c->req->seats == 0 || c->req->groups.fit.group)
        return AS_OK;
    as_status st = seats_take(c->db, c->sg, c->a, &req, &c->news, &c->seats, err);
    if (st != AS_OK)
        return st;
    *why = c->seats.why;
    count_seats(c, &before);
    if (c->news.gathers || c->news.idle_ms < GATHERING_TURN_MS)
        return AS_OK;
    int64_t key =
        0; /* the first of its sort, unless it has a lower priority than others with work */
    for (size_t i = 0; i < c->n_sweeps && !key; i++)
        if (c->sweeps[i].priority == c->sweeps[0].priority)
            key = c->sweeps[i].is_gang ? c->sweeps[i].key : 0;
    return key ? take_turn(c, key, why, err) : AS_OK;
}

static as_status run_wait(struct claiming *c, int64_t key, struct as_err *err)
{
    struct tx_run run = tx_run_start(c->db, TX_WRITE, err);
    while (tx_run_again(&run))
        run.status = store_turn_wait(run.tx, c->req->runner, key, err);
    return run.status;
}

/* It is the turn of a sweep whose trial does not fit on the runner now. */
static as_status note_wait(struct claiming *c, struct claimable_sweep *s, struct as_err *err)
{
    if (s->waits)
        return AS_OK;
    s->waits = true;
    return run_wait(c, s->key, err);
}

/* Ask the sweep sweeps[i] for its share. *ret_more: it gave all of it, and may have more. *why: why its
 * search failed, unless it is set. */
static as_status take_share(struct claiming *c, size_t i, bool *ret_more, int64_t *taken,
                            struct as_err *why, struct as_err *err)
{
    struct as_err e = {0};
    int64_t got = 0;
    c->turn = &c->sweeps[i];
    c->key = c->turn->key;
    c->share = c->req->groups.fit.group ? c->want
                                        : share_of_first(&c->sweeps[i], c->n_sweeps - i, c->want);
    *ret_more = c->share == 0; /* others may leave their slots to it */
    if (c->share == 0)
        return AS_OK;
    if (!c->turn->fits)
        return note_wait(c, c->turn, err);
    as_status st = take_from(c, &got, &e);
    *ret_more = c->share == 0;
    *taken += got;
    if (st != AS_OK && !c->assignment.search_failed)
        return as_fail_at(err, st, e.pointer, "%s", e.msg);
    if (st != AS_OK && why->code == AS_OK)
        *why = e;
    return st == AS_OK && c->lacks_room ? note_wait(c, c->turn, err) : AS_OK;
}

static as_status take_gang_turn(struct claiming *c, size_t i, struct as_err *why,
                                struct as_err *err)
{
    struct claimable_sweep *s = &c->sweeps[i];
    as_status st = take_turn(c, s->key, why, err);
    return st == AS_OK && !s->fits ? note_wait(c, s, err) : st;
}

/* One round: each sweep gives its share, and those that have no more leave the list. A failed search
 * does not keep other sweeps from giving; *why is the first such error. */
static as_status take_round(struct claiming *c, int64_t *taken, struct as_err *why,
                            struct as_err *err)
{
    for (size_t i = 0; i < c->n_sweeps && c->want > 0;) {
        bool more = false;
        as_status st = c->sweeps[i].is_gang ? take_gang_turn(c, i, why, err)
                                            : take_share(c, i, &more, taken, why, err);
        if (st != AS_OK)
            return st;
        i += more;
        if (!more)
            memmove(&c->sweeps[i], &c->sweeps[i + 1], (--c->n_sweeps - i) * sizeof *c->sweeps);
    }
    return AS_OK;
}

/* Rounds until nothing changes: sweeps with more work are asked for what others left. */
static as_status take_rounds(struct claiming *c, int64_t *ret_taken, struct as_err *why,
                             struct as_err *err)
{
    int64_t taken = 0, before = -1;
    size_t had = SIZE_MAX;
    while (c->want > 0 && c->n_sweeps > 0 && (taken > before || c->n_sweeps < had)) {
        before = taken;
        had = c->n_sweeps;
        as_status st = take_round(c, &taken, why, err);
        if (st != AS_OK)
            return st;
    }
    *ret_taken = taken;
    return AS_OK;
}

static as_status look_first(struct claiming *c, struct as_err *err)
{
    struct tx_run run = tx_run_start(c->db, TX_READ, err);
    while (tx_run_again(&run))
        run.status = look_for_sweeps(run.tx, c, err);
    return run.status;
}

/* Whether the runner takes ranks decides which gangs may gather at all. */
static as_status say_takes_seats(struct claiming *c, struct as_err *err)
{
    const struct runner_id id = id_of(c->req);
    struct tx_run run = tx_run_start(c->db, TX_WRITE, err);
    while (tx_run_again(&run))
        run.status = store_gathering_takes(run.tx, &id, c->req->seats > 0, err);
    return run.status;
}

static as_status read_back(struct claiming *c, struct as_err *err)
{
    struct tx_run run = tx_run_start(c->db, TX_READ, err);
    while (tx_run_again(&run))
        run.status = read_claimed(run.tx, c, err);
    return run.status;
}

/* Take what is available, into c->list. */
static as_status take_new(struct claiming *c, struct as_err *err)
{
    struct as_err why = {0};
    int64_t taken = 0;
    as_status st = take_seats(c, &why, err);
    if (st == AS_OK && c->seats.got == 0) /* ranks of gangs wait for each other: answer at once */
        st = take_rounds(c, &taken, &why, err);
    if (st != AS_OK)
        return st;
    bool is_preparing = c->list.is_preparing, awaits_ends = c->list.awaits_ends;
    bool has_begun = c->list.has_begun, has_kept = c->list.has_kept;
    if (taken + c->seats.got > 0) {
        st = read_back(c, err);
        if (st != AS_OK)
            return st;
    } else if (why.code != AS_OK && !is_preparing) {
        return as_fail_at(err, why.code, why.pointer, "%s", why.msg);
    }
    c->list.is_preparing = is_preparing && c->list.n == 0;
    c->list.awaits_ends = awaits_ends;
    c->list.has_begun = has_begun;
    c->list.has_kept = has_kept;
    return AS_OK;
}

as_status claim_trials(struct store *db, struct suggester *sg, struct arena *a,
                       const struct claim_request *req, struct claim_list *ret, struct as_err *err)
{
    struct claiming c = {
        .db = db,
        .sg = sg,
        .a = a,
        .req = req,
        .arrived_ns = req->arrived_ns ? req->arrived_ns : clock_mono_ns(),
        .owner = {.runner = req->runner, .epoch = req->epoch, .claim_id = req->claim_id}};
    as_status st = check_request(req, err);
    if (st != AS_OK)
        return st;
    st = look_first(&c, err);
    if (st != AS_OK)
        return st;
    if (c.list.n == 0 && (req->seats > 0) != c.news.takes_seats && !req->groups.fit.group) {
        st = say_takes_seats(&c, err);
        if (st == AS_OK)
            st = look_first(&c, err);
        if (st != AS_OK)
            return st;
    }
    if (c.list.n == 0) {
        st = take_new(&c, err);
        if (st != AS_OK)
            return st;
    }
    *ret = c.list;
    ret->sweep_key = c.fit_key;
    return AS_OK;
}

static as_status read_pending(struct tx *t, struct arena *a, struct sweep_room **ret, size_t *ret_n,
                              int64_t *ret_seats, struct as_err *err)
{
    as_status st = store_sweep_pending(t, a, ret, ret_n, err);
    return st == AS_OK ? store_gathering_pending(t, ret_seats, err) : st;
}

as_status claims_pending(struct store *db, struct suggester *sg, int64_t *ret, struct as_err *err)
{
    AS_AUTO(arena_done) struct arena a = {0};
    struct sweep_room *rooms = NULL;
    size_t n = 0;
    int64_t sum = 0;
    struct tx_run run = tx_run_start(db, TX_READ, err);
    while (tx_run_again(&run))
        run.status = read_pending(run.tx, &a, &rooms, &n, &sum, err);
    if (run.status != AS_OK || sum == INT64_MAX) {
        *ret = sum;
        return run.status;
    }
    for (size_t i = 0; i < n; i++) {
        const struct sweep_room *r = &rooms[i];
        sum += sg && r->learns ? suggester_room(sg, r->key, r->queued, r->room) : r->room;
    }
    *ret = sum;
    return AS_OK;
}
