/* What the ranks of an attempt tell the server.
 *
 * Each operation opens the world of the gang (gang_world.h), checks that the caller holds the seat,
 * applies an event, and settles. A repeat whose first answer was lost finds the seat in the state
 * that it asked for, and gets the world. */
#include "scheduler/lifecycle/gangs.h"

#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "base/utf8.h"
#include "scheduler/lifecycle/gang_world.h"
#include "scheduler/store/attempt_store.h"
#include "scheduler/store/event_store.h"

/* ---- find ---- */

static as_status find_gang(struct tx *t, struct arena *a, const struct attempt_ref *ref,
                           struct gang_key *ret, struct as_err *err)
{
    struct attempt_holder holder;
    as_status st = store_attempt_holder(t, a, ref, &holder, err);
    if (st != AS_OK)
        return st;
    if (!holder.is_there)
        return as_fail(err, AS_E_NOT_FOUND, "there is no attempt %lld of %.80s/%lld",
                       (long long)ref->attempt, ref->sweep, (long long)ref->number);
    *ret = (struct gang_key){holder.sweep_key, ref->number, ref->attempt};
    return AS_OK;
}

static as_status check_caller(const struct gang_seat_row *seat, const struct gang_caller *by,
                              struct as_err *err)
{
    if (!seat->secret || as_streq(seat->secret, by->secret))
        return AS_OK;
    return as_fail(err, AS_E_DENIED,
                   "seat %lld is of runner %.63s, and the header Assay-Runner-Secret %s",
                   (long long)seat->seat, seat->runner,
                   by->secret ? "does not hold its secret" : "is missing");
}

static as_status fail_gone(const struct gang_seat_row *seat, struct as_err *err)
{
    return as_fail(err, AS_E_STALE, "seat %lld is %s%s%s", (long long)seat->seat,
                   seat_state_format(seat->state), seat->reason ? ": " : "",
                   seat->reason ? seat->reason : "");
}

/* Read the seat, of whoever calls. Seats that have gone are found too. */
static as_status read_seat(struct tx *t, struct arena *a, const struct gang_key *key, int64_t seat,
                           const struct gang_caller *by, struct gang_seat_row *ret,
                           struct as_err *err)
{
    as_status st = store_gang_seat(t, a, key, seat, ret, err);
    return st == AS_OK ? check_caller(ret, by, err) : st;
}

/* Hold the gang, and read its world and the caller's seat. */
static as_status open_seat(struct tx *t, struct arena *a, const struct attempt_ref *ref,
                           int64_t seat, const struct gang_caller *by, struct gang_world *w,
                           struct gang_seat_row *ret, struct as_err *err)
{
    struct gang_key key;
    as_status st = find_gang(t, a, ref, &key, err);
    if (st == AS_OK)
        st = gang_world_open(t, a, &key, w, err);
    return st == AS_OK ? read_seat(t, a, &key, seat, by, ret, err) : st;
}

static bool may_see_secret(const struct gang_detail *d, const struct gang_caller *by)
{
    bool holds = by->is_admin;
    for (size_t i = 0; i < d->n_seats && !holds; i++) {
        const struct gang_seat_row *s = &d->seats[i];
        bool is_callers = s->secret ? as_streq(s->secret, by->secret) : by->is_runner;
        holds = seat_state_is_live(s->state) && is_callers;
    }
    return holds;
}

/* The world as it is now, as an answer. */
static as_status read_world(struct tx *t, struct arena *a, const struct gang_key *key,
                            const struct gang_caller *by, struct gang_detail *ret,
                            struct as_err *err)
{
    as_status st = store_gang_get(t, a, key, &ret->gang, err);
    if (st == AS_OK)
        st = store_gang_seats_now(t, a, key, &ret->seats, &ret->n_seats, err);
    if (st == AS_OK)
        ret->shows_secret = may_see_secret(ret, by);
    return st;
}

/* ---- a rank listens ---- */

static bool is_same_address(const struct seat_address *x, const struct seat_address *y)
{
    return as_streq(x->endpoint, y->endpoint) && as_streq(x->address, y->address) &&
           x->port == y->port;
}

static as_status listen_seat(struct tx *t, struct arena *a, const struct seat_ref *ref,
                             const struct gang_caller *by, const struct seat_address *at,
                             struct gang_detail *ret, struct as_err *err)
{
    struct gang_world w;
    struct gang_seat_row row;
    as_status st = open_seat(t, a, &ref->attempt, ref->seat, by, &w, &row, err);
    if (st != AS_OK)
        return st;
    if (!seat_state_is_live(row.state))
        return fail_gone(&row, err);
    if (row.state != SEAT_SEATED && !is_same_address(&row.at, at))
        return as_fail(err, AS_E_CONFLICT, "seat %lld listens at %.200s already",
                       (long long)row.seat, row.at.endpoint);
    if (row.state == SEAT_SEATED) {
        st = store_gang_listen(t, &w.key, ref->seat, at, err);
        if (st == AS_OK)
            st = gang_world_apply(&w, gang_world_seat(&w, ref->seat), SEAT_EV_LISTEN, NULL, err);
        if (st == AS_OK)
            st = gang_world_settle(&w, err);
    }
    return st == AS_OK ? read_world(t, a, &w.key, by, ret, err) : st;
}

as_status gang_listen(struct store *db, struct arena *a, const struct seat_ref *ref,
                      const struct gang_caller *by, const struct seat_address *at,
                      struct gang_detail *ret, struct as_err *err)
{
    struct gang_detail world = {0};
    struct tx_run run = tx_run_start(db, TX_WRITE, err);
    while (tx_run_again(&run))
        run.status = listen_seat(run.tx, a, ref, by, at, &world, err);
    if (run.status == AS_OK)
        *ret = world;
    return run.status;
}

/* ---- a rank is connected ---- */

static as_status join_event(struct tx *t, const struct seat_ref *ref, const struct gang_row *g,
                            const struct gang_seat_row *seat, struct as_err *err)
{
    struct event_new e = {.type = "gang.changed",
                          .sweep_key = g->sweep_key,
                          .sweep = ref->attempt.sweep,
                          .has_number = true,
                          .number = g->number,
                          .state = seat_state_format(SEAT_RUNNING),
                          .attempt = g->attempt,
                          .runner = seat->runner,
                          .has_epoch = true,
                          .epoch = g->epoch,
                          .has_seat = true,
                          .seat = seat->seat};
    return store_event_add(t, &e, err);
}

/* Joining changes no world, so only the gang's row is held. */
static as_status join_seat(struct tx *t, struct arena *a, const struct seat_ref *ref,
                           const struct gang_caller *by, const struct seat_joined *joined,
                           struct gang_detail *ret, struct as_err *err)
{
    struct gang_key key;
    struct gang_row gang;
    struct gang_seat_row row;
    seat_state to;
    as_status st = find_gang(t, a, &ref->attempt, &key, err);
    if (st == AS_OK)
        st = store_gang_lock(t, a, &key, &gang, err);
    if (st == AS_OK)
        st = read_seat(t, a, &key, ref->seat, by, &row, err);
    if (st != AS_OK)
        return st;
    if (gang.state == GANG_OVER || !seat_state_is_live(row.state))
        return fail_gone(&row, err);
    if (joined->epoch != gang.epoch || !row.is_member)
        return as_fail_at(err, AS_E_STALE, STALE_WORLD,
                          "epoch %lld is not current for seat %lld: the gang is at %lld",
                          (long long)joined->epoch, (long long)ref->seat, (long long)gang.epoch);
    if ((st = seat_step(row.state, SEAT_EV_JOIN, &to, err)) == AS_OK)
        st = store_gang_join(t, &key, ref->seat, joined->epoch, joined->step, err);
    if (st == AS_OK)
        st = store_gang_step(t, &key, joined->step, err);
    if (st == AS_OK && row.joined_epoch != joined->epoch)
        st = join_event(t, ref, &gang, &row, err);
    return st == AS_OK ? read_world(t, a, &key, by, ret, err) : st;
}

as_status gang_join(struct store *db, struct arena *a, const struct seat_ref *ref,
                    const struct gang_caller *by, const struct seat_joined *joined,
                    struct gang_detail *ret, struct as_err *err)
{
    struct gang_detail world = {0};
    struct tx_run run = tx_run_start(db, TX_WRITE, err);
    while (tx_run_again(&run))
        run.status = join_seat(run.tx, a, ref, by, joined, &world, err);
    if (run.status == AS_OK)
        *ret = world;
    return run.status;
}

/* ---- the process of a rank has ended ---- */

static const char *end_reason(struct arena *a, const struct seat_end *e)
{
    if (e->reason)
        return arena_strndup(a, e->reason, as_utf8_prefix(e->reason, REASON_CHARACTERS));
    if (e->outcome == OUTCOME_COMPLETED)
        return "it completed";
    if (e->has_exit_code && e->exit_code < 0)
        return arena_printf(a, "signal %lld", (long long)-e->exit_code);
    if (e->has_exit_code)
        return arena_printf(a, "exit code %lld", (long long)e->exit_code);
    return attempt_outcome_words[e->outcome];
}

/* The end of one rank is the end of the attempt. */
static as_status end_all(struct gang_world *w, const struct gang_seat_row *seat,
                         const struct seat_end *e, const char *reason, struct as_err *err)
{
    struct trial_change c = {.reason = gang_world_blame(w, seat, reason),
                             .has_exit_code = e->has_exit_code,
                             .exit_code = e->exit_code,
                             .has_ran = e->has_ran,
                             .ran_ms = e->ran_ms};
    bool again = e->outcome == OUTCOME_RETRY, is_echo = false;
    if (e->outcome == OUTCOME_FAILED && !w->gang.elastic) {
        as_status st = gang_world_may_echo(w, &is_echo, err);
        if (st != AS_OK)
            return st;
        again = is_echo || w->sweep.shrinks;
    }
    c.event = e->outcome == OUTCOME_TIMEOUT    ? TRIAL_EV_TIMEOUT
              : e->outcome == OUTCOME_RELEASED ? TRIAL_EV_RELEASE
              : again                          ? TRIAL_EV_LOSE
                                               : TRIAL_EV_FAIL;
    c.outcome = again ? "retry" : attempt_outcome_words[e->outcome];
    if (is_echo || (e->outcome == OUTCOME_RETRY && e->has_exit_code && e->exit_code < 0))
        gang_world_spare(w, &c); /* it was lost; a failure uses a restart */
    return gang_world_end(w, &c, err);
}

/* It is done, or ended early as it was told: the rank that leads ends the attempt for all. After a
 * decision of early stopping a rank may also say that it should be tried again: those it worked
 * with had gone before it was told. */
static bool ends_well(const struct gang_world *w, const struct seat_end *e)
{
    bool is_decided = w->trial.at.decision != DECIDED_NOTHING;
    return e->outcome == OUTCOME_COMPLETED || e->outcome == OUTCOME_PAUSED ||
           e->outcome == OUTCOME_PRUNED || (is_decided && e->outcome == OUTCOME_RETRY);
}

/* A rank of a gang whose world may change. */
static as_status end_elastic(struct gang_world *w, struct gang_seat_row *seat,
                             const struct seat_end *e, const char *reason, struct as_err *err)
{
    bool is_signal = e->outcome == OUTCOME_FAILED && e->has_exit_code && e->exit_code < 0;
    const char *why = reason;
    seat_event ev = SEAT_EV_LEAVE;
    if (e->outcome == OUTCOME_TIMEOUT || (e->outcome == OUTCOME_FAILED && !is_signal))
        return end_all(w, seat, e, reason, err);
    if ((e->outcome == OUTCOME_RETRY && !ends_well(w, e)) || is_signal) {
        ev = SEAT_EV_LOSE;
        why = gang_world_blame(w, seat, reason);
    }
    bool is_done = ends_well(w, e) && seat != gang_world_leader(w);
    if (!is_done)
        seat->outcome = NULL; /* a rank that led, and did not complete the attempt, has just left */
    int64_t joined = e->epoch > seat->joined_epoch ? e->epoch : seat->joined_epoch;
    if (is_done && seat->is_member && joined < w->gang.epoch)
        w->must_change =
            true; /* the others would wait for it: it was done before it met them again */
    w->is_released = e->outcome == OUTCOME_RELEASED;
    as_status st = gang_world_apply(w, seat, ev, why, err);
    if (st == AS_OK)
        st = gang_world_settle(w, err);
    if (st == AS_OK && is_done) /* last: a new epoch is not the end of the ending here */
        st = store_gang_ending(w->t, &w->key, true, err);
    return st;
}

static as_status end_fixed(struct gang_world *w, struct gang_seat_row *seat,
                           const struct seat_end *e, const char *reason, struct as_err *err)
{
    if (!ends_well(w, e))
        return end_all(w, seat, e, reason, err);
    as_status st = gang_world_apply(w, seat, SEAT_EV_END, NULL, err);
    return st == AS_OK ? gang_world_settle(w, err) : st;
}

/* The seat that ends, as it says. */
static as_status note_end(struct gang_world *w, struct gang_seat_row *seat,
                          const struct seat_end *e, struct as_err *err)
{
    seat->outcome = attempt_outcome_words[e->outcome];
    seat->has_exit_code = e->has_exit_code;
    seat->exit_code = e->exit_code;
    seat->has_ran = e->has_ran;
    seat->ran_ms = e->ran_ms;
    if (e->has_step) {
        seat->has_step = true;
        seat->step = e->step;
    }
    seat->sent_bytes = e->sent_bytes > seat->sent_bytes ? e->sent_bytes : seat->sent_bytes;
    as_status st = e->has_step ? gang_world_step(w, e->step, err) : AS_OK;
    return st == AS_OK ? store_gang_said(w->t, &w->key, seat, err) : st;
}

static as_status end_seat(struct tx *t, struct arena *a, const struct seat_ref *ref,
                          const struct gang_caller *by, const struct seat_end *e,
                          struct gang_detail *ret, struct as_err *err)
{
    struct gang_world w;
    struct gang_seat_row row;
    as_status st = open_seat(t, a, &ref->attempt, ref->seat, by, &w, &row, err);
    if (st != AS_OK)
        return st;
    struct gang_seat_row *seat = gang_world_seat(&w, ref->seat);
    if (!seat_state_is_live(row.state)) {
        bool is_repeat = as_streq(row.outcome, attempt_outcome_words[e->outcome]);
        if (w.gang.state == GANG_OVER && e->outcome == OUTCOME_COMPLETED && e->has_step) {
            /* The rank that leads was faster: what the others have sent counts in any case. */
            st = store_gang_reached(t, &w.key, ref->seat, e->step, e->sent_bytes, err);
            return st == AS_OK ? read_world(t, a, &w.key, by, ret, err) : st;
        }
        return is_repeat ? read_world(t, a, &w.key, by, ret, err) : fail_gone(&row, err);
    }
    if (e->outcome == OUTCOME_TIMEOUT)
        st = gang_world_check_timeout(&w, err);
    if (st == AS_OK)
        st = note_end(&w, seat, e, err);
    if (st != AS_OK)
        return st;
    const char *reason = end_reason(a, e);
    st = w.gang.elastic ? end_elastic(&w, seat, e, reason, err)
                        : end_fixed(&w, seat, e, reason, err);
    return st == AS_OK ? read_world(t, a, &w.key, by, ret, err) : st;
}

as_status gang_end(struct store *db, struct arena *a, const struct seat_ref *ref,
                   const struct gang_caller *by, const struct seat_end *end,
                   struct gang_detail *ret, struct as_err *err)
{
    struct gang_detail world = {0};
    struct tx_run run = tx_run_start(db, TX_WRITE, err);
    while (tx_run_again(&run))
        run.status = end_seat(run.tx, a, ref, by, end, &world, err);
    if (run.status == AS_OK)
        *ret = world;
    return run.status;
}

/* ---- the next epoch ---- */

/* May the asker change this world? */
static as_status check_asker(const struct gang_world *w, const struct world_change *c,
                             const struct gang_seat_row *asker, struct as_err *err)
{
    if (w->gang.state == GANG_OVER)
        return as_fail(err, AS_E_STALE, "the attempt is over");
    if (c->epoch != w->gang.epoch)
        return as_fail_at(err, AS_E_STALE, STALE_WORLD,
                          "epoch %lld is not current: the gang is at %lld", (long long)c->epoch,
                          (long long)w->gang.epoch);
    if (!asker || !asker->is_member || !seat_state_is_live(asker->state))
        return as_fail(err, AS_E_DENIED, "seat %lld is no member of epoch %lld", (long long)c->seat,
                       (long long)c->epoch);
    return AS_OK;
}

/* One seat of the list `list` (the field's name) gets the event. */
static as_status drop_seat(struct gang_world *w, const struct world_change *c, int64_t number,
                           const char *list, seat_event ev, struct as_err *err)
{
    struct gang_seat_row *seat = gang_world_seat(w, number);
    char pointer[16];
    (void)snprintf(pointer, sizeof pointer, "/%s", list);
    if (!seat || !seat->is_member)
        return as_fail_at(err, AS_E_INVAL, pointer, "%s: seat %lld is no member of epoch %lld",
                          pointer, (long long)number, (long long)c->epoch);
    if (!seat_state_is_live(seat->state)) /* named twice, or it has completed */
        return AS_OK;
    const char *why = ev == SEAT_EV_LOSE
                          ? arena_printf(w->a, "seat %lld no longer hears it", (long long)c->seat)
                          : "it left";
    return gang_world_apply(w, seat, ev, gang_world_blame(w, seat, why), err);
}

/* Does a rank that has never joined accuse one that has? Then the fault is its own. */
static bool accuses_itself(const struct gang_world *w, const struct world_change *c,
                           const struct gang_seat_row *asker)
{
    bool found = false;
    for (size_t i = 0; i < c->n_lost && asker->joined_epoch == 0; i++) {
        const struct gang_seat_row *seat = gang_world_seat(w, c->lost[i]);
        found |= seat && seat->is_member && seat->joined_epoch > 0;
    }
    return found;
}

static as_status drop_seats(struct gang_world *w, const struct world_change *c,
                            struct gang_seat_row *asker, struct as_err *err)
{
    as_status st = AS_OK;
    if (accuses_itself(w, c, asker))
        return gang_world_apply(
            w, asker, SEAT_EV_LOSE,
            gang_world_blame(w, asker, "it could not connect to ranks that others reach"), err);
    for (size_t i = 0; i < c->n_lost && st == AS_OK; i++)
        st = c->lost[i] == c->seat ? as_fail_at(err, AS_E_INVAL, "/lost",
                                                "/lost: seat %lld asks itself", (long long)c->seat)
                                   : drop_seat(w, c, c->lost[i], "lost", SEAT_EV_LOSE, err);
    w->is_released = c->n_left > 0;
    for (size_t i = 0; i < c->n_left && st == AS_OK; i++)
        st = drop_seat(w, c, c->left[i], "left", SEAT_EV_LEAVE, err);
    return st;
}

static as_status change_world(struct tx *t, struct arena *a, const struct attempt_ref *ref,
                              const struct gang_caller *by, const struct world_change *c,
                              struct gang_detail *ret, struct as_err *err)
{
    struct gang_world w;
    struct gang_seat_row row;
    as_status st = open_seat(t, a, ref, c->seat, by, &w, &row, err);
    if (st != AS_OK)
        return st;
    struct gang_seat_row *asker = gang_world_seat(&w, c->seat);
    if ((st = check_asker(&w, c, asker, err)) != AS_OK)
        return st;
    if (c->has_step && (st = gang_world_step(&w, c->step, err)) != AS_OK)
        return st;
    w.must_change = true; /* without names, the members only meet again */
    if ((st = drop_seats(&w, c, asker, err)) == AS_OK)
        st = gang_world_settle(&w, err);
    return st == AS_OK ? read_world(t, a, &w.key, by, ret, err) : st;
}

as_status gang_change(struct store *db, struct arena *a, const struct attempt_ref *ref,
                      const struct gang_caller *by, const struct world_change *change,
                      struct gang_detail *ret, struct as_err *err)
{
    struct gang_detail world = {0};
    struct tx_run run = tx_run_start(db, TX_WRITE, err);
    while (tx_run_again(&run))
        run.status = change_world(run.tx, a, ref, by, change, &world, err);
    if (run.status == AS_OK)
        *ret = world;
    return run.status;
}

/* ---- read ---- */

static as_status read_gang(struct tx *t, struct arena *a, const struct attempt_ref *ref,
                           const struct gang_caller *by, bool with_history, struct gang_detail *ret,
                           struct as_err *err)
{
    struct gang_key key;
    as_status st = find_gang(t, a, ref, &key, err);
    if (st == AS_OK)
        st = read_world(t, a, &key, by, ret, err);
    if (st != AS_OK || !with_history)
        return st;
    return store_gang_seats(t, a, &key, &ret->seats, &ret->n_seats, err);
}

static as_status get_gang(struct store *db, struct arena *a, const struct attempt_ref *ref,
                          const struct gang_caller *by, bool with_history, struct gang_detail *ret,
                          struct as_err *err)
{
    struct gang_detail gang = {0};
    struct tx_run run = tx_run_start(db, TX_READ, err);
    while (tx_run_again(&run))
        run.status = read_gang(run.tx, a, ref, by, with_history, &gang, err);
    if (run.status == AS_OK)
        *ret = gang;
    return run.status;
}

as_status gang_world_get(struct store *db, struct arena *a, const struct attempt_ref *ref,
                         const struct gang_caller *by, struct gang_detail *ret, struct as_err *err)
{
    return get_gang(db, a, ref, by, false, ret, err);
}

as_status gang_get(struct store *db, struct arena *a, const struct attempt_ref *ref,
                   const struct gang_caller *by, struct gang_detail *ret, struct as_err *err)
{
    return get_gang(db, a, ref, by, true, ret, err);
}

/* ---- waiting for a change ----
 *
 * The key of a request holds the id of its gang and the low bits of the epoch that it knows. */

#define EPOCH_BITS 20
#define EPOCH_MASK ((INT64_C(1) << EPOCH_BITS) - 1)

int64_t gang_wait_key(int64_t gang_id, int64_t after)
{
    return -((gang_id << EPOCH_BITS) | (after & EPOCH_MASK));
}

bool gang_is_wait_key(int64_t key)
{
    return key <= -(INT64_C(1) << EPOCH_BITS);
}

static bool has_changed(int64_t key, const struct gang_mark *marks, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (marks[i].id == -key >> EPOCH_BITS)
            return marks[i].is_over || (marks[i].epoch & EPOCH_MASK) != (-key & EPOCH_MASK);
    return true; /* it was deleted with its sweep */
}

as_status gang_changed(struct store *db, const int64_t *keys, size_t n, bool *ret,
                       struct as_err *err)
{
    AS_AUTO(arena_done) struct arena a = {0};
    struct gang_mark *marks = NULL;
    size_t n_marks = 0;
    int64_t *ids = arena_alloc(&a, n + 1, sizeof *ids);
    if (!ids)
        return as_fail_nomem(err);
    for (size_t i = 0; i < n; i++)
        ids[i] = -keys[i] >> EPOCH_BITS;
    struct tx_run run = tx_run_start(db, TX_READ, err);
    while (tx_run_again(&run))
        run.status = store_gang_marks(run.tx, &a, ids, n, &marks, &n_marks, err);
    for (size_t i = 0; i < n && run.status == AS_OK; i++)
        ret[i] = has_changed(keys[i], marks, n_marks);
    return run.status;
}
