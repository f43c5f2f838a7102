/* Claims.
 *
 * A claim has three steps: look (one read without locks), take (one transaction for each sweep, so
 * that a claim holds one sweep's row at a time), and read back. The read finds the trials by the
 * claim_id. So a repeated claim and a new one get their answer the same way, and a claim whose
 * answer was lost is safe to repeat.
 *
 * Sweeps share the slots of a claim as if the slots were handed out one after another, each to the
 * sweep whose turn it is (turn_store.h): a round computes how many that are for each sweep, so that
 * a sweep's row is held once. Sweeps with more work are asked again for what others did not use.
 *
 * A sweep whose trial does not fit in what is free on the runner is noted when its turn comes.
 * After a while the sweeps that come after it get nothing there, until there is room for it. */
#include "scheduler/assign/claims.h"

#include <string.h>

#include "base/clock.h"
#include "base/number.h"
#include "base/str.h"
#include "base/utf8.h"
#include "scheduler/assign/claimed_priv.h"
#include "scheduler/assign/claims_priv.h"
#include "scheduler/assign/sharing.h"
#include "scheduler/store/assignment_store.h"
#include "scheduler/store/capacity_store.h"
#include "scheduler/store/runner_store.h"
#include "scheduler/store/seat_store.h"
#include "scheduler/store/turn_store.h"

/* The trials that this claim got and still holds. */
static as_status read_claimed(struct tx *t, struct claiming *c, struct as_err *err)
{
    const struct claim_request *req = c->req;
    const struct runner_id id = claiming_runner(req);
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
    const struct runner_id id = claiming_runner(req);
    st = runner_id_check(&id, &runner, err);
    if (st != AS_OK)
        return st;
    if (runner.epoch != req->epoch || !as_streq(runner.state, "live"))
        return claiming_stale_epoch(req, err);
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
    c->want = as_min_i64(runner.slots - runner.used + ended, req->max_trials);
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

as_status claim_check(const struct claim_request *req, struct as_err *err)
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
    return (struct seat_request){.runner = claiming_runner(req),
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
    c->gpus = as_min_i64(c->gpus, c->req->gpus - c->seats.kept_gpus);
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
    if (c->req->seats == 0 || c->req->groups.fit.group || c->req->is_ahead)
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

/* Ask the sweep sweeps[i] for its share. *ret_more: it gave all of it, and may have more. *why: why
 * its search failed, unless it is set. */
static as_status take_share(struct claiming *c, size_t i, bool *ret_more, int64_t *taken,
                            struct as_err *why, struct as_err *err)
{
    struct as_err e = {0};
    int64_t got = 0;
    c->turn = &c->sweeps[i];
    c->key = c->turn->key;
    c->share = c->req->groups.fit.group ? c->want
                                        : share_of_first(&c->sweeps[i], c->n_sweeps - i, c->want);
    if (c->req->is_ahead)
        c->share = share_ahead(c->share, c->turn->ahead_room, &c->want);
    *ret_more = c->share == 0; /* others may leave their slots to it */
    if (c->share == 0)
        return AS_OK;
    if (!c->turn->fits)
        return note_wait(c, c->turn, err);
    as_status st = claiming_take(c, &got, &e);
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

/* One round: each sweep gives its share, and those that have no more leave the list. A failed
 * search does not keep other sweeps from giving; *why is the first such error. */
static as_status take_round(struct claiming *c, int64_t *taken, struct as_err *why,
                            struct as_err *err)
{
    for (size_t i = 0; i < c->n_sweeps && c->want > 0;) {
        bool more = false;
        as_status st = c->sweeps[i].is_gang && !c->req->is_ahead
                           ? take_gang_turn(c, i, why, err)
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
    const struct runner_id id = claiming_runner(c->req);
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

/* The claim is a repeat. What it got may not be on the disk yet, while the first request waits for
 * that; an attempt that a runner knows of is never taken back. */
static as_status repeat_claim(struct claiming *c, struct as_err *err)
{
    struct tx_run run = tx_run_start(c->db, TX_SEEN, err);
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
    as_status st = claim_check(req, err);
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
    st = c.list.n > 0 ? repeat_claim(&c, err) : take_new(&c, err);
    if (st != AS_OK)
        return st;
    *ret = c.list;
    ret->sweep_key = c.fit_key;
    return AS_OK;
}

static as_status read_pending(struct tx *t, struct arena *a, struct sweep_capacity **ret,
                              size_t *ret_n, int64_t *ret_seats, struct as_err *err)
{
    as_status st = store_capacity_pending(t, a, ret, ret_n, err);
    return st == AS_OK ? store_gathering_pending(t, ret_seats, err) : st;
}

as_status claims_pending(struct store *db, struct suggester *sg, int64_t *ret, struct as_err *err)
{
    AS_AUTO(arena_done) struct arena a = {0};
    struct sweep_capacity *rooms = NULL;
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
        const struct sweep_capacity *r = &rooms[i];
        sum += sg && r->learns ? suggester_capacity(sg, r->key, r->queued, r->room) : r->room;
    }
    *ret = sum;
    return AS_OK;
}
