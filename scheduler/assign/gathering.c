/* The ranks that a claim gets, and the gang that gathers.
 *
 * A seat that is kept is a row of gathering_seat: no trial exists for it. So a sweep that ends, a
 * cancelled trial or a lost runner costs nothing, and the trial of a gang is chosen when its last
 * seat is taken. Two transactions: one keeps slots of this runner (runner, then `gathering`); the
 * other, when all seats are taken, begins the gang (`gathering`, then the sweep). Any claim may do
 * the second one, so a suggestion that is late, or a server that dies in between, holds nobody up.
 *
 * Seats lapse: when their runner is not live, when it has not claimed for a while, when the sweep
 * has no work any more, and all of them when the live runners cannot hold the gang and no seat was
 * taken for a lease.
 *
 * A running gang that lost ranks comes before the one that gathers, which gives up slots for it:
 * else each might wait for what the other holds. */
#include "scheduler/assign/gathering.h"

#include "base/clock.h"
#include "base/hash.h"
#include "base/number.h"
#include "scheduler/assign/assignment_priv.h"
#include "scheduler/store/attempt_store.h"
#include "scheduler/store/event_store.h"
#include "scheduler/store/gang_store.h"
#include "scheduler/store/seat_store.h"
#include "scheduler/store/sweep_head_store.h"
#include "scheduler/store/trial_store.h"
#include "scheduler/store/turn_store.h"

#define GANG_SECRET_BYTES 32
/* For how long a program's gang that may begin with fewer ranks waits for another seat: as long as
 * torchrun (last_call_timeout), and where processes were lost, for those of their runners that are
 * ending. */
#define LAST_CALL_MS 30000
#define LAST_CALL_AGAIN_MS 2000

/* A claim that takes seats. */
struct seating {
    struct store *db;
    struct suggester *sg;
    struct arena *a;
    const struct seat_request *req;
    struct seats_taken *taken;

    /* results of the latest transaction */
    int64_t n, gpus;
    bool has_kept;
    int64_t full_key; /* the sweep whose gang has all its seats, or whose next trial is to be made,
                         because it says how many they are; 0: none */
    bool has_chosen;  /* that trial was made */
};

static as_status hold_runner(struct tx *t, const struct seating *s, struct as_err *err)
{
    const struct seat_request *req = s->req;
    bool live = false;
    as_status st = store_turn_lock_machine(t, req->runner.name, err); /* others share its cores */
    if (st == AS_OK)
        st = store_runner_extend(t, &req->runner, store_config(s->db)->lease_ms, &live, err);
    if (st != AS_OK || live)
        return st;
    return as_fail(err, AS_E_STALE, "epoch %lld of runner '%.63s' is not current: register again",
                   (long long)req->runner.epoch, req->runner.name);
}

/* The slots that the runner uses, or keeps free. */
static as_status compute_used(struct tx *t, const struct seating *s, int64_t *ret,
                              struct as_err *err)
{
    struct runner_head head;
    as_status st = store_runner_get(t, s->a, s->req->runner.name, &head, err);
    if (st == AS_OK)
        *ret = head.used;
    return st;
}

/* How many slots of the runner are free for ranks that need so much each. The runner's row is held.
 */
static as_status compute_free(struct tx *t, const struct seating *s, int64_t cpus,
                              int64_t memory_bytes, int64_t *ret, struct as_err *err)
{
    const struct seat_request *req = s->req;
    struct runner_head head;
    struct runner_ending ending;
    int64_t ended = 0;
    as_status st = store_runner_claims(t, s->a, req->runner.name, req->ending, req->n_ending, 0,
                                       &head, &ending, err);
    if (st == AS_OK)
        st = store_seat_holds(t, req->runner.name, req->ending_seats, req->n_ending_seats, &ended,
                              err);
    if (st != AS_OK)
        return st;
    *ret = head.slots - head.used + ended;
    if (cpus > 0)
        *ret = as_min_i64(*ret, (head.cpus - head.cpus_used) / cpus);
    if (memory_bytes > 0)
        *ret = as_min_i64(*ret, (head.memory_bytes - head.memory_used) / memory_bytes);
    if (head.is_shut)
        *ret = 0;
    return AS_OK;
}

/* The same, and how many more this claim may take. */
static as_status compute_room(struct tx *t, const struct seating *s, int64_t cpus,
                              int64_t memory_bytes, int64_t *ret, struct as_err *err)
{
    const struct seat_request *req = s->req;
    int64_t trials = 0, slots = 0;
    as_status st = compute_free(t, s, cpus, memory_bytes, ret, err);
    if (st == AS_OK)
        st = store_attempt_claim_count(t, req->runner.name, req->runner.epoch, req->claim_id,
                                       &trials, &slots, err);
    if (st == AS_OK)
        *ret = as_min_i64(*ret, req->max_trials - slots);
    return st;
}

/* ---- ranks that the runner has already ---- */

static as_status deliver(struct tx *t, struct seating *s, struct as_err *err)
{
    s->n = 0;
    as_status st = hold_runner(t, s, err);
    if (st != AS_OK)
        return st;
    return store_seat_deliver(t, &s->req->runner, s->req->claim_id,
                              s->req->max_trials - s->taken->got, &s->n, err);
}

static as_status run_deliver(struct seating *s, struct as_err *err)
{
    struct tx_run run = tx_run_start(s->db, TX_WRITE, err);
    while (tx_run_again(&run))
        run.status = deliver(run.tx, s, err);
    if (run.status == AS_OK)
        s->taken->got += s->n;
    return run.status;
}

/* ---- seats of running gangs ---- */

static as_status count_vacant(struct tx *t, const struct seating *s, const struct gang_key *key,
                              int64_t *ret, struct as_err *err)
{
    struct gang_row gang;
    struct gang_seat_row *seats = NULL;
    size_t n = 0;
    int64_t live = 0;
    as_status st = store_gang_lock(t, s->a, key, &gang, err);
    if (st == AS_OK)
        st = store_gang_seats_now(t, s->a, key, &seats, &n, err);
    if (st != AS_OK)
        return st;
    for (size_t i = 0; i < n; i++)
        live += seat_state_is_live(seats[i].state);
    *ret = gang.state == GANG_OVER || gang.is_ending ? 0 : gang.ranks - live;
    return AS_OK;
}

static as_status fill_gang(struct tx *t, struct seating *s, const struct gang_offer *offer,
                           struct as_err *err)
{
    const struct seat_request *req = s->req;
    struct gathering g;
    struct sweep_head sweep;
    struct trial_head trial;
    int64_t room = 0, vacant = 0, given = 0;
    s->n = 0;
    as_status st = hold_runner(t, s, err);
    if (st == AS_OK)
        st = store_gathering_lock(t, &g, err);
    if (st == AS_OK)
        st = store_sweep_lock(t, s->a, offer->key.sweep_key, &sweep, err);
    if (st == AS_OK)
        st = store_trial_lock(t, s->a, offer->key.sweep_key, offer->key.number, &trial, err);
    if (st == AS_OK)
        st = count_vacant(t, s, &offer->key, &vacant, err);
    if (st == AS_OK)
        st = compute_room(t, s, sweep.cpus, sweep.memory_bytes, &room, err);
    if (st != AS_OK)
        return st == AS_E_NOT_FOUND ? AS_OK : st; /* the sweep was deleted meanwhile */
    int64_t n = as_min_i64(vacant, req->seats - s->taken->got);
    if (sweep.gpus > 0)
        n = as_min_i64(n, s->gpus / sweep.gpus);
    if (n > room && g.sweep_key) {
        st = store_gathering_give_up(t, req->runner.name, n - (room > 0 ? room : 0), &given, err);
        if (st == AS_OK)
            st = compute_room(t, s, sweep.cpus, sweep.memory_bytes, &room, err);
    }
    n = as_min_i64(n, room);
    if (st != AS_OK || n <= 0)
        return st;
    s->n = n;
    return store_seat_add(t, &offer->key, &req->runner, req->claim_id, n, err);
}

static as_status read_offers(struct tx *t, struct seating *s, struct gang_offer **ret,
                             size_t *ret_n, struct as_err *err)
{
    return store_seat_offers(t, s->a, s->req->runner.name, s->gpus, ret, ret_n, err);
}

static as_status fill_gangs(struct seating *s, struct as_err *err)
{
    struct gang_offer *offers = NULL;
    size_t n = 0;
    s->gpus = s->req->gpus;
    struct tx_run look = tx_run_start(s->db, TX_READ, err);
    while (tx_run_again(&look))
        look.status = read_offers(look.tx, s, &offers, &n, err);
    as_status st = look.status;
    for (size_t i = 0; i < n && st == AS_OK && s->taken->got < s->req->seats; i++) {
        struct tx_run run = tx_run_start(s->db, TX_WRITE, err);
        while (tx_run_again(&run))
            run.status = fill_gang(run.tx, s, &offers[i], err);
        st = run.status;
        if (st == AS_OK) {
            s->taken->got += s->n;
            s->gpus -= s->n * offers[i].gpus;
        }
    }
    return st;
}

/* ---- keep slots for the gang that gathers ---- */

/* May the gang begin with the seats that it has? */
static bool has_enough(const struct gathering *g)
{
    int64_t wait_ms = g->has_run ? LAST_CALL_AGAIN_MS : LAST_CALL_MS;
    return g->seats >= g->ranks || (g->seats >= g->least_ranks && g->unprogress_ms >= wait_ms);
}

/* Should the gathering gang give up? */
static bool has_lapsed(const struct seating *s, const struct gathering *g)
{
    bool fits = g->could_hold >= g->least_ranks;
    return !g->has_work || (!fits && g->unprogress_ms > store_config(s->db)->lease_ms);
}

/* Lock the gathering, and let `turn` (0: no sweep) gather if none does. ret->sweep_key is 0 if none
 * gathers then. */
static as_status open_gathering(struct tx *t, struct seating *s, int64_t turn,
                                struct gathering *ret, struct as_err *err)
{
    as_status st = store_gathering_lock(t, ret, err);
    if (st == AS_OK && ret->sweep_key && has_lapsed(s, ret)) {
        st = store_gathering_set(t, 0, err);
        ret->sweep_key = 0;
    }
    if (st != AS_OK || ret->sweep_key || !turn)
        return st;
    if ((st = store_gathering_set(t, turn, err)) == AS_OK)
        st = store_gathering_get(t, ret, err);
    if (st != AS_OK || (ret->has_work && ret->could_hold >= ret->least_ranks))
        return st;
    ret->sweep_key = 0; /* it lost its work, or its runners, since the claim looked */
    return store_gathering_set(t, 0, err);
}

/* How many of the runner's free slots may be kept. A claim that has waited was made when fewer
 * slots were free, and only the next one asks for the others: they are kept all the same, unless it
 * said that not all of its slots may hold ranks. `mine`: kept already. */
static int64_t may_keep(const struct seat_request *req, int64_t n_free, int64_t mine)
{
    return req->seats < req->max_trials ? as_min_i64(n_free, req->seats - mine) : n_free;
}

static as_status keep_slots(struct tx *t, struct seating *s, int64_t turn, struct as_err *err)
{
    const struct seat_request *req = s->req;
    struct gathering g;
    int64_t n_free = 0, mine = 0, before = 0, after = 0;
    int64_t until_ms = req->wait_ms + store_config(s->db)->lease_ms;
    s->n = s->gpus = s->full_key = 0;
    s->has_kept = false;
    as_status st = hold_runner(t, s, err);
    if (st == AS_OK)
        st = compute_used(t, s, &before, err);
    if (st == AS_OK)
        st = open_gathering(t, s, turn, &g, err);
    if (st == AS_OK)
        st = compute_used(t, s, &after, err);
    if (st != AS_OK)
        return st;
    s->n = after - before; /* slots that lapsed are free for other trials of this claim */
    if (!g.sweep_key)
        return AS_OK;
    st = store_gathering_extend(t, &req->runner, until_ms, &mine, err);
    if (st == AS_OK)
        st = compute_free(t, s, g.cpus, g.memory_bytes, &n_free, err);
    if (st != AS_OK)
        return st;
    int64_t n = as_min_i64(may_keep(req, n_free, mine), g.ranks - g.seats);
    if (g.gpus > 0)
        n = as_min_i64(n, req->gpus / g.gpus - mine);
    if (n > 0)
        st = store_gathering_reserve(t, &req->runner, n, until_ms, err);
    else
        n = 0;
    s->n += n;
    s->has_kept = n > 0;
    s->gpus = (mine + n) * g.gpus;
    s->full_key = g.seats + n >= g.ranks || has_enough(&g) ? g.sweep_key : 0;
    return st;
}

/* ---- begin the gang ---- */

static as_status begun_event(struct tx *t, const struct sweep_head *s, const struct gang_key *key,
                             struct as_err *err)
{
    struct event_new e = {.type = "gang.changed",
                          .sweep_key = s->key,
                          .sweep = s->id,
                          .has_number = true,
                          .number = key->number,
                          .state = gang_state_format(GANG_GATHERING),
                          .attempt = key->attempt,
                          .has_epoch = true};
    return store_event_add(t, &e, err);
}

static as_status make_gang(struct tx *t, const struct sweep_head *s, struct as_err *err)
{
    uint8_t bytes[GANG_SECRET_BYTES];
    char secret[2 * GANG_SECRET_BYTES + 1];
    struct gang_key key;
    random_bytes(bytes, sizeof bytes);
    hex_format(bytes, sizeof bytes, secret);
    as_status st = store_gang_add(t, s->key, secret, &key, err);
    if (st == AS_OK)
        st = store_turn_over(t, s->key, err);
    if (st == AS_OK)
        st = begun_event(t, s, &key, err);
    return st == AS_OK ? store_gathering_set(t, 0, err) : st;
}

/* The next trial is in the queue and says how many ranks it has. If the runners could not hold
 * them, the sweep waits for runners, and others may gather. */
static as_status note_chosen(struct tx *t, struct seating *s, struct as_err *err)
{
    struct gathering g;
    as_status st = store_gathering_get(t, &g, err);
    if (st != AS_OK)
        return st;
    s->has_chosen = g.could_hold >= g.least_ranks;
    return s->has_chosen ? AS_OK : store_gathering_set(t, 0, err);
}

/* One look: begin the trial of the sweep, if its gang still has all its seats. Where each trial has
 * its own number of ranks and none is queued, make one and leave it in the queue. */
static as_status begin_gang(struct tx *t, struct seating *s, struct assignment *asg, int64_t key,
                            struct as_err *err)
{
    struct gathering g;
    struct sweep_head sweep;
    asg->got = asg->slots = asg->n_taken = 0;
    asg->lacking = 0;
    as_status st = open_gathering(t, s, 0, &g, err);
    s->has_chosen = false;
    if (st != AS_OK || g.sweep_key != key || !has_enough(&g))
        return st;
    st = store_sweep_lock(t, s->a, key, &sweep, err);
    if (st == AS_OK)
        st = store_gathering_get(t, &g, err); /* its next trial stands still from here on */
    if (st != AS_OK || !has_enough(&g))
        return st == AS_E_NOT_FOUND ? AS_OK : st;
    asg->queues = g.ranks == 0;
    bool may =
        sweep.state == SWEEP_RUNNING &&
        (sweep.max_concurrent == 0 || sweep.counts.by_state[TRIAL_RUNNING] < sweep.max_concurrent);
    st = assignment_take(t, asg, &sweep, may, may, err);
    if (st != AS_OK)
        return st;
    if (asg->got > 0 && asg->queues)
        return note_chosen(t, s, err);
    if (asg->got > 0)
        return make_gang(t, &sweep, err);
    return asg->lacking > 0 ? AS_OK : store_gathering_set(t, 0, err); /* it has no trial left */
}

/* Its search failed: other gangs get their turn. */
static as_status give_turn_up(struct tx *t, int64_t key, struct as_err *err)
{
    struct gathering g;
    as_status st = store_gathering_lock(t, &g, err);
    return st == AS_OK && g.sweep_key == key ? store_gathering_set(t, 0, err) : st;
}

static as_status run_begin(struct seating *s, int64_t key, struct as_err *err)
{
    static const struct owner gang; /* no runner, and no client */
    struct as_err why = {0};
    struct assignment asg = {.db = s->db,
                             .a = s->a,
                             .sg = s->sg,
                             .owner = &gang,
                             .policy = ASSIGN_BRIEF_WAIT,
                             .arrived_ns = s->req->arrived_ns};
    as_status st = assignment_open(&asg, key, err);
    bool again = st == AS_OK && asg.is_there;
    for (int i = 0; i < ASSIGNMENT_LOOKS && again; i++) {
        struct tx_run run = tx_run_start(s->db, TX_WRITE, &why);
        while (tx_run_again(&run))
            run.status = begin_gang(run.tx, s, &asg, key, &why);
        st = run.status;
        again = st == AS_OK && assignment_done(&asg);
        s->taken->has_begun |= st == AS_OK && asg.got > 0 && !asg.queues;
    }
    s->taken->is_preparing = st == AS_OK && asg.lacking > 0;
    bool search_failed = st != AS_OK && asg.search_failed;
    assignment_close(&asg);
    if (st != AS_OK && !search_failed)
        return why.code == AS_OK ? st : as_fail_at(err, st, why.pointer, "%s", why.msg);
    if (!search_failed)
        return AS_OK;
    s->taken->why = why;
    struct tx_run run = tx_run_start(s->db, TX_WRITE, err);
    while (tx_run_again(&run))
        run.status = give_turn_up(run.tx, key, err);
    return run.status;
}

/* Keep slots, and begin the gang if that were the last ones, or make the trial that says how many
 * they are. */
static as_status gather_once(struct seating *s, int64_t turn, struct as_err *err)
{
    struct tx_run run = tx_run_start(s->db, TX_WRITE, err);
    while (tx_run_again(&run))
        run.status = keep_slots(run.tx, s, turn, err);
    as_status st = run.status;
    if (st != AS_OK)
        return st;
    s->has_chosen = false;
    s->taken->kept += s->n;
    s->taken->kept_gpus = s->gpus;
    s->taken->has_kept |= s->has_kept && !s->full_key;
    if (!s->full_key)
        return AS_OK;
    if ((st = run_begin(s, s->full_key, err)) != AS_OK || !s->taken->has_begun)
        return st;
    s->taken->kept = s->taken->kept_gpus = 0;
    atomic_fetch_add(&store_counters(s->db)->trials_claimed, 1);
    return run_deliver(s, err);
}

static as_status gather(struct seating *s, int64_t turn, struct as_err *err)
{
    as_status st = gather_once(s, turn, err);
    return st == AS_OK && s->has_chosen ? gather_once(s, turn, err) : st;
}

as_status seats_take(struct store *db, struct suggester *sg, struct arena *a,
                     const struct seat_request *req, const struct gathering_news *news,
                     struct seats_taken *ret, struct as_err *err)
{
    struct seating s = {.db = db, .sg = sg, .a = a, .req = req, .taken = ret};
    as_status st = news->has_seats ? run_deliver(&s, err) : AS_OK;
    if (st == AS_OK && news->has_gangs && ret->got < req->seats)
        st = fill_gangs(&s, err);
    if (st == AS_OK && news->gathers && ret->got < req->seats)
        st = gather(&s, 0, err);
    return st;
}

as_status seats_gather(struct store *db, struct suggester *sg, struct arena *a,
                       const struct seat_request *req, int64_t sweep_key, struct seats_taken *ret,
                       struct as_err *err)
{
    struct seating s = {.db = db, .sg = sg, .a = a, .req = req, .taken = ret};
    return gather(&s, sweep_key, err);
}
