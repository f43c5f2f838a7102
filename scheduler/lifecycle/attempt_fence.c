/* May this writer change this trial?
 *
 * Two questions. Does the writer hold the attempt (attempt_find)? Then the fence: is this attempt
 * the trial's latest, and does it run? So a runner that was declared lost cannot overwrite the
 * attempt that replaced it. An attempt that was declared lost may still write while the trial is in
 * the queue, because its success counts if no other attempt has begun. */
#include "scheduler/lifecycle/attempts_priv.h"

#include "scheduler/store/attempt_store.h"
#include "scheduler/store/gang_store.h"

as_status attempt_fail_stale(struct tx *t, const struct attempt_ref *ref,
                             const struct trial_head *x, struct as_err *err)
{
    atomic_fetch_add(&store_counters(tx_store(t))->stale_rejected, 1);
    return attempt_stale(ref, x, err);
}

/* May a late attempt write? It was declared lost, nobody reported its end, and no other attempt has
 * begun. Its success would still count, so what belongs to it is taken as well. */
static as_status check_late(struct tx *t, struct arena *a, const struct attempt_ref *ref,
                            const struct trial_head *x, struct as_err *err)
{
    const char *reported = NULL;
    as_status st =
        store_attempt_reported(t, a, x->sweep_key, x->number, ref->attempt, &reported, err);
    if (st != AS_OK)
        return st;
    return reported ? attempt_fail_stale(t, ref, x, err) : AS_OK;
}

/* Does the writer hold the seat of the gang that it says? */
static as_status check_seat(struct tx *t, struct arena *a, const struct attempt_ref *ref,
                            const struct attempt_writer *by, struct attempt_holder *holder,
                            struct as_err *err)
{
    const struct gang_key key = {holder->sweep_key, ref->number, ref->attempt};
    struct gang_seat_row seat;
    if (!by->has_seat)
        return AS_OK; /* the fence refuses it */
    as_status st = store_gang_seat(t, a, &key, by->seat, &seat, err);
    return st == AS_OK ? attempt_check_seat(ref, by, seat.secret, err) : st;
}

as_status attempt_find(struct tx *t, struct arena *a, const struct attempt_ref *ref,
                       const struct attempt_writer *by, struct attempt_holder *ret,
                       struct as_err *err)
{
    static const struct attempt_writer nobody;
    by = by ? by : &nobody;
    as_status st = store_attempt_holder(t, a, ref, ret, err);
    if (st != AS_OK || !ret->is_there)
        return st;
    st = attempt_check_holder(ref, by, ret, err);
    return st == AS_OK && ret->gang ? check_seat(t, a, ref, by, ret, err) : st;
}

as_status attempt_check_leads(struct tx *t, const struct attempt_ref *ref, int64_t sweep_key,
                              const struct attempt_writer *by, struct as_err *err)
{
    const struct gang_key key = {sweep_key, ref->number, ref->attempt};
    int64_t epoch = 0, leader = -1;
    as_status st = attempt_check_says_seat(ref, by, err);
    if (st == AS_OK)
        st = store_gang_fence(t, &key, &epoch, &leader, err);
    if (st == AS_OK)
        st = attempt_check_leader(by, epoch, leader, err);
    if (st == AS_E_STALE)
        atomic_fetch_add(&store_counters(tx_store(t))->stale_rejected, 1);
    return st;
}

as_status attempt_lock_trial(struct tx *t, struct arena *a, const struct attempt_ref *ref,
                             const struct attempt_writer *by, int64_t key, struct trial_head *ret,
                             struct as_err *err)
{
    as_status st = store_trial_lock(t, a, key, ref->number, ret, err);
    if (st != AS_OK)
        return st;
    if (attempt_is_late(ret, ref))
        return check_late(t, a, ref, ret, err);
    if (ret->attempt != ref->attempt || ret->state != TRIAL_RUNNING)
        return attempt_fail_stale(t, ref, ret, err);
    return ret->gang ? attempt_check_leads(t, ref, key, by, err) : AS_OK;
}

as_status attempt_lock_fenced(struct tx *t, struct arena *a, const struct attempt_ref *ref,
                              const struct attempt_writer *by, struct trial_head *ret,
                              struct as_err *err)
{
    struct attempt_holder holder;
    as_status st = attempt_find(t, a, ref, by, &holder, err);
    return st == AS_OK ? attempt_lock_trial(t, a, ref, by, holder.sweep_key, ret, err) : st;
}
