/* Ranks and gangs that need care without a request. A list is read without locks, and each entry is
 * looked at again under the locks of its world, because its runner may be heard between the two. */
#include "scheduler/lifecycle/gang_repair.h"

#include "base/log.h"
#include "base/str.h"
#include "scheduler/lifecycle/gang_world.h"

static bool is_same_key(const struct gang_key *x, const struct gang_key *y)
{
    return x->sweep_key == y->sweep_key && x->number == y->number && x->attempt == y->attempt;
}

/* Seats of one gang that are to be dropped: a host that is lost takes several along, and is one
 * change of the world. */
struct drop {
    const struct held_seat *rows;
    size_t n;
    bool are_missing; /* else they are orphans */
    int64_t done;     /* result of the latest transaction */
};

static bool has_work(const struct drop *d)
{
    for (size_t i = 0; i < d->n; i++)
        if (d->rows[i].is_due)
            return true;
    return false;
}

/* The one runner that has all of them; NULL: several have. */
static const char *runner_of(const struct drop *d)
{
    for (size_t i = 1; i < d->n; i++)
        if (!as_streq(d->rows[i].runner, d->rows[0].runner))
            return NULL;
    return d->rows[0].runner;
}

/* Is it still an orphan, now that its world is locked? Then *ret_left: its runner left. */
static bool is_orphan(const struct held_seat_list *now, const struct held_seat *h, bool *ret_left)
{
    for (size_t i = 0; i < now->n; i++) {
        if (!is_same_key(&now->rows[i].key, &h->key) || now->rows[i].seat != h->seat)
            continue;
        *ret_left = now->rows[i].has_left;
        return true;
    }
    return false;
}

static as_status drop_seat(struct gang_world *w, const struct held_seat *h, bool is_missing,
                           bool has_left, struct as_err *err)
{
    struct gang_seat_row *seat = gang_world_seat(w, h->seat);
    if (!seat || !seat_state_is_live(seat->state))
        return AS_OK;
    const char *why = is_missing ? "its runner no longer runs it"
                      : has_left ? "its runner left"
                                 : "its runner cannot be heard";
    w->is_released |= has_left;
    return gang_world_apply(w, seat, has_left ? SEAT_EV_LEAVE : SEAT_EV_LOSE,
                            gang_world_blame(w, seat, why), err);
}

static as_status drop_of_gang(struct tx *t, struct arena *a, struct drop *d, struct as_err *err)
{
    struct gang_world w;
    struct held_seat_list now = {0};
    d->done = 0;
    as_status st = gang_world_open(t, a, &d->rows[0].key, &w, err);
    if (st == AS_OK && !d->are_missing)
        st = store_seat_orphans(t, a, runner_of(d), &now, err);
    if (st != AS_OK)
        return st == AS_E_NOT_FOUND ? AS_OK : st; /* deleted with its sweep */
    if (w.gang.state == GANG_OVER)
        return AS_OK;
    for (size_t i = 0; i < d->n && st == AS_OK; i++) {
        bool has_left = false;
        if (d->rows[i].is_due && (d->are_missing || is_orphan(&now, &d->rows[i], &has_left)))
            st = drop_seat(&w, &d->rows[i], d->are_missing, has_left, err);
    }
    d->done = w.went;
    return st == AS_OK && w.went > 0 ? gang_world_settle(&w, err) : st;
}

static as_status drop_seats(struct store *db, const struct held_seat_list *list, bool are_missing,
                            int64_t *ret_n, struct as_err *err)
{
    AS_AUTO(arena_done) struct arena a = {0};
    struct drop d = {.rows = list->rows, .are_missing = are_missing};
    for (; d.rows < list->rows + list->n; d.rows += d.n) {
        const struct gang_key *key = &d.rows->key;
        for (d.n = 1; d.rows + d.n < list->rows + list->n && is_same_key(&d.rows[d.n].key, key);)
            d.n++;
        if (!has_work(&d))
            continue;
        struct tx_run run = tx_run_start(db, TX_WRITE, err);
        while (tx_run_again(&run))
            run.status = drop_of_gang(run.tx, &a, &d, err);
        if (run.status != AS_OK)
            return run.status;
        *ret_n += d.done;
        if (d.done > 0)
            log_write(LOG_WARN, "ranks lost", "runner=%s trial=%lld attempt=%lld ranks=%lld",
                      d.rows->runner, (long long)key->number, (long long)key->attempt,
                      (long long)d.done);
    }
    return AS_OK;
}

as_status gangs_drop_orphans(struct store *db, const char *runner, int64_t *ret_n,
                             struct as_err *err)
{
    AS_AUTO(arena_done) struct arena a = {0};
    struct held_seat_list list = {0};
    *ret_n = 0;
    struct tx_run look = tx_run_start(db, TX_READ, err);
    while (tx_run_again(&look))
        look.status = store_seat_orphans(look.tx, &a, runner, &list, err);
    return look.status == AS_OK ? drop_seats(db, &list, false, ret_n, err) : look.status;
}

as_status gangs_drop_missing(struct store *db, const struct held_seat_list *missing,
                             struct as_err *err)
{
    int64_t n = 0;
    return drop_seats(db, missing, true, &n, err);
}

/* ---- gangs that cannot go on by themselves ---- */

/* It never got all of its ranks: begin with those that listen. */
static as_status begin_late(struct tx *t, struct arena *a, const struct gang_key *key,
                            struct as_err *err)
{
    struct gang_world w;
    int64_t listening = 0;
    as_status st = gang_world_open(t, a, key, &w, err);
    if (st != AS_OK)
        return st == AS_E_NOT_FOUND ? AS_OK : st;
    for (size_t i = 0; i < w.n_seats; i++)
        listening += w.seats[i].state == SEAT_LISTENING;
    if (w.gang.state != GANG_GATHERING || listening < w.gang.min_ranks)
        return AS_OK;
    w.must_change = true;
    return gang_world_settle(&w, err);
}

/* It holds seats that another gang waits for, and the other way round. */
static as_status start_again(struct tx *t, struct arena *a, const struct gang_key *key,
                             struct as_err *err)
{
    static const struct trial_change change = {
        .event = TRIAL_EV_RELEASE,
        .outcome = "released",
        .reason = "an older trial waited for ranks too: this one gave its own back"};
    struct gang_world w;
    as_status st = gang_world_open(t, a, key, &w, err);
    if (st != AS_OK)
        return st == AS_E_NOT_FOUND ? AS_OK : st;
    return w.gang.state == GANG_WAITING ? gang_world_end(&w, &change, err) : AS_OK;
}

typedef as_status look_fn(struct tx *t, struct arena *a, int64_t patience_ms, struct gang_key **ret,
                          size_t *ret_n, struct as_err *err);
typedef as_status care_fn(struct tx *t, struct arena *a, const struct gang_key *key,
                          struct as_err *err);

static as_status tend(struct store *db, look_fn *look_for, care_fn *care, int64_t patience_ms,
                      int64_t *ret_n, struct as_err *err)
{
    AS_AUTO(arena_done) struct arena a = {0};
    struct gang_key *keys = NULL;
    size_t n = 0;
    struct tx_run look = tx_run_start(db, TX_READ, err);
    while (tx_run_again(&look))
        look.status = look_for(look.tx, &a, patience_ms, &keys, &n, err);
    as_status st = look.status;
    for (size_t i = 0; i < n && st == AS_OK; i++) {
        struct tx_run run = tx_run_start(db, TX_WRITE, err);
        while (tx_run_again(&run))
            run.status = care(run.tx, &a, &keys[i], err);
        st = run.status;
        *ret_n += st == AS_OK;
    }
    return st;
}

as_status gangs_tend(struct store *db, int64_t *ret_n, struct as_err *err)
{
    int64_t lease_ms = store_config(db)->lease_ms;
    as_status st = gangs_drop_orphans(db, NULL, ret_n, err);
    if (st == AS_OK)
        st = tend(db, store_gang_late, begin_late, lease_ms, ret_n, err);
    if (st == AS_OK)
        st = tend(db, store_gang_stuck, start_again, 2 * lease_ms, ret_n, err);
    return st;
}
