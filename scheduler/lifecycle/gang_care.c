/* Ranks and gangs that need care without a request. A list is read without locks, and each entry is
 * looked at again under the locks of its world, because its runner may be heard between the two. */
#include "scheduler/lifecycle/gang_care.h"

#include "base/log.h"
#include "scheduler/lifecycle/gang_world.h"

static bool is_same_key(const struct gang_key *x, const struct gang_key *y)
{
    return x->sweep_key == y->sweep_key && x->number == y->number && x->attempt == y->attempt;
}

/* Is it still an orphan, now that its world is locked? *ret_left: its runner left. */
static as_status check_orphan(struct tx *t, struct arena *a, const struct held_seat *h, bool *ret,
                              bool *ret_left, struct as_err *err)
{
    struct held_seat_list now = {0};
    as_status st = store_seat_orphans(t, a, h->runner, &now, err);
    *ret = false;
    for (size_t i = 0; i < now.n && st == AS_OK; i++) {
        if (!is_same_key(&now.rows[i].key, &h->key) || now.rows[i].seat != h->seat)
            continue;
        *ret = true;
        *ret_left = now.rows[i].has_left;
    }
    return st;
}

static as_status drop_seat(struct tx *t, struct arena *a, const struct held_seat *h,
                           bool is_missing, bool *ret_done, struct as_err *err)
{
    struct gang_world w;
    bool goes = is_missing, has_left = false;
    *ret_done = false;
    as_status st = gang_world_open(t, a, &h->key, &w, err);
    if (st == AS_OK && !is_missing)
        st = check_orphan(t, a, h, &goes, &has_left, err);
    if (st != AS_OK)
        return st == AS_E_NOT_FOUND ? AS_OK : st; /* deleted with its sweep */
    struct gang_seat_row *seat = gang_world_seat(&w, h->seat);
    if (!goes || !seat || !seat_state_is_live(seat->state) || w.gang.state == GANG_OVER)
        return AS_OK;
    const char *why = is_missing ? "its runner no longer runs it"
                      : has_left ? "its runner left"
                                 : "its runner cannot be heard";
    w.is_released = has_left;
    st = gang_world_apply(&w, seat, has_left ? SEAT_EV_LEAVE : SEAT_EV_LOSE,
                          gang_world_blame(&w, seat, why), err);
    if (st == AS_OK)
        st = gang_world_settle(&w, err);
    *ret_done = st == AS_OK;
    return st;
}

static as_status drop_seats(struct store *db, const struct held_seat_list *list, bool is_missing,
                            int64_t *ret_n, struct as_err *err)
{
    AS_AUTO(arena_done) struct arena a = {0};
    for (size_t i = 0; i < list->n; i++) {
        bool done = false;
        if (!list->rows[i].is_due)
            continue;
        struct tx_run run = tx_run_start(db, TX_WRITE, err);
        while (tx_run_again(&run))
            run.status = drop_seat(run.tx, &a, &list->rows[i], is_missing, &done, err);
        if (run.status != AS_OK)
            return run.status;
        *ret_n += done;
        if (done)
            log_write(LOG_WARN, "rank lost", "runner=%s trial=%lld attempt=%lld seat=%lld",
                      list->rows[i].runner, (long long)list->rows[i].key.number,
                      (long long)list->rows[i].key.attempt, (long long)list->rows[i].seat);
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
